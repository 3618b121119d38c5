"""Data of one's own: what is read from them, and what follows, against scikit-learn and against simulated data."""

import numpy as np
import pytest
from scipy.stats import norm
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, ValuesError, alpha, average, i, mu, spectrum

datasets = pytest.importorskip("sklearn.datasets")
linear = pytest.importorskip("sklearn.linear_model")
svm = pytest.importorskip("sklearn.svm")

half = Rational(1, 2)
w, l, t, m = Feature("w"), Quenched("l", i, positive=True), Quenched("t", i), Quenched("m", i)
e, y = Quenched("e", mu, law={1: half, -1: half}), Quenched("y", mu, law={1: half, -1: half})
gamma, s = Symbol("gamma", positive=True), Symbol("s", positive=True)
x = Coupling("x", variance=l[i] / N)
gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - s * e[mu]
error = average(l[i] * (w[i] - t[i]) ** 2)
squares, ridge = Sum(gap**2, (mu, 1, P)) / 2, gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


def values_of(found, count):
    noise = float(np.sqrt(found.noise))
    return {alpha: count / found.N, l: found.variances, t: found.teacher, s: noise}


def learning(model, X, labels, count, score, seeds=200):
    """The mean of a score on what was not learned from, and its standard error."""
    rng, out = np.random.default_rng(0), []
    for _ in range(seeds):
        order = rng.permutation(len(X))
        a, b = order[:count], order[count:]
        out.append(score(model.fit(X[a], labels[a]).predict(X[b]), labels[b]))
    return np.mean(out), np.std(out) / np.sqrt(seeds)


def squared(a, b):
    return np.mean((a - b) ** 2)


@pytest.fixture(scope="module")
def diabetes():
    data = datasets.load_diabetes()
    X = data.data * np.sqrt(len(data.data))
    labels = (data.target - data.target.mean()) / data.target.std()
    return spectrum(X, labels), X, labels


def test_the_parts_of_simulated_data():
    rng = np.random.default_rng(1)
    n, d = 200_000, 4
    scales, teacher, shift = np.array([2.0, 1.0, 0.5, 0.25]), np.array([1.0, -2.0, 0.5, 3.0]), np.array([5.0, 0, 0, 1])
    turn = np.linalg.qr(rng.normal(size=(6, d)))[0]
    Z = rng.normal(size=(n, d)) * np.sqrt(scales)
    found = spectrum(Z @ turn.T + turn @ shift, Z @ teacher + 0.7 * rng.normal(size=n) + 3)
    assert d == found.N  # of six columns: they vary in four directions
    assert np.allclose(found.variances / d, scales, rtol=0.02)
    signs = np.sign(np.diag(found.directions @ turn))
    assert np.allclose(signs * found.teacher, teacher, atol=0.02)
    assert found.noise == pytest.approx(0.49, rel=0.02)
    labels = rng.choice([-1.0, 1.0], n, p=[0.3, 0.7])
    classes = spectrum((Z + labels[:, None] * teacher) @ turn.T, labels)
    assert np.allclose(np.abs(classes.means) / d, np.abs(teacher), atol=0.03)
    assert np.allclose(classes.variances / d, scales, rtol=0.02)
    assert classes.weights[1] == pytest.approx(0.7, abs=0.01)
    assert "two classes" in str(classes)


def test_ridge_on_diabetes(diabetes):
    """Within two per cent, from two data for each direction on; ten directions are few, and errors are of order 1/N."""
    found, X, labels = diabetes
    theory = ConvexProblem(squares + ridge).cavity()
    for count in (20, 80):
        for penalty in (1, 10):
            said = float(theory.solve({**values_of(found, count), gamma: penalty})[error]) + found.noise
            measured, stderr = learning(linear.Ridge(alpha=penalty, fit_intercept=False), X, labels, count, squared)
            assert said == pytest.approx(measured, rel=0.025, abs=3 * stderr)


def test_lasso_on_diabetes(diabetes):
    """Along the principal directions, which the declaration penalises one by one."""
    found, X, labels = diabetes
    theory = ConvexProblem(squares + gamma * Sum(Abs(w[i]), (i, 1, N))).cavity()
    for count, rel in ((40, 0.02), (200, 0.02)):
        said = float(theory.solve({**values_of(found, count), gamma: 3})[error]) + found.noise
        model = linear.Lasso(alpha=3 / count, fit_intercept=False)
        measured, _ = learning(model, found.coordinates(X), labels, count, squared)
        assert said == pytest.approx(measured, rel=rel)


def test_support_vectors_on_digits_and_where_the_theory_fails():
    """Gaussian data of the same moments obey the theory; threes and eights, whose pixels are no Gaussians, do not."""
    data = datasets.load_digits()
    kept = np.isin(data.target, (3, 8))
    X, labels = data.data[kept] / 16, np.where(data.target[kept] == 3, 1.0, -1.0)
    found = spectrum(X, labels)
    clusters = Coupling("x", mean=y[mu] * m[i] / N, variance=l[i] / N)
    h = Sum(clusters[mu, i] * w[i], (i, 1, N))
    theory = ConvexProblem(Sum(Max(0, 1 - y[mu] * h), (mu, 1, P)) + ridge).cavity()
    solution = theory.solve({alpha: 80 / found.N, l: found.variances, m: found.means, gamma: 1})
    size = float(solution[average(l[i] * w[i] ** 2)]) ** 0.5
    said = norm.cdf(-float(solution[average(m[i] * w[i])]) / size)

    def wrong(a, b):
        return np.mean(a != b)

    model = svm.SVC(kernel="linear", C=1)
    rng = np.random.default_rng(3)
    drawn = rng.choice([-1.0, 1.0], 4000)
    Z = drawn[:, None] * found.means / found.N + rng.normal(size=(4000, found.N)) * np.sqrt(found.variances / found.N)
    gaussian, stderr = learning(model, Z, drawn, 80, wrong, 100)
    assert said == pytest.approx(gaussian, rel=0.12, abs=3 * stderr)
    real, _ = learning(model, found.coordinates(X), labels, 80, wrong)
    assert real > 1.4 * said


def test_one_logistic_fit_corrects_its_own_bias():
    """The size of the fitted weights tells the size of the true ones, and by how much the fit is too large."""
    x, g, q = Coupling("x"), Symbol("g", positive=True), Symbol("q", positive=True)
    h, u = (Sum(x[mu, i] * v, (i, 1, N)) for v in (w[i], t[i]))
    label = Quenched("y", mu, law={1: 1 / (1 + exp(-g * u)), -1: 1 / (1 + exp(g * u))}, given=u)
    loss = Sum(log(1 + exp(-label[mu] * h)), (mu, 1, P))
    signs = {1: half, -1: half}

    published = ConvexProblem(loss).cavity().solve({alpha: 5, g: float(np.sqrt(5)), t: signs})
    factor = float(published[average(w[i] * t[i])]) / np.sqrt(5)
    width = np.sqrt(5 * (float(published[average(w[i] ** 2)]) - 5 * factor**2))
    assert (factor, width) == pytest.approx((1.4994, 4.7436), abs=6e-5)  # Sur and Candes, PNAS 116, 14516 (2019)

    rng = np.random.default_rng(5)
    n, d = 2500, 500
    X, truth = rng.normal(size=(n, d)) / np.sqrt(d), rng.normal(size=d) * np.sqrt(5)
    labels = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1, -1)
    fitted = linear.LogisticRegression(C=1e6, fit_intercept=False, max_iter=2000, tol=1e-8).fit(X, labels).coef_[0]
    size = float(fitted @ fitted / d)
    theory = ConvexProblem(loss, fixed=[Eq(average(w[i] ** 2), q)]).cavity()
    solution = theory.solve({alpha: n / d, q: size, t: signs})
    signal = float(solution[g])
    corrected = fitted / (float(solution[average(w[i] * t[i])]) / signal)
    slopes = [float(v @ truth / (truth @ truth)) for v in (fitted, corrected)]
    assert slopes[0] > 1.35
    assert slopes[1] == pytest.approx(1, abs=0.12)
    assert signal**2 == pytest.approx(truth @ truth / d, rel=0.2)


def test_bad_data_are_refused():
    good = np.random.default_rng(0).normal(size=(30, 3))
    for X, labels, words in (
        (good, np.zeros(4), "shapes"),
        (good[:, 0], np.zeros(30), "shapes"),
        (np.full((30, 3), np.nan), np.zeros(30), "not numbers"),
        (good[:3], np.zeros(3), "more data than directions"),
        (good, np.ones(30), "one class"),
        ("data", "labels", "arrays of numbers"),
    ):
        with pytest.raises(ValuesError) as caught:
            spectrum(X, labels)
        assert words in str(caught.value)
