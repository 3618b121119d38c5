"""Variants of convex laws: quenched margins and costs, a bias, other features, weights and penalties.

Each variant meets its scalar counterpart where the set is one point, and itself by another route for other sets.
"""

from dataclasses import replace

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol
from sympy.stats import Uniform

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Datum,
    Ellipsoid,
    Feature,
    Global,
    N,
    P,
    PointCloud,
    Quenched,
    Segment,
    SupportFunction,
    TwoPoints,
    alpha,
    average,
    i,
    manifold_capacity,
    mu,
    response,
)
from symcavity.model.equations import Equation
from symcavity.shapes.slack import soften

a = Symbol("a", integer=True, positive=True)
D = Symbol("D", integer=True, positive=True)
kappa, C, gamma = (Symbol(name, positive=True) for name in ("kappa", "C", "gamma"))
w, xi, b = Feature("w"), Datum("xi"), Global("b")
g = SupportFunction("g")
HALF = Rational(1, 2)
TRIANGLE = PointCloud([[1, 0, 1], [-0.5, 0.8, 1.2], [-0.4, -0.9, 0.9]])

m = Quenched("m", mu, law={1: HALF, 2: HALF})
y = Quenched("y", mu, law={1: Rational(4, 5), -1: Rational(1, 5)})
s = Quenched("s", mu, law={1: HALF, 2: HALF})
cost = Quenched("c", mu, positive=True)
l = Quenched("l", i, positive=True)

energy = Sum(w[i] ** 2, (i, 1, N)) / 2
fixed = [Eq(average(w[i] ** 2), 1 / kappa**2)]
slack = Sum(xi[mu], (mu, 1, P))


def coupled(variance=None):
    """The vector field of a datum, and a scalar field with couplings of the same variance."""
    u, x = Coupling("u", components=(a, 1, D + 1), variance=variance), Coupling("x", variance=variance)
    return Sum(u[mu, i, a] * w[i], (i, 1, N)), Sum(x[mu, i] * w[i], (i, 1, N))


V, X = coupled()
half = {"1/2": "1/2", "3/2": "1/2"}

CASES = {
    "margins": (lambda h: ConvexProblem(energy, [h >= m[mu]], fixed), {kappa: "1/2"}),
    "margins of both signs": (
        lambda h: ConvexProblem(energy, [h >= Quenched("m", mu, law={-1: HALF, 1: HALF})[mu]], fixed),
        {kappa: "1/2"},
    ),
    "scales of slack": (
        lambda h: ConvexProblem(energy + C * slack, [h >= 1 - s[mu] * xi[mu], xi[mu] >= 0]),
        {alpha: "3/5", C: 1},
    ),
    "costs": (
        lambda h: ConvexProblem(energy + Sum(cost[mu] * xi[mu], (mu, 1, P)), [h >= 1 - xi[mu], xi[mu] >= 0]),
        {alpha: "3/5", cost: half},
    ),
    "quadratic slack": (
        lambda h: ConvexProblem(energy + C * Sum(xi[mu] ** 2, (mu, 1, P)) / 2, [h >= 1 - xi[mu]]),
        {alpha: "3/5", C: 1},
    ),
    "quadratic costs and a bias": (
        lambda h: ConvexProblem(
            energy + Sum(cost[mu] * xi[mu] ** 2, (mu, 1, P)) / 2 + N * b**2 / 2, [h + y[mu] * b >= m[mu] - xi[mu]]
        ),
        {alpha: "3/2", cost: half},
    ),
    "bias": (lambda h: ConvexProblem(energy, [h + y[mu] * b >= 1], fixed), {kappa: "1/2"}),
    "bias with a penalty": (
        lambda h: ConvexProblem(energy + N * b**2 / 2, [h + y[mu] * b >= 1]),
        {alpha: "2/5"},
    ),
    "penalties": (
        lambda h: ConvexProblem(Sum(l[i] * w[i] ** 2, (i, 1, N)) / 2, [h >= 1]),
        {alpha: "2/5", l: half},
    ),
    "signs of weights": (lambda h: ConvexProblem(energy, [h >= 1, w[i] >= 0], fixed), {kappa: "1/2"}),
    "sparse weights": (
        lambda h: ConvexProblem(energy + gamma * Sum(Abs(w[i]), (i, 1, N)), [h >= 1]),
        {alpha: "2/5", gamma: "1/2"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_point_is_the_scalar_problem(name):
    """The set {1}: the same declaration with a scalar field, whose averages are closed forms."""
    declare, values = CASES[name]
    vector, scalar = declare(g(V)), declare(X)
    found, expected = vector.cavity().solve({**values, g: Segment(0)}), scalar.cavity().solve(values)
    for key in (alpha, average(w[i] ** 2), response(w)):
        assert found[key] == pytest.approx(expected[key], rel=1e-9)
    lam, own = vector.kkt()["lambda"], scalar.kkt()["lambda"]
    assert found[average(lam[mu] ** 2)] == pytest.approx(expected[average(own[mu] ** 2)], rel=1e-8)
    if "bias" in name:
        assert found[b] == pytest.approx(expected[b], rel=1e-8)
        assert found[average(y[mu] * lam[mu])] == pytest.approx(expected[average(y[mu] * own[mu])], abs=1e-9)
    if "slack" in name or "costs" in name:
        assert found[average(xi[mu])] == pytest.approx(expected[average(xi[mu])], rel=1e-8)


@pytest.mark.parametrize("variance", [l[i] / N, s[mu] / N], ids=["features", "data"])
def test_one_point_with_couplings_of_different_variance(variance):
    vector, scalar = coupled(variance)
    values = {kappa: "1/2", **({l: {"1/5": "1/2", "9/5": "1/2"}} if variance.has(l) else {})}
    found = ConvexProblem(energy, [g(vector) >= 1], fixed).cavity().solve({**values, g: Segment(0)})
    expected = ConvexProblem(energy, [scalar >= 1], fixed).cavity().solve(values)
    for key in (alpha, response(w)):
        assert found[key] == pytest.approx(expected[key], rel=1e-9)


@pytest.mark.parametrize("shape", [Ball(2, "0.5"), Ellipsoid(["1", "0.4"]), TRIANGLE], ids=repr)
def test_mixed_margins_add_up_inverse_capacities(shape):
    """At a fixed norm the load is the harmonic mean of the loads at each margin."""
    found = CASES["margins"][0](g(V)).cavity().solve({kappa: HALF, g: shape})[alpha]
    parts = [manifold_capacity(shape, kappa=HALF * margin).alpha for margin in (1, 2)]
    assert float(found) == pytest.approx(2 / sum(1 / x for x in parts), rel=1e-7)


def test_a_continuous_law_is_the_limit_of_finite_ones():
    law = Uniform("m", HALF, 2)
    shape = Ball(3, "0.5")
    problem = ConvexProblem(energy, [g(V) >= Quenched("m", mu, law=law)[mu]], fixed)
    found = problem.cavity().solve({kappa: HALF, g: shape})[alpha]
    nodes, weights = np.polynomial.legendre.leggauss(12)
    margins = 1.25 + 0.75 * nodes
    inverse = sum(
        p / 2 / manifold_capacity(shape, kappa=float(k) / 2).alpha for k, p in zip(margins, weights, strict=True)
    )
    assert float(found) == pytest.approx(1 / inverse, rel=1e-10)


def test_an_array_of_margins():
    """One margin for each datum, as a user has them, against the law of their frequencies."""
    q = Quenched("m", mu)
    theory = ConvexProblem(energy, [g(V) >= q[mu]], fixed).cavity()
    array = np.repeat([0.5, 1.0, 2.0], [3, 4, 5])
    found = theory.solve({kappa: HALF, g: Ball(2, "0.5"), q: array})
    law = theory.solve({kappa: HALF, g: Ball(2, "0.5"), q: {"1/2": "1/4", 1: "1/3", 2: "5/12"}})
    assert found[alpha] == pytest.approx(law[alpha], rel=1e-12)


def test_a_bias_helps_unequal_classes():
    """The bias is optimal: at its value the load is stationary, and above the load without a bias."""
    shape = Ball(3, "0.5")
    solution = CASES["bias"][0](g(V)).cavity().solve({kappa: HALF, g: shape})
    offset = float(solution[b])

    def load(at):
        rows = [(float(p), shape.averages(0.5 * (1 - sign * at))["norm"]) for sign, p in ((1, 0.8), (-1, 0.2))]
        return 1 / sum(p * value for p, value in rows)

    assert load(offset) == pytest.approx(float(solution[alpha]), rel=1e-10)
    assert load(offset + 1e-3) < load(offset) > load(offset - 1e-3)
    assert load(offset) > 1.05 * load(0.0)
    assert offset > 1  # one class has a negative bound


def test_many_digits_of_a_mixture():
    found = CASES["margins"][0](g(V)).cavity().solve({kappa: HALF, g: Ball(2, HALF)}, dps=30)[alpha]
    parts = [manifold_capacity(Ball(2, HALF), kappa=HALF * margin, dps=30).alpha for margin in (1, 2)]
    with mpmath.workdps(35):
        assert abs(found - 2 / (1 / parts[0] + 1 / parts[1])) < mpmath.mpf(10) ** -28


class TestQuadraticSlack:
    """A soft bound: ``g(v) >= k`` is missed by rho times the multiplier."""

    shapes = (
        Segment(0),
        Ball(3, "0.8"),
        Ellipsoid(["1", "0.4"]),
        TRIANGLE,
        PointCloud([*TRIANGLE.points, [0, 0, 2.0]]),
    )

    @pytest.mark.parametrize("shape", shapes, ids=repr)
    @pytest.mark.parametrize(("k", "rho"), [(0.7, 0.5), (-0.4, 2.0)])
    def test_projection(self, shape, k, rho):
        """The optimality conditions; and no vector near by, nor far away, has a smaller cost."""
        rng = np.random.default_rng(3)
        t = rng.normal(size=(4000, shape.dimension))
        p = soften(shape, t, k, rho)
        level, held = shape.support(p.v), p.lam > 0
        assert np.abs(level - k + rho * p.lam)[held].max() < 1e-12
        assert (level - k)[~held].min() > -1e-12
        assert np.abs(p.v - t - p.lam[:, None] * p.anchor).max() < 1e-12

        def cost(v):
            return np.square(v - t).sum(axis=1) / 2 + np.square(np.maximum(0, k - shape.support(v))) / (2 * rho)

        for size in (1e-3, 0.1, 1.0):
            assert (cost(p.v + size * rng.normal(size=t.shape)) > cost(p.v) - 1e-12).all()

    @pytest.mark.parametrize("shape", shapes[:2], ids=repr)
    @pytest.mark.parametrize(("k", "rho"), [(0.7, 0.5), (-0.4, 2.0)])
    def test_integrals(self, shape, k, rho):
        t = np.random.default_rng(4).normal(size=(100000, shape.dimension))
        p, averages = soften(shape, t, k, rho), shape.averages(k, rho=rho)
        rows = {
            "norm": np.square(p.lam_s).sum(axis=1),
            "lam": p.lam,
            "lam2": p.lam**2,
            "psi": (t * p.lam_s).sum(axis=1),
        }
        rows |= {"touching": p.regime == 1, "whole": p.regime == 3}
        for name, row in rows.items():
            assert abs(row.mean() - averages[name]) < 4.5 * row.std() / np.sqrt(len(t)) + 1e-12

    def test_the_hard_limit_and_the_work_identity(self):
        problem = CASES["quadratic slack"][0](g(V))
        theory, lam, shape = problem.cavity(), problem.kkt()["lambda"], Ball(2, HALF)
        hard = ConvexProblem(energy, [g(V) >= 1]).cavity().solve({alpha: HALF, g: shape})[average(w[i] ** 2)]
        gaps = []
        for penalty in (10**3, 10**5):
            solution = theory.solve({alpha: HALF, C: penalty, g: shape})
            norm = solution[average(w[i] ** 2)]
            assert norm == pytest.approx(solution[average(lam[mu] * (1 - xi[mu]))] / 2, rel=1e-9)
            gaps.append(float(1 - norm / hard))
        assert gaps[0] < 0.05
        assert gaps[1] == pytest.approx(gaps[0] / 100, rel=0.05)

    def test_samples_agree_with_the_integral(self):
        theory = CASES["quadratic slack"][0](g(V)).cavity()
        values, shape = {alpha: HALF, C: 1}, Ball(2, HALF)
        sampled = theory.solve({**values, g: g.given(shape, samples=2**12)})
        exact = theory.solve({**values, g: shape})
        for key in (average(w[i] ** 2), response(w), average(xi[mu])):
            assert abs(float(sampled[key] - exact[key])) < 5 * sampled.stderr(key)

    def test_a_wrong_response_is_caught(self):
        """The response without the softness, and the tip where the vector does not move."""
        derivation = CASES["quadratic slack"][0](g(V)).cavity().derivation
        hard = ConvexProblem(energy, [g(V) >= 1]).cavity().derivation
        for key in ("datum.touching", "datum.touching_trace", "datum.tip"):
            assert all(v.ok for v in derivation[key].verdicts(15))
            assert not all(v.ok for v in replace(derivation[key], claims=hard[key].claims).verdicts(15))


class TestBoundsOfBothSigns:
    """Projections on ``g(v) >= k`` with k < 0, which a bias or a quenched margin asks for."""

    shapes = (Segment(0), Ball(2, "0.5"), Ellipsoid(["1", "0.4"]), TwoPoints("0.2"), TRIANGLE)

    @pytest.mark.parametrize("shape", shapes, ids=repr)
    @pytest.mark.parametrize("k", [-0.7, -3.0])
    def test_projection(self, shape, k):
        t = np.random.default_rng(1).normal(size=(20000, shape.dimension))
        p = shape.project(t, k)
        level = shape.support(p.v)
        assert (level - k).min() > -1e-12
        assert np.abs(p.lam * (level - k)).max() < 1e-11
        assert np.abs(p.v - t - p.lam[:, None] * p.anchor).max() < 1e-11
        stein = k * p.lam - np.square(p.lam_s).sum(axis=1) - p.psi
        assert abs(stein.mean()) < 4.5 * stein.std() / np.sqrt(len(t)) + 1e-12

    @pytest.mark.parametrize("shape", shapes[:4], ids=repr)
    def test_integrals(self, shape):
        t = np.random.default_rng(2).normal(size=(100000, shape.dimension))
        for k in (-0.7, -2.0):
            p, averages = shape.project(t, k), shape.averages(k)
            rows = {"norm": np.square(p.lam_s).sum(axis=1), "lam": p.lam, "psi": p.psi, "touching": p.regime == 1}
            for name, row in rows.items():
                assert abs(row.mean() - averages[name]) < 4.5 * row.std() / np.sqrt(len(t)) + 1e-12


INSTANCES = {
    "margins": (ConvexProblem(energy, [g(V) >= m[mu]]), {alpha: "3/10"}, [average(w[i] ** 2)], 240),
    "bias": (
        ConvexProblem(energy + N * b**2 / 2, [g(V) + y[mu] * b >= 1]),
        {alpha: "3/10"},
        [average(w[i] ** 2), b],
        240,
    ),
    "quadratic slack": (
        ConvexProblem(energy + C * Sum(xi[mu] ** 2, (mu, 1, P)) / 2, [g(V) >= 1 - xi[mu]]),
        {alpha: 1, C: 1},
        [average(w[i] ** 2), average(xi[mu]), average(xi[mu] ** 2)],
        120,
    ),
    "sizes and signs of weights": (
        ConvexProblem(energy, [s[mu] * g(V) >= 1, w[i] >= 0]),
        {alpha: "1/5"},
        [average(w[i] ** 2), average(w[i])],
        240,
    ),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_finite_instances_agree(name):
    problem, values, observables, size = INSTANCES[name]
    values = {**values, g: Ball(2, HALF)}
    found, sim = problem.cavity().solve(values), problem.simulate(values, N=size, seeds=16)
    for key in observables:
        assert abs(sim[key].mean - float(found[key])) < 3.5 * sim[key].stderr
        assert sim[key].stderr < 0.06 * abs(float(found[key])) + 0.01


@pytest.mark.parametrize("name", ["margins", "bias", "costs", "penalties", "quadratic slack"])
def test_every_claim_is_judged(name):
    verdict = CASES[name][0](g(V)).cavity().derivation.verify(dps=15)
    assert verdict, str(verdict)
    assert not verdict.unchecked


@pytest.mark.parametrize(
    ("name", "key"), [("bias", "global.1"), ("margins", "closure.q_Lambda"), ("costs", "closure.S_Lambda")]
)
def test_a_wrong_average_is_caught(name, key):
    """The labels forgotten in the condition on the bias; one margin in place of the other; costs forgotten."""
    step = CASES[name][0](g(V)).cavity().derivation[key]
    assert all(v.ok for v in step.verdicts(15))
    claim = step.claims[0]
    if name == "bias":
        wrong = Equation(claim.lhs.subs(Rational(4, 5), Rational(1, 5)), claim.rhs)
    else:
        wrong = Equation(claim.lhs, claim.rhs.xreplace({cost[mu]: cost[mu] ** 2}).subs(2, 3))
    assert wrong != claim
    assert not all(v.ok for v in replace(step, claims=(wrong,)).verdicts(15))
