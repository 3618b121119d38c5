"""What a small term in the objective moves, as formulas: linear equations in averages over single sites.

:mod:`symcavity.method.perturbed` says what the symbols are.  Every formula is linear in the functions ``G`` that are
added to the minima of single sites, so that it holds for each part of them, and for their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Add, Dummy, Expr, S, Sum, Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.method.close import kind_of_body
from symcavity.method.perturbed import Answered, Overlap, Perturbed, Weighed, as_averages, in_states, perturbed
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global, site_quantities
from symcavity.model.typed import OBJECTIVE


@dataclass
class Parts:
    """What an observable is made of, to first order.

    Attributes
    ----------
    sites : dict
        What a site of each kind has of it: factors, the same for all sites, times functions of its states.
    shared : dict
        Its derivatives in variables that all sites share.
    typed : dict
        The functions as they were typed.
    """

    sites: dict[Kind, list[tuple[Expr, Expr]]] = field(default_factory=dict)
    shared: dict[Symbol, Expr] = field(default_factory=dict)
    typed: dict[Kind, list[tuple[Expr, Expr]]] = field(default_factory=dict)

    def of(self, kind: Kind) -> Expr:
        """What a site of a kind has of it."""
        return Add(*(factor * body for factor, body in self.sites.get(kind, ())))


def parts_of(theory: Theory, observable: Expr, shares: Mapping[Kind, Expr]) -> Parts:
    """What an observable is made of that is a function of averages and of variables that all sites share.

    Raises
    ------
    UnsupportedLaw
        For observables that are made of more than averages over sites: responses, sums that grow with the size.
    """
    nodes = sorted(observable.atoms(Average), key=str)
    nodes = [n for n in nodes if not any(n is not m and m.has(n) for m in nodes)]
    marks = {node: Dummy(f"m{k}", real=True) for k, node in enumerate(nodes)}
    body = observable.xreplace(marks)
    inner = any(n.has(SiteResponse) or n.body.has(Average) for n in nodes)
    shared = sorted(body.atoms(Global), key=str)
    if not (nodes or shared) or body.has(Sum) or site_quantities(body) or inner:
        raise UnsupportedLaw(
            f"The variance of {observable!s:.80} between instances is not derived.",
            "functions of averages over sites, such as average(w[i]*t[i])/sqrt(average(w[i]**2)), of variables "
            "that all sites share, and 'objective'",
            "theory.compare(sim, ...), for the scatter of instances",
        )
    back = {mark: node for node, mark in marks.items()}
    out = Parts(shared={g: body.diff(g).xreplace(back) for g in shared})
    for node, mark in marks.items():
        own = in_states(theory, node.body)
        if not site_quantities(own):
            continue
        kind = kind_of_body(own)
        factor = body.diff(mark).xreplace(back) / shares[kind]
        out.sites.setdefault(kind, []).append((factor, own))
        out.typed.setdefault(kind, []).append((factor, node.body))
    return out


def mean(body: Expr) -> Expr:
    """The average over the sites, of what is not zero."""
    return Average(body) if body != 0 else S.Zero


@dataclass(frozen=True)
class Moved:
    """The formulas of what a small term in the objective moves.

    Attributes
    ----------
    theory : Theory
    found : Perturbed
    """

    theory: Theory
    found: Perturbed

    def read(self, key: Any) -> Expr:
        """An observable as it is made of averages."""
        return as_averages(self.theory, self.theory.objective if key == OBJECTIVE else key)

    def parts(self, key: Any) -> Parts:
        """What an observable is made of; raises UnsupportedLaw as :func:`parts_of`."""
        return parts_of(self.theory, self.read(key), self.found.shares)

    @property
    def squares(self) -> list[Overlap]:
        """The overlaps that two copies have with each other."""
        return [m for m in self.found.moved if isinstance(m, Overlap)]

    def answer(self, m: Overlap | Weighed, g: Expr) -> Expr:
        """By how much a number changes where a function is added to the minimum of its sites."""
        if g == 0:
            return S.Zero
        if isinstance(m, Overlap):
            return self._pushed(m.kind, m.field, 2 * m.factor, g)
        return mean(g * m.weight)

    def carried(self, m: Overlap | Weighed, changes: Mapping[Symbol, Expr]) -> Expr:
        """By how much a number changes with the variances of fields, or with others that stand in it."""
        if isinstance(m, Weighed):
            return Add(*(m.also.diff(s) * change for s, change in changes.items()))
        fields = self.found.sites[m.kind]
        return Add(
            *(
                m.factor * grown(a, changes) * mean(slope**2)
                for a, slope in zip(fields, fields[m.field].slopes, strict=True)
            )
        )

    def curvature(self, one: Symbol, other: Symbol) -> Expr:
        """The second derivative by two overlaps of two copies."""
        value = -self.found.overlaps.diff(one).diff(other)
        for kind, fields in self.found.sites.items():
            for a in fields:
                for b, slope in zip(fields, a.slopes, strict=True):
                    both = a.variance.diff(one) * b.variance.diff(other)
                    value += self.found.shares[kind] * both * mean(slope**2) if both != 0 else S.Zero
        return value

    def pushed(self, symbol: Symbol, kind: Kind, g: Expr) -> Expr:
        """The mixed derivative by an overlap of two copies, of what is added to the sites of a kind of one of them."""
        terms = []
        for place, a in enumerate(self.found.sites[kind]):
            grows = a.variance.diff(symbol)
            if grows != 0 and g != 0:
                terms.append(self._pushed(kind, place, self.found.shares[kind] * grows, g))
        return Add(*terms)

    def _pushed(self, kind: Kind, place: int, scale: Expr, g: Expr) -> Expr:
        """The average of dG/deta times dM/deta, by parts, with a factor."""
        a = self.found.sites[kind][place]
        return scale * mean(g * a.slopes[place]) - scale / a.variance * mean(g * a.eta * a.psi)

    def turned(self, symbol: Symbol, changes: Mapping[Symbol, Expr]) -> Expr:
        """The same of what moves the overlaps with given emissions."""
        terms = []
        for lost, kept in self.reductions():
            rate = lost.diff(symbol)
            terms += [rate * kept.diff(s) * change / 2 for s, change in changes.items() if rate != 0]
        return Add(*terms)

    def tilted(self, one: Mapping[Symbol, Expr], other: Mapping[Symbol, Expr]) -> Expr:
        """The part of what both copies move through their overlaps with given emissions."""
        terms = []
        for lost, kept in self.reductions():
            for s, first in one.items():
                terms += [lost * first * kept.diff(s).diff(r) * second / 2 for r, second in other.items()]
        return Add(*terms)

    def reductions(self) -> Iterator[tuple[Expr, Expr]]:
        """What overlaps of two copies weigh, and the variances at given emissions of others that they are part of.

        The overlap of the copies is that at given ``u``, and a product of the overlaps of each with these emissions.
        """
        none = {m.symbol: S.Zero for m in self.squares}
        for symbol in none:
            for fields in self.found.sites.values():
                for a in fields:
                    rate = a.variance.diff(symbol)
                    if rate != 0:
                        yield self.found.overlaps.diff(symbol) / rate, a.variance.xreplace(none)


def moved_of(theory: Theory) -> Moved:
    """What a small term in the objective moves, read off once; raises UnsupportedLaw as :func:`perturbed`."""
    if "moved" not in theory.memory:
        theory.memory["moved"] = Moved(theory, perturbed(theory))
    return theory.memory["moved"]


def grown(a: Answered, changes: Mapping[Symbol, Expr]) -> Expr:
    """By how much the variance of a field grows."""
    return Add(*(a.variance.diff(s) * change for s, change in changes.items()))
