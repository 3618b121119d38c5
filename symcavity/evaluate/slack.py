"""Projections with slack: the minimum of |v - t|^2 / 2 + cap max(0, k - g(v)).

While the multiplier of the hard constraint is below ``cap``, the projection is as it was.  Beyond, the
displacement is ``cap`` times the point s of the set that minimises ``|t + cap s|`` (Moreau's decomposition:
the displacement is a projection on a multiple of the set).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.evaluate.legendre import legendre
from symcavity.evaluate.set_integrals import axial_panels
from symcavity.evaluate.soft_bound import soften
from symcavity.shapes.base import INTERIOR, SATURATED, Projection, Shape

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


def ball_points(shape: Any, k: float, cap: float, levels: Sequence[float] = ()) -> tuple[dict[str, Any], Array]:
    """Nodes and weights of a quadrature over the radial and the axial part of the source, for a ball.

    Parameters
    ----------
    shape : Ball
    k, cap : float
        The bound on g and the bound on the multiplier.
    levels : sequence of float
        Multipliers at which an integrand may jump.

    Returns
    -------
    rows : dict
        The quantities of the projection at the nodes, by name.
    weights : ndarray
        They sum to one.
    """
    radii, c = shape.numbers()
    R, D = float(radii[0]), shape.D
    levels = [cap, *(v for v in levels if 0 < v < cap)]
    x, wx = axial_panels(D, R, c, k, levels=levels)
    nodes, weights = legendre(24)
    top = (k + R * x) / c
    low = k / c - (c * x / R if R > 0 else np.inf)
    edges = [top, np.maximum(low, top - 60)]
    for lam in levels:
        edges.append((R * x - lam * (R * R + c * c)) / c + k / c)  # the multiplier has this value while touching
        edges.append(np.full_like(x, k / c - c * lam))  # ... and at the tip
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
    level = np.where((p.regime != INTERIOR) & (p.regime != SATURATED), k, shape.support(p.v))
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
