"""Prices of states that are not zero, beside a bound at zero, and at steps: by hand, and in instances."""

import numpy as np
import pytest
from scipy.stats import norm
from sympy import Eq, Heaviside, Piecewise, Rational, Sum, Symbol, sign

from symcavity import Coupling, Feature, N, P, Problem, Quenched, UnstableSolution, alpha, average, i, mu
from symcavity.witness.judge import judge

pytestmark = pytest.mark.filterwarnings(f"ignore::{UnstableSolution.__module__}.{UnstableSolution.__name__}")
x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
theta, half = Symbol("theta", positive=True), Rational(1, 2)
residue = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
price = Piecewise((0, Eq(w[i], 0)), (theta, True))

BOUNDED = {
    alpha: 2,
    theta: Rational(1, 4),
    t: {0: Rational(7, 10), 1: Rational(3, 10)},
    e: {half: half, -half: half},
}
PRICES = [
    price,
    theta * Heaviside(w[i]),
    theta * sign(w[i]),
    Piecewise((0, w[i] <= 0), (theta, True)),
]


def bounded(price):
    return Problem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(price, (i, 1, N)), [w[i] >= 0])


@pytest.mark.parametrize("price", PRICES)
def test_a_price_of_weights_that_are_not_negative(price):
    """A weight at its bound costs nothing, however the price is spelled: the equations by hand."""
    found = bounded(price).cavity().solve(BOUNDED)
    z = np.linspace(-8, 8, 40001)
    weight = norm.pdf(z) * (z[1] - z[0])
    slope, error = 0.4, 0.1
    for _ in range(300):
        stiff, spread = 2 / (1 + slope), np.sqrt((error + 0.25) / 2)
        slope = error = kept = 0.0
        for value, share in ((0, 0.7), (1, 0.3)):
            free = value + spread * z
            state = np.where((free > 0) & (stiff * free**2 / 2 > 0.25), free, 0)
            slope += share * np.sum(weight * state * z) / (spread * stiff)
            error += share * np.sum(weight * (state - value) ** 2)
            kept += share * np.sum(weight * (state > 0))
    assert float(found[average((w[i] - t[i]) ** 2)]) == pytest.approx(error, rel=1e-3)
    assert float(found[average(w[i] > 0)]) == pytest.approx(kept, rel=1e-3)


def test_a_price_at_a_bound_is_verified_and_found_in_instances():
    problem = bounded(price)
    theory = problem.cavity()
    found = theory.solve(BOUNDED)
    assert all(verdict.ok for verdict in judge(theory.derivation["feature.solution"]))
    energy = problem.simulate(BOUNDED, N=14, seeds=12).free_energy
    assert abs(energy.mean - float(found[theory.free_energy])) < 4 * energy.stderr


def test_energies_of_instances_do_not_depend_on_the_spelling():
    """A state on a step has the energy of the lower side, where SymPy has the mean of both."""
    for bound in ([w[i] >= 0], []):
        base = Sum(residue**2, (mu, 1, P)) / 2
        spelled = [Problem(base + Sum(one, (i, 1, N)), bound) for one in (theta * Heaviside(w[i]), PRICES[3])]
        one, other = (problem.simulate(BOUNDED, N=10, seeds=3).free_energy for problem in spelled)
        assert one.mean == pytest.approx(other.mean, rel=1e-9)
