"""Nearest points of convex hulls, for many samples at once.

The point of conv{p_k} nearest to x is a projection on a cone: the smallest of |sum c_k (p_k - x)|^2 +
(sum c_k - 1)^2 over c >= 0 has s = sum c_k p_k / sum c_k, because the first term is quadratic in the sum of
the c_k.  It is the projection of (0, ..., 0, -1) on {v : v.(p_k - x, 1) >= 0}, which `active_set` finds; the
oracle for it is the anchor function of the set, as everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symcavity.shapes.base import Array, Nearest
from symcavity.shapes.projection import active_set, block_size

Labels = NDArray[np.int64]
Anchors = Callable[[Array, Labels], tuple[Array, Labels]]
"""v (samples, r) and the samples that they belong to -> (points with the smallest v.p, their labels)."""

NUDGE = 1e-7
"""Displacement, in units of the set, that leads off the points where several faces meet."""


class Frame:
    """Coordinates in the affine span of a set, centered and in units of its size.

    Parameters
    ----------
    points : ndarray, shape (points, D+1)
        Enough points of the set to span it.
    thin : float
        Relative thickness below which a direction is flat.
    """

    def __init__(self, points: Array, thin: float) -> None:
        self.origin: Array = points.mean(axis=0)
        _, sizes, axes = np.linalg.svd(points - self.origin, full_matrices=False)
        extent = float(sizes[0])
        flat = extent <= thin * float(np.abs(points).max(initial=0.0))
        self.basis: Array = np.ascontiguousarray(axes[: 0 if flat else int((sizes > thin * extent).sum())].T)
        reach = np.square((points - self.origin) @ self.basis).sum(axis=1)
        self.size = float(np.sqrt(reach.max(initial=0.0))) or 1.0

    @property
    def rank(self) -> int:
        """Dimension of the affine span."""
        return self.basis.shape[1]

    def within(self, x: Array) -> Array:
        """Coordinates of points, or of their projections on the span."""
        return np.asarray((x - self.origin) @ self.basis / self.size)

    def outside(self, s: Array, jacobian: Array, free: Labels) -> Nearest:
        """Carry nearest points back to the space that the set lies in."""
        turned = np.matmul(np.matmul(self.basis, jacobian), self.basis.T)
        return Nearest(self.origin + self.size * s @ self.basis.T, turned, free)


@dataclass(frozen=True)
class Carriers:
    """Points of the set whose hull carries the nearest points, with their weights.

    Attributes
    ----------
    s : ndarray, shape (samples, r)
        The nearest points.
    points : ndarray, shape (samples, r + 1, r)
        One per row.
    weights : ndarray, shape (samples, r + 1)
        They are positive and sum to one; zero in the empty slots.
    labels : ndarray, shape (samples, r + 1)
        The oracle's labels, -1 in the empty slots.
    closed : ndarray of bool, shape (samples,)
        Whether no point of the set is nearer, to the tolerance.
    """

    s: Array
    points: Array
    weights: Array
    labels: Labels
    closed: NDArray[np.bool_]


def carriers(x: Array, anchors: Anchors, tolerance: float, max_steps: int) -> Carriers:
    """Find points of the set whose hull carries the point nearest to each row of x.

    Parameters
    ----------
    x : ndarray, shape (samples, r)
        In coordinates in which the set is of order one.
    anchors : callable
    tolerance : float
        Of the cone's constraints: the relative error of s is its square root at worst.
    max_steps : int
    """
    # a scale like the length of p - x keeps the lifted points apart, however far x is
    scale = 1.0 + np.sqrt(np.square(x).sum(axis=1, keepdims=True))
    target = np.zeros((len(x), x.shape[1] + 1))
    target[:, -1] = -1.0

    def oracle(v: Array, rows: Labels) -> tuple[Array, Array, Labels]:
        point, label = anchors(v[:, :-1], rows)
        lifted = np.ones_like(v)
        lifted[:, :-1] = (point - x[rows]) / scale[rows]
        return lifted, np.einsum("ka,ka->k", v, lifted), label

    found = active_set(target, 0.0, oracle, tolerance, max_steps)
    labels = np.where(found.weights > 0, found.labels, -1)
    total = found.weights.sum(axis=1)
    closed = found.finished & (found.weights.min(axis=1) >= 0) & (total > 0)
    weights = np.where(closed[:, None] & (labels >= 0), found.weights / np.where(closed, total, 1.0)[:, None], 0.0)
    points = x[:, None, :] + scale[:, :, None] * found.points[:, :, :-1]
    for row in np.flatnonzero(~closed):
        labels[row], points[row], weights[row], closed[row] = one_by_one(x, int(row), anchors, tolerance)
    s = np.matmul(weights[:, None, :], points)[:, 0]
    return Carriers(s, points, weights, labels, closed)


def one_by_one(x: Array, row: int, anchors: Anchors, tolerance: float) -> tuple[Labels, Array, Array, bool]:
    """Carriers of the point nearest to one x by the algorithm of Wolfe (Math. Program. 11, 128, 1976).

    It is slower than the lockstep, and bears points that nearly coincide.
    """
    r, rows = x.shape[1], np.array([row])
    first, label = anchors(np.zeros((1, r)), rows)
    q, labels, w, closed = first - x[row], label, np.ones(1), False
    for _ in range(100 * (r + 10)):
        y = w @ q
        new, label = anchors(y[None], rows)
        new -= x[row]
        apart = float(np.abs(q - new).max(axis=1).min())
        closed = bool(y @ (y - new[0]) <= tolerance * (1 + y @ y) + 1e-30)
        if closed or apart < 1e-15:
            break
        q, labels, w = np.concatenate([q, new]), np.append(labels, label), np.append(w, 0.0)
        while len(q) > 1:
            rest = np.linalg.lstsq((q[1:] - q[0]).T, -q[0], rcond=None)[0]
            a = np.append(1 - rest.sum(), rest)
            falling = a <= 1e-14
            if not falling.any():
                w = a
                break
            reach = np.where(falling, w / np.where(falling, np.maximum(w - a, 1e-300), 1.0), np.inf)
            w = w + min(1.0, reach.min()) * (a - w)
            w[reach.argmin()] = 0.0
            stay = w > 0
            q, labels, w = q[stay], labels[stay], w[stay] / w[stay].sum()
    count = min(len(q), r + 1)
    points, weights, kept = np.zeros((r + 1, r)), np.zeros(r + 1), np.full(r + 1, -1, dtype=np.int64)
    points[:count], weights[:count], kept[:count] = x[row] + q[:count], w[:count], labels[:count]
    return kept, points, weights, closed


def nearest_points(points: Array, x: Array) -> tuple[Array, Array, Labels]:
    """Return the nearest points of conv(points), their derivatives and the dimensions of their faces.

    Parameters
    ----------
    points : ndarray, shape (points, r)
        They span the space, and are of order one.
    x : ndarray, shape (samples, r)
    """
    block = block_size(x.shape[1] + 1)
    parts = [_block(points, x[start : start + block]) for start in range(0, max(1, len(x)), block)]
    s, jacobian, free = (np.concatenate(part) for part in zip(*parts, strict=True))
    return s, jacobian, free


def _block(points: Array, x: Array) -> tuple[Array, Array, Labels]:
    count, r = x.shape
    if r == 0:
        return np.zeros((count, 0)), np.zeros((count, 0, 0)), np.zeros(count, dtype=np.int64)
    active = _active(points, x)
    s, jacobian, ok = _on_faces(points, x, active)
    v = s - x
    heights = v @ points.T
    level, length = (v * s).sum(axis=1), np.sqrt(np.square(v).sum(axis=1))
    ok &= level - heights.min(axis=1) <= 1e-13 * length + 1e-15
    if not ok.all():
        rows = np.flatnonzero(~ok)
        anchors = _anchors(points, x)
        active[rows] = [one_by_one(x, int(row), anchors, 1e-16)[0] for row in rows]
        s[rows], jacobian[rows], _ = _on_faces(points, x[rows], active[rows])
    # Where a face holds more points than carry s, its dimension is not their number: a nearby x tells it.
    free = np.count_nonzero(active >= 0, axis=1) - 1
    tight = np.count_nonzero(heights <= (level + 1e-10 * length + 1e-14)[:, None], axis=1)
    rows = np.flatnonzero((tight > free + 1) & (free < np.where(length > 1e-10, r - 1, r)))
    if rows.size:
        moved = x[rows] + NUDGE * np.random.default_rng(5).normal(size=(rows.size, r))
        nearby = _active(points, moved)
        _, turned, ok = _on_faces(points, moved, nearby)
        rows, nearby, turned = rows[ok], nearby[ok], turned[ok]
        jacobian[rows], free[rows] = turned, np.count_nonzero(nearby >= 0, axis=1) - 1
    return s, jacobian, free


def _anchors(points: Array, x: Array) -> Anchors:
    columns, squares = np.ascontiguousarray(points.T), np.square(points).sum(axis=1) / 2

    def anchors(v: Array, rows: Labels) -> tuple[Array, Labels]:
        heights = v @ columns
        start = np.flatnonzero(np.logical_not(v.any(axis=1)))
        if start.size:  # every point is an anchor of v = 0: begin with the one that is nearest to x
            heights[start] = squares - x[rows[start]] @ columns
        label = heights.argmin(axis=1)
        return points[label], label

    return anchors


def _active(points: Array, x: Array) -> Labels:
    """Labels of the points that carry s, the empty slots last."""
    return -np.sort(-carriers(x, _anchors(points, x), 1e-14, 40 * (x.shape[1] + 10)).labels, axis=1)


def _on_faces(points: Array, x: Array, active: Labels) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Project on the affine spans of the active points, and tell whether s is between them."""
    s, jacobian = np.zeros_like(x), np.zeros((*x.shape, x.shape[1]))
    ok = np.ones(len(x), dtype=bool)
    count = np.count_nonzero(active >= 0, axis=1)
    for k in np.unique(count):
        rows = np.flatnonzero(count == k)
        corners = points[active[rows, :k]]
        s[rows] = first = corners[:, 0]
        if k == 1:
            continue
        Q, R = np.linalg.qr((corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1))
        along = np.matmul((x[rows] - first)[:, None, :], Q)
        jacobian[rows] = np.matmul(Q, Q.transpose(0, 2, 1))
        s[rows] += np.matmul(along, Q.transpose(0, 2, 1))[:, 0]
        solid = np.abs(np.einsum("kaa->ka", R)).min(axis=1) > 1e-12
        R[~solid] = np.eye(k - 1)
        weights = np.linalg.solve(R, along.transpose(0, 2, 1))[:, :, 0]
        ok[rows] = solid & (weights.min(axis=1) > -1e-9) & (weights.sum(axis=1) < 1 + 1e-9)
    return s, jacobian, ok
