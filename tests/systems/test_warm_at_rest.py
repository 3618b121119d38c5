"""Gibbs measures whose thermal means vanish: all averages are those over the weight of one site at a field of zero."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm
from sympy import Abs, Heaviside, Max, Rational, Sum, Symbol, log

from symcavity import (
    Coupling,
    Feature,
    N,
    P,
    Problem,
    UnstableSolution,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.derivations import projection_memory

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
beta = Symbol("beta", positive=True)
GRID = np.linspace(-14, 14, 400001)
NEAR = 1e-4  # a sum over a grid, with a step between two of its places
LOSSES = {
    "a dead zone": (lambda h: Max(0, Abs(h) - Rational(1, 2)), lambda h: np.maximum(0, np.abs(h) - 0.5)),
    "counted outside": (lambda h: Heaviside(Abs(h) - 1), lambda h: (np.abs(h) > 1) * 1.0),
    "a heavy tail": (lambda h: log(1 + h**2), lambda h: np.log(1 + h**2)),
}


def declared(loss, feature):
    h = Sum(x[mu, i] * feature[i], (i, 1, N))
    penalty = Sum(w[i] ** 2, (i, 1, N)) / 2 if feature is w else 0
    return Problem(Sum(loss(h), (mu, 1, P)) + penalty).gibbs(beta), loss(h)


def by_hand(loss, load, cold, penalized):
    """The closed equations at a field of zero: two responses, each a variance; all by sums over a grid."""

    def answer(total):
        z = GRID * np.sqrt(total / cold)
        p = np.exp(-(GRID**2) / 2 - cold * loss(z))
        return (cold * np.sum(p * z * z) / np.sum(p) / total - 1) / total, np.sum(p * loss(z)) / np.sum(p)

    total = brentq(lambda v: v * (1 - load * answer(v)[0]) - 1, 1e-3, 1 + 1e-12) if penalized else cold
    slope, energy = answer(total)
    return total, slope, energy


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("feature", "cold"), [(w, 2), (s, 25)], ids=["weights", "signs"])
def test_an_even_loss(name, feature, cold):
    told, loss = LOSSES[name]
    problem, seen = declared(told, feature)
    theory = problem.cavity()
    found = theory.solve({alpha: Rational(1, 2), beta: cold})
    total, slope, energy = by_hand(loss, 0.5, float(cold), feature is w)
    assert float(found[average(expect(feature[i]) ** 2)]) == 0.0
    assert float(found[response(feature)]) == pytest.approx(total, rel=NEAR)
    assert float(found[average(seen)]) == pytest.approx(energy, rel=NEAR)
    assert float(found.stability) == pytest.approx(0.5 * (total * slope) ** 2, rel=NEAR)


def test_digits_of_a_limit():
    """Nothing is integrated at a field of zero: sums over truncated Gaussians have any number of digits."""
    theory = declared(LOSSES["a dead zone"][0], w)[0].cavity()
    few, many = (theory.solve({alpha: 1, beta: 1}, dps=dps) for dps in (15, 40))
    for asked in (response(w), theory.free_energy):
        assert float(few[asked]) == pytest.approx(float(many[asked]), rel=1e-14)
        assert len(str(many[asked]).replace("-", "").replace("0.", "")) >= 39


def test_the_entropy_of_what_lies_inside():
    """At a low temperature the logarithm of the number of signs that keep all fields inside (Aubin et al. 2019)."""
    theory = declared(LOSSES["counted outside"][0], s)[0].cavity()
    found = theory.solve({alpha: Rational(1, 2), beta: 100})
    assert float(found[theory.entropy]) == pytest.approx(np.log(2) + np.log(2 * norm.cdf(1) - 1) / 2, rel=1e-12)
    assert float(found[average(LOSSES["counted outside"][0](Sum(x[mu, i] * s[i], (i, 1, N))))]) == pytest.approx(
        np.exp(-100) * 2 * norm.cdf(-1) / (2 * norm.cdf(1) - 1), rel=1e-12
    )


def test_where_means_do_not_vanish_they_are_not_taken_for_zero():
    """The control: the same signs beside a field; and a magnet that is frozen, whose solution at rest repels."""
    h, j = Sum(x[mu, i] * s[i], (i, 1, N)), Symbol("j", integer=True)
    biased = Problem(Sum(Heaviside(Abs(h) - 1), (mu, 1, P)) - Sum(s[i], (i, 1, N)) / 5).gibbs(beta).cavity()
    found = biased.solve({alpha: Rational(1, 2), beta: 2})
    assert float(found[average(expect(s[i]) ** 2)]) > 0.1
    J = Coupling("J", between=(i, i), reciprocity=1)
    magnet = Problem(-Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2).gibbs(beta).cavity()
    hot = magnet.solve({beta: Rational(1, 2)})
    assert float(hot[average(expect(s[i]) ** 2)]) == 0.0
    assert float(hot.stability) == pytest.approx(0.25, rel=1e-12)
    assert float(hot[magnet.free_energy]) == pytest.approx(-np.log(2) / 0.5 - 0.5 / 4, rel=1e-12)
    with pytest.warns(UnstableSolution):
        cold = magnet.solve({beta: 2})
    assert float(cold[average(expect(s[i]) ** 2)]) > 0.3


def energy_of_projection(sites, cold, seeds=100):
    """The mean square of what the span of N/4 patterns misses of a state, over all states, by instance."""
    half = np.array(list(product((-1, 1), repeat=sites - 1)))
    states, found = np.c_[np.ones(len(half)), half], []
    for seed in range(seeds):
        patterns = np.random.default_rng(seed).normal(size=(sites // 4, sites))
        basis = np.linalg.qr(patterns.T)[0]
        energy = (sites - np.sum((states @ basis) ** 2, axis=1)) / 2
        weight = np.exp(-cold * (energy - energy.min()))
        found.append(2 * (weight @ energy) / weight.sum() / sites)
    return np.mean(found), np.std(found) / np.sqrt(seeds)


@pytest.mark.parametrize("cold", [Rational(1, 2), 2])
def test_the_pseudo_inverse_rule_at_a_temperature(cold):
    """Above its glass, by enumeration; coefficients fluctuate about their best by one square for each pattern."""
    problem = projection_memory.problem
    theory = problem.gibbs(beta).cavity()
    found = theory.solve({alpha: Rational(1, 4), beta: cold})
    (small, one), (large, other) = (energy_of_projection(n, float(cold)) for n in (12, 16))
    limit, error = 4 * large - 3 * small + 0.25 / float(cold), np.hypot(4 * other, 3 * one)
    told = float(found[average((projection_memory.s[i] - problem["h"][i]) ** 2)])
    # by hand: with A = alpha*S_v the responses meet A*(1 + A - beta) = alpha*(1 + A)**2
    share, load, b = float(found[response(projection_memory.v)]) / 4, 0.25, float(cold)
    assert share * (1 + share - b) == pytest.approx(load * (1 + share) ** 2, rel=1e-10)
    assert abs(told - limit) < 3 * error + 0.03  # the next order in 1/N is of that size
    assert float(found.stability) == pytest.approx(0.25, rel=1e-10)


def test_a_memory_of_three_values_that_forgets():
    """Above its glass, where a response of one has no answer: both responses by hand, at a field of zero."""
    v = Feature("v", values=(-1, 0, 1))
    h = Sum(x[mu, i] * v[i], (i, 1, N))
    theory = Problem(-Sum(h**2, (mu, 1, P)) / 2 + Sum(v[i] ** 2, (i, 1, N)) / 2).gibbs(beta).cavity()
    found = theory.solve({alpha: Rational(1, 10), beta: Rational(1, 2)})

    def share(answer):
        weight = 2 * np.exp((0.1 * answer - 1) / 4)
        return weight / (1 + weight)

    answer = brentq(lambda a: a - 1 / (1 - share(a) / 2), 1, 3)
    assert float(found[average(v[i] ** 2)]) == pytest.approx(share(answer), rel=1e-10)
    assert float(found[average(expect(v[i]) ** 2)]) == 0.0
