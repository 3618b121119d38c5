"""Norms of correlated combinations of one weight, and kinks at which more pieces meet than a line has sides."""

import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, exp

from symcavity import ConvexProblem, Coupling, Feature, N, P, alpha, average, i, mu, norm

x, z, w = Coupling("x"), Coupling("z"), Feature("w")
h, k = (Sum(c[mu, i] * w[i], (i, 1, N)) for c in (x, z))
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2


def by_trust_regions(a: np.ndarray, b: np.ndarray, load: float) -> float:
    """<w^2> of the loss ``|a h - b|`` of two independent fields of one weight, on a grid of cavity fields.

    The slope of the loss is ``a^T p``, where p in the unit disc solves a trust-region problem, by bisection.
    """
    line = np.linspace(-6, 6, 161)
    y = np.stack([part.ravel() for part in np.meshgrid(line, line)])
    weights = np.exp(-(y**2).sum(axis=0) / 2)
    weights /= weights.sum()
    curve, frame = np.linalg.eigh(a @ a.T)
    q = chi = 0.3
    for _ in range(400):
        eta = np.sqrt(q) * y
        side = frame.T @ (a @ eta - b[:, None])
        low, high = np.zeros(y.shape[1]), np.linalg.norm(side, axis=0)
        for _ in range(36):
            s = (low + high) / 2
            far = (np.square(side / (chi * curve[:, None] + s)).sum(axis=0)) > 1
            low, high = np.where(far, s, low), np.where(far, high, s)
        g = a.T @ frame @ (side / (chi * curve[:, None] + high))
        answer = float((weights * (eta * g).sum(axis=0)).sum()) / q  # the divergence, by parts
        chi_new = 1 / (1 + load * answer)
        q_new = load * float((weights * (g**2).sum(axis=0)).sum()) * chi_new**2
        if max(abs(q_new - q) / q, abs(chi_new - chi) / chi) < 1e-9:
            break
        q, chi = (q + q_new) / 2, (chi + chi_new) / 2
    return q


@pytest.mark.parametrize(
    ("second", "row", "shift"),
    [
        ((3 * h + 4 * k) / 5, (0.6, 0.8), 0.0),
        (Sum((3 * x[mu, i] + 4 * z[mu, i]) * w[i], (i, 1, N)) / 5, (0.6, 0.8), 0.0),
        (k - h, (-1.0, 1.0), 0.0),
        ((3 * h + 4 * k) / 5 - 2, (0.6, 0.8), 2.0),
    ],
)
def test_norms_of_correlated_fields(second, row, shift):
    problem = ConvexProblem(Sum(norm(h - 1, second), (mu, 1, P)) + ridge)
    found = problem.cavity().solve({alpha: 1})
    right = by_trust_regions(np.array([[1.0, 0.0], row]), np.array([1.0, shift]), 1.0)
    assert float(found[average(w[i] ** 2)]) == pytest.approx(right, rel=1e-4)


@pytest.mark.parametrize("load", [Rational(1, 2), 2])
def test_a_redundant_piece_at_a_kink(load):
    """All three pieces meet at zero, where the slopes on both sides have opposite signs: the states are at rest."""
    problem = ConvexProblem(Sum(Max(exp(h), 1 + Abs(h) / 2), (mu, 1, P)) + ridge)
    assert problem.cavity().solve({alpha: load})[average(w[i] ** 2)] == 0


def test_a_redundant_piece_away_from_rest():
    """``exp(h) >= 1 + h/2`` for positive h: that piece is said or not."""
    pull = (h - 1) ** 2
    spelled = [
        ConvexProblem(Sum(Max(exp(h), *pieces) + pull, (mu, 1, P)) + ridge)
        for pieces in ((1 - h / 2,), (1 + Abs(h) / 2,))
    ]
    first, second = (float(p.cavity().solve({alpha: 1})[average(w[i] ** 2)]) for p in spelled)
    assert first == pytest.approx(second, rel=1e-9)
    instances = spelled[0].simulate({alpha: 1}, N=100, seeds=10)[average(w[i] ** 2)]
    assert abs(instances.mean - first) < 4 * instances.stderr + 0.02 * first


def test_a_second_output_that_vanishes_by_symmetry():
    """The loss ``|(h - 1, k)|`` of two weights is even in the second one, which is zero: the first has ``|h - 1|``."""
    v = Feature("v")
    k = Sum(x[mu, i] * v[i], (i, 1, N))
    both = ConvexProblem(Sum(norm(h - 1, k), (mu, 1, P)) + ridge + Sum(v[i] ** 2, (i, 1, N)) / 2)
    alone = ConvexProblem(Sum(Abs(h - 1), (mu, 1, P)) + ridge)
    found, right = (float(p.cavity().solve({alpha: 1})[average(w[i] ** 2)]) for p in (both, alone))
    assert found == pytest.approx(right, rel=1e-9)
