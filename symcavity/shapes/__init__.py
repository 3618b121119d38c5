"""Convex sets given by their support function: anchors, faces, projections."""

from symcavity.shapes.balls import Ball, Segment, TwoPoints
from symcavity.shapes.base import Nearest, Projection, Shape, ShapeWarning
from symcavity.shapes.clouds import PointCloud, Polytope
from symcavity.shapes.ellipsoid import Ellipsoid
from symcavity.shapes.expression import CallableShape, ExpressionShape

__all__ = [
    "Ball",
    "CallableShape",
    "Ellipsoid",
    "ExpressionShape",
    "Nearest",
    "PointCloud",
    "Polytope",
    "Projection",
    "Segment",
    "Shape",
    "ShapeWarning",
    "TwoPoints",
]
