"""Roots of the closed equations: found in double without a starting point, polished to any precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from symcavity.algebra.precision import given_out, mp
from symcavity.errors import NotConverged
from symcavity.evaluate.watch import tick

SMALL = 1e-9
NEARLY = 1 - 1e-15
ROUNDING = 3e-16
WIDE = 46.0
FARTHEST = 600.0
STARTS, FEW = 40, 9  # starting points; those before a continuation is tried, and where one begins
COARSE = 231  # points at which an expensive equation is sampled, where all roots are wanted
SAME = 1e-5  # distance in their charts below which two roots are one
CALLS, ASTRAY = 150, 8  # evaluations of a search; steps of a polish in a row, none of which is the shortest so far
CAREFUL = 3  # starting points that are followed without a rough look
ROUGHLY, ALIKE = 1e-4, 1e-2  # of residuals on coarse rules, and of the roots that they lead to
REFINED = 5  # how often rules of integration are refined where a search ends

Residual = Callable[..., Sequence[tuple[Any, Any]]]


class Held(Protocol):
    """Relative residuals with their derivatives, on rules of integration that are held from point to point."""

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the relative residuals, and their derivatives."""

    def refine(self, x: np.ndarray) -> bool:
        """Refine the rules for a point; return whether they changed."""

    def coarse(self) -> Held:
        """Return the same on rules as they begin."""


@dataclass(frozen=True)
class Unknown:
    """An unknown of the root problem: its sign fixes the chart in which it is searched.

    Attributes
    ----------
    name : str
    sign : int
        1 or -1 for an unknown of known sign (searched in its logarithm), 0 for a real one (in arsinh).
    """

    name: str
    sign: int

    def value(self, t: Any) -> Any:
        """Return the unknown at the chart coordinate t."""
        return self.sign * np.exp(t) if self.sign else np.sinh(t)

    def slope(self, t: float) -> float:
        """Return the derivative of the unknown along the chart coordinate."""
        return self.sign * float(np.exp(t)) if self.sign else float(np.cosh(t))

    def chart(self, value: float) -> float:
        """Return the chart coordinate of a value."""
        return float(np.log(abs(value) + 1e-300)) if self.sign else float(np.arcsinh(value))


def find_roots(
    residual: Residual,
    unknowns: Sequence[Unknown],
    *,
    costly: bool,
    guesses: Sequence[Sequence[float]] = (),
    starts: int = STARTS,
    every: bool = False,
    held: Held | None = None,
) -> Iterator[np.ndarray]:
    """Yield roots as they are found, in the original variables.

    Parameters
    ----------
    residual : callable
        For values of the unknowns, each equation's value and a larger size: the sum of the absolute values
        of its terms.
    unknowns : sequence of Unknown
    costly : bool
        Whether one evaluation is expensive (then brackets are searched point by point).
    guesses : sequence of sequences of float
        Points near roots, tried first.
    starts : int
        How many starting points to try for several unknowns.
    every : bool
        Whether the whole range is searched, for a problem that may have several roots; else the search follows the
        first guess.
    held : Held, optional
        The relative residuals with their derivatives, where a rule of integration for each point by itself is slow.
    """
    if len(unknowns) == 1:
        guess = None if every or not guesses else guesses[0]
        yield from _bracketed(residual, unknowns[0], costly=costly, guess=guess, every=every)
        return
    near = [root for guess in guesses if (root := newton(residual, unknowns, guess, held)) is not None]
    if near and not every:
        yield near[0]  # a guess was followed, or iterated, towards the solution: its root is the one
        return
    yield from _many(residual, unknowns, near, starts, held)


# -- one unknown ---------------------------------------------------------------------------------


def _bracketed(
    residual: Residual, unknown: Unknown, *, costly: bool, guess: Sequence[float] | None, every: bool
) -> Iterator[np.ndarray]:
    if not unknown.sign:
        yield from _of_either_sign(residual, unknown, costly=costly, guess=guess, every=every)
        return
    seen: dict[float, float] = {}

    def f(t: float) -> float:
        if t not in seen:
            tick("brackets of a root")
            with np.errstate(all="ignore"):
                try:
                    ((value, size),) = residual(unknown.value(t))
                    # of two opposed terms this is half the logarithm of their ratio: nearly a straight line
                    seen[t] = float(np.arctanh(np.clip(value / size, -NEARLY, NEARLY)))
                except (NotConverged, ZeroDivisionError):
                    seen[t] = float("nan")
        return seen[t]

    if costly and every:
        grid = np.linspace(-WIDE, WIDE, COARSE)
        pairs = [(a, b) for a, b in pairwise(grid) if f(a) * f(b) < 0]
    elif costly:
        bracket = _walk(f, unknown.chart(guess[0]) if guess is not None else 0.0, 0.02 if guess is not None else 0.75)
        pairs = [bracket] if bracket else []
    else:
        pairs = _scan(residual, unknown)
    for a, b in pairs:
        t0 = _close_in(f, a, b)
        if t0 is None:  # the equation is not defined throughout the bracket
            continue
        near = [abs(v) for t, v in seen.items() if abs(t - t0) < 1e-9 * (1 + abs(t0))]
        if min(near, default=1.0) < SMALL:
            yield np.array([unknown.value(t0)])


def _of_either_sign(
    residual: Residual, unknown: Unknown, *, costly: bool, guess: Sequence[float] | None, every: bool
) -> Iterator[np.ndarray]:
    """All roots of an unknown of either sign: in the logarithms of both halves of the line, and zero itself."""
    ways = [1, -1] if guess is None or guess[0] >= 0 else [-1, 1]
    for sign in ways:
        near = None if guess is None or guess[0] * sign <= 0 else guess
        yield from _bracketed(residual, Unknown(unknown.name, sign), costly=costly, guess=near, every=every)
    if _changes_at_zero(residual):
        yield np.zeros(1)


def _changes_at_zero(residual: Residual) -> bool:
    """Whether an equation vanishes at zero, and changes its sign there."""

    def at(x: float) -> float:
        ((value, size),) = residual(x)
        return float(value / size)

    with np.errstate(all="ignore"):
        try:
            if not abs(at(0.0)) < SMALL:
                return False
            for x in np.geomspace(1e-16, SMALL, 8):  # nearer by, rounding may leave nothing
                sides = at(-x), at(x)
                if not np.all(np.isfinite(sides)) or all(sides):
                    return sides[0] * sides[1] < 0
        except (NotConverged, ZeroDivisionError):
            return False
    return False


def _close_in(f: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the root in a bracket: secants, quick on nearly straight lines, and Brent's method if they fail."""
    from scipy.optimize import brentq

    a, b = (low, high) if abs(f(low)) > abs(f(high)) else (high, low)
    for _ in range(8):
        rise = f(b) - f(a)
        if not (np.isfinite(rise) and rise):
            break
        t = b - f(b) * (b - a) / rise
        if not low <= t <= high:
            break
        if abs(f(t)) < ROUNDING or abs(t - b) < ROUNDING * (1 + abs(t)):
            return t
        if not abs(f(t)) < abs(f(b)) / 2:
            break
        a, b = b, t
        step = f(b) * (b - a) / (f(b) - f(a))
        if abs(f(b)) < 1e-11 and abs(step) < 1e-10 * (1 + abs(b)):  # one more step is exact to rounding
            return b - step
    try:
        return float(brentq(f, low, high, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=300))
    except ValueError:
        return None


def _scan(residual: Residual, unknown: Unknown) -> list[tuple[float, float]]:
    """All changes of sign on a grid over the chart."""
    t = np.linspace(-WIDE, WIDE, 737)
    with np.errstate(all="ignore"):
        ((value, size),) = residual(unknown.value(t))
        y = np.broadcast_to(np.asarray(value / size, dtype=float), t.shape)
    flip = np.isfinite(y[1:]) & np.isfinite(y[:-1]) & (np.sign(y[1:]) * np.sign(y[:-1]) < 0)
    pairs = [(t[k], t[k + 1]) for k in np.flatnonzero(flip)]
    # a run of exact zeros is a limit in which the equation has lost its meaning, not a root
    zero = np.flatnonzero(y == 0)
    return pairs + [(t[k - 1], t[k + 1]) for k in zero if 0 < k < len(t) - 1 and y[k - 1] * y[k + 1] < 0]


def _walk(f: Callable[[float], float], centre: float, step: float) -> tuple[float, float] | None:
    """Search a bracket from a point, one evaluation at a time: where the residual shrinks first."""
    ends = {1: centre, -1: centre}
    stride = {1: step, -1: step}
    way = 1
    if abs(f(centre + step)) > abs(f(centre)):
        way = -1
    patience = 12
    while True:
        here = ends[way]
        there = here + way * stride[way]
        if abs(here - centre) >= WIDE:
            del ends[way]
            if not ends:
                return None
            way = -way
            continue
        there = centre + float(np.clip(there - centre, -WIDE, WIDE))
        old, new = f(here), f(there)
        if np.isfinite(old) and np.isfinite(new) and old * new <= 0:
            return min(here, there), max(here, there)
        ends[way] = there
        shrinking = abs(new) < abs(old)
        # aim a little beyond where a straight line would vanish
        aim = 1.3 * stride[way] * abs(new) / (abs(old) - abs(new)) if shrinking else 1.3 * stride[way]
        stride[way] = float(np.clip(aim, step, max(12 * stride[way], 0.75)))
        patience -= 1
        if (not shrinking or patience <= 0) and -way in ends:
            way, patience = -way, 12


# -- several unknowns ----------------------------------------------------------------------------


def _in_chart(residual: Residual, unknowns: Sequence[Unknown], reach: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return the relative residuals as a function of the chart coordinates; 1 where they are not defined."""

    def f(t: np.ndarray) -> np.ndarray:
        tick("roots from many starting points")
        t = np.clip(t, -reach, reach)
        with np.errstate(all="ignore"):
            x = [u.value(v) for u, v in zip(unknowns, t, strict=True)]
            try:
                values = np.array([float(value / size) for value, size in residual(*x)])
            except (NotConverged, FloatingPointError, ZeroDivisionError):
                return np.full(len(unknowns), 1.0)
        return np.where(np.isfinite(values), values, 1.0)

    return f


def newton(
    residual: Residual, unknowns: Sequence[Unknown], start: Sequence[float], held: Held | None = None
) -> np.ndarray | None:
    """Return the root near a starting point, or None if there is none close by."""
    t = np.array([u.chart(v) for u, v in zip(unknowns, start, strict=True)])
    found = _hybrid(_in_chart(residual, unknowns, FARTHEST), t) if held is None else _refined(held, unknowns, t)
    if found is None or np.max(np.abs(found - t)) > 3.0:
        return None
    return _values(unknowns, found)


def _values(unknowns: Sequence[Unknown], t: np.ndarray) -> np.ndarray:
    return np.array([float(u.value(v)) for u, v in zip(unknowns, t, strict=True)])


def _hybrid(f: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> np.ndarray | None:
    """Powell's hybrid method, and Newton steps at its end; None if it finds no root."""
    from scipy.optimize import root

    with np.errstate(all="ignore"):
        found = root(f, start, method="hybr", options={"xtol": 1e-13, "maxfev": CALLS})
    t, size = found.x, float(np.max(np.abs(found.fun)))
    if not size < 1e-6:
        return None
    for _ in range(3):  # the hybrid method's Jacobian is an old one: take a fresh one for the last digits
        if size < 1e-15:
            break
        value = f(t)
        shifts = 1e-7 * np.maximum(1.0, np.abs(t))
        jacobian = np.array([(f(t + np.eye(len(t))[k] * h) - value) / h for k, h in enumerate(shifts)]).T
        try:
            moved = t - np.linalg.solve(jacobian, value)
        except np.linalg.LinAlgError:
            break
        better = float(np.max(np.abs(f(moved))))
        if not better < size:
            break
        t, size = moved, better
    return t if size < SMALL else None


def _led(held: Held, unknowns: Sequence[Unknown], start: np.ndarray) -> tuple[np.ndarray, float]:
    """Where a starting point leads on rules that are held, and the residual there.

    Newton's steps are enough near a root; elsewhere Powell's hybrid method comes before them.
    """
    from scipy.optimize import root

    def f(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tick("roots from many starting points")
        t = np.clip(t, -WIDE, WIDE)
        with np.errstate(all="ignore"):
            values, slopes = held(_values(unknowns, t))
            slopes = slopes * np.array([u.slope(v) for u, v in zip(unknowns, t, strict=True)])
        if not (np.all(np.isfinite(values)) and np.all(np.isfinite(slopes))):
            return np.ones(len(t)), np.eye(len(t))
        return values, slopes

    found = _stepped(f, start)
    if found[1] < SMALL:
        return found
    return _stepped(f, root(f, start, jac=True, method="hybr", options={"xtol": 1e-13, "maxfev": CALLS}).x)


def _stepped(
    f: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], t: np.ndarray
) -> tuple[np.ndarray, float]:
    """Newton's steps, as long as each halves the residual: where they end, and the residual there."""
    value, slopes = f(t)
    size = float(np.max(np.abs(value)))
    while size > 1e-15:
        try:
            moved = t - np.linalg.solve(slopes, value)
        except np.linalg.LinAlgError:
            break
        value, slopes = f(moved)
        if not np.max(np.abs(value)) < size / 2:
            break
        t, size = moved, float(np.max(np.abs(value)))
    return t, size


def _refined(held: Held, unknowns: Sequence[Unknown], start: np.ndarray) -> np.ndarray | None:
    """The root that a starting point leads to, the rules refined where it begins and where it ends."""
    held = held.coarse()
    with suppress(NotConverged):  # it may lead to where they can be
        held.refine(_values(unknowns, start))
    t = start
    for _ in range(REFINED):
        t, size = _led(held, unknowns, t)
        if not (size < ROUGHLY and np.max(np.abs(t)) < WIDE):
            return None
        try:
            if not held.refine(_values(unknowns, t)):
                return t if size < SMALL else None
        except NotConverged:
            return None
    return None


def _many(
    residual: Residual, unknowns: Sequence[Unknown], known: Sequence[np.ndarray], count: int, held: Held | None
) -> Iterator[np.ndarray]:
    """The roots that are known, and those reached from points spread over the charts."""
    from scipy.stats import qmc

    f = _in_chart(residual, unknowns, WIDE)
    starts = [np.zeros(len(unknowns))]
    points = qmc.Sobol(len(unknowns), scramble=False).random(64)[1:count]
    starts += [(p - 0.5) * 2 * reach for p, reach in zip(points, np.tile([3.0, 7.0], count), strict=False)]
    charts: list[np.ndarray] = []

    def is_new(t: np.ndarray) -> bool:
        if any(np.allclose(t, other, rtol=0, atol=SAME) for other in charts):
            return False
        charts.append(t)
        return True

    for x in known:
        if is_new(np.array([u.chart(v) for u, v in zip(unknowns, x, strict=True)])):
            yield x
    for k, start in enumerate(starts):
        if held is not None and k >= CAREFUL:
            start, size = _led(held, unknowns, start)
            far = size > ROUGHLY or np.max(np.abs(start)) > WIDE / 2
            if far or any(np.allclose(start, other, rtol=0, atol=ALIKE) for other in charts):
                continue
        t = _hybrid(f, start) if held is None else _refined(held, unknowns, start)
        if t is not None and np.max(np.abs(t)) < WIDE / 2 and is_new(t):
            yield _values(unknowns, t)


def nearest_miss(residual: Residual, unknowns: Sequence[Unknown]) -> tuple[np.ndarray, float]:
    """Return the point with the smallest relative residuals that a search finds, and the largest of them there."""
    from scipy.optimize import least_squares

    f = _in_chart(residual, unknowns, WIDE)
    best, smallest = np.zeros(len(unknowns)), float(np.max(np.abs(f(np.zeros(len(unknowns))))))
    for start in (-3.0, 0.0, 3.0):
        found = least_squares(f, np.full(len(unknowns), start), max_nfev=CALLS)
        gap = float(np.max(np.abs(found.fun)))
        if gap < smallest:
            best, smallest = found.x, gap
    return _values(unknowns, best), smallest


# -- any precision -------------------------------------------------------------------------------


def polish(
    residual: Callable[..., Sequence[Any]], start: Sequence[Any], dps: int, signed: Sequence[bool] = ()
) -> list[Any]:
    """Polish a root at the engine's present precision by Newton steps with difference quotients.

    Parameters
    ----------
    residual : callable
    start : sequence of numbers
    dps : int
        The digits that the steps must reach.
    signed : sequence of bool
        Which unknowns have a known sign: others may vanish, and are shifted by a share of one.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision; it carries the best point.
    """
    x = [mp.mpf(v) for v in start]
    count = len(x)
    target = mp.mpf(10) ** (-dps - 3)
    last = best = mp.inf
    astray = 0

    def at(point: Sequence[Any]) -> list[Any]:
        try:
            found = list(residual(*point))
        except ZeroDivisionError:
            found = [mp.nan]
        if any(mp.im(v) or not mp.isfinite(v) for v in found):
            raise NotConverged("The equations are not defined near the root.", list(map(given_out, x)), float("nan"))
        return found

    for _ in range(60):
        tick(f"the digits of a root, {dps} of them")
        value = at(x)
        matrix = mp.matrix(count, count)
        for k in range(count):
            size = abs(x[k]) if x[k] and (not signed or signed[k]) else abs(x[k]) + 1
            shift = size * mp.mpf(2) ** (-mp.prec // 3)
            moved = list(x)
            moved[k] = x[k] + shift
            up = at(moved)
            for r in range(count):
                matrix[r, k] = (up[r] - value[r]) / shift
        try:
            step = mp.lu_solve(matrix, mp.matrix(value))
        except (ZeroDivisionError, TypeError):  # of no pivot mpmath makes a TypeError
            if all(v == 0 for v in value):
                return x
            point, gap = list(map(given_out, x)), float(max(map(abs, value)))
            raise NotConverged("The equations are degenerate at the root.", point, gap) from None
        x = [v - step[k] for k, v in enumerate(x)]
        size = max(abs(step[k]) / (abs(x[k]) + mp.mpf(10) ** (-dps)) for k in range(count))
        if size < target:
            return x
        if size >= last / 2 and last < mp.mpf(10) ** (-dps // 2 - 2) and size < target * 1000:
            return x
        last, best, astray = size, min(best, size), astray + 1 if size >= best else 0
        if astray > ASTRAY:
            break
    raise NotConverged(
        f"The root was not polished to {dps} digits: the last step was {mp.nstr(last, 3)}.",
        list(map(given_out, x)),
        float(last),
    )
