"""Minima at rest, and systems: state evolution that does not settle, but goes on for ever towards states that vanish.

The closed equations are not defined where a moment is zero; the limit is.  There the logarithms of what vanishes or
diverges move by equal steps, and all else has settled.

Three families need it: convex problems whose saddle has its root at the boundary (labels that are zero or too weak
for a kink, a tube or a slack constraint; penalties that let no state through; exact recoveries), systems whose states
all vanish, as those of a silent network, and Gibbs measures whose thermal means do. The saddle says which of its
coordinates are zero at such a root, and the value of the minimum. It does not say in which proportion they go to
zero: there its barrier decides, and not the problem. The proportion is the leading eigenvector of the map linearised
at rest, and moments that stay finite beside responses that vanish, as those of multipliers at a kink, depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.far_out import DEPTH, two_far_out
from symcavity.evaluate.solving.map_at_rest import DAMPED, FLOOR, LONGEST, NOISE, ROUNDS, SETTLED, RestMap, kept
from symcavity.evaluate.solving.recovery import Recovery, closed_map
from symcavity.evaluate.solving.weak_fields import WeakFields, weak_fields, weak_map
from symcavity.evaluate.watch import tick

SHALLOWER, SHALLOW = 18.0, 25.0  # logarithms: where a limit is taken in double
ABOUT = 6.0  # how close to zero, in logarithms, is zero
ROUGH_FLOOR = -60.0  # that of zero in double, where what is added to one still has digits
FALLS = 1.5  # by how much further, at once, what vanishes more quickly than any power falls in double
MISSED = 10  # rounds in a row in which the conditions are met nowhere, and none will be
NEARER = 4.0  # by how much less deep a limit in double is taken once more
ALIKE, ROUGH, STILL = 0.05, 1e-11, 1e-15
SMALL, LARGE = 1e-3, 30.0  # responses, where those of one lead nowhere
BEYOND = 300.0  # where a limit is tested once more

Point = dict[Symbol, Any]


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
        The quantities that the minimum does not fix, with one of many values at this point, and directions to others.
    recovery : Recovery or None
        Whose coordinates these are, where a field becomes a multiple of quenched ones.
    weak : WeakFields or None
        The fields that averages are expanded in.
    """

    point: Point
    drift: Point
    gap: float
    loose: Mapping[Symbol, float] = field(default_factory=dict)
    recovery: Recovery | None = None
    weak: WeakFields | None = None

    @property
    def vanishing(self) -> tuple[Symbol, ...]:
        """The coordinates that go to zero."""
        return tuple(s for s, step in self.drift.items() if step < 0)

    @property
    def at_rest(self) -> tuple[Expr, ...]:
        """The quantities that go to zero, in order parameters."""
        own = {} if self.recovery is None else {self.recovery.left: self.recovery.error}
        return tuple(own.get(s, s) for s in self.vanishing)

    def told(self, expr: Expr) -> Expr:
        """An expression of order parameters in the coordinates of the point."""
        expr = expr if self.weak is None else self.weak.told(expr)
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
    if not closed.is_square or not closed.mapped:
        return None
    weak = weak_fields(task, given)
    if weak is not None:
        closed = weak_map(weak, closed, task.responses)
        exact = ExactPass(closed.exprs)
    found = _Search(task, given, closed, exact, recovery, weak).run()
    return None if found is None else replace(found, weak=weak)


class _Search:
    """The state evolution on its way to states that vanish."""

    def __init__(
        self,
        task: Task,
        given: Given,
        closed: ClosedMap,
        exact: ExactPass,
        recovery: Recovery | None,
        weak: WeakFields | None,
    ) -> None:
        self.recovery, self.numerical = recovery, task.is_projected or given.is_ruled(task)
        if weak is not None:  # nothing may be left to integrate
            self.numerical = exact.is_ruled(given.environment("mpmath"))
        units = task.units if recovery is None else {g: recovery.told(e) for g, e in task.units.items()}
        in_roots = recovery is not None
        self.map = RestMap(closed, exact, given, units, numerical=self.numerical, in_roots=in_roots)
        self.moments = np.array([s not in task.responses and s in closed.mapped for s in closed.unknowns])
        self.moments &= closed.signs != 0
        primal = {*task.primal} if recovery is None else {*task.primal, recovery.left}
        self.bounded = np.array([s in primal or not task.convex for s in closed.unknowns])
        self.answers = np.array([weak is not None and s in task.responses for s in closed.unknowns])
        self.staying = np.array([recovery is not None and s in recovery.misses for s in closed.unknowns])
        floor = ROUGH_FLOOR if self.numerical else FLOOR
        self.lowest = np.where(closed.signs, floor, -np.inf)
        self.falls = FALLS * floor if self.numerical else np.inf

    def _run(self, begin: np.ndarray) -> Rest | None:
        """Go on until the limit shows; None where the map settles, a norm diverges, or nothing shows."""
        step_of, closed = self.map, self.map.closed
        depth, still = (SHALLOW, ROUGH) if self.numerical else (DEPTH, STILL)
        start = t = before = step_of.met(closed.chart(begin))
        due = 9
        for n in range(ROUNDS):
            tick(f"a minimum at rest, step {n}")
            moved = step_of.image(t)
            if moved is None or step_of.missed > MISSED:
                return None
            # what one kind does shows in another, and comes back: that would not settle
            there = step_of.met(np.maximum(t + DAMPED * step_of.averages * (moved - t), self.lowest), t)
            step = there - t
            size = float(np.max(np.abs(step)))
            gone = (t < self.lowest / 2) & (moved < self.lowest + ABOUT)
            left = float(np.max(np.abs(step[~gone]), initial=0.0))
            if np.any(gone & (moved < self.falls)) and left < still:  # more quickly than any power
                return self._at_once(t, moved, before, gone, left)
            if size < STILL or np.any(self.bounded & (t - start > depth)):  # it settles, or a norm diverges
                return None
            if n >= due and (ways := self._ways(step / size)) is not None:
                due = n + max(10, n // 2)
                found = _limit(t, step_of.along(t, ways), step, step_of, numerical=self.numerical)
                if found is not None:
                    return _taken(step_of, *found, recovery=self.recovery)
            before, t = t, there
        return None

    def run(self) -> Rest | None:
        """The first limit that the map leads to, from responses of either size and sign over weak fields."""
        begin = self.map.closed.start()
        if not self.answers.any():
            return self._run(begin)
        open_ = self.answers & (self.map.closed.signs == 0)
        turned = np.where(open_, -begin, begin)
        sizes = (np.where(self.answers & ~open_, size * turned, turned) for size in (SMALL, LARGE))
        begins = (begin, turned, *sizes)
        return next((found for one in begins if (found := self._run(one)) is not None), None)

    def _ways(self, shares: np.ndarray) -> np.ndarray | None:
        """The simple fractions of one step by which all moves, if some moments vanish and no norm diverges."""
        ways = np.round(4 * shares) / 4
        shrinks = np.any(self.moments & (ways < 0))
        strays = np.any(self.bounded & (ways > 0) | self.staying & (ways != 0))
        return ways if shrinks and not strays and np.max(np.abs(shares - ways)) < ALIKE else None

    def _at_once(
        self, t: np.ndarray, moved: np.ndarray, before: np.ndarray, gone: np.ndarray, left: float
    ) -> Rest | None:
        """The limit where some moments vanish more quickly than any power, and all else has settled."""
        step_of = self.map
        t = np.where(gone | ~step_of.averages, t, moved)
        powers = step_of.led(t, gone)
        if powers is None or np.any(self.bounded & self.moments & (powers < 0)):  # a norm diverges
            return None
        ends = step_of.gone(t, FLOOR * powers, before)
        return None if ends is None else _taken(step_of, t, ends[0], left, ends[1], gone, self.recovery)


def _limit(
    t: np.ndarray, ways: np.ndarray, step: np.ndarray, moved: RestMap, *, numerical: bool
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """A point far out on the way to a limit, its steps, and how well the limit is known."""
    # of a bias that goes to a constant double has no digits left that tell how, where all else is as small as that
    if not numerical and not any(ways[k] == 0 and abs(t[k]) > NOISE for k in moved.own):
        found = _marching(t, ways, step, DEPTH, SETTLED, moved)
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
    """Whether the map leads on in the same way far beyond: a weak penalty may stop what seems to go on for ever.

    It would be large there: what grows on the way has grown by as much as the rest has vanished.
    """
    point, steps, _ = found
    far = point + ways * BEYOND / np.max(np.abs(ways))
    image = moved(far)
    return image is not None and bool(np.max(np.abs(image - far - steps * moved.averages)) < NOISE)


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
    near, far = two_far_out(step_of, t, steps, loose, gone)
    if near is not None and far is not None:
        signs = step_of.closed.signs
        with mp.workprec(step_of.bits(far[0])):
            moves = [abs(a - b) for a, b in zip(near[2], far[2], strict=True)]
            if max(moves, default=mp.zero) < mp.mpf(10) ** -step_of.given.dps:
                point = [s * mp.exp(v) if s else mp.sinh(v) for s, v in zip(signs, far[0], strict=True)]
                drifts, gap = far[1], max(moves, default=mp.zero)
    point = [kept(v) for v in point]
    away = [1 if sign else mp.sign(v) for sign, v in zip(step_of.closed.signs, point, strict=True)]
    with mp.workprec(step_of.bits(t)):
        drift = {s: d * a for s, d, a in zip(names, drifts, away, strict=True) if d}  # no sign: to either side
    return Rest(dict(zip(names, point, strict=True)), drift, kept(gap), loose, recovery)
