"""Projections with quadratic slack: the minimum of |v - t|^2 / 2 + max(0, k - g(v))^2 / (2 rho).

The slack is one more coordinate x of the vector: g(v) + sqrt(rho) x >= k is a hard constraint, for the set with
the constant coordinate sqrt(rho), and the projection starts at x = 0.  For balls and ellipsoids a rotation
of the last two coordinates makes this an ellipsoid whose centre is farther away.
"""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symcavity.evaluate.set_integrals import axial_panels
from symcavity.shapes import Ball, CallableShape, Ellipsoid, PointCloud
from symcavity.shapes.base import Projection, Shape, ShapeWarning

Array = NDArray[np.float64]


@lru_cache(maxsize=32)
def extended(shape: Shape, rho: float) -> Shape:
    """Return the set with the further coordinate; of a ball or an ellipsoid, in rotated coordinates."""
    if isinstance(shape, Ellipsoid):
        radii, c = shape.numbers()
        center = float(np.hypot(c, np.sqrt(rho)))
        if isinstance(shape, Ball):
            return Ball(shape.D, float(radii[0]), center=center)
        return Ellipsoid([float(R) for R in radii], center=center)
    more = np.sqrt(rho)
    if isinstance(shape, PointCloud):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapeWarning)  # what is to be said of the cloud was said of it
            return PointCloud(np.column_stack([shape.points, np.full(len(shape.points), more)]))
    return CallableShape(lambda V: np.append(shape.anchor(np.asarray(V)[:-1]), more), shape.dimension + 1)


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
    wide = extended(shape, rho)
    if isinstance(shape, Ellipsoid):
        _, c = shape.numbers()
        turned = t.copy()
        turned[:, -1] *= c / np.hypot(c, np.sqrt(rho))
        p = wide.project(turned, k)
        anchor = p.anchor.copy()
        anchor[:, -1] = c
    else:
        p = wide.project(np.column_stack([t, np.zeros(len(t))]), k)
        anchor = p.anchor[:, :-1]
    lam_s = p.lam[:, None] * anchor
    return Projection(t + lam_s, lam_s, p.lam, anchor, p.regime, p.absorbed, np.full(len(t), np.nan))


def soft_integrals(shape: Ball, k: float, rho: float) -> dict[str, Any]:
    """Return the averages of a ball with quadratic slack; the axial integrals are elementary."""
    from scipy.special import ndtr

    radii, c = shape.numbers()
    R, D = float(radii[0]), shape.D
    far = c * c + rho
    steps = (-9.0, -3.0, 0.0, 3.0, 9.0)
    breaks = [*((k - c * j) * R / far for j in steps), *((c * j - k) / R for j in steps)] if R > 0 else []
    x, weight = axial_panels(D, R, c, k, *breaks)
    top = (k + R * x) / c
    low = np.maximum((k - far * x / R) / c, -40.0) if R > 0 else np.full_like(x, -40.0)

    def below(a: Array, origin: Array) -> tuple[Array, Array, Array]:
        """Integrals of (origin - y)^n Dy over (-oo, a), n = 0, 1, 2."""
        cdf, pdf = ndtr(a), np.exp(-a * a / 2) / np.sqrt(2 * np.pi)
        j1, j2, shift = a * cdf + pdf, (a * a + 1) * cdf + a * pdf, origin - a
        return cdf, j1 + shift * cdf, j2 + 2 * shift * j1 + shift * shift * cdf

    t0, t1, t2 = (a - b for a, b in zip(below(top, top), below(low, top), strict=True))
    i0, i1, i2 = below(low, np.full_like(x, k / c))
    touch, tip = c / (R * R + far), c / far
    rows = {
        "norm": (R * R + c * c) * touch**2 * t2 + x * x * i0 * (R > 0) + (c * tip) ** 2 * i2,
        "lam": touch * t1 + tip * i1,
        "lam2": touch**2 * t2 + tip**2 * i2,
        "touching": t0,
        "whole": i0,
        "slope2": ((R * R + c * c) / (R * R + far)) ** 2 * t0
        + (D - 1) * (R * touch / x) ** 2 * t2
        + (D * (R > 0) + (c * tip) ** 2 * c * c) * i0,
    }
    found = {name: float(weight @ row) for name, row in rows.items()} | {"partial": 0.0}
    return found | {"psi": k * found["lam"] - rho * found["lam2"] - found["norm"]}


__all__ = ["extended", "soft_integrals", "soften"]
