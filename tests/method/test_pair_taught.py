"""Two sites of fits to a teacher whose weights stand in what is sent, ``t - w``: they are given with the couplings."""

import numpy as np
import pytest
from sympy import Abs, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.method.reach import Reach
from symcavity.witness.judge import judge

x, w, t, e, gamma = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu), Symbol("gamma", positive=True)
HALF = Rational(1, 2)
VALUES = {alpha: Rational(3, 2), gamma: HALF, e: Normal("e", 0, HALF)}
TEACHER = {t: {0: HALF, 1: Rational(1, 4), -1: Rational(1, 4)}}
rest = (e[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))) ** 2


def test_a_linear_fit_varies_with_the_noise_as_without_its_teacher():
    """Least squares: C = R X'X R/4 whatever the teacher is."""
    weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    alone = (e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2
    taught, plain = (ConvexProblem(Sum(e_, (mu, 1, P)) / 2 + weights).cavity() for e_ in (rest, alone))
    found = taught.solve(VALUES | TEACHER).covariance(w, over=[e])
    known = plain.solve(VALUES).covariance(w, over=[e])
    for name in ("variance", "off_diagonal", "dimension"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(known, name)), rel=1e-11), name


def sparse():
    return ConvexProblem(Sum(rest, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))).cavity()


def fits(data, targets, steps=400):
    """Sparse fits of many targets, by accelerated proximal steps."""
    rate = 1 / np.linalg.norm(data, 2) ** 2
    now = ahead = np.zeros((data.shape[1], targets.shape[1]))
    for k in range(steps):
        point = ahead - rate * data.T @ (data @ ahead - targets)
        after = np.sign(point) * np.maximum(abs(point) - rate / 2, 0)
        ahead, now = after + k / (k + 3) * (after - now), after
    return now


def test_a_sparse_fit_varies_with_the_noise_as_instances_do():
    """Two halves of the draws estimate C independently, so that the trace of their product has no bias."""
    n, draws, measured = 120, 60, []
    for seed in range(8):
        rng = np.random.default_rng([5, seed])
        data = rng.standard_normal((3 * n // 2, n)) / np.sqrt(n)
        teacher = np.repeat([0.0, 1.0, 0.0, -1.0], n // 4)
        noise = rng.standard_normal((3 * n // 2, 2 * draws)) / 2
        one, two = (np.cov(half) for half in np.split(fits(data, (data @ teacher)[:, None] + noise), 2, axis=1))
        size = np.trace(one + two) / 2
        measured.append((size / n, size**2 / n / np.sum(one * two)))
    found = sparse().solve(VALUES | TEACHER).covariance(w, over=[e])
    expected = np.array([found.variance, found.dimension], dtype=float)
    assert np.all(abs(np.mean(measured, 0) - expected) < 4 * np.std(measured, 0) / np.sqrt(7) + 3 / n * expected)


def test_what_is_sent_counts_for_the_witness(monkeypatch):
    """The sabotage: only parameters of the law count as given, and the teacher is averaged over."""
    monkeypatch.setattr(Reach, "parameters", lambda self, kind: self.theory.inserted[kind].law.quenched())
    steps = {step.key: step for step in sparse().pair(over=[e]).derivation}
    assert not all(v.ok for v in judge(steps["pair.close"]))
