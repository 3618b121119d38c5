"""Bounds on fields at a temperature: margins that are not zero, and margins that a teacher sets."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from sympy import Eq, Heaviside, Rational, Sum, Symbol, sign
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, alpha, average, expect, i, mu
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

x, w = Coupling("x"), Feature("w")
beta = Symbol("beta", positive=True)
half = Rational(1, 2)
t = Quenched("t", i, law=Normal("t", 0, 1))
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
square = Sum(w[i] ** 2, (i, 1, N)) / 2
mean, second, overlap = average(expect(w[i]) ** 2), average(w[i] ** 2), average(expect(w[i]) * t[i])
HELD = ConvexProblem(square, [h >= 1])


def truncated(load, temperature):
    """Squared mean and variance of weights of one sign of margin, by a truncated normal law on a grid."""
    z = np.linspace(-9, 9, 1201)
    p = norm.pdf(z) * (z[1] - z[0])
    power, width = 1.0, 0.5  # of the mean weights, and their response
    for _ in range(400):
        scale = np.sqrt(width / temperature)
        field = np.sqrt(power) * z
        cut = (1 - field) / scale
        hazard = np.exp(norm.logpdf(cut) - norm.logsf(cut))
        means, variances = field + scale * hazard, scale**2 * (1 - hazard * (hazard - cut))
        forces = p @ ((means - field) / width) ** 2
        slope = p @ (temperature * variances / width - 1) / width
        new = 1 / (1 - load * slope)
        power, width = (power + load * forces * new**2) / 2, (width + new) / 2
    return power, width / temperature


@pytest.mark.parametrize("cold", [1, 20])
def test_a_margin_of_one(cold):
    """The average of a state far beyond its bound was the difference of two large numbers, and had no digits."""
    found = HELD.gibbs(beta).cavity().solve({alpha: half, beta: cold})
    power, variance = truncated(0.5, cold)
    assert float(found[mean]) == pytest.approx(power, rel=1e-8)
    assert float(found[second] - found[mean]) == pytest.approx(variance, rel=1e-8)


def test_a_margin_at_low_temperature_is_the_largest_one():
    theory, cold = HELD.gibbs(beta).cavity(), HELD.cavity().solve({alpha: 1})
    gaps = [abs(float(theory.solve({alpha: 1, beta: b})[mean] - cold[second])) for b in (100, 1000)]
    assert gaps[1] < 0.3 * gaps[0] < 0.05


def test_a_margin_that_a_teacher_sets():
    """``h >= u/2 + 1`` is ``h >= 1`` of the difference to a teacher of half the size, however it is spelled."""
    small = Quenched("s", i, law=Normal("s", 0, half))
    told = Sum(x[mu, i] * (w[i] - small[i]), (i, 1, N)) >= 1
    problems = [ConvexProblem(square, [bound]) for bound in (h >= u / 2 + 1, told)]
    one, other = (p.gibbs(beta).cavity().solve({alpha: half, beta: 2}) for p in problems)
    assert float(one[mean]) == pytest.approx(float(other[mean]), rel=1e-12)
    assert float(one[overlap]) == pytest.approx(2 * float(other[average(expect(w[i]) * small[i])]), rel=1e-10)
    assert abs(float(one[overlap])) > 0.1


def test_half_a_teacher_in_a_square():
    """The mean of a Gaussian measure is its minimum."""
    problem = ConvexProblem(Sum((h - u / 2 - 1) ** 2, (mu, 1, P)) / 2 + square)
    warm, cold = problem.gibbs(beta).cavity().solve({alpha: 2, beta: 3}), problem.cavity().solve({alpha: 2})
    assert float(warm[overlap]) == pytest.approx(float(cold[average(w[i] * t[i])]), rel=1e-12)
    assert float(warm[mean]) == pytest.approx(float(cold[second]), rel=1e-12)


@pytest.mark.parametrize("kind", [Problem, ConvexProblem])
def test_a_margin_with_the_sign_of_a_teacher(kind):
    """As with the sign as a label, which is summed over; the mean is that of a posterior (Nishimori)."""
    y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    direct, label = (kind(square, [told * h >= 0]).gibbs(1).cavity().solve({alpha: half}) for told in (sign(u), y[mu]))
    for observable in (mean, second, overlap):
        assert float(direct[observable]) == pytest.approx(float(label[observable]), rel=1e-9)
    assert float(direct[overlap]) == pytest.approx(float(direct[mean]), rel=1e-9)


def test_what_is_said_of_bounds_that_a_teacher_sets_is_verified():
    """The witness holds the teacher's field fixed while it sums over states; what is one per cent off is seen."""
    bounds = (sign(u) * h >= 0, h >= u / 2 + 1)
    held, moved = (Problem(square, bound).gibbs(beta).cavity().derivation for bound in bounds)
    steps = [held["datum.weight"], held["datum.response"], held["closure.q_lambda"], moved["datum.weight"]]
    for step in steps:
        assert all(verdict.ok for verdict in judge(step, 20)), step.key
    for step in steps:
        colder = tuple(Equation(c.lhs, c.rhs.xreplace({beta: beta * Rational(101, 100)})) for c in step.claims)
        assert not all(verdict.ok for verdict in judge(replace(step, claims=colder), 20)), step.key


def test_the_share_of_bits_that_are_read_wrong():
    """Signals of many users on one channel (T. Tanaka, IEEE Trans. Inf. Theory 48, 2888, 2002): by his equations."""
    s, sigma = Feature("s", values=(-1, 1)), Rational(1, 2)
    sent = Quenched("b", i, law={1: half, -1: half})
    noise = Quenched("xi", mu, law=Normal("xi", 0, 1))
    error = Sum(x[mu, i] * (s[i] - sent[i]), (i, 1, N)) - sigma * noise[mu]
    found = Problem(Sum(error**2, (mu, 1, P)) / (2 * sigma**2)).gibbs(1).cavity().solve({alpha: 1})
    z, p = np.polynomial.hermite_e.hermegauss(120)
    m = 0.5
    for _ in range(300):
        power = 1 / (0.25 + 1 - m)
        m = p @ np.tanh(power + np.sqrt(power) * z) / p.sum()
    assert float(found[average(s[i] * sent[i])]) == pytest.approx(m, rel=1e-8)
    read = average(sign(expect(s[i])) * sent[i])
    assert float(found[read]) == pytest.approx(1 - 2 * norm.cdf(-np.sqrt(power)), rel=1e-8)


def test_counted_errors_of_the_sign_of_a_teacher():
    """Spelled with the sign in the loss, or with it as a label."""
    y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    losses = (Heaviside(-told * h) for told in (sign(u), y[mu]))
    problems = [Problem(Sum(loss, (mu, 1, P)) + square) for loss in losses]
    direct, label = (p.gibbs(1).cavity().solve({alpha: half}) for p in problems)
    for observable in (mean, second, overlap):
        assert float(direct[observable]) == pytest.approx(float(label[observable]), rel=1e-9)
    assert float(direct[overlap]) > float(direct[mean]) + 0.01  # errors of a perfect teacher are no posterior


def test_counted_errors_on_a_sphere():
    """Labels without a teacher at a temperature: the fixed point of E. Gardner and B. Derrida (1988) by quadrature."""
    y = Quenched("y", mu, law={1: half, -1: half})
    errors = Sum(Heaviside(-y[mu] * h), (mu, 1, P))
    theory = Problem(errors, subject_to=[Eq(Sum(w[i] ** 2, (i, 1, N)), N)]).gibbs(beta).cavity()
    z, p = np.polynomial.hermite_e.hermegauss(200)
    q, share = 0.5, np.exp(-1.0)
    for _ in range(300):
        place = np.sqrt(q / (1 - q)) * z
        gain = (1 - share) * norm.pdf(place) / (share + (1 - share) * norm.cdf(place))
        q = (1 - q) * (p @ gain**2 / p.sum())
    assert float(theory.solve({alpha: 1, beta: 1})[average(expect(w[i]) ** 2)]) == pytest.approx(q, rel=1e-8)
    assert "consistency" in {step.rule for step in theory.derivation}
