"""States by brackets: the inverse of a law at all fields at once, which no rule of the engine has a part in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcavity.errors import NotConverged

DOUBLINGS, SEARCHED = 200, 600  # of brackets; places at which a state is looked for
WALKED = 400  # places on the way downhill
INSIDE, SLACK = 12, 1e-9  # places between two states; of the range of all fields, what is rounding


def within(
    lines: list[Callable[..., Any]], call: Callable[..., Any], fields: np.ndarray
) -> Callable[[np.ndarray], Any]:
    """The field as a function of an unknown, which goes on straight where conditions that are lines end it."""
    low, high = np.full(fields.shape[1], -np.inf), np.full(fields.shape[1], np.inf)
    for line in lines:
        start, slope = line(0.0, *fields), line(1.0, *fields) - line(0.0, *fields)
        low = np.where(slope > 0, np.maximum(low, -start / slope), low)
        high = np.where(slope < 0, np.minimum(high, -start / slope), high)
    inside = np.where(np.isfinite(low), low, high - 1)
    inside = np.where(np.isfinite(inside), inside, 0.0)
    far = np.where(np.isfinite(high), high, inside + 1)
    with np.errstate(all="ignore"):
        way = np.where(call(far, *fields) < call(inside, *fields), -1.0, 1.0)

    def psi(x: np.ndarray) -> Any:
        at = np.clip(x, low, high)
        with np.errstate(all="ignore"):
            return call(at, *fields) + way * (x - at)

    return psi


def bisected(psi: Callable[[np.ndarray], Any], targets: np.ndarray) -> np.ndarray:
    """Solve ``psi(x) = target`` for a monotone psi: bracket outwards, then bisect."""
    with np.errstate(all="ignore"):
        grows = np.all(psi(np.full_like(targets, 0.5)) >= psi(np.full_like(targets, -0.5)))
    sign = 1.0 if grows else -1.0

    def f(x: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return sign * (np.asarray(psi(x), dtype=float) - targets)

    low, high = np.full_like(targets, -1.0), np.full_like(targets, 1.0)
    for _ in range(200):
        bad_low, bad_high = ~(f(low) <= 0), ~(f(high) >= 0)
        if not (bad_low.any() or bad_high.any()):
            break
        low, high = np.where(bad_low, low * 2, low), np.where(bad_high, high * 2, high)
    else:
        raise NotConverged("An implicit law could not be bracketed.", (low, high), float("nan"))
    return _between(f, low, high)


def lowest(psi: Callable[[np.ndarray], Any], targets: np.ndarray) -> np.ndarray:
    """Solve ``psi(x) = target`` where the integral of ``psi - target`` is lowest, by search: psi rises far out."""
    low, high = _ends(psi, targets)
    step = (high - low) / SEARCHED
    before, level = psi(low) - targets, np.zeros_like(targets)
    best, place = np.zeros_like(targets), low.copy()
    for k in range(1, SEARCHED + 1):
        x = low + k * step
        now = psi(x) - targets
        level = level + (before + now) / 2 * step
        better = level < best
        best, place, before = np.where(better, level, best), np.where(better, x, place), now
    return _between(lambda x: np.asarray(psi(x) - targets, dtype=float), place - step, place + step)


def reached(start: Callable[[np.ndarray], Any], psi: Callable[[np.ndarray], Any], targets: np.ndarray) -> np.ndarray:
    """Solve ``psi(x) = target`` by search: the first root downhill from the lowest state of another slope."""
    x = lowest(start, targets)
    way = np.where(psi(x) < targets, 1.0, -1.0)

    def short(y: np.ndarray) -> np.ndarray:
        """Below zero on the way."""
        return np.asarray(way * (psi(y) - targets), dtype=float)

    low, high = _ends(psi, targets)
    far = np.where(way > 0, np.maximum(high, x), np.minimum(low, x))
    step = (far - x) / WALKED
    two, one, found = short(x), short(x + step), short(x) >= 0
    near, beyond = x.copy(), x.copy()
    for k in range(2, WALKED + 2):
        y = x + k * step
        now = short(y)
        crossed = ~found & (one >= 0)
        near, beyond = np.where(crossed, y - 2 * step, near), np.where(crossed, y - step, beyond)
        found |= crossed
        with np.errstate(all="ignore"):  # a root and another one between two places: at the top of a parabola
            top = (two - now) / (2 * (two - 2 * one + now))
            level = one - (two - now) ** 2 / (8 * (two - 2 * one + now))
        crossed = ~found & (one > two) & (one > now) & (level >= 0)
        near, beyond = np.where(crossed, y - 2 * step, near), np.where(crossed, y - step + top * step, beyond)
        found |= crossed
        two, one = one, now
    return way * _between(lambda y: short(way * y), way * near, way * beyond)


def _ends(psi: Callable[[np.ndarray], Any], targets: np.ndarray) -> list[np.ndarray]:
    """Places beyond which psi is below the targets, and above them: psi rises far out."""
    ends = [np.full_like(targets, way) for way in (-1.0, 1.0)]
    for k, way in enumerate((-1.0, 1.0)):
        for _ in range(DOUBLINGS):
            far = np.stack([way * (psi(ends[k] * m) - targets) for m in (1.0, 2.0, 4.0, 8.0)])
            bad = ~(far > 0).all(axis=0)
            if not bad.any():
                break
            ends[k] = np.where(bad, 2 * ends[k], ends[k])
        else:
            raise NotConverged("An implicit law could not be bracketed.", tuple(ends), float("nan"))
    return ends


def jumps(psi: Callable[[np.ndarray], Any], states: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Whether the lowest state jumps from each of some rising targets to the next: psi leaves their range between."""
    size = np.ptp(targets)
    beyond = np.zeros(len(targets) - 1, dtype=bool)
    for share in np.linspace(0, 1, INSIDE)[1:-1]:
        x = states[:-1] + share * np.diff(states)
        value = psi(np.append(x, x[-1]))[:-1]
        beyond |= (value < targets[:-1] - SLACK * size) | (value > targets[1:] + SLACK * size)
    return beyond


def _between(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The roots of a growing function in brackets: bisection, or a parabola where three values lie on one.

    Chandrupatla, Advances in Engineering Software 28, 145 (1997).
    """
    a, b, share = high, low, np.full_like(low, 0.5)
    with np.errstate(all="ignore"):
        at_a, at_b = f(a), f(b)
        for _ in range(200):
            x = a + share * (b - a)
            at_x = np.nan_to_num(f(x), nan=-np.inf)
            same = (at_x >= 0) == (at_a >= 0)
            c, at_c = np.where(same, a, b), np.where(same, at_a, at_b)
            b, at_b = np.where(same, b, a), np.where(same, at_b, at_a)
            a, at_a = x, at_x
            near = np.abs(at_a) < np.abs(at_b)
            best, width = np.where(near, a, b), np.abs(b - a)
            least = 2 * np.finfo(float).eps * np.abs(best) + 1e-24
            if np.all((width <= 2 * least) | (at_a == 0) | (at_b == 0)):
                return best
            xi, phi = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
            smooth = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            parabola = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            parabola += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
            margin = np.minimum(least / width, 0.5)
            share = np.where(smooth & np.isfinite(parabola), np.clip(parabola, margin, 1 - margin), 0.5)
    return best
