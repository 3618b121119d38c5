"""Solve closed equations at many points: together where that works, else one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import alone, digits_of_user
from symcavity.errors import SeveralSolutions, SymcavityError
from symcavity.evaluate.given.arguments import NO_SOLUTION, check_count, double_arrays, each
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.given.values import Task
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solve import solve_bound
from symcavity.evaluate.solving.eliminated import Eliminated
from symcavity.evaluate.solving.iterate import roots_at_points
from symcavity.evaluate.tasks import task_of
from symcavity.method.theory import Theory
from symcavity.model.kinds import N, P

FEW = 8  # points that are not worth a common iteration


class PointByPoint:
    """A function of parameters without a closed form.

    Convex problems are solved at all points of a grid together; else each point is, from the one before it.
    """

    def __init__(
        self,
        theory: Theory,
        target: Any,
        arguments: Sequence[Symbol],
        values: Mapping[Any, Any],
        backend: str,
        errors: str,
        ranges: Sequence[Any] = (),
    ) -> None:
        self.ranges = ranges
        self.theory, self.target, self.arguments = theory, target, tuple(arguments)
        self.values, self.backend, self.errors = dict(values), backend, errors

    @alone
    def __call__(self, *points: Any) -> Any:
        """Evaluate at numbers or arrays."""
        check_count(self.arguments, points)
        last: list[Solution] = []
        if self.backend == "mpmath":
            return each(
                self.arguments,
                points,
                self.errors,
                lambda point: self._one(point, digits_of_user(), last),
                self.ranges,
            )
        arrays, valid = double_arrays(self.arguments, points, self.errors, self.ranges)
        grid = np.broadcast_arrays(*arrays)
        good = np.broadcast_to(True if valid is None else valid, grid[0].shape)
        if not good.any():
            return np.full(good.shape, np.nan) if good.shape else float("nan")
        grid = tuple(np.where(good, a, a[good][0]) for a in grid)  # in place of points that are not finite
        out = np.where(good, self._together(grid), np.nan)
        for index in map(tuple, np.argwhere(good & ~np.isfinite(out))):
            try:
                out[index] = float(self._one([float(a[index]) for a in grid], 15, last))
            except NO_SOLUTION as problem:
                if self.errors == "raise" or isinstance(problem, SeveralSolutions):
                    raise
        return out if out.shape else float(out)

    def _together(self, grid: Sequence[np.ndarray]) -> np.ndarray:
        """The values at those points that a common iteration reaches; not a number at the others."""
        out = np.full(grid[0].shape, np.nan)
        if out.size < FEW or len(self.theory.branches) > 1:
            return out
        task = task_of(self.theory)
        sample = {**self.values, **{s: float(a.flat[0]) for s, a in zip(self.arguments, grid, strict=True)}}
        try:
            given = read_values(task, sample, 15)
        except SymcavityError:
            return out
        if not task.convex or task.is_projected or {N, P} & set(given.exact):
            return out
        flat = {s: a.reshape(-1) for s, a in zip(self.arguments, grid, strict=True)}
        env = {**given.environment("numpy"), **flat}
        numerical = task.is_numerical or any(law.continuous for law in given.laws.values())
        if numerical and given.solve_for:
            return out
        if numerical:
            rows = roots_at_points(task.closed_map(given)[0], env, out.size)
            found = dict(zip(task.unknowns, rows, strict=True))
        else:
            found = self._by_core(Eliminated.of(task, given), env, out.size)
        finite = np.all(np.isfinite(list(found.values())), axis=0)
        good = np.flatnonzero(finite & _holding(task, env, found))
        if good.size:
            expr = self.theory.observable(self.target).xreplace(task.units)
            here = {k: v[good] if k in flat else v for k, v in env.items()}
            here |= {s: row[good] for s, row in found.items()}
            values = task.compiled(expr, "numpy")(here)
            out.reshape(-1)[good] = np.broadcast_to(np.asarray(values, dtype=float), good.shape)
        return out

    def _by_core(self, system: Eliminated, env: Mapping[Any, Any], count: int) -> dict[Symbol, np.ndarray]:
        """All unknowns at all points, from what elimination has left; not a number where none was reached."""
        task = system.task
        last: list[Solution] = []

        def begin(number: int) -> Mapping[Symbol, Any] | None:
            try:
                return self._solved([float(env[s][number]) for s in self.arguments], 15, last, double=True).values
            except NO_SOLUTION:
                return None

        rows = roots_at_points(system.frame[0], env, count, begin)
        found = dict(zip(system.left, rows, strict=True))
        for symbol in reversed(list(system.definitions)):
            with np.errstate(all="ignore"):
                value = task.compiled(system.definitions[symbol], "numpy")({**env, **found})
            found[symbol] = np.broadcast_to(np.asarray(value, dtype=float), (count,))
        return found

    def _one(self, point: Sequence[Any], dps: int, last: list[Solution]) -> Any:
        return self._solved(point, dps, last)[self.target]

    def _solved(self, point: Sequence[Any], dps: int, last: list[Solution], *, double: bool = False) -> Solution:
        values = {**self.values, **dict(zip(self.arguments, point, strict=True))}
        guess = last[0].values if last else None
        try:
            found = solve_bound(self.theory, values, dps, guess, double=double)
        except NO_SOLUTION:
            if guess is None:
                raise
            found = solve_bound(self.theory, values, dps, double=double)
        last[:] = [found]
        return found


def _holding(task: Task, env: Mapping[Any, Any], found: Mapping[Symbol, np.ndarray]) -> np.ndarray:
    """Where the signs and inequalities hold that the derivation assumed: elsewhere a point is looked at by itself."""
    here = {**env, **found}
    good = np.ones(len(next(iter(found.values()))), dtype=bool)
    for symbol, values in found.items():
        good &= values >= 0 if symbol.is_nonnegative else values <= 0 if symbol.is_nonpositive else True
    for condition in task.conditions:
        gap = (condition.lhs - condition.rhs).xreplace(task.units)
        if gap.free_symbols - set(here):
            return np.zeros_like(good)
        with np.errstate(all="ignore"):
            good &= np.asarray(task.compiled(gap, "numpy")(here), dtype=float) > 0
    return good
