"""Bad shapes: a clear error, or the right answer with a warning that names the cause."""

import numpy as np
import pytest
import sympy

from symcavity import cloud_geometry
from symcavity.errors import DeclarationError, NotConvex, SymcavityError, ValuesError
from symcavity.shapes import (
    Ball,
    CallableShape,
    Ellipsoid,
    ExpressionShape,
    PointCloud,
    Polytope,
    Segment,
    ShapeWarning,
    TwoPoints,
)

a, b, c, R = sympy.symbols("a b c R")
SQUARE = np.array([[1.0, 1], [-1, 1], [-1, -1], [1, -1]])

TABLE = [
    (lambda: Ball(2, -1), DeclarationError, "radius R >= 0"),
    (lambda: Ball(0, 1), DeclarationError, "D is 0"),
    (lambda: Ball(1.5, 1), DeclarationError, "dimension first"),
    (lambda: Ball(2, float("nan")), DeclarationError, "finite"),
    (lambda: Ball(2, float("inf")), DeclarationError, "finite"),
    (lambda: Ball(2, "one"), DeclarationError, "R is 'one'"),
    (lambda: Ball(2, True), DeclarationError, "R is True"),
    (lambda: Ball(2, sympy.I), DeclarationError, "real"),
    (lambda: Ball(2, 1, center=0), DeclarationError, "origin is in the hull"),
    (lambda: Ball(2, 1, center=-1), DeclarationError, "origin"),
    (lambda: Segment(-1), DeclarationError, "radius R >= 0"),
    (lambda: Ellipsoid([]), DeclarationError, "no radii"),
    (lambda: Ellipsoid(1), DeclarationError, "sequence"),
    (lambda: Ellipsoid([1, -1]), DeclarationError, "radii >= 0"),
    (lambda: Ellipsoid([1, None]), DeclarationError, "radius 2"),
    (lambda: TwoPoints(-1), DeclarationError, "origin is in the hull"),
    (lambda: TwoPoints("1.1"), DeclarationError, "unit norm"),
    (lambda: PointCloud([]), DeclarationError, "dimensions, shape"),
    (lambda: PointCloud(np.zeros((0, 3))), DeclarationError, "empty"),
    (lambda: PointCloud([1, 2, 3]), DeclarationError, r"points\[None, :\]"),
    (lambda: PointCloud(np.ones((2, 2, 2))), DeclarationError, "3 dimensions"),
    (lambda: PointCloud([[1, np.nan]]), DeclarationError, "1 of 1 points have NaN"),
    (lambda: PointCloud([["x", 1]]), DeclarationError, "numbers"),
    (lambda: PointCloud([[1, 2], [3]]), DeclarationError, "rectangular"),
    (lambda: PointCloud(np.zeros((3, 2))), DeclarationError, "origin"),
    (lambda: PointCloud(SQUARE), DeclarationError, "origin is in the convex hull"),
    (lambda: PointCloud([[1, 0], [-1, 0]]), DeclarationError, "origin is in the convex hull"),
    (lambda: Polytope(SQUARE, center=0), DeclarationError, "center > 0"),
    (lambda: Polytope(SQUARE, center=None), DeclarationError, "origin is in the convex hull"),
    (lambda: ExpressionShape(b + sympy.sqrt(a**2), [a, b]), NotConvex, "not concave"),
    (lambda: ExpressionShape(b - a**2, [a, b]), DeclarationError, "not homogeneous"),
    (lambda: ExpressionShape(b - sympy.Abs(a) + 1, [a, b]), DeclarationError, "not homogeneous"),
    (
        lambda: ExpressionShape(-sympy.Abs(a) - sympy.Abs(b), [a, b]),
        DeclarationError,
        "origin is in the convex",
    ),
    (lambda: ExpressionShape(b - R * sympy.Abs(a), [a, b]), DeclarationError, "symbols"),
    (lambda: ExpressionShape(sympy.sqrt(a * b), [a, b]), DeclarationError, "not a finite real"),
    (lambda: ExpressionShape("a", [a]), DeclarationError, "SymPy expression"),
    (lambda: ExpressionShape(a, []), DeclarationError, "symbol"),
    (lambda: ExpressionShape(a, [a, a]), DeclarationError, "different"),
    (lambda: CallableShape(3, 3), DeclarationError, "cannot be called"),
    (lambda: CallableShape(np.array, 0), DeclarationError, "dimension is 0"),
    (lambda: CallableShape(lambda _: np.array([1.0]), 3), DeclarationError, "3 components"),
    (lambda: CallableShape(lambda _: "s", 3), DeclarationError, "numbers"),
    (lambda: CallableShape(lambda v: v, 3), DeclarationError, "homogeneous"),
    (lambda: CallableShape(lambda v: Ball(2, 1).anchor(-v), 3), NotConvex, "maximizer"),
    (lambda: CallableShape(lambda v: -v / np.linalg.norm(v), 3), DeclarationError, "origin is in the convex"),
    (lambda: Ball(2, 1).project([1, 2]), ValuesError, "last axis of length 3"),
    (lambda: Ball(2, 1).project([1, 2, np.nan]), ValuesError, "NaN"),
    (lambda: Ball(2, 1).project([1, 2, 3], np.inf), ValuesError, "finite"),
    (lambda: Ball(2, 1).project([1, 2, 3], "x"), ValuesError, "kappa"),
    (lambda: Ball(2, R).project([1, 2, 3]), ValuesError, "symbols"),
    (lambda: Ball(2, 1).hessian([0, 0, 1]), ValuesError, "not differentiable"),
    (lambda: PointCloud([[1, 1], [-1, 1]]).hessian([0, 1]), ValuesError, "not differentiable"),
    (lambda: Ball(2, 1).symbolic_support([a, b]), DeclarationError, "3"),
    (
        lambda: CallableShape(Ball(2, 1).anchor, 3).symbolic_support([a, b, c]),
        DeclarationError,
        "no expression",
    ),
    (lambda: cloud_geometry(np.zeros((0, 3, 3))), DeclarationError, "no manifolds"),
    (lambda: cloud_geometry(np.ones((4, 3))), DeclarationError, "dimensions"),
    (lambda: cloud_geometry(np.zeros((2, 0, 3))), DeclarationError, "Manifold 0 is empty"),
    (lambda: cloud_geometry([SQUARE]), DeclarationError, "center of manifold 0"),
    (lambda: cloud_geometry([SQUARE + 3, SQUARE * np.nan]), DeclarationError, "Manifold 1 has NaN"),
    (lambda: cloud_geometry([SQUARE + 3, np.ones((3, 5))]), DeclarationError, "Manifold 1 has 5"),
    (lambda: cloud_geometry([SQUARE + 3], samples=3), ValuesError, "samples"),
    (lambda: cloud_geometry([SQUARE + 3], seed=-1), ValuesError, "seed"),
]


@pytest.mark.parametrize(("build", "error", "message"), TABLE)
def test_bad_input_is_an_error_that_says_what_is_wrong(build, error, message):
    with pytest.raises(error, match=message) as caught:
        build()
    assert isinstance(caught.value, SymcavityError)


def test_repeated_points_are_dropped_with_a_warning_and_change_nothing():
    points = np.column_stack([SQUARE, np.ones(4)])
    t = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.warns(ShapeWarning, match="4 of 8 points repeat"):
        doubled = PointCloud(np.concatenate([points, points + 1e-15]))
    np.testing.assert_allclose(doubled.project(t, 0.3).v, PointCloud(points).project(t, 0.3).v, atol=1e-13)


def test_a_nearly_flat_cloud_is_projected_right_with_a_warning():
    rng = np.random.default_rng(1)
    points = np.column_stack([rng.normal(size=(20, 3)), np.ones(20)])
    points[:, 2] *= 1e-9
    t = rng.normal(size=(200, 4))
    with pytest.warns(ShapeWarning, match="nearly flat"):
        p = PointCloud(points).project(t, 0.5)
    assert (p.v @ points.T).min() > 0.5 - 1e-8
    np.testing.assert_allclose((p.lam_s * p.v).sum(axis=1), 0.5 * p.lam, atol=1e-8)


def test_exactly_flat_directions_are_left_alone():
    points = np.column_stack([SQUARE, np.zeros(4), np.ones(4)])
    t = np.random.default_rng(2).normal(size=(50, 4))
    p, q = PointCloud(points).project(t, 0.5), PointCloud(points[:, [0, 1, 3]]).project(t[:, [0, 1, 3]], 0.5)
    np.testing.assert_allclose(p.v[:, [0, 1, 3]], q.v, atol=1e-13)
    np.testing.assert_allclose(p.v[:, 2], t[:, 2], atol=1e-13)
    assert (p.absorbed == q.absorbed).all()


def test_polytope_keeps_vertices_only():
    inside = 0.3 * np.random.default_rng(3).normal(size=(20, 2)).clip(-1, 1)
    polytope = Polytope(np.concatenate([inside, SQUARE]))
    assert len(polytope.points) == 4
    np.testing.assert_array_equal(polytope.points, np.column_stack([SQUARE, np.ones(4)]))


def test_a_point_that_nearly_touches_the_origin_is_still_a_shape():
    shape = PointCloud([[1, 1e-4], [-1, 1e-4]])
    assert shape.distance == pytest.approx(1e-4)
    assert shape.project([0, -1.0], 0.5).fully_supporting.all()


def test_symbols_are_welcome_in_radii_until_numbers_are_asked_for():
    shape = Ball(2, R)
    assert shape.free_symbols == {R}
    assert shape.symbolic_support([a, b, c]).has(R)
    assert shape.dimension == 3
