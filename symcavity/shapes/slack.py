"""Projections with slack, linear and quadratic.

With linear slack they are the minimum of |v - t|^2 / 2 + cap max(0, k - g(v)). While the multiplier of the hard
constraint is below ``cap``, the projection is as it was.  Beyond, the displacement is ``cap`` times the point s of the
set that minimizes ``|t + cap s|`` (Moreau's decomposition: the displacement is a projection on a multiple of the set).

With quadratic slack they are that of |v - t|^2 / 2 + max(0, k - g(v))^2 / (2 rho). The slack is one more coordinate x
of the vector: g(v) + sqrt(rho) x >= k is a hard constraint, for the set with the constant coordinate sqrt(rho), and the
projection starts at x = 0.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from symcavity.shapes.base import SATURATED, Projection, Shape
from symcavity.shapes.expression import CallableShape

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


@lru_cache(maxsize=32)
def _raised(shape: Shape, x: float) -> Shape:
    """The set with the further coordinate x."""
    anchor = lambda V: np.append(shape.anchor(np.asarray(V)[:-1]), x)  # noqa: E731 - of one vector, without a name
    return shape.raised(x) or CallableShape(anchor, shape.dimension + 1)


def soften(shape: Shape, t: Array, k: float, rho: float) -> Projection:
    """Project with quadratic slack; the divergence is left out (Stein's lemma gives its average).

    Parameters
    ----------
    shape : Shape
    t : ndarray, shape (samples, D+1)
        Sources.
    k, rho : float
        The bound, and the softness: the bound is missed by ``rho`` times the multiplier.
    """
    found = shape.softened(t, k, rho)
    if found is None:
        p = _raised(shape, float(np.sqrt(rho))).project(np.column_stack([t, np.zeros(len(t))]), k)
        found = p.lam, p.anchor[:, :-1], p
    lam, anchor, p = found
    lam_s = lam[:, None] * anchor
    return Projection(t + lam_s, lam_s, lam, anchor, p.regime, p.absorbed, np.full(len(t), np.nan))
