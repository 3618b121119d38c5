"""Message passing declared as a system in steps: nothing comes back, and it goes the way of the state evolution."""

import numpy as np
import pytest
from sympy import Abs, Eq, Heaviside, Max, Rational, Sum, symbols

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    P,
    Quenched,
    System,
    Time,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)

t, s = Time("t"), Time("s")
theta = symbols("theta", positive=True)
X, w, lam, u = Coupling("X"), Variable("w", i, over=t), Variable("lambda", mu, over=t), Variable("u", i, over=t)
w0, S, W = Quenched("w0", i), Global("S", over=t), Feature("w")
VALUES = {alpha: "3/2", theta: "1/5", w0: {0: "3/4", 2: "1/8", -2: "1/8"}}
ERROR = average((w[i, t] - w0[i]) ** 2)


def passing(onsager):
    """Message passing for the lasso, with a share of Onsager's term; S is the mean response of the weights."""
    gap = Sum(X[mu, i] * (w0[i] - w[i, t]), (i, 1, N))
    beyond = Max(0, u[i, t] - theta) - Max(0, -u[i, t] - theta)
    return System(
        [
            Eq(lam[mu, t], (gap + onsager * S[t] * lam[mu, t - 1]) / (1 + S[t])),
            Eq(u[i, t], Sum(X[mu, i] * lam[mu, t], (mu, 1, P)) + alpha / (1 + S[t]) * w[i, t]),
            Eq(w[i, t + 1], beyond * (1 + S[t]) / alpha),
            Eq(S[t + 1], (1 + S[t]) / alpha * average(Heaviside(Abs(u[i, t]) - theta))),
        ],
        initial=[Eq(w[i, 0], 0), Eq(lam[mu, -1], 0), Eq(S[0], 0)],
    )


@pytest.mark.parametrize("onsager", [1, Rational(1, 2)])
def test_messages_of_the_lasso_go_the_way_of_the_state_evolution(onsager):
    """Held against the state evolution of the problem; half of Onsager's term leaves a memory, and goes elsewhere."""
    run = passing(onsager).cavity().evolve(VALUES, until=6, paths=20000, seed=1)
    loss = Sum(Sum(X[mu, i] * (W[i] - w0[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2
    problem = ConvexProblem(loss + theta * Sum(Abs(W[i]), (i, 1, N)))
    evolution = problem.cavity().state_evolution(VALUES, steps=6)
    known, heard = evolution[average((W[i] - w0[i]) ** 2)], run[response(lam[mu, t], s)]
    z = (run[ERROR] - known) / run.errors[ERROR]
    memory = np.abs(heard - np.diag(np.diag(heard))).max()
    if onsager == 1:
        assert np.abs(z).max() < 4
        assert memory < 1e-12
    else:
        assert np.abs(z).max() > 8
        assert memory > 0.1
