"""The inverse of a monotone function at many values at once, within its range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.constants import BRACKETED

COUNT = 16  # nodes of one panel
MOST_TOGETHER = 2**25  # nodes of nested averages, which are all held at once


def refuse_many(edges: Sequence[int], count: int) -> None:
    """Refuse nested averages whose nodes do not fit in memory, before any are placed."""
    size = prod(edges) * count
    if size > MOST_TOGETHER:
        raise UnsupportedLaw(
            f"The averages of this law are nested over {len(edges)} variables, with {size:.0e} nodes.",
            f"averages of up to {MOST_TOGETHER:.0e} nodes: two or three variables",
            "fewer fields in the law: one coupling in place of several whose sums enter as one combination; "
            "fewer values of parameters",
        )


def beside(low: Any, high: Any) -> Any:
    """A place inside of a range, for each row of nodes."""
    first = np.asarray(low if low is not None else high - 2.0, dtype=float)
    last = np.asarray(high if high is not None else low + 2.0, dtype=float)
    return ((first + last) / 2)[..., None]


def within(law: Callable[[Any], tuple[Any, Any]], low: Any, high: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Go on beyond the range of an unknown by straight lines: the law is one-to-one inside of it only."""
    if low is None and high is None:
        return law
    bottom, top = (v if v is None else np.asarray(v, dtype=float)[..., None] for v in (low, high))
    with np.errstate(all="ignore"):
        way = np.where(law(beside(low, high))[1] < 0, -1.0, 1.0)

    def extended(x: Any) -> tuple[Any, Any]:
        inside = np.clip(x, bottom, top)
        value, slope = law(inside)
        slope = np.where(x == inside, slope, way * (1 + np.nan_to_num(np.abs(slope))))  # an end may be a kink
        return value + slope * (x - inside), slope

    return extended


def invert(
    law: Callable[[Any], tuple[Any, Any]],
    targets: np.ndarray,
    start: np.ndarray | None = None,
    near: float = 0.3,
    *,
    each: bool = False,
) -> np.ndarray:
    """Solve ``psi(x) = target`` for a monotone psi and all targets at once, to within ``near``.

    Newton steps within a bracket, which shrinks with every step: where one would leave it, it is halved.

    Parameters
    ----------
    law : callable
        Gives psi and its slope at an array of x, whose last axis runs over the targets.
    targets : array
    start : array, optional
        Where to begin.
    near : float
        By how much psi may miss its targets.
    each : bool
        Whether what does not reach its targets is not a number, instead of an error.

    Raises
    ------
    NotConverged
        If a target is not reached within the range of doubles.
    """
    with np.errstate(all="ignore"):
        probe, slope = law(np.array([0.1]))
        shape = np.broadcast_shapes(np.shape(probe)[:-1], np.shape(slope)[:-1])
        refuse_many((*shape, len(targets)), COUNT)
        wanted = np.broadcast_to(targets, (*shape, len(targets)))
        x = np.zeros(wanted.shape) if start is None or start.shape != wanted.shape else start
        way = np.where(np.broadcast_to(slope, (*shape, 1)) < 0, -1.0, 1.0)
        x, ended, bracket = _searched(law, wanted, x, way, near, each=each)
    if ended.all():
        return x
    if each:
        return np.where(ended.all(axis=-1, keepdims=True), x, np.nan)
    raise NotConverged("An implicit law could not be bracketed.", bracket, float("nan"))


def _searched(
    law: Callable[[Any], tuple[Any, Any]], wanted: np.ndarray, x: np.ndarray, way: Any, near: float, *, each: bool
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Where the steps end, whether they are there, and the brackets; ``way`` is the sign of psi's slope."""
    low, high = np.full(wanted.shape, -np.inf), np.full(wanted.shape, np.inf)
    stride = np.ones(wanted.shape)
    for _ in range(BRACKETED):
        value, slope = law(x)
        miss = way * (value - wanted)
        done = np.abs(miss) < near
        if done.all():
            return x, done, (low, high)
        over = miss > 0
        low, high = np.where(over, low, x), np.where(over, x, high)
        step = np.where(way * np.sign(slope) > 0, x - miss / np.abs(slope), np.nan)
        open_ = ~(np.isfinite(low) & np.isfinite(high))
        fresh = _next_place(x, step, open_, (low, high), np.where(over, -stride, stride))
        stride = np.where(open_, stride * 2, stride)
        stuck = ~open_ & (high - low <= 4e-16 * np.maximum(np.abs(low), np.abs(high)))
        ended = done | stuck
        if ended.all():
            return x, ended, (low, high)
        x = np.where(done, x, fresh)
        lost = ~(done | (np.abs(x) < 1e150))
        if lost.any() and (not each or (ended | lost).all()):
            break
    return x, ended, (low, high)


def _next_place(
    x: np.ndarray, step: np.ndarray, open_: np.ndarray, ends: tuple[np.ndarray, np.ndarray], stride: np.ndarray
) -> np.ndarray:
    """Newton's step where it stays in a bracket, and its middle elsewhere; outside of one, no more than a stride."""
    low, high = ends
    bounded = np.where(np.abs(step - x) <= np.abs(stride), step, x + stride)  # a step may overshoot wildly there
    inside = (step > low) & (step < high)
    return np.where(open_, np.where(np.isfinite(step), bounded, x + stride), np.where(inside, step, (low + high) / 2))
