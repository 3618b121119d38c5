"""Nearest points of every shape: certificates, other solvers, closed forms, derivatives, and slack."""

import numpy as np
import pytest
import sympy
from sets_shared import CLOSED, CLOUD, FLAT, TILTED

from symcavity.errors import NotConverged, ValuesError
from symcavity.shapes import Ball, CallableShape, Ellipsoid, ExpressionShape, PointCloud, Polytope, Segment
from symcavity.shapes.base import SATURATED
from symcavity.shapes.slack import saturate

GRID = np.stack(np.meshgrid([-1, 0, 1], [-1, 0, 1], [2, 3], indexing="ij"), axis=-1).reshape(-1, 3).astype(float)
a, b, c, d = sympy.symbols("a b c d")


def chosen(V):
    return CLOUD[(np.atleast_2d(V) @ CLOUD.T).argmin(axis=1)].reshape(np.shape(V))


CLOUDS = [
    PointCloud(CLOUD),
    PointCloud(TILTED),
    PointCloud(FLAT),
    PointCloud(GRID),
    PointCloud([[1, 2, 3]]),
    Polytope([[1, 1], [-1, 1], [1, -1], [-1, -1], [0, 0]]),
]
CYLINDER = ExpressionShape(d - sympy.sqrt(a**2 + b**2) - sympy.Abs(c) / 2, [a, b, c, d])
USERS = [
    ExpressionShape(d - sympy.sqrt(a**2 + b**2 / 4 + c**2 / 16), [a, b, c, d]),
    ExpressionShape(c - (a**4 + b**4) ** sympy.Rational(1, 4), [a, b, c]),
    CYLINDER,
    ExpressionShape(2 * c - sympy.sqrt(a**2 + b**2 + c**2), [a, b, c]),  # a ball with its interior
    ExpressionShape(sympy.Min(a + c, -a + c, b + c, -b + 2 * c), [a, b, c]),
    ExpressionShape(2 * b + c, [a, b, c]),  # a point
    CallableShape(Ellipsoid([1, "0.5"]).anchor, 3),
    CallableShape(chosen, 5),
]
EVERY = CLOSED + CLOUDS + USERS


def sources(shape, count=150, seed=0, scale=1.5):
    return scale * np.random.default_rng(seed).normal(size=(count, shape.dimension)) + np.eye(shape.dimension)[-1]


def certificate(shape, x, s):
    """The largest violation of what makes s the nearest point: s is in S, and S lies beyond s as seen from x."""
    v = s - x
    beyond = (v * s).sum(axis=1) - shape.support(v)
    outside = max((shape.support(n) - s @ n).max() for n in sources(shape, 40, seed=5))
    return max(beyond.max(), outside)


@pytest.mark.parametrize("scale", [0.05, 1.5, 40])
@pytest.mark.parametrize("shape", EVERY, ids=repr)
def test_no_point_of_the_set_is_nearer(shape, scale):
    x = sources(shape, scale=scale)
    s = shape.nearest(x).s
    size = 1 + scale
    assert certificate(shape, x, s) < 1e-9 * size
    # the certificate sees a displacement along the set, which does not leave its span
    if np.ptp(shape.anchor(np.concatenate([x, -x])), axis=0).max() > 1e-2:
        other = s + 1e-2 * (shape.anchor(x) - s)
        moved = np.abs(other - s).max(axis=1) > 1e-3
        assert moved.any()
        assert certificate(shape, x[moved], other[moved]) > 1e-6


@pytest.mark.parametrize(("shape", "tolerance"), [(s, 1e-6) for s in EVERY], ids=repr)
def test_the_jacobian_is_the_derivative(shape, tolerance):
    """Central differences; samples next to an edge of a region of smoothness are left out, and are rare."""
    x, step = sources(shape, 60, seed=3), 1e-5
    found = shape.nearest(x)
    assert found.jacobian.shape == (60, shape.dimension, shape.dimension)
    quotient, same = np.empty_like(found.jacobian), np.ones(60, dtype=bool)
    for k, axis in enumerate(np.eye(shape.dimension)):
        up, down = shape.nearest(x + step * axis), shape.nearest(x - step * axis)
        quotient[:, :, k] = (up.s - down.s) / (2 * step)
        same &= (np.abs(up.jacobian - found.jacobian).max(axis=(1, 2)) < 0.01) & (up.free == found.free)
        same &= (np.abs(down.jacobian - found.jacobian).max(axis=(1, 2)) < 0.01) & (down.free == found.free)
    assert same.mean() > 0.9
    np.testing.assert_allclose(found.jacobian[same], quotient[same], atol=tolerance)
    np.testing.assert_allclose(found.jacobian, found.jacobian.transpose(0, 2, 1), atol=1e-9)
    np.testing.assert_allclose(found.divergence, np.trace(found.jacobian, axis1=1, axis2=2), atol=1e-12)
    sizes = np.linalg.eigvalsh(found.jacobian)
    assert sizes.min() > -1e-6
    assert sizes.max() < 1 + 1e-6
    np.testing.assert_array_equal((sizes > 1 - 1e-6).sum(axis=1), found.free)


@pytest.mark.parametrize("points", [CLOUD, TILTED, FLAT, GRID], ids=["cloud", "tilted", "flat", "grid"])
def test_clouds_against_non_negative_least_squares(points):
    from scipy.optimize import nnls

    shape = PointCloud(points)
    x = sources(shape, 200, seed=8)
    s = shape.nearest(x).s
    for k in range(len(x)):
        w, _ = nnls(np.vstack([(points - x[k]).T, np.ones(len(points))]), np.append(np.zeros(shape.dimension), 1.0))
        np.testing.assert_allclose(w @ points / w.sum(), s[k], atol=1e-9)


@pytest.mark.parametrize("shape", [Ball(3, "0.7"), Ellipsoid([1, "0.5", "0.25"]), Ellipsoid(["0.1", 2, 0])], ids=repr)
def test_ellipsoids_against_a_general_minimizer(shape):
    from scipy.optimize import minimize

    R, center = shape.numbers()
    x = sources(shape, 25, seed=2)
    s = shape.nearest(x).s
    for k in range(len(x)):
        inside = {"type": "ineq", "fun": lambda u: 1 - u @ u, "jac": lambda u: -2 * u}
        y = x[k, :-1]
        found = minimize(
            lambda u, y=y: np.square(R * u - y).sum() / 2,
            np.zeros(len(R)),
            jac=lambda u, y=y: R * (R * u - y),
            constraints=inside,
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(np.append(R * found.x, center), s[k], atol=2e-5)


def test_a_cylinder_in_closed_form():
    """A disc times a segment: edges, flat and curved faces of a user's set, to rounding."""
    x = sources(CYLINDER, 2000, seed=4)
    radius = np.sqrt(np.square(x[:, :2]).sum(axis=1))
    s = np.column_stack([x[:, :2] / np.maximum(1, radius)[:, None], np.clip(x[:, 2], -0.5, 0.5), np.ones(len(x))])
    found = CYLINDER.nearest(x)
    flat = np.abs(x[:, 2]) < 0.5
    error = np.abs(found.s - s).max(axis=1)
    psi = np.abs(found.divergence - np.where(radius > 1, 1 / radius, 2.0) - flat)
    # next to an edge, one sample in a thousand is left to the cutting planes
    assert (error < 1e-10).mean() > 0.998
    assert (psi < 1e-6).mean() > 0.998
    assert error.max() < 1e-5
    assert (found.free == np.where(radius > 1, 0, 2) + flat).mean() > 0.998


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (Ellipsoid(["0.7"] * 3), Ball(3, "0.7")),
        (PointCloud([[2, 1], [-2, 1]]), Segment(2)),
        (USERS[0], CLOSED[7]),
        (USERS[4], PointCloud([[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 2]])),
        (USERS[5], PointCloud([[0, 2, 1]])),
        (USERS[6], Ellipsoid([1, "0.5"])),
        (USERS[7], CLOUDS[0]),
    ],
    ids=repr,
)
def test_two_ways_to_one_set(mine, other):
    for scale in (0.3, 1.5, 100):
        x = sources(other, 300, seed=6, scale=scale)
        one, two = mine.nearest(x), other.nearest(x)
        np.testing.assert_allclose(one.s, two.s, atol=1e-9)
        np.testing.assert_allclose(one.jacobian, two.jacobian, atol=1e-7)
        np.testing.assert_array_equal(one.free, two.free)


def test_flat_directions_and_interiors():
    shape = Ellipsoid([1, 0, "0.5"])
    inside = shape.nearest([[0.1, 5, 0.1, -3]])
    np.testing.assert_allclose(inside.s, [[0.1, 0, 0.1, 1]], atol=0)
    np.testing.assert_allclose(inside.jacobian[0], np.diag([1.0, 0, 1, 0]), atol=0)
    square = CLOUDS[5].nearest([[0, 0, 5], [0.5, 3, 1], [3, 3, 1], [0.2, 0.3, 1]])  # on a diagonal of the square
    np.testing.assert_array_equal(square.free, [2, 1, 0, 2])
    np.testing.assert_allclose(square.jacobian[0], np.diag([1.0, 1, 0]), atol=1e-12)
    np.testing.assert_allclose(square.jacobian[1], np.diag([1.0, 0, 0]), atol=1e-12)
    corners = PointCloud(TILTED).nearest(TILTED)  # every point is in the hull already
    np.testing.assert_allclose(corners.s, TILTED, atol=1e-12)


def test_a_face_with_more_points_than_carry():
    """The nearest point of a grid lies on a face of nine points, of which at most three carry it."""
    found = PointCloud(GRID).nearest([[0.3, 0.2, 7.0], [0, 0, 7.0], [1.0, 0, 9.0], [5, 0.2, 2.5]])
    np.testing.assert_allclose(found.s, [[0.3, 0.2, 3], [0, 0, 3], [1, 0, 3], [1, 0.2, 2.5]], atol=1e-12)
    np.testing.assert_allclose(found.jacobian[:2], [np.diag([1.0, 1, 0])] * 2, atol=1e-12)
    np.testing.assert_allclose(found.jacobian[3], np.diag([0, 1.0, 1]), atol=1e-12)


def test_the_slow_method_finds_the_same_points(monkeypatch):
    import symcavity.shapes.hull as module

    x = sources(PointCloud(CLOUD), 60)
    expected = PointCloud(CLOUD).nearest(x)
    whole = module.active_set
    monkeypatch.setattr(module, "active_set", lambda t, k, oracle, tol, _: whole(t, k, oracle, tol, 1))
    hurried = PointCloud(CLOUD).nearest(x)
    np.testing.assert_allclose(hurried.s, expected.s, atol=1e-12)
    np.testing.assert_allclose(hurried.jacobian, expected.jacobian, atol=1e-10)


def test_anchors_at_ties_are_points_of_the_set():
    """Where three arguments of Min are equal, a sum of half steps is no gradient."""
    shape = USERS[4]
    V = np.array([[0, 0, 1.0], [0, 0, -1.0], [1, 1, 0], [0, 0, 0.0]])
    s = shape.anchor(V)
    corners = PointCloud([[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 2]])
    np.testing.assert_allclose(corners.nearest(s).s, s, atol=1e-12)


def test_large_batches_and_sources_far_away():
    rng = np.random.default_rng(4)
    points = np.column_stack([rng.normal(size=(1000, 20)) / np.sqrt(20), np.ones(1000)])
    shape = PointCloud(points)
    for scale in (0.1, 1, 1e4):
        x = scale * rng.normal(size=(1500, 21))
        found = shape.nearest(x)
        v = found.s - x
        gap = (v * found.s).sum(axis=1) - (v @ points.T).min(axis=1)
        assert gap.max() < 1e-12 * (1 + np.sqrt(np.square(v).sum(axis=1)).max())
        np.testing.assert_allclose(found.divergence, found.free, atol=1e-10)


@pytest.mark.parametrize("shape", EVERY, ids=repr)
def test_bad_input(shape):
    n = shape.dimension
    with pytest.raises(ValuesError, match="x has the shape"):
        shape.nearest(np.zeros((3, n + 1)))
    with pytest.raises(ValuesError, match="x has the shape"):
        shape.nearest(np.zeros((2, 3, n)))
    with pytest.raises(ValuesError, match="NaN"):
        shape.nearest(np.full((1, n), np.nan))
    assert shape.nearest(np.zeros((0, n))).jacobian.shape == (0, n, n)
    assert shape.nearest(np.zeros(n)).s.shape == (1, n)


def test_planes_that_do_not_close_are_an_error_with_the_best_points(monkeypatch):
    import symcavity.shapes.smooth as module

    x = sources(CYLINDER, 5)
    expected = CYLINDER.nearest(x).s
    monkeypatch.setattr(module, "CLOSE", -1.0)
    with pytest.raises(NotConverged, match="did not close on 5 samples") as error:
        CYLINDER.nearest(x)
    assert np.abs(error.value.best - expected).max() < 0.2


# -- slack -----------------------------------------------------------------------------------------


def objective(shape, v, t, k, cap):
    return np.square(v - t).sum(axis=-1) / 2 + cap * np.maximum(0, k - shape.support(v))


def is_minimum(shape, v, t, k, cap):
    """A strongly convex function exceeds its minimum by half the squared distance, everywhere."""
    least, worst = objective(shape, v, t, k, cap), -np.inf
    rng = np.random.default_rng(1)
    for size in (1e-3, 0.03, 0.5, 3):
        for _ in range(40):
            other = v + size * rng.normal(size=v.shape)
            excess = objective(shape, other, t, k, cap) - least - np.square(other - v).sum(axis=1) / 2
            worst = max(worst, -excess.min() / size)
    return worst < 1e-7


@pytest.mark.parametrize(("k", "cap"), [(0.7, 0.4), (1.5, 2.0), (0.5, 1e-3), (-0.4, 0.3)])
@pytest.mark.parametrize("shape", EVERY, ids=repr)
def test_projections_with_slack_are_minima(shape, k, cap):
    t = sources(shape, 120, seed=9)
    cap /= 1 + np.square(shape.anchor(np.eye(shape.dimension))).sum(axis=1).max() / 10
    hard = shape.project(t, k)
    p = saturate(shape, t, hard, cap)
    assert is_minimum(shape, p.v, t, k, cap)
    over = p.regime == SATURATED
    np.testing.assert_array_equal(over, hard.lam > cap)
    assert over.any()
    assert (p.lam[over] == cap).all()
    assert (shape.support(p.v[over]) <= k + 1e-9).all()
    np.testing.assert_allclose(p.lam_s, p.v - t, atol=1e-12)
    np.testing.assert_allclose(p.v[~over], hard.v[~over], atol=0)
    # negative controls: the hard projection, and a wrong displacement
    assert not is_minimum(shape, hard.v, t, k, cap)
    assert not is_minimum(shape, p.v + 0.01 * p.lam_s, t, k, cap)


@pytest.mark.parametrize("shape", EVERY, ids=repr)
def test_psi_and_absorbed_directions_with_slack(shape):
    k, cap, step = 0.8, 0.7, 1e-5
    cap /= 1 + np.square(shape.anchor(np.eye(shape.dimension))).sum(axis=1).max() / 10
    t = sources(shape, 80, seed=7)

    def project(t):
        return saturate(shape, t, shape.project(t, k), cap)

    p = project(t)
    over = p.regime == SATURATED
    J, same = np.empty((len(t), shape.dimension, shape.dimension)), over.copy()
    for n, axis in enumerate(np.eye(shape.dimension)):
        up, down = project(t + step * axis), project(t - step * axis)
        J[:, :, n] = (up.v - down.v) / (2 * step)
        for q in (up, down):
            same &= (q.regime == p.regime) & (q.absorbed == p.absorbed) & (np.abs(q.psi - p.psi) < 0.01)
    assert same.sum() > 0.8 * over.sum() > 0
    np.testing.assert_allclose(p.psi[same], np.trace(J[same], axis1=1, axis2=2) - shape.dimension, atol=1e-6)
    sizes = np.linalg.eigvalsh((J[same] + J[same].transpose(0, 2, 1)) / 2)
    np.testing.assert_array_equal((sizes < 1e-6).sum(axis=1), p.absorbed[same])


def test_slack_against_a_general_solver():
    from scipy.optimize import minimize

    shape, k, cap = CLOUDS[1], 2.0, 0.3
    t = sources(shape, 15, seed=12)
    p = saturate(shape, t, shape.project(t, k), cap)
    for row in range(len(t)):
        margins = {
            "type": "ineq",
            "fun": lambda z: TILTED @ z[:-1] - k + z[-1],
            "jac": lambda _: np.column_stack([TILTED, np.ones(len(TILTED))]),
        }
        found = minimize(
            lambda z, row=row: np.square(z[:-1] - t[row]).sum() / 2 + cap * z[-1],
            np.append(t[row], 50.0),
            jac=lambda z, row=row: np.append(z[:-1] - t[row], cap),
            constraints=margins,
            bounds=[(None, None)] * 3 + [(0, None)],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(found.x[:-1], p.v[row], atol=1e-5)
