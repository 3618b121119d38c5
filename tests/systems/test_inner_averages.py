"""An average inside of an average is one number for all sites, in theories and in instances."""

import pytest
from sympy import Abs, Rational, Sum

from symcavity import ConvexProblem, Coupling, Feature, N, alpha, average, i, mu, response

x, w = Coupling("x"), Feature("w")
PROBLEM = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [Sum(x[mu, i] * w[i], (i, 1, N)) >= 1, w[i] >= 0])
LAM = PROBLEM.kkt()["lambda"][mu]
VALUES = {alpha: Rational(1, 2)}
MEAN, MESSAGE = average(w[i]), average(LAM)
PAIRS = [
    (average((w[i] - MEAN) ** 2), average(w[i] ** 2) - MEAN**2),
    (average(LAM * average(Abs(w[i]))), MESSAGE * MEAN),
    (average(w[i] * response(w)), MEAN * response(w)),
    (average(w[i] * MEAN * average(w[i] * MEAN)), MEAN**4),
    (average((LAM - MESSAGE) * average(w[i] - MESSAGE)) + 1, 1),
    (Sum(w[i] * MEAN, (i, 1, N)) / N, MEAN**2),
]


@pytest.fixture(scope="module", params=["theory", "instance"])
def solved(request):
    """The solution, or an instance."""
    if request.param == "theory":
        return PROBLEM.cavity().solve(VALUES).__getitem__
    sim = PROBLEM.simulate(VALUES, N=60, seeds=1)
    return lambda key: sim[key].mean


@pytest.mark.parametrize(("nested", "apart"), PAIRS, ids=lambda e: str(e)[:40])
def test_it_may_be_taken_out(solved, nested, apart):
    """What is the same at every site stands outside as well."""
    assert float(solved(nested)) == pytest.approx(1 if apart == 1 else float(solved(apart)), rel=1e-9)


def test_the_variance_of_weights_of_one_sign():
    """Right for sign constraints, margin one: the number that instances give too."""
    assert PROBLEM.cavity().solve(VALUES)[PAIRS[0][0]] == pytest.approx(3.07737903945375, rel=1e-10)


def test_an_event_relative_to_the_mean():
    """More weights lie below the mean than above, and all are either."""
    solution = PROBLEM.cavity().solve(VALUES)
    above = solution[average(w[i] > MEAN)]
    assert 0.2 < above < 0.5
    assert above + solution[average(w[i] < MEAN)] == pytest.approx(1, rel=1e-11)
