"""Roots of the closed equations: found in double without a starting point, polished to any precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from symcavity.errors import NotConverged

SMALL = 1e-9
WIDE = 46.0
STARTS = 64


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
        """The unknown at the chart coordinate t."""
        return self.sign * np.exp(t) if self.sign else np.sinh(t)


Residual = Callable[..., Sequence[Any]]


def find_roots(
    residual: Residual, scale: Residual, unknowns: Sequence[Unknown], *, costly: bool, guess: Sequence[float] | None = None
) -> list[np.ndarray]:
    """Return all roots found, in the original variables.

    Parameters
    ----------
    residual, scale : callables
        The equations, and the sums of the absolute values of their terms, as functions of the unknowns.
    unknowns : sequence of Unknown
    costly : bool
        Whether one evaluation is expensive (then brackets are searched point by point).
    guess : sequence of float, optional
        A root of a nearby problem, tried first.
    """
    if len(unknowns) == 1:
        return _bracketed(residual, scale, unknowns[0], costly=costly)
    return _many(residual, scale, unknowns, guess)


def _bracketed(residual: Residual, scale: Residual, unknown: Unknown, *, costly: bool) -> list[np.ndarray]:
    from scipy.optimize import brentq

    def f(t: float) -> float:
        with np.errstate(all="ignore"):
            x = unknown.value(t)
            return float(residual(x)[0] / scale(x)[0])

    if costly:
        bracket = _walk(f)
        pairs = [bracket] if bracket else []
    else:
        t = np.linspace(-WIDE, WIDE, 737) if unknown.sign else np.linspace(-WIDE / 2, WIDE / 2, 738)
        with np.errstate(all="ignore"):
            x = unknown.value(t)
            y = np.broadcast_to(np.asarray(residual(x)[0] / scale(x)[0], dtype=float), t.shape)
        flip = np.isfinite(y[1:]) & np.isfinite(y[:-1]) & (np.sign(y[1:]) * np.sign(y[:-1]) < 0)
        zero = np.flatnonzero(y == 0)
        pairs = [(t[k], t[k + 1]) for k in np.flatnonzero(flip)]
        # a run of exact zeros is a limit in which the equation has lost its meaning, not a root
        pairs += [(t[k - 1], t[k + 1]) for k in zero if 0 < k < len(t) - 1 and y[k - 1] * y[k + 1] < 0]
    roots = []
    for a, b in pairs:
        try:
            t0 = brentq(f, a, b, xtol=1e-15, rtol=4 * np.finfo(float).eps, maxiter=300)
        except ValueError:  # the equation is not defined throughout the bracket
            continue
        if abs(f(t0)) < SMALL * max(1.0, abs(f(a)), abs(f(b))):
            roots.append(np.array([unknown.value(t0)]))
    return roots


def _walk(f: Callable[[float], float]) -> tuple[float, float] | None:
    """Search a bracket outwards from 1, one evaluation at a time."""
    centre = f(0.0)
    left = right = 0.0
    f_left = f_right = centre
    step = 0.75
    while max(right, -left) < WIDE:
        here = f(right + step)
        if np.isfinite(here) and np.isfinite(f_right) and here * f_right <= 0:
            return right, right + step
        right, f_right = right + step, here
        here = f(left - step)
        if np.isfinite(here) and np.isfinite(f_left) and here * f_left <= 0:
            return left - step, left
        left, f_left = left - step, here
        step *= 1.3
    return None


def _many(
    residual: Residual, scale: Residual, unknowns: Sequence[Unknown], guess: Sequence[float] | None
) -> list[np.ndarray]:
    from scipy.optimize import root
    from scipy.stats import qmc

    def f(t: np.ndarray) -> np.ndarray:
        t = np.clip(t, -WIDE, WIDE)
        with np.errstate(all="ignore"):
            x = [u.value(v) for u, v in zip(unknowns, t, strict=True)]
            try:
                values = np.array([float(r / s) for r, s in zip(residual(*x), scale(*x), strict=True)])
            except (NotConverged, FloatingPointError, ZeroDivisionError):
                return np.full(len(unknowns), 1.0)
        return np.where(np.isfinite(values), values, 1.0)

    starts = []
    if guess is not None:
        starts.append(np.array([_chart(u, g) for u, g in zip(unknowns, guess, strict=True)]))
    starts.append(np.zeros(len(unknowns)))
    points = qmc.Sobol(len(unknowns), scramble=False).random(STARTS)[1:]
    starts += [(p - 0.5) * 2 * reach for p, reach in zip(points, np.repeat([3.0, 7.0], STARTS)[1:], strict=False)]
    roots: list[np.ndarray] = []
    for k, start in enumerate(starts):
        with np.errstate(all="ignore"):
            found = root(f, start, method="hybr", options={"xtol": 1e-13, "maxfev": 400})
        t = np.clip(found.x, -WIDE, WIDE)
        if np.max(np.abs(f(t))) < SMALL and np.max(np.abs(t)) < WIDE / 2:
            x = np.array([float(u.value(v)) for u, v in zip(unknowns, t, strict=True)])
            if not any(np.allclose(x, r, rtol=1e-5) for r in roots):
                roots.append(x)
        if roots and (k >= 8 or guess is not None):
            break  # a guess was iterated towards the solution: its root is the one
    return roots


def _chart(unknown: Unknown, value: float) -> float:
    return float(np.log(abs(value) + 1e-300)) if unknown.sign else float(np.arcsinh(value))


def polish(residual: Callable[..., Sequence[Any]], start: Sequence[Any], dps: int) -> list[Any]:
    """Polish a root at the current mpmath precision by Newton steps with difference quotients.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision; it carries the best point.
    """
    mp = mpmath.mp
    x = [mp.mpf(v) for v in start]
    count = len(x)
    target = mp.mpf(10) ** (-dps - 3)
    last = mp.inf
    for _ in range(60):
        value = list(residual(*x))
        matrix = mp.matrix(count, count)
        for k in range(count):
            shift = (abs(x[k]) or mp.one) * mp.mpf(2) ** (-mp.prec // 3)
            moved = list(x)
            moved[k] = x[k] + shift
            up = residual(*moved)
            for r in range(count):
                matrix[r, k] = (up[r] - value[r]) / shift
        try:
            step = mp.lu_solve(matrix, mp.matrix(value))
        except ZeroDivisionError:
            if all(v == 0 for v in value):
                return x
            raise NotConverged("The equations are degenerate at the root.", x, float(max(map(abs, value)))) from None
        x = [v - step[k] for k, v in enumerate(x)]
        size = max(abs(step[k]) / (abs(x[k]) + mp.mpf(10) ** (-dps)) for k in range(count))
        if size < target:
            return x
        if size >= last / 2 and last < mp.mpf(10) ** (-dps // 2 - 2) and size < target * 1000:
            return x
        last = size
    raise NotConverged(
        f"The root was not polished to {dps} digits: the last step was {mp.nstr(last, 3)}.", x, float(last)
    )
