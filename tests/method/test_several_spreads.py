"""How observables scatter where couplings vary from site to site, and where sites hear several trained fields.

The truth: the same problem in other words, that has one field; random matrices; and instances with exact minima.
"""

import numpy as np
import pytest
from sympy import Abs, Rational, Sum, Symbol, sign, sqrt
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.method import told_apart
from symcavity.method.crossed import Crossed

x, w, y, z = Coupling("x"), Feature("w"), Quenched("y", mu), Quenched("z", mu)
s, r = Quenched("s", i, positive=True), Quenched("r", mu, positive=True)
gamma, half = Symbol("gamma", positive=True), Rational(1, 2)
heard, weights = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(w[i] ** 2, (i, 1, N)) / 2
SIZE = {alpha: 2, gamma: half}
LABELS = {y: {1: half, -2: half}}
SCALES = {s: {half: half, Rational(3, 2): half}, r: {half: half, 2: half}}
one, two = Feature("w_1"), Feature("w_2")
h, g = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (one, two))
both = Sum(one[i] ** 2 + two[i] ** 2, (i, 1, N)) / 2


def fit(residual, penalty=weights):
    return ConvexProblem(Sum(residual**2, (mu, 1, P)) / 2 + gamma * penalty)


def covariances(solution, observed):
    return np.array([[float(solution.covariance(a, b)) for b in observed] for a in observed])


def test_a_variance_that_differs_from_site_to_site_is_a_scale_of_fields_and_weights():
    """Couplings of variance s r/N: fields times sqrt(r), and weights over sqrt(s)."""
    scaled = Coupling("c", variance=s[i] * r[mu] / N)
    field = Sum(scaled[mu, i] * w[i], (i, 1, N))
    varied = fit(y[mu] - field).cavity().solve({**SIZE, **LABELS, **SCALES})
    plain = fit(y[mu] - sqrt(r[mu]) * heard, Sum(w[i] ** 2 / s[i], (i, 1, N)) / 2)
    plain = plain.cavity().solve({**SIZE, **LABELS, **SCALES})
    observed = [average(w[i] ** 2), average(s[i] * w[i] ** 2), average(field**2), "objective"]
    same = [average(w[i] ** 2 / s[i]), average(w[i] ** 2), average(r[mu] * heard**2), "objective"]
    assert covariances(varied, observed) == pytest.approx(covariances(plain, same), rel=1e-11)
    with pytest.raises(UnsupportedLaw, match="order 1/N"):
        varied.next_order(response(w))


def test_a_variance_of_several_terms_by_instances():
    """Couplings of variance (s + r)/N, which are no scale: 3000 instances, and the minimum by its single sites."""
    mixed = Coupling("c", variance=(s[i] + r[mu]) / N)
    problem = fit(y[mu] - Sum(mixed[mu, i] * w[i], (i, 1, N)))
    solution = problem.cavity().solve({**SIZE, **LABELS, **SCALES})
    found = covariances(solution, [average(w[i] ** 2), average(s[i] * w[i] ** 2), "objective"])
    assert found[2, 2] == pytest.approx(float(solution.variance()), rel=1e-12)
    n, rng, rows = 60, np.random.default_rng(0), []
    for _ in range(3000):
        feature, datum = rng.choice([0.5, 1.5], n), rng.choice([0.5, 2.0], 2 * n)
        data = rng.standard_normal((2 * n, n)) * np.sqrt((feature + datum[:, None]) / n)
        labels = rng.choice([1.0, -2.0], 2 * n)
        fitted = np.linalg.solve(data.T @ data + np.eye(n) / 2, data.T @ labels)
        least = ((labels - data @ fitted) ** 2).sum() / 2 + fitted @ fitted / 4
        rows.append((fitted @ fitted / n, feature @ fitted**2 / n, least / n))
    assert_agree(found, rows, n)


def assert_agree(found, rows, n):
    """Within errors, and terms of order 1/N."""
    gaps = np.array(rows) - np.mean(rows, axis=0)
    products = n * gaps[:, :, None] * gaps[:, None, :]
    errors = products.std(axis=0) / np.sqrt(len(rows))
    scale = np.sqrt(np.outer(np.diag(found), np.diag(found)))
    assert np.all(abs(products.mean(axis=0) - found) < 4 * errors + 2 * scale / n)


def in_two_classes():
    """Features in two classes, whose sums a datum adds and answers with one residual."""
    a, K = Sites("a", "K", "other feature")
    F, v = Coupling("F", between=(mu, a)), Variable("v", a)
    other = Sum(F[mu, a] * v[a], (a, 1, K))
    problem = fit(y[mu] - heard - other, weights + Sum(v[a] ** 2, (a, 1, K)) / 2)
    solution = problem.cavity().solve({**SIZE, **LABELS, K / N: half})
    return solution, [average(w[i] ** 2) + average(v[a] ** 2) / 2, average((heard + other) ** 2), "objective"], v, a


def test_two_classes_of_features_are_one():
    """With one variance and one penalty: 3N/2 features; N times a covariance of what is per N features."""
    solution, observed, *_ = in_two_classes()
    wide = Coupling("c", variance=Rational(3, 2) / N)
    field = Sum(wide[mu, i] * w[i], (i, 1, N))
    merged = fit(y[mu] - field).cavity().solve({**SIZE, **LABELS, alpha: Rational(4, 3)})
    factors = np.array([1.5, 1.0, 1.5])
    expected = covariances(merged, [average(w[i] ** 2), average(field**2), "objective"])
    expected *= np.outer(factors, factors) / 1.5
    assert covariances(solution, observed) == pytest.approx(expected, rel=1e-11)


def test_features_of_a_class_are_alike():
    """By exchange: three groups of N/2 features, each pair of which has one covariance."""
    solution, _, v, a = in_two_classes()
    q, p = average(w[i] ** 2), average(v[a] ** 2)
    first, second, mixed = (float(e) for e in (solution.variance(q), solution.variance(p), solution.covariance(q, p)))
    # N Var of the mean of half of N features V, N Cov of two such halves C: p has V, q (V + C)/2, and both C
    assert second == pytest.approx(2 * first - mixed, rel=1e-11)


def test_answers_that_are_alike_are_told_apart(monkeypatch):
    """The sabotage: one name for the overlaps of both answers leaves equations without a unique solution."""
    monkeypatch.setattr(told_apart, "_answers_alike", lambda *_: False)
    solution, observed, *_ = in_two_classes()
    with pytest.raises(UnsupportedLaw, match="no unique solution"):
        solution.variance(observed[0])


@pytest.fixture(scope="module")
def rotated():
    """Two fits of labels of their own to one data set, as they are, and by their sum and difference."""
    laws = {y: {1: half, -1: half}, z: {2: half, -2: half}}
    plain = ConvexProblem(Sum((y[mu] - h) ** 2 + (z[mu] - g) ** 2, (mu, 1, P)) / 2 + gamma * both)
    turned = ConvexProblem(Sum((y[mu] - h - g) ** 2 + (z[mu] - h + g) ** 2, (mu, 1, P)) / 2 + 2 * gamma * both)
    return [problem.cavity().solve({**SIZE, **laws}) for problem in (plain, turned)]


def test_fields_that_are_correlated_are_combinations_of_others(rotated):
    """What two fits share vanishes, and moves; their sum and difference have an overlap."""
    plain, turned = rotated
    a, b = one[i], two[i]
    observed = [average(a**2), average(a * b), average(h * g), "objective"]
    same = [average((a + b) ** 2), average((a + b) * (a - b)), average((h + g) * (h - g)), "objective"]
    assert covariances(turned, same) == pytest.approx(covariances(plain, observed), rel=1e-9, abs=1e-10)


def test_two_fits_of_one_data_set_do_not_know_each_other(rotated):
    """To leading order, sizes scatter as those of each fit alone: labels of variance four scatter sixteen times."""
    plain, _ = rotated
    alone = fit(y[mu] - heard).cavity().solve({**SIZE, y: {1: half, -1: half}})
    single = float(alone.variance(average(w[i] ** 2)))
    found = covariances(plain, [average(one[i] ** 2), average(two[i] ** 2)])
    assert found == pytest.approx(np.diag([single, 16 * single]), rel=1e-10, abs=1e-12)


def test_their_overlap_is_a_trace_of_random_matrices(rotated):
    """y'Bz for independent labels of variance one and four, B = X (X'X + gamma)^-2 X': 4 <s^2/(s + gamma)^4>."""
    plain, _ = rotated
    low, high = (1 - np.sqrt(2)) ** 2, (1 + np.sqrt(2)) ** 2
    angle = (np.arange(4000) + 0.5) * np.pi / 4000
    eigenvalue = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
    density = ((high - low) / 2 * np.sin(angle)) ** 2 / (2 * np.pi * eigenvalue) * np.pi / 4000
    expected = 4 * np.sum(density * eigenvalue**2 / (eigenvalue + 0.5) ** 4)
    assert float(plain.variance(average(one[i] * two[i]))) == pytest.approx(expected, rel=1e-10)


def coupled():
    """Two outputs, the second of which also fits what the first leaves."""
    problem = ConvexProblem(Sum((y[mu] - h) ** 2 + (h + g - 1) ** 2, (mu, 1, P)) / 2 + gamma * both)
    return problem.cavity().solve({**SIZE, **LABELS})


OUTPUTS = [average(one[i] ** 2), average(one[i] * two[i]), average(h * g), "objective"]


def test_two_outputs_by_instances():
    """1500 instances with exact minima by their linear equations; and the minimum by its single sites."""
    solution = coupled()
    found = covariances(solution, OUTPUTS)
    assert found == pytest.approx(found.T, rel=1e-11)
    assert found[3, 3] == pytest.approx(float(solution.variance()), rel=1e-11)
    n, rng, rows = 60, np.random.default_rng(3), []
    for _ in range(1500):
        data, labels = rng.standard_normal((2 * n, n)) / np.sqrt(n), rng.choice([1.0, -2.0], 2 * n)
        gram, ridge = data.T @ data, np.eye(n) / 2
        matrix = np.block([[2 * gram + ridge, gram], [gram, gram + ridge]])
        known = np.linalg.solve(matrix, np.concatenate([data.T @ (labels + 1), data.sum(axis=0)]))
        first, second = known[:n], known[n:]
        left, right = data @ first, data @ second
        least = ((labels - left) ** 2).sum() / 2 + ((left + right - 1) ** 2).sum() / 2 + known @ known / 4
        rows.append((first @ first / n, first @ second / n, np.mean(left * right), least / n))
    assert_agree(found, rows, n)


@pytest.mark.parametrize("broken", ["turned", "silent"])
def test_a_part_that_is_dropped_is_seen(monkeypatch, broken, rotated):
    """The sabotage: an overlap of two copies that is the same with the copies exchanged; what vanishes stays zero."""
    if broken == "turned":
        observed, known = OUTPUTS[:2], covariances(coupled(), OUTPUTS[:2])
        honest = Crossed.grows
        monkeypatch.setattr(
            Crossed, "grows", lambda *args: [row for row in honest(*args) if not str(args[-1]).endswith("_T")]
        )
        assert not np.allclose(covariances(coupled(), observed), known, rtol=0.01)
    else:
        known = float(rotated[0].variance(average(one[i] * two[i])))
        monkeypatch.setattr(told_apart, "_name_silent", lambda *_: None)
        laws = {y: {1: half, -1: half}, z: {2: half, -2: half}}
        plain = ConvexProblem(Sum((y[mu] - h) ** 2 + (z[mu] - g) ** 2, (mu, 1, P)) / 2 + gamma * both)
        assert float(plain.cavity().solve({**SIZE, **laws}).variance(average(one[i] * two[i]))) > 1.2 * known


@pytest.mark.parametrize(("share", "measured", "error"), [("noise", 0.544, 0.017), ("inputs", 0.701, 0.023)])
def test_two_fits_to_one_teacher_by_instances(share, measured, error):
    """The overlap of two ridge fits to a teacher of signs, in 2000 instances of N = 80 each, once.

    They share their inputs and have noise of their own, or have inputs that are correlated, and share the noise.
    """
    t, e = Quenched("t", i), Quenched("e", mu, law=Normal("e", 0, 1))
    problem = fit(e[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)))
    copies = problem.copies(2, share={e: 0} if share == "noise" else {x: half})
    solution = copies.cavity().solve({**SIZE, t: {1: half, -1: half}})
    overlap = average(copies["w_1"][i] * copies["w_2"][i])
    assert abs(float(solution.variance(overlap)) - measured) < 3 * error + 2 * measured / 80
    assert float(solution.covariance("objective", "objective")) == pytest.approx(float(solution.variance()), rel=1e-11)


def test_a_teacher_beside_two_outputs_is_refused():
    t = Quenched("t", i)
    taught = Sum(x[mu, i] * t[i], (i, 1, N))
    problem = ConvexProblem(Sum((sign(taught) - h) ** 2 + (h + g - 1) ** 2, (mu, 1, P)) / 2 + gamma * both)
    with pytest.raises(UnsupportedLaw, match="given emissions, beside several trained fields"):
        problem.cavity().fluctuations(average(one[i] ** 2))


def test_sparse_fits_of_correlated_inputs_know_their_minimum_by_both_ways():
    """By the mixed derivative, with averages at nodes of two parts; and by the minima of single sites, in formulas."""
    problem = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))
    solution = problem.copies(2, share={x: half}).cavity().solve({**SIZE, **LABELS})
    assert float(solution.covariance("objective", "objective")) == pytest.approx(float(solution.variance()), rel=1e-11)
