"""Covariances of observables between instances, in numbers: linear equations in averages over single sites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from sympy import Dummy, Expr, S, Sum, Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.method.close import kind_of_body
from symcavity.method.perturbed import Overlap, Perturbed, Weighed
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global, site_quantities

ZERO = mp.zero


@dataclass
class Parts:
    """What an observable is made of, to first order.

    Attributes
    ----------
    sites : dict
        What a site of each kind has of it: numbers times functions of its states.
    shared : dict
        Its derivatives in variables that all sites share.
    """

    sites: dict[Kind, list[tuple[Any, Expr]]] = field(default_factory=dict)
    shared: dict[Symbol, Any] = field(default_factory=dict)


class Spreads:
    """N times the covariances of observables between instances, at a solution.

    Each observable is a sum over sites, over N, or a variable that all sites share.  The averages that do not depend on
    it are taken once.
    """

    def __init__(self, solution: SolutionTable, found: Perturbed) -> None:
        self.solution, self.found = solution, found
        self.squares = [k for k, m in enumerate(found.moved) if isinstance(m, Overlap)]
        self._known: dict[Expr, Any] = {}

    def covariance(self, one: Parts, other: Parts) -> Any:
        """N times the covariance of two observables, each by what a site of each kind has of it."""
        with mp.workdps(self.solution.dps + GUARD):
            first, second = self._moved_by(one), self._moved_by(other)
            total = ZERO
            for kind in self.found.sites:
                total += self._share(kind) * self._covariance(kind, (one, first), (other, second))
            turned = _solved(self._curvature, self._mixed(other, second))
            left = self._mixed(one, first)
            total += self._tilted(first, second)
            return total - mp.fsum(left[k] * turned[k] for k in range(len(self.squares)))

    # -- averages ----------------------------------------------------------------------------------

    def _mean(self, *factors: Expr) -> Any:
        body = factors[0]
        for factor in factors[1:]:
            body = body * factor
        if body == 0:
            return ZERO
        if body not in self._known:
            self._known[body] = self.solution.number(Average(body))
        return self._known[body]

    def _number(self, expr: Expr) -> Any:
        return self.solution.number(expr) if expr != 0 else ZERO

    def _share(self, kind: Kind) -> Any:
        return self._number(self.found.shares[kind])

    def _of_kind(self, kind: Kind, parts: Parts, moves: Any) -> list[tuple[Any, Expr]]:
        """What is added to the minimum of a site, as numbers times functions of its fields."""
        own = parts.sites.get(kind, [])
        basis = [self.found.moves(kind, symbol) for symbol in self.found.unknowns]
        return [*own] + [(c, g) for c, g in zip(moves, basis, strict=True) if g != 0]

    def _covariance(self, kind: Kind, one: tuple[Parts, Any], other: tuple[Parts, Any]) -> Any:
        total = ZERO
        for c, g in self._of_kind(kind, *one):
            for d, h in self._of_kind(kind, *other):
                total += c * d * (self._mean(g, h) - self._mean(g) * self._mean(h))
        return total

    def _push(self, kind: Kind, place: int, g: Expr) -> Any:
        """The average of dG/deta times dM/deta, by parts."""
        a = self.found.sites[kind][place]
        return self._mean(g, a.slopes[place]) - self._mean(g, a.eta, a.psi) / self._number(a.variance)

    # -- what moves --------------------------------------------------------------------------------

    def _answer(self, m: Overlap | Weighed, g: Expr) -> Any:
        """By how much a number changes where a function is added to the minimum of its sites."""
        if isinstance(m, Overlap):
            return 2 * self._number(m.factor) * self._push(m.kind, m.field, g)
        return self._mean(g, m.weight)

    @cached_property
    def _closed(self) -> Any:
        """The matrix of the linear equations of what moves."""
        moved, unknowns = self.found.moved, self.found.unknowns
        out = mp.matrix(len(unknowns), len(unknowns))
        for row, m in enumerate(moved):
            for column, other in enumerate(unknowns):
                out[row, column] = (row == column) - self._closure(m, other)
        for row, variable in enumerate(self.found.shared, len(moved)):
            for column, other in enumerate(unknowns):
                out[row, column] = -mp.fsum(
                    self._share(kind) * self._slope(self.found.moves(kind, other), variable)
                    for kind in self.found.sites
                )
        return out

    def _closure(self, m: Overlap | Weighed, other: Symbol) -> Any:
        """By how much the average that a number stands for changes with an unknown."""
        value = self._answer(m, self.found.moves(m.kind, other))
        if isinstance(m, Weighed):
            return value + self._number(m.also.diff(other))
        fields = self.found.sites[m.kind]
        for a, slope in zip(fields, fields[m.field].slopes, strict=True):
            grows = self._number(a.variance.diff(other))
            value += self._number(m.factor) * grows * self._mean(slope, slope) if grows else ZERO
        return value

    def _slope(self, g: Expr, variable: Global) -> Any:
        """The derivative of the average of a function in a variable that all sites share."""
        return self._number(self.found.slope(g, variable)) if g != 0 else ZERO

    def _moved_by(self, parts: Parts) -> Any:
        right = [mp.fsum(c * self._answer(m, g) for c, g in parts.sites.get(m.kind, [])) for m in self.found.moved]
        for variable in self.found.shared:
            terms = [
                self._share(kind) * c * self._slope(g, variable) for kind, own in parts.sites.items() for c, g in own
            ]
            right.append(mp.fsum([parts.shared.get(variable, ZERO), *terms]))
        return _solved(self._closed, mp.matrix(right))

    # -- two copies --------------------------------------------------------------------------------

    @cached_property
    def _curvature(self) -> Any:
        """The second derivatives by the overlaps of two copies."""
        symbols = [self.found.moved[k].symbol for k in self.squares]
        out = mp.matrix(len(symbols), len(symbols))
        for r, one in enumerate(symbols):
            for c, other in enumerate(symbols):
                value = -self._number(self.found.overlaps.diff(one).diff(other))
                for kind, fields in self.found.sites.items():
                    for a in fields:
                        for b, slope in zip(fields, a.slopes, strict=True):
                            both = self._number(a.variance.diff(one)) * self._number(b.variance.diff(other))
                            value += self._share(kind) * both * self._mean(slope, slope) if both else ZERO
                out[r, c] = value
        return out

    def _mixed(self, parts: Parts, moves: Any) -> Any:
        """The mixed derivatives by an overlap of two copies, and what is added to one of them."""
        out = mp.matrix(len(self.squares), 1)
        for r, k in enumerate(self.squares):
            symbol = self.found.moved[k].symbol
            for kind, fields in self.found.sites.items():
                for place, a in enumerate(fields):
                    grows = self._number(a.variance.diff(symbol))
                    if not grows:
                        continue
                    for c, g in self._of_kind(kind, parts, moves):
                        out[r] += self._share(kind) * grows * c * self._push(kind, place, g)
            for lost, kept in self._reductions:
                rate = self._number(lost.diff(symbol))
                for c, other in zip(moves, self.found.unknowns, strict=True):
                    out[r] += rate * c * self._number(kept.diff(other)) / 2 if rate else ZERO
        return out

    @cached_property
    def _reductions(self) -> list[tuple[Expr, Expr]]:
        """What overlaps of two copies weigh, and the variances at given emissions of others that they are part of.

        The overlap of the copies is that at given ``u``, and a product of the overlaps of each with these emissions.
        """
        out = []
        none = {self.found.moved[k].symbol: S.Zero for k in self.squares}
        for symbol in none:
            for fields in self.found.sites.values():
                for a in fields:
                    rate = a.variance.diff(symbol)
                    if rate != 0:
                        out.append((self.found.overlaps.diff(symbol) / rate, a.variance.xreplace(none)))
        return out

    def _tilted(self, first: Any, second: Any) -> Any:
        """The part of what both copies move through their overlaps with given emissions."""
        total, unknowns = ZERO, self.found.unknowns
        for lost, kept in self._reductions:
            for c, one in zip(first, unknowns, strict=True):
                for d, other in zip(second, unknowns, strict=True):
                    bent = kept.diff(one).diff(other)
                    total += self._number(lost) * c * d * self._number(bent) / 2 if bent != 0 else ZERO
        return total


def _solved(matrix: Any, right: Any) -> Any:
    try:
        return mp.lu_solve(matrix, right)
    except (ZeroDivisionError, TypeError):  # as mpmath tells a column without a pivot
        raise UnsupportedLaw(
            "The linear equations for the effect of a small term in the objective have no unique solution here.",
            "theories whose order parameters are all fixed by their closed equations",
            "the scatter of instances",
        ) from None


def parts_of(
    solution: SolutionTable, observable: Expr, shares: Mapping[Kind, Expr], in_states: Callable[[Expr], Expr]
) -> Parts:
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
    out = Parts(shared={g: solution.number(body.diff(g).xreplace(back)) for g in shared})
    for node, mark in marks.items():
        own = in_states(node.body)
        if not site_quantities(own):
            continue
        kind = kind_of_body(own)
        weight = solution.number(body.diff(mark).xreplace(back))
        out.sites.setdefault(kind, []).append((weight / solution.number(shares[kind]), own))
    return out
