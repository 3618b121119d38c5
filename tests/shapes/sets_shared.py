"""Sets that the tests of projections and of nearest points share."""

import numpy as np

from symcavity.shapes import Ball, Ellipsoid, Segment, TwoPoints

_RNG = np.random.default_rng(11)
CLOUD = np.column_stack([_RNG.normal(size=(40, 4)), np.ones(40)])
TILTED = _RNG.normal(size=(9, 3)) + np.array([0, 0, 5])
FLAT = np.column_stack([_RNG.normal(size=(5, 8)), np.ones(5)])

CLOSED = [
    Ball(1, 1),
    Ball(3, "0.7"),
    Ball(4, 2, center="1.5"),
    Ball(2, 0),
    Segment(2),
    TwoPoints("0.5"),
    TwoPoints(1),
    Ellipsoid([1, "0.5", "0.25"]),
    Ellipsoid([1, "0.001", 0, 3], center="0.5"),
    Ellipsoid([0, 0]),
]
