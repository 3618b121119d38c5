"""Points far out on the way to a limit at rest, with many digits: by Newton's method, where nothing is integrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.solving.map_at_rest import RestMap, coordinate
from symcavity.evaluate.watch import tick

DEPTH = 60.0  # logarithms, for digits of double precision
CONSTANT = 1.5  # by how much farther, so that no digits of a constant go with the square root of what vanishes
SHORT, STRIDE = 0.5, 8.0  # how much farther out at a time, at first and then
FARTHER = 1.25  # how much farther out a limit with digits is taken once more
SLOW = 10  # by how much a step may at least be shorter than the one before, without new slopes

Polished = tuple[list[Any], list[Any], list[Any]]  # a point, its steps, and where it lies across them


def two_far_out(
    step_of: RestMap, t: np.ndarray, steps: np.ndarray, loose: Mapping[Symbol, float], gone: np.ndarray | None
) -> tuple[Polished | None, Polished | None]:
    """Two points far out on the way to a limit; none where something is integrated, or they do not settle.

    Parameters
    ----------
    step_of : RestMap
    t, steps : array
        A point on the way, and its steps, in the coordinates of the map.
    loose : dict
        What the minimum does not fix.
    gone : array of bool, optional
        The quantities that vanish at once.
    """
    if step_of.numerical:
        return None, None
    lead, follows = int(np.argmax(np.abs(steps))), bool(step_of.own) and gone is None
    begin = abs(float(t[lead]))
    far = DEPTH * (CONSTANT if follows or step_of.in_roots else 1) * step_of.given.dps / 15
    ends = [r * max(far, begin) for r in (1, FARTHER)]
    near = [begin + SHORT * k for k in range(3)]  # how a bias goes to its constant is seen here
    path: list[tuple[float, Polished]] = []
    for depth in sorted({*near, *np.arange(near[-1], ends[1], STRIDE).tolist(), *ends}) if follows else ends:
        tick(f"a minimum at rest, {depth:.0f} of {ends[1]:.0f} deep")
        start = _ahead(step_of, path, depth) if follows and len(path) > 2 else list(path[-1][1][0] if path else t)
        if (there := _FarOut(step_of, start, steps, loose, gone, depth).polished()) is None:
            return None, None
        path.append((depth, there))
    found = dict(path)
    return found[ends[0]], found[ends[1]]


def _ahead(step_of: RestMap, path: Sequence[tuple[float, Polished]], depth: float) -> list[Any]:
    """The last point, with what goes to a constant where it should be farther out: it goes like an exponential."""
    points = [found[0] for _, found in path]
    here, before = list(points[-1]), points[-2]
    with mp.workprec(step_of.bits([*here, depth])):
        for k in step_of.own:
            first, second = points[1][k] - points[0][k], points[2][k] - points[1][k]
            if first and second and 0 < second / first < 1:
                rate = mp.log(first / second) / SHORT
                share = mp.exp(-rate * (path[-1][0] - path[-2][0]))
                end = (here[k] - share * before[k]) / (1 - share)
                here[k] = end + (here[k] - end) * mp.exp(-rate * (depth - path[-1][0]))
    return here


class _FarOut:
    """The equations of a point far out on the way to a limit, in what may still move there, and the common rate.

    What is gone stays; where nothing is, the unknowns go on along simple fractions of one rate.
    """

    def __init__(
        self,
        step_of: RestMap,
        t: Sequence[Any],
        steps: np.ndarray,
        loose: Mapping[Symbol, float],
        gone: np.ndarray | None,
        depth: float,
    ) -> None:
        self.map, self.steps, self.loose, self.gone = step_of, steps, loose, gone
        self.bits = step_of.bits([*t, depth])
        self.lead = int(np.argmax(np.abs(steps)))
        self.ways = [mp.mpf(round(4 * v)) / 4 for v in steps / abs(steps[self.lead])]
        self.fixed = [k == self.lead for k in range(len(t))] if gone is None else list(gone)
        self.moving = [k for k, s in enumerate(step_of.closed.unknowns) if not self.fixed[k] and s not in loose]
        self.used = [k for k, p in enumerate(step_of.closed.places) if gone is None or not gone[p]]
        with mp.workprec(self.bits):
            further = depth - abs(mp.mpf(t[self.lead]))
            self.start = [mp.mpf(v) + way * further for v, way in zip(t, self.ways, strict=True)]

    def at(self, v: list[Any]) -> tuple[list[Any], Any]:
        """The point, and the rate."""
        here = list(self.start)
        for k, more in zip(self.moving, v, strict=False):
            here[k] += more
        return here, v[-1] if self.gone is None else mp.zero

    def gap(self, v: list[Any]) -> list[Any] | None:
        """By how much the equations are missed; None where they are not defined."""
        here, rate = self.at(v)
        out, closed = self.map.values(here), self.map.closed
        if out is None:
            return None
        ends = [(p, coordinate(out[k], closed.signs[p])) for k in self.used for p in (closed.places[k],)]
        return [e - here[p] - rate * self.ways[p] for p, e in ends] + [mp.convert(c) for c in out[self.map.count :]]

    def jacobian(self, v: list[Any], base: list[Any]) -> tuple[list[int], list[Any], list[Any], np.ndarray] | None:
        """The equations that fix something, with the sizes of rows and columns, and the inverse slopes in double."""
        small, used = mp.ldexp(1, -self.bits // 2), len(self.used)
        columns = [self.gap([b + small * (j == k) for j, b in enumerate(v)]) for k in range(len(v))]
        if None in columns:
            return None
        slopes = [[(c[r] - b) / small for c in columns if c] for r, b in enumerate(base)]
        reach = [max(map(abs, column)) or mp.one for column in zip(*slopes, strict=True)]  # a bias may count most
        slopes = [[s / c for s, c in zip(row, reach, strict=True)] for row in slopes]
        sizes = [max(map(abs, row), default=mp.zero) for row in slopes]
        own = sorted(range(used, len(base)), key=lambda r: sizes[r])
        fixes = {*range(used), *own[len(self.loose) :]}  # the other conditions fix nothing
        rows = [r for r, size in enumerate(sizes) if size and r in fixes]
        inverse = np.linalg.pinv(np.array([[float(s / sizes[r]) for s in slopes[r]] for r in rows] or [[1.0]]))
        return rows, sizes, reach, inverse

    def polished(self) -> Polished | None:
        """The point, its steps, and where it lies across them; None where Newton's method does not settle."""
        with mp.workprec(self.bits):
            return self._polished()

    def _polished(self) -> Polished | None:
        v = [mp.zero] * len(self.moving)
        v += [abs(mp.mpf(float(self.steps[self.lead])))] * (self.gone is None)
        base, found, last, before = self.gap(v), None, mp.zero, mp.zero
        for _ in range(NEWTON):
            if base is None:
                return None
            found = self.jacobian(v, base) if last * SLOW >= before else found
            if found is None:
                return None
            rows, sizes, reach, inverse = found
            misses = [base[r] / sizes[r] for r in rows]
            if not (miss := max(map(abs, misses), default=mp.zero)):
                last = mp.zero
                break
            way = inverse @ np.array([float(m / miss) for m in misses])
            step = [mp.mpf(float(s)) * miss / c for s, c in zip(way, reach, strict=True)]
            v = [b - s for b, s in zip(v, step, strict=True)]
            before, last = last, max(map(abs, step))
            if last > 1:
                return None
            base = self.gap(v)
            if mp.ldexp(last, self.bits * 3 // 4) < 1:
                break
        return None if last * mp.mpf(10) ** (self.map.given.dps + 2) > 1 else self._told(v)

    def _told(self, v: list[Any]) -> Polished:
        here, rate = self.at(v)
        far = [rate * way for way in self.ways] if self.gone is None else [mp.mpf(float(s)) for s in self.steps]
        rows = zip(here, self.ways, self.fixed, strict=True)
        lead = here[self.lead] / self.ways[self.lead]
        return here, far, [h - way * lead for h, way, no in rows if not no]
