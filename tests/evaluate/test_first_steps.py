"""State evolutions at a temperature begin at sites that have heard nothing, exactly; and how conditions are met."""

import warnings

import numpy as np
import pytest
from sympy import Abs, Rational, Sum, Symbol, exp, log

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    P,
    Problem,
    Sites,
    UnstableSolution,
    Variable,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.derivations import fewest_errors
from symcavity.evaluate.solving.meeting import meet

x, w = Coupling("x"), Feature("w")
beta, gamma = Symbol("beta", positive=True), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
LAPLACE = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))).gibbs(beta)
squares = [average(w[i] ** 2), average(expect(w[i]) ** 2)]


@pytest.mark.parametrize("cold", [1, 10, 1000])
def test_a_prior_of_absolute_values(cold):
    """Nothing but it holds a state, whose second moment is twice the square of its length."""
    evolution = LAPLACE.cavity().state_evolution({alpha: 2, gamma: Rational(1, 2), beta: cold}, steps=1)
    second = 2 * (2 / cold) ** 2
    assert evolution[squares[0]][0] == pytest.approx(second, rel=1e-13)
    assert evolution[squares[1]][0] == 0
    assert evolution[response(w)][0] == pytest.approx(cold * second, rel=1e-13)
    assert evolution["S_lambda"][0] == pytest.approx(-1 / (1 + cold * second), rel=1e-13)
    assert evolution["q_lambda"][0] == pytest.approx((1 + cold * second) ** -2, rel=1e-13)


@pytest.mark.parametrize("cold", [1, 10**4])
def test_a_loss_without_a_closed_sum(cold):
    """The prior alone first; then the force on a field that is zero, as wide as the prior."""
    energy = Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2
    evolution = ConvexProblem(energy).gibbs(beta).cavity().state_evolution({alpha: 2, beta: cold}, steps=1)
    assert evolution[squares[0]][0] == pytest.approx(1 / cold, rel=1e-13)
    assert evolution[response(w)][0] == pytest.approx(1, rel=1e-13)
    size = cold**-0.5
    z = np.linspace(-60, 60, 400001) * size
    logs = -cold * (np.logaddexp(0, -z) + z**2 / 2)
    weights = np.exp(logs - logs.max())
    force = (weights @ z) / weights.sum()
    assert evolution["q_lambda"][0] == pytest.approx(force**2, rel=1e-9)


def test_states_that_nothing_holds_are_still():
    """They answer by the number one, and are zero, as the messages of instances have it."""
    evolution = ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2).gibbs(2).cavity().state_evolution({alpha: 3}, steps=3)
    assert [evolution[square][0] for square in squares] == [0, 0]
    assert evolution[response(w)][0] == 1
    assert evolution["S_lambda"][0] == pytest.approx(-Rational(1, 2), rel=1e-14)


def test_data_that_come_first_send_the_slope_of_their_loss():
    a, K = Sites("a", "K", "unit")
    z, v = Coupling("z", between=(mu, a)), Variable("v", a)
    field = Sum(z[mu, a] * v[a], (a, 1, K))
    energy = Sum(log(1 + exp(-field)), (mu, 1, P)) + Sum(v[a] ** 2, (a, 1, K)) / 2
    evolution = Problem(energy).gibbs(1).cavity().state_evolution({alpha: 2, K / N: 1}, steps=2)
    force, curvature = evolution["q_lambda"][0], evolution["S_lambda"][0]
    assert force == pytest.approx(1 / 4, rel=1e-14)  # the square of 1/2
    assert curvature == pytest.approx(-1 / 4, rel=1e-14)
    assert evolution[average(expect(v[a]) ** 2)][0] == pytest.approx(2 / 4 / (1 + 2 / 4) ** 2, rel=1e-13)


def test_the_fewest_errors_step_by_step():
    """The multiplier is met beside a place where no site has a law, and the steps end at the solution."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnstableSolution)
        solution = fewest_errors.problem.cavity().solve(fewest_errors.values)
    evolution = fewest_errors.problem.cavity().state_evolution(fewest_errors.values, steps=30)
    for name in ("S_lambda", "q_lambda", "nu"):
        assert evolution[name][-1] == pytest.approx(float(solution[name]), rel=1e-7)


@pytest.mark.parametrize("start", [3.0, -40.0, 0.4])
def test_a_root_close_to_where_nothing_is_defined(start):
    def place(g):
        return 1 - 1e-6 / (0.25 - g) ** 2 if g < 0.25 else np.nan

    def conditions(values):
        return np.array([place(values[0])]), lambda: np.full((1, 1), np.nan)

    assert meet(conditions, np.array([start])) == pytest.approx([0.249], abs=1e-12)


def test_a_state_at_rest_that_has_no_law_is_no_other_solution():
    """Two kinds of spins and pairs of patterns: where thermal means vanish the Gaussian fields of a pair diverge."""
    a, K = Sites("a", "K", "output unit")
    z, s = Coupling("z", between=(mu, a)), Feature("s", values=(-1, 1))
    v, M, L = Variable("v", a, values=(-1, 1)), Global("M"), Global("L")
    pairs = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) * Sum(z[mu, a] * v[a], (a, 1, K)), (mu, 1, P))
    recalled = N * M * L - L * Sum(s[i], (i, 1, N)) - M * Sum(v[a], (a, 1, K))
    solution = Problem(recalled - pairs).gibbs(beta).cavity().solve({alpha: Rational(1, 20), K / N: 1, beta: 4})
    m, C, q = float(solution[M]), float(solution[response(s)]), float(solution[average(expect(s[i]) ** 2)])
    pull = np.sqrt((1 + C**2) * q / 20) / (1 - C**2)  # the equations of the associative memory, two layers alike
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    told = np.tanh(4 * (m + pull * nodes))
    weights /= weights.sum()
    assert (weights @ told, weights @ told**2) == (pytest.approx(m, abs=1e-9), pytest.approx(q, abs=1e-9))
    assert 4 * (1 - q) == pytest.approx(C, rel=1e-9)
