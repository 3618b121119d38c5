"""Minima at which states vanish: limits of the closed equations, against instances and exact values."""

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, cosh, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, NotConverged, P, Quenched, alpha, average, i, mu, response

x, w = Coupling("x"), Feature("w")
y, t = Quenched("y", mu), Quenched("t", i)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2
size = average(w[i] ** 2)


def data(loss):
    return Sum(loss, (mu, 1, P))


@pytest.mark.parametrize("loss", [u**2 / 2, log(cosh(u))], ids=["squares", "log cosh"])
def test_a_smooth_minimum_at_zero_responds_as_its_hessian_says(loss):
    """The Hessian at zero is 1 + x'x in both cases: (1/N) tr of its inverse is sqrt(2) - 1 at load two."""
    solution = ConvexProblem(data(loss) + half).cavity().solve({alpha: 2})
    assert solution[size] == 0
    assert float(solution[response(w)]) == pytest.approx(np.sqrt(2) - 1, rel=1e-10)
    assert solution.stability < 1
    assert "at rest" in str(solution)


def test_a_kink_at_zero_holds_the_states():
    solution = ConvexProblem(data(Abs(u)) + half).cavity().solve({alpha: 2})
    assert solution[size] == solution[response(w)] == solution[average(Abs(w[i]))] == 0


@pytest.mark.parametrize(
    "problem",
    [
        ConvexProblem(data(Max(0, Abs(u - y[mu]) - 2)) + half),
        ConvexProblem(data(u**2) + Sum(Abs(w[i]), (i, 1, N))),
        ConvexProblem(half, [u >= -1]),
    ],
    ids=["tube", "absolute values", "slack margin"],
)
def test_what_is_at_rest_in_instances_is_at_rest_in_theory(problem):
    values = {alpha: 2, y: {1: 1}} if problem.cavity().system.quenched else {alpha: 2}
    solution, found = problem.cavity().solve(values), problem.simulate(values, N=40, seeds=2)
    assert solution[size] == 0
    assert found[size].mean < 1e-20
    for state in problem.cavity().datum.solution:  # multipliers do not vanish with the states: of cases of one law all
        for moment in (average(state), average(state**2)):
            assert float(solution[moment]) == pytest.approx(found[moment].mean, abs=1e-12)


def test_a_few_outliers_do_not_move_the_least_absolute_deviations():
    problem = ConvexProblem(data(Abs(u - y[mu])))
    values = {alpha: 3, y: {0: Rational(9, 10), 1: Rational(1, 10)}}
    assert problem.cavity().solve(values)[size] == 0
    assert problem.simulate(values, N=60, seeds=3)[size].mean < 1e-20


def test_basis_pursuit_recovers_a_sparse_signal_up_to_the_line_of_donoho_and_tanner():
    """Weak threshold at delta = 1/10: rho = 0.18942936775 (Donoho and Tanner 2009; computed independently)."""
    problem = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), 0)])
    theory = problem.cavity()
    error = average((w[i] - t[i]) ** 2)
    line = Rational("0.18942936775") / 10

    def at(share):
        return theory.solve({alpha: Rational(1, 10), t: {0: 1 - share, 1: share / 2, -1: share / 2}})

    inside = at(line * Rational(98, 100))
    assert inside[error] == inside[response(w)] == 0
    assert 0.9 < inside.stability < 1
    assert at(line * Rational(9, 10)).stability < inside.stability
    outside = at(line * Rational(102, 100))
    assert outside[error] > 1e-6
    assert inside[average(Abs(w[i]))] == pytest.approx(float(line * Rational(98, 100)), rel=1e-8)


def test_limits_are_refused_beyond_their_digits():
    with pytest.raises(NotConverged, match="at rest"):
        ConvexProblem(data(u**2) + half).cavity().solve({alpha: 2}, dps=30)


def test_no_rest_is_seen_where_there_is_none():
    gamma = Symbol("gamma", positive=True)
    solution = ConvexProblem(data((1 - u) ** 2) / 2 + gamma * half).cavity().solve({alpha: 2, gamma: 10**6})
    assert float(solution[size]) == pytest.approx(2e-12, rel=1e-4)
    assert not hasattr(solution, "at_rest")
    assert sqrt(float(solution[size])) > 1e-6
