"""What moves ends in what is at rest, and both are as instances are: replicators, a margin, driven networks."""

import numpy as np
import pytest
from sympy import Derivative, Eq, Max, Min, Rational, Sum, Symbol, symbols, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    Noise,
    P,
    Quenched,
    System,
    Time,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.derivations import random_replicators

t, s, j = Time("t"), Time("s"), Symbol("j")
g, u, C, rate, D = symbols("g u C rate D", positive=True)
r = Symbol("r", real=True)
x, a = Variable("x", i, over=t), Quenched("a", i)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}


@pytest.mark.parametrize("reciprocity", ["1/2", "-1/2"])
def test_replicators_end_at_rest_and_go_there_as_instances_do(reciprocity):
    """A share of one population: the mean fitness is heard by all, and keeps the mean abundance at one."""
    n, f, fitness = Variable("n", i, over=t), Variable("f", i, over=t), Global("phi", over=t)
    J = Coupling("J", between=(i, i), reciprocity=r)
    moving = System(
        [
            Eq(Derivative(n[i, t], t), n[i, t] * (f[i, t] - fitness[t])),
            Eq(f[i, t], Sum(J[i, j] * n[j, t], (j, 1, N)) - u * n[i, t]),
            Eq(fitness[t], average(n[i, t] * f[i, t]) / average(n[i, t])),
        ],
        initial=[Eq(n[i, 0], 1)],
    )
    values, size = {u: 3, r: reciprocity}, average(n[i, t] ** 2)
    run = moving.cavity().evolve(values, until=4, step="1/10", paths=4000, seed=1)
    found = run.compare(moving.simulate(values, N=300, seeds=12, until=4, step="1/10"), [size, fitness[t]])
    assert all(row.rms < 2.5 for row in found.rows), str(found)
    still = random_replicators
    rest = still.problem.cavity().solve({still.u: 3, still.g: reciprocity})
    left = abs(run[size][-1] - run[size][-10])
    assert abs(run[size][-1] - float(rest[average(still.s[i] ** 2)])) < 4 * run.errors[size][-1] + 4 * left
    assert abs(run[fitness[t]][-1] - float(rest[still.f])) < 4 * run.errors[fitness[t]][-1] + 4 * left
    assert run.errors[size][-1] < 0.03


def test_a_soft_margin_by_dual_ascent_goes_as_instances_do():
    """Messages climb the dual, and keep within their box; weights are the sum of what they are told."""
    X, w, y = Coupling("x"), Variable("w", i, over=t), Quenched("y", mu)
    lam, W, xi = Variable("lambda", mu, over=t), Feature("w"), Datum("xi")
    margin = y[mu] * Sum(X[mu, i] * w[i, t], (i, 1, N))
    ascent = System(
        [
            Eq(lam[mu, t + 1], Min(C, Max(0, lam[mu, t] + rate * (1 - margin)))),
            Eq(w[i, t], Sum(X[mu, i] * y[mu] * lam[mu, t], (mu, 1, P))),
        ],
        initial=[Eq(lam[mu, 0], 0)],
    )
    values = {alpha: "3/2", C: 1, rate: "1/4", y: HALF}
    seen = [average(w[i, t] ** 2), average(lam[mu, t])]
    run = ascent.cavity().evolve(values, until=16, paths=8000, seed=1)
    found = run.compare(ascent.simulate(values, N=500, seeds=12, until=16), seen)
    assert all(row.rms < 2.5 for row in found.rows), str(found)
    objective = Sum(W[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P))
    heard = y[mu] * Sum(X[mu, i] * W[i], (i, 1, N))
    rest = ConvexProblem(objective, [xi[mu] >= 0, heard >= 1 - xi[mu]]).cavity().solve({alpha: "3/2", C: 1, y: HALF})
    left = abs(run[seen[0]][-1] - run[seen[0]][-3])
    assert abs(run[seen[0]][-1] - float(rest[average(W[i] ** 2)])) < 4 * run.errors[seen[0]][-1] + 4 * left
    assert run.errors[seen[0]][-1] < 0.03


@pytest.mark.parametrize("reciprocity", [0, "1/2"])
def test_a_driven_network_is_stationary_as_its_instances_are(reciprocity):
    """Drives that differ from site to site, and noise: late times of simulated instances, in standard errors."""
    b, xi = Quenched("b", i), Noise("xi", i, over=t, variance=D)
    J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
    heard = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)) + b[i]
    driven = System([Eq(x[i, t + 1], x[i, t] / 2 + heard / 2 + xi[i, t])], initial=[Eq(x[i, 0], a[i])])
    values = {g: "3/2", r: reciprocity, D: "1/4", a: HALF, b: Normal("b", Rational(1, 4), Rational(1, 2))}
    rest = driven.cavity().stationary(values, until=16, paths=2000, seed=1)
    both, mean = average(x[i, t] * x[i, s]), average(x[i, t])
    sim = driven.simulate(values, N=300, seeds=12, until=72)
    late, means = np.asarray(sim[both].samples), np.asarray(sim[mean].samples)
    for lag in (0, 1, 4, 12):
        seen = np.array([np.diagonal(one, -lag)[40:].mean() for one in late])
        spread = np.hypot(seen.std(ddof=1) / np.sqrt(len(seen)), rest.errors[both](lag))
        assert abs(seen.mean() - rest[both](lag)) < 4 * spread, lag
        assert spread < 0.08 * rest[both](0)
    seen = means[:, 40:].mean(axis=1)
    spread = np.hypot(seen.std(ddof=1) / np.sqrt(len(seen)), rest.errors[mean])
    assert abs(seen.mean() - rest[mean]) < 4 * spread
