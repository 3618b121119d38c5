"""Covariances of observables between instances, in numbers: linear equations in averages over single sites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from sympy import Add, Expr, Integer, Mul, S, Symbol, default_sort_key

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.averages.site_nodes import SiteNodes
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.method.close import kind_of_body
from symcavity.method.fluctuations import at_given
from symcavity.method.moved import Moved, Parts, mean
from symcavity.method.perturbed import Overlap, Weighed
from symcavity.method.theory import Theory
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global


class Spreads:
    """N times the covariances of observables between instances, at a solution.

    Each observable is a sum over sites, over N, or a variable that all sites share.  The averages that do not depend on
    it are taken once.
    """

    def __init__(self, solution: SolutionTable, moved: Moved) -> None:
        self.solution, self.moved, self.found = solution, moved, moved.found
        self.squares = moved.squares
        self._known: dict[Expr, Any] = {S.Zero: mp.zero}
        self._nodes: dict[Kind, SiteNodes] = {}
        self._given: dict[tuple[Kind, Expr], Expr] = {}

    def covariance(self, one: Parts, other: Parts) -> Any:
        """N times the covariance of two observables, each by what a site of each kind has of it."""
        with mp.workdps(self.solution.dps + GUARD):
            first, second = self._moved_by(one), self._moved_by(other)
            turned = _solved(self._curvature, self._exchanged(self._mixed(other, second)))
            left = self._mixed(one, first)
            total = self._tilted(first, second) + self._scattered((one, first), (other, second))
            total += self._pulled(second, one, first) + self._pulled(first, other, second)
            return total - mp.fsum(left[k] * turned[k] for k in range(len(self.squares)))

    # -- averages ----------------------------------------------------------------------------------

    def _numbers(self, exprs: Sequence[Expr]) -> list[Any]:
        """The numbers of formulas; averages that several of them hold are taken once, those of one site together."""
        terms = [[_factors(term) for term in Add.make_args(e)] for e in exprs]
        wanted = {node for row in terms for factors in row for node in factors if node not in self._known}
        averages = sorted((node for node in wanted if isinstance(node, Average)), key=default_sort_key)
        self._known |= self._together(averages)
        others = sorted(wanted - {*self._known}, key=default_sort_key)
        self._known |= dict(zip(others, self.solution.numbers(others), strict=True))
        return [mp.fsum(mp.fprod(self._known[e] for e in factors) for factors in row) for row in terms]

    def _together(self, nodes: Sequence[Average]) -> dict[Expr, Any]:
        """The averages that are taken in double at nodes of their sites."""
        out: dict[Expr, Any] = {}
        if self.solution.dps <= IN_DOUBLE:
            kinds = {node: kind_of_body(node.body) for node in nodes}
            for kind in dict.fromkeys(kinds.values()):
                if kind not in self._nodes:
                    self._nodes[kind] = nodes_of(self.solution, self.moved.theory, kind)
                own = [node for node in nodes if kinds[node] == kind]
                found = self._nodes[kind].means([node.body for node in own])
                out |= {node: mp.mpf(found[node.body]) for node in own if node.body in found}
        return out

    def _sum(self, weighed: Iterable[tuple[Any, Expr]]) -> Any:
        """The sum of formulas times numbers."""
        rows = [(c, e) for c, e in weighed if e != 0]
        return mp.fsum(c * v for (c, _), v in zip(rows, self._numbers([e for _, e in rows]), strict=True))

    def _table(self, rows: Sequence[Sequence[Expr]]) -> Any:
        """The matrix of the numbers of formulas."""
        values = iter(self._numbers([e for row in rows for e in row]))
        return mp.matrix([[next(values) for _ in row] for row in rows]) if rows else mp.matrix(0, 0)

    def _of_kind(self, kind: Kind, parts: Parts, moves: Any) -> list[tuple[Any, Expr]]:
        """What is added to the minimum of a site, as numbers times functions of its fields."""
        basis = [self.found.moves(kind, symbol) for symbol in self.found.unknowns]
        return self._numbered(kind, parts) + [(c, g) for c, g in zip(moves, basis, strict=True) if g != 0]

    def _scattered(self, one: tuple[Parts, Any], other: tuple[Parts, Any]) -> Any:
        """The covariances of what is added to the minima of all sites."""
        rows = []
        for kind, share in self.found.shares.items():
            for c, g in self._of_kind(kind, *one):
                rows += [(c * d, share * mean(g * h)) for d, h in self._of_kind(kind, *other)]
                rows += [(-c * d, share * self._means(kind, g, h)) for d, h in self._of_kind(kind, *other)]
        return self._sum(rows)

    def _means(self, kind: Kind, g: Expr, h: Expr) -> Expr:
        """The product of two means; of sites whose parameters are the same in all instances at these."""
        if kind not in self._held:
            return mean(g) * mean(h)
        return Average(self._at_given(kind, g) * self._at_given(kind, h))

    @cached_property
    def _held(self) -> tuple[Kind, ...]:
        return held_kinds(self.solution)

    def _at_given(self, kind: Kind, body: Expr) -> Expr:
        if (kind, body) not in self._given:
            self._given[kind, body] = at_given(self.moved.theory, kind, body)
        return self._given[kind, body]

    # -- what moves --------------------------------------------------------------------------------

    @cached_property
    def _closed(self) -> Any:
        """The matrix of the linear equations of what moves."""
        unknowns, shares = self.found.unknowns, self.found.shares
        rows = [[Integer(m.symbol == s) - self._closure(m, s) for s in unknowns] for m in self.found.moved]
        for variable in self.found.shared:
            moves = [[(kind, self.found.moves(kind, s)) for kind in self.found.sites] for s in unknowns]
            rows.append([-Add(*(shares[kind] * self._slope(g, variable) for kind, g in row)) for row in moves])
        return self._table(rows)

    def _closure(self, m: Overlap | Weighed, other: Symbol) -> Expr:
        """By how much the average that a number stands for changes with an unknown."""
        return self.moved.answer(m, self.found.moves(m.kind, other)) + self.moved.carried(m, {other: S.One})

    def _slope(self, g: Expr, variable: Global) -> Expr:
        """The derivative of the average of a function in a variable that all sites share."""
        return self.found.slope(g, variable) if g != 0 else S.Zero

    def _moved_by(self, parts: Parts) -> Any:
        own, shares = {kind: self._numbered(kind, parts) for kind in self.found.sites}, self.found.shares
        right = [[(c, self.moved.answer(m, g)) for c, g in own[m.kind]] for m in self.found.moved]
        for variable in self.found.shared:
            slopes = [(c, shares[kind] * self._slope(g, variable)) for kind, row in own.items() for c, g in row]
            right.append([(mp.one, parts.shared.get(variable, S.Zero)), *slopes])
        self._numbers([e for row in right for _, e in row])  # together
        return _solved(self._closed, mp.matrix([self._sum(row) for row in right]))

    def _numbered(self, kind: Kind, parts: Parts) -> list[tuple[Any, Expr]]:
        rows = parts.sites.get(kind, [])
        return list(zip(self._numbers([c for c, _ in rows]), (body for _, body in rows), strict=True))

    # -- two copies --------------------------------------------------------------------------------

    @cached_property
    def _curvature(self) -> Any:
        """The second derivatives by the overlaps of two copies."""
        return self._table([[self.moved.curvature(one, other) for other in self.squares] for one in self.squares])

    def _mixed(self, parts: Parts, moves: Any) -> Any:
        """The mixed derivatives by an overlap of two copies, and what is added to one of them."""
        rows = []
        for symbol in self.squares:
            turned = [self.moved.turned(symbol, {other: S.One}) for other in self.found.unknowns]
            row = [*zip(moves, turned, strict=True)]
            for kind in self.found.sites:
                row += [(c, self.moved.pushed(symbol, kind, g)) for c, g in self._of_kind(kind, parts, moves)]
            rows.append(row)
        self._numbers([e for row in rows for _, e in row])  # together
        return mp.matrix([self._sum(row) for row in rows])

    def _exchanged(self, mixed: Any) -> Any:
        """The same where the other copy is the one to which something is added."""
        turned = self.found.copies.turned
        return mp.matrix([mixed[self.squares.index(turned[symbol])] for symbol in self.squares])

    def _pulled(self, moves: Any, parts: Parts, added: Any) -> Any:
        """What the one copy moves of the covariances of their fields, with what is added to the other."""
        rows = []
        for c, symbol in zip(moves, self.found.unknowns, strict=True):
            for kind in self.found.sites:
                terms = self._of_kind(kind, parts, added)
                rows += [(c * d, self.moved.pulled({symbol: S.One}, kind, g)) for d, g in terms]
        return self._sum(rows)

    def _tilted(self, first: Any, second: Any) -> Any:
        """The part of what both copies move through their overlaps with given emissions."""
        rows = []
        for c, one in zip(first, self.found.unknowns, strict=True):
            for d, other in zip(second, self.found.unknowns, strict=True):
                rows.append((c * d, self.moved.tilted({one: S.One}, {other: S.One})))
        return self._sum(rows)


def held_kinds(solution: Any) -> tuple[Kind, ...]:
    """The kinds of sites whose parameters are the same in all instances, as they are given site by site.

    Raises
    ------
    UnsupportedLaw
        If other parameters of the same sites are drawn.
    """
    laws = {kind: law for kind, law in solution.given.laws.items() if law.held}
    for kind, law in laws.items():
        if law.drawn:
            raise UnsupportedLaw(
                f"The scatter of instances is not derived where {law.held[0]} is given site by site, and "
                f"{law.drawn[0]} of the same {kind.sites} is drawn.",
                "laws, {value: weight}, of all parameters of a site, or all of them site by site",
                "theory.compare(sim, ...), for the scatter of instances",
            )
    return tuple(laws)


def _factors(term: Expr) -> list[Expr]:
    """The averages that are factors of a term, and what is left of it."""
    nodes = [factor for factor in Mul.make_args(term) if isinstance(factor, Average)]
    return [Mul(*(factor for factor in Mul.make_args(term) if factor not in nodes)), *nodes]


def nodes_of(solution: Any, theory: Theory, kind: Kind) -> SiteNodes:
    """The averages of one kind of site at a solution, in double."""
    units, binding = solution.task.units, theory.binding
    env, law = solution.environment("numpy"), solution.given.laws.get(kind, SiteLaw())
    ensemble = theory.inserted[kind].ensemble
    return SiteNodes(ensemble, law, env, lambda e: e.xreplace(binding).xreplace(units), solution.number)


def _solved(matrix: Any, right: Any) -> Any:
    try:
        return mp.lu_solve(matrix, right)
    except (ZeroDivisionError, TypeError):  # as mpmath tells a column without a pivot
        raise UnsupportedLaw(
            "The linear equations for the effect of a small term in the objective have no unique solution here.",
            "theories whose order parameters are all fixed by their closed equations",
            "the scatter of instances",
        ) from None
