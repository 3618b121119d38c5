"""Proximal steps on the LASSO, declared as a system in time: they end where the theory at rest has its minimum."""

import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, Time, Variable, alpha, average, i, mu

k = Time("k")
x, t, w = Coupling("x"), Quenched("t", i), Feature("w")
rate, gamma = Symbol("rate", positive=True), Symbol("gamma", positive=True)
moving, error = Variable("w", i, over=k), Variable("r", mu, over=k)


def soft(value, threshold):
    return sign(value) * Max(0, Abs(value) - threshold)


def hinges(value, threshold):
    return Max(0, value - threshold) - Max(0, -value - threshold)


@pytest.mark.parametrize("shrunk", [soft, hinges])
def test_proximal_steps_end_at_the_minimum_of_the_lasso(shrunk):
    step = moving[i, k] - rate * Sum(x[mu, i] * error[mu, k], (mu, 1, P))
    steps = System(
        [
            Eq(moving[i, k + 1], shrunk(step, rate * gamma)),
            Eq(error[mu, k], Sum(x[mu, i] * (moving[i, k] - t[i]), (i, 1, N))),
        ],
        initial=[Eq(moving[i, 0], 0)],
    )
    values = {gamma: "1", alpha: 2, t: {0: Rational(4, 5), 2: Rational(1, 5)}}
    run = steps.cavity().evolve({**values, rate: "2/5"}, until=12, paths=4000, seed=3)
    residual = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    lasso = ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))
    rest = lasso.cavity().solve(values)[average((w[i] - t[i]) ** 2)]
    reached = average((moving[i, k] - t[i]) ** 2)
    assert abs(run[reached][-1] - rest) < 4 * run.errors[reached][-1] + 1e-3 * rest
    assert run.errors[reached][-1] < 0.1 * rest
