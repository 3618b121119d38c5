"""Projections: optimality conditions, other solvers, closed forms, psi as a finite-difference divergence."""

import numpy as np
import pytest
import sympy
from sets_shared import CLOSED, CLOUD, FLAT, TILTED

from symcavity.shapes import Ball, CallableShape, Ellipsoid, ExpressionShape, PointCloud, Polytope, Segment
from symcavity.shapes.base import INTERIOR, PARTIAL, TOUCHING, WHOLE

a, b, c, d = sympy.symbols("a b c d")

CLOUDS = [
    PointCloud(CLOUD),
    PointCloud(TILTED),
    PointCloud(FLAT),
    PointCloud([[1, 2, 3]]),
    Polytope([[1, 1], [-1, 1], [1, -1], [-1, -1], [0, 0]]),
]
USERS = [
    ExpressionShape(d - sympy.sqrt(a**2 + b**2 / 4 + c**2 / 16), [a, b, c, d]),
    ExpressionShape(c - (a**4 + b**4) ** sympy.Rational(1, 4), [a, b, c]),
    ExpressionShape(d - sympy.sqrt(a**2 + b**2) - sympy.Abs(c) / 2, [a, b, c, d]),
    CallableShape(Ellipsoid([1, "0.5"]).anchor, 3),
]


def sources(shape, count=200, seed=0):
    return 1.5 * np.random.default_rng(seed).normal(size=(count, shape.dimension))


@pytest.mark.parametrize("kappa", [0, 0.5])
@pytest.mark.parametrize("shape", CLOSED + CLOUDS + USERS, ids=repr)
def test_optimality_conditions(shape, kappa):
    t = sources(shape)
    p = shape.project(t, kappa)
    g = shape.support(p.v)
    assert (g >= kappa - 1e-9).all()
    np.testing.assert_allclose(g[p.supporting], kappa, atol=1e-9)
    np.testing.assert_allclose(p.lam_s, p.lam[:, None] * p.anchor, atol=1e-9)
    np.testing.assert_allclose(p.lam_s, p.v - t, atol=0)
    assert (p.lam[p.supporting] > 0).all()
    assert (p.lam[~p.supporting] == 0).all()
    # s is a point of S: no direction sees it below the support function, and v sees it exactly there.
    for direction in sources(shape, 30, seed=5):
        assert (p.anchor @ direction >= shape.support(direction) - 1e-9).all()
    np.testing.assert_allclose((p.v * p.anchor).sum(axis=1)[p.supporting], kappa, atol=1e-9)


@pytest.mark.parametrize("kappa", [0, 0.5])
@pytest.mark.parametrize(
    ("shape", "tolerance"), [(s, 1e-6) for s in CLOSED + CLOUDS + USERS[:3]] + [(USERS[3], 1e-3)], ids=repr
)
def test_psi_is_the_divergence(shape, tolerance, kappa):
    """Central differences; the rare sample within a step of a boundary between regimes is left out."""
    t, step = sources(shape, 60, seed=3), 1e-5
    p = shape.project(t, kappa)
    divergence, same = np.full(len(t), -float(shape.dimension)), np.ones(len(t), dtype=bool)
    for axis in np.eye(shape.dimension):
        up, down = shape.project(t + step * axis, kappa), shape.project(t - step * axis, kappa)
        divergence += (up.v - down.v) @ axis / (2 * step)
        same &= (up.regime == p.regime) & (down.regime == p.regime)
    assert same.mean() > 0.9
    np.testing.assert_allclose(p.psi[same], divergence[same], atol=tolerance)


def test_psi_of_a_touching_ball_is_the_appendix_formula():
    """(A.10) with the matrix P built and inverted, against the closed form."""
    shape = Ball(3, "0.7")
    p = shape.project(sources(shape), 0.5)
    for k in np.flatnonzero(p.touching):
        P = np.linalg.inv(np.eye(4) - p.lam[k] * shape.hessian(p.v[k]))
        s = p.anchor[k]
        assert p.psi[k] == pytest.approx(np.trace(P - np.eye(4)) - s @ P @ P @ s / (s @ P @ s), abs=1e-11)
        # P is not a projection operator: its eigenvalues are 1/(1 + R lam/|v|).
        r = np.linalg.norm(p.v[k, :-1])
        np.testing.assert_allclose(
            np.sort(np.linalg.eigvalsh(P)),
            np.sort([1, 1, 1 / (1 + 0.7 * p.lam[k] / r), 1 / (1 + 0.7 * p.lam[k] / r)]),
        )


@pytest.mark.parametrize("kappa", [0, 0.5])
@pytest.mark.parametrize("points", [CLOUD, TILTED, FLAT], ids=["cloud", "tilted", "flat"])
def test_clouds_against_a_quadratic_program(points, kappa):
    daqp = pytest.importorskip("daqp")
    shape = PointCloud(points)
    t = sources(shape, 60, seed=8)
    v = shape.project(t, kappa).v
    size = shape.dimension
    for k in range(len(t)):
        x, _, flag, _ = daqp.solve(
            np.eye(size),
            -t[k],
            np.ascontiguousarray(points),
            np.full(len(points), 1e30),
            np.full(len(points), float(kappa)),
            np.zeros(len(points), dtype=np.int32),
        )
        assert flag == 1
        np.testing.assert_allclose(v[k], x, atol=1e-7)


@pytest.mark.parametrize("radii", [[1, 0.5, 0.25], [3, 0.01, 0.4, 1.2]])
def test_ellipsoids_against_a_conic_solver(radii):
    clarabel = pytest.importorskip("clarabel")
    sparse = pytest.importorskip("scipy.sparse")
    shape, kappa = Ellipsoid(radii), 0.5
    t = sources(shape, 40, seed=2)
    v = shape.project(t, kappa).v
    size = shape.dimension
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    A = np.zeros((size, size))
    A[0, -1] = -1.0
    A[1:, :-1] = -np.diag(radii)
    right = np.append(-kappa, np.zeros(size - 1))
    for k in range(len(t)):
        answer = clarabel.DefaultSolver(
            sparse.csc_matrix(np.eye(size)),
            -t[k],
            sparse.csc_matrix(A),
            right,
            [clarabel.SecondOrderConeT(size)],
            settings,
        ).solve()
        x = np.array(answer.x)
        ours, theirs = np.square(v[k] - t[k]).sum(), np.square(x - t[k]).sum()
        assert theirs - 1e-6 < ours < theirs + 1e-9  # ours is feasible, and no longer than the solver's
        np.testing.assert_allclose(v[k], x, atol=1e-3)


def test_precision_of_the_secular_root_near_the_tip_and_the_boundary():
    shape = Ellipsoid([1, "0.5", "0.25"])
    R = np.array([1, 0.5, 0.25])
    p0 = np.array([0.3, -0.8, 0.5])
    for reach in (1e-9, 1e-4, 1.0, 1e4):
        for lam in (1e-9, 1e-4, 1.0, 1e4):
            v = np.append(p0 * reach, 0.5 + np.linalg.norm(R * p0) * reach)
            s = shape.anchor(v)
            found = shape.project(v - lam * s, 0.5)
            assert found.regime[0] == TOUCHING
            np.testing.assert_allclose(found.v[0], v, rtol=1e-12, atol=1e-14 * max(reach, lam, 1))
            assert found.lam[0] == pytest.approx(lam, rel=1e-12, abs=1e-14 * max(reach, lam, 1))


def test_an_ellipsoid_with_equal_radii_is_a_ball():
    t = sources(Ball(3, 1), 400)
    ball, other = Ball(3, "0.7").project(t, 0.3), Ellipsoid(["0.7"] * 3).project(t, 0.3)
    np.testing.assert_allclose(ball.v, other.v, atol=1e-13)
    np.testing.assert_allclose(ball.psi, other.psi, atol=1e-12)
    assert (ball.regime == other.regime).all()


def test_a_segment_is_a_cloud_of_two_points():
    t = sources(Segment(1), 400)
    one, two = Segment("0.8").project(t, 0.3), PointCloud([[0.8, 1], [-0.8, 1]]).project(t, 0.3)
    np.testing.assert_allclose(one.v, two.v, atol=1e-13)
    np.testing.assert_allclose(one.lam, two.lam, atol=1e-13)
    assert (one.regime == two.regime).all()
    assert (one.psi == two.psi).all()


def test_users_shapes_are_the_built_in_ones():
    t = sources(Ball(3, 1), 300)
    mine, built_in = USERS[0].project(t, 0.5), Ellipsoid([1, "0.5", "0.25"]).project(t, 0.5)
    np.testing.assert_allclose(mine.v, built_in.v, atol=1e-11)
    np.testing.assert_allclose(mine.psi, built_in.psi, atol=1e-10)
    assert (mine.regime == built_in.regime).all()
    assert (mine.absorbed == built_in.absorbed).all()

    def nearest(v):
        return CLOUD[(CLOUD @ v).argmin()]

    t = sources(PointCloud(CLOUD), 60)
    mine, built_in = CallableShape(nearest, 5).project(t, 0.5), PointCloud(CLOUD).project(t, 0.5)
    np.testing.assert_allclose(mine.v, built_in.v, atol=1e-9)
    np.testing.assert_allclose(mine.psi, built_in.psi, atol=1e-6)
    assert (mine.regime == built_in.regime).all()


def test_regimes_and_absorbed_directions_of_a_cloud():
    p = PointCloud(CLOUD).project(sources(PointCloud(CLOUD), 2000), 0.5)
    assert set(p.regime) == {INTERIOR, TOUCHING, PARTIAL, WHOLE}
    assert (p.absorbed[p.regime == INTERIOR] == 0).all()
    assert (p.absorbed[p.regime == TOUCHING] == 1).all()
    assert set(p.absorbed[p.regime == PARTIAL]) == {2, 3, 4}
    assert (p.absorbed[p.regime == WHOLE] == 5).all()
    np.testing.assert_array_equal(p.psi, -p.absorbed)
    heights = p.v[p.fully_supporting] @ CLOUD.T
    np.testing.assert_allclose(heights, 0.5, atol=1e-11)


def test_large_batches_reach_rounding_accuracy():
    rng = np.random.default_rng(4)
    points = np.column_stack([rng.normal(size=(300, 12)) / np.sqrt(12), np.ones(300)])
    t = rng.normal(size=(3000, 13))
    p = PointCloud(points).project(t, 0.5)
    heights = p.v @ points.T
    assert heights.min() > 0.5 - 1e-10
    on_margin = heights < 0.5 + 1e-10
    assert (on_margin.sum(axis=1)[p.supporting] >= p.absorbed[p.supporting]).all()
    np.testing.assert_allclose((p.lam_s * p.v).sum(axis=1), 0.5 * p.lam, atol=1e-10)


def test_the_fallback_finds_the_same_projection(monkeypatch):
    import symcavity.shapes.clouds as module

    t = sources(PointCloud(CLOUD), 50)
    expected = PointCloud(CLOUD).project(t, 0.5)
    whole = module.active_set
    monkeypatch.setattr(module, "active_set", lambda t, k, oracle, tol, _: whole(t, k, oracle, tol, 1))
    hurried = PointCloud(CLOUD).project(t, 0.5)
    np.testing.assert_allclose(hurried.v, expected.v, atol=1e-10)
    assert (hurried.absorbed == expected.absorbed).all()


@pytest.mark.parametrize("shape", CLOSED[:2] + CLOSED[7:9] + USERS[:2], ids=repr)
def test_anchor_and_hessian_are_the_derivatives_of_the_support_function(shape):
    V, h = sources(shape, 20, seed=9), 1e-5
    anchor, hessian = shape.anchor(V), shape.hessian(V)
    for k, axis in enumerate(np.eye(shape.dimension)):
        up, down = V + h * axis, V - h * axis
        np.testing.assert_allclose(
            (shape.support(up) - shape.support(down)) / (2 * h), anchor[:, k], atol=1e-6
        )
        np.testing.assert_allclose(
            (shape.anchor(up) - shape.anchor(down)) / (2 * h), hessian[:, k], atol=1e-3
        )
    np.testing.assert_allclose((V * anchor).sum(axis=1), shape.support(V), atol=1e-12)


@pytest.mark.parametrize("shape", CLOSED + CLOUDS + USERS[:3], ids=repr)
def test_symbolic_support_is_the_support_function(shape):
    V = sources(shape, 5, seed=1)
    symbols = sympy.symbols(f"V1:{shape.dimension + 1}", real=True)
    g = shape.symbolic_support(symbols)
    function = sympy.lambdify(symbols, g, modules="math")
    for row in V:
        assert function(*row) == pytest.approx(float(shape.support(row)), abs=1e-12)


def test_everything_is_vectorised_over_leading_axes():
    V = np.random.default_rng(12).normal(size=(2, 3, 4))
    for shape in (Ball(3, 1), Ellipsoid([1, 2, 3]), PointCloud(CLOUD[:, 1:]), USERS[0]):
        assert shape.support(V).shape == (2, 3)
        assert shape.anchor(V).shape == (2, 3, 4)
        assert shape.hessian(V).shape == (2, 3, 4, 4)
        assert shape.support(V[0, 0]).shape == ()
        assert shape.project(V[0, 0]).v.shape == (1, 4)


@pytest.mark.parametrize("kappa", [0, 0.5])
@pytest.mark.parametrize("shape", [Ball(2, 1), Ellipsoid([1, "0.5"]), CLOUDS[4], USERS[1]], ids=repr)
def test_sources_on_the_axis_at_the_origin_and_none_at_all(shape, kappa):
    t = np.array([[0, 0, 0.7], [0, 0, -1], [0, 0, 3], [0, 0, 0], [0, 1e-300, 0]])
    p = shape.project(t, kappa)
    inside = t[:, -1] >= kappa
    np.testing.assert_allclose(p.v[inside], t[inside], atol=1e-12)
    np.testing.assert_allclose(p.v[~inside], [[0, 0, kappa]] * int((~inside).sum()), atol=1e-9)
    nothing = shape.project(np.zeros((0, 3)), kappa)
    assert nothing.v.shape == (0, 3)
    assert nothing.psi.shape == (0,)


def test_averages_far_out_are_those_of_the_tip():
    """Where nearly all sources end at the tip, by exact Gaussian moments; before, by sampled projections."""
    shape = Ellipsoid([1, "1/2"])
    for k in (30.0, 1e3, 1e6):
        found = shape.averages(k)
        assert found["norm"] == pytest.approx(3 + k**2, rel=1e-12)
        assert (found["whole"], found["lam"], found["psi"]) == (1, k, pytest.approx(-3))
    near = shape.averages(10.0)
    assert near["norm"] == pytest.approx(103, rel=1e-6)
    assert all((found := shape.averages(k)) is None or found["whole"] > 0.9 for k in np.linspace(11, 60, 15))
