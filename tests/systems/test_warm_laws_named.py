"""Thermal means whose integral has no closed form keep their names: equations as short as at zero temperature."""

import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, log
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu

w, beta = Feature("w"), Symbol("beta", positive=True)
x, t = Coupling("x"), Quenched("t", i, law=Normal("t", 0, 1))
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
learning = ConvexProblem(Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)


@pytest.fixture(scope="module")
def theory():
    return learning.gibbs(beta).cavity()


def test_the_equations_are_averages_of_the_message_and_of_its_slope(theory):
    said = str(theory)
    assert "S_lambda = average(lambda'(eta[mu]))" in said
    assert "q_lambda = average(lambda(eta[mu])**2)" in said
    assert "lambda(eta[mu]) = (expect(h[mu]) - eta[mu])/S_m" in said
    tex = theory.derivation.to_latex(detail="paper")
    assert tex.count("\\mathcal{A}_") < 10  # the exponent of the ratio stands once, where it is defined
    assert "\\lambda^{\\prime}" in tex


def test_the_equations_as_they_are_written_hold_at_the_solution(theory):
    """Quadrature of the weight that is written, on a grid, for each cavity field and each label."""
    heat, load = 2, 2
    solution = theory.solve({alpha: load, beta: heat})
    S, q, overlap = (float(solution[name]) for name in ("S_m", "q_m", "q_t_m"))
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    field = np.linspace(-14, 14, 4001)

    def message(eta, label):
        energy = np.logaddexp(0, -label * field) + (field - eta[:, None]) ** 2 / (2 * S)
        density = np.exp(-heat * (energy - energy.min(axis=1, keepdims=True)))
        return ((density * field).sum(axis=1) / density.sum(axis=1) - eta) / S

    eta = np.sqrt(q) * nodes
    teacher = overlap / q * eta[:, None] + np.sqrt(1 - overlap**2 / q) * nodes
    second, slope, drawn, step = 0.0, 0.0, 0.0, 1e-4
    for label in (1, -1):
        chance = 1 / (1 + np.exp(-label * teacher))
        weight, tilt = chance @ weights, (label * chance * (1 - chance)) @ weights
        here = message(eta, label)
        second += weights @ (weight * here**2)
        slope += weights @ (weight * (message(eta + step, label) - message(eta - step, label))) / (2 * step)
        drawn += weights @ (tilt * here)
    assert float(solution["q_lambda"]) == pytest.approx(second, rel=1e-7)
    assert float(solution["S_lambda"]) == pytest.approx(slope, rel=1e-6)
    assert float(solution["S_lambda_to_u_y"]) == pytest.approx(drawn, rel=1e-7)


@pytest.fixture(scope="module")
def tube():
    """A dead zone: the weight of a field is a sum of three truncated Gaussians."""
    offset = Quenched("b", mu, law={Rational(1, 2): Rational(1, 2), -1: Rational(1, 2)})
    loss = Sum(Max(0, Abs(offset[mu] - h) - 1), (mu, 1, P))
    return ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(beta).cavity()


def test_means_over_the_sides_of_kinks_keep_their_name(tube):
    said = str(tube)
    assert "S_lambda = average(lambda'(eta[mu]))" in said
    assert "q_lambda = average(lambda(eta[mu])**2)" in said
    tex = tube.derivation.to_latex(detail="paper")
    closed = tex.split("Self-consistent equations")[1]
    assert "mathcal{A}" not in closed
    assert "\\Psi_{1}" in tex.split("Self-consistent equations")[0]
    assert tex.count("is the mean distance from $u$") == 1


def test_the_equations_of_the_tube_hold_at_the_solution(tube):
    """Quadrature of the declared energy on a grid, at each cavity field."""
    heat, load = 2, 2
    solution = tube.solve({alpha: load, beta: heat})
    S, q = (float(solution[name]) for name in ("S_m", "q_m"))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    field = np.linspace(-14, 14, 8001)

    def message(eta, at):
        energy = np.maximum(0, np.abs(at - field) - 1) + (field - eta[:, None]) ** 2 / (2 * S)
        density = np.exp(-heat * (energy - energy.min(axis=1, keepdims=True)))
        return ((density * field).sum(axis=1) / density.sum(axis=1) - eta) / S

    eta, second, slope, step = np.sqrt(q) * nodes, 0.0, 0.0, 1e-3
    for at in (0.5, -1.0):
        second += weights @ message(eta, at) ** 2 / 2
        slope += weights @ (message(eta + step, at) - message(eta - step, at)) / (4 * step)
    assert float(solution["q_lambda"]) == pytest.approx(second, rel=1e-4)
    assert float(solution["S_lambda"]) == pytest.approx(slope, rel=1e-4)
