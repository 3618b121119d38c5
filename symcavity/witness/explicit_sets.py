"""Explicit convex sets, and the states of a site at explicit fields, for the witnesses of laws of convex sets."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

TRIANGLE = np.array([[1, 0, 1], [-0.5, 0.8, 1.2], [-0.4, -0.9, 0.9]])


def shapes(size: Any = None) -> list[Any]:
    """Explicit sets for checks: curved and flat, in two and three dimensions (or in ``size``); the same each time."""
    return [s for s in _every() if size is None or not size.is_Integer or s.dimension == int(size)]


@lru_cache(maxsize=1)
def _every() -> tuple[Any, ...]:
    from symcavity.shapes import Ball, Ellipsoid, PointCloud, TwoPoints

    return Ball(1, "0.7"), TwoPoints("0.2"), Ball(2, "0.5"), Ellipsoid(["1", "0.4"]), PointCloud(TRIANGLE)


@lru_cache(maxsize=1)
def segments() -> tuple[Any, ...]:
    """A short and a long segment, whose fields have two components; the same each time."""
    from symcavity.shapes import Ball

    return Ball(1, "0.7"), Ball(1, 2)


def projected(
    shape: Any, T: Any, bound: float, cap: float, strength: float, softness: float = 0.0
) -> tuple[Any, Any, Any]:
    """The states V, lambda, s at the fields T."""
    from symcavity.shapes.slack import with_slack

    p = with_slack(shape, T, bound, cap * strength, softness / strength)
    return p.v, p.lam / strength, p.anchor
