"""Losses without a closed sum at low temperatures, and losses that bend down, against quadrature written out here."""

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, alpha, average, expect, i, mu
from symcavity.evaluate.averages.peaks import highest

x, w = Coupling("x"), Feature("w")
beta = Symbol("beta", positive=True)
half = Rational(1, 2)
y = Quenched("y", mu, law={1: half, -1: half})
h = Sum(x[mu, i] * w[i], (i, 1, N))
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2
logistic = Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + ridge
student = Sum(log(1 + (y[mu] - h) ** 2), (mu, 1, P)) + ridge


@pytest.mark.parametrize("cold", [100, 10**4])
def test_a_loss_of_no_declared_convexity_has_the_limit_of_its_minimum(cold):
    """The same integral is taken about the minimum where a problem is declared to be convex."""
    at = {alpha: 2, beta: cold}
    found, known = (kind(logistic).gibbs(beta).cavity() for kind in (Problem, ConvexProblem))
    warm, same = found.solve(at), known.solve(at)
    shown = (average(w[i] ** 2), average(expect(w[i]) ** 2))
    assert [float(warm[o]) for o in shown] == pytest.approx([float(same[o]) for o in shown], rel=1e-11)
    assert float(warm[found.free_energy]) == pytest.approx(float(same[known.free_energy]), rel=1e-11)
    least = ConvexProblem(logistic).cavity().solve({alpha: 2})[average(w[i] ** 2)]
    assert float(warm[average(w[i] ** 2)]) == pytest.approx(float(least), abs=1 / cold)


def written_out(b, load):
    """The second moments of the means and of the weights: fixed point of one state, all integrals over fine grids."""
    z, dz = np.linspace(-8, 8, 161, retstep=True)
    share = np.exp(-(z**2) / 2) * dz / np.sqrt(2 * np.pi)
    F, q = 1.0, 0.1
    for _ in range(60):
        eta = np.sqrt(q) * z[:, None]
        field = np.linspace(-12, 12, 4001)[None, :]
        cost = b * ((field - eta) ** 2 / (2 * F) + np.log(1 + (1 - field) ** 2))
        weight = np.exp(cost.min(axis=1, keepdims=True) - cost)
        weight /= weight.sum(axis=1, keepdims=True)
        mean = (weight * field).sum(axis=1)
        spread = (weight * (field - mean[:, None]) ** 2).sum(axis=1)
        S = share @ ((b * spread / F - 1) / F)
        r = share @ ((mean - eta[:, 0]) / F) ** 2
        F = 1 / (1 - load * S)
        q = load * r * F**2
    return q, q + F / b


@pytest.mark.parametrize("b", [1, 100])
def test_heavy_tails(b):
    """A loss that bends down: the logarithm of Cauchy's density, both labels alike by symmetry."""
    theory = Problem(student).gibbs(beta).cavity()
    found = theory.solve({alpha: 2, beta: b})
    shown = (average(expect(w[i]) ** 2), average(w[i] ** 2))
    assert [float(found[o]) for o in shown] == pytest.approx(written_out(b, 2), rel=1e-9)


@pytest.mark.parametrize("cold", [3.0, 1e3, 1e6])
def test_where_a_weight_is_largest(cold):
    """A loss with two minima, and one with kinks, against a fine grid."""
    rng = np.random.default_rng(2)
    eta, scale = rng.normal(size=40) * 3, np.sqrt(rng.uniform(0.1, 3, size=40) / cold)
    grid = np.linspace(-20, 20, 800001)
    for energy in (lambda v: 4 * np.log1p((3 - v) ** 2), lambda v: np.minimum(1, np.maximum(0, 1 - v))):
        found = eta + scale * highest(lambda z, e=energy: -cold * e(eta[:, None] + scale[:, None] * z))
        for e, s, x in zip(eta, scale, found, strict=True):
            best = np.min(cold * energy(grid) + ((grid - e) / s) ** 2 / 2)
            assert cold * energy(x) + ((x - e) / s) ** 2 / 2 <= best + 2


def test_a_bound_far_from_the_field():
    """Fields that may not be negative: the weight lies at its end, where the Gaussian has none."""
    bounded = Sum(log(1 + exp(-h)), (mu, 1, P)) + ridge
    theory, size = Problem(bounded, [h >= 0]).gibbs(beta).cavity(), average(w[i] ** 2)
    cold = float(ConvexProblem(bounded, [h >= 0]).cavity().solve({alpha: half})[size])
    gaps = [float(theory.solve({alpha: half, beta: value})[size]) - cold for value in (10, 50)]
    assert gaps[1] == pytest.approx(gaps[0] / 5, rel=0.05)


def test_a_loss_beside_a_bound_at_low_temperatures_is_near_its_minimum():
    """Far below the bound the weight rises beyond all doubles, and does not count; what it misses falls as 1/beta."""
    problem = ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2, [h >= 0])
    cold = float(problem.cavity().solve({alpha: 1})[average(w[i] ** 2)])
    warm = problem.gibbs(beta).cavity()
    gaps = [float(warm.solve({alpha: 1, beta: b})[average(expect(w[i]) ** 2)]) - cold for b in (300, 1200)]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.1)
