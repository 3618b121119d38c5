"""Roots of the closed equations: found in double without a starting point, polished to any precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from symcavity.evaluate.bracket import root_between
from symcavity.evaluate.constants import LOGARITHMS, TINIEST
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.evaluate.watch import tick

NEARLY = 1 - 1e-15
ROUNDING = 3e-16
STARTS, FEW = 40, 9  # starting points; those before a continuation is tried, and where one begins
COARSE = 231  # points at which an expensive equation is sampled, where all roots are wanted
CALLS = 150  # evaluations of a search
ROUGH, CLEAR = 1e-6, 1e-3  # error of averages while changes of sign are looked for; a share whose sign is sure then

Residual = Callable[..., Sequence[tuple[Any, Any]]]


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
        return float(np.log(abs(value) + TINIEST)) if self.sign else float(np.arcsinh(value))


def find_roots(
    residual: Residual,
    unknown: Unknown,
    *,
    costly: bool,
    rough: Residual | None = None,
    guess: Sequence[float] | None = None,
    every: bool = False,
) -> Iterator[np.ndarray]:
    """Yield the roots of one equation as they are found, in the original variable, between changes of its sign.

    Parameters
    ----------
    residual : callable
        For a value of the unknown, the value of the equation and a larger size: the sum of the absolute values of its
        terms.
    unknown : Unknown
    costly : bool
        Whether one evaluation is expensive (then brackets are searched point by point).
    rough : callable, optional
        The residual with fewer digits, ``ROUGH``, where these come at a lower price.
    guess : sequence of float, optional
        A point near a root, where the search begins.
    every : bool
        Whether the whole range is searched, for a problem that may have several roots.
    """
    between = partial(_bracketed, residual, costly=costly, rough=rough, every=every)
    if unknown.sign:
        yield from between(unknown, guess=guess)
    else:
        yield from _of_either_sign(residual, unknown.name, between, guess)


# -- one unknown ---------------------------------------------------------------------------------


def _share(residual: Residual, x: float) -> float:
    """One equation at a value of its unknown, as a share of its size."""
    ((value, size),) = residual(x)
    return float(value / size)


def _bracketed(
    residual: Residual,
    unknown: Unknown,
    *,
    costly: bool,
    rough: Residual | None,
    guess: Sequence[float] | None,
    every: bool,
) -> Iterator[np.ndarray]:
    seen: dict[float, float] = {}

    def f(t: float) -> float:
        if t not in seen:
            tick("brackets of a root")
            with np.errstate(all="ignore"):
                found = where_defined(_share, residual, unknown.value(t))
                # of two opposed terms this is half the logarithm of their ratio: nearly a straight line
                seen[t] = float("nan") if found is None else float(np.arctanh(np.clip(found, -NEARLY, NEARLY)))
        return seen[t]

    def sign(t: float) -> float:
        with np.errstate(all="ignore"):
            found = None if rough is None else where_defined(_share, rough, unknown.value(t))
        return float(np.sign(f(t) if found is None or not abs(found) > CLEAR else found))

    if costly and every:
        grid = np.linspace(-LOGARITHMS, LOGARITHMS, COARSE)
        pairs = [(a, b) for (a, left), (b, right) in pairwise((t, sign(t)) for t in grid) if left * right < 0]
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
        if min(near, default=1.0) < tolerances().zero:
            yield np.array([unknown.value(t0)])


def _of_either_sign(
    residual: Residual, name: str, between: Callable[..., Iterator[np.ndarray]], guess: Sequence[float] | None
) -> Iterator[np.ndarray]:
    """All roots of an unknown of either sign: in the logarithms of both halves of the line, and zero itself."""
    ways = [1, -1] if guess is None or guess[0] >= 0 else [-1, 1]
    for sign in ways:
        yield from between(Unknown(name, sign), guess=None if guess is None or guess[0] * sign <= 0 else guess)
    if _changes_at_zero(residual):
        yield np.zeros(1)


def _changes_at_zero(residual: Residual) -> bool:
    """Whether an equation vanishes at zero, and changes its sign there."""

    def changes() -> bool:
        if not abs(_share(residual, 0.0)) < tolerances().zero:
            return False
        for x in np.geomspace(1e-16, tolerances().zero, 8):  # nearer by, rounding may leave nothing
            sides = _share(residual, -x), _share(residual, x)
            if not np.all(np.isfinite(sides)) or all(sides):
                return sides[0] * sides[1] < 0
        return False

    with np.errstate(all="ignore"):
        return bool(where_defined(changes))


def _close_in(f: Callable[[float], float], low: float, high: float) -> float | None:
    """Return the root in a bracket: secants, quick on nearly straight lines, and a safe method if they fail."""
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
        return root_between(f, low, high, xtol=1e-15)
    except ValueError:
        return None


def _scan(residual: Residual, unknown: Unknown) -> list[tuple[float, float]]:
    """All changes of sign on a grid over the chart."""
    t = np.linspace(-LOGARITHMS, LOGARITHMS, 737)
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
        if abs(here - centre) >= LOGARITHMS:
            del ends[way]
            if not ends:
                return None
            way = -way
            continue
        there = centre + float(np.clip(there - centre, -LOGARITHMS, LOGARITHMS))
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


def _in_chart(residual: Residual, unknowns: Sequence[Unknown]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the relative residuals as a function of the chart coordinates; 1 where they are not defined."""

    def f(t: np.ndarray) -> np.ndarray:
        tick("roots from many starting points")
        t = np.clip(t, -LOGARITHMS, LOGARITHMS)
        with np.errstate(all="ignore"):
            x = [u.value(v) for u, v in zip(unknowns, t, strict=True)]
            values = where_defined(lambda: np.array([float(value / size) for value, size in residual(*x)]))
        return np.full(len(unknowns), 1.0) if values is None else np.where(np.isfinite(values), values, 1.0)

    return f


def starting_points(unknowns: int, count: int) -> np.ndarray:
    """Points spread evenly over the charts, near their middle and farther out: one column for each."""
    base = 2.0
    for _ in range(60):  # the root of x**(n + 1) = x + 1: its powers are shares whose multiples lie evenly in a cube
        base = (1 + base) ** (1 / (unknowns + 1))
    shares = base ** -np.arange(1.0, unknowns + 1)
    numbers = np.arange(1, count)
    points = (0.5 + numbers * shares[:, None]) % 1
    return np.column_stack([np.zeros(unknowns), (points - 0.5) * 2 * np.where(numbers % 2, 3.0, 7.0)])


def nearest_miss(residual: Residual, unknowns: Sequence[Unknown]) -> tuple[np.ndarray, float]:
    """Return the point with the smallest relative residuals that a search finds, and the largest of them there."""
    from scipy.optimize import least_squares

    f = _in_chart(residual, unknowns)
    best, smallest = np.zeros(len(unknowns)), float(np.max(np.abs(f(np.zeros(len(unknowns))))))
    for start in (-3.0, 0.0, 3.0):
        found = least_squares(f, np.full(len(unknowns), start), max_nfev=CALLS)
        gap = float(np.max(np.abs(found.fun)))
        if gap < smallest:
            best, smallest = found.x, gap
    return np.array([float(u.value(v)) for u, v in zip(unknowns, best, strict=True)]), smallest
