"""The variance of the minimum where a teacher is heard by itself: random matrices, the teacher's norm, instances."""

from functools import cache

import mpmath
import numpy as np
import pytest
from sympy import Max, Rational, Sum, Symbol, exp, log, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, i, mu
from symcavity.method import fluctuations as rules

x, w, t, y = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("y", mu)
gamma, half = Symbol("gamma", positive=True), Rational(1, 2)
heard, taught = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
certain = Quenched("s", mu, law={1: (1 + sign(taught)) / 2, -1: (1 - sign(taught)) / 2}, given=taught)
noisy = Quenched("s", mu, law={1: 1 / (1 + exp(-taught)), -1: 1 / (1 + exp(taught))}, given=taught)
SIZE = {alpha: 2, gamma: half}
ONE, TWO = {1: 1}, {1: half, 2: half}  # laws of the teacher's weights: of one norm, and of norms that scatter
FAR = {0: 1 - half / 2, 4: half / 2}


def fit(loss):
    return ConvexProblem(Sum(loss, (mu, 1, P)) + weights)


@cache
def ridge(label):
    return fit((label - heard) ** 2 / 2)


@cache
def logistic(label):
    return fit(log(1 + exp(-label[mu] * heard)))


@cache
def margins(label):
    return fit(Max(0, 1 - label[mu] * heard))


def variance(problem, law, **more):
    return float(problem.cavity().solve({**SIZE, t: law, **more}).variance())


def without_curvature(monkeypatch):
    monkeypatch.setattr(rules, "curvatures", lambda *_: [])


def by_random_matrices(overlap, third, slope, spread, load=2, ridge=0.5):
    """Of E/N = (A - B^2/(c + D))/2, quadratic forms of labels and of the standardized field u of the teacher.

    Given the direction of the teacher, X is u times it, and an independent matrix for all other directions.  With R =
    (1 + X X'/c)^-1 of these, A = y'R y/N, B = y'R u/N, D = u'R u/N, each a sum over independent data; ``overlap`` is
    <y u>, ``third`` <y u^3>, ``slope`` how the overlap moves with the teacher's norm, of the variance ``spread``.
    """
    with mpmath.workdps(30):
        root = mpmath.sqrt(load)
        low, high = (1 - root) ** 2, (1 + root) ** 2

        def eigenvalues(function):
            def weighted(angle):
                s = (low + high) / 2 - (high - low) / 2 * mpmath.cos(angle)
                return ((high - low) / 2 * mpmath.sin(angle)) ** 2 / (2 * mpmath.pi * s) * function(s)

            return mpmath.quad(weighted, [0, mpmath.pi / 2, mpmath.pi])

        r = (load - 1 + eigenvalues(lambda s: 1 / (1 + s / ridge))) / load
        r2 = (load - 1 + eigenvalues(lambda s: 1 / (1 + s / ridge) ** 2)) / load
        b, d = load * r * overlap, load * r
        g = mpmath.matrix([half, -b / (ridge + d), b**2 / (2 * (ridge + d) ** 2)])
        second = mpmath.matrix([[1, overlap], [overlap, 1]])
        fourth = mpmath.matrix([[0, 0, 0], [0, 1 - overlap**2, third - overlap], [0, third - overlap, 2]])
        total, forms = (g[1] * load * r * slope) ** 2 * spread, [(0, 0), (0, 1), (1, 1)]
        for k, (p, q) in enumerate(forms):
            for m, (s, v) in enumerate(forms):
                pairs = second[p, s] * second[q, v] + second[p, v] * second[q, s]
                total += g[k] * g[m] * load * (r**2 * fourth[k, m] + (r2 - r**2) * pairs)
        return float(total)


def test_ridge_on_the_signs_of_a_teacher_by_random_matrices():
    overlap = mpmath.sqrt(2 / mpmath.pi)
    expected = by_random_matrices(overlap, 2 * overlap, 0, 0)
    assert variance(ridge(certain[mu]), ONE) == pytest.approx(expected, rel=1e-12)
    assert variance(ridge(sign(taught)), TWO) == pytest.approx(expected, rel=1e-12)


def sigmoid_moments(norm):
    def moment(n, f):
        return mpmath.quad(lambda z: mpmath.npdf(z) * z**n * f(z), [-12, 0, 12])

    root = mpmath.sqrt(norm)
    overlap, third = (moment(n, lambda z: mpmath.tanh(root * z / 2)) for n in (1, 3))
    return overlap, third, moment(2, lambda z: mpmath.sech(root * z / 2) ** 2) / (4 * root)


@pytest.mark.parametrize("law", [ONE, TWO])
def test_ridge_on_labels_that_a_teacher_makes_likely_by_random_matrices(law):
    """The teacher's norm scatters between instances, and the labels with it."""
    norm = sum((v**2 * p for v, p in law.items()), Rational(0))
    spread = float(sum(v**4 * p for v, p in law.items()) - norm**2)
    expected = by_random_matrices(*sigmoid_moments(mpmath.mpf(norm.p) / norm.q), spread)
    assert variance(ridge(noisy[mu]), law) == pytest.approx(expected, rel=1e-9)


def test_a_curvature_that_is_dropped_is_seen(monkeypatch):
    whole = variance(ridge(certain[mu]), TWO)
    without_curvature(monkeypatch)
    assert variance(ridge(certain[mu]), TWO) > 1.5 * whole


@pytest.mark.parametrize("made", [margins, logistic])
def test_signs_do_not_know_the_teachers_norm(made):
    assert variance(made(certain), ONE) == pytest.approx(variance(made(certain), TWO), rel=1e-9)


def by_instances(law, labels, size=50, count=4000):
    """N times the variance of the minimum of logistic regressions on labels of a teacher, and its standard error."""
    rng, found, ridge_size = np.random.default_rng(1), [], 0.5
    for _ in range(count):
        data = rng.standard_normal((2 * size, size)) / np.sqrt(size)
        field = data @ rng.choice([float(v) for v in law], size, p=[float(p) for p in law.values()])
        data *= labels(field, rng)[:, None]
        at = np.zeros(size)
        for _ in range(50):
            wrong = 1 / (1 + np.exp(data @ at))
            force = ridge_size * at - data.T @ wrong
            if abs(force).max() < 1e-10:
                break
            at -= np.linalg.solve((data.T * (wrong * (1 - wrong))) @ data + ridge_size * np.eye(size), force)
        found.append(np.log1p(np.exp(-data @ at)).sum() + ridge_size * at @ at / 2)
    seen = np.var(found, ddof=1) / size
    kurtosis = np.mean((found - np.mean(found)) ** 4) / np.var(found) ** 2
    return seen, seen * np.sqrt((kurtosis - 1) / count)


def drawn(field, rng):
    return np.where(rng.random(field.size) < 1 / (1 + np.exp(-field)), 1.0, -1.0)


LABELS = {"signs": (certain, TWO, lambda field, _: np.sign(field)), "noise": (noisy, FAR, drawn)}


@pytest.mark.parametrize("made", ["signs", "noise"])
def test_logistic_regressions_of_a_teacher_scatter_as_instances_do(made, monkeypatch):
    """4000 instances of fifty weights by Newton's method; what the teacher's norm adds is seen in them."""
    label, law, labels = LABELS[made]
    known = variance(logistic(label), law)
    seen, error = by_instances(law, labels)
    assert abs(seen - known) < 3 * error + known / 50
    without_curvature(monkeypatch)
    assert abs(seen - variance(logistic(label), law)) > 5 * error


def test_signs_of_two_fields_that_are_correlated_do_not_know_the_norm_of_both():
    problem = ridge(sign(taught + Sum(Coupling("z", correlation={x: half})[mu, i] * t[i], (i, 1, N))))
    assert variance(problem, TWO) == pytest.approx(variance(problem, ONE), rel=1e-9)


def test_a_teacher_through_couplings_of_its_own():
    """Labels that the weights cannot learn are labels that are drawn by themselves."""
    other = Sum(Coupling("z")[mu, i] * t[i], (i, 1, N))
    coin = fit(Max(0, 1 - y[mu] * heard)).cavity().solve({**SIZE, y: {1: half, -1: half}})
    assert variance(fit(Max(0, 1 - sign(other) * heard)), TWO) == pytest.approx(float(coin.variance()), rel=1e-9)


def test_labels_that_are_drawn_scatter_weights_as_signs_do():
    size = rules.Average(w[i] ** 2)
    drawn, signs = (ridge(y).cavity().solve({**SIZE, t: ONE}).variance(size) for y in (certain[mu], sign(taught)))
    assert float(drawn) == pytest.approx(float(signs), rel=1e-9)


def test_a_teacher_that_is_heard_twice():
    """A coupling of correlation one is no second field."""
    copy = Sum(Coupling("z", correlation={x: 1})[mu, i] * t[i], (i, 1, N))
    assert variance(ridge(sign(taught + copy)), TWO) == pytest.approx(variance(ridge(sign(taught)), TWO), rel=1e-12)
