"""How fast the state evolution settles, beside the stability: either may decide whether messages converge."""

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.errors import UnsupportedLaw

x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
half, gamma, C = Rational(1, 2), Symbol("gamma", positive=True), Symbol("C", positive=True)


def test_a_stable_theory_whose_state_evolution_runs_away():
    y, m = Quenched("y", mu, law={1: half, -1: half}), Quenched("m", i)
    z = Coupling("z", mean=y[mu] * m[i] / N, variance=1 / (4 * N))
    score = Sum(z[mu, i] * w[i], (i, 1, N))
    apart = ConvexProblem(Sum((y[mu] - score) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    at = {alpha: 1, gamma: Rational(1, 10), m: {1: half, -1: half}}
    assert float(apart.solve(at).stability) < 0.3
    trail = apart.state_evolution(at, steps=12)[average(m[i] * w[i])]
    assert apart.settling(at) == pytest.approx(np.sqrt(abs(trail[-1] / trail[-3])), rel=1e-3)
    assert apart.settling(at) > 2


def test_a_soft_margin_settles():
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    margin = [h >= 1 - xi[mu]]
    soft = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu] ** 2, (mu, 1, P)) / 2, margin).cavity()
    at = {alpha: 2, C: Rational(3, 2)}
    trail = soft.state_evolution(at, steps=10)[average(w[i] ** 2)]
    left = abs(trail - float(soft.solve(at)[average(w[i] ** 2)]))
    assert left[10] < left[5] * (1.5 * soft.settling(at)) ** 5
    assert soft.settling(at) < 0.3


def test_the_naive_analysis_has_none():
    from symcavity.derivations import gardner

    with pytest.raises(UnsupportedLaw):
        gardner.problem.naive().settling({gardner.kappa: 1})
