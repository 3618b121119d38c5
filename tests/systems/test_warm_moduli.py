"""Thermal averages of what bends where the energy does: the modulus of a weight with a Laplace prior."""

import numpy as np
import pytest
from sympy import Abs, Heaviside, Max, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, alpha, average, expect, i, mu
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.sites.branching.joining import in_combination

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
beta, price = Symbol("beta", positive=True), Symbol("price", positive=True)
error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
laplace = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + price * Sum(Abs(w[i]), (i, 1, N))).gibbs(beta)
AT = {alpha: 1, beta: 2, price: 1, t: {1: Rational(1, 2), -1: Rational(1, 2)}}


def test_the_mean_modulus_is_the_slope_of_the_free_energy():
    theory, step = laplace.cavity(), Rational(1, 1000)
    near = [float(theory.solve({**AT, price: 1 + k * step})[theory.free_energy]) for k in (-2, -1, 1, 2)]
    slope = (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * float(step))
    found = theory.solve(AT)
    assert float(found[average(Abs(w[i]))]) == pytest.approx(slope, rel=1e-9)
    assert float(found[average(expect(Abs(w[i])))]) == pytest.approx(slope, rel=1e-9)
    halves = found[average(expect(Max(0, w[i])))], found[average(expect(Max(0, -w[i])))]
    assert float(sum(halves)) == pytest.approx(slope, rel=1e-9)


def test_squares_of_such_averages_are_those_of_instances():
    shown = [average(expect(Abs(w[i])) ** 2), average(expect(Heaviside(w[i])) ** 2)]
    assert laplace.cavity().compare(laplace.simulate(AT, N=60, seeds=12), shown).worst < 4


def test_a_dead_zone_of_a_labelled_field_beside_a_teacher_is_one_of_their_combination():
    """The fields meet in s*h - u only: S_lambda and q_lambda by sums over that and over h."""
    s, h, u = Quenched("s", mu), *(Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
    loss = Sum(Max(0, Abs(s[mu] * h - u) - Rational(1, 2)) ** 2, (mu, 1, P)) / 2
    theory = Problem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(beta).cavity()
    near = {"S_lambda": -0.47, "q_lambda": 0.25, "S_m": 0.52, "q_m": 0.13}
    guess = {name: near.get(str(name), 0.01) for name in theory.order_parameters}
    found = theory.solve({alpha: 2, beta: 1, t: AT[t], s: AT[t]}, guess=guess)
    by_name = {str(name): float(found[name]) for name in theory.order_parameters}
    width, variance = by_name["S_m"], by_name["q_m"] + 1  # of the measure; of s*h - u, as s is as often 1 as -1
    field = np.linspace(-9, 9, 721)[:, None] * np.sqrt(variance)
    away = np.linspace(-9, 9, 721) * np.sqrt(width)
    weight = np.exp(-(np.maximum(0, abs(field + away) - 0.5) ** 2 + away**2 / width) / 2)
    first, second = ((weight * away**n).sum(1) / weight.sum(1) for n in (1, 2))
    share = np.exp(-(field[:, 0] ** 2) / (2 * variance))
    response = share @ ((second - first**2) / width**2 - 1 / width) / share.sum()
    square = share @ (first / width) ** 2 / share.sum()
    assert by_name["S_lambda"] == pytest.approx(response, rel=1e-6)
    assert by_name["q_lambda"] == pytest.approx(square, rel=1e-6)
    assert width == pytest.approx(1 / (1 - 2 * response), rel=1e-6)
    assert by_name["q_m"] == pytest.approx(2 * square * width**2, rel=1e-6)


def test_combinations_of_fields():
    a, b, c, z = (Symbol(name, real=True) for name in "abcz")
    inner = GaussianAverage(Max(0, c * a - 2 * b + z) ** 2 * (c * a - 2 * b), z)
    weights, alone = in_combination(3 + Abs(2 * b - a * c) * inner, (a, b))
    assert weights in ({a: c, b: -2}, {a: -c, b: 2})
    assert alone.xreplace({b: weights[a] * a + weights[b] * b}) == 3 + Abs(2 * b - a * c) * inner
    for other in (Abs(a + b) * Abs(a - b), Abs(a + b) + a, Abs(a), GaussianAverage(Max(0, a * z + b), z)):
        assert in_combination(other, (a, b)) is None
