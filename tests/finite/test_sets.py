"""Instances of laws with convex sets: against independent solvers, their own optimality, and other declarations."""

import numpy as np
import pytest
from declarations_simulated import assert_contradicts, response_by_source
from sympy import Rational, Sum, sqrt

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Ellipsoid,
    Feature,
    Infeasible,
    N,
    PointCloud,
    Polytope,
    Quenched,
    Segment,
    SupportFunction,
    TwoPoints,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.derivations import soft_manifold
from symcavity.derivations.gardner import problem as points
from symcavity.derivations.manifold import D, a, g, kappa, problem, u, w
from symcavity.finite.experiment import cavity_experiment
from symcavity.finite.instance import Instance
from symcavity.finite.minimum import solve_instance
from symcavity.finite.responses import Responses
from symcavity.finite.setup import prepare
from symcavity.finite.sweep import sweep_simulation
from symcavity.model.kinds import DATUM, FEATURE

TRIANGLE = PointCloud([[1, 0, 1], [0, 1, 1], [-1, -1, 1.0]])
SQUARE = Polytope([[1, 0], [0, 1], [-1, 0], [0, -1]])
SKEW = PointCloud([[0.5, 0.2, 1], [0.1, 0.6, 0.7], [-0.4, 0.1, 1.3], [0.0, -0.5, 0.9]])
LONG = Ellipsoid([1, Rational(1, 4)])
SHAPES = {
    "ball": (Ball(2, 1), 0.3),
    "big": (Ball(4, 2), 0.15),
    "long": (LONG, 0.4),
    "pair": (TwoPoints(Rational(1, 2)), 0.7),
    "triangle": (TRIANGLE, 0.4),
    "square": (SQUARE, 0.35),
    "skew": (SKEW, 0.6),
}


@pytest.fixture(scope="module", params=SHAPES)
def solved(request):
    shape, load = SHAPES[request.param]
    return shape, problem.simulate({alpha: load, g: shape}, N=40, seeds=2)


def tensors(sim, k):
    """The couplings (data, features, components), and w, V, Lambda, lambda, h of an instance."""
    sample = sim.samples[k]
    return np.stack(sim.reader(k).instance.couplings, axis=2), *(sample[x] for x in ("w", "V", "Lambda", "lambda", "h"))


def test_the_conditions_of_optimality_hold(solved):
    """Written out with arrays and the functions of the shape alone: nothing of the simulation takes part."""
    shape, sim = solved
    assert sim.infeasible == 0
    assert sim.residuals.worst < 1e-10
    for k in range(2):
        x, weights, V, Lam, lam, h = tensors(sim, k)
        assert np.einsum("pna,n->pa", x, weights) == pytest.approx(V, abs=1e-10)
        assert np.einsum("pna,pa->n", x, Lam) == pytest.approx(weights, abs=1e-10)
        assert shape.support(V) - 1 == pytest.approx(h, abs=1e-10)
        assert h.min() > -1e-10
        assert lam.min() >= 0
        assert np.abs(lam * h).max() < 1e-9
        # lambda*s with s in the set, where V.s is least: no direction sees s below the set
        assert (V * Lam).sum(axis=1) == pytest.approx(lam * shape.support(V), abs=1e-9)
        directions = np.random.default_rng(k).standard_normal((200, V.shape[1]))
        heights = Lam @ directions.T
        assert np.all(heights >= lam[:, None] * shape.support(directions) - 1e-9)


def test_a_conic_solver_agrees(solved):
    """The same program by its cones (balls, ellipsoids) or its vertices (clouds), with another solver."""
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    shape, sim = solved
    x, weights, *_ = tensors(sim, 0)
    data, n, d = x.shape
    blocks, offsets, cones = [], [], []
    for p in range(data):
        if isinstance(shape, Ellipsoid):
            radii, c = shape.numbers()
            scale = np.concatenate([[c], radii])
            order = [d - 1, *range(d - 1)]
            blocks.append(-(x[p][:, order] * scale).T)
            offsets.append(np.concatenate([[-1.0], np.zeros(d - 1)]))
            cones.append(clarabel.SecondOrderConeT(d))
        else:
            blocks.append(-(shape.points @ x[p].T))
            offsets.append(-np.ones(len(shape.points)))
            cones.append(clarabel.NonnegativeConeT(len(shape.points)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    found = clarabel.DefaultSolver(
        sparse.eye_array(n).tocsc(),
        np.zeros(n),
        sparse.csc_matrix(np.concatenate(blocks)),
        np.concatenate(offsets),
        cones,
        settings,
    ).solve()
    assert weights == pytest.approx(np.array(found.x), abs=2e-5)


def test_slack_minimises_the_written_objective():
    from scipy.optimize import minimize

    shape, C = Ball(2, Rational(1, 2)), 0.8
    sim = soft_manifold.problem.simulate({alpha: 1, soft_manifold.g: shape, soft_manifold.C: C}, N=8, seeds=2)
    for k in range(2):
        x, weights, V, Lam, lam, _ = tensors(sim, k)
        xi = sim.samples[k]["xi"]
        assert xi == pytest.approx(np.maximum(0, 1 - shape.support(V)), abs=1e-9)
        assert np.all((lam >= -1e-12) & (lam <= C + 1e-12))
        assert np.einsum("pna,pa->n", x, Lam) == pytest.approx(weights, abs=1e-10)

        def cost(v, x=x):
            return v @ v / 2 + C * np.maximum(0, 1 - shape.support(np.einsum("pna,n->pa", x, v))).sum()

        near = minimize(cost, weights, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000})
        assert cost(weights) <= near.fun + 1e-9


def test_two_points_by_components_are_the_same_instances():
    """One constraint for each point, in scalars, against the pair as a set: the same couplings, the same weights."""
    low, high = sqrt(Rational(1, 4)), sqrt(Rational(3, 4))
    x = Coupling("u", components=(a, 1, 2))
    first, second = (Sum(x[mu, i, k] * w[i], (i, 1, N)) for k in (1, 2))
    constraints = [high * second + low * first >= 1, high * second - low * first >= 1]
    scalars = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, constraints)
    one = scalars.simulate({alpha: 0.7}, N=40, seeds=3)
    two = problem.simulate({alpha: 0.7, g: TwoPoints(Rational(1, 2))}, N=40, seeds=3)
    assert two.arrays("w") == pytest.approx(one.arrays("w"), abs=1e-10)
    whole = (two.arrays("lambda") > 1e-9) & (np.abs(two.arrays("V")[:, :, 0]) < 1e-9)
    names = [n for n in one.samples[0].arrays if n.startswith("lambda")]
    both = np.all([one.arrays(n) > 1e-9 for n in names], axis=0)
    assert np.array_equal(whole, both)
    assert both.any()


def test_a_point_is_the_perceptron():
    one = points.simulate({alpha: 1.2}, N=40, seeds=2)
    two = problem.simulate({alpha: 1.2, g: Segment(0)}, N=40, seeds=2)
    assert two.residuals.worst < 1e-9
    # the couplings of the second component of the set are those that matter
    x = two.reader(0).instance.couplings[1]
    assert (x @ two.samples[0]["w"]).min() == pytest.approx(1, abs=1e-9)
    assert one[average(w[i] ** 2)].z(two[average(w[i] ** 2)].mean) < 6


@pytest.mark.parametrize("shape", [Ball(2, 1), TRIANGLE, LONG], ids=["ball", "triangle", "long"])
def test_responses_are_what_a_source_does(shape):
    """Solving again from scratch with a source, at sites in every regime, against the linear response."""
    setup = prepare(problem.kkt(), {alpha: 0.4, g: shape})
    instance = setup.instance(20, 1)
    solved = solve_instance(setup.system, instance)
    exact = Responses(instance, solved)
    law = instance.system.laws[DATUM]
    regimes = law.sets.regimes(solved.state.site[DATUM])
    sites = [int(np.flatnonzero(regimes == r)[0]) for r in np.unique(regimes)]
    assert len(sites) > 1
    for site in sites:
        for field in range(3):
            measured = response_by_source(setup.system, instance, DATUM, site, field=field, size=1e-5)
            for side in (FEATURE, DATUM):
                linear = exact.matrix(DATUM, field).site[side][:, :, site]
                assert measured[side] == pytest.approx(linear, abs=2e-4 * (1 + np.abs(linear).max()))
    measured = response_by_source(setup.system, instance, FEATURE, 3, size=1e-5)
    assert measured[FEATURE] == pytest.approx(exact.matrix(FEATURE).site[FEATURE][:, :, 3], abs=1e-4)


def test_observables_in_the_words_of_the_declaration():
    sim = problem.simulate({alpha: 0.3, g: Ball(2, 1)}, N=30, seeds=2)
    lam, Lam, V = (problem.kkt()[name] for name in ("lambda", "Lambda", "V"))
    stored = sim.arrays("Lambda")
    assert stored.shape == (2, 9, 3)
    square = sim[average(Sum(Lam[mu, a] ** 2, (a, 1, D + 1)))].samples
    assert square == pytest.approx((stored**2).sum(axis=2).mean(axis=1), rel=1e-12)
    assert sim[average(V[mu, 3])].samples == pytest.approx(sim.arrays("V")[:, :, 2].mean(axis=1), rel=1e-12)
    # the work identity: w^2 summed over the features is lambda summed over the data, instance by instance
    assert sim[Sum(w[i] ** 2, (i, 1, N))].samples == pytest.approx(sim.arrays("lambda").sum(axis=1), rel=1e-9)
    assert 0 < sim[average(response(w))].mean < 1
    field = Sum(u[mu, i, 1] * w[i], (i, 1, N))
    assert sim[average(field**2)].samples == pytest.approx((sim.arrays("V")[:, :, 0] ** 2).mean(axis=1), rel=1e-9)
    assert sim[1 / kappa**2].samples == pytest.approx(sim[average(w[i] ** 2)].samples, rel=1e-12)
    with pytest.raises(ValuesError, match="leaves the component a open"):
        sim[average(Lam[mu, a] ** 2)]
    with pytest.raises(ValuesError, match="names no source"):
        sim[average(response(lam))]


def test_bad_input_is_named():
    with pytest.raises(ValuesError, match="The set of g_S is not given"):
        problem.simulate({alpha: 0.3}, N=20, seeds=1)
    with pytest.raises(ValuesError, match="shape, for instance"):
        problem.simulate({alpha: 0.3, g: 3}, N=20, seeds=1)
    with pytest.raises(ValuesError, match="follows from the set"):
        problem.simulate({alpha: 0.3, g: Ball(2, 1), D: 3}, N=20, seeds=1)
    with pytest.raises(UnsupportedLaw, match="does not fit"):
        problem.simulate({alpha: 0.3, g: Ball(2, 1)}, N=20, seeds=1, method="interior point")
    with pytest.raises(UnsupportedLaw, match="does not fit"):
        points.simulate({alpha: 0.3}, N=20, seeds=1, method="cutting planes")
    beyond = problem.simulate({alpha: 2, g: Ball(2, 1)}, N=20, seeds=2)
    assert beyond.infeasible == 2
    with pytest.raises(Infeasible) as caught:
        beyond[average(w[i] ** 2)]
    assert_contradicts(caught.value.evidence)


def test_the_set_may_stand_in_the_declaration_beside_other_laws():
    """Sign-constrained weights, penalties that differ from feature to feature, and processes."""
    c = Quenched("c", i, law={1: Rational(1, 2), 2: Rational(1, 2)})
    weights, G = Feature("w"), SupportFunction("g_S", shape=Ball(1, Rational(1, 2)))
    V = Sum(u[mu, i, a] * weights[i], (i, 1, N))
    declared = ConvexProblem(Sum(c[i] * weights[i] ** 2, (i, 1, N)) / 2, [G(V) >= 1, weights[i] >= 0])
    sim = declared.simulate({alpha: 0.3}, N=40, seeds=3, executor=2)
    assert sim.infeasible == 0
    assert sim.residuals.worst < 1e-9
    assert sim.arrays("w").min() >= 0
    assert (sim.arrays("w") == 0).any()
    for k in range(3):
        x = np.stack(sim.reader(k).instance.couplings, axis=2)
        penalty = sim.reader(k).instance.quenched[c]
        push = np.einsum("pna,pa->n", x, sim.samples[k]["Lambda"])
        assert sim.samples[k]["w"] == pytest.approx(np.maximum(push, 0) / penalty, abs=1e-9)


def test_collapse_at_zero_weights_is_found():
    """Beyond some load the cheapest copies of a large ball are all given up: w = 0 (see the soft margin)."""
    sim = soft_manifold.problem.simulate(
        {alpha: Rational(3, 5), soft_manifold.g: Ball(5, 1), soft_manifold.C: 1}, N=50, seeds=2
    )
    assert sim[average(w[i] ** 2)].mean < 1e-12
    assert sim[average(soft_manifold.xi[mu])].mean == pytest.approx(1, abs=1e-6)


def test_the_cavity_of_a_vector():
    """The law of one site at its own cavity field and self-coupling, and the self-coupling itself."""
    found = cavity_experiment(problem, problem.cavity(), {alpha: 0.3, g: Ball(2, 1)}, N=100, seeds=18)
    for inserted in found:
        j = inserted._shown()
        assert np.corrcoef(inserted.actual[:, j], inserted.predicted[:, j])[0, 1] > 0.97
        lines = {f.name: f for f in inserted.findings()}
        assert abs(lines["cavity field, mean"].z) < 4
        assert abs(lines["self-coupling"].z) < 4
        assert abs(lines["self-coupling (theory)"].z) < 4
        assert lines["field squared over its variance, with the site"].z < -2  # the naive analysis
    mixed = {f.name: f for f in found.datum.findings()}["self-coupling, between different components"]
    assert abs(mixed.z) < 4
    assert found.datum.names == ["V_1", "V_2", "V_3", "h", "Lambda_1", "Lambda_2", "Lambda_3", "lambda"]


def test_a_sweep_over_sets():
    rows = sweep_simulation(
        problem, {g: [Ball(1, 1), Ball(2, 1)], alpha: [0.2]}, N=20, seeds=2, observables=[average(w[i] ** 2)]
    )
    assert len(rows.rows) == 4
    assert not rows.failed
    assert {r["g_S"] for r in rows.rows} == {"Ball(1, 1)", "Ball(2, 1)"}


def test_an_instance_is_a_function_of_its_seed():
    one, two = (problem.simulate({alpha: 0.3, g: Ball(1, 1)}, N=30, seeds=s) for s in ([4], [3, 4]))
    assert np.array_equal(one.samples[0]["w"], two.samples[1]["w"])
    assert isinstance(one.reader(0).instance, Instance)
