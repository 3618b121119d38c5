"""Newton's method on a closed map, in its charts: from one point, on grids that are refined; and from many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from symcavity.algebra.anderson import LONGEST
from symcavity.evaluate.averages.grids import PanelGrid
from symcavity.evaluate.averages.integrals import LAWS, Grids
from symcavity.evaluate.closed_map import ClosedMap, Gap, Root
from symcavity.evaluate.constants import LOGARITHMS
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick

ROUGH = 1e-4  # when grids are refined
TOGETHER = 1 << 16  # nodes of points that are followed together: what fits in the cache of a processor
STEPS, AT_MANY = 30, 12  # from one point, and from many
WANDERED = 60  # steps from points that are far away


def wander(closed: ClosedMap, starts: np.ndarray, env: Mapping[Any, Any]) -> Iterator[np.ndarray]:
    """Yield where Newton's method leads from many points at once, on grids as they begin.

    Steps are short, and may lead uphill.  A root has to be polished by itself, and may be found several times.
    """
    some = max(1, TOGETHER // closed.slopes.width(env.get(LAWS)))
    for begin in range(0, starts.shape[1], some):
        yield from _wander(closed, starts[:, begin : begin + some], env)


def _wander(closed: ClosedMap, starts: np.ndarray, env: Mapping[Any, Any]) -> Iterator[np.ndarray]:
    t, grids = starts.copy(), closed.slopes.grids()
    for grid in grids:
        if isinstance(grid, PanelGrid):
            grid.each = True  # a point without averages is left behind, and no other
    for _ in range(WANDERED):
        tick("roots from many starting points")
        x = closed.place(t)
        value, slope = _defined(closed, x, env, grids)
        step, sound = _steps(value, slope, closed.scale(x))
        length = np.abs(step).max(axis=0)
        sound &= np.isfinite(length) & (np.abs(t).max(axis=0) < LOGARITHMS)
        with np.errstate(invalid="ignore"):  # what is infinite is left behind
            t = t - step * (LONGEST / np.maximum(length, LONGEST))
        arrived = sound & (length < tolerances().settled)
        yield from closed.place(t[:, arrived]).T
        if not (moving := sound & ~arrived).any():
            break
        if not moving.all():
            forget(grids)
        t = t[:, moving]


def _defined(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> tuple[np.ndarray, np.ndarray]:
    """The gaps and their derivatives at many points; not numbers at those that have no averages."""
    if (found := _gaps(closed, x, env, grids)) is not None:
        return found
    forget(grids)
    count = x.shape[1]
    if count == 1:
        return np.full_like(x, np.nan), np.full((len(x), len(x), 1), np.nan)
    halves = [_defined(closed, part, env, closed.slopes.grids()) for part in np.split(x, [count // 2], axis=1)]
    return np.concatenate([h[0] for h in halves], axis=-1), np.concatenate([h[1] for h in halves], axis=-1)


def _gaps(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> Gap:
    """How far many points are from solving the equations, and the derivatives of that, of shape (n, n, count)."""
    size, count = x.shape
    if (found := closed.call(closed.slopes, x, env, grids)) is None:
        return None
    values, rows = found
    gap, slope = np.empty((size, count)), np.empty((size, size, count))
    for k, (value, row) in enumerate(zip(values, rows, strict=True)):
        np.negative(value, out=gap[k])
        for n, d in enumerate(row):
            np.negative(d, out=slope[k, n])
    for k, place in enumerate(closed.places):
        gap[k] += x[place]
        slope[k, place] += 1.0
    return gap, slope


def newton_many(closed: ClosedMap, start: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray:
    """Newton's method at all points; not a number where it does not settle."""
    forget(grids)
    t = closed.chart(start)
    count = t.shape[1]
    last, moving, settled = np.full(count, np.inf), np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
    for _ in range(AT_MANY):
        tick("roots at many points")
        x = closed.place(t)
        if (found := _gaps(closed, x, env, grids)) is None:
            return np.full_like(t, np.nan)
        step, sound = _steps(*found, closed.scale(x))
        length = np.abs(step).max(axis=0, initial=0.0)
        capped = np.minimum(length, LONGEST)
        moving &= sound & np.isfinite(length) & (capped < 4 * last)
        t -= np.where(moving, step * (LONGEST / np.maximum(length, LONGEST)), 0.0)
        last = capped
        arrived = moving & (length < tolerances().settled)
        settled |= arrived  # and stays there: another step would be rounding
        moving &= ~arrived
        if not moving.any():
            break
    return np.where(settled, closed.place(t), np.nan)


def newton(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> Root | None:
    """Newton's method in the charts; the grids are refined on the way."""
    t, last = closed.chart(x), np.inf
    fresh = True
    watched = closed.cancelling.loses(x, env)  # what cancels nearby cancels all the way
    for _ in range(STEPS):
        tick()
        here = closed.place(t)
        found = closed.gap(here, env, grids, watched=watched)
        if found is None:
            return None
        value, slope = found
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                step = -np.linalg.solve(slope * closed.scale(here), value)
        except np.linalg.LinAlgError:
            return None
        size = float(np.max(np.abs(step), initial=0.0))
        if not np.isfinite(size) or size > LONGEST or size > 4 * last:
            return None
        if size < ROUGH and fresh:
            if (changed := closed.refined(here, env, grids)) is None:
                return None
            fresh = changed
            if fresh:
                last = np.inf
                continue
        stuck = last / 4 < size < tolerances().noisy
        t, last = t + step, size
        if (size < tolerances().settled or stuck) and not fresh:
            point = closed.without_rounding(closed.place(t), env, grids)
            return Root(dict(zip(closed.unknowns, point.tolist(), strict=True)), slope, closed.slopes, grids, size)
    return None


def _steps(gap: np.ndarray, slope: np.ndarray, scale: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton's steps in the charts at many points, and at which of them they are defined."""
    with np.errstate(all="ignore"):
        scaled = slope * scale
        if len(gap) == 1:  # quicker than as many matrices of one entry
            step = gap / scaled[0]
            return step, np.isfinite(step[0]) & np.isfinite(scaled[0, 0])
        matrix = np.moveaxis(scaled, -1, 0)
        sound = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(gap).all(axis=0)
        matrix[~sound] = np.eye(len(gap))
        value = np.where(sound, gap, 0.0).T[..., None]
        try:
            return np.linalg.solve(matrix, value)[..., 0].T, sound
        except np.linalg.LinAlgError:  # one of them is singular
            sound &= np.linalg.det(matrix) != 0
            matrix[~sound] = np.eye(len(gap))
            return np.linalg.solve(matrix, value)[..., 0].T, sound


def forget(grids: Grids) -> None:
    """Begin inversions afresh: the points are others."""
    for grid in grids:
        if isinstance(grid, PanelGrid):
            grid.forget()
