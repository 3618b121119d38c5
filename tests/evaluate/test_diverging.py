"""Averages that diverge have no number: by their tails, or at a pole whose two sides cancel."""

import mpmath
import pytest
from sympy import Rational, Sum, Symbol, exp

from symcavity import ConvexProblem, Coupling, Feature, N, NotConverged, P, Quenched, alpha, average, i, mu
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.evaluate.averages.integrals import Pass

x, w, e = Coupling("x"), Feature("w"), Quenched("e", mu)
HEARD = Sum(x[mu, i] * w[i], (i, 1, N))
PROBLEM = ConvexProblem(Sum((HEARD - e[mu]) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)


@pytest.fixture(scope="module")
def solution():
    """Weights are Gaussian, of variance 0.207."""
    return PROBLEM.cavity().solve({alpha: 2, e: {1: "1/2", -1: "1/2"}})


@pytest.mark.parametrize("rate", [1, 2, Rational(23, 10)])
def test_tails_that_fall_off(solution, rate):
    """Known exactly below the threshold."""
    q = float(solution[average(w[i] ** 2)])
    assert solution[average(exp(rate * w[i] ** 2))] == pytest.approx((1 - 2 * float(rate) * q) ** -0.5, rel=1e-11)


@pytest.mark.parametrize(
    "body",
    [exp(Rational(5, 2) * w[i] ** 2), exp(10 * w[i] ** 2), 1 / w[i], w[i] / (w[i] - 1), 1 / (w[i] ** 2 - 1)],
    ids=str,
)
def test_what_diverges_is_refused(solution, body):
    """By its tail, by its pole."""
    with pytest.raises(NotConverged):
        solution[average(body)]


def test_what_grows_at_the_edge_of_its_law_is_no_pole():
    """The response ``1/(2*n)`` of ``n = sqrt(c - z)`` grows where n vanishes; its average is finite."""
    n, c = Symbol("n", real=True), Rational(3, 4)
    (found,) = Pass([ImplicitAverage(1 / (2 * n), n, c - n**2, 0)])({})
    expected = mpmath.quad(lambda z: mpmath.npdf(z) / (2 * mpmath.sqrt(0.75 - z)), [-30, -5, -1, 0.75])
    assert abs(found) == pytest.approx(float(expected), rel=1e-8)
