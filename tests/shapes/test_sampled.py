"""Averages over sampled sets: their standard errors, wherever the set is given."""

import pytest
from sympy import Rational, Sum, symbols

from symcavity import ConvexProblem, Coupling, Feature, N, PointCloud, SupportFunction, alpha, average, i, mu

HALF = Rational(1, 2)
a = symbols("a", integer=True)
w, u = Feature("w"), Coupling("u", components=(a, 1, 2))
CLOUD = PointCloud([[1, 0], [HALF, -HALF], [-HALF, 1]])
SIZE, VALUES = average(w[i] ** 2), {alpha: Rational(1, 5)}


def margins(g):
    """The theory of a widest margin for sets."""
    vector = Sum(u[mu, i, a] * w[i], (i, 1, N))
    return ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [g(vector) >= 1]).cavity()


def test_a_sampled_set_has_one_error_in_a_declaration_and_as_a_value():
    """The scatter of independent samples was zero where the set stood in the declaration."""
    declared = margins(SupportFunction("g", CLOUD, samples=512, seed=3)).solve(VALUES)
    g = SupportFunction("g")
    theory = margins(g)
    given = theory.solve({**VALUES, g: g.given(CLOUD, samples=512, seed=3)})
    assert float(declared[SIZE]) == pytest.approx(float(given[SIZE]), rel=1e-9)
    error = declared.stderr(SIZE)
    assert error == pytest.approx(given.stderr(SIZE), rel=1e-9)
    fine = theory.solve({**VALUES, g: g.given(CLOUD, samples=8192, seed=4)})
    assert 0 < fine.stderr(SIZE) < error < float(fine[SIZE]) / 10
    assert 0 < abs(float(declared[SIZE] - fine[SIZE])) < 4 * error
