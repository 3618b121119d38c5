"""The largest error over all data: below one datum for each weight nothing fixes the weights, on no branch."""

import pytest
from sympy import Rational, Sum

from symcavity import ConvexProblem, Coupling, Feature, Global, N, Quenched, alpha, average, i, mu
from symcavity.errors import FlatMinimum

x, w, t, y = Coupling("x"), Feature("w"), Global("t", positive=True), Quenched("y", mu)
error = y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
problem = ConvexProblem(N * t, [error <= t, -error <= t])
LABELS = {y: {1: Rational(1, 2), -1: Rational(1, 2)}}


def test_fewer_data_than_weights_fix_nothing_and_the_load_at_which_they_would_is_named():
    with pytest.raises(FlatMinimum, match="nothing fixes the states") as caught:
        problem.cavity().solve({alpha: Rational(1, 2), **LABELS})
    assert caught.value.evidence.load == pytest.approx(1, rel=0.01)
    assert caught.value.evidence.way == "larger"


def test_more_data_fix_the_largest_error():
    solution = problem.cavity().solve({alpha: "6/5", **LABELS})
    run = problem.simulate({alpha: "6/5", **LABELS}, N=100, seeds=16)
    for observable in (t, average(w[i] ** 2)):
        found = run[observable]
        assert abs(found.mean - float(solution[observable])) < 4 * found.stderr + 2 / 100
