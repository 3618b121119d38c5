"""Losses and penalties as newcomers spell them, against a fixed point that is written down by hand."""

import numpy as np
import pytest
from sympy import Max, Piecewise, Rational, Sum, Symbol, exp, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, ValuesError, alpha, average, i, mu, response

half = Rational(1, 2)
x, w = Coupling("x"), Feature("w")
gamma, delta = Symbol("gamma", positive=True), Symbol("delta", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
y = Quenched("y", mu, law={1: half, -1: half})


def by_hand(loss, load, penalty):
    """The square of a weight and its response at ridge penalty: proximal maps by thirds, averages by trapezia."""
    z = np.linspace(-9, 9, 6001)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    q, S = 0.5, 1 / penalty
    for _ in range(200):
        eta = np.sqrt(q) * z
        low, high = eta - 40 * S, eta + 40 * S
        for _ in range(110):
            a, b = low + (high - low) / 3, high - (high - low) / 3
            left = (a - eta) ** 2 / (2 * S) + loss(a) < (b - eta) ** 2 / (2 * S) + loss(b)
            low, high = np.where(left, low, a), np.where(left, b, high)
        message = ((low + high) / 2 - eta) / S
        slope = density @ (message * z) / np.sqrt(q)
        S_next = 1 / (penalty - load * slope)
        q_next, S = load * (density @ message**2) * S_next**2, S_next
        if abs(q_next - q) < 1e-10:
            break
        q = q_next
    return q, S


def smoothed(m, width):
    return np.where(m > 1, 0, np.where(m > 1 - width, (1 - m) ** 2 / (2 * width), 1 - m - width / 2))


LOSSES = {
    "a ratio beside a line, as in distance weighted discrimination": (
        lambda m: Piecewise((1 / m, m > 1), (2 - m, True)),
        lambda m: np.where(m > 1, 1 / np.maximum(m, 1), 2 - m),
    ),
    "a difference of squared hinges": (
        lambda m: (Max(0, 1 - m) ** 2 - Max(0, 1 - delta - m) ** 2) / (2 * delta),
        lambda m: smoothed(m, 0.5),
    ),
    "a hinge that is round, by cases": (
        lambda m: Piecewise((0, m > 1), ((1 - m) ** 2 / (2 * delta), m > 1 - delta), (1 - m - delta / 2, True)),
        lambda m: smoothed(m, 0.5),
    ),
    "a logarithm beside a line": (
        lambda m: Piecewise((log(1 + exp(-m)), m > 0), (log(2) - m / 2, True)),
        lambda m: np.where(m > 0, np.log1p(np.exp(-np.abs(m))), np.log(2) - m / 2),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("label", [1, y[mu]], ids=["absorbed", "labels"])
def test_a_loss_with_labels_and_without(name, label):
    loss, code = LOSSES[name]
    problem = ConvexProblem(Sum(loss(label * h), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 2, gamma: 1} | ({delta: half} if problem.minimize.has(delta) else {})
    solution = problem.cavity().solve(values)
    q, S = by_hand(code, 2, 1)
    assert abs(float(solution[average(w[i] ** 2)]) - q) < 2e-6
    assert abs(float(solution[response(w)]) - S) < 2e-6


fit, size = Sum((1 - h) ** 2, (mu, 1, P)), Sum(w[i] ** 2, (i, 1, N))
MEANS = {
    "each sum over N": fit / (2 * N) + gamma * size / (2 * N),
    "all of it over N": (fit + gamma * size) / (2 * N),
    "inside of the sums": Sum((1 - h) ** 2 / (2 * N), (mu, 1, P)) + Sum(gamma * w[i] ** 2 / N, (i, 1, N)) / 2,
    "over P": fit / (2 * P) + gamma * size / (2 * P),
    "each over its own number, with a load in front": alpha * fit / (2 * P) + gamma * size / (2 * N),
}


@pytest.mark.parametrize("spelling", MEANS)
def test_an_objective_that_is_a_mean_over_sites(spelling):
    theory = ConvexProblem(MEANS[spelling]).cavity()
    sums = ConvexProblem(fit / 2 + gamma * size / 2).cavity()
    here, there = (t.solve({alpha: 2, gamma: half})[average(w[i] ** 2)] for t in (theory, sums))
    assert abs(here - there) < 1e-12
    assert all(v.ok for v in theory.derivation["lagrangian"].verdicts(20))
    assert "N times the objective" in theory.derivation.to_text()


def test_an_objective_of_norms_alone_is_of_order_one():
    norms = [sqrt(fit / N), gamma * sqrt(size / N)]
    one, many = ConvexProblem(sum(norms)), ConvexProblem(N * sum(norms))
    values = {alpha: 2, gamma: half}
    here, there = (p.cavity().solve(values)[average(w[i] ** 2)] for p in (one, many))
    assert abs(here - there) < 1e-12


def test_terms_of_different_orders_are_named_where_sizes_are_missing():
    with pytest.raises(ValuesError, match="terms of one order"):
        ConvexProblem(fit / P + gamma * size).cavity().solve({alpha: 2, gamma: half})
