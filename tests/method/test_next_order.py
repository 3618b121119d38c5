"""Means to order 1/N for quadratic laws, from the stability: half the logarithm of what it leaves below one.

The mean of the logarithm of the determinant of ``x^T x + gamma`` is N times its limit, plus ``log(1 - stability)/2``;
its derivative by gamma is the mean of the trace of the inverse, which is the risk of a fit to noise.
"""

import numpy as np
import pytest
from mpmath import log, mpf
from sympy import Abs, Rational, Sum, Symbol

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    response,
)

x, w, gamma = Coupling("x"), Feature("w"), Symbol("gamma", positive=True)
y = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
ridge = ConvexProblem(
    Sum((y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
)


@pytest.mark.parametrize("load", [2, 3])
def test_least_squares_has_the_risk_of_an_inverse_wishart_matrix(load):
    """The mean of the inverse, ``p/(n - p - 1)`` for p = N and n = load N: 1/(load - 1) + 1/(N (load - 1)^2)."""
    theory, h = ridge.cavity(), Rational(1, 10**6)
    low, high = (1 - mpf(str(theory.solve({alpha: load, gamma: k * h}, dps=30).stability)) for k in (1, 3))
    assert float(log(high / low) / (4 * mpf(10) ** -6)) == pytest.approx(1 / (load - 1) ** 2, rel=1e-4)


@pytest.mark.parametrize("load", [2, 3])
def test_the_word_has_it_and_the_minimum_of_least_squares_has_none(load):
    """``(n - p)/2`` is the mean of the minimum at any size; the trace of the inverse is ``p/(n - p - 1)``, times N."""
    solution = ridge.cavity().solve({alpha: load, gamma: Rational(1, 10**12)}, dps=20)
    assert float(solution.next_order(response(w))) == pytest.approx(1 / (load - 1) ** 2, rel=1e-9)
    assert abs(float(solution.next_order())) < 1e-10


def test_ridge_by_random_matrices():
    """Curvatures that differ from site to site, linear terms of both kinds; means over labels are taken exactly."""
    c, d = Quenched("c", i), Quenched("d", i)
    gap = y[mu] - Sum(x[mu, i] * (w[i] - d[i]), (i, 1, N))
    problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + Sum(c[i] * w[i] ** 2, (i, 1, N)) / 2)
    half = Rational(1, 2)
    values = {alpha: 2, c: {half: half, 2: half}, d: {3: half, -3: half}}
    solution = problem.cavity().solve(values)
    size, rng, found = 16, np.random.default_rng(4), []
    curvature = np.where(np.arange(size) < size // 2, 0.5, 2.0)
    for _ in range(20000):
        data = rng.standard_normal((2 * size, size)) / np.sqrt(size)
        inverse = np.linalg.inv(data.T @ data + np.diag(curvature))
        kept = np.trace(data.T @ data @ inverse)
        truth = 9 * np.sum(curvature - curvature**2 * np.diag(inverse))  # of d, with independent signs
        found.append([(2 * size - kept + truth) / 2, np.trace(inverse)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    least = float(solution[average(c[i] * w[i] ** 2)]) / 2 + float(solution["q_lambda"])  # two residuals a feature
    limit = np.array([least, float(solution[response(w)])])
    order = np.array([float(solution.next_order(key)) for key in ("objective", response(w))])
    assert np.all(abs(order) > 10 * error)
    assert np.all(abs(mean - size * limit - order) < 4 * error + 3 * abs(order) / size)


def test_laws_that_bend_and_other_quantities_are_refused():
    bent = ConvexProblem(ridge.minimize + Sum(Abs(w[i]), (i, 1, N)))
    with pytest.raises(UnsupportedLaw, match="linear"):
        bent.cavity().solve({alpha: 2, gamma: 1}).next_order()
    with pytest.raises(UnsupportedLaw, match="response"):
        ridge.cavity().solve({alpha: 2, gamma: 1}).next_order(average(w[i] ** 2))
