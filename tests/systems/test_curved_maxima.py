"""The larger of two curved functions, as a loss and as a penalty: where they meet, it bends."""

from types import SimpleNamespace

import numpy as np
import pytest
import sympy
from references import by_hand
from sympy import Rational, Sum

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, response

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
h = Sum(x[mu, i] * w[i], (i, 1, N))
ARRAYS = SimpleNamespace(Max=np.maximum, Abs=np.abs, exp=np.exp, cosh=np.cosh)
LOSSES = {
    "two squares": lambda m, f: f.Max((m - 2) ** 2, m**2),
    "a square and a line": lambda m, f: f.Max((m - 1) ** 2 / 2, 2 * m - 2),
    "a fourth power and a square": lambda m, f: f.Max((m - 1) ** 4, 2 * (m - 1) ** 2),
    "the square of what is over": lambda m, f: f.Max((m - 2) ** 2 - 1, 0) ** 2,
    "an exponential and a square": lambda m, f: f.Max(f.exp(-m), m**2),
    "an exponential above its least value": lambda m, f: f.Max(f.exp(1 - m) - 1, 0),
    "an exponential and a line": lambda m, f: f.Max(f.exp(1 - m) - 1, m - 1),
    "an exponential of a size": lambda m, f: f.Max(f.exp(f.Abs(m - 1)) - 2, 0),
    "a size turned by its line": lambda m, f: f.Max(0, (1 - m) * f.Abs(1 - m)),
    "a hyperbolic cosine and a constant": lambda m, f: f.Max(f.cosh(m - 2), 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_hand(name):
    loss = LOSSES[name]
    problem = ConvexProblem(Sum(loss(h, sympy), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    solution = problem.cavity().solve({alpha: 1})
    q, S = by_hand(lambda m: loss(m, ARRAYS), 1, 1)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-4)
    assert float(solution[average(response(w[i]))]) == pytest.approx(S, rel=1e-4)


def test_labels_decide_where_two_meet():
    """A square and a line, which is the steeper the larger the label is."""
    y = Quenched("y", mu, law={2: 1})
    loss = Sum(sympy.Max((h - 1) ** 2 - y[mu] * (h - 1), 0), (mu, 1, P))
    solution = ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().solve({alpha: 1})
    q, S = by_hand(lambda m: np.maximum((m - 1) ** 2 - 2 * (m - 1), 0), 1, 1)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-4)
    assert float(solution[average(response(w[i]))]) == pytest.approx(S, rel=1e-4)


def test_the_square_of_the_largest_of_three():
    """One square for each of the pieces that are not zero."""
    size = Sum(w[i] ** 2, (i, 1, N)) / 2
    solution = ConvexProblem(Sum(sympy.Max(0, h - 2, 1 - h) ** 2, (mu, 1, P)) + size).cavity().solve({alpha: 2})
    q, S = by_hand(lambda m: np.maximum(np.maximum(m - 2, 1 - m), 0) ** 2, 2, 1)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(q, rel=1e-4)
    assert float(solution[average(response(w[i]))]) == pytest.approx(S, rel=1e-4)


@pytest.mark.parametrize("load", [1, 3])
def test_what_is_least_at_the_place_where_it_bends_is_at_rest(load):
    """No weight is of use: the loss vanishes at zero, and nowhere is it less."""
    y = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
    problem = ConvexProblem(Sum(sympy.Max(sympy.exp(-y[mu] * h) - 1, 0), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4)
    assert problem.cavity().solve({alpha: load})[average(w[i] ** 2)] == 0


AS_PENALTIES = [name for name in LOSSES if name.startswith("an exponential a") or name == "two squares"]


@pytest.mark.parametrize("name", AS_PENALTIES)
def test_penalties_against_instances(name):
    missed = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    penalty = Sum(LOSSES[name](w[i], sympy), (i, 1, N)) / 2
    problem = ConvexProblem(Sum(missed**2, (mu, 1, P)) / 2 + penalty)
    values = {alpha: 2, t: {1: Rational(1, 2), -1: Rational(1, 2)}}
    simulation = problem.simulate(values, N=150, seeds=10)
    assert problem.cavity().compare(simulation, [average(w[i] ** 2), average(w[i] * t[i])]).worst < 4.5
