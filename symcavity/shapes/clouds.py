"""Hulls of finitely many points: projections by a batched active-set method."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy
from numpy.typing import ArrayLike, NDArray

from symcavity.errors import DeclarationError, NotConverged, ValuesError
from symcavity.shapes.base import (
    INTERIOR,
    PARTIAL,
    TOUCHING,
    WHOLE,
    Array,
    Nearest,
    Projection,
    Shape,
    ShapeWarning,
    batch,
    bound,
    finish,
    vectors,
)
from symcavity.shapes.hull import Frame, nearest_points
from symcavity.shapes.projection import active_set, block_size, polish

FLAT, ROUNDING = 1e-6, 1e-12
"""Relative thickness below which a cloud is reported as nearly flat, and below which it counts as flat."""


class PointCloud(Shape):
    """The convex hull of points, given as they lie in R^(D+1).

    Parameters
    ----------
    points : array_like, shape (points, D+1)
        One point per row.

    Attributes
    ----------
    points : ndarray
        The distinct points.
    rank : int
        Dimension of their linear span; sources are absorbed within it only.

    Raises
    ------
    DeclarationError
        If the array is empty or not two-dimensional, holds NaN or infinities, or has the origin in its hull.

    Warns
    -----
    ShapeWarning
        For repeated points (dropped), and for a nearly flat cloud.

    Examples
    --------
    >>> from symcavity import PointCloud
    >>> cloud = PointCloud([[1, 0, 1], [0, 1, 1], [-1, -1, 1]])
    >>> float(cloud.support([1, 1, 1]))
    -1.0
    """

    _frame: Frame | None = None

    def __init__(self, points: ArrayLike) -> None:
        array = _table(points, "points", "D+1")
        if array.ndim != 2:
            raise DeclarationError(
                f"points has {array.ndim} dimensions, shape {array.shape}.",
                "two: (points, D+1)",
                "points[None, :] makes one row of a single point.",
            )
        if array.size == 0:
            raise DeclarationError(f"The cloud is empty: shape {array.shape}.", "at least one point")
        if not np.isfinite(array).all():
            bad = int((~np.isfinite(array).all(axis=1)).sum())
            raise DeclarationError(
                f"{bad} of {len(array)} points have NaN or infinite coordinates.", "finite coordinates"
            )
        self._exact_integers = np.asarray(points).dtype.kind in "iu"
        self._scale = float(np.abs(array).max())
        if self._scale == 0:
            raise DeclarationError("All points are at the origin.", "a hull without the origin")
        self.points: Array = self._distinct(array)
        self._measure()

    def _distinct(self, array: Array) -> Array:
        rounded = np.round(array / self._scale, 12) + 0.0
        _, first = np.unique(rounded, axis=0, return_index=True)
        if first.size < len(array):
            warnings.warn(
                f"{len(array) - first.size} of {len(array)} points repeat others and are dropped.",
                ShapeWarning,
                stacklevel=4,
            )
        return array[np.sort(first)]

    def _measure(self) -> None:
        """Find the span, warn of thin directions, and make sure that the origin is outside."""
        _, sizes, axes = np.linalg.svd(self.points / self._scale, full_matrices=False)
        self.rank = int((sizes > ROUNDING * sizes[0] * max(self.points.shape)).sum())
        basis = axes[: self.rank].T
        self._basis: Array | None = basis if self.rank < self.points.shape[1] else None
        self._inside: Array = np.ascontiguousarray(
            self.points @ basis if self._basis is not None else self.points
        )
        self._columns: Array = np.ascontiguousarray(self._inside.T)
        # The shortest v with v.s >= 1 for all s has the inverse length of the distance of the hull.
        unit = self._inside / self._scale
        residual = _least_distance(unit, np.ones(len(unit)))
        self.distance = 0.0 if residual is None else self._scale / float(np.linalg.norm(residual))
        if self.distance < 1e-9 * self._scale:
            raise DeclarationError(
                "The origin is in the convex hull of the points (or touches it).",
                "a hull that a plane through the origin leaves on one side",
                "displace the cloud along a further coordinate: "
                "numpy.column_stack([points, numpy.ones(len(points))]).",
            )
        thin = sizes[self.rank - 1] / sizes[0]
        if self.rank > 1 and thin < FLAT:
            warnings.warn(
                f"The cloud is nearly flat: its thinnest direction is {thin:.1e} of its widest, and is kept. "
                "Regimes and S_w depend on it; drop it if it is noise.",
                ShapeWarning,
                stacklevel=4,
            )
        plane, *_ = np.linalg.lstsq(unit, np.ones(len(unit)), rcond=None)
        self._planar = bool(np.abs(unit @ plane - 1).max() < 1e-9) and len(unit) > 1

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.points)} points in R^{self.dimension})"

    @property
    def dimension(self) -> int:
        """D+1, the number of coordinates."""
        return int(self.points.shape[1])

    def support(self, V: ArrayLike) -> Array:
        """Return the smallest V.s over the points, shape (...)."""
        return np.asarray((vectors(V, self.dimension, "V") @ self.points.T).min(axis=-1))

    def anchor(self, V: ArrayLike) -> Array:
        """Return the point with the smallest V.s, shape (..., D+1)."""
        return np.asarray(self.points[(vectors(V, self.dimension, "V") @ self.points.T).argmin(axis=-1)])

    def hessian(self, V: ArrayLike) -> Array:
        """Return zeros: g_S is linear on each cone of directions with one nearest point.

        Raises
        ------
        ValuesError
            Where two points are equally near.
        """
        V = vectors(V, self.dimension, "V")
        if len(self.points) > 1:
            near = np.partition(V @ self.points.T, 1, axis=-1)
            size = self._scale * np.abs(V).max(axis=-1)
            if (near[..., 1] - near[..., 0] <= 1e-12 * size).any():
                raise ValuesError("g_S is not differentiable where two points are equally near.", "other V")
        return np.zeros((*V.shape, self.dimension))

    def symbolic_support(self, V: Sequence[sympy.Expr]) -> sympy.Expr:
        """Return the minimum over the points, unevaluated; decimals become rationals as printed.

        SymPy compares the arguments of ``Min`` pairwise when it substitutes or differentiates, which takes
        minutes from some tens of points on; ``lambdify`` is quick.
        """
        listed = self._components(V)
        rows = [
            [sympy.Integer(int(x)) if self._exact_integers else sympy.Rational(repr(float(x))) for x in row]
            for row in self.points
        ]
        heights = [sum((x * y for x, y in zip(row, listed, strict=True)), sympy.Integer(0)) for row in rows]
        return heights[0] if len(heights) == 1 else sympy.Min(*heights, evaluate=False)

    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project onto {v : v.s >= kappa for every point s}, to rounding.

        psi is minus the number of linearly independent points that carry the projection.

        Raises
        ------
        NotConverged
            If a sample cannot be solved, which a cloud that passed the checks of the constructor does not do.
        """
        t = batch(t, self.dimension)
        kappa = bound(kappa)
        block = block_size(self.rank)
        parts = [self._block(t[start : start + block], kappa) for start in range(0, max(1, len(t)), block)]
        v, lam, anchor, regime, count = (np.concatenate(part) for part in zip(*parts, strict=True))
        return finish(t, v, lam, anchor, regime, count, -count.astype(float))

    def raised(self, x: float) -> PointCloud:
        """Return the points with one more coordinate; what is to be said of them was said."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapeWarning)
            return PointCloud(np.column_stack([self.points, np.full(len(self.points), x)]))

    def nearest(self, x: ArrayLike) -> Nearest:
        """Return the points of the hull nearest to x, to rounding, and the projectors on their faces."""
        x = batch(x, self.dimension, "x")
        if self._frame is None:
            self._frame = Frame(self.points, ROUNDING * max(self.points.shape))
        frame = self._frame
        return frame.outside(*nearest_points(frame.within(self.points), frame.within(x)))

    def _oracle(self, v: Array, _rows: NDArray[np.int64] | None = None) -> tuple[Array, Array, NDArray[np.int64]]:
        heights = v @ self._columns
        nearest = heights.argmin(axis=1)
        return self._inside[nearest], np.take_along_axis(heights, nearest[:, None], axis=1)[:, 0], nearest

    def _block(
        self, t: Array, kappa: float
    ) -> tuple[Array, Array, Array, NDArray[np.int8], NDArray[np.int64]]:
        reduced = t if self._basis is None else t @ self._basis
        tolerance = 1e-12 * (abs(kappa) + self._scale * max(1.0, float(np.abs(reduced).max(initial=0.0))))
        found = active_set(reduced, kappa, self._oracle, tolerance, 40 * (self.rank + 10))
        for row in np.flatnonzero(~found.finished):
            self._alone(reduced, kappa, int(row), found)
        polish(reduced, kappa, found)
        weights = np.where(found.labels >= 0, found.weights, 0.0)
        lam = weights.sum(axis=1)
        moved = np.matmul(weights[:, None, :], found.points)[:, 0]
        count = np.count_nonzero(weights > 0, axis=1)
        regime = np.where(count == 0, INTERIOR, np.where(count == 1, TOUCHING, PARTIAL))
        if self._planar:
            regime = np.where(count == self.rank, WHOLE, regime)
        with np.errstate(divide="ignore", invalid="ignore"):
            anchor = np.where((count > 0)[:, None], moved / lam[:, None], self._oracle(reduced)[0])
        v = found.v
        if self._basis is not None:
            v, anchor = t + (found.v - reduced) @ self._basis.T, anchor @ self._basis.T
        return v, lam, anchor, regime.astype(np.int8), count

    def _alone(self, t: Array, kappa: float, row: int, found: Any) -> None:
        """Solve one sample that the lockstep left, by non-negative least squares."""
        step = _least_distance(self._inside / self._scale, (kappa - self._inside @ t[row]) / self._scale)
        active = None
        if step is not None:
            slack = self._inside @ (t[row] + step) - kappa
            near = np.flatnonzero(slack < 1e-8 * self._scale * (1 + np.abs(step).max()))
            from scipy.optimize import nnls

            weights, miss = nnls(self._inside[near].T, step)
            if miss < 1e-8 * (1 + np.linalg.norm(step)) and np.count_nonzero(weights) <= self.rank:
                active = near[weights > 0]
        if active is None:
            raise NotConverged(
                "The projection of a sample onto the feasible cone was not found.",
                t[row],
                hint="rescale the cloud, or remove directions that are nearly flat.",
            )
        found.labels[row], found.points[row], found.weights[row] = -1, 0.0, 0.0
        found.labels[row, : active.size] = active
        found.points[row, : active.size] = self._inside[active]
        found.weights[row, : active.size] = weights[weights > 0]
        found.v[row], found.finished[row] = t[row] + step, True


def _table(values: ArrayLike, name: str, width: str) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DeclarationError(f"{name} is not a rectangular array of numbers.", f"shape (points, {width})") from None


def _least_distance(S: Array, h: Array) -> Array | None:
    """Return the shortest x with S x >= h, or None if there is none (Lawson and Hanson, problem LDP)."""
    from scipy.optimize import nnls

    matrix = np.vstack([S.T, h])
    target = np.zeros(matrix.shape[0])
    target[-1] = 1.0
    weights, size = nnls(matrix, target, maxiter=30 * max(matrix.shape))
    residual = matrix @ weights - target
    if size**2 < 1e-20 or residual[-1] >= 0:
        return None
    return np.asarray(-residual[:-1] / residual[-1])


class Polytope(PointCloud):
    """The convex hull of vertices; points inside the hull of the others are removed.

    Parameters
    ----------
    vertices : array_like, shape (points, D)
        Points in the D dimensions of the polytope; the last coordinate is added.
    center : number or None, optional
        Value of the further coordinate that is appended, as for balls; None takes the vertices as they lie in
        R^(D+1).

    Attributes
    ----------
    points : ndarray
        The vertices that are left.

    Examples
    --------
    >>> from symcavity import Polytope
    >>> inside = Polytope([[1, 1], [-1, 1], [0, 1]])
    >>> float(inside.support([1, 2, 3]))
    4.0
    """

    def __init__(self, vertices: ArrayLike, *, center: float | None = 1) -> None:
        array = _table(vertices, "vertices", "D")
        if center is not None and array.ndim == 2 and array.size:
            if not np.isfinite(center) or center <= 0:
                raise DeclarationError(f"The distance of the center is {center}.", "center > 0, or None")
            array = np.column_stack([array, np.full(len(array), float(center))])
        super().__init__(array)
        keep = self._extreme()
        if keep.size < len(self.points):
            self.points = self.points[keep]
            self._inside = np.ascontiguousarray(self._inside[keep])
            self._columns = np.ascontiguousarray(self._inside.T)

    def _extreme(self) -> NDArray[np.int64]:
        """Return the rows that are not in the hull of the others."""
        from scipy.optimize import nnls

        keep = np.ones(len(self._inside), dtype=bool)
        lifted = np.column_stack([self._inside / self._scale, np.ones(len(self._inside))])
        for row in range(len(lifted)):
            keep[row] = False
            if not keep.any() or nnls(lifted[keep].T, lifted[row])[1] > 1e-10:
                keep[row] = True
        return np.flatnonzero(keep)
