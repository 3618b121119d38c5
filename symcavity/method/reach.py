"""Which quantities vary with some quenched parameters, and which of these reach an observed one: by structure.

Each state of a site is fixed by one equation of its law.  It depends on what else stands there, on what fixes these
states, and so on: on parameters of the site, and on cavity fields.  A field varies if what it sums does.  What varies
is thereby known from the declaration, and no small number decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Basic, Expr, S, Symbol, Tuple

from symcavity.errors import UnsupportedLaw
from symcavity.method.pair_ends import Leg, weighed
from symcavity.model.families import families
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.laws import Law
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


@dataclass(frozen=True)
class Reach:
    """What varies at each kind of sites, and leads to an observed quantity.

    Attributes
    ----------
    theory : Theory
    over : tuple of Quenched
        What varies.
    observed : Expr
    kind : Kind
        Of the observed sites.
    """

    theory: Any
    over: tuple[Quenched, ...]
    observed: Expr
    kind: Kind

    @cached_property
    def _sent(self) -> list[tuple[Kind, Expr]]:
        """What each kind sends, and what is observed."""
        sent = [(f.sender, weighed(f)) for f in self.theory.system.fields if self.may_vary(f)]
        return list(dict.fromkeys([*sent, (self.kind, self.observed)]))

    def may_vary(self, f: RandomField) -> bool:
        """Whether a field sums states, or parameters that vary."""
        return bool(f.states()) or any(f.emission.has(q.at_site()) for q in self.over)

    @cached_property
    def _laws(self) -> dict[Kind, _Dependence]:
        return {kind: _Dependence(site) for kind, site in self.theory.inserted.items()}

    @cached_property
    def _heard(self) -> dict[tuple[Kind, Expr], tuple[set[Quenched], list[Heard]]]:
        """The parameters and the fields of its site on which each of them depends."""
        return {(kind, e): self._laws[kind].of(e) for kind, e in self._sent}

    @cached_property
    def varying(self) -> set[tuple[Kind, Expr]]:
        """What depends on something that varies, through whatever sites."""
        found: set[tuple[Kind, Expr]] = set()
        while new := {e for e in self._sent if e not in found and self._moves(e, found)}:
            found |= new
        return found

    def _moves(self, sent: tuple[Kind, Expr], known: set[tuple[Kind, Expr]]) -> bool:
        own, heard = self._heard[sent]
        return bool(own & {*self.over}) or any(_summed(h) in known for h in heard)

    @cached_property
    def legs(self) -> tuple[Leg, ...]:
        """The ends of what joins two sites: what varies and leads to the observed quantity.

        Raises
        ------
        UnsupportedLaw
            If nothing that varies reaches it.
        """
        target = (self.kind, self.observed)
        if target not in self.varying:
            raise unreached(self.observed, self.over)
        leading, waiting = {target}, [target]
        while waiting:
            new = {_summed(h) for h in self._heard[waiting.pop()][1]} & self.varying - leading
            leading |= new
            waiting += new
        legs: list[Leg] = []
        for kind, site in self.theory.inserted.items():
            sent = [(k, e) for k, e in self._sent if k == kind and (k, e) in leading]
            legs += [Leg(kind, sent=e) for _, e in sent]
            heard = [h for each in sent for h in self._heard[each][1]]
            legs += [Leg(kind, field=h) for h in site.heard if h in heard and _summed(h) in leading]
        return tuple(legs)

    def fields(self, kind: Kind) -> list[Heard]:
        """The fields on which what varies of a site depends, those that are given too."""
        asked = [self._heard[kind, leg.sent][1] for leg in self.legs if leg.kind == kind and leg.sent is not None]
        return [h for h in self.theory.inserted[kind].heard if any(h in heard for heard in asked)]

    def law(self, kind: Kind) -> Law:
        """What fixes the states on which what varies of a site depends."""
        sent = [leg.sent for leg in self.legs if leg.kind == kind and leg.sent is not None]
        labels = [q.given for q in self.parameters(kind) if q.given is not None]
        return self._laws[kind].of_states({q for e in (*sent, *labels) for q in site_quantities(e)})

    def varies(self, field: Heard) -> bool:
        """Whether what a field sums varies."""
        return _summed(field) in self.varying

    def parameters(self, kind: Kind) -> list[Quenched]:
        """The quenched parameters of a site on which what varies there depends."""
        asked = [self._heard[kind, leg.sent][0] for leg in self.legs if leg.kind == kind and leg.sent is not None]
        moments = [e for h in self.fields(kind) for e in h.declared.coupling.family.moments]
        found = set().union(*asked) | {q for q in families(moments, Quenched) if q.slots == (kind,)}
        return sorted(found, key=lambda q: q.name)


def unreached(observed: Expr, over: Sequence[Quenched]) -> UnsupportedLaw:
    """The error of a quantity that does not vary."""
    return UnsupportedLaw(
        f"{observed} does not vary: nothing of {' and '.join(map(str, over))} reaches it.",
        "quantities that depend on the parameters in over=",
        "other parameters in over=",
    )


def _summed(h: Heard) -> tuple[Kind, Expr]:
    return h.declared.sender, weighed(h.declared)


class _Dependence:
    """On which parameters and cavity fields the states of a site depend."""

    def __init__(self, site: Site) -> None:
        self.site = site
        silent = dict.fromkeys([s for s, mean in site.means.items() if mean == 0], S.Zero)
        rule = {h.declared.symbol: h.effective().xreplace(silent) for h in site.heard}
        law = site.problem.law
        rows: list[Basic] = [e.difference.xreplace(rule) for e in law.equations]
        rows += [Tuple(*(q.xreplace(rule) for q in p.pair)) for p in law.pairs]
        if law.weight is not None:
            rows.append(Tuple(law.weight.energy.xreplace(rule), *(b.xreplace(rule) for b in law.weight.bounds)))
        self.rows = [(set(law.unknowns) & row.atoms(SiteQuantity), _atoms(row)) for row in rows]
        self.fixed = None if law.weight is not None else _matched([states for states, _ in self.rows], law.unknowns)

    def _closed(self, states: set[Any]) -> set[int]:
        """The equations that fix some states, and those that fix the states in these; all, where nothing tells."""
        if self.fixed is None:
            return set(range(len(self.rows)))
        seen = waiting = states & set(self.fixed)
        while waiting:
            waiting = set().union(*(self.rows[self.fixed[q]][0] for q in waiting)) - seen
            seen = seen | waiting
        return {self.fixed[q] for q in seen}

    def of_states(self, states: set[Any]) -> Law:
        """The part of the law that fixes some states."""
        law, rows = self.site.law, self._closed(states)
        count = len(law.equations)
        kept = law.unknowns if self.fixed is None else tuple(q for q in law.unknowns if self.fixed[q] in rows)
        equations = tuple(e for k, e in enumerate(law.equations) if k in rows)
        return replace(
            law,
            unknowns=kept,
            equations=equations,
            pairs=tuple(p for k, p in enumerate(law.pairs, start=count) if k in rows),
        )

    def of(self, expr: Expr) -> tuple[set[Quenched], list[Heard]]:
        """The parameters and the fields on which a quantity depends."""
        found, waiting = set[Any](), [expr]
        while waiting:
            node = waiting.pop()
            rows = self._closed(set(site_quantities(node))) if site_quantities(node) else ()
            new = _atoms(node).union(*(self.rows[k][1] for k in rows)) - found
            found |= new
            for label in (q for q in new if isinstance(q, Quenched) and q.given is not None):
                waiting += [label.given, *(label.law.args if label.law is not None else ())]
        own = {q for q in found if isinstance(q, Quenched) and q.slots == (self.site.kind,)}
        return own, [h for h in self.site.heard if h.eta in found]


def _atoms(expr: Basic) -> set[Any]:
    """The symbols and the quenched families in an expression."""
    return {*expr.atoms(Symbol), *families([expr], Quenched)}


def _matched(rows: Sequence[set[Any]], states: Sequence[Any]) -> dict[Any, int] | None:
    """An equation for each state, in which it stands, by augmenting paths; None where there are not enough."""
    taken: dict[int, Any] = {}

    def placed(state: Any, seen: set[int]) -> bool:
        for k in (k for k, row in enumerate(rows) if state in row and k not in seen):
            seen.add(k)
            if k not in taken or placed(taken[k], seen):
                taken[k] = state
                return True
        return False

    if len(rows) != len(states) or not all(placed(q, set()) for q in states):
        return None
    return {q: k for k, q in taken.items()}
