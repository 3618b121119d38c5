"""Means to order 1/N for quadratic laws, from the stability: half the logarithm of what it leaves below one.

The mean of the logarithm of the determinant of ``x^T x + gamma`` is N times its limit, plus ``log(1 - stability)/2``;
its derivative by gamma is the mean of the trace of the inverse, which is the risk of a fit to noise.
"""

import pytest
from mpmath import log, mpf
from sympy import Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu

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
