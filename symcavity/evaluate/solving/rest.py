"""Minima at rest, and systems: state evolution that does not settle, but goes on for ever towards states that vanish.

The closed equations are not defined where a moment is zero; the limit is.  There the logarithms of what vanishes or
diverges move by equal steps, and all else has settled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.recovery import Recovery, closed_map
from symcavity.evaluate.solving.rest_map import DAMPED, FLOOR, LONGEST, NOISE, ROUNDS, SETTLED, RestMap, coordinate
from symcavity.evaluate.watch import tick

SHALLOWER, SHALLOW, DEEP = 18.0, 25.0, 60.0  # logarithms: where a limit is taken, in double or in many digits
ABOUT = 6.0  # how close to zero, in logarithms, is zero
ROUGH_FLOOR = -60.0  # that of zero in double, where what is added to one still has digits
FALLS = 1.5  # by how much further, at once, what vanishes more quickly than any power falls in double
MISSED = 10  # rounds in a row in which the conditions are met nowhere, and none will be
NEARER = 4.0  # by how much less deep a limit in double is taken once more
ALIKE, ROUGH, STILL = 0.05, 1e-11, 1e-15
BEYOND = 300.0  # where a limit is tested once more
CONSTANT = 1.5  # by how much farther, so that no digits of a constant go with the square root of what vanishes
SHORT, STRIDE = 0.5, 8.0  # how much farther out at a time, at first and then
FARTHER = 1.25  # how much farther out a limit with digits is taken once more
SLOW = 10  # by how much a step may at least be shorter than the one before, without new slopes
POLISHED = 40  # steps that make many digits of those in double

Point = dict[Symbol, Any]
Polished = tuple[list[Any], list[Any], list[Any]]


@dataclass(frozen=True)
class Rest:
    """A limit in which states vanish.

    Attributes
    ----------
    point : dict
        All unknowns close to the limit.
    drift : dict
        By how much the logarithms of what vanishes, or diverges, move in one round.
    gap : float
        By how much what has settled still moves.
    loose : dict
        What the minimum does not fix, of which the point has one of many values, and ways to others.
    recovery : Recovery or None
        Whose coordinates these are, where a field becomes a multiple of quenched ones.
    """

    point: Point
    drift: Point
    gap: float
    loose: Mapping[Symbol, float] = field(default_factory=dict)
    recovery: Recovery | None = None

    @property
    def vanishing(self) -> tuple[Symbol, ...]:
        """The coordinates that go to zero."""
        return tuple(s for s, step in self.drift.items() if step < 0)

    @property
    def at_rest(self) -> tuple[Expr, ...]:
        """What goes to zero, in order parameters."""
        own = {} if self.recovery is None else {self.recovery.left: self.recovery.error}
        return tuple(own.get(s, s) for s in self.vanishing)

    def told(self, expr: Expr) -> Expr:
        """An expression of order parameters in the coordinates of the point."""
        return expr if self.recovery is None else self.recovery.told(expr)

    def deeper(self, factor: float) -> Point:
        """A point further on the way, where what vanishes most quickly is smaller by a factor."""
        rounds = -mp.log(factor) / max(map(abs, self.drift.values()))
        return {s: v * mp.exp(rounds * self.drift.get(s, 0)) for s, v in self.point.items()}

    def within(self, size: Any) -> Point:
        """A point so far on the way that all that vanishes is smaller than a number."""
        rounds = max([mp.log(size / abs(self.point[s])) / self.drift[s] for s in self.vanishing] + [mp.zero])
        return {s: v * mp.exp(rounds * self.drift.get(s, 0)) for s, v in self.point.items()}

    @property
    def limits(self) -> Point:
        """All unknowns in the limit; expressions of averages over quenched laws where a recovery tells them."""
        ends = {s: 0.0 if step < 0 else mp.inf * mp.sign(self.point[s]) for s, step in self.drift.items()}
        found = {**self.point, **ends}
        return found if self.recovery is None else self.recovery.limits(found)

    def __str__(self) -> str:
        names = ", ".join(map(str, self.at_rest))
        return f"the states are at rest: {names} vanish{'' if len(self.vanishing) > 1 else 'es'}"


def at_rest(task: Task, given: Given, recovery: Recovery | None = None) -> Rest | None:
    """Follow the state evolution to states that vanish; None where it does not lead there.

    Parameters
    ----------
    task : Task
    given : Given
    recovery : Recovery, optional
        The coordinates in which states vanish: what a field leaves of quenched ones.

    Notes
    -----
    Integrals are taken in double, and closed forms, which cancel, in many digits.  Only multipliers may diverge, and
    their responses: where a state of the problem responds without bound its minimum is flat.
    """
    closed, exact = closed_map(task, given, recovery)
    numerical = task.is_projected or given.is_ruled(task)
    if not closed.is_square or not closed.mapped:
        return None
    units = task.units if recovery is None else {g: recovery.told(e) for g, e in task.units.items()}
    step_of = RestMap(closed, exact, given, units, numerical=numerical, in_roots=recovery is not None)
    moments = np.array([s not in task.responses and s in closed.mapped for s in closed.unknowns])
    moments &= closed.signs != 0
    primal = {*task.primal} if recovery is None else {*task.primal, recovery.left}
    bounded = np.array([s in primal or not task.convex for s in closed.unknowns])
    staying = np.array([recovery is not None and s in recovery.misses for s in closed.unknowns])
    floor = ROUGH_FLOOR if numerical else FLOOR
    lowest, falls = np.where(closed.signs, floor, -np.inf), FALLS * floor if numerical else np.inf
    start = t = before = step_of.met(closed.chart(closed.start()))
    depth, still = (SHALLOW, ROUGH) if numerical else (DEEP, STILL)
    due = 9
    for n in range(ROUNDS):
        tick(f"a minimum at rest, step {n}")
        moved = step_of.image(t)
        if moved is None or step_of.missed > MISSED:
            return None
        # what one kind does shows in another, and comes back: that would not settle
        there = step_of.met(np.maximum(t + DAMPED * step_of.averages * (moved - t), lowest), t)
        step = there - t
        size = float(np.max(np.abs(step)))
        gone = (t < lowest / 2) & (moved < lowest + ABOUT)
        left = float(np.max(np.abs(step[~gone]), initial=0.0))
        if np.any(gone & moments & (moved < falls)) and left < still:  # more quickly than any power
            t = np.where(gone | ~step_of.averages, t, moved)  # all else has settled
            powers = step_of.led(t, gone)
            if powers is None or np.any(bounded & moments & (powers < 0)):  # a norm diverges
                return None
            ends = step_of.gone(t, FLOOR * powers, before)
            return None if ends is None else _taken(step_of, t, ends[0], left, ends[1], gone, recovery)
        if size < STILL or np.any(bounded & (t - start > depth)):  # it settles, or a norm diverges
            return None
        ways = np.round(4 * step / size) / 4
        shrinks = np.any(moments & (ways < 0)) and not np.any(bounded & (ways > 0) | staying & (ways != 0))
        if n >= due and shrinks and np.max(np.abs(step / size - ways)) < ALIKE:
            due = n + max(10, n // 2)
            ways = step_of.along(t, ways)
            found = _limit(t, ways, step, step_of, numerical=numerical)
            if found is not None:
                return _taken(step_of, *found, recovery=recovery)
        before, t = t, there
    return None


def _limit(
    t: np.ndarray, ways: np.ndarray, step: np.ndarray, moved: RestMap, *, numerical: bool
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """A point far out on the way to a limit, its steps, and how well the limit is known."""
    # of a bias that goes to a constant double has no digits left that tell how, where all else is as small as that
    if not numerical and not any(ways[k] == 0 and abs(t[k]) > NOISE for k in moved.own):
        found = _marching(t, ways, step, DEEP, SETTLED, moved)
        return (*found[:2], SETTLED) if found is not None and _goes_on(found, ways, moved) else None
    lead = int(np.argmax(np.abs(ways)))
    far = float(t[lead] * np.sign(ways[lead]))
    for depth, goal in ((SHALLOW, SETTLED), (SHALLOWER, NOISE)):  # deeper there is more noise, less deep more to go
        depths = (max(depth, far), max(depth, far) - NEARER)
        found, nearer = (_marching(t, ways, step, d, goal, moved) for d in depths)
        if found is not None and nearer is not None:
            return (*found[:2], float(np.max(np.abs(nearer[2] - found[2]), initial=0.0)))
    return None


def _marching(
    t: np.ndarray,
    ways: np.ndarray,
    step: np.ndarray,
    depth: float,
    goal: float,
    moved: RestMap,
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The point, far out, from which the map leads on along given ways for ever: by Newton's method.

    There the logarithms of what vanishes or diverges move by a common rate times simple fractions, and nothing else
    moves.  Returns the point, its steps, and where it lies across the ways.
    """
    from scipy.optimize import root

    lead = int(np.argmax(np.abs(ways)))
    rest = np.arange(len(t)) != lead
    out = t + ways * (depth - t[lead] * np.sign(ways[lead])) / abs(ways[lead])
    rate = float(step[lead] / ways[lead]) / DAMPED
    drift = ways * moved.averages

    def gap(v: np.ndarray) -> np.ndarray:
        if np.max(np.abs(v)) > LONGEST:
            return np.full(len(out), 1.0)
        here = out.copy()
        here[rest] += np.delete(v, lead)
        image = moved(here)
        return np.full(len(out), 1.0) if image is None else image - here - v[lead] * drift

    begin = np.zeros(len(out))
    begin[lead] = rate
    found = root(gap, begin, method="hybr", options={"xtol": 1e-14})
    if not np.max(np.abs(found.fun)) < goal or found.x[lead] <= 0:
        return None
    out[rest] += np.delete(found.x, lead)
    return out, found.x[lead] * ways, (out - ways * out[lead] / ways[lead])[rest]


def _goes_on(found: tuple[np.ndarray, ...], ways: np.ndarray, moved: RestMap) -> bool:
    """Whether the map leads on in the same way far beyond: a weak penalty may stop what seems to go on for ever."""
    point, steps, _ = found
    far = point + ways * BEYOND / np.max(np.abs(ways))
    image = moved(far)
    return image is not None and bool(np.max(np.abs(image - far - steps * moved.averages)) < SETTLED)


def _taken(
    step_of: RestMap,
    t: np.ndarray,
    steps: np.ndarray,
    gap: float,
    loose: Mapping[Symbol, float] | None = None,
    gone: np.ndarray | None = None,
    recovery: Recovery | None = None,
) -> Rest:
    """The limit that a point and its steps lead to; with digits, where nothing is integrated."""
    names, loose = step_of.closed.unknowns, loose or {}
    point, drifts, gap = [mp.mpf(v) for v in step_of.closed.place(t)], steps.tolist(), max(gap, STILL)
    near, far = _far_out(step_of, t, steps, loose, gone)
    if near is not None and far is not None:
        signs = step_of.closed.signs
        with mp.workprec(step_of.bits(far[0])):
            moves = [abs(a - b) for a, b in zip(near[2], far[2], strict=True)]
            if max(moves, default=mp.zero) < mp.mpf(10) ** -step_of.given.dps:
                point = [s * mp.exp(v) if s else mp.sinh(v) for s, v in zip(signs, far[0], strict=True)]
                drifts, gap = far[1], max(moves, default=mp.zero)
    away = [1 if sign else mp.sign(v) for sign, v in zip(step_of.closed.signs, point, strict=True)]
    with mp.workprec(step_of.bits(t)):
        drift = {s: d * a for s, d, a in zip(names, drifts, away, strict=True) if d}  # no sign: to either side
    return Rest(dict(zip(names, point, strict=True)), drift, gap, loose, recovery)


def _far_out(
    step_of: RestMap, t: np.ndarray, steps: np.ndarray, loose: Mapping[Symbol, float], gone: np.ndarray | None
) -> tuple[Polished | None, Polished | None]:
    """Two polished points far out, or none."""
    if step_of.numerical:
        return None, None
    lead, follows = int(np.argmax(np.abs(steps))), bool(step_of.own) and gone is None
    begin = abs(float(t[lead]))
    far = DEEP * (CONSTANT if follows or step_of.in_roots else 1) * step_of.given.dps / 15
    ends = [r * max(far, begin) for r in (1, FARTHER)]
    near = [begin + SHORT * k for k in range(3)]  # how a bias goes to its constant is seen here
    path: list[tuple[float, Polished]] = []
    for depth in sorted({*near, *np.arange(near[-1], ends[1], STRIDE).tolist(), *ends}) if follows else ends:
        tick(f"a minimum at rest, {depth:.0f} of {ends[1]:.0f} deep")
        start = _ahead(step_of, path, depth) if follows and len(path) > 2 else list(path[-1][1][0] if path else t)
        if (there := _polished(step_of, start, steps, loose, gone, depth)) is None:
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


def _polished(
    step_of: RestMap,
    t: Sequence[Any],
    steps: np.ndarray,
    loose: Mapping[Symbol, float],
    gone: np.ndarray | None,
    depth: float,
) -> Polished | None:
    """The point so far out, its steps, and where it lies across them, by Newton's method with many digits.

    What is gone stays; where nothing is, the unknowns go on along simple fractions of one rate.
    """
    digits, names = step_of.given.dps, step_of.closed.unknowns
    lead = int(np.argmax(np.abs(steps)))
    ways = [mp.mpf(round(4 * v)) / 4 for v in steps / abs(steps[lead])]
    fixed = [k == lead for k in range(len(t))] if gone is None else list(gone)
    moving = [k for k, s in enumerate(names) if not fixed[k] and s not in loose]
    used = [k for k, p in enumerate(step_of.closed.places) if gone is None or not gone[p]]
    bits, signs = step_of.bits([*t, depth]), step_of.closed.signs
    with mp.workprec(bits):
        start = [mp.mpf(v) + way * (depth - abs(mp.mpf(t[lead]))) for v, way in zip(t, ways, strict=True)]

    def at(v: list[Any]) -> tuple[list[Any], Any]:
        here = list(start)
        for k, more in zip(moving, v, strict=False):
            here[k] += more
        return here, v[-1] if gone is None else mp.zero

    def gap(v: list[Any]) -> list[Any] | None:
        here, rate = at(v)
        out = step_of.values(here)
        if out is None:
            return None
        ends = [(p, coordinate(out[k], signs[p])) for k in used for p in (step_of.closed.places[k],)]
        return [e - here[p] - rate * ways[p] for p, e in ends] + [mp.convert(c) for c in out[step_of.count :]]

    def jacobian(v: list[Any], base: list[Any]) -> tuple[list[int], list[Any], list[Any], np.ndarray] | None:
        small = mp.ldexp(1, -bits // 2)
        columns = [gap([b + small * (j == k) for j, b in enumerate(v)]) for k in range(len(v))]
        if None in columns:
            return None
        slopes = [[(c[r] - b) / small for c in columns if c] for r, b in enumerate(base)]
        reach = [max(map(abs, column)) or mp.one for column in zip(*slopes, strict=True)]  # a bias may count most
        slopes = [[s / c for s, c in zip(row, reach, strict=True)] for row in slopes]
        sizes = [max(map(abs, row), default=mp.zero) for row in slopes]
        own = sorted(range(len(used), len(base)), key=lambda r: sizes[r])
        fixes = {*range(len(used)), *own[len(loose) :]}  # the other conditions fix nothing
        rows = [r for r, size in enumerate(sizes) if size and r in fixes]
        inverse = np.linalg.pinv(np.array([[float(s / sizes[r]) for s in slopes[r]] for r in rows] or [[1.0]]))
        return rows, sizes, reach, inverse

    with mp.workprec(bits):
        v = [mp.zero] * len(moving) + [abs(mp.mpf(float(steps[lead])))] * (gone is None)
        base, found, last, before = gap(v), None, mp.zero, mp.zero
        for _ in range(POLISHED):
            if base is None:
                return None
            found = jacobian(v, base) if last * SLOW >= before else found
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
            base = gap(v)
            if mp.ldexp(last, bits * 3 // 4) < 1:
                break
        if last * mp.mpf(10) ** (digits + 2) > 1:
            return None
        here, rate = at(v)
        far = [rate * way for way in ways] if gone is None else [mp.mpf(float(s)) for s in steps]
        across = [h - way * here[lead] / ways[lead] for h, way, no in zip(here, ways, fixed, strict=True) if not no]
    return here, far, across
