"""Averages of events over laws that are solved in a function of the states."""

import numpy as np
import pytest
from scipy.stats import norm
from sympy import Rational, Sum, Symbol, exp, log, symbols

from symcavity import Complementary, ConvexProblem, Coupling, Feature, N, P, System, alpha, average, fresh, i, mu


def test_shares_above_a_value_of_abundances_with_immigration():
    """The abundance grows with its field: the share is that of fields above the one that belongs to the value."""
    n, j = Feature("n"), symbols("j", integer=True)
    A, sigma, m = Symbol("A", real=True), Symbol("sigma", positive=True), Symbol("m", positive=True)
    J = Coupling("J", between=(i, i), mean=A / N, variance=sigma**2 / N)
    law = Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)) - m / n[i])
    solution = System([], [law]).cavity().solve({A: 2, sigma: "1/2", m: "1/100"})
    q, mean = float(solution[average(n[i] ** 2)]), float(solution[average(n[i])])
    for u in ("0.02", "0.3", "1.2"):
        x = float(u)
        field = x - 1 + 2 * mean - 0.01 / x  # what is heard beyond the mean
        expected = norm.sf(field / (0.5 * np.sqrt(q)))
        assert float(solution[average(n[i] > Rational(u))]) == pytest.approx(expected, rel=1e-9)
        assert float(solution[average(n[i] < Rational(u))]) == pytest.approx(1 - expected, rel=1e-9)


def test_shares_of_fields_of_a_smooth_loss():
    """Shares below, between and above add up to one, and a share falls with the value."""
    x, w = Coupling("x"), Feature("w")
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    loss = Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2
    solution = ConvexProblem(loss).cavity().solve({alpha: 2})
    above = [float(solution[average(h > u)]) for u in (-1, 0, 1)]
    assert above[0] > above[1] > above[2] > 0
    assert float(solution[average(h < 1)]) == pytest.approx(1 - above[2], rel=1e-9)
    assert float(solution[average(fresh(h > 0))]) == pytest.approx(0.5, rel=1e-9)
