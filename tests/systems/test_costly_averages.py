"""Averages over labels beside fields that took minutes or had no number, against quadrature that is written by hand."""

import numpy as np
import pytest
from scipy.special import expit, gammaln
from sympy import Rational, Sum, Symbol, exp, log, sqrt
from sympy.stats import NegativeBinomial, Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, response

x, z, w, v, t = Coupling("x"), Coupling("z"), Feature("w"), Feature("v"), Quenched("t", i)
gamma = Symbol("gamma", positive=True)
h, k, u = (Sum(c[mu, i] * s[i], (i, 1, N)) for c, s in ((x, w), (z, v), (x, t)))


def bisected(rises, low, high, rounds=52):
    """Where a rising function vanishes."""
    for _ in range(rounds):
        middle = (low + high) / 2
        over = rises(middle) > 0
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    return (low + high) / 2


def pieces(ends, count):
    """Gauss-Legendre rules on pieces."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    low, high = np.array(ends[:-1])[:, None], np.array(ends[1:])[:, None]
    return ((low + high) / 2 + (high - low) / 2 * nodes).ravel(), ((high - low) / 2 * weights).ravel()


def density(a):
    return np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi)


def test_overdispersed_counts_on_a_gaussian_teacher():
    """Counts of a negative binomial law are summed one by one, and beyond 256 by a rule in their logarithm."""
    y = Quenched("y", mu, law=NegativeBinomial("y", 3, 1 / (1 + exp(u))), given=u)
    loss = (y[mu] + 3) * log(1 + exp(h)) - y[mu] * h
    problem = ConvexProblem(Sum(loss, (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    solution = problem.cavity().solve({alpha: 2, gamma: 1, t: Normal("t", 0, 1)})
    q, m, s = (float(solution[o]) for o in (average(w[i] ** 2), average(w[i] * t[i]), response(w)))
    far, share = pieces([np.log(255.5), 9.0, 13.0], 24)
    counts, each = (
        np.concatenate(pair)[:, None, None]
        for pair in ((np.arange(256.0), np.exp(far)), (np.ones(256), np.exp(far) * share))
    )
    a, one = np.polynomial.hermite_e.hermegauss(80)
    b, other = np.polynomial.hermite_e.hermegauss(30)
    teacher, student = a[:, None], m * a[:, None] + np.sqrt(q - m**2) * b
    drawn = gammaln(counts + 3) - gammaln(counts + 1) - np.log(2) - counts * np.logaddexp(0, -teacher)
    drawn = np.exp(drawn - 3 * np.logaddexp(0, teacher)) * each * np.outer(one, other) / (2 * np.pi)
    assert drawn.sum() == pytest.approx(1, rel=1e-9)
    heard = bisected(
        lambda y: y + s * ((counts + 3) * expit(y) - counts) - student, student - 3 * s, student + s * counts
    )
    message, bend = counts - (counts + 3) * expit(heard), (counts + 3) * expit(heard) * expit(-heard)
    assert s == pytest.approx(1 / (1 + 2 * np.sum(drawn * bend / (1 + s * bend))), rel=1e-8)
    slope = np.sum(drawn * (counts * expit(-teacher) - 3 * expit(teacher)) * message)  # by the weights of labels
    assert m == pytest.approx(2 * s * slope, rel=1e-8)
    assert q == pytest.approx(2 * s**2 * np.sum(drawn * message**2) + m**2, rel=1e-8)


def test_gaussian_labels_of_a_logistic_loss_without_penalty():
    """Weights are large where labels are small: what stands at a label is smooth on fine panels of its field only."""
    y = Quenched("y", mu)
    problem = ConvexProblem(Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)))
    solution = problem.cavity().solve({alpha: Rational(11, 5), y: Normal("y", 0, 1)})
    q, s = float(solution[average(w[i] ** 2)]), float(solution[response(w)])
    labels, each = pieces([0, 1e-3, 1e-2, 0.05, 0.2, 0.6, 1.5, 3, 6, 9], 30)
    squares = slopes = 0.0
    for label, weight in zip(labels, 2 * each * density(labels), strict=True):
        reach = 9 * label * np.sqrt(q)
        low, high = -min(40.0, reach), min(40.0, reach)
        margin, share = pieces(np.unique([-reach, *np.linspace(low, high, 25), reach + s * label**2]), 40)
        field = (margin - s * label**2 * expit(-margin)) / label / np.sqrt(q)
        bend = label**2 * expit(margin) * expit(-margin)
        share = share * density(field) * (1 + s * bend) / label / np.sqrt(q)
        squares += weight * np.sum(share * (label * expit(-margin)) ** 2)
        slopes += weight * np.sum(share * bend / (1 + s * bend))
    assert s == pytest.approx(1 / (2.2 * slopes), rel=1e-7)
    assert q == pytest.approx(2.2 * s**2 * squares, rel=1e-7)


def test_a_gaussian_label_that_two_residuals_share():
    """The law hears residuals: the label widens both fields, and is not averaged by itself."""
    y = Quenched("y", mu)
    penalty = gamma * Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 2
    problem = ConvexProblem(Sum(sqrt(1 + (y[mu] - h) ** 2 + (y[mu] - k) ** 2), (mu, 1, P)) + penalty)
    solution = problem.cavity().solve({alpha: 2, gamma: 1, y: Normal("y", Rational(1, 3), 1)})
    q, s = float(solution[average(w[i] ** 2)]), float(solution["S_w_to_w"])
    a, weight = np.polynomial.hermite_e.hermegauss(44)
    share = np.einsum("a,b,c->abc", weight, weight, weight) / (2 * np.pi) ** 1.5
    label = a[:, None, None] + 1 / 3
    one, other = (np.broadcast_to(label - np.sqrt(q) * f, share.shape) for f in (a[:, None], a))
    far = one**2 + other**2
    size = bisected(lambda r: (r**2 - 1) * (1 + s / r) ** 2 - far, np.ones_like(far), np.sqrt(1 + far))
    message = one / (size + s)  # the residual is one/(1 + s/size)
    slope = -np.sum(share * message * np.sqrt(q) * a[:, None]) / q  # by parts
    assert s == pytest.approx(1 / (1 + 2 * slope), rel=1e-7)
    assert q == pytest.approx(2 * s**2 * np.sum(share * message**2), rel=1e-7)
