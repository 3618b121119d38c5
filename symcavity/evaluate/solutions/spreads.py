"""Covariances of observables between instances, in numbers: linear equations in averages over single sites."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sympy import Add, Expr, Mul, S, Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.given.values import GUARD
from symcavity.evaluate.solutions.table import SolutionTable
from symcavity.method.moved import Moved, Parts, mean
from symcavity.method.perturbed import Overlap, Weighed
from symcavity.model.averages import Average
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Global

ZERO = mp.zero


class Spreads:
    """N times the covariances of observables between instances, at a solution.

    Each observable is a sum over sites, over N, or a variable that all sites share.  The averages that do not depend on
    it are taken once.
    """

    def __init__(self, solution: SolutionTable, moved: Moved) -> None:
        self.solution, self.moved, self.found = solution, moved, moved.found
        self.squares = moved.squares
        self._known: dict[Expr, Any] = {}

    def covariance(self, one: Parts, other: Parts) -> Any:
        """N times the covariance of two observables, each by what a site of each kind has of it."""
        with mp.workdps(self.solution.dps + GUARD):
            first, second = self._moved_by(one), self._moved_by(other)
            total = self._tilted(first, second)
            for kind in self.found.sites:
                total += self._share(kind) * self._covariance(kind, (one, first), (other, second))
            total += self._pulled(second, one, first) + self._pulled(first, other, second)
            turned = _solved(self._curvature, self._exchanged(self._mixed(other, second)))
            left = self._mixed(one, first)
            return total - mp.fsum(left[k] * turned[k] for k in range(len(self.squares)))

    # -- averages ----------------------------------------------------------------------------------

    def _number(self, expr: Expr) -> Any:
        """The number of a formula; averages that several of them hold are taken once."""
        return mp.fsum(self._product(term) for term in Add.make_args(expr))

    def _product(self, term: Expr) -> Any:
        nodes = [factor for factor in Mul.make_args(term) if isinstance(factor, Average)]
        rest = Mul(*(factor for factor in Mul.make_args(term) if factor not in nodes))
        for node in (rest, *nodes):
            if node not in self._known:
                self._known[node] = self.solution.number(node) if node != 0 else ZERO
        return mp.fprod([self._known[rest], *(self._known[node] for node in nodes)])

    def _share(self, kind: Kind) -> Any:
        return self._number(self.found.shares[kind])

    def _of_kind(self, kind: Kind, parts: Parts, moves: Any) -> list[tuple[Any, Expr]]:
        """What is added to the minimum of a site, as numbers times functions of its fields."""
        basis = [self.found.moves(kind, symbol) for symbol in self.found.unknowns]
        return self._numbered(kind, parts) + [(c, g) for c, g in zip(moves, basis, strict=True) if g != 0]

    def _covariance(self, kind: Kind, one: tuple[Parts, Any], other: tuple[Parts, Any]) -> Any:
        total = ZERO
        for c, g in self._of_kind(kind, *one):
            for d, h in self._of_kind(kind, *other):
                total += c * d * (self._number(mean(g * h)) - self._number(mean(g)) * self._number(mean(h)))
        return total

    # -- what moves --------------------------------------------------------------------------------

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
        value = self._number(self.moved.answer(m, self.found.moves(m.kind, other)))
        return value + self._number(self.moved.carried(m, {other: S.One}))

    def _slope(self, g: Expr, variable: Global) -> Any:
        """The derivative of the average of a function in a variable that all sites share."""
        return self._number(self.found.slope(g, variable)) if g != 0 else ZERO

    def _moved_by(self, parts: Parts) -> Any:
        own = {kind: self._numbered(kind, parts) for kind in self.found.sites}
        right = [mp.fsum(c * self._number(self.moved.answer(m, g)) for c, g in own[m.kind]) for m in self.found.moved]
        for variable in self.found.shared:
            terms = [self._share(kind) * c * self._slope(g, variable) for kind in own for c, g in own[kind]]
            right.append(mp.fsum([self._number(parts.shared.get(variable, S.Zero)), *terms]))
        return _solved(self._closed, mp.matrix(right))

    def _numbered(self, kind: Kind, parts: Parts) -> list[tuple[Any, Expr]]:
        return [(self._number(c), body) for c, body in parts.sites.get(kind, [])]

    # -- two copies --------------------------------------------------------------------------------

    @cached_property
    def _curvature(self) -> Any:
        """The second derivatives by the overlaps of two copies."""
        out = mp.matrix(len(self.squares), len(self.squares))
        for r, one in enumerate(self.squares):
            for c, other in enumerate(self.squares):
                out[r, c] = self._number(self.moved.curvature(one, other))
        return out

    def _mixed(self, parts: Parts, moves: Any) -> Any:
        """The mixed derivatives by an overlap of two copies, and what is added to one of them."""
        out = mp.matrix(len(self.squares), 1)
        for r, symbol in enumerate(self.squares):
            for c, other in zip(moves, self.found.unknowns, strict=True):
                out[r] += c * self._number(self.moved.turned(symbol, {other: S.One}))
            for kind in self.found.sites:
                for c, g in self._of_kind(kind, parts, moves):
                    out[r] += c * self._number(self.moved.pushed(symbol, kind, g))
        return out

    def _exchanged(self, mixed: Any) -> Any:
        """The same where the other copy is the one to which something is added."""
        turned = self.found.copies.turned
        return mp.matrix([mixed[self.squares.index(turned[symbol])] for symbol in self.squares])

    def _pulled(self, moves: Any, parts: Parts, added: Any) -> Any:
        """What the one copy moves of the covariances of their fields, with what is added to the other."""
        total = ZERO
        for c, symbol in zip(moves, self.found.unknowns, strict=True):
            for kind in self.found.sites:
                for d, g in self._of_kind(kind, parts, added):
                    total += c * d * self._number(self.moved.pulled({symbol: S.One}, kind, g))
        return total

    def _tilted(self, first: Any, second: Any) -> Any:
        """The part of what both copies move through their overlaps with given emissions."""
        total = ZERO
        for c, one in zip(first, self.found.unknowns, strict=True):
            for d, other in zip(second, self.found.unknowns, strict=True):
                total += c * d * self._number(self.moved.tilted({one: S.One}, {other: S.One}))
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
