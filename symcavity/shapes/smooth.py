"""Convex sets known by their anchor function: projections and nearest points."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symcavity.errors import DeclarationError, NotConverged
from symcavity.shapes.base import (
    INTERIOR,
    PARTIAL,
    TOUCHING,
    WHOLE,
    Array,
    Nearest,
    Projection,
    Shape,
    batch,
    bound,
    finish,
    vectors,
)
from symcavity.shapes.hull import Carriers, Frame, carriers
from symcavity.shapes.projection import active_set, block_size

STEP = 1e-4
"""Step of the central differences that give psi where no Hessian does."""

CLOSE, DISPLACEMENT, KICKS, SAME, FLAT = 1e-10, 1e-3, (1e-4, 0.0), 1e-3, 1e-7
"""Of nearest points: tolerance of the cutting planes; step of the differences; relative distances from a kink at
which its sides are looked at, 0 for none; distance below which two cuts are one point of S; relative thickness of what
counts as flat."""


class SmoothShape(Shape):
    """A convex set known by its anchor function: cutting planes, then Newton's method where g_S is smooth.

    Subclasses give `anchor`, `hessian` and `dimension`.
    """

    def support(self, V: ArrayLike) -> Array:
        """Return V.s at the anchor point s(V), shape (...)."""
        V = vectors(V, self.dimension, "V")
        return np.asarray((V * self.anchor(V)).sum(axis=-1))

    def _oracle(self, v: Array, _rows: NDArray[np.int64]) -> tuple[Array, Array, NDArray[np.int64]]:
        point = self.anchor(v)
        return point, (v * point).sum(axis=1), np.zeros(len(v), dtype=np.int64)

    def _check_origin(self) -> None:
        """Make sure that some plane through the origin leaves S on one side of it."""
        d = self.dimension
        scale = float(np.abs(self.anchor(np.eye(d))).max()) or 1.0
        found = active_set(np.zeros((1, d)), scale, self._oracle, 1e-7 * scale, 400)
        if not found.finished[0] or np.linalg.norm(found.v[0]) > 1e6:
            raise DeclarationError(
                "The origin is in the convex hull of the set (no V with g_S(V) > 0 was found).",
                "a set that a plane through the origin leaves on one side",
                "add a coordinate for the distance of the center.",
            )

    def project(self, t: ArrayLike, kappa: Any = 0) -> Projection:
        """Project onto {v : g_S(v) >= kappa}.

        Where g_S is smooth at the projection, Newton's method gives it to rounding and psi comes from the
        Hessian (A.10).  Elsewhere (tips, edges) the projection is that of the cutting planes, to 1e-9, and
        psi and the number of absorbed directions come from central differences of the projection itself.

        Raises
        ------
        NotConverged
            If the cutting planes do not close on a sample.
        """
        t = batch(t, self.dimension)
        kappa = bound(kappa)
        block = block_size(self.dimension)
        parts = [self._block(t[start : start + block], kappa) for start in range(0, max(1, len(t)), block)]
        v, lam, anchor, regime, absorbed, psi = (np.concatenate(part) for part in zip(*parts, strict=True))
        return finish(t, v, lam, anchor, regime, absorbed, psi)

    def _planes(self, t: Array, kappa: float) -> tuple[Array, Array]:
        size = max(1.0, float(np.abs(t).max(initial=0.0)))
        scale = float(np.abs(self.anchor(np.eye(self.dimension))).max()) or 1.0
        found = active_set(t, kappa, self._oracle, 1e-10 * (abs(kappa) + scale * size), 400 + 40 * self.dimension)
        if not found.finished.all():
            raise NotConverged(
                f"The cutting planes did not close on {int((~found.finished).sum())} samples.",
                found.v,
                hint="check that the anchor function returns exact minimizers.",
            )
        return found.v, found.weights.sum(axis=1)

    def _block(self, t: Array, kappa: float) -> tuple[Any, ...]:
        v, lam = self._planes(t, kappa)
        count, d = t.shape
        regime = np.where(lam > 0, PARTIAL, INTERIOR)
        absorbed, psi = np.zeros(count, dtype=np.int64), np.zeros(count)
        anchor = self.anchor(v)
        rows = np.flatnonzero(lam > 0)
        anchor[rows] = (v[rows] - t[rows]) / lam[rows, None]
        if rows.size:
            good, v2, lam2, s2, psi2 = self._newton(t[rows], v[rows], lam[rows], kappa)
            chosen = rows[good]
            v[chosen], lam[chosen], anchor[chosen] = v2[good], lam2[good], s2[good]
            psi[chosen], regime[chosen], absorbed[chosen] = psi2[good], TOUCHING, 1
            rows = rows[np.logical_not(good)]
        if rows.size:
            gradient = self._jacobian(t[rows], kappa)
            psi[rows] = np.trace(gradient, axis1=1, axis2=2) - d
            size = np.abs(np.linalg.eigvalsh((gradient + gradient.transpose(0, 2, 1)) / 2))
            absorbed[rows] = (size < 1e-3).sum(axis=1)
            far = -self.support(-v[rows])
            whole = far - kappa <= 1e-5 * (abs(kappa) + np.abs(far)) + 1e-7
            flat = whole & (absorbed[rows] == d)
            regime[rows] = np.where(flat, WHOLE, np.where(absorbed[rows] == 1, TOUCHING, PARTIAL))
            psi[rows[flat]] = -float(d)
        return v, lam, anchor, regime, absorbed, psi

    def nearest(self, x: ArrayLike) -> Nearest:
        """Return the points of the hull of S nearest to x, with their derivatives.

        With V = s - x, s is the gradient of g_S at V, or a mean of the gradients b_i on the sides of a kink.
        Newton's method for V + x = sum w_i b_i(V) with equal V.b_i gives s (to rounding where g_S is smooth,
        to 1e-7 at kinks), and differentiating these equations gives ds/dx: -(1 - H)^(-1) H with the Hessian
        H of g_S at V where it is smooth, the projector on a face that is flat.  Where this fails, s is that of
        the cutting planes, to 1e-5, and the derivative comes from central differences, to 1e-3.

        Raises
        ------
        NotConverged
            If the cutting planes do not close on a sample.
        """
        x = batch(x, self.dimension, "x")
        frame = self._frame
        y = frame.within(x)
        block = block_size(frame.rank + 1)
        parts = [self._near(y[start : start + block]) for start in range(0, max(1, len(y)), block)]
        s, jacobian, free = (np.concatenate(part) for part in zip(*parts, strict=True))
        return frame.outside(s, jacobian, free)

    @cached_property
    def _frame(self) -> Frame:
        """The affine span of S, from anchors in many directions."""
        d = self.dimension
        directions = np.concatenate([np.eye(d), np.random.default_rng(6).normal(size=(8 * d, d))])
        return Frame(self.anchor(np.concatenate([directions, -directions])), FLAT)

    def _near(self, y: Array) -> tuple[Array, Array, NDArray[np.int64]]:
        """Nearest points in the coordinates of the span."""
        count, r = y.shape
        if r == 0 or count == 0:
            return np.zeros_like(y), np.zeros((count, r, r)), np.zeros(count, dtype=np.int64)
        found = self._carriers(y)
        s, jacobian = found.s.copy(), np.zeros((count, r, r))
        inside = np.asarray(np.abs(s - y).max(axis=1) < 1e-9 * (1 + np.abs(y).max(axis=1)))
        points, weights = _merged(found)
        free = np.count_nonzero(weights, axis=1) - 1
        rough = ~inside
        for kick in KICKS:
            for k in np.unique(free[rough]):
                rows = np.flatnonzero(rough & (free == k))
                sides = slice(0, k + 1)
                good, *better = self._newton_nearest(y[rows], s[rows], points[rows, sides], weights[rows, sides], kick)
                s[rows[good]], jacobian[rows[good]] = (f[good] for f in better)
                rough[rows[good]] = False
            if kick == KICKS[-2]:  # next to a smooth set the cuts may lie apart: one anchor is tried last
                free[rough], weights[rough, 0] = 0, 1.0
        s[inside], jacobian[inside], free[inside] = y[inside], np.eye(r), r
        if rough.any():
            shifts = DISPLACEMENT * np.concatenate([np.eye(r), -np.eye(r)])
            around = self._carriers((y[rough, None, :] + shifts).reshape(-1, r)).s.reshape(-1, 2, r, r)
            J = (around[:, 0] - around[:, 1]) / (2 * DISPLACEMENT)
            jacobian[rough] = J = (J + J.transpose(0, 2, 1)) / 2
            free[rough] = (np.linalg.eigvalsh(J) > 1 - 1e-3).sum(axis=1)
        return s, jacobian, free

    def _carriers(self, y: Array) -> Carriers:
        """Points of S that carry the nearest points, by cutting planes, in the coordinates of the span."""
        frame = self._frame

        def anchors(v: Array, rows: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
            v = np.where(np.any(v, axis=1)[:, None], v, -y[rows])  # every point is an anchor of v = 0
            return frame.within(self.anchor(v @ frame.basis.T)), np.zeros(len(v), dtype=np.int64)

        found = carriers(y, anchors, CLOSE, 400 + 40 * self.dimension)
        if not found.closed.all():
            raise NotConverged(
                f"The cutting planes did not close on {np.count_nonzero(~found.closed)} samples.",
                frame.origin + frame.size * found.s @ frame.basis.T,
                hint="check that the anchor function returns exact minimizers.",
            )
        return found

    def _newton_nearest(self, y: Array, s: Array, b: Array, w: Array, kick: float) -> tuple[NDArray[Any], Array, Array]:
        """Solve V + y = sum w_i b_i(V), V.b_i = V.b_1, sum w_i = 1; tell where it works, return s and ds/dy.

        The gradient b_i(V) on one side of a kink is extrapolated from a point on that side, ``kick`` away.
        """
        (n, r), K = y.shape, b.shape[1]
        v, w = s - y, w.copy()
        # along the dual vectors one gradient gains on all others
        away = -np.linalg.pinv(b - b.mean(axis=1, keepdims=True), rcond=1e-9).transpose(0, 2, 1)
        size = np.square(v).sum(axis=1) / np.maximum(np.square(away).sum(axis=2).max(axis=1), 1e-300)
        away *= kick * np.sqrt(size)[:, None, None]
        system, right = np.zeros((n, r + K, r + K)), np.zeros((n, r + K))
        good = np.ones(n, dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(12):
                side = (v[:, None, :] + away).reshape(-1, r)
                b, H = (f.reshape(n, K, r, -1) for f in self._bent(side))
                b = b[..., 0] - np.matmul(H, away[..., None])[..., 0]
                # too close to a kink, H is too large for 1 - H to be told from -H
                good &= (np.abs(H) < 1e8).all(axis=(1, 2, 3)) & np.isfinite(b).all(axis=(1, 2))
                system[:, :r, :r] = np.eye(r) - np.einsum("ki,kiab->kab", w, H)
                system[:, :r, r:] = -b.transpose(0, 2, 1)
                system[:, r : r + K - 1, :r] = b[:, 1:] - b[:, :1]
                system[:, -1, r:] = 1.0
                right[:, :r] = np.einsum("ki,kia->ka", w, b) - v - y
                right[:, r : r + K - 1] = -np.matmul(b[:, 1:] - b[:, :1], v[:, :, None])[:, :, 0]
                good &= np.linalg.slogdet(np.where(good[:, None, None], system, 0.0))[0] != 0
                system[~good], right[~good] = np.eye(r + K), 0.0
                if np.abs(right).max(initial=0.0) < 1e-15:
                    break
                step = np.linalg.solve(system, right[:, :, None])[:, :, 0]
                v, w = v + step[:, :r], w + step[:, r:]
            good &= (np.abs(right).max(axis=1) < 1e-10 * (1 + np.abs(y).max(axis=1))) & (w > -1e-9).all(axis=1)
            V = np.where(good[:, None, None], v[:, None, :] + away, 1.0).reshape(-1, r) @ self._frame.basis.T
            good &= ~self._kinked(V, self.anchor(V)).reshape(n, K).any(axis=1)
        J = np.eye(r) - np.linalg.inv(system)[:, :r, :r]
        return good, np.einsum("ki,kia->ka", w, b), (J + J.transpose(0, 2, 1)) / 2

    def _bent(self, v: Array) -> tuple[Array, Array]:
        """Anchors and Hessians in the coordinates of the span."""
        frame = self._frame
        V = np.where(np.isfinite(v), v, 1.0) @ frame.basis.T
        H = np.matmul(np.matmul(frame.basis.T, self._curvature(V)), frame.basis)
        return frame.within(self.anchor(V)), H / frame.size

    def _jacobian(self, t: Array, kappa: float) -> Array:
        d = self.dimension
        shifts = STEP * np.concatenate([np.eye(d), -np.eye(d)])
        v, _ = self._planes((t[:, None, :] + shifts).reshape(-1, d), kappa)
        v = v.reshape(len(t), 2, d, d)
        return np.asarray((v[:, 0] - v[:, 1]).transpose(0, 2, 1) / (2 * STEP))

    def _curvature(self, v: Array) -> Array:
        """Return the Hessian with NaN where there is none."""
        raise NotImplementedError

    def _newton(self, t: Array, v: Array, lam: Array, kappa: float) -> tuple[Array, ...]:
        """Solve v - t = lam grad g(v), g(v) = kappa from the cutting planes' answer; tell where it works."""
        start, d = v.copy(), self.dimension
        v, lam = v.copy(), lam.copy()
        system = np.zeros((len(v), d + 1, d + 1))
        eye = np.eye(d)
        good = np.ones(len(v), dtype=bool)
        with np.errstate(all="ignore"):
            for _ in range(12):
                s, H = self.anchor(v), self._curvature(v)
                right = np.concatenate(
                    [t + lam[:, None] * s - v, (kappa - (v * s).sum(axis=1))[:, None]], axis=1
                )
                good &= np.isfinite(H).all(axis=(1, 2)) & np.isfinite(right).all(axis=1)
                system[:, :d, :d] = eye - lam[:, None, None] * np.where(good[:, None, None], H, 0.0)
                system[:, :d, d], system[:, d, :d] = -s, s
                system[~good] = np.eye(d + 1)
                try:
                    step = np.linalg.solve(system, np.where(good[:, None], right, 0.0)[:, :, None])[:, :, 0]
                except np.linalg.LinAlgError:
                    good[:] = False
                    break
                v, lam = v + step[:, :d], lam + step[:, d]
                if np.abs(step).max() < 1e-14 * (1 + np.abs(v).max()):
                    break
            s, H = self.anchor(v), self._curvature(v)
            size = 1 + np.abs(t).max(axis=1)
            miss = np.maximum(
                np.abs(v - t - lam[:, None] * s).max(axis=1), np.abs((v * s).sum(axis=1) - kappa)
            )
            good &= (miss < 1e-11 * size) & (np.abs(v - start).max(axis=1) < 1e-3 * size) & (lam > 0)
            good &= np.isfinite(H).all(axis=(1, 2)) & ~self._kinked(v, s)
        H = np.where(good[:, None, None], H, 0.0)
        P = np.linalg.inv(eye - np.where(good, lam, 0.0)[:, None, None] * H)
        Ps = np.matmul(P, np.where(good[:, None], s, 1.0)[:, :, None])[:, :, 0]
        below = (np.where(good[:, None], s, 1.0) * Ps).sum(axis=1)
        psi = np.trace(P, axis1=1, axis2=2) - d - np.square(Ps).sum(axis=1) / below
        return good, v, lam, s, psi

    def _kinked(self, v: Array, s: Array) -> NDArray[np.bool_]:
        """Tell where the anchor jumps very near v, so that a Hessian there means nothing."""
        rng = np.random.default_rng(7)
        size = np.sqrt(np.square(v).sum(axis=1, keepdims=True)) + 1e-300
        kinked = np.zeros(len(v), dtype=bool)
        for _ in range(4):
            near = self.anchor(v + 1e-9 * size * rng.choice([-1.0, 1.0], v.shape))
            kinked |= np.abs(near - s).max(axis=1) > 1e-3 * (1e-12 + np.abs(s).max(axis=1))
        return kinked


def _merged(found: Carriers) -> tuple[Array, Array]:
    """Carrying points with those that cuts found next to each other made one; the empty slots last."""
    held = found.weights > 0
    apart = np.abs(found.points[:, :, None, :] - found.points[:, None, :, :]).max(axis=3)
    same = (apart < SAME) & held[:, :, None] & held[:, None, :]
    first = np.where(held, same.argmax(axis=2), np.arange(held.shape[1]))
    weights = np.zeros_like(found.weights)
    np.add.at(weights, (np.arange(len(held))[:, None], first), found.weights)
    order = np.argsort(weights == 0, axis=1, kind="stable")
    return np.take_along_axis(found.points, order[:, :, None], axis=1), np.take_along_axis(weights, order, axis=1)
