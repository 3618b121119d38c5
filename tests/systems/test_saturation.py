"""Rates that saturate or grow: thresholds and inputs that move together change nothing; no clipped value is a root."""

import pytest
from sympy import Eq, Sum, Symbol, cosh, exp, log, sinh

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    NotConverged,
    P,
    Quenched,
    System,
    alpha,
    average,
    i,
    mu,
)

j = Symbol("j", integer=True)
theta, b = Symbol("theta", real=True), Symbol("b", real=True)
gain = Symbol("g", positive=True)
v, w, x, y = Feature("v"), Feature("w"), Coupling("x"), Quenched("y", mu)


def network(rate, reciprocity):
    """Units with a threshold and a common input."""
    J = Coupling("J", between=(i, i), reciprocity=reciprocity)
    return System([Eq(v[i], rate(gain * Sum(J[i, j] * v[j], (j, 1, N)) + b - theta))]).cavity()


@pytest.mark.parametrize(
    ("rate", "strength"),
    [(lambda u: 1 / (1 + exp(-2 * u)), 3), (lambda u: log(1 + exp(u)), 1)],
    ids=["logistic", "softplus"],
)
def test_a_threshold_and_an_input_that_move_together(rate, strength):
    """From a thousandth to a thousand."""
    theory = network(rate, 0)
    size = [theory.solve({theta: c, b: c, gain: strength})[average(v[i] ** 2)] for c in ("1/1000", 0, 61, 1000)]
    assert size == pytest.approx([size[0]] * 4, rel=1e-12)


def test_an_activity_that_runs_away_is_no_solution():
    """The rate grows without bound, and so does the activity."""
    with pytest.raises(NotConverged):
        network(lambda u: log(1 + exp(u)), 0).solve({theta: 0, b: 1, gain: 3})


def test_spellings_of_the_logistic_loss():
    """The same loss by exponentials of either sign and by hyperbolic functions."""
    u = -y[mu] * Sum(x[mu, i] * w[i], (i, 1, N))
    values = {alpha: 2, y: {1: "1/2", -1: "1/2"}}
    found = []
    for loss in (log(1 + exp(u)), u + log(1 + exp(-u)), log(1 + cosh(u) + sinh(u)), u / 2 + log(2 * cosh(u / 2))):
        problem = ConvexProblem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
        found.append(problem.cavity().solve(values)[average(w[i] ** 2)])
    assert found == pytest.approx([0.192793420243405] * 4, rel=1e-11)
