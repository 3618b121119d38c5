"""Energies with one kink between two squares, at a temperature: their weights are summed, not integrated."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm
from sympy import Abs, Dummy, Heaviside, Max, Min, Rational, Sum, Symbol, log, symbols
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.tails import log_tail
from symcavity.sites.thermal.parts import Part, squares
from symcavity.witness.judge import judge

x, w, v, z = Coupling("x"), Feature("w"), Feature("v"), Feature("z", values=(0, 1))
beta = Symbol("beta", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
square = Sum(w[i] ** 2, (i, 1, N)) / 2
mean, second = average(expect(w[i]) ** 2), average(w[i] ** 2)
LAPLACE = Sum(Abs(1 - h), (mu, 1, P)) + square
miss = Sum(x[mu, i] * z[i] * v[i], (i, 1, N)) - 1
SLAB = Problem(Sum(miss**2, (mu, 1, P)) / 2 + Sum(Abs(v[i]) + z[i] * log(4), (i, 1, N))).gibbs(1)


def by_hand(loss, load, temperature):
    """Squared mean and variance of weights with a square penalty: the weight of a field summed over a grid."""
    field = np.linspace(-7, 7, 81)
    share = norm.pdf(field) * (field[1] - field[0])
    state = np.linspace(-25, 25, 8001)  # the kinks are among them
    power, width = 1.0, 0.5
    for _ in range(300):
        eta = np.sqrt(power) * field[:, None]
        a = -temperature * (loss(state) + (state - eta) ** 2 / (2 * width))
        weight = np.exp(a - a.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        m = weight @ state
        variance = weight @ state**2 - m**2
        force, slope = (m - eta[:, 0]) / width, (temperature * variance / width - 1) / width
        new = 1 / (1 - load * (share @ slope))
        before, power, width = (power, width), load * (share @ force**2) * new**2, new
        if np.allclose(before, (power, width), rtol=1e-8, atol=0):
            break
    return power, width / temperature


@pytest.mark.parametrize("loss", [Abs(1 - h), Max(0, 1 - h), Max(0, 1 - h) ** 2 / 2, 2 * Max(h, 0) + Max(-h, 0) + h**2])
def test_losses_by_hand(loss):
    theory = ConvexProblem(Sum(loss, (mu, 1, P)) + square).gibbs(beta).cavity()
    inner = [a.args[0] for e in theory.equations for a in e.rhs.atoms(GaussianAverage)]
    assert not any(e.has(GaussianAverage) for e in inner)
    found = theory.solve({alpha: 1, beta: 2})
    number = {Abs(1 - h): lambda s: np.abs(1 - s), Max(0, 1 - h): lambda s: np.maximum(0, 1 - s)}
    number[Max(0, 1 - h) ** 2 / 2] = lambda s: np.maximum(0, 1 - s) ** 2 / 2
    number[2 * Max(h, 0) + Max(-h, 0) + h**2] = lambda s: 2 * np.maximum(s, 0) + np.maximum(-s, 0) + s**2
    power, variance = by_hand(number[loss], 1, 2)
    assert float(found[mean]) == pytest.approx(power, rel=3e-4)
    assert float(found[second] - found[mean]) == pytest.approx(variance, rel=3e-4)


def test_absolute_values_at_large_beta_are_the_minimum():
    theory, cold = ConvexProblem(LAPLACE).gibbs(beta).cavity(), ConvexProblem(LAPLACE).cavity().solve({alpha: 1})
    gaps = [abs(float(theory.solve({alpha: 1, beta: b})[mean] - cold[second])) for b in (100, 10000)]
    assert gaps[1] < 0.05 * gaps[0] < 0.005


def test_a_kink_is_one_whatever_declares_it():
    one, other = (kind(LAPLACE).gibbs(2).cavity().solve({alpha: 1}) for kind in (ConvexProblem, Problem))
    assert float(one[second]) == pytest.approx(float(other[second]), rel=1e-12)


def test_labels_turn_a_hinge():
    """Signs that say nothing of the weights: the hinge of ``y*h`` is that of h, whatever their law."""
    y = Quenched("y", mu, law={1: Rational(1, 3), -1: Rational(2, 3)})
    labelled, plain = (
        ConvexProblem(Sum(Max(0, 1 - s * h), (mu, 1, P)) + square).gibbs(2).cavity() for s in (y[mu], 1)
    )
    one, other = labelled.solve({alpha: 2}), plain.solve({alpha: 2})
    for observable in (second, mean):
        assert float(one[observable]) == pytest.approx(float(other[observable]), rel=1e-12)


def test_labels_of_a_teacher_in_a_hinge_are_judged():
    t = Quenched("t", i, law=Normal("t", 0, 1))
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    theory = ConvexProblem(Sum(Max(0, 1 - y[mu] * h), (mu, 1, P)) + square).gibbs(beta).cavity()
    verdicts = judge(theory.derivation["datum.solution"], 50)
    assert verdicts
    assert all(v.ok for v in verdicts)


@pytest.mark.parametrize(("field", "answer"), [(0.3, -1), (-5, -2), (20, -4), (-60, -4)])
def test_a_slab_that_is_no_gaussian(field, answer):
    """A switch beside a state with an absolute value for a penalty: mean and variance by a sum over a grid."""
    (kind,) = (k for k, own in SLAB.weights.items() if not own.is_field)
    eta, F = Dummy("eta", real=True), Dummy("F", negative=True)
    site = replace(SLAB.cavity().inserted[kind].solution.fluctuation, field=eta, feedback=F)
    grid = np.linspace(-60, 60, 240001)
    off, on = -np.abs(grid), -np.abs(grid) - np.log(4) + field * grid + answer * grid**2 / 2
    top = max(off.max(), on.max())
    total = np.exp(off - top).sum() + np.exp(on - top).sum()
    first, other = (np.exp(on - top) @ grid**n / total for n in (1, 2))
    rule = {eta: Rational(str(field)), F: answer}
    assert float(site.mean.xreplace(rule).evalf(20)) == pytest.approx(first, rel=1e-6)
    assert float(site.variance.xreplace(rule).evalf(20)) == pytest.approx(other - first**2, rel=1e-6)


def test_the_mean_with_a_slab_is_judged():
    verdicts = judge(SLAB.cavity().derivation["feature.solution"], 50)
    assert verdicts
    assert all(v.ok for v in verdicts)


def test_a_prior_of_absolute_values_is_not_taken_for_gaussians():
    """The identities of Nishimori are not said of a teacher whose law is normal, where the prior has a kink."""
    t = Quenched("t", i, law=Normal("t", 0, 1))
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - Quenched("e", mu, law=Normal("e", 0, 1))[mu]
    told = Problem(Sum(error**2, (mu, 1, P)) / 2 + Sum(Abs(w[i]) + w[i] ** 2 / 2, (i, 1, N))).gibbs(1)
    assert not any(step.rule == "bayes" for step in told.cavity().derivation)


def test_a_side_that_is_weighed_twice(monkeypatch):
    """What an end leaves of a half, counted twice: seen by the sum over all states."""
    total = Part.total.fget
    monkeypatch.setattr(Part, "total", property(lambda self: 2 * total(self) - self.log))
    step = ConvexProblem(LAPLACE).gibbs(beta).cavity().derivation["datum.solution"]
    assert not all(v.ok for v in judge(step, 50))


def test_a_side_that_is_turned_the_wrong_way(monkeypatch):
    edge = Part.edge.fget
    monkeypatch.setattr(Part, "edge", property(lambda self: (edge(self)[0], -edge(self)[1])))
    step = ConvexProblem(LAPLACE).gibbs(beta).cavity().derivation["datum.solution"]
    assert not all(v.ok for v in judge(step, 50))


def test_what_is_squares_between_kinks():
    a, k = symbols("a k", real=True)
    assert squares(Abs(w[i] - a), w[i]).places == (a,)
    assert squares(Max(0, 1 - k * w[i]), w[i]).turn.has(k)
    assert squares(Abs(w[i] ** 2 - 1), w[i]).places == squares(Max(-1, Min(w[i], 1)), w[i]).places == (-1, 1)
    for rest in (Heaviside(w[i]), w[i] ** 4, Max(a, w[i]) + Max(k, w[i]), log(1 + Abs(w[i]))):
        assert squares(rest, w[i]) is None


def test_the_logarithm_of_a_tail():
    s = Symbol("s", real=True)
    assert float(log_tail(-50).evalf(20)) == pytest.approx(float(log_ndtr(-50)), rel=1e-14)
    slope = log_tail(s).diff(s).xreplace({s: Rational(-3, 2)})
    assert float(slope.rewrite("erfc").evalf(20)) == pytest.approx(norm.pdf(1.5) / norm.cdf(-1.5), rel=1e-12)


def test_absolute_losses_and_penalties_together():
    """Laplace's law for noise and prior, at beta = 1: nothing but the loss holds a weight; sums over grids by hand."""
    truth, noise = Quenched("t", i, law=Normal("t", 0, 1)), Quenched("e", mu, law=Normal("e", 0, 1))
    missed = Sum(x[mu, i] * (w[i] - truth[i]), (i, 1, N)) - noise[mu]
    theory = ConvexProblem(Sum(Abs(missed), (mu, 1, P)) + Sum(Abs(w[i]), (i, 1, N))).gibbs(beta).cavity()
    found = theory.solve({alpha: 2, beta: 1})

    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    grid = np.linspace(-25, 25, 8001)

    def moments(exponent):
        p = np.exp(exponent - exponent.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        mean = p @ grid
        return mean, p @ grid**2 - mean**2

    error, width, squared, overlap = 1.0, 1.0, 1.0, 0.0
    for _ in range(60):
        eta = np.sqrt(error + 1) * nodes[:, None]
        mean, variance = moments(-np.abs(grid) - (grid - eta) ** 2 / (2 * width))
        force, slope = (mean - eta[:, 0]) / width, (variance / width - 1) / width
        power, echo = 2 * weights @ force**2, 2 * weights @ slope
        t, z = np.meshgrid(nodes, nodes)
        pull = (np.sqrt(power) * z - echo * t).ravel()
        both = np.outer(weights, weights).ravel()
        places = np.linspace(pull.min(), pull.max(), 400)
        mean, variance = moments(-np.abs(grid) + places[:, None] * grid + echo * grid**2 / 2)
        m, v = np.interp(pull, places, mean), np.interp(pull, places, variance)
        t = t.ravel()
        error, width, squared, overlap = both @ (m - t) ** 2, both @ v, both @ m**2, both @ (m * t)
    assert float(found[average(expect(w[i]) ** 2)]) == pytest.approx(squared, rel=1e-3)
    assert float(found[average(expect(w[i]) * truth[i])]) == pytest.approx(overlap, rel=1e-3)
    assert float(found[response(w)]) == pytest.approx(width, rel=1e-3)
