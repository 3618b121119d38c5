"""The map of a state evolution that goes on for ever, in the logarithms of its unknowns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Expr, S, Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import Grids
from symcavity.evaluate.closed_map import INTEGRALS, ClosedMap
from symcavity.evaluate.given.values import Given
from symcavity.evaluate.solving.meeting import where_met
from symcavity.evaluate.undefined import where_defined

ROUNDS = 600  # evaluations of the map
DAMPED = 0.3  # of a step, so that what comes back settles
FLOOR = -150.0  # the logarithm of zero
LONGEST = 20.0  # how far from where it begins a limit is looked for
SETTLED, NOISE = 1e-12, 1e-6
SHIFT, ROUGHLY = 1e-7, 1e-13  # for slopes of conditions; how closely they are met on the way
MEASURED = 20  # how often a condition that is met is measured again
LOOSE = 0.01  # by how much an unknown is moved that may not be fixed
LOWER = -10.0  # by how much further, to see whether all else stays
AHEAD = 4.0  # logarithms by which what vanishes is made smaller, to see where conditions are met then
DEEPER = 1e-6  # what vanishes is made smaller, and what else goes is seen
PREC = 120  # bits for closed forms
GONE = -(2**20)  # power of two below which all has vanished more quickly than any power, such as exp(-1/q) with q


def kept(value: Any) -> Any:
    """A number; zero for one that has vanished more quickly than any power, whose logarithm is as large as 1/q."""
    return mp.zero if value and mp.isfinite(value) and mp.mag(value) < GONE else value


@dataclass
class RestMap:
    """Where the map leads, in the coordinates of a closed map; zero is the smallest number that there is.

    Attributes
    ----------
    closed : ClosedMap
    exact : ExactPass
        The same with digits.
    given : Given
    units : dict
        The global variables in terms of the unknowns.
    numerical : bool
        Whether it is taken in double.
    in_roots : bool
        Whether all else goes to its limit with the root of what vanishes.
    missed : int
        For how many rounds the conditions have been met nowhere.
    """

    closed: ClosedMap
    exact: ExactPass
    given: Given
    units: Mapping[Symbol, Expr]
    numerical: bool
    in_roots: bool = False

    def __post_init__(self) -> None:
        names = self.closed.unknowns
        self.own = [names.index(s) for s in self.closed.free]
        self.count = len(self.closed.mapped)
        self.averages = ~np.isin(np.arange(len(names)), self.own)
        self.rough = self.given.environment("numpy")
        forms = [k for k, e in enumerate(self.closed.exprs) if not e.has(*INTEGRALS)] if self.numerical else []
        exact = {k: ExactPass([self.closed.exprs[k]]) for k in forms}
        self.forms = {k: one for k, one in exact.items() if not one.is_ruled(self.rough)}
        self.grids = self.closed.slopes.grids()  # refined on the way
        self.missed = 0

    def __call__(self, t: np.ndarray) -> np.ndarray | None:
        """The image; for the unknowns that are no average where their conditions are met, and None if they are not."""
        there = self._met(t) if self.own else t
        return None if there is None else self.image(there)

    def image(self, t: np.ndarray) -> np.ndarray | None:
        """The image; the unknowns that are no average stay."""
        out = self.values(t)
        signs = self.closed.signs[self.closed.places]
        if out is None or any(v * s < 0 for v, s in zip(out, signs, strict=False)):
            return None
        moved = t.copy()
        moved[self.closed.places] = [float(coordinate(v, s)) for v, s in zip(out, signs, strict=False)]
        lowest = np.where(self.closed.signs, np.minimum(FLOOR, 2 * t), -np.inf)  # a limit may be tested far below
        moved = np.maximum(moved, lowest)
        return moved if np.all(np.isfinite(moved)) else None

    def met(self, t: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """The point with its conditions met roughly, or as it is where they are met nowhere."""
        for begin in (t, *(() if before is None or self.missed or not self.own else (self._kept(t, before),))):
            if (found := self._met(begin, ROUGHLY) if self.own else t) is not None:
                self.missed = 0
                return found
        self.missed += 1
        return t

    def _kept(self, t: np.ndarray, before: np.ndarray) -> np.ndarray:
        """The point with its global variables where they were before, whatever their units are by now."""
        names = self.closed.unknowns
        here, old = (dict(zip(names, self.closed.place(v).tolist(), strict=True)) for v in (t, before))
        kept = t.copy()
        for k in self.own:
            unit = next((e / names[k] for e in self.units.values() if e.has(names[k])), S.One)
            ratio = float(unit.subs({**self.given.exact, **old}) / unit.subs({**self.given.exact, **here}))
            kept[k] = coordinate(old[names[k]] * ratio, self.closed.signs[k])
        return kept

    def led(self, t: np.ndarray, gone: np.ndarray) -> np.ndarray | None:
        """The powers of what vanishes at once with which all else goes along; None where that does not settle.

        What seems to have settled may stand still only because no number is smaller than the smallest.
        """
        here, rest = self._kept(t + LOWER * gone, t), self.averages & ~gone
        for _ in range(ROUNDS if np.any(rest) else 0):
            if (moved := self.image(here)) is None:
                return None
            step = np.where(rest, moved - here, 0.0)
            here = self._kept(here + DAMPED * step, t)
            if np.max(np.abs(step)) < NOISE**2:
                break
        powers = np.where(self.averages, here - t, 0.0) / LOWER
        return np.where(np.abs(powers) > NOISE, powers, 0.0)

    def along(self, t: np.ndarray, ways: np.ndarray) -> np.ndarray:
        """Ways to a limit on which the unknowns that are no average go where their conditions are met.

        Their last step says that only where averages have settled that do not vanish.
        """
        if not self.own:
            return ways
        here = self.met(t)
        ahead = here + np.where(self.averages, ways, 0.0) * AHEAD
        there = self.met(ahead, here)
        if self.missed:
            return ways
        out = ways.copy()
        out[self.own] = np.round(4 * (there - here)[self.own] / AHEAD) / 4
        return out

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
        names, small = self.closed.unknowns, LOOSE * np.eye(len(t))
        open_ = [k for k in self.own if not (names[k].is_nonnegative and t[k] < FLOOR / 2)]
        ways = {k: way * LOOSE for k in open_ for way in (1, -1) if self._are_met(t + way * small[k])}
        for k, way in ways.items():
            t[k] += way  # away from the edge of what is possible
        return steps, {names[k]: way for k, way in ways.items()}

    def bits(self, t: Any) -> int:
        """Bits enough for what cancels at a point."""
        lost = 64 if self.in_roots else 32  # differences of squares, too
        return PREC + 4 * self.given.dps + lost * int(max(abs(float(v)) for v in t) / 8 + 1)

    def _are_met(self, t: np.ndarray) -> bool:
        return bool(np.all(np.abs(self._conditions(t)) < SETTLED))

    def _conditions(self, t: np.ndarray) -> np.ndarray:
        out = self.values(t)
        return np.full(len(self.own), np.nan) if out is None else np.array([float(v) for v in out[self.count :]])

    def _met(self, t: np.ndarray, near: float = 0.0) -> np.ndarray | None:
        """The point with its conditions met; None where they are not."""
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
            point = self.closed.place(here)
            if self.numerical and (found := self.closed.gap(point, self.rough, self.grids)) is not None:
                return np.asarray(-(found[1] * self.closed.scale(point))[self.count :, self.own])
            value = conditions(*own)
            return np.array([(conditions(*(own + SHIFT * e)) - value) / SHIFT for e in np.eye(len(own))]).T

        found = start
        with np.errstate(all="ignore"):
            for _ in range(MEASURED):  # how far away a condition is met, its slope there says: it may be of high order
                own, size = found, float(np.max(np.abs(slopes(found)))) or 1.0

                def scaled(own: np.ndarray, size: float = size) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
                    return conditions(*own) / size, lambda: slopes(own) / size

                found, missed = where_met(scaled, own, near)
                if missed:
                    return None
                if np.max(np.abs(found - own)) < ROUGHLY:
                    break
        found = placed(found)
        return np.maximum(found, np.where(self.closed.signs, np.minimum(FLOOR, t), -np.inf))

    def values(self, t: Any) -> Any:
        """The right-hand sides and the conditions, or None where they are not defined."""
        if self.numerical:
            out = _rough(self.closed, self.rough, t, self.grids)
            known = {k: _fine(self.closed, one, self.given, t, self.bits(t)) for k, one in self.forms.items()}
            if out is None or None in known.values():
                return None
            return [known[k][0] if k in known else v for k, v in enumerate(out)]
        return _fine(self.closed, self.exact, self.given, t, self.bits(t))


def coordinate(value: Any, sign: float) -> Any:
    """The coordinate of an unknown."""
    if not sign:
        return mp.asinh(value)
    return mp.log(abs(value)) if value else mp.mpf(FLOOR)


def _rough(closed: ClosedMap, env: Mapping[Any, Any], t: np.ndarray, grids: Grids) -> Any:
    """The map in double, or None where it is not defined."""
    point = closed.place(t)
    if closed.refined(point, env, grids) is None or (found := closed.call(closed.values, point, env, grids)) is None:
        return None
    out = found[0]
    return out if np.all(np.isfinite(np.array(out, dtype=float))) else None


def _fine(closed: ClosedMap, exact: ExactPass, given: Given, t: Any, prec: int) -> Any:
    """The same with digits enough for what cancels."""
    with mp.workprec(prec):
        signs = zip(closed.unknowns, closed.signs, t, strict=True)
        point = {s: sign * mp.exp(v) if sign else mp.sinh(v) for s, sign, v in signs}
        out = where_defined(exact.at, {**given.environment("mpmath"), **point}, prec, {})
    return out if out is not None and all(map(mp.isfinite, out)) else None
