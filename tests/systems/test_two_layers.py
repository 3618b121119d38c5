"""Two kinds of sites with states that meet in pairs: restricted Boltzmann machines, bipartite magnets."""

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol

from symcavity import (
    Coupling,
    Feature,
    N,
    Problem,
    Sites,
    UnstableSolution,
    UnsupportedLaw,
    Variable,
    average,
    expect,
    i,
)
from symcavity.errors import NegativeEntropy

a, K = Sites("a", "K", "hidden unit")
W = Coupling("W", between=(a, i))
s, v, b = Feature("s", values=(-1, 1)), Variable("v", a, values=(-1, 1)), Variable("b", a, values=(0, 1))
beta, H = Symbol("beta", positive=True), Symbol("H", positive=True)
LAYERS = Problem(-Sum(s[i] * Sum(W[a, i] * v[a], (a, 1, K)), (i, 1, N)) - H * Sum(s[i], (i, 1, N)))
SWITCHES = Problem(-Sum(b[a] * Sum(W[a, i] * s[i], (i, 1, N)), (a, 1, K)) + H * Sum(b[a], (a, 1, K)))
Z = np.linspace(-10, 10, 4001)
WEIGHT = np.exp(-(Z**2) / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])


def test_two_layers_of_signs():
    """``q = <tanh(beta (sqrt(2 p) z + H))**2>`` and ``p = <tanh(beta sqrt(q) z)**2>``, with two hidden units a unit."""
    theory = LAYERS.gibbs(beta).cavity()
    found = theory.solve({beta: Rational(4, 5), H: Rational(1, 2), K / N: 2})
    q, p = 0.5, 0.5
    for _ in range(300):
        q = np.sum(WEIGHT * np.tanh(0.8 * (np.sqrt(2 * p) * Z + 0.5)) ** 2)
        p = np.sum(WEIGHT * np.tanh(0.8 * np.sqrt(q) * Z) ** 2)
    assert float(found[average(expect(s[i]) ** 2)]) == pytest.approx(q, rel=1e-10)
    assert float(found[average(expect(v[a]) ** 2)]) == pytest.approx(p, rel=1e-10)
    # the free energy by hand, which is stationary in both: annealed in what fluctuates, and one logarithm a unit
    logs = np.sum(WEIGHT * np.log(2 * np.cosh(0.8 * (np.sqrt(2 * p) * Z + 0.5))))
    logs += 2 * np.sum(WEIGHT * np.log(2 * np.cosh(0.8 * np.sqrt(q) * Z)))
    free = -logs / 0.8 - 2 * 0.8 / 2 * (1 - q) * (1 - p)
    assert float(found[theory.free_energy]) == pytest.approx(free, rel=1e-10)
    assert all(verdict.ok for row in theory.derivation.verify() for verdict in row.verdicts)


def test_switches_as_hidden_units():
    """Declared from the side of the hidden units; instances are enumerated."""
    measure = SWITCHES.gibbs(beta)
    theory, values = measure.cavity(), {beta: 1, H: Rational(1, 2), K / N: 1}
    found = theory.solve(values)
    sim = measure.simulate(values, N=8, seeds=30)
    for shown in (average(b[a]), average(expect(s[i]) ** 2)):
        own = sim[shown]
        assert abs(own.mean - float(found[shown])) < 4 * own.stderr
    assert abs(sim.free_energy.mean - float(found[theory.free_energy])) < 4 * sim.free_energy.stderr


@pytest.mark.filterwarnings(f"ignore::{UnstableSolution.__module__}.UnstableSolution")
@pytest.mark.filterwarnings(f"ignore::{NegativeEntropy.__module__}.NegativeEntropy")
def test_two_layers_at_their_lowest():
    """Signs follow the signs of their fields, so that each unit gains ``sqrt(2/pi)`` of what the other layer sends."""
    plain = Problem(-Sum(s[i] * Sum(W[a, i] * v[a], (a, 1, K)), (i, 1, N)))
    theory = plain.cavity()
    for ratio in (1, 3):
        energy = theory.solve({K / N: ratio})[theory.free_energy]
        assert float(energy) == pytest.approx(-np.sqrt(2 / np.pi) * (np.sqrt(ratio) + ratio), rel=1e-12)


def test_what_does_not_meet_in_pairs_is_refused():
    r = Feature("r")
    square = Problem(Sum(r[i] ** 2 - r[i] * Sum(W[a, i] * v[a], (a, 1, K)) ** 2, (i, 1, N)))
    with pytest.raises(UnsupportedLaw, match="otherwise than in a product with one function of these states"):
        square.gibbs(beta)
