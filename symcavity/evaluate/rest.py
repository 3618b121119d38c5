"""Minima at rest, and systems: state evolution that does not settle, but goes on for ever towards states that vanish.

The closed equations are not defined where a moment is zero; the limit is.  There the logarithms of what vanishes or
diverges move by equal steps, and all else has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Basic, Expr, Symbol

from symcavity.algebra.precision import given_out, mp
from symcavity.errors import FlatMinimum, NotConverged
from symcavity.evaluate.digits import ExactPass
from symcavity.evaluate.evolution import Evolution
from symcavity.evaluate.integrals import Grids
from symcavity.evaluate.meeting import meet
from symcavity.evaluate.solution import Solution, limited
from symcavity.evaluate.values import Given, Task
from symcavity.evaluate.watch import tick

ROUNDS = 600  # evaluations of the map
SHALLOWER, SHALLOW, DEEP = 18.0, 25.0, 60.0  # logarithms: where a limit is taken, in double or in many digits
SHIFT, ROUGHLY = 1e-7, 1e-6  # for slopes of conditions; how closely they are met on the way
LOOSE = 0.01  # by how much an unknown is moved that may not be fixed
ABOUT = 6.0  # how close to zero, in logarithms, is zero
FLOOR = -150.0  # that of zero
MISSED = 30  # rounds in a row in which the conditions are met nowhere, and none will be
LONGEST = 20.0  # how far from where it begins a limit is looked for
NEARER = 4.0  # by how much less deep a limit in double is taken once more
DAMPED, ALIKE, ROUGH, STILL, SETTLED, NOISE = 0.3, 0.05, 1e-11, 1e-15, 1e-12, 1e-6
DEEPER, GOES = 1e-6, 1e-2  # what vanishes is made smaller, and by what an observable shows that it follows
PREC, BEYOND = 120, 300.0  # bits for closed forms; where a limit is tested once more

Point = dict[Symbol, float]


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
    """

    point: Point
    drift: Point
    gap: float
    loose: Mapping[Symbol, float] = field(default_factory=dict)

    @property
    def vanishing(self) -> tuple[Symbol, ...]:
        """The unknowns that go to zero."""
        return tuple(s for s, step in self.drift.items() if step < 0)

    def deeper(self, factor: float) -> Point:
        """A point further on the way, where what vanishes most quickly is smaller by a factor."""
        rounds = -np.log(factor) / max(map(abs, self.drift.values()))
        return {s: v * float(np.exp(rounds * self.drift.get(s, 0.0))) for s, v in self.point.items()}

    @property
    def limits(self) -> Point:
        """All unknowns in the limit."""
        ends = {s: 0.0 if step < 0 else float(np.copysign(np.inf, self.point[s])) for s, step in self.drift.items()}
        return {**self.point, **ends}

    def __str__(self) -> str:
        names = ", ".join(map(str, self.vanishing))
        return f"the states are at rest: {names} vanish{'' if len(self.vanishing) > 1 else 'es'}"


class RestingSolution(Solution):
    """A minimum at rest: some unknowns are zero, and observables are limits.

    Attributes
    ----------
    at_rest : tuple of Symbol
        The unknowns that vanish.
    loose : tuple of Symbol
        Globals that the minimum does not fix.
    """

    def __init__(self, task: Task, given: Given, rest: Rest, observable: Callable[[Any], Expr]) -> None:
        super().__init__(task, given, {s: mp.mpf(v) for s, v in rest.limits.items()}, observable)
        self._rest = rest
        self.at_rest = rest.vanishing
        self.loose = tuple(g for g, e in task.units.items() if e.free_symbols & {*rest.loose})

    @property
    def stability(self) -> Any:
        """The factor by which the moments that vanish shrink in one round: there they are the spread themselves."""
        own = {e.lhs for e in self._task.equations} - {*self._task.responses}
        moments = [step for s, step in self._rest.drift.items() if step < 0 and s in own]
        return given_out(mp.exp(max(moments) * (2 if self._task.gains().there_and_back else 1)))

    @property
    def is_limit(self) -> bool:
        """It is one."""
        return True

    def number(self, key: Any) -> Any:
        """The value of an observable; one of a global that the minimum does not fix is refused."""
        if (key if isinstance(key, Basic) else self._expression(key)).has(*self.loose):
            raise self._not_fixed()
        return super().number(key)

    def _not_fixed(self) -> FlatMinimum:
        return FlatMinimum(
            "The minimum is not unique, and what was asked for differs from one minimum to another.",
            len(self.loose),
            "a penalty that fixes it; what is the same for all minima, such as the weights",
        )

    def _evaluate(self, expr: Expr) -> Any:
        value = self._limit(expr, {})
        if self.loose and any(expr.has(s) for s in self._rest.loose):
            other = self._limit(expr, self._rest.loose)
            if other != value and not abs(other - value) <= NOISE * abs(value):
                raise self._not_fixed()
        return value

    def _limit(self, expr: Expr, ways: Mapping[Symbol, float]) -> Any:
        """The limit of an expression, with some unknowns moved in their coordinates."""
        points = [self._rest.deeper(factor) for factor in (1.0, DEEPER)]
        moved = [{**p, **{s: float(np.sinh(np.arcsinh(p[s]) + way)) for s, way in ways.items()}} for p in points]
        near, nearer = (self._near(expr, point) for point in moved)
        if abs(nearer) < GOES * abs(near):
            return mp.zero
        if abs(nearer) * GOES > abs(near):
            return mp.sign(nearer) * mp.inf
        with mp.workdps(self.dps):
            return +nearer

    def _near(self, expr: Expr, point: Point) -> Any:
        """The value close to the limit."""
        if self._task.is_projected or self._given.is_ruled(self._task):
            with np.errstate(all="ignore"):
                env = {**self._given.environment("numpy"), **point}
                return mp.mpf(float(self._task.compiled(expr, "numpy")(env)))
        value, other = (self._exactly(expr, point, prec) for prec in (PREC, PREC + 32))
        if value and abs(value - other) <= abs(value) * DEEPER:
            return value
        # terms cancel, up to what is as small as the unknowns are
        return self._exactly(expr, point, PREC + int(4 * max(abs(np.log2(abs(v))) for v in point.values() if v)))

    def _exactly(self, expr: Expr, point: Point, prec: int) -> Any:
        with mp.workprec(prec):
            env = {**self._given.environment("mpmath"), **{s: mp.mpf(v) for s, v in point.items()}}
            return limited(self._task.compiled(expr, "mpmath"), env)

    def _measure(self) -> Any:
        return mp.mpf(self._rest.gap)

    def __str__(self) -> str:
        lines = [super().__str__(), f"  at rest            : {', '.join(map(str, self.at_rest))}"]
        if self.loose:
            lines.append(f"  not fixed          : {', '.join(map(str, self.loose))}, for the minimum is not unique")
        return "\n".join(lines)

    __repr__ = __str__


def at_rest(task: Task, given: Given) -> Rest | None:
    """Follow the state evolution to states that vanish; None where it does not lead there.

    Parameters
    ----------
    task : Task
    given : Given

    Notes
    -----
    Integrals are taken in double, and closed forms, which cancel, in many digits.  Only multipliers may diverge, and
    their responses: where a state of the problem responds without bound its minimum is flat.
    """
    evolution, exact = task.evolution(given.laws)
    numerical = task.is_projected or given.is_ruled(task)
    if not evolution.is_square or not evolution.mapped:
        return None
    step_of = _Map(evolution, exact, given, numerical=numerical)
    moments = np.array([s not in task.responses and s in evolution.mapped for s in evolution.unknowns])
    moments &= evolution.signs != 0
    bounded = np.array([s in task.primal or not task.convex for s in evolution.unknowns])
    lowest = np.where(evolution.signs, FLOOR, -np.inf)
    start = t = step_of.met(evolution.chart(evolution.start()))
    depth, still = (SHALLOW, ROUGH) if numerical else (DEEP, STILL)
    due = 9
    for n in range(ROUNDS):
        tick(f"a minimum at rest, step {n}")
        moved = step_of.image(t)
        if moved is None or step_of.missed > MISSED:
            return None
        # what one kind does shows in another, and comes back: that would not settle
        there = step_of.met(np.maximum(t + DAMPED * step_of.averages * (moved - t), lowest))
        step = there - t
        size = float(np.max(np.abs(step)))
        gone = (t < lowest / 2) & (moved < lowest + ABOUT)
        left = float(np.max(np.abs(step[~gone]), initial=0.0))
        if np.any(gone & moments) and left < still:  # more quickly than any power
            ends = step_of.gone(t, np.where(gone, FLOOR, 0.0))
            return None if ends is None else _rest(evolution, t, ends[0], left, ends[1])
        if size < STILL or np.any(bounded & (t - start > depth)):  # it settles, or a norm diverges
            return None
        ways = np.round(4 * step / size) / 4
        shrinks = np.any(moments & (ways < 0)) and not np.any(bounded & (ways > 0))
        if n >= due and shrinks and np.max(np.abs(step / size - ways)) < ALIKE:
            due = n + max(10, n // 2)
            found = _limit(t, ways, step, step_of, numerical=numerical)
            if found is not None:
                return _rest(evolution, *found)
        t = there
    return None


def _rest(
    evolution: Evolution, t: np.ndarray, steps: np.ndarray, gap: float, loose: Mapping[Symbol, float] | None = None
) -> Rest:
    names = evolution.unknowns
    away = np.where(evolution.signs, 1.0, np.sign(t))  # an unknown of no sign may diverge to either side
    drift = {s: float(d) for s, d in zip(names, steps * away, strict=True) if d}
    return Rest(dict(zip(names, evolution.place(t).tolist(), strict=True)), drift, gap, loose or {})


def _limit(
    t: np.ndarray, ways: np.ndarray, step: np.ndarray, moved: _Map, *, numerical: bool
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """A point far out on the way to a limit, its steps, and how well the limit is known."""
    if not numerical:
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
    moved: _Map,
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


def _goes_on(found: tuple[np.ndarray, ...], ways: np.ndarray, moved: _Map) -> bool:
    """Whether the map leads on in the same way far beyond: a weak penalty may stop what seems to go on for ever."""
    point, steps, _ = found
    far = point + ways * BEYOND / np.max(np.abs(ways))
    image = moved(far)
    return image is not None and bool(np.max(np.abs(image - far - steps * moved.averages)) < SETTLED)


@dataclass
class _Map:
    """Where the map leads, in the coordinates of an evolution; zero is the smallest number that there is.

    Attributes
    ----------
    evolution : Evolution
    exact : ExactPass
        The same with digits.
    given : Given
    numerical : bool
        Whether it is taken in double.
    missed : int
        For how many rounds the conditions have been met nowhere.
    """

    evolution: Evolution
    exact: ExactPass
    given: Given
    numerical: bool

    def __post_init__(self) -> None:
        names = self.evolution.unknowns
        self.own = [names.index(s) for s in self.evolution.free]
        self.count = len(self.evolution.mapped)
        self.averages = ~np.isin(np.arange(len(names)), self.own)
        self.rough = self.given.environment("numpy")
        self.grids = self.evolution.values.grids()  # refined on the way
        self.missed = 0

    def __call__(self, t: np.ndarray) -> np.ndarray | None:
        """The image; for the unknowns that are no average where their conditions are met, and None if they are not."""
        try:
            t = self._met(t) if self.own else t
        except NotConverged:
            return None
        return self.image(t)

    def image(self, t: np.ndarray) -> np.ndarray | None:
        """The image; the unknowns that are no average stay."""
        out = self._values(t)
        signs = self.evolution.signs[self.evolution.places]
        if out is None or any(v * s < 0 for v, s in zip(out, signs, strict=False)):
            return None
        moved = t.copy()
        moved[self.evolution.places] = [_coordinate(v, s) for v, s in zip(out, signs, strict=False)]
        lowest = np.where(self.evolution.signs, np.minimum(FLOOR, 2 * t), -np.inf)  # a limit may be tested far below
        moved = np.maximum(moved, lowest)
        return moved if np.all(np.isfinite(moved)) else None

    def met(self, t: np.ndarray) -> np.ndarray:
        """The point with its conditions met roughly, or as it is where they are met nowhere."""
        try:
            found, self.missed = self._met(t, ROUGHLY) if self.own else t, 0
        except NotConverged:
            found, self.missed = t, self.missed + 1
        return found

    def gone(self, t: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, dict[Symbol, float]] | None:
        """The steps where some unknowns vanish at once, and what is then not fixed: None if conditions are not met."""
        if not self.own:
            return steps, {}
        ahead = t + steps * np.log(DEEPER) / FLOOR
        try:
            here, there = self._met(t), self._met(ahead)
        except NotConverged:
            return None
        t[self.own] = here[self.own]
        steps[self.own] = (there - here)[self.own] / np.log(DEEPER) * FLOOR
        names, small = self.evolution.unknowns, LOOSE * np.eye(len(t))
        open_ = [k for k in self.own if not (names[k].is_nonnegative and t[k] < FLOOR / 2)]
        ways = {k: way * LOOSE for k in open_ for way in (1, -1) if self._are_met(t + way * small[k])}
        for k, way in ways.items():
            t[k] += way  # away from the edge of what is possible
        return steps, {names[k]: way for k, way in ways.items()}

    def _are_met(self, t: np.ndarray) -> bool:
        return bool(np.all(np.abs(self._conditions(t)) < NOISE))

    def _conditions(self, t: np.ndarray) -> np.ndarray:
        out = self._values(t)
        return np.full(len(self.own), np.nan) if out is None else np.array([float(v) for v in out[self.count :]])

    def _met(self, t: np.ndarray, near: float = 0.0) -> np.ndarray:
        start = t[self.own]

        def placed(own: np.ndarray) -> np.ndarray:
            here = t.copy()
            here[self.own] = own
            return here

        @lru_cache(maxsize=len(start) + 1)
        def conditions(*own: float) -> np.ndarray:
            close = np.max(np.abs(np.array(own) - start)) < LONGEST
            return self._conditions(placed(np.array(own))) if close else np.full(len(own), np.nan)

        def slopes(own: np.ndarray) -> np.ndarray:
            value = conditions(*own)
            return np.array([(conditions(*(own + SHIFT * e)) - value) / SHIFT for e in np.eye(len(own))]).T

        with np.errstate(all="ignore"):
            size = float(np.max(np.abs(slopes(start)))) or 1.0
            found = placed(meet(lambda own: (conditions(*own) / size, lambda: slopes(own) / size), start, near))
        return np.maximum(found, np.where(self.evolution.signs, np.minimum(FLOOR, t), -np.inf))

    def _values(self, t: np.ndarray) -> Any:
        """The right-hand sides and the conditions, or None where they are not defined."""
        if self.numerical:
            return _rough(self.evolution, self.rough, t, self.grids)
        return _fine(self.evolution, self.exact, self.given, t)


def _coordinate(value: Any, sign: float) -> float:
    """The coordinate of an unknown."""
    if not sign:
        return float(mp.asinh(value))
    return float(mp.log(abs(value))) if value else FLOOR


def _rough(evolution: Evolution, env: Mapping[Any, Any], t: np.ndarray, grids: Grids) -> Any:
    """The map in double, or None where it is not defined."""
    point = evolution.place(t)
    try:
        evolution.values.refine({**env, **dict(zip(evolution.unknowns, point.tolist(), strict=True))}, grids)
        out = evolution.call(evolution.values, point, env, grids)[0]
    except NotConverged:
        return None
    return out if np.all(np.isfinite(np.array(out, dtype=float))) else None


def _fine(evolution: Evolution, exact: ExactPass, given: Given, t: np.ndarray) -> Any:
    """The same with digits enough for what cancels."""
    prec = PREC + 32 * int(float(np.max(np.abs(t))) / 8 + 1)
    with mp.workprec(prec):
        signs = zip(evolution.unknowns, evolution.signs, t, strict=True)
        point = {s: sign * mp.exp(v) if sign else mp.sinh(v) for s, sign, v in signs}
        try:
            out = exact.at({**given.environment("mpmath"), **point}, prec, {})
        except (ArithmeticError, NotConverged):
            return None
    return out if all(map(mp.isfinite, out)) else None


__all__ = ["Rest", "RestingSolution", "at_rest"]
