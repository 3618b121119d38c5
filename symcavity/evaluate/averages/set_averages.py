"""Averages over projections: integrals for balls and ellipsoids, quasi-random sources for other sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sympy import Dummy, Expr, S, Sum, Symbol, lambdify, oo
from sympy.core.relational import Relational

from symcavity.algebra.precision import mp
from symcavity.errors import ValuesError
from symcavity.evaluate.averages.at_leaves import MOST_DIGITS, spread_over
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average
from symcavity.model.quantities import site_quantities
from symcavity.shapes.base import INTERIOR, SATURATED, Projection, Shape
from symcavity.shapes.sampling import gaussian_scrambles, sample_size
from symcavity.shapes.slack import with_slack
from symcavity.sites.sets.averages import (
    GAP2,
    GV,
    LAM,
    PSI,
    REGIME,
    SLOPE2,
    TD,
    V2,
    ProjectionAverage,
    ProjectionSymbol,
)

_STEP, _DIRECTIONS = 1e-5, 16


def jumps(gap: Expr) -> list[Expr]:
    """The multipliers at which an expression changes its sign, if it is linear in the multiplier alone."""
    slope = gap.diff(LAM)
    alone = slope != 0 and not slope.has(ProjectionSymbol) and gap.atoms(ProjectionSymbol) == {LAM}
    return [-gap.xreplace({LAM: S.Zero}) / slope] if alone else []


class Projected:
    """A compiled average over projections: call it with the values of its symbols."""

    def __init__(self, node: ProjectionAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        self.node, self.backend = node, backend
        self.k, self.soft = compiled(node.k, backend), compiled(node.softness, backend)
        self.cap = compiled(node.cap, backend) if node.cap != oo else None
        constants = sorted((a for a in node.body.atoms(Average, Sum) if not a.has(ProjectionSymbol)), key=str)
        marks: dict[Expr, Symbol] = {a: Dummy("average") for a in constants}  # of other sites: numbers here
        body = node.body.xreplace(marks)
        marks |= {q: Dummy(q.family.name) for q in site_quantities(body)}
        body = body.xreplace(marks)
        own = body.free_symbols - set(marks.values())
        self.symbols = sorted((s for s in own if isinstance(s, ProjectionSymbol)), key=str)
        plain = sorted((s for s in own if not isinstance(s, ProjectionSymbol)), key=str)
        self.parameters = [compiled(s, backend) for s in (*plain, *marks)]
        self.body = lambdify([*self.symbols, *plain, *marks.values()], body, "numpy")
        self.moment = node.moment
        tests = body.atoms(Relational) if LAM in own else ()
        levels = {v for r in tests for v in jumps(r.lhs - r.rhs)}
        self.levels = lambdify([*plain, *marks.values()], sorted(levels, key=str), "numpy")
        # With slack the response is found from itself. A sample of psi jumps where a source changes its regime,
        # and no root may be left; the form that Stein's lemma gives it, t.(v - t), does not.
        by_parts = node.is_slack and PSI in own and not (node.body / PSI).has(ProjectionSymbol)
        self.columns = [TD if by_parts and s == PSI else s for s in self.symbols]

    def __call__(self, env: Mapping[Any, Any]) -> Any:
        """Return the average at the values of the symbols."""
        shape = self.node.g.shape
        if shape is None:
            raise ValuesError(f"The set of {self.node.g} is not given.", "a shape among the values", "Ball(5, 1)")
        k = self.k(env)
        cap = np.inf if self.cap is None else self.cap(env)
        parameters = [value(env) for value in self.parameters]
        if self.backend == "mpmath" and shape.has_many_digits and self.moment and not self.node.is_slack:
            return self.moment(_many_digits(shape, k, mp.dps))
        if self.backend == "mpmath" and mp.dps > MOST_DIGITS:
            raise ValuesError(
                f"{self.node} has no {mp.dps} digits: {shape!r} is averaged in double precision.",
                "dps <= 15; balls, segments and pairs of points at any dps",
            )
        return spread_over(partial(self._one, shape), (k, cap, self.soft(env), *parameters))

    def _one(self, shape: Shape, k: float, cap: float, rho: float, *rest: float) -> float:
        if not np.isfinite(k) or not 0 <= rho < np.inf:
            return float("nan")
        samples, seed, scramble = self.node.g.sampling
        if samples is None and self.moment:
            averages = _integrals(shape, k, cap, rho)
            if averages is not None and (value := self.moment(averages)) is not None:
                return float(value)
        if samples is None and cap < np.inf and shape.has_nodes:
            rows, weights = _points(shape, k, cap, tuple(map(float, self.levels(*rest))))
            if all(s.name in rows for s in self.symbols):
                value = self.body(*(rows[s.name] for s in self.symbols), *rest)
                return float(np.broadcast_to(value, weights.shape) @ weights)
        total = []
        for n in range(16) if scramble is None else [scramble]:
            tick("averages over a convex set")
            rows = _sources(shape, k, cap, rho, sample_size(samples), seed, n)
            if SLOPE2 in self.symbols:
                rows[SLOPE2.name] = _squares(shape, k, cap, rho, sample_size(samples), seed, n)
            columns = [_column(rows, s) for s in self.columns]
            total.append(float(np.mean(np.broadcast_to(self.body(*columns, *rest), rows["lam"].shape))))
        return float(np.mean(total))


def _column(rows: dict[str, Any], symbol: ProjectionSymbol) -> Any:
    head, _, number = symbol.name.partition("_")
    return rows[head][:, int(number) - 1] if number else rows[head]


@lru_cache(maxsize=4096)
def _integrals(shape: Shape, k: float, cap: float, rho: float) -> Mapping[str, Any] | None:
    return shape.averages(k, cap, rho)


@lru_cache(maxsize=4)
def _points(shape: Shape, k: float, cap: float, levels: tuple[float, ...]) -> tuple[dict[str, Any], Any]:
    return shape.nodes(k, cap, levels)


@lru_cache(maxsize=512)
def _many_digits(shape: Shape, k: Any, dps: int) -> Mapping[str, Any]:
    return shape.exact_averages(k, dps)


@lru_cache(maxsize=64)
def _sources(
    shape: Shape, k: float, cap: float, rho: float, samples: int, seed: int, number: int
) -> dict[str, Any]:
    """Project one scramble of sources."""
    t = _scrambles(shape.dimension, samples, seed)[number]
    p = with_slack(shape, t, k, cap, rho)
    return {
        LAM.name: p.lam,
        GAP2.name: np.square(p.lam_s).sum(axis=1),
        V2.name: np.square(p.v).sum(axis=1),
        GV.name: _level(shape, p, k - rho * p.lam),
        TD.name: (t * p.lam_s).sum(axis=1),
        PSI.name: p.psi,
        REGIME.name: p.regime,
        "v": p.v,
        "d": p.lam_s,
    }


@lru_cache(maxsize=64)
def _squares(shape: Shape, k: float, cap: float, rho: float, samples: int, seed: int, number: int) -> Any:
    """The squares of all entries of ``d(v - t)/dt``, summed: by central differences, of many directions in some."""
    t = _scrambles(shape.dimension, samples, seed)[number]
    every = np.linalg.qr(np.random.default_rng(seed).normal(size=(shape.dimension, shape.dimension)))[0][:_DIRECTIONS]
    ends = (t + sign * _STEP * way for way in every for sign in (1, -1))
    moved = [with_slack(shape, end, k, cap, rho).lam_s for end in ends]
    square = sum(np.square((a - b) / (2 * _STEP)).sum(axis=1) for a, b in zip(moved[::2], moved[1::2], strict=True))
    return square * shape.dimension / len(every)


def _level(shape: Shape, p: Projection, k: Any) -> Any:
    level = np.asarray(shape.support(p.v))
    return np.where((p.regime != INTERIOR) & (p.regime != SATURATED), k, level)


@lru_cache(maxsize=8)
def _scrambles(dimension: int, samples: int, seed: int) -> list[Any]:
    return list(gaussian_scrambles(dimension, samples, seed))
