"""The minimum of a convex problem per feature: an observable of theories and of instances."""

from importlib import import_module

import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, sqrt

from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
)  # fmt: skip

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
field = Sum(x[mu, i] * w[i], (i, 1, N))
squares = Sum(w[i] ** 2, (i, 1, N)) / 2


def test_ridge_regression_on_equal_labels():
    """1'(1 + X X')^-1 1/(2 N), and the resolvent of Marchenko and Pastur is 1/sqrt 2 at alpha = 2."""
    theory = ConvexProblem(Sum((1 - field) ** 2, (mu, 1, P)) / 2 + squares).cavity()
    assert abs(theory.solve({alpha: 2}, dps=30).objective - 1 / sqrt(2).n(40)) < 1e-29
    matrix = np.random.default_rng(1).normal(size=(2000, 1000)) / np.sqrt(1000)
    brute = np.linalg.solve(np.eye(2000) + matrix @ matrix.T, np.ones(2000)).sum() / 2000
    assert float(theory.solve({alpha: 2}).objective) == pytest.approx(brute, rel=0.02)


def test_instances_have_the_same_number():
    problem = ConvexProblem(Sum(Max(0, 1 - y[mu] * field), (mu, 1, P)) + squares)
    theory, values = problem.cavity(), {alpha: 2, y: {1: Rational(1, 2), -1: Rational(1, 2)}}
    sim = problem.simulate(values, N=[60, 120], seeds=20)
    solution = theory.solve(values)
    assert sim.objective.z(float(solution.objective)) == theory.compare(sim, [theory.objective])[theory.objective].z
    assert abs(sim.objective.z(float(solution.objective))) < 3
    assert solution[theory.objective] == solution.objective


def test_a_mean_stays_a_mean_and_sums_are_counted_in_features():
    mean = ConvexProblem(Sum((1 - field) ** 2, (mu, 1, P)) / P + Sum(w[i] ** 2, (i, 1, N)) / N).cavity()
    assert mean.objective == average((1 - field) ** 2) + average(w[i] ** 2)
    total = ConvexProblem(Sum((1 - field) ** 2, (mu, 1, P)) + squares).cavity()
    assert total.objective == alpha * average((1 - field) ** 2) + average(w[i] ** 2) / 2


def test_equations_have_no_objective():
    lam = Datum("lambda")
    system = BipartiteSystem(
        [Eq(w[i], Sum(x[mu, i] * lam[mu], (mu, 1, P))), Eq(lam[mu], 1 - field)], name="without an objective"
    )
    with pytest.raises(UnsupportedLaw, match="no objective"):
        _ = system.cavity().objective


def test_more_kinds_of_sites_count_in_features_too():
    declared = import_module("symcavity.derivations.random_features")
    solution = declared.problem.cavity().solve(declared.values)
    sim = declared.problem.simulate(declared.values, N=60, seeds=12)
    assert abs(sim.objective.z(float(solution.objective))) < 4
