"""Systems at a temperature, and those that share directions, against fixed points written out by hand."""

import numpy as np
import pytest
from gallery_shared import module, settled, solution
from scipy.stats import norm
from sympy import Rational

from symcavity import N, alpha, average, i
from symcavity.shapes import Ball

T = np.linspace(-12, 12, 6001)
W = norm.pdf(T) / np.sum(norm.pdf(T))


def gauss(values):
    return float(np.sum(W * values))


def held(name, *want, rel=1e-8):
    found = [float(solution(name)[observable]) for observable in module(name).shown[: len(want)]]
    assert found == pytest.approx(list(want), rel=rel)


def test_spin_glass():
    """The overlap of Sherrington and Kirkpatrick, ``q = <tanh(beta (sqrt(q) z + H))**2>``."""
    beta, field = (float(v) for v in module("spin_glass").values.values())
    (q,) = settled(lambda q: (gauss(np.tanh(beta * (np.sqrt(q) * T + field)) ** 2),), 0.5)
    overlaps = [float(solution("spin_glass")[o]) for o in module("spin_glass").shown]
    assert any(found == pytest.approx(q, rel=1e-8) for found in overlaps)


def test_binary_perceptron():
    """The equations of Gardner and Derrida for weights of one and minus one, at a cost for each error."""
    values = {str(k): float(v) for k, v in module("binary_perceptron").values.items()}
    loss = 1 - np.exp(-values["beta"])

    def step(q):
        u = np.sqrt(q / (1 - q)) * T
        force = loss * norm.pdf(u) / (1 - loss * norm.cdf(-u)) / np.sqrt(1 - q)
        return (gauss(np.tanh(np.sqrt(values["alpha"] * gauss(force**2)) * T) ** 2),)

    held("binary_perceptron", *settled(step, 0.1))


def test_bayes_perceptron():
    """The overlap of two students that make no error, and of a student with the teacher (Gyorgyi and Tishby)."""
    load = float(module("bayes_perceptron").values[alpha])

    def step(q):
        u = np.sqrt(q / (1 - q)) * T
        gain = 2 * load / (1 - q) * gauss(np.exp(2 * norm.logpdf(u) - norm.logcdf(u)))
        return (gain / (1 + gain),)

    held("bayes_perceptron", *settled(step, 0.5))


def test_sparse_means():
    """The least mean square error of a scalar channel with the same prior, at noise that is the error and the noise."""
    values = {str(k): float(v) for k, v in module("sparse_means").values.items()}
    share, noise = 0.2, values["sigma"] ** 2

    def error(variance):  # of x = c g, seen with this variance
        total, out = 1 + variance, share
        for weight, width in ((share, total), (1 - share, variance)):
            seen = np.sqrt(width) * T
            odds = (1 - share) / share * np.sqrt(total / variance) * np.exp(-(seen**2) * (1 / variance - 1 / total) / 2)
            out -= weight * gauss((seen / total / (1 + odds)) ** 2)
        return out

    (mse,) = settled(lambda e: (error((noise + e) / values["alpha"]),), 0.1)
    held("sparse_means", mse, rel=1e-7)


def test_spiked_matrix():
    """The overlap of a signal of signs, ``q = <tanh(lambda q + sqrt(lambda q) z)>`` (Deshpande, Abbe and Montanari)."""
    (ratio,) = (float(v) for v in module("spiked_matrix").values.values())
    (q,) = settled(lambda q: (gauss(np.tanh(ratio * q + np.sqrt(ratio * q) * T)),), 0.5)
    held("spiked_matrix", q)


def test_correlated_points():
    """Soft margins of points whose covariance is known: its spectrum is Marchenko and Pastur's, and a constant."""
    angle = (np.arange(4000) + 0.5) * np.pi / 8000
    spectrum, weight = 0.5 + 2 * np.cos(angle) ** 2, np.sin(angle) ** 2 / np.sum(np.sin(angle) ** 2)

    def sent(q, S):  # the second moment of what is sent, and how it answers
        within = norm.cdf(1 / np.sqrt(q)) - norm.cdf((1 - S) / np.sqrt(q))
        return gauss(np.clip((1 - np.sqrt(q) * T) / S, 0, 1) ** 2), within / S

    def step(q, S):
        force, answer = sent(q, S)
        kept = spectrum / (1 + answer * spectrum)
        return force * np.sum(weight * kept**2), np.sum(weight * kept)

    force, answer = sent(*settled(step, 0.5, 0.5))
    held("correlated_points", force * np.sum(weight * spectrum / (1 + answer * spectrum) ** 2), rel=1e-5)


def test_correlated_manifolds():
    """With many more shared directions than features the manifolds are independent: those of the source paper."""
    shared, alone = module("correlated_manifolds"), module("manifold")
    values = {**shared.values, shared.K / N: 10**7}
    found = shared.problem.cavity().solve(values)[average(shared.w[i] ** 2)]
    ball = Ball(2, Rational(1, 2))
    width = alone.problem.cavity().solve({alpha: values[alpha], alone.g: ball})["kappa"]
    assert float(found) == pytest.approx(1 / float(width) ** 2, rel=1e-5)


def test_boltzmann_machine():
    """The overlaps of both layers of a bipartite spin glass (Barra, Genovese and Guerra)."""
    values = {str(k): float(v) for k, v in module("boltzmann_machine").values.items()}
    beta, field = values["beta"], values["H"]

    def step(q, p):
        return (
            gauss(np.tanh(beta * (np.sqrt(values["K/N"] * p) * T + field)) ** 2),
            gauss(np.tanh(beta * np.sqrt(q) * T) ** 2),
        )

    held("boltzmann_machine", *settled(step, 0.5, 0.5))
