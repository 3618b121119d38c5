"""Stationary states of networks without memory: variances and functions of the lag, to many digits."""

import numpy as np
import pytest
from mpmath import mp
from scipy.interpolate import CubicSpline
from scipy.linalg import eigh_tridiagonal
from sympy import Derivative, Eq, Max, Rational, Sum, Symbol, erf, pi, sqrt, symbols, tanh

from symcavity import (
    Coupling,
    N,
    Noise,
    NotConverged,
    Quenched,
    System,
    Time,
    UnsupportedLaw,
    Variable,
    average,
    i,
    response,
)

t, s, j = Time("t"), Time("s"), Symbol("j")
g, D, r = symbols("g D r", positive=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N)
LAG = average(x[i, t] * x[i, s])


def network(phi, more=0, coupling=J):
    field = Sum(coupling[i, j] * phi(x[j, t]), (j, 1, N))
    return System([Eq(Derivative(x[i, t], t), -x[i, t] + field + more)], initial=[Eq(x[i, 0], a[i])]).cavity()


def sigmoid(u):
    return erf(sqrt(pi) * u / 2)


ERF = network(sigmoid)


@pytest.mark.parametrize(("gain", "variance"), [("3/2", 0.83875252784732), (2, 2.0640800187543)])
def test_the_variance_of_the_chaotic_network_is_that_of_the_literature(gain, variance):
    rest = ERF.stationary({g: gain})
    assert rest.moves
    assert rest[average(x[i, t] ** 2)] == pytest.approx(variance, rel=2e-14)
    assert rest[LAG](0) == pytest.approx(variance, rel=1e-13)
    assert repr(rest[LAG]) == f"<function of the lag: {variance:.8g} at 0>"
    far = 1 - float(gain if gain == 2 else 1.5) ** 2 / (1 + np.pi / 2 * variance)  # of the slope of the force at zero
    assert rest[LAG](60) / rest[LAG](50) == pytest.approx(np.exp(-10 * far**0.5), rel=1e-5)


def test_the_covariance_obeys_its_equation_of_motion():
    """D'' = D - g^2 C(D), with the arcsine law of the error function."""
    rest = ERF.stationary({g: 2})
    lags = np.array([1, 3]) + np.arange(-2, 3)[:, None] * 0.02
    D_ = rest[LAG](lags)
    second = (-D_[0] + 16 * D_[1] - 30 * D_[2] + 16 * D_[3] - D_[4]) / (12 * 0.02**2)
    v = rest.variance
    arcsine = 2 / np.pi * np.arcsin(np.pi / 2 * D_[2] / (1 + np.pi / 2 * v))
    assert second == pytest.approx(D_[2] - 4 * arcsine, abs=1e-7)
    assert rest[average(sigmoid(x[i, t]) * sigmoid(x[i, s]))](lags[2]) == pytest.approx(arcsine, abs=1e-13)
    equal = 2 / np.pi * np.arcsin(np.pi / 2 * v / (1 + np.pi / 2 * v))
    assert rest[average(sigmoid(x[i, t]) ** 2)] == pytest.approx(equal, rel=1e-13)


def test_more_digits_continue_the_double_ones():
    few, many = (ERF.stationary({g: "3/2"}, dps=n).variance for n in (15, 20))
    assert few == pytest.approx(float(many), rel=1e-14)
    with mp.workdps(30):  # the energy at the start is that at the end, with the arcsine law integrated
        v = mp.mpf(many)
        b = mp.pi / 2 / (1 + mp.pi / 2 * v)
        energy = (v * mp.asin(b * v) + (mp.sqrt(1 - (b * v) ** 2) - 1) / b) * 2 / mp.pi
        assert abs(-(v**2) / 2 + mp.mpf(9) / 4 * energy) < mp.mpf(10) ** -19


def test_noise_and_linear_networks_have_closed_forms():
    """D(tau) = noise exp(-k |tau|)/(2 k) with k = sqrt(1 - g^2)."""
    rest = network(lambda u: u, xi[i, t]).stationary({g: "1/2", D: "1/2"})
    k, lags = 0.75**0.5, np.array([0, 0.3, 1, 5])
    assert rest[LAG](lags) == pytest.approx(0.25 / k * np.exp(-k * lags), rel=1e-12)
    assert rest[response(x[i, t], s)](1) == pytest.approx(np.exp(-1))


def test_a_long_run_reaches_the_stationary_state():
    theory, values = network(tanh, xi[i, t]), {g: "6/5", D: "1/2"}
    rest = theory.stationary(values)
    run = theory.evolve({**values, a: 0}, until=12, step="1/5", paths=6000, seed=4)
    late = run[average(x[i, t] ** 2)][-20:].mean()
    assert late == pytest.approx(rest.variance, rel=0.03)


def test_states_that_come_to_rest_do():
    quiet = ERF.stationary({g: "1/2"})
    assert not quiet.moves
    assert quiet.variance == 0
    assert quiet[average(sigmoid(x[i, t]) ** 2)] == 0
    frozen = network(lambda u: u + 1).stationary({g: "1/2"})  # v = g^2 (v + 1)
    assert not frozen.moves
    assert frozen.variance == pytest.approx(1 / 3, rel=1e-13)
    assert frozen[LAG](7) == pytest.approx(1 / 3, rel=1e-13)


def test_what_has_no_stationary_state_or_an_unsupported_one_says_so():
    with pytest.raises(NotConverged, match="No stationary state is reached"):
        network(lambda u: u, xi[i, t]).stationary({g: 2, D: 1})
    back = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=Rational(1, 2))
    with pytest.raises(UnsupportedLaw, match="feedback is not linear"):
        network(tanh, 0, back).stationary({g: 2})
    with pytest.raises(UnsupportedLaw, match="kinks"):
        network(lambda u: Max(0, u)).stationary({g: 1})
    steps = System([Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)))], initial=[Eq(x[i, 0], 0)])
    with pytest.raises(UnsupportedLaw, match="in steps"):
        steps.cavity().stationary({g: 1})


def test_the_lyapunov_exponent_is_the_lowest_state_of_a_particle():
    """Against a grid of differences in the lag itself; zero is the energy of the odd state, the rate of the path."""
    rest = ERF.stationary({g: 2})
    count, h = 600, 0.04
    lags = np.linspace(0, count * h, 25)
    C = CubicSpline(lags, rest[LAG](lags), bc_type=((1, 0.0), (2, 0.0)))((np.arange(count) + 0.5) * h)
    slope = 4 / np.sqrt((1 + np.pi / 2 * rest.variance) ** 2 - (np.pi / 2 * C) ** 2)  # of the arcsine law
    diagonal = 2 / h**2 + 1 - slope
    diagonal[0] -= 1 / h**2
    (energy,) = eigh_tridiagonal(diagonal, -np.ones(count - 1) / h**2, select="i", select_range=(0, 0))[0]
    assert rest.lyapunov == pytest.approx(np.sqrt(1 - energy) - 1, rel=3e-3)
    assert rest.lyapunov == pytest.approx(0.1230941793, rel=1e-8)


def test_a_linear_network_forgets_at_the_edge_of_its_spectrum_and_noise_suppresses_chaos():
    assert network(lambda u: u, xi[i, t]).stationary({g: "4/5", D: 1}).lyapunov == pytest.approx(-0.2, abs=1e-8)
    assert ERF.stationary({g: "4/5"}).lyapunov == pytest.approx(-0.2)
    driven = network(sigmoid, xi[i, t])
    exponents = [driven.stationary({g: 2, D: size}).lyapunov for size in ("1/2", 2)]
    assert 0.12 > exponents[0] > 0 > exponents[1]
