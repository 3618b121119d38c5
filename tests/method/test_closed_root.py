"""Closed forms that are a root of a quadratic equation; bounds on the length of a vector."""

import pytest
from sympy import Eq, Rational, Sum, Symbol, sqrt

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    P,
    Quenched,
    System,
    alpha,
    average,
    i,
    mu,
    norm,
    response,
)

x, y, w, v = Coupling("x"), Coupling("y"), Feature("w"), Feature("v")
b, z, half = Quenched("b", mu), Symbol("z", positive=True), Rational(1, 2)
h = Sum(x[mu, i] * w[i], (i, 1, N))


def test_the_law_of_marchenko_and_pastur_in_closed_form():
    g, u = Quenched("g", i), Datum("u")
    system = System([Eq(u[mu], h), Eq(z * w[i], g[i] - Sum(x[mu, i] * u[mu], (mu, 1, P)))])
    known = (1 - alpha - z + sqrt((1 - alpha - z) ** 2 + 4 * z)) / (2 * z)
    found = system.cavity().closed_form(average(response(w[i])))
    for load, at in ((2, half), (half, 3)):
        assert abs((found - known).subs({alpha: load, z: at}).evalf()) < 1e-14


def test_ridge_regression_in_closed_form():
    theory = ConvexProblem(Sum((h - b[mu]) ** 2, (mu, 1, P)) / 2 + z * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    found = theory.closed_form(average(w[i] ** 2)).xreplace({average(b[mu] ** 2): 1})
    solved = theory.solve({alpha: 2, z: half, b: {1: 1}})[average(w[i] ** 2)]
    assert float(found.subs({alpha: 2, z: half})) == pytest.approx(float(solved), rel=1e-12)


def test_the_length_of_a_vector_may_be_bounded_as_it_is_or_squared():
    both = h + Sum(y[mu, i] * v[i], (i, 1, N))
    values, found = {alpha: 2, b: {1: half, 3: half}}, []
    for bound in (norm(w[i], v[i]) <= 1, w[i] ** 2 + v[i] ** 2 <= 1):
        problem = ConvexProblem(Sum((both - b[mu]) ** 2, (mu, 1, P)) / 2, [bound])
        found.append(float(problem.cavity().solve(values)[average(w[i] ** 2)]))
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def test_nothing_is_divided_by_an_overlap_that_vanishes():
    """Two fits of labels that say nothing of each other: their overlap is zero, and fixes no response."""
    first, second = (Quenched(name, mu, law={1: half, -1: half}) for name in ("a", "d"))
    gamma, u = Symbol("gamma", positive=True), Sum(x[mu, i] * v[i], (i, 1, N))
    loss = Sum(((first[mu] - h) ** 2 + (second[mu] - u) ** 2) / 2, (mu, 1, P))
    theory = ConvexProblem(loss + gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2).cavity()
    verdicts = theory.derivation.verify()
    assert not verdicts.failed
    solution = theory.solve({alpha: 2, gamma: half})
    assert solution[average(w[i] * v[i])] == 0
    alone = ConvexProblem(Sum((first[mu] - h) ** 2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    assert abs(solution[average(w[i] ** 2)] - alone.solve({alpha: 2, gamma: half})[average(w[i] ** 2)]) < 1e-14
