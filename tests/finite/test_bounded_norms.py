"""Instances of problems with bounds on sums of squares, against problems without bounds that have the same solution."""

import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    P,
    Quenched,
    System,
    alpha,
    average,
    i,
    mu,
)
from symcavity.errors import DeclarationError, UnsupportedLaw

x, w, xi = Coupling("x"), Feature("w"), Datum("xi")
h, squares = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(w[i] ** 2, (i, 1, N))
B, half = Symbol("B", positive=True), Rational(1, 2)
RUN = {"N": 40, "seeds": 3}


def test_the_widest_margin_below_a_norm_is_that_of_the_shortest_weights():
    kappa = Global("kappa")
    widest = ConvexProblem(-N * kappa, [h >= kappa, squares <= N * B]).simulate({alpha: 1, B: 2}, **RUN)
    shortest = ConvexProblem(squares / 2, [h >= 1]).simulate({alpha: 1}, **RUN)
    assert not widest.failed
    found, own = widest.arrays(w), shortest.arrays(w)
    assert np.allclose(found, own * np.sqrt(2 / np.mean(own**2, axis=1, keepdims=True)), rtol=0, atol=1e-8)


def test_several_bounds_are_met_together_and_idle_where_they_are_wide():
    C = Symbol("C", positive=True)
    y = Quenched("y", mu, law={1: half, -1: half})
    bounds = [h >= y[mu] - xi[mu], Sum(xi[mu] ** 2, (mu, 1, P)) <= N * C, squares <= N * B]
    problem = ConvexProblem(-Sum(w[i], (i, 1, N)), bounds)
    both = problem.simulate({alpha: 2, B: 2, C: 1}, **RUN)
    assert not both.failed
    assert both[average(w[i] ** 2)].mean == pytest.approx(2, abs=1e-9)
    assert both[average(xi[mu] ** 2)].mean == pytest.approx(half, abs=1e-9)
    loose = ConvexProblem(Sum((y[mu] - h) ** 2, (mu, 1, P)), [squares <= N * B])
    bare = ConvexProblem(Sum((y[mu] - h) ** 2, (mu, 1, P)))
    runs = loose.simulate({alpha: 3, B: 9}, **RUN), bare.simulate({alpha: 3}, **RUN)
    assert np.allclose(*(run.arrays(w) for run in runs), rtol=0, atol=1e-8)


def test_a_square_above_a_threshold_that_all_sites_share():
    v, gamma, y = Global("v", positive=True), Symbol("gamma", positive=True), Quenched("y", mu)
    losses = Sum(Max(0, (y[mu] - h) ** 2 - v), (mu, 1, P))
    problem = ConvexProblem(losses + N * v / 2 + gamma * squares / 2)
    values = {alpha: 2, gamma: 1, y: {1: half, 2: half}}
    theory = problem.cavity()
    assert theory.derivation.verify()
    solution = theory.solve(values)
    run = problem.simulate(values, N=100, seeds=12)
    for observable in (v, average(w[i] ** 2)):
        assert abs(run[observable].mean - float(solution[observable])) < 4 * run[observable].stderr + 2 / 100


def test_a_square_above_a_threshold_of_open_sign_is_refused_with_the_way_out():
    v, y = Global("v"), Quenched("y", mu)
    with pytest.raises(UnsupportedLaw, match=r"if v is never negative: Global\(\"v\", positive=True\)"):
        ConvexProblem(Sum(Max(0, (y[mu] - h) ** 2 - v), (mu, 1, P)) + N * v / 2 + squares)


def test_a_resource_that_is_washed_out_is_solved_from_where_its_law_is_finite():
    """The chemostat: D (K - r) = r sum c n.  No start at zero, where the law has a pole, nor at other global values."""
    n, r, D, m = Feature("n"), Datum("r"), Symbol("D", positive=True), Quenched("m", i, positive=True)
    c = Coupling("c", mean=2 / N, variance=Rational(1, 4) / N)
    K = Quenched("K", mu, positive=True)
    eaten, gained = Sum(c[mu, i] * n[i], (i, 1, N)), Sum(c[mu, i] * r[mu], (mu, 1, P))
    system = System([], [Complementary(r[mu], D + eaten - D * K[mu] / r[mu]), Complementary(n[i], m[i] - gained)])
    run = system.simulate({alpha: 2, D: 1, K: {2: 1}, m: {1: 1}}, **RUN)
    assert not run.failed
    assert run.residuals.worst < 1e-10
    supplied = run[average(r[mu] * (D + eaten) / D)].mean  # what comes in goes out
    assert supplied == pytest.approx(2, abs=1e-9)


def test_neighbours_are_refused_with_what_may_be_said():
    loss = Sum((1 - h) ** 2, (mu, 1, P))
    for steps in (Sum(Abs(w[i + 1] - w[i]), (i, 1, N - 1)), Sum(Abs(w[i] - w[i - 1]), (i, 2, N))):
        with pytest.raises(DeclarationError, match="sites have no order"):
            ConvexProblem(loss + steps)
