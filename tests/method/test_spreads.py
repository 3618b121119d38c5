"""How observables scatter between instances: random matrices to all digits, instances, and broken rules."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, exp, log, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.derivations import soft_margin
from symcavity.evaluate.solutions import spreads

x, w, y, t = Coupling("x"), Feature("w"), Quenched("y", mu), Quenched("t", i)
gamma = Symbol("gamma", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
ridge = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * weights)
q = average(w[i] ** 2)
SIZE = {gamma: Rational(1, 3), alpha: 2, y: Normal("y", 0, 1)}


def eigenvalues(function, load):
    """An average over the eigenvalues of X'X with independent entries, for more data than features."""
    low, high = (1 - mpmath.sqrt(load)) ** 2, (1 + mpmath.sqrt(load)) ** 2

    def weighted(angle):
        s = (low + high) / 2 - (high - low) / 2 * mpmath.cos(angle)
        return ((high - low) / 2 * mpmath.sin(angle)) ** 2 / (2 * mpmath.pi * s) * function(s)

    return mpmath.quad(weighted, [0, mpmath.pi / 2, mpmath.pi])


@pytest.fixture(scope="module")
def solution():
    return ridge.cavity().solve(SIZE)


def test_the_size_of_ridge_weights_on_noise(solution):
    """|w|^2 = y' B y, B = X A^2 X', A = (X'X + gamma)^-1: N Var = 2 tr B^2/N, as the trace over X does not scatter."""
    expected = 2 * eigenvalues(lambda s: s**2 / (s + mpmath.mpf(1) / 3) ** 4, 2)
    assert float(solution.variance(q)) == pytest.approx(float(expected), rel=1e-12)


def test_least_squares_without_a_penalty():
    """q = y'(X (X'X)^-2 X')y, so that N Var(q) = 2 <1/s^2> = 4; E, half a chi-square of P - N, is independent of it."""
    plain = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2)
    found = plain.cavity().solve({alpha: 2, y: Normal("y", 0, 1)})
    assert float(found.variance(q)) == pytest.approx(4, rel=1e-12)
    assert float(found.covariance("objective", "objective")) == pytest.approx(0.5, rel=1e-12)
    assert abs(float(found.covariance("objective", q))) < 1e-12


def test_its_covariance_with_the_minimum(solution):
    """E = y'(1 - X A X')y/2: N Cov = tr B (1 - X A X')/N = gamma <s/(s + gamma)^3>."""
    ridge_size = mpmath.mpf(1) / 3
    expected = ridge_size * eigenvalues(lambda s: s / (s + ridge_size) ** 3, 2)
    assert float(solution.covariance(q, "objective")) == pytest.approx(float(expected), rel=1e-12)
    assert float(solution.covariance("objective", q)) == pytest.approx(float(expected), rel=1e-12)


def test_the_minimum_as_an_observable_is_the_minimum(solution):
    """Two ways: the mixed derivative, and the minima of single sites."""
    assert float(solution.variance(ridge.cavity().objective)) == pytest.approx(float(solution.variance()), rel=1e-12)


def test_a_function_of_averages_goes_by_its_gradient(solution):
    size = float(solution[q])
    assert float(solution.variance(sqrt(q))) == pytest.approx(float(solution.variance(q)) / (4 * size), rel=1e-12)
    assert float(solution.variance(2 * q + 1)) == pytest.approx(4 * float(solution.variance(q)), rel=1e-12)


@pytest.mark.parametrize("broken", ["_mixed", "_moved_by"])
def test_a_part_that_is_dropped_is_seen(solution, monkeypatch, broken):
    honest = getattr(spreads.Spreads, broken)
    monkeypatch.setattr(spreads.Spreads, broken, lambda *args: 0 * honest(*args))
    expected = 2 * eigenvalues(lambda s: s**2 / (s + mpmath.mpf(1) / 3) ** 4, 2)
    assert float(solution.variance(q)) != pytest.approx(float(expected), rel=0.02)


def test_a_teacher_of_signs_by_instances():
    """2000 instances with exact minima: the size, the overlap with the teacher, and what one says of the other."""
    gap = y[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))
    problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * weights)
    law = {1: Rational(1, 2), -1: Rational(1, 2)}
    found = problem.cavity().solve({**SIZE, y: Normal("y", 0, Rational(1, 2)), t: law})
    n, rng, rows = 50, np.random.default_rng(3), []
    for _ in range(2000):
        data = rng.standard_normal((2 * n, n)) / np.sqrt(n)
        truth = rng.choice([-1.0, 1.0], n)
        labels = data @ truth + rng.standard_normal(2 * n) / 2
        fit = np.linalg.solve(data.T @ data + np.eye(n) / 3, data.T @ labels)
        rows.append((fit @ fit / n, fit @ truth / n))
    measured = n * np.cov(np.array(rows).T)
    overlap = average(w[i] * t[i])
    theory = [float(found.variance(q)), float(found.covariance(q, overlap)), float(found.variance(overlap))]
    allowed = 5 * np.sqrt(2 / 2000) + 3 / n
    assert [measured[0, 0], measured[0, 1], measured[1, 1]] == pytest.approx(theory, rel=allowed)


def test_margins_and_the_share_that_meets_them_by_instances():
    problem, at = soft_margin.problem, {soft_margin.C: Rational(3, 4), alpha: Rational(5, 2)}
    simulation = problem.simulate(at, N=40, seeds=150)
    size, share = average(soft_margin.w[i] ** 2), average(Sum(soft_margin.x[mu, i] * soft_margin.w[i], (i, 1, N)) > 1)
    asked = [size, share, response(soft_margin.w), "objective"]
    found = problem.cavity().compare(simulation, asked, scatter=True)
    assert all(abs(found[o].scatter.z) < 4 for o in (size, share, "objective"))
    assert "\nobjective " in str(found)
    assert "N var" in str(found)
    assert "not derived" in found[response(soft_margin.w)].scatter.note
    assert found.agrees(4)
    solution = problem.cavity().solve(at)
    assert found["objective"].theory == pytest.approx(float(solution.objective), rel=1e-12)
    assert solution.variance(problem.cavity().objective) == solution.variance("objective")


@pytest.mark.parametrize("loss", ["lasso", "logistic"])
def test_other_laws_know_their_minimum_by_both_ways(loss):
    gap = y[mu] - heard
    if loss == "lasso":
        problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))
        at = {gamma: Rational(1, 5), alpha: Rational(4, 5), y: {1: Rational(1, 2), -1: Rational(1, 2)}}
    else:
        problem, at = ConvexProblem(Sum(log(1 + exp(-heard)), (mu, 1, P)) + gamma * weights), {gamma: 1, alpha: 2}
    found = problem.cavity().solve(at)
    assert float(found.covariance("objective", "objective")) == pytest.approx(float(found.variance()), rel=1e-9)


def test_what_is_not_derived_is_refused(solution):
    with pytest.raises(UnsupportedLaw, match="not derived"):
        solution.variance(average(response(w)))
    with pytest.raises(ValuesError, match="is not given"):  # a sum over all sites is N averages
        solution.variance(Sum(w[i] ** 2, (i, 1, N)))
    with pytest.raises(ValuesError, match="two observables"):
        solution.covariance(q)


def test_three_kinds_know_their_minimum_by_both_ways():
    """Weights that are made of hidden units; and weights that answer alike to two kinds of data."""
    a, K = Sites("a", "K", "hidden unit")
    F, v = Coupling("F", between=(a, i)), Variable("v", a)
    loss = Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2
    at = {alpha: 2, K / N: Rational(1, 2), y: {1: Rational(1, 2), -1: Rational(1, 2)}}
    made = ConvexProblem(loss + Sum(v[a] ** 2, (a, 1, K)) / 2, [Eq(w[i], Sum(F[a, i] * v[a], (a, 1, K)))])
    found = made.cavity().solve(at)
    assert float(found.covariance("objective", "objective")) == pytest.approx(float(found.variance()), rel=1e-12)
    both = ConvexProblem(loss + weights + Sum((1 - Sum(F[a, i] * w[i], (i, 1, N))) ** 2, (a, 1, K)) / 2)
    found = both.cavity().solve(at)
    assert float(found.covariance("objective", "objective")) == pytest.approx(float(found.variance()), rel=1e-12)


def test_a_few_instances_have_no_scatter_to_compare():
    simulation = soft_margin.problem.simulate({soft_margin.C: 1, alpha: 1}, N=10, seeds=3)
    with pytest.raises(ValuesError, match="10 instances or more"):
        soft_margin.problem.cavity().compare(simulation, scatter=True)


def test_a_logistic_regression_by_three_thousand_instances_of_a_hundred_weights():
    """What exact minima gave, once: the variance of the minimum, N times that of the weights' size, both together."""
    problem = ConvexProblem(Sum(log(1 + exp(-heard)), (mu, 1, P)) + gamma * weights)
    found = problem.cavity().solve({gamma: Rational(1, 5), alpha: 2})
    theory = [float(v) for v in (found.variance(), found.variance(q), found.covariance(q, "objective"))]
    measured, errors = (0.1493, 2.190, -0.523), (0.0039, 0.057, 0.014)
    assert all(abs(a - b) < 3 * e + abs(a) * 2 / 100 for a, b, e in zip(theory, measured, errors, strict=True))
