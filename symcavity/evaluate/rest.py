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
from sympy import Expr, S, Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.digits import ExactPass
from symcavity.evaluate.evolution import INTEGRALS, Evolution
from symcavity.evaluate.integrals import Grids
from symcavity.evaluate.meeting import meet
from symcavity.evaluate.values import Given, Task
from symcavity.evaluate.watch import tick

ROUNDS = 600  # evaluations of the map
SHALLOWER, SHALLOW, DEEP = 18.0, 25.0, 60.0  # logarithms: where a limit is taken, in double or in many digits
SHIFT, ROUGHLY = 1e-7, 1e-13  # for slopes of conditions; how closely they are met on the way
MEASURED = 20  # how often a condition that is met is measured again
LOOSE = 0.01  # by how much an unknown is moved that may not be fixed
ABOUT = 6.0  # how close to zero, in logarithms, is zero
FLOOR, ROUGH_FLOOR = -150.0, -60.0  # that of zero; and in double, where what is added to one still has digits
FALLS = 1.5  # by how much further, at once, what vanishes more quickly than any power falls in double
MISSED = 10  # rounds in a row in which the conditions are met nowhere, and none will be
LONGEST = 20.0  # how far from where it begins a limit is looked for
NEARER = 4.0  # by how much less deep a limit in double is taken once more
DAMPED, ALIKE, ROUGH, STILL, SETTLED, NOISE = 0.3, 0.05, 1e-11, 1e-15, 1e-12, 1e-6
DEEPER = 1e-6  # what vanishes is made smaller, and what else goes is seen
PREC, BEYOND = 120, 300.0  # bits for closed forms; where a limit is tested once more
FARTHER = 1.25  # how much farther out a limit with digits is taken once more
POLISHED = 40  # steps that make many digits of those in double

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
        rounds = -mp.log(factor) / max(map(abs, self.drift.values()))
        return {s: v * mp.exp(rounds * self.drift.get(s, 0)) for s, v in self.point.items()}

    @property
    def limits(self) -> Point:
        """All unknowns in the limit."""
        ends = {s: 0.0 if step < 0 else mp.inf * mp.sign(self.point[s]) for s, step in self.drift.items()}
        return {**self.point, **ends}

    def __str__(self) -> str:
        names = ", ".join(map(str, self.vanishing))
        return f"the states are at rest: {names} vanish{'' if len(self.vanishing) > 1 else 'es'}"


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
    step_of = _Map(evolution, exact, given, task.units, numerical=numerical)
    moments = np.array([s not in task.responses and s in evolution.mapped for s in evolution.unknowns])
    moments &= evolution.signs != 0
    bounded = np.array([s in task.primal or not task.convex for s in evolution.unknowns])
    floor = ROUGH_FLOOR if numerical else FLOOR
    lowest, falls = np.where(evolution.signs, floor, -np.inf), FALLS * floor if numerical else np.inf
    start = t = before = step_of.met(evolution.chart(evolution.start()))
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
            ends = step_of.gone(t, np.where(gone, FLOOR, 0.0), before)
            return None if ends is None else step_of.rest(t, ends[0], left, ends[1], gone)
        if size < STILL or np.any(bounded & (t - start > depth)):  # it settles, or a norm diverges
            return None
        ways = np.round(4 * step / size) / 4
        shrinks = np.any(moments & (ways < 0)) and not np.any(bounded & (ways > 0))
        if n >= due and shrinks and np.max(np.abs(step / size - ways)) < ALIKE:
            due = n + max(10, n // 2)
            found = _limit(t, ways, step, step_of, numerical=numerical)
            if found is not None:
                return step_of.rest(*found)
        before, t = t, there
    return None


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
    units : dict
        The global variables in terms of the unknowns.
    numerical : bool
        Whether it is taken in double.
    missed : int
        For how many rounds the conditions have been met nowhere.
    """

    evolution: Evolution
    exact: ExactPass
    given: Given
    units: Mapping[Symbol, Expr]
    numerical: bool

    def __post_init__(self) -> None:
        names = self.evolution.unknowns
        self.own = [names.index(s) for s in self.evolution.free]
        self.count = len(self.evolution.mapped)
        self.averages = ~np.isin(np.arange(len(names)), self.own)
        self.rough = self.given.environment("numpy")
        closed = [k for k, e in enumerate(self.evolution.exprs) if not e.has(*INTEGRALS)] if self.numerical else []
        exact = {k: ExactPass([self.evolution.exprs[k]]) for k in closed}
        self.closed = {k: one for k, one in exact.items() if not one.is_ruled(self.rough)}
        self.grids = self.evolution.slopes.grids()  # refined on the way
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
        moved[self.evolution.places] = [float(_coordinate(v, s)) for v, s in zip(out, signs, strict=False)]
        lowest = np.where(self.evolution.signs, np.minimum(FLOOR, 2 * t), -np.inf)  # a limit may be tested far below
        moved = np.maximum(moved, lowest)
        return moved if np.all(np.isfinite(moved)) else None

    def met(self, t: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The point with its conditions met roughly, or as it is where they are met nowhere."""
        for begin in (t, *(() if before is None or self.missed or not self.own else (self._kept(t, before),))):
            try:
                found, self.missed = self._met(begin, ROUGHLY) if self.own else t, 0
            except NotConverged:
                continue
            return found
        self.missed += 1
        return t

    def _kept(self, t: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The point with its global variables where they were before, whatever their units are by now."""
        names = self.evolution.unknowns
        here, old = (dict(zip(names, self.evolution.place(v).tolist(), strict=True)) for v in (t, before))
        kept = t.copy()
        for k in self.own:
            unit = next((e / names[k] for e in self.units.values() if e.has(names[k])), S.One)
            ratio = float(unit.subs({**self.given.exact, **old}) / unit.subs({**self.given.exact, **here}))
            kept[k] = _coordinate(old[names[k]] * ratio, self.evolution.signs[k])
        return kept

    def gone(
        self, t: np.ndarray, steps: np.ndarray, before: np.ndarray
    ) -> tuple[np.ndarray, dict[Symbol, float]] | None:
        """The steps where some unknowns vanish at once, and what is then not fixed: None if conditions are not met."""
        if not self.own:
            return steps, {}
        ahead = t + steps * np.log(DEEPER) / FLOOR
        here = self.met(t, before)
        there = self.met(ahead, here)
        if self.missed:
            return None
        t[self.own] = here[self.own]
        steps[self.own] = (there - here)[self.own] / np.log(DEEPER) * FLOOR
        names, small = self.evolution.unknowns, LOOSE * np.eye(len(t))
        open_ = [k for k in self.own if not (names[k].is_nonnegative and t[k] < FLOOR / 2)]
        ways = {k: way * LOOSE for k in open_ for way in (1, -1) if self._are_met(t + way * small[k])}
        for k, way in ways.items():
            t[k] += way  # away from the edge of what is possible
        return steps, {names[k]: way for k, way in ways.items()}

    def rest(
        self,
        t: np.ndarray,
        steps: np.ndarray,
        gap: float,
        loose: Mapping[Symbol, float] | None = None,
        gone: np.ndarray | None = None,
    ) -> Rest:
        """The limit that a point and its steps lead to; with digits, where nothing is integrated."""
        names, loose = self.evolution.unknowns, loose or {}
        point, drifts, gap = [mp.mpf(v) for v in self.evolution.place(t)], steps.tolist(), max(gap, STILL)
        near, far = (None if self.numerical else self._polished(t, steps, loose, gone, r) for r in (1.0, FARTHER))
        if near is not None and far is not None:
            signs = self.evolution.signs
            with mp.workprec(self._bits(far[0])):
                moves = [abs(a - b) for a, b in zip(near[2], far[2], strict=True)]
                if max(moves, default=mp.zero) < mp.mpf(10) ** -self.given.dps:
                    point = [s * mp.exp(v) if s else mp.sinh(v) for s, v in zip(signs, far[0], strict=True)]
                    drifts, gap = far[1], max(moves, default=mp.zero)
        away = [1 if sign else mp.sign(v) for sign, v in zip(self.evolution.signs, point, strict=True)]
        with mp.workprec(self._bits(t)):
            drift = {s: d * a for s, d, a in zip(names, drifts, away, strict=True) if d}  # no sign: to either side
        return Rest(dict(zip(names, point, strict=True)), drift, gap, loose)

    def _polished(
        self,
        t: np.ndarray,
        steps: np.ndarray,
        loose: Mapping[Symbol, float],
        gone: np.ndarray | None,
        farther: float,
    ) -> tuple[list[Any], list[Any], list[Any]] | None:
        """The point farther out, its steps, and where it lies across them, by Newton's method with many digits.

        What is gone stays; where nothing is, the unknowns go on along simple fractions of one rate.
        """
        digits, names = self.given.dps, self.evolution.unknowns
        lead = int(np.argmax(np.abs(steps)))
        depth = farther * max(DEEP * digits / 15, abs(float(t[lead])))
        ways = [mp.mpf(round(4 * v)) / 4 for v in steps / abs(steps[lead])]
        fixed = [k == lead for k in range(len(t))] if gone is None else list(gone)
        moving = [k for k, s in enumerate(names) if not fixed[k] and s not in loose]
        used = [k for k, p in enumerate(self.evolution.places) if gone is None or not gone[p]]
        start = [mp.mpf(v) + way * (depth - abs(float(t[lead]))) for v, way in zip(t, ways, strict=True)]
        bits, signs = self._bits(start), self.evolution.signs

        def at(v: list[Any]) -> tuple[list[Any], Any]:
            here = list(start)
            for k, more in zip(moving, v, strict=False):
                here[k] += more
            return here, v[-1] if gone is None else mp.zero

        def gap(v: list[Any]) -> list[Any] | None:
            here, rate = at(v)
            out = self._values(here)
            if out is None:
                return None
            ends = [(p, _coordinate(out[k], signs[p])) for k in used for p in (self.evolution.places[k],)]
            return [e - here[p] - rate * ways[p] for p, e in ends] + [mp.convert(c) for c in out[self.count :]]

        with mp.workprec(bits):
            v = [mp.zero] * len(moving) + [abs(mp.mpf(float(steps[lead])))] * (gone is None)
            base, small = gap(v), mp.ldexp(1, -bits // 2)
            columns = [gap([b + small * (j == k) for j, b in enumerate(v)]) for k in range(len(v))]
            if base is None or None in columns:
                return None
            slopes = [[(c[r] - b) / small for c in columns if c] for r, b in enumerate(base)]
            sizes = [max(map(abs, row), default=mp.zero) for row in slopes]
            own = sorted(range(len(used), len(base)), key=lambda r: sizes[r])
            fixes = {*range(len(used)), *own[len(loose) :]}  # the other conditions fix nothing
            rows = [r for r, size in enumerate(sizes) if size and r in fixes]
            inverse = np.linalg.pinv(np.array([[float(s / sizes[r]) for s in slopes[r]] for r in rows] or [[1.0]]))
            last = mp.zero
            for _ in range(POLISHED if rows else 0):
                misses = [base[r] / sizes[r] for r in rows]
                if not (miss := max(map(abs, misses))):
                    last = mp.zero
                    break
                step = [mp.mpf(float(s)) * miss for s in inverse @ np.array([float(m / miss) for m in misses])]
                v = [b - s for b, s in zip(v, step, strict=True)]
                last, base = max(map(abs, step)), gap(v)
                if base is None or last > 1:
                    return None
                if mp.ldexp(last, bits * 3 // 4) < 1:
                    break
            if last * mp.mpf(10) ** (digits + 2) > 1:
                return None
            here, rate = at(v)
            far = [rate * way for way in ways] if gone is None else [mp.mpf(float(s)) for s in steps]
            across = [h - way * here[lead] / ways[lead] for h, way, no in zip(here, ways, fixed, strict=True) if not no]
        return here, far, across

    def _bits(self, t: Any) -> int:
        """Enough for what cancels at a point."""
        return PREC + 4 * self.given.dps + 32 * int(max(abs(float(v)) for v in t) / 8 + 1)

    def _are_met(self, t: np.ndarray) -> bool:
        return bool(np.all(np.abs(self._conditions(t)) < SETTLED))

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
            here = placed(own)
            point = self.evolution.place(here)
            if self.numerical and (found := self.evolution.gap(point, self.rough, self.grids)) is not None:
                return np.asarray(-(found[1] * self.evolution.scale(point))[self.count :, self.own])
            value = conditions(*own)
            return np.array([(conditions(*(own + SHIFT * e)) - value) / SHIFT for e in np.eye(len(own))]).T

        found = start
        with np.errstate(all="ignore"):
            for _ in range(MEASURED):  # how far away a condition is met, its slope there says: it may be of high order
                own, size = found, float(np.max(np.abs(slopes(found)))) or 1.0

                def scaled(own: np.ndarray, size: float = size) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
                    return conditions(*own) / size, lambda: slopes(own) / size

                found = meet(scaled, own, near)
                if np.max(np.abs(found - own)) < ROUGHLY:
                    break
        found = placed(found)
        return np.maximum(found, np.where(self.evolution.signs, np.minimum(FLOOR, t), -np.inf))

    def _values(self, t: Any) -> Any:
        """The right-hand sides and the conditions, or None where they are not defined."""
        if self.numerical:
            out = _rough(self.evolution, self.rough, t, self.grids)
            known = {k: _fine(self.evolution, one, self.given, t, self._bits(t)) for k, one in self.closed.items()}
            if out is None or None in known.values():
                return None
            return [known[k][0] if k in known else v for k, v in enumerate(out)]
        return _fine(self.evolution, self.exact, self.given, t, self._bits(t))


def _coordinate(value: Any, sign: float) -> Any:
    """The coordinate of an unknown."""
    if not sign:
        return mp.asinh(value)
    return mp.log(abs(value)) if value else mp.mpf(FLOOR)


def _rough(evolution: Evolution, env: Mapping[Any, Any], t: np.ndarray, grids: Grids) -> Any:
    """The map in double, or None where it is not defined."""
    point = evolution.place(t)
    try:
        evolution.plain.refine({**env, **dict(zip(evolution.unknowns, point.tolist(), strict=True))}, grids)
        out = evolution.call(evolution.values, point, env, grids)[0]
    except NotConverged:
        return None
    return out if np.all(np.isfinite(np.array(out, dtype=float))) else None


def _fine(evolution: Evolution, exact: ExactPass, given: Given, t: Any, prec: int) -> Any:
    """The same with digits enough for what cancels."""
    with mp.workprec(prec):
        signs = zip(evolution.unknowns, evolution.signs, t, strict=True)
        point = {s: sign * mp.exp(v) if sign else mp.sinh(v) for s, sign, v in signs}
        try:
            out = exact.at({**given.environment("mpmath"), **point}, prec, {})
        except (ArithmeticError, NotConverged):
            return None
    return out if all(map(mp.isfinite, out)) else None


__all__ = ["DEEPER", "NOISE", "PREC", "Rest", "at_rest"]
