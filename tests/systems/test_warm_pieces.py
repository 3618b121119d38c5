"""Energies of several kinks, with squares between them, at a temperature; the symmetric binary perceptron."""

import mpmath
import numpy as np
import pytest
from scipy.stats import norm
from sympy import Abs, Heaviside, Max, Min, Piecewise, Rational, Sum, Symbol
from test_warm_kinks import by_hand

from symcavity import Coupling, Feature, N, P, Problem, alpha, average, expect, i, mu
from symcavity.algebra.between import between, between_in, log_between
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.precision import context
from symcavity.evaluate.averages.interval import np_between
from symcavity.sites.thermal import states
from symcavity.sites.thermal.parts import Part
from symcavity.witness.judge import judge

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
beta, k = Symbol("beta", positive=True), Symbol("k", positive=True)
h, hs = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, s))
square = Sum(w[i] ** 2, (i, 1, N)) / 2
mean, second = average(expect(w[i]) ** 2), average(w[i] ** 2)
dead = Max(0, Abs(h - 1) - k)
ENDS = [(-1, 1), (-30, 0.001), (0, 1e-6), (5, 5.5), (30, 30.001), (30, 45), (-1000, 2000), (-45, -44.9), (-9, 3)]


def warm(loss):
    return Problem(Sum(loss, (mu, 1, P)) + square).gibbs(beta)


@pytest.mark.parametrize("ends", ENDS)
def test_gaussians_between_two_ends(ends):
    at = context(200)
    for n in range(5):
        exact = between_in(at, n, *map(at.mpf, ends))
        scale = abs(exact) if n != 3 else between_in(at, 2, *map(at.mpf, ends)) ** 1.5
        assert abs(np_between(n, *ends) - exact) <= 1e-13 * scale + 1e-15


def test_moments_between_two_ends_are_integrals():
    with mpmath.workdps(40):
        low, high = mpmath.mpf(-1) / 3, mpmath.mpf(4) / 5
        moments = [mpmath.quad(lambda z, n=n: (z - low) ** n * mpmath.npdf(z), [low, high]) for n in range(3)]
        first = moments[1] / moments[0]
        for found, exact in zip(
            (log_between(low, high), between(1, low, high), between(2, low, high)),
            (mpmath.log(moments[0]), first, moments[2] / moments[0] - first**2),
            strict=True,
        ):
            assert abs(mpmath.mpf(found.evalf(30)) - exact) < mpmath.mpf(10) ** -14 * abs(exact)


def test_moments_between_two_ends_have_their_slopes():
    u, v, step = Symbol("u", real=True), Symbol("v", real=True), Rational(1, 10**8)
    at = {u: Rational(-1, 3), v: Rational(4, 5)}
    for f in (log_between(u, v), *(between(n, u, v) for n in (1, 2, 3))):
        for end in (u, v):
            near = [f.xreplace({**at, end: at[end] + way * step}).evalf(40) for way in (1, -1)]
            assert float(f.diff(end).xreplace(at).evalf(30)) == pytest.approx(
                float((near[0] - near[1]) / (2 * step)), rel=1e-10
            )


LOSSES = {
    "dead zone": (dead, lambda e: np.maximum(0, abs(e - 1) - 0.5)),
    "tent": (Max(0, 2 - Abs(h - 1)), lambda e: np.maximum(0, 2 - abs(e - 1))),
    "clipped square": (Min((h - 1) ** 2, 1), lambda e: np.minimum((e - 1) ** 2, 1)),
    "ramp": (Max(0, 1 - h) - Max(0, -h), lambda e: np.maximum(0, 1 - e) - np.maximum(0, -e)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_hand(name):
    loss, number = LOSSES[name]
    theory = warm(loss).cavity()
    assert not any(a.args[0].has(GaussianAverage) for e in theory.equations for a in e.rhs.atoms(GaussianAverage))
    found = theory.solve({alpha: 1, beta: 2, k: Rational(1, 2)} if loss.has(k) else {alpha: 1, beta: 2})
    power, variance = by_hand(number, 1, 2)
    assert float(found[mean]) == pytest.approx(power, rel=1e-4)
    assert float(found[second] - found[mean]) == pytest.approx(variance, rel=1e-4)


def test_a_dead_zone_is_one_whatever_words_declare_it():
    gap = Abs(h - 1) - k
    words = [gap * Heaviside(gap), Piecewise((gap, gap > 0), (0, True)), Max(h - 1 - k, 1 - k - h, 0)]
    at = {alpha: 1, beta: 2, k: Rational(1, 2)}
    one, *others = (float(warm(loss).cavity().solve(at)[mean]) for loss in (dead, *words))
    assert others == pytest.approx([one] * 3, rel=1e-12)


def test_the_mean_beside_several_kinks_is_judged():
    assert all(v.ok for v in judge(warm(dead).cavity().derivation["datum.solution"], 50))


@pytest.mark.parametrize("broken", ["share", "slope"])
def test_what_is_broken_is_seen(monkeypatch, broken):
    if broken == "share":
        reach = Part.reach.fget
        monkeypatch.setattr(Part, "reach", property(lambda self: (2 * reach(self)[0], reach(self)[1])))
    else:
        monkeypatch.setattr(states, "_seen_from_end", lambda ends, tilt, _bend: (ends[0] or ends[1], tilt))
    loss = dead if broken == "share" else LOSSES["clipped square"][0]
    assert not all(v.ok for v in judge(warm(loss).cavity().derivation["datum.solution"], 50))


@pytest.mark.parametrize("inside", [True, False])
def test_the_entropy_of_symmetric_binary_weights_vanishes_at_their_capacity(inside):
    """Aubin, Perkins and Zdeborova (2019): ln 2 over the logarithm of how often one field is where it has to be."""
    width = 1 if inside else Rational(1, 2)
    share = 2 * norm.cdf(float(width)) - 1
    share = share if inside else 1 - share
    if inside:
        problem = Problem(Sum(s[i] ** 2, (i, 1, N)), [hs <= k, hs >= -k]).gibbs(1)
        beside = {}
    else:
        problem, beside = Problem(Sum(Heaviside(k - Abs(hs)), (mu, 1, P))).gibbs(beta), {beta: 25}
    theory = problem.cavity()
    for load in (0.5, float(-np.log(2) / np.log(share))):
        found = theory.solve({alpha: Rational(str(round(load, 12))), k: width, **beside})
        assert float(found[theory.entropy]) == pytest.approx(np.log(2) + load * np.log(share), abs=2e-8)
        assert float(found[average(expect(s[i]) ** 2)]) < 1e-12
        assert found.stability < 1
