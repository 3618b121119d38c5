"""Quantities to be averaged over a joint law, as functions of its states: their kinks, their sides, their degree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sympy import Abs, Add, Expr, Heaviside, Matrix, Max, Min, Mul, Piecewise, Pow, Sum, sign
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import KINKS, JointAverage, JointLaw, LawSymbol
from symcavity.evaluate.averages.edges import HELD, VanishingPairs
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.kinks import unkinked


def leaves_of(exprs: Sequence[Expr]) -> list[Any]:
    """What parameters some expressions hold: symbols, quenched parameters, averages over other sites."""
    found: set[Any] = set()

    def collect(expr: Any) -> None:
        if isinstance(expr, Average | Sum | SiteQuantity) or (expr.is_Symbol and not isinstance(expr, LawSymbol)):
            found.add(expr)
            return
        for arg in expr.args:
            collect(arg)

    for expr in exprs:
        collect(expr)
    return sorted(found, key=str)


class Body:
    """What is averaged, as a function of the quantities of a law."""

    def __init__(self, node: JointAverage, law: JointLaw, leaves: Sequence[Any]) -> None:
        self.body, self.law, self.leaves = node.body, law, leaves
        self.own = leaves_of([node.body])
        self.names = sorted(node.body.atoms(LawSymbol), key=str)
        self.sides = sides_of([node.body])
        tests = sorted((r for r in node.body.atoms(Relational) if r.has(LawSymbol)), key=str)
        self.decided = {r: r.func(LawSymbol(f"test{k}", ""), 0) for k, r in enumerate(tests)}
        self.edges = sorted({s for e in self.sides for s in e.atoms(LawSymbol)}, key=str)
        self.slopes = list(Matrix(self.sides).jacobian(self.edges)) if self.edges else []
        self.affine = not any(e.has(LawSymbol) for e in self.slopes) and not any(
            k.has(LawSymbol) for e in self.sides for k in e.atoms(*KINKS)
        )

    # code is made for requested averages only: most integrands are symbols, or smooth

    @cached_property
    def degree(self) -> float:
        """The degree of a polynomial in the quantities of the law; infinite if it is not one."""
        law = self.law
        return _degree(self.body, {*law.unknowns, *law.fields, *(x for x, _ in law.definitions)})

    @cached_property
    def gaps(self) -> Any:
        """The differences of what its conditions compare."""
        return function([*self.names, *self.own], [r.lhs - r.rhs for r in self.decided])

    @cached_property
    def call(self) -> Any:
        """Its values, by the quantities in it, what its conditions compare, and its own parameters."""
        tests = [r.lhs for r in self.decided.values()]
        return function([*self.names, *tests, *self.own], self.body.xreplace(self.decided))

    @cached_property
    def edge(self) -> VanishingPairs:
        """Which of its sides and of what it compares the law holds at zero."""
        sides = [*self.sides, *(r.lhs - r.rhs for r in self.decided)]
        return VanishingPairs(self.law, sides, list(dict.fromkeys([*self.leaves, *self.own])))

    @cached_property
    def line(self) -> Any:
        """Its sides and their slopes."""
        return function([*self.edges, *self.own], [*self.sides, *self.slopes])

    def _of(self, given: Mapping[Any, float]) -> list[float]:
        return [given[s] for s in self.own]

    def switches(self, columns: Mapping[LawSymbol, np.ndarray], given: Mapping[Any, float]) -> np.ndarray:
        """What changes its sign at its kinks and conditions, at each node; zero where the law holds it at zero."""
        shape = next(iter(columns.values())).shape
        found = self.line(*(columns[s] for s in self.edges), *self._of(given))[: len(self.sides)]
        zero = self._vanish(columns, given)
        sides = [np.where(z, 0.0, np.broadcast_to(side, shape)) for side, z in zip(found, zero, strict=False)]
        return np.array(sides, dtype=float).reshape(-1, *shape)

    def _vanish(self, columns: Mapping[LawSymbol, np.ndarray], given: Mapping[Any, float]) -> np.ndarray:
        """Which sides, and which differences of what is compared, are zero at each node because the law holds them."""
        numbers, where = np.unique(columns[HELD], return_inverse=True)
        return self.edge.vanishing(numbers, given)[:, where.reshape(columns[HELD].shape)]

    def lines(self, rows: Mapping[LawSymbol, np.ndarray], given: Mapping[Any, float]) -> np.ndarray:
        """What switches as affine functions, of what its quantities are: shape (faces, sides, coefficients)."""
        shape = next(iter(rows.values())).shape
        out = np.zeros((shape[0], len(self.sides), shape[1]))
        if not self.sides or any(s not in rows for s in self.edges):  # responses are numbers on a face
            return out[:, :0]
        found = np.array(self.line(*[0.0] * len(self.edges), *self._of(given)), dtype=float)
        out[..., 0] = found[: len(self.sides)]
        slopes = found[len(self.sides) :].reshape(len(self.sides), -1)
        for k, s in enumerate(self.edges):
            out += slopes[:, k, None] * rows[s][:, None, :]
        out[self._vanish(rows, given)[: len(self.sides)].T] = 0.0
        return out

    def values(self, columns: Mapping[LawSymbol, np.ndarray], given: Mapping[Any, float]) -> np.ndarray:
        """The values at all nodes."""
        if isinstance(self.body, LawSymbol):
            return columns[self.body]
        here, own = [columns[s] for s in self.names], self._of(given)
        tests: list[Any] = []
        if self.decided:
            zero = self._vanish(columns, given)[len(self.sides) :]
            tests = [np.where(z, 0.0, gap) for z, gap in zip(zero, self.gaps(*here, *own), strict=True)]
        found = self.call(*here, *tests, *own)
        return np.broadcast_to(np.asarray(found), np.broadcast_shapes(*(c.shape for c in here)))


def _degree(expr: Any, moving: set[LawSymbol]) -> float:
    """The degree of a polynomial in the moving quantities, on either side of its kinks and conditions."""
    if expr in moving:
        return 1.0
    if not expr.has(*moving) or isinstance(expr, Relational | Boolean | sign | Heaviside):
        return 0.0
    parts = [_degree(arg, moving) for arg in (v for v, _ in expr.args)] if isinstance(expr, Piecewise) else []
    parts = parts or [_degree(arg, moving) for arg in expr.args]
    if isinstance(expr, Mul):
        return sum(parts)
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp > 0:
        return float(expr.exp) * parts[0]
    return max(parts) if isinstance(expr, Add | Abs | Max | Min | Piecewise) else np.inf


def sides_of(exprs: Sequence[Expr]) -> list[Expr]:
    """What changes its sign where some expressions in the quantities of a law switch."""
    kinks = sorted({k for e in exprs for k in e.atoms(*KINKS) if k.has(LawSymbol)}, key=str)
    inside = sorted({s for e in exprs for s in e.atoms(LawSymbol)}, key=str)
    every = (e for k in kinks for side in _sides(k) for (e,), _, _ in unkinked([side], [], inside))
    return list(dict.fromkeys(every))


def _sides(kink: Expr) -> list[Expr]:
    """What changes its sign where a kink or a condition switches."""
    if isinstance(kink, Max | Min | Relational):
        return [a - b for a, b in combinations(kink.args, 2)]
    return [] if isinstance(kink, Piecewise) else [kink.args[0]]
