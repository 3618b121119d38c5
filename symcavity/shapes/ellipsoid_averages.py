"""Averages over Gaussian sources for ellipsoids: integrals with one dimension per different radius.

With u on the unit sphere, the sources that touch at the anchor (-R u, c) are t = (u (r/R + lam R), (kappa +
r)/c - lam c) for r, lam > 0.  The ray and the normal are orthogonal, so that the Gaussian factorizes in r and
lam; the Jacobian is r^(D-1) prod(1/R) sum_i u_i^2 (c^2 + R_i^2) prod_{j != i} (1 + (lam/r) R_j^2) / c.  What
is left is an average over u_i^2, which is analytic: Gauss-Jacobi rules converge exponentially.  At the tip t
= (-lam R u, kappa/c - lam c), |u| <= 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MAX_GROUPS, MAX_DIMENSION, MAX_POINTS = 5, 60, 2_200_000
"""Different radii, dimensions, and points of a rule up to which the integrals are used."""

FARTHEST, HALF = 10.0, 0.499
"""By how much no Gaussian vector is longer than usual; fewer sources than half never leave a positive margin."""


def ellipsoid_averages(radii: Array, c: float, k: float) -> dict[str, Any] | None:
    """Return the averages of :meth:`symcavity.shapes.base.Shape.averages`, or None where a rule does not converge.

    Parameters
    ----------
    radii : ndarray
        The positive radii.
    c, k : float
        Distance of the center, and margin.
    """
    values, counts = np.unique(radii, return_counts=True)
    if k > c * np.hypot(1, c / values[0]) * (np.sqrt(radii.size + 1) + FARTHEST):  # no source is so long: the tip
        lam, square = k / c**2, 1 + (k / c) ** 2
        norm, zero = radii.size + square, {"touching": 0.0, "partial": 0.0, "saturated": 0.0}
        return {"norm": norm, "lam": lam, "lam2": square / c**2, "whole": 1.0, "psi": k * lam - norm, **zero}
    if values.size > MAX_GROUPS or radii.size > MAX_DIMENSION:
        return None
    touch = _converged(_touching, counts / 2, values, counts, c, k)
    tip = _converged(_tip, np.append(counts / 2, 1.0), values, counts, c, k)
    if touch is None or tip is None or (k > 0 and touch[0] + tip[0] < HALF):  # weights that are all too small
        return None
    lam, lam2, norm = (float(x) for x in (touch + tip)[1:])
    return {
        "norm": norm,
        "lam": lam,
        "lam2": lam2,
        "touching": float(touch[0]),
        "whole": float(tip[0]),
        "partial": 0.0,
        "saturated": 0.0,
        "psi": k * lam - norm,
    }


def _converged(part: Callable[..., Array], shapes: Array, *arguments: Any) -> Array | None:
    """Refine the rule until it stands still; return <1>, <lam>, <lam^2>, <|v-t|^2> of one regime."""
    last: Array | None = None
    for n in (12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512):
        if n ** (shapes.size - 1) > MAX_POINTS:
            return None
        squares, weights = _rule(shapes, n)
        table = sum(
            (
                part(squares[rows], weights[rows], *arguments)
                for rows in (slice(i, i + 16384) for i in range(0, len(weights), 16384))
            ),
            np.zeros(4),
        )
        if last is not None and (np.abs(table - last) < 1e-13 + 2e-12 * np.abs(table)).all():
            return table
        last = table
    return None


def _rule(shapes: Array, n: int) -> tuple[Array, Array]:
    """Return points of the simplex and weights of a Dirichlet average with these parameters."""
    from scipy.special import roots_sh_jacobi

    points, weights = np.ones((1, 0)), np.ones(1)
    rest = np.ones(1)
    for a, b in zip(shapes[:-1], np.cumsum(shapes[::-1])[::-1][1:], strict=True):
        x, w = roots_sh_jacobi(n, a + b - 1, a)
        w = w / w.sum()
        points = np.column_stack([np.repeat(points, n, axis=0), np.outer(rest, x).ravel()])
        weights, rest = np.outer(weights, w).ravel(), np.outer(rest, 1 - x).ravel()
    return np.column_stack([points, rest]), weights


def _log_sphere(D: int) -> float:
    from scipy.special import gammaln

    return float(np.log(2) + D / 2 * np.log(np.pi) - gammaln(D / 2))


def _touching(w2: Array, weights: Array, R: Array, counts: Array, c: float, k: float) -> Array:
    D = int(counts.sum())
    # u_i^2 = R_i w_i^2 / sum R w^2 halves the distance of the nearest poles on a logarithmic scale.
    stretch = w2 @ R
    u2 = w2 * R / stretch[:, None]
    A, B = u2 @ (1 / R**2) + 1 / c**2, u2 @ R**2 + c**2
    table = np.array([_elementary(np.repeat(R**2, counts - (np.arange(R.size) == g))) for g in range(R.size)])
    jacobian = (u2 * (c**2 + R**2)) @ table
    rays, normals = _moments(-k / (c**2 * np.sqrt(A)), D - 1), _moments(k / np.sqrt(B), D + 1)
    j = np.arange(D)
    ray = rays[:, ::-1] * A[:, None] ** (-(D - j) / 2)
    normal = normals * B[:, None] ** (-(np.arange(D + 2) + 1) / 2)
    log = (
        _log_sphere(D)
        - (D + 1) / 2 * np.log(2 * np.pi)
        - (counts * np.log(R)).sum() / 2
        - np.log(c)
        - D / 2 * np.log(stretch)
        + (k**2 / (2 * B) if k > 0 else k**2 / (2 * c**4 * A))  # what the moments leave out
        - k**2 / (2 * c**2)
    )
    front = weights * np.exp(log)
    out = [float(front @ (jacobian * ray * normal[:, m : m + D]).sum(axis=1)) for m in (0, 1, 2)]
    return np.array([*out, float((front * B) @ (jacobian * ray * normal[:, 2:]).sum(axis=1))])


def _tip(u2: Array, weights: Array, R: Array, counts: Array, c: float, k: float) -> Array:
    D = int(counts.sum())
    B = u2[:, :-1] @ R**2 + c**2
    normals = _moments(k / np.sqrt(B), D + 2)
    log = (
        _log_sphere(D)
        - np.log(D)
        - (D + 1) / 2 * np.log(2 * np.pi)
        + (counts * np.log(R)).sum()
        + np.log(c)
        + max(k, 0.0) ** 2 / (2 * B)
        - k**2 / (2 * c**2)
    )
    front = weights * np.exp(log)
    out = [float((front * B ** (-(D + m + 1) / 2)) @ normals[:, D + m]) for m in (0, 1, 2)]
    return np.array([*out, float((front * B ** (-(D + 1) / 2)) @ normals[:, D + 2])])


def _elementary(values: Array) -> Array:
    """Return the coefficients of prod (1 + x y) over the values y."""
    out = np.ones(1)
    for y in values:
        out = np.append(out, 0.0) + y * np.append(0.0, out)
    return out


def _moments(m: Array, top: int) -> Array:
    """Return int_0^inf x^n exp(-x^2/2 + m x - [m > 0] m^2/2) dx for n = 0..top, shape (len(m), top+1).

    The recurrence M_(n+1) = m M_n + n M_(n-1) has positive terms upwards for m >= 0 and downwards for m < 0;
    the start of the downward one is a Gauss-Legendre sum over the bulk of the integrand.
    """
    from scipy.special import ndtr, roots_legendre

    out = np.empty((m.size, top + 1))
    if (m >= 0).all():
        tail = np.exp(-m * m / 2)
        out[:, 0] = np.sqrt(2 * np.pi) * ndtr(m)
        if top:
            out[:, 1] = m * out[:, 0] + tail
        for n in range(1, top):
            out[:, n + 1] = m * out[:, n] + n * out[:, n - 1]
        return out
    nodes, weights = roots_legendre(72)
    mode = (m + np.sqrt(m * m + 4 * (top + 1))) / 2
    spread = top + 1 + 9 * np.sqrt(top + 1.0) + 40
    high = np.minimum(mode + 9.5, spread / np.maximum(-m, 1e-300))
    low = np.maximum(0.0, np.minimum(mode, high) - 9.5)
    half = (high - low)[:, None] / 2
    x = low[:, None] + half * (1 + nodes)
    base = np.exp(-x * x / 2 + m[:, None] * x) * half * weights
    above = (base * x ** (top + 1)).sum(axis=1)
    out[:, top] = (base * x**top).sum(axis=1)
    for n in range(top, 0, -1):
        out[:, n - 1] = (above - m * out[:, n]) / n
        above = out[:, n]
    return out
