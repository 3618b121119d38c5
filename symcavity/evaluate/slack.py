"""Projections with slack: the minimum of |v - t|^2 / 2 + cap max(0, k - g(v)).

While the multiplier of the hard constraint is below ``cap``, the projection is as it was.  Beyond, the
displacement is ``cap`` times the point s of the set that minimises ``|t + cap s|`` (Moreau's decomposition:
the displacement is a projection on a multiple of the set).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.evaluate.legendre import legendre
from symcavity.evaluate.set_integrals import axial_panels
from symcavity.evaluate.soft_bound import soften
from symcavity.shapes.balls import Ball
from symcavity.shapes.base import SATURATED, Projection, Shape

Array = NDArray[np.float64]

BLOCK = 4_000_000
"""Entries of the derivatives of nearest points at once."""


def saturate(shape: Shape, t: Array, p: Projection, cap: float) -> Projection:
    """Replace the projections whose multiplier exceeds the bound; their regime is `SATURATED`.

    Parameters
    ----------
    shape : Shape
    t : ndarray
        Sources.
    p : Projection
        Their projections on ``g(v) >= k``.
    cap : float
        The bound on the multiplier.
    """
    over = np.flatnonzero(p.lam > cap)
    if not over.size:
        return p
    lam, anchor, psi = p.lam.copy(), p.anchor.copy(), p.psi.copy()
    regime, absorbed = p.regime.copy(), p.absorbed.copy()
    lam[over], regime[over] = cap, SATURATED
    block = max(1, BLOCK // shape.dimension**2)
    for rows in np.split(over, range(block, over.size, block)):
        found = shape.nearest(-t[rows] / cap)
        anchor[rows], psi[rows], absorbed[rows] = found.s, -found.divergence, found.free
    lam_s = p.lam_s.copy()
    lam_s[over] = cap * anchor[over]
    v = p.v.copy()
    v[over] = t[over] + lam_s[over]
    return Projection(v, lam_s, lam, anchor, regime, absorbed, psi)


def with_slack(shape: Shape, t: Array, k: float, cap: float = np.inf, rho: float = 0.0) -> Projection:
    """Project with a bound on the multiplier, or with a soft bound on g; with neither, on ``g(v) >= k``.

    Parameters
    ----------
    shape : Shape
    t : ndarray
        Sources.
    k, cap, rho : float
        The bound on g, the bound on the multiplier, and the softness; one of the last two is trivial.
    """
    p = soften(shape, t, k, rho) if rho else shape.project(t, k)
    return saturate(shape, t, p, cap) if np.isfinite(cap) else p


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
            "slope2": t0
            + bend * R / x * (c / q2) ** 2 * t2
            + (D + 1) * i0
            + s0 * np.where(far, bend * R / x * cap**2, D),
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
    nodes, weights = legendre(24)
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
    p = saturate(shape, t, p, cap)
    level = np.where((p.regime > 0) & (p.lam < cap), k, shape.support(p.v))
    rows = {
        "lam": p.lam,
        "gap2": np.square(p.lam_s).sum(axis=1),
        "v2": np.square(p.v).sum(axis=1),
        "gv": level,
        "td": (t * p.lam_s).sum(axis=1),
        "psi": p.psi,
        "regime": p.regime,
    }
    total = w.ravel()
    return rows, total / total.sum()


__all__ = ["ball_points", "capped_integrals", "saturate", "with_slack"]
