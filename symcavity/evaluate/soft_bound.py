"""Projections with quadratic slack: the minimum of |v - t|^2 / 2 + max(0, k - g(v))^2 / (2 rho).

The slack is one more coordinate x of the vector: g(v) + sqrt(rho) x >= k is a hard constraint, for the set with
the constant coordinate sqrt(rho), and the projection starts at x = 0.  For balls and ellipsoids a rotation
of the last two coordinates makes this an ellipsoid whose centre is farther away.
"""

from __future__ import annotations

import warnings
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

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
