"""Minima at rest: state evolution that does not settle, but goes on for ever towards states that vanish.

The closed equations are not defined where a moment is zero; the limit is.  There the logarithms of what vanishes or
diverges move by equal steps, and all else has settled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.algebra.precision import given_out, mp
from symcavity.errors import NotConverged
from symcavity.evaluate.digits import ExactPass
from symcavity.evaluate.evolution import Evolution
from symcavity.evaluate.solution import Solution, limited
from symcavity.evaluate.values import Given, Task
from symcavity.evaluate.watch import tick

ROUNDS = 600  # evaluations of the map
SHALLOWER, SHALLOW, DEEP = 18.0, 25.0, 60.0  # logarithms: where a limit is taken, in double or in many digits
FLOOR = -150.0  # that of zero
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
    """

    point: Point
    drift: Point
    gap: float

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
        return f"the minimum is at rest: {names} vanish{'' if len(self.vanishing) > 1 else 'es'}"


class RestingSolution(Solution):
    """A minimum at rest: some unknowns are zero, and observables are limits.

    Attributes
    ----------
    at_rest : tuple of Symbol
        The unknowns that vanish.
    """

    def __init__(self, task: Task, given: Given, rest: Rest, observable: Callable[[Any], Expr]) -> None:
        super().__init__(task, given, {s: mp.mpf(v) for s, v in rest.limits.items()}, observable)
        self._rest = rest
        self.at_rest = rest.vanishing

    @property
    def stability(self) -> Any:
        """The factor by which the moments that vanish shrink in one round: there they are the spread themselves."""
        moments = [step for s, step in self._rest.drift.items() if step < 0 and s not in self._task.responses]
        return given_out(mp.exp(max(moments) * (2 if self._task.gains().there_and_back else 1)))

    @property
    def is_limit(self) -> bool:
        """It is one."""
        return True

    def _evaluate(self, expr: Expr) -> Any:
        near, nearer = (self._near(expr, self._rest.deeper(factor)) for factor in (1.0, DEEPER))
        if abs(nearer) < GOES * abs(near):
            return mp.zero
        if abs(nearer) * GOES > abs(near):
            return mp.sign(nearer) * mp.inf
        with mp.workdps(self.dps):
            return +nearer

    def _near(self, expr: Expr, point: Point) -> Any:
        """The value close to the limit."""
        if self._task.is_in_double:
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
        return f"{super().__str__()}\n  at rest            : {', '.join(map(str, self.at_rest))}"

    __repr__ = __str__


def at_rest(task: Task, given: Given) -> Rest | None:
    """Follow the state evolution of a convex problem to states that vanish; None where it does not lead there.

    Parameters
    ----------
    task : Task
        Of a convex problem.
    given : Given

    Notes
    -----
    Integrals are taken in double, and closed forms, which cancel, in many digits.  What diverges may only be a
    response of multipliers: where a state of the problem responds without bound its minimum is flat.
    """
    evolution, exact = task.evolution(given.laws)
    numerical = task.is_in_double
    if not evolution.is_square or evolution.free or not np.all(evolution.signs):
        return None
    image = partial(_rough, evolution, given.environment("numpy"))
    if not numerical:
        image = partial(_fine, evolution, exact, given)
    moments = np.array([s not in task.responses for s in evolution.unknowns])
    bounded = np.array([s not in task.responses or s in task.compliances for s in evolution.unknowns])
    start = t = evolution.chart(evolution.start())
    depth, still = (SHALLOW, ROUGH) if numerical else (DEEP, STILL)
    for n in range(ROUNDS):
        tick(f"a minimum at rest, step {n}")
        moved = _moved(evolution, t, image)
        if moved is None:
            return None
        step = DAMPED * (moved - t)  # what one kind does shows in another, and comes back: that would not settle
        size = float(np.max(np.abs(step)))
        gone = t < FLOOR / 2
        left = float(np.max(np.abs(step[~gone]), initial=0.0))
        if np.any(gone & moments) and left < still:  # more quickly than any power
            return _rest(evolution, t, np.where(gone, FLOOR, 0.0), left)
        if size < STILL or np.any(bounded & (t - start > depth)):  # it settles, or a norm diverges
            return None
        ways = np.round(4 * step / size) / 4
        shrinks = np.any(moments & (ways < 0)) and not np.any(bounded & (ways > 0))
        if n % 10 == 9 and shrinks and np.max(np.abs(step / size - ways)) < ALIKE:
            found = _limit(t, ways, step, partial(_moved, evolution, image=image), numerical=numerical)
            if found is not None:
                return _rest(evolution, *found)
        t = np.maximum(t + step, FLOOR)
    return None


def _rest(evolution: Evolution, t: np.ndarray, steps: np.ndarray, gap: float) -> Rest:
    names = evolution.unknowns
    drift = {s: float(d) for s, d in zip(names, steps, strict=True) if d}
    return Rest(dict(zip(names, evolution.place(t).tolist(), strict=True)), drift, gap)


def _limit(
    t: np.ndarray, ways: np.ndarray, step: np.ndarray, moved: Callable[[np.ndarray], Any], *, numerical: bool
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """A point far out on the way to a limit, its steps, and how well the limit is known."""
    if not numerical:
        found = _marching(t, ways, step, DEEP, SETTLED, moved)
        return (*found[:2], SETTLED) if found is not None and _goes_on(found, ways, moved) else None
    for depth, goal in ((SHALLOW, SETTLED), (SHALLOWER, NOISE)):  # deeper there is more noise, less deep more to go
        found, nearer = (_marching(t, ways, step, d, goal, moved) for d in (depth, depth - NEARER))
        if found is not None and nearer is not None:
            return (*found[:2], float(np.max(np.abs(nearer[2] - found[2]))))
    return None


def _marching(
    t: np.ndarray,
    ways: np.ndarray,
    step: np.ndarray,
    depth: float,
    goal: float,
    moved: Callable[[np.ndarray], Any],
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The point, far out, from which the map leads on along given ways for ever: by Newton's method.

    There the logarithms of what vanishes or diverges move by a common rate times simple fractions, and nothing else
    moves.  Returns the point, its steps, and where it lies across the ways.
    """
    from scipy.optimize import root

    lead = int(np.argmax(np.abs(ways)))
    rest = np.arange(len(t)) != lead
    out = t + ways * max(0.0, (depth - t[lead] * np.sign(ways[lead])) / abs(ways[lead]))
    rate = float(step[lead] / ways[lead]) / DAMPED

    def gap(v: np.ndarray) -> np.ndarray:
        if np.max(np.abs(v)) > LONGEST:
            return np.full(len(out), 1.0)
        here = out.copy()
        here[rest] += np.delete(v, lead)
        image = moved(here)
        return np.full(len(out), 1.0) if image is None else image - here - v[lead] * ways

    begin = np.zeros(len(out))
    begin[lead] = rate
    found = root(gap, begin, method="hybr", options={"xtol": 1e-14})
    if not np.max(np.abs(found.fun)) < goal or found.x[lead] <= 0:
        return None
    out[rest] += np.delete(found.x, lead)
    return out, found.x[lead] * ways, (out - ways * out[lead] / ways[lead])[rest]


def _goes_on(found: tuple[np.ndarray, ...], ways: np.ndarray, moved: Callable[[np.ndarray], Any]) -> bool:
    """Whether the map leads on in the same way far beyond: a weak penalty may stop what seems to go on for ever."""
    point, steps, _ = found
    far = point + ways * BEYOND / np.max(np.abs(ways))
    image = moved(far)
    return image is not None and bool(np.max(np.abs(image - far - steps)) < SETTLED)


def _moved(evolution: Evolution, t: np.ndarray, image: Callable[[np.ndarray], Any]) -> np.ndarray | None:
    """Where the map leads, in logarithms; zero is the smallest number that there is."""
    out = image(t)
    if out is None or any(v * s < 0 for v, s in zip(out, evolution.signs[evolution.places], strict=True)):
        return None
    moved = np.empty_like(t)
    moved[evolution.places] = [float(mp.log(abs(v))) if v else FLOOR for v in out]
    lowest = np.minimum(FLOOR, 2 * t)  # a limit may be tested far below
    return np.maximum(moved, lowest) if np.all(np.isfinite(moved)) else None


def _rough(evolution: Evolution, env: Mapping[Any, Any], t: np.ndarray) -> Any:
    """The map in double, or None where it is not defined."""
    point = evolution.place(t)
    grids = evolution.values.grids()
    try:
        evolution.values.refine({**env, **dict(zip(evolution.unknowns, point.tolist(), strict=True))}, grids)
        out = evolution.call(evolution.values, point, env, grids)[0]
    except NotConverged:
        return None
    return out if np.all(np.isfinite(np.array(out, dtype=float))) else None


def _fine(evolution: Evolution, exact: ExactPass, given: Given, t: np.ndarray) -> Any:
    """The same with digits enough for what cancels."""
    prec = PREC + int(4 * float(np.max(np.abs(t))))
    with mp.workprec(prec):
        point = {s: sign * mp.exp(v) for s, sign, v in zip(evolution.unknowns, evolution.signs, t, strict=True)}
        try:
            out = exact.at({**given.environment("mpmath"), **point}, prec, {})
        except (ArithmeticError, NotConverged):
            return None
    return out if all(map(mp.isfinite, out)) else None


__all__ = ["Rest", "RestingSolution", "at_rest"]
