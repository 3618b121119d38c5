"""What varies reaches some sites and not others, which is known from the declaration: fits that hear other fits."""

import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, System, UnsupportedLaw, alpha, i, mu
from symcavity.method import reach
from symcavity.method.reach import Reach
from symcavity.witness.judge import judge

x, z, w, v, t = *map(Coupling, "xz"), *map(Feature, "wv"), Quenched("t", i)
e, f = Quenched("e", mu), Quenched("f", mu)
HALF, gamma = Rational(1, 2), Symbol("gamma", positive=True)
NOISES = {e: Normal("e", 0, HALF), f: Normal("f", 0, HALF)}


def transferred():
    """A second fit that is pulled to a first one, which does not hear of it."""
    one, two = Datum("l"), Datum("m")
    return System(
        [
            Eq(one[mu], e[mu] - Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))),
            Eq(gamma * w[i], Sum(x[mu, i] * one[mu], (mu, 1, P))),
            Eq(two[mu], f[mu] - Sum(z[mu, i] * (v[i] - t[i]), (i, 1, N))),
            Eq(v[i] - w[i], Sum(z[mu, i] * two[mu], (mu, 1, P))),
        ]
    )


def matrices(n):
    """The dimensions of the second fit over both noises, and over each, by matrices."""
    rng, one = np.random.default_rng(n), np.eye(n)
    x1, x2 = (rng.normal(size=(2 * n, n)) / np.sqrt(n) for _ in range(2))
    first = np.linalg.solve(x1.T @ x1 + one / 2, x1.T)
    second = np.linalg.inv(x2.T @ x2 + one)
    parts = second @ first, second @ x2.T
    covariances = (sum(a @ a.T for a in p) for p in (parts, parts[:1], parts[1:]))
    return [float(np.trace(c) ** 2 / n / np.sum(c * c)) for c in covariances]


def test_a_transfer_in_sequence_by_random_matrices():
    solution = transferred().cavity().solve({alpha: 2, gamma: HALF, t: {1: HALF, -1: HALF}, **NOISES})
    found = [float(solution.dimension(v, over=over)) for over in ([e, f], [e], [f])]
    assert found == pytest.approx(np.mean([matrices(n) for n in (301, 302, 303, 304)], axis=0), rel=5e-3)
    for ask in (solution.dimension, solution.spectrum, solution.covariance):
        with pytest.raises(UnsupportedLaw, match="nothing of f reaches it"):
            ask(w, over=[f])


def test_two_margins_of_labels_of_their_own():
    """Over the labels of one of two fits of the same data, it varies as it does alone."""
    y = Quenched("y", mu)
    alone = ConvexProblem(
        Sum(Max(0, 1 - y[mu] * Sum(x[mu, i] * w[i], (i, 1, N))), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
    )
    two, ys = alone.copies(2, share={y: 0}), [Quenched(f"y_{k}", mu) for k in (1, 2)]
    values, law = {alpha: 1, gamma: HALF}, {1: HALF, -1: HALF}
    solution = two.cavity().solve({**values, **dict.fromkeys(ys, law)})
    expected = float(alone.cavity().solve({**values, y: law}).dimension(w, over=[y]))
    for over in (ys, ys[:1]):
        assert float(solution.dimension(two["w_1"], over=over)) == pytest.approx(expected, rel=1e-9)
    with pytest.raises(UnsupportedLaw, match="nothing of y_1 reaches it"):
        solution.dimension(two["w_2"], over=ys[:1])


def test_given_parts_are_judged_where_an_answer_vanishes():
    """The first fit does not answer to what the second one hears."""
    record = transferred().cavity().pair(over=[e], of=v).derivation
    assert [verdict.ok for verdict in judge(record["pair.given"])] == [True]


def test_what_has_one_value_does_not_vary():
    solution = transferred().cavity().solve({alpha: 2, gamma: HALF, t: {1: HALF, -1: HALF}, e: {1: 1}, f: NOISES[f]})
    with pytest.raises(UnsupportedLaw, match="the law of e has one value"):
        solution.spectrum(w, over=[e])
    assert solution.dimension(v, over=[e, f]) == solution.dimension(v, over=[f])


def test_a_law_that_is_read_in_both_directions_is_noticed(monkeypatch):
    """The sabotage: every equation of a site is taken to fix all of its states."""
    theory = transferred().cavity()
    kind = next(kind for kind in theory.inserted if kind.key == "feature")
    assert (kind, w[i]) not in Reach(theory, (f,), w[i], kind).varying
    monkeypatch.setattr(reach, "_matched", lambda *_: None)
    assert (kind, w[i]) in Reach(theory, (f,), w[i], kind).varying
