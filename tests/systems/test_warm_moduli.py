"""Thermal averages of what bends where the energy does: the modulus of a weight with a Laplace prior."""

import pytest
from sympy import Abs, Heaviside, Max, Rational, Sum, Symbol

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, expect, i, mu

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
