"""Two sites over the weights of a teacher, whose field is heard beside that of the states."""

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol, exp, log, sign
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.method import pair
from symcavity.witness.judge import judge

x, w, t, e, gamma = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu), Symbol("gamma", positive=True)
HALF = Rational(1, 2)
VALUES = {alpha: 2, gamma: HALF, t: {1: HALF, -1: HALF}}
taught, h = Sum(x[mu, i] * t[i], (i, 1, N)), Sum(x[mu, i] * w[i], (i, 1, N))
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


@pytest.fixture(scope="module")
def signs():
    """Least squares on the signs of a teacher, with noise."""
    return ConvexProblem(Sum((sign(taught) + e[mu] - h) ** 2, (mu, 1, P)) / 2 + weights).cavity()


def inputs(n, seed):
    return np.random.default_rng([11, seed]).standard_normal((2 * n, n)) / np.sqrt(n)


def as_seen(covariances):
    """The mean variance, and the dimension, of each covariance matrix."""
    rows = [(np.trace(c) / len(c), np.trace(c) ** 2 / len(c) / np.sum(c**2)) for c in covariances]
    return np.mean(rows, 0), np.std(rows, 0, ddof=1) / np.sqrt(len(rows))


@pytest.mark.parametrize("over", [[t], [t, e]], ids=["teacher", "teacher and noise"])
def test_a_linear_fit_to_signs_by_the_law_of_the_arcsine(signs, over):
    """At given inputs ``2 arcsin(r)/pi`` is the covariance of two labels whose inputs have the cosine ``r``."""
    found = signs.solve({**VALUES, e: Normal("e", 0, HALF)}).covariance(w, over=over)
    covariances = []
    for seed in range(4):
        data = inputs(500, seed)
        size = np.linalg.norm(data, axis=1)
        labels = 2 / np.pi * np.arcsin(np.clip(data @ data.T / np.outer(size, size), -1, 1))
        labels += np.eye(len(data)) / 4 if e in over else 0.0
        fit = np.linalg.solve(data.T @ data + np.eye(500) / 2, data.T)
        covariances.append(fit @ labels @ fit.T)
    seen, error = as_seen(covariances)
    expected = np.array([found.variance, found.dimension], dtype=float)
    assert np.all(abs(seen - expected) < 4 * error + expected / 500)
    noisy = signs.solve({**VALUES, e: {1: HALF, -1: HALF}}).dimension(w, over=[e])
    assert abs(float(noisy) - seen[1]) > 10 * error[1]  # the negative control: labels that have nothing in common


def test_the_noise_that_is_given_beside_it_shifts_a_linear_fit_only(signs):
    """Over the teacher alone, given noise is a constant."""
    quiet = ConvexProblem(Sum((sign(taught) - h) ** 2, (mu, 1, P)) / 2 + weights).cavity().solve(VALUES)
    noisy = signs.solve({**VALUES, e: Normal("e", 0, HALF)})
    one, other = (s.covariance(w, over=[t]) for s in (quiet, noisy))
    assert float(one.dimension) == pytest.approx(float(other.dimension), rel=1e-11)
    assert float(one.variance) == pytest.approx(float(other.variance), rel=1e-11)


@pytest.fixture(scope="module")
def logistic():
    return ConvexProblem(Sum(log(1 + exp(-sign(taught) * h)), (mu, 1, P)) + weights)


def classified(data, labels):
    """The weights of a logistic regression on each column of labels, by Newton's method."""
    fits = np.zeros((data.shape[1], labels.shape[1]))
    for k, s in enumerate(labels.T):
        for _ in range(8):
            wrong = 1 / (1 + np.exp(s * (data @ fits[:, k])))
            slope = fits[:, k] / 2 - data.T @ (s * wrong)
            bend = (data.T * (wrong * (1 - wrong))) @ data + np.eye(len(fits)) / 2
            fits[:, k] -= np.linalg.solve(bend, slope)
    return fits


def test_a_logistic_regression_by_instances(logistic):
    """Two halves of the draws of the teacher have independent errors."""
    n, draws, rows = 80, 60, []
    for seed in range(6):
        data = inputs(n, seed)
        teachers = np.random.default_rng([12, seed]).choice([-1.0, 1.0], size=(n, 2 * draws))
        one, two = (np.cov(half) for half in np.split(classified(data, np.sign(data @ teachers)), 2, axis=1))
        rows.append((np.trace(one + two) / 2 / n, np.trace(one) * np.trace(two) / n / np.sum(one * two)))
    error = np.std(rows, 0, ddof=1) / np.sqrt(len(rows))
    found = logistic.cavity().solve(VALUES).covariance(w, over=[t])
    expected = np.array([found.variance, found.dimension], dtype=float)
    assert np.all(abs(np.mean(rows, 0) - expected) < 4 * error + expected / n)
    assert found.dimension < 0.75  # labels that have nothing in common leave more directions


def test_instances_keep_their_inputs_and_draw_the_teacher_again(logistic):
    seen = logistic.simulate(VALUES, N=40, seeds=4).dimension(w, over=[t], draws=24)
    expected = float(logistic.cavity().solve(VALUES).dimension(w, over=[t]))
    assert abs(seen.mean - expected) < 4 * seen.stderr + expected / 10


@pytest.mark.parametrize("over", [[t, e], [t]], ids=["teacher and noise", "teacher"])
def test_the_record_is_judged_by_linear_instances(signs, over):
    steps = {step.key: step for step in signs.pair(over=over).derivation}
    for key in ("pair.close", "pair.dimension", "pair.resolvent"):
        assert all(v.ok for v in judge(steps[key])), key


def test_a_response_to_the_teacher_that_is_left_out_is_seen(monkeypatch):
    """The sabotage: a label answers to its teacher, but no other datum hears of it."""
    theory = ConvexProblem(Sum((sign(taught) + e[mu] - h) ** 2, (mu, 1, P)) / 2 + weights).cavity()
    known = pair._joined

    def deaf(a, b):
        found = known(a, b)
        return None if found is not None and not found[0].states() else found

    monkeypatch.setattr(pair, "_joined", deaf)
    steps = {step.key: step for step in theory.pair(over=[t, e]).derivation}
    assert not all(v.ok for v in judge(steps["pair.close"]))
