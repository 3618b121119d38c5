"""Losses whose border is a scale that is learned: Huber's loss with its scale, the squares of a scaled residual."""

import pytest
from sympy import Abs, Piecewise, Rational, Sum
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, Global, N, P, Quenched, alpha, average, i, mu
from symcavity.algebra.gaussian import GaussianAverage

HALF = Rational(1, 2)
x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
scale = Global("sigma", positive=True)
residual = e[mu] - Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
VALUES = {alpha: 3, t: {1: HALF, -1: HALF}, e: Normal("e", 0, 1)}


def learned(border):
    """Huber's loss of a residual over its scale, times the scale, with a price for the scale."""
    loss = Piecewise(
        (residual**2 / scale, Abs(residual) <= border * scale),
        (2 * border * Abs(residual) - border**2 * scale, True),
    )
    return ConvexProblem(Sum(loss + border**2 * scale / 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4)


def test_the_condition_of_the_scale_has_a_closed_form():
    theory = learned(Rational(27, 20)).cavity()
    assert not any(equation.has(GaussianAverage) for equation in theory.equations)


def test_the_scale_balances_its_price():
    """Its condition ``<r**2/s**2; |r| <= b*s> + b**2*P(|r| > b*s) = b**2/2`` fixes the mean square of the forces."""
    border = Rational(27, 20)
    problem = learned(border)
    theory = problem.cavity()
    solution = theory.solve(VALUES)
    assert float(solution[scale]) > 0
    assert float(solution["q_lambda"]) == pytest.approx(2 * float(border) ** 2, rel=1e-12)
    table = theory.compare(problem.simulate(VALUES, N=80, seeds=6), [average(w[i] ** 2), average(residual**2)])
    assert all(abs(row.z) < 4 for row in table.rows)


def test_without_a_gain_of_the_scale_it_vanishes():
    """``r**2/(2*s) + s/2`` is not below |r|: the scale is zero, and the fit is that of least absolute deviations."""
    loss = Piecewise((residual**2 / scale / 2, Abs(residual) <= scale), (Abs(residual) - scale / 2, True))
    penalty = Sum(w[i] ** 2, (i, 1, N)) / 4
    huber = ConvexProblem(Sum(loss + scale / 2, (mu, 1, P)) + penalty).cavity().solve(VALUES)
    absolute = ConvexProblem(Sum(Abs(residual), (mu, 1, P)) + penalty).cavity().solve(VALUES)
    assert float(huber[scale]) == pytest.approx(0, abs=1e-12)
    assert float(huber[average(w[i] ** 2)]) == pytest.approx(float(absolute[average(w[i] ** 2)]), rel=1e-10)
