"""Projections with slack: the minimum of |v - t|^2 / 2 + cap max(0, k - g(v)).

While the multiplier of the hard constraint is below ``cap``, the projection is as it was.  Beyond, the
displacement is ``cap`` times the point s of the set that minimises ``|t + cap s|`` (Moreau's decomposition:
the displacement is a projection on a multiple of the set).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.errors import UnsupportedLaw
from symcavity.numerics.manifold import axial_panels
from symcavity.shapes.balls import Ball
from symcavity.shapes.base import Projection, Shape
from symcavity.shapes.ellipsoid import Ellipsoid

Array = NDArray[np.float64]


def saturate(shape: Shape, t: Array, p: Projection, k: float, cap: float) -> Projection:
    """Replace the projections whose multiplier exceeds the bound.

    Parameters
    ----------
    shape : Shape
    t : ndarray
        Sources.
    p : Projection
        Their projections on ``g(v) >= k``.
    k, cap : float
        The bound on g, and the bound on the multiplier.

    Raises
    ------
    UnsupportedLaw
        If the nearest point of the shape is not known.
    """
    over = p.lam > cap
    if not over.any():
        return p
    s, divergence = nearest(shape, -t[over] / cap)
    v, lam, anchor, psi = p.v.copy(), p.lam.copy(), p.anchor.copy(), p.psi.copy()
    absorbed = p.absorbed.copy()
    v[over], lam[over], anchor[over] = t[over] + cap * s, cap, s
    psi[over], absorbed[over] = -divergence, 0
    _ = k
    return replace(p, v=v, lam=lam, anchor=anchor, psi=psi, absorbed=absorbed, lam_s=v - t)


def nearest(shape: Shape, x: Array) -> tuple[Array, Array]:
    """Return the points of a ball, an ellipsoid or a segment that are nearest to x, and their divergence.

    Raises
    ------
    UnsupportedLaw
        For other shapes.
    """
    if not isinstance(shape, Ellipsoid):
        raise UnsupportedLaw(
            f"The point of {shape!r} that is nearest to a given one is not known.",
            "balls, ellipsoids, segments and pairs of points with slack",
        )
    R, c = shape.numbers()
    y = x[:, :-1]
    if isinstance(shape, Ball):
        size = np.sqrt(np.square(y).sum(axis=1))
        outside = size > R[0]
        ratio = np.where(outside, R[0] / np.where(size > 0, size, 1.0), 1.0)
        s = np.concatenate([ratio[:, None] * y, np.full((len(y), 1), c)], axis=1)
        return s, np.where(outside, (shape.D - 1) * ratio, float(shape.D)) * (R[0] > 0)
    size = np.square(y / np.where(R > 0, R, 1.0)).sum(axis=1)
    flat = (y * (R == 0)).any(axis=1)
    outside = size > 1
    # on the surface: s_a = R_a^2 y_a / (R_a^2 + m) with the root m >= 0 of |s/R| = 1
    low, high = np.zeros(len(y)), np.sqrt(np.square(R * y).sum(axis=1)) + 1e-300
    for _ in range(200):
        m = (low + high) / 2
        value = np.square(R * y / (R**2 + m[:, None] + (R == 0))).sum(axis=1)
        low, high = np.where(value > 1, m, low), np.where(value > 1, high, m)
    m = np.where(outside, (low + high) / 2, 0.0)
    s = np.where(R > 0, R**2 * y / (R**2 + m[:, None] + (R == 0)), 0.0)
    # derivative: diag(w) - (diag(w) n n^T diag(w)) / (n^T diag(w) n), w = R^2/(R^2+m), n = s/R^2
    w = np.where(R > 0, R**2 / (R**2 + m[:, None] + (R == 0)), 0.0)
    n = s / np.where(R > 0, R**2, 1.0)
    bottom = (w * n * n).sum(axis=1)
    divergence = w.sum(axis=1) - np.where(outside, (w * w * n * n).sum(axis=1) / np.where(bottom > 0, bottom, 1.0), 0.0)
    _ = flat
    return np.concatenate([s, np.full((len(y), 1), c)], axis=1), divergence


def capped_integrals(shape: Ball, k: float, cap: float) -> dict[str, Any]:
    """Return the averages of a ball with slack; the axial integrals are elementary."""
    from scipy.special import ndtr

    radii, c = shape.numbers()
    R, D = float(radii[0]), shape.D
    x, weight = axial_panels(D, R, c, k, cap * R)
    q2 = R * R + c * c
    top = (k + R * x) / c

    def below(a: Array) -> tuple[Array, Array, Array]:
        cdf, pdf = ndtr(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
        return cdf, a * cdf + pdf, (a * a + 1) * cdf + a * pdf

    def between(low: Array, high: Array, origin: Array) -> tuple[Array, Array, Array]:
        """Integrals of (origin - y)^n Dy over (low, high), n = 0, 1, 2."""
        parts = []
        for end in (high, low):
            j0, j1, j2 = below(end)
            shift = origin - end
            parts.append((j0, j1 + shift * j0, j2 + 2 * shift * j1 + shift * shift * j0))
        return tuple(a - b for a, b in zip(*parts, strict=True))

    far = x > cap * R  # the bound is reached before the tip
    edge = np.where(far, top - cap * q2 / c, k / c - (c * x / R if R > 0 else np.inf))
    edge = np.maximum(edge, -40.0)
    end = np.where(far, edge, k / c - c * cap)
    end = np.minimum(end, edge)
    t0, t1, t2 = between(edge, top, top)
    i0, i1, i2 = between(end, edge, np.full_like(x, k / c))
    s0 = below(end)[0]
    bend = (D - 1) * R / x if D > 1 else 0 * x
    return {
        name: float(weight @ row)
        for name, row in {
            "norm": c * c * t2 / q2 + x * x * i0 + i2 + s0 * cap**2 * np.where(far, q2, c * c + (x / cap) ** 2),
            "lam": c * t1 / q2 + i1 / c + cap * s0,
            "lam2": c * c * t2 / q2**2 + i2 / c**2 + cap**2 * s0,
            "psi": -t0 - bend * c * t1 / q2 - (D + 1) * i0 - s0 * np.where(far, bend * cap, D),
        }.items()
    }


def ball_points(shape: Any, k: float, cap: float) -> tuple[dict[str, Any], Array]:
    """Nodes and weights of a quadrature over the radial and the axial part of the source, for a ball.

    Returns
    -------
    rows : dict
        The quantities of the projection at the nodes, by name.
    weights : ndarray
        They sum to one.
    """
    radii, c = shape.numbers()
    R, D = float(radii[0]), shape.D
    x, wx = axial_panels(D, R, c, k, cap * R)
    nodes, weights = np.polynomial.legendre.leggauss(24)
    top = (k + R * x) / c
    low = k / c - (c * x / R if R > 0 else np.inf)
    edges = [top, np.maximum(low, top - 60)]
    edges.append((R * x - cap * (R * R + c * c)) / c + k / c)  # the multiplier reaches the bound while touching
    edges.append(np.full_like(x, k / c - c * cap))  # ... and at the tip
    table = np.sort(np.clip(np.stack([*edges, np.full_like(x, -12.0), np.full_like(x, 12.0)]), -12.0, 12.0), axis=0)
    fine = np.concatenate([table[:-1] + (table[1:] - table[:-1]) * j / 3 for j in range(3)] + [table[-1:]])
    fine = np.sort(fine, axis=0)
    half = (fine[1:] - fine[:-1]) / 2
    y = fine[:-1, :, None] + half[:, :, None] * (1 + nodes)
    w = half[:, :, None] * weights * np.exp(-y * y / 2) / np.sqrt(2 * np.pi) * wx[None, :, None]
    X = np.broadcast_to(x[None, :, None], y.shape)
    t = np.zeros((y.size, D + 1))
    t[:, 0], t[:, -1] = X.ravel(), y.ravel()
    p = shape.project(t, k)
    p = saturate(shape, t, p, k, cap)
    level = np.where((p.regime > 0) & (p.lam < cap), k, shape.support(p.v))
    rows = {
        "lam": p.lam,
        "gap2": np.square(p.lam_s).sum(axis=1),
        "v2": np.square(p.v).sum(axis=1),
        "gv": level,
        "td": (t * p.lam_s).sum(axis=1),
        "psi": p.psi,
        "regime": p.regime,
        "saturated": (p.lam >= cap).astype(float),
    }
    total = w.ravel()
    return rows, total / total.sum()


__all__ = ["ball_points", "capped_integrals", "nearest", "saturate"]
