"""Points and manifolds that share directions: several fields that a margin hears as one."""

import pytest
from sympy import Eq, Rational, Sum, Symbol, sqrt

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.derivations import correlated_manifolds as shared
from symcavity.derivations import correlated_points, manifold

half, square = Rational(1, 2), average(shared.w[i] ** 2)


@pytest.fixture(scope="module")
def theory():
    return shared.problem.cavity()


def test_points_in_units_of_their_parts():
    """The roots of a share stand in front of the sums, with a label: the same points as in the gallery."""
    k, K = Sites("k", "K")
    rho, C = Symbol("rho", positive=True), Symbol("C", positive=True)
    z, A, B = Coupling("z"), Coupling("A", between=(mu, k), variance=1 / K), Coupling("B", between=(k, i))
    w, xi, y, m = Feature("w"), Datum("xi"), Quenched("y", mu), Variable("m", k)
    own, common = Sum(z[mu, i] * w[i], (i, 1, N)), Sum(A[mu, k] * m[k], (k, 1, K))
    h = sqrt(1 - rho) * own + sqrt(rho) * common
    problem = ConvexProblem(
        Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P)),
        [Eq(m[k], Sum(B[k, i] * w[i], (i, 1, N))), y[mu] * h >= 1 - xi[mu], xi[mu] >= 0],
    )
    values = {alpha: 1, K / N: 1, C: 1, rho: half, y: {1: half, -1: half}}
    found = problem.cavity().solve(values)[average(w[i] ** 2)]
    assert float(found) == pytest.approx(0.388962, abs=1e-6)
    there = correlated_points.problem.cavity().solve(correlated_points.values)
    assert float(there[correlated_points.shown[0]]) == pytest.approx(float(found), rel=1e-10)


def test_many_shared_directions_are_noise(theory):
    """Of infinitely many directions every set has its own part: the theory of independent sets, whatever is shared."""
    values = {alpha: Rational(1, 5), shared.rho: half, shared.K / N: 10**9, shared.g: Ball(2, half)}
    there = manifold.problem.cavity().solve({alpha: Rational(1, 5), manifold.g: Ball(2, half)})
    assert float(theory.solve(values)[square]) == pytest.approx(float(there[manifold.kappa]) ** -2, rel=1e-6)


def test_the_vector_is_one_field(theory):
    """The law hears one vector, with one response and one square; both are checked on explicit sets."""
    names = {str(s) for s in theory.order_parameters}
    assert {"S_Lambda", "q_Lambda"} <= names
    assert not any(name.startswith("S_Lambda_") for name in names)
    told = {step.key: step for step in theory.derivation}
    for key in ("dual.Lambda", "datum.minimum", "datum.solution", "datum.multiplier"):
        verdicts = told[key].verdicts(20)
        assert verdicts, key
        assert all(v.ok for v in verdicts), key


def test_instances(theory):
    values = {**shared.values, shared.K / N: half}
    sample = shared.problem.simulate(values, N=40, seeds=6)
    assert theory.compare(sample, [square, average(shared.m[shared.k] ** 2)]).worst < 4
