"""The shifts that a small term in the objective causes: linear equations in averages over single sites.

:mod:`symcavity.method.perturbed` says what the symbols are.  Every formula is linear in the functions ``G`` that are
added to the minima of single sites, so that it holds for each part of them, and for their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sympy import Add, Dummy, Expr, S, Sum, Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.method.answered import as_averages, tilts
from symcavity.method.close import kind_of_body
from symcavity.method.observed_sums import in_states
from symcavity.method.perturbed import Overlap, Perturbed, Weighed, perturbed
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global, SiteQuantity, site_quantities
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
        own = in_states(theory.system, node.body)
        if not site_quantities(own):
            continue
        kind = kind_of_body(own)
        factor = body.diff(mark).xreplace(back) / shares[kind]
        out.sites.setdefault(kind, []).append((factor, own))
        out.typed.setdefault(kind, []).append((factor, node.body))
    return out


def mean(body: Expr) -> Expr:
    """The average over the sites, of what is not zero; with factors outside that are the same at all sites."""
    factor, rest = body.as_independent(SiteQuantity, SiteResponse, as_Add=False)
    return factor * Average(rest) if rest != 1 else factor


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
    def squares(self) -> list[Symbol]:
        """The overlaps that two copies have with each other."""
        return list(self.found.copies.turned)

    def answer(self, m: Overlap | Weighed, g: Expr) -> Expr:
        """By how much a number changes where a function is added to the minimum of its sites."""
        if g == 0:
            return S.Zero
        if isinstance(m, Weighed):
            return Add(*(mean(g * term) for term in m.weights)).xreplace(self.found.same)
        k, n = m.fields
        if k == n:
            return self._pushed(m.kind, k, n, 2 * m.factor, g)
        return self._pushed(m.kind, k, n, m.factor, g) + self._pushed(m.kind, n, k, m.factor, g)

    def carried(self, m: Overlap | Weighed, changes: Mapping[Symbol, Expr]) -> Expr:
        """By how much a number changes with the covariances of fields, or with others that stand in it."""
        if isinstance(m, Weighed):
            return Add(*(m.also.diff(s) * change for s, change in changes.items()))
        fields = self.found.sites[m.kind]
        one, other = (fields[k].slopes for k in m.fields)
        terms = [
            mean(m.factor * grown(c, changes) * one[k] * other[n])
            for k, a in enumerate(fields)
            for n, c in enumerate(a.covariance)
        ]
        return Add(*terms).xreplace(self.found.same)

    def curvature(self, one: Symbol, other: Symbol) -> Expr:
        """The second derivative of the covariance of two minima, by overlaps or by what each copy has of its own."""
        copies = self.found.copies
        value = -copies.overlaps.diff(one).diff(other)
        for kind, fields in self.found.sites.items():
            terms = []
            for a, b, rate in copies.grows(kind, one):
                both = rate.diff(other)
                terms.append(mean(copies.alike(both) * fields[a].psi * fields[b].psi))
                for c, d, second in copies.grows(kind, other):
                    terms.append(mean(copies.alike(rate * second) * fields[a].slopes[c] * fields[b].slopes[d]))
            value += self.found.shares[kind] * Add(*terms)
        return copies.alike(value).xreplace(self.found.same)

    def pushed(self, symbol: Symbol, kind: Kind, g: Expr) -> Expr:
        """The mixed derivative by an overlap of two copies, of what is added to the sites of a kind of the first."""
        share, copies = self.found.shares[kind], self.found.copies
        grows = copies.grows(kind, symbol) if g != 0 else []
        return Add(*(self._pushed(kind, a, b, share * copies.alike(rate), g) for a, b, rate in grows))

    def _pushed(self, kind: Kind, a: int, b: int, scale: Expr, g: Expr) -> Expr:
        """The average of dG/deta_a times dM/deta_b, by parts, with a factor."""
        fields = self.found.sites[kind]
        psi = fields[b].psi
        pushed = [mean(scale * g * t * psi) for t in tilts(fields, a)]
        return (mean(scale * g * fields[a].slopes[b]) - Add(*pushed)).xreplace(self.found.same)

    def turned(self, symbol: Symbol, changes: Mapping[Symbol, Expr]) -> Expr:
        """The mixed derivative by an overlap of two copies, of what the first alone moves of their covariances."""
        second = self.found.copies.second
        return Add(*(change * self.curvature(symbol, s) for s, change in changes.items() if s in second))

    def tilted(self, one: Mapping[Symbol, Expr], other: Mapping[Symbol, Expr]) -> Expr:
        """The part of what both copies move of their covariances by themselves."""
        second = self.found.copies.second
        first = [(s, change) for s, change in one.items() if s in second]
        terms = [c * d * self.curvature(s, second[r]) for s, c in first for r, d in other.items() if r in second]
        return Add(*terms)

    def pulled(self, changes: Mapping[Symbol, Expr], kind: Kind, g: Expr) -> Expr:
        """What the second copy moves of their covariances, with what is added to the sites of a kind of the first."""
        second = self.found.copies.second
        return Add(*(d * self.pushed(second[r], kind, g) for r, d in changes.items() if r in second))


def moved_of(theory: Theory) -> Moved:
    """What a small term in the objective moves, read off once; raises UnsupportedLaw as :func:`perturbed`."""
    if "moved" not in theory.memory:
        theory.memory["moved"] = Moved(theory, perturbed(theory))
    return theory.memory["moved"]


def grown(covariance: Expr, changes: Mapping[Symbol, Expr]) -> Expr:
    """By how much a covariance of fields grows."""
    return Add(*(covariance.diff(s) * change for s, change in changes.items()))
