"""Couplings that are correlated: with others at equal indices, and with themselves at turned ones.

Each is a linear combination of independent couplings, which a declaration can also write out: the theories agree.
"""

import numpy as np
import pytest
from references import near
from sympy import Eq, Rational, Sum, Symbol, symbols, tanh

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    P,
    Quenched,
    SeveralSolutions,
    System,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.method import average as averaging
from symcavity.method import declared

g, rho, A = Symbol("g", real=True), Symbol("rho", real=True), Symbol("A", real=True)
sigma, gamma = Symbol("sigma", positive=True), Symbol("gamma", positive=True)
j = symbols("j", integer=True)
n, w, v, t = Feature("n"), Feature("w"), Feature("v"), Quenched("t", i)
FAR = 4.5

SPECIES = {A: 2, sigma: "1/2"}
J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N, reciprocity=g)
competition = System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))])


def agrees(declaration, values, observables, count=120, seeds=12):
    simulation = declaration.simulate(values, N=count, seeds=seeds)
    for row in declaration.cavity().compare(simulation, observables).rows:
        assert abs(row.z) < FAR, str(row.observable)


def test_reciprocity_is_a_matrix_and_its_transpose():
    """J = (4 U + 3 U')/5 has the reciprocity 24/25."""
    U = Coupling("U", between=(i, i), variance=sigma**2 / N)
    mean = A * Sum(n[j], (j, 1, N)) / N
    both = (4 * Sum(U[i, j] * n[j], (j, 1, N)) + 3 * Sum(U[j, i] * n[j], (j, 1, N))) / 5
    written = System([], [Complementary(n[i], n[i] - 1 + mean + both)]).cavity().solve(SPECIES)
    solution = competition.cavity().solve({**SPECIES, g: Rational(24, 25)})
    for observable in (average(n[i]), average(n[i] ** 2), average(n[i] > 0)):
        assert near(solution[observable], str(written[observable]), "1e-9"), observable


@pytest.mark.parametrize("value", [0, 1, -1, "1/2"])
def test_instances_of_competing_species(value):
    agrees(competition, {**SPECIES, g: value}, [average(n[i]), average(n[i] ** 2), response(n)])


def test_the_couplings_that_are_drawn():
    simulation = competition.simulate({**SPECIES, g: "1/2"}, N=300, seeds=1)
    matrix = simulation.reader(0).instance.couplings[0]
    above = np.triu_indices(300, 1)
    pair = np.array([matrix[above], matrix.T[above]]) * np.sqrt(300) * 2
    assert np.cov(pair) == pytest.approx(np.array([[1, 0.5], [0.5, 1]]), abs=0.03)


def noisy(one, other):
    """A student that sees other patterns than its teacher."""
    student = Sum(one[mu, i] * w[i], (i, 1, N))
    teacher = Sum(other[mu, i] * t[i], (i, 1, N))
    return ConvexProblem(Sum((student - teacher) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def test_correlated_patterns_are_a_combination_of_independent_ones():
    """z = 3/5 x + 4/5 u."""
    x, u = Coupling("x"), Coupling("u")
    mixed = Sum((3 * x[mu, i] + 4 * u[mu, i]) / 5 * w[i], (i, 1, N)) - Sum(x[mu, i] * t[i], (i, 1, N))
    written = ConvexProblem(Sum(mixed**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 2, gamma: 1, t: {1: "1/2", 2: "1/2"}}
    problem = noisy(Coupling("z", correlation={x: rho}), x)
    solution = problem.cavity().solve({**values, rho: "3/5"}, dps=20)
    known = written.cavity().solve(values, dps=20)
    for observable in (average(w[i] ** 2), average(w[i] * t[i])):
        assert abs(solution[observable] - known[observable]) < 1e-17
    agrees(problem, {**values, rho: "3/5"}, [average(w[i] ** 2), average(w[i] * t[i]), response(w)])
    assert all(problem.cavity().derivation.verify())


def test_correlated_patterns_of_other_variances_and_means():
    """With means and variances of their own; the instances against the normal equations."""
    m, y = Quenched("m", i), Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    x = Coupling("x", variance=4 / N, mean=y[mu] * m[i] / N)
    z = Coupling("z", variance=1 / N, correlation={x: rho})
    problem = noisy(z, x)
    values = {alpha: 2, gamma: 1, rho: "-1/2", t: {1: "3/4", -1: "1/4"}, m: {1: "1/2", 2: "1/2"}}
    agrees(problem, values, [average(w[i] ** 2), average(w[i] * t[i]), average(w[i])])
    assert all(problem.cavity().derivation.verify())
    simulation = problem.simulate(values, N=400, seeds=1)
    drawn = [c.ravel() for c in simulation.reader(0).instance.couplings]
    assert np.cov(drawn) * 400 == pytest.approx(np.array([[1, -1], [-1, 4]]), abs=0.05) or np.cov(
        drawn
    ) * 400 == pytest.approx(np.array([[4, -1], [-1, 1]]), abs=0.05)


def test_two_fields_that_come_back_to_one_site():
    x = Coupling("x")
    z = Coupling("z", correlation={x: rho})
    h = Sum(z[mu, i] * v[i], (i, 1, N)) + Sum(x[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(
        Sum((h - 1) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(v[i] ** 2, (i, 1, N))
    )
    values = {alpha: 2, gamma: 1, rho: "1/2"}
    agrees(problem, values, [average(w[i] ** 2), average(v[i] ** 2), average(v[i] * w[i]), response(w, w)])
    assert all(problem.cavity().derivation.verify())
    assert "self-coupling" in str(problem.cavity_experiment(values, N=60, seeds=10))


def test_the_site_that_is_added_has_reciprocal_couplings():
    experiment = competition.cavity_experiment({**SPECIES, g: 1}, N=60, seeds=30)
    (row,) = (f for some in experiment.findings().values() for f in some if f.name == "self-coupling (theory)")
    assert abs(row.measured - row.expected) < 5 * row.stderr + 0.02
    assert row.expected < -0.2


@pytest.mark.parametrize("wrong", [lambda c: -c, lambda c: 2 * c])
def test_a_wrong_covariance_is_seen(monkeypatch, wrong):
    rule = averaging.coupling_covariance

    def covariance(one, other):
        return rule(one, other) if one.family == other.family else wrong(rule(one, other))

    monkeypatch.setattr(averaging, "coupling_covariance", covariance)
    monkeypatch.setattr(declared, "coupling_covariance", covariance)
    x = Coupling("x")
    derivation = noisy(Coupling("z", correlation={x: rho}), x).cavity().derivation
    failed = {step.key for step in derivation if not all(verdict.ok for verdict in step.verdicts())}
    assert {"disorder", "datum.field_statistics"} <= failed


def test_no_couplings_have_these_correlations():
    x = Coupling("x")
    problem = noisy(Coupling("z", correlation={x: rho}), x)
    with pytest.raises(ValuesError, match=r"rho = .* is out of range"):
        problem.simulate({alpha: 2, gamma: 1, rho: 2, t: {1: 1}}, N=20, seeds=1)
    with pytest.raises(ValuesError, match=r"g = .* is out of range"):
        competition.simulate({**SPECIES, g: 2}, N=20, seeds=1)


@pytest.mark.parametrize("first", ["gain", "loss"])
def test_correlated_couplings_with_means_in_a_system(first):
    """Consumers that gain and harm by correlated couplings: at full correlation it is a convex problem."""
    R, lam = Feature("R"), Datum("lam")
    c = Coupling("c", mean=1 / N, variance=1 / (4 * N))
    e = Coupling("e", mean=1 / N, variance=1 / (4 * N), correlation={c: rho})
    gain, loss = (c, e) if first == "gain" else (e, c)
    system = System(
        [],
        [
            Complementary(R[i], R[i] - 2 + Sum(loss[mu, i] * lam[mu], (mu, 1, P))),
            Complementary(lam[mu], 1 - Sum(gain[mu, i] * R[i], (i, 1, N))),
        ],
    )
    agrees(system, {alpha: "1/2", rho: "9/10"}, [average(R[i]), average(R[i] > 0), average(lam[mu] > 0)], 80, 8)


def test_retrieval_from_symmetric_couplings():
    """A pattern in symmetric couplings: the closed equations of a site, iterated with Gauss-Hermite nodes."""
    m, c = Quenched("m", i, law={1: "1/2", -1: "1/2"}), Symbol("c", positive=True)
    K = Coupling("K", between=(i, i), mean=c * m[i] * m[j] / N, variance=sigma**2 / N, reciprocity=1)
    network = System([Eq(v[i], tanh(Sum(K[i, j] * v[j], (j, 1, N))))])
    with pytest.raises(SeveralSolutions) as found:  # the pattern and its mirror image
        network.cavity().solve({sigma: "1/5", c: 2})
    z, weights = np.polynomial.hermite_e.hermegauss(60)
    overlap, q, S = 1.0, 1.0, 0.1
    for _ in range(60):
        field = 2 * overlap + 0.2 * np.sqrt(q) * z
        state = np.tanh(field)
        for _ in range(60):
            state = np.tanh(field + 0.04 * S * state)
        slope = 1 - state**2
        overlap, q, S = (np.average(e, weights=weights) for e in (state, state**2, slope / (1 - 0.04 * S * slope)))
    known = {str(s): float(value) for s, value in found.value.solutions[0].items()}
    assert (known["q_v"], known["S_v"]) == pytest.approx((q, S), rel=1e-9)
