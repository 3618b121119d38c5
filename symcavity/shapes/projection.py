"""Euclidean projections onto {v : v.s >= kappa for every s in S}, for many samples at once.

The dual active-set method of Goldfarb and Idnani (Math. Program. 27, 1, 1983) runs on a whole batch in
lockstep. The constraints are never listed: an *oracle* returns, for each v, a point of S that minimizes v.s.
For a point cloud the oracle is one matrix product with the cloud; for any other convex set it is the set's
anchor function, and the method is then the cutting-plane method that keeps active cuts only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Oracle = Callable[[Array, NDArray[np.int64]], tuple[Array, Array, NDArray[np.int64]]]
"""v (samples, d), rows of the sources that they belong to (samples,)
-> (anchor points (samples, d), values v.s (samples,), labels (samples,))."""

CHUNK = 120_000
"""Entries of one table (samples, d, d) in lockstep: enough to hide Python, few enough for the cache."""


def block_size(d: int) -> int:
    """Return how many samples `active_set` should get at once, so that its answer stays small."""
    return max(32 if d <= 300 else 4, min(16384, 4_000_000 // d**2))


@dataclass
class ActiveSet:
    """The active constraints of every sample at the end of an active-set run.

    Attributes
    ----------
    v : ndarray, shape (samples, d)
        The projections.
    weights : ndarray, shape (samples, d)
        Multipliers c_k >= 0 of the active points, zero in the empty slots.
    points : ndarray, shape (samples, d, d)
        Active points, one per row, zero in the empty slots.
    labels : ndarray, shape (samples, d)
        The oracle's labels of the active points, -1 in the empty slots.
    finished : ndarray of bool, shape (samples,)
        Samples whose largest violation is below the tolerance.
    """

    v: Array
    weights: Array
    points: Array
    labels: NDArray[np.int64]
    finished: NDArray[np.bool_]


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("...i,...i->...", a, b)


@dataclass
class _Queue:
    """Every sample with one active point, and the point that this leaves most violated."""

    v: Array
    c: Array
    first: Array
    first_label: NDArray[np.int64]
    second: Array
    second_label: NDArray[np.int64]


class _Lockstep:
    """Dual feasible points of the samples of one chunk, their active sets and the dual bases of these."""

    def __init__(self, count: int, d: int, kappa: float) -> None:
        self.kappa, self.d = kappa, d
        self.home = np.zeros(count, dtype=np.int64)
        self.age = np.zeros(count, dtype=np.int64)
        self.v = np.zeros((count, d))
        self.c = np.zeros((count, d))
        self.points = np.zeros((count, d, d))
        self.basis = np.zeros((count, d, d))
        self.labels = np.full((count, d), -1, dtype=np.int64)
        self.new = np.zeros((count, d))
        self.new_c = np.zeros(count)
        self.new_label = np.full(count, -1, dtype=np.int64)
        self.pending = np.zeros(count, dtype=bool)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Forget every sample but `rows`."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[rows])

    def start(self, rows: NDArray[np.int64], queue: _Queue, home: NDArray[np.int64]) -> None:
        """Put fresh samples in the place of finished ones, so that the lockstep never runs half empty."""
        first = queue.first[home]
        self.home[rows], self.age[rows], self.v[rows] = home, 0, queue.v[home]
        self.points[rows], self.basis[rows] = 0.0, 0.0
        self.c[rows], self.labels[rows] = 0.0, -1
        self.points[rows, 0] = first
        self.basis[rows, 0] = first / _dot(first, first)[:, None]
        self.c[rows, 0], self.labels[rows, 0] = queue.c[home], queue.first_label[home]
        self.new[rows], self.new_c[rows], self.new_label[rows] = queue.second[home], 0.0, queue.second_label[home]
        self.pending[rows] = True

    def drop(self, rows: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
        """Remove one active point from each of `rows`, and project the dual basis accordingly."""
        leaving = self.basis[rows, slots]
        scale = _dot(leaving, leaving)
        scale[scale == 0] = 1.0
        basis = self.basis[rows]
        overlap = np.matmul(basis, leaving[:, :, None])[:, :, 0] / scale[:, None]
        basis -= overlap[:, :, None] * leaving[:, None, :]
        self.basis[rows] = basis
        self.basis[rows, slots] = 0.0
        self.points[rows, slots] = 0.0
        self.c[rows, slots] = 0.0
        self.labels[rows, slots] = -1

    def add(self, added: NDArray[np.bool_], h: Array, z: Array, size: Array) -> None:
        """Turn the pending points of the samples `added` into active ones."""
        row = z / size[:, None]
        if not added.all():
            row[~added] = 0.0
        self.basis -= h[:, :, None] * row[:, None, :]
        rows = np.flatnonzero(added)
        slots = np.argmin(self.labels[rows], axis=1)
        self.basis[rows, slots] = row[rows]
        self.points[rows, slots] = self.new[rows]
        self.c[rows, slots] = self.new_c[rows]
        self.labels[rows, slots] = self.new_label[rows]
        self.pending[rows] = False

    def step(self) -> None:
        """Move every sample along its dual direction: to the new constraint, or to the first that blocks."""
        h = np.matmul(self.basis, self.new[:, :, None])[:, :, 0]
        z = self.new - np.matmul(h[:, None, :], self.points)[:, 0]
        size = _dot(z, z)
        full = np.count_nonzero(self.labels >= 0, axis=1)
        independent = (size > 1e-20 * _dot(self.new, self.new)) & (full < self.d)
        safe = np.where(independent, size, 1.0)
        whole = np.where(independent, (self.kappa - _dot(self.new, self.v)) / safe, np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where((h > 1e-13) & (self.labels >= 0), self.c / h, np.inf)
        blocking = np.argmin(ratio, axis=1)
        part = np.take_along_axis(ratio, blocking[:, None], axis=1)[:, 0]
        length = np.minimum(whole, part)
        stuck = ~np.isfinite(length)
        length[stuck] = 0.0
        self.c -= length[:, None] * h
        np.maximum(self.c, 0.0, out=self.c)
        self.new_c += length
        self.v += np.where(independent, length, 0.0)[:, None] * z
        added = (whole <= part) & ~stuck
        if added.any():
            self.add(added, h, z, safe)
        rows = np.flatnonzero(~added & ~stuck)
        if rows.size:
            self.drop(rows, blocking[rows])
        self.pending[stuck] = False


def active_set(t: Array, kappa: float, oracle: Oracle, tolerance: float, max_steps: int) -> ActiveSet:
    """Project every row of `t` onto {v : v.s >= kappa for all s in S}.

    Parameters
    ----------
    t : ndarray, shape (samples, d)
        Points to be projected.
    kappa : float
        Margin.
    oracle : callable
        Maps v, and the rows of ``t`` that they belong to, to (argmin points, minimal values, labels); labels
        are non-negative.
    tolerance : float
        Largest violation ``kappa - min_s v.s`` that counts as none.
    max_steps : int
        Steps after which a sample is given up (``finished`` is then False).

    Returns
    -------
    ActiveSet
        For every sample the projection, and the points and multipliers that carry it.
    """
    count, d = t.shape
    out = ActiveSet(
        t.copy(),
        np.zeros((count, d)),
        np.zeros((count, d, d)),
        np.full((count, d), -1, dtype=np.int64),
        np.ones(count, dtype=bool),
    )
    queue, waiting = _enqueue(t, kappa, oracle, tolerance, out)
    size = min(waiting.size, max(32 if d <= 300 else 4, min(512, CHUNK // d**2)))
    state = _Lockstep(size, d, kappa)
    if size:
        state.start(np.arange(size), queue, waiting[:size])
    served = size
    while state.home.size:
        state.step()
        state.age += 1
        ask = np.flatnonzero(~state.pending)
        if not ask.size:
            continue
        point, value, label = oracle(state.v[ask], state.home[ask])
        short = value < kappa - tolerance
        state.new[ask], state.new_c[ask], state.new_label[ask] = point, 0.0, label
        state.pending[ask] = short
        old = state.age[ask] >= max_steps
        done = ask[~short | old]
        if done.size:
            _store(out, state, done, ~short[~short | old])
            fresh = waiting[served : served + done.size]
            served += fresh.size
            state.start(done[: fresh.size], queue, fresh)
            if fresh.size < done.size:
                left = np.ones(state.home.size, dtype=bool)
                left[done[fresh.size :]] = False
                state.keep(np.flatnonzero(left))
    return out


def _enqueue(
    t: Array, kappa: float, oracle: Oracle, tolerance: float, out: ActiveSet
) -> tuple[_Queue, NDArray[np.int64]]:
    """Solve the samples that need no or one active point; return the others."""
    first, value, label = oracle(t, np.arange(len(t)))
    size = _dot(first, first)
    touched = np.flatnonzero((value < kappa - tolerance) & (size > 0))
    out.finished[(value < kappa - tolerance) & (size == 0)] = False
    c = np.zeros(t.shape[0])
    c[touched] = (kappa - value[touched]) / size[touched]
    out.v[touched] += c[touched, None] * first[touched]
    out.weights[touched, 0], out.labels[touched, 0] = c[touched], label[touched]
    out.points[touched, 0] = first[touched]
    second, second_label = np.zeros_like(t), np.zeros_like(label)
    second[touched], value, second_label[touched] = oracle(out.v[touched], touched)
    waiting = touched[value < kappa - tolerance]
    return _Queue(out.v.copy(), c, first, label, second, second_label), waiting


def _store(out: ActiveSet, state: _Lockstep, rows: NDArray[np.int64], finished: NDArray[np.bool_]) -> None:
    home = state.home[rows]
    out.v[home], out.weights[home] = state.v[rows], state.c[rows]
    out.points[home], out.labels[home] = state.points[rows], state.labels[rows]
    out.finished[home] = finished


def polish(t: Array, kappa: float, found: ActiveSet) -> None:
    """Solve the equations of the final active sets afresh where the rank-one updates have drifted."""
    d = t.shape[1]
    active = found.labels >= 0
    moved = np.matmul(found.weights[:, None, :], found.points)[:, 0]
    drift = np.abs(t + moved - found.v).max(axis=1)
    slack = np.where(active, np.matmul(found.points, found.v[:, :, None])[:, :, 0] - kappa, 0.0)
    scale = 1.0 + np.abs(found.v).max(axis=1)
    rows = np.flatnonzero(found.finished & (np.maximum(drift, np.abs(slack).max(axis=1)) > 1e-14 * scale))
    for start in range(0, rows.size, 1024):
        chosen = rows[start : start + 1024]
        points = found.points[chosen]
        gram = np.matmul(points, points.transpose(0, 2, 1))
        gram[:, np.arange(d), np.arange(d)] += ~active[chosen]
        right = np.where(active[chosen], kappa - np.matmul(points, t[chosen][:, :, None])[:, :, 0], 0.0)
        try:
            weights = np.linalg.solve(gram, right[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            continue
        keep = np.isfinite(weights).all(axis=1) & (weights >= 0).all(axis=1)
        found.weights[chosen[keep]] = weights[keep]
        found.v[chosen[keep]] = t[chosen[keep]] + np.matmul(weights[keep, None, :], points[keep])[:, 0]
