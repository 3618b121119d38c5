"""The variance of the minimum between instances, against random matrices, hand integrals and instances."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, exp, log
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
)
from symcavity.derivations import competing_species, manifold, soft_margin
from symcavity.method.fluctuations import single_site_minima, variance_of_minimum

x, w = Coupling("x"), Feature("w")
y, t = Quenched("y", mu), Quenched("t", i)
gamma = Symbol("gamma", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2


def fit(residual, loss, penalty):
    return ConvexProblem(Sum(loss(residual), (mu, 1, P)) + penalty)


def variance(problem, values, dps=15):
    theory = problem.cavity()
    return theory.solve(values, dps=dps).variance("objective")


def test_ridge_on_noise_is_a_trace_of_random_matrices():
    """With labels of variance one, E = y'(1 + XX'/gamma)^-1 y/2, so that Var(E) = tr(A^2)/2 to leading order."""
    load, ridge = mpmath.mpf(2), mpmath.mpf(1) / 3
    with mpmath.workdps(30):
        low, high = (1 - mpmath.sqrt(load)) ** 2, (1 + mpmath.sqrt(load)) ** 2

        def density(s):  # eigenvalues of X'X per feature
            return mpmath.sqrt((high - s) * (s - low)) / (2 * mpmath.pi * s)

        trace = mpmath.quad(lambda s: density(s) / (1 + s / ridge) ** 2, [low, (low + high) / 2, high])
        expected = (load - 1 + trace) / 2
    problem = fit(y[mu] - heard, lambda r: r**2 / 2, gamma * weights)
    found = variance(problem, {gamma: Rational(1, 3), alpha: 2, y: Normal("y", 0, 1)}, dps=20)
    assert found == pytest.approx(expected, rel=1e-14)


def test_a_teacher_of_signs():
    """By hand: alpha 2 M_d^2 + Var M_f - e alpha tau^2/(1 + S)^2, in fifteen digits."""
    problem = fit(y[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N)), lambda r: r**2 / 2, gamma * weights)
    law = {1: Rational(1, 2), -1: Rational(1, 2)}
    values = {gamma: Rational(1, 3), alpha: 2, y: Normal("y", 0, Rational(1, 2)), t: law}
    assert float(variance(problem, values)) == pytest.approx(0.0468459485688306, rel=1e-12)


@pytest.mark.parametrize(
    ("problem", "values", "expected"),
    [
        (soft_margin.problem, {soft_margin.C: Rational(3, 4), alpha: Rational(5, 2)}, 0.237132347125263),
        (ConvexProblem(weights, [heard >= 1]), {alpha: Rational(4, 5)}, 8.70269699851088),
    ],
)
def test_margins(problem, values, expected):
    """The hand integrals over single sites, in fifteen digits."""
    assert float(variance(problem, values)) == pytest.approx(expected, rel=1e-12)


def test_lasso():
    """A sparse teacher of signs with noise: the hand integral in fifteen digits."""
    residual = y[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))
    problem = fit(residual, lambda r: r**2 / 2, gamma * Sum(Abs(w[i]), (i, 1, N)))
    law = {1: Rational(1, 10), -1: Rational(1, 10), 0: Rational(4, 5)}
    noise = Normal("y", 0, Rational(1, 10) ** Rational(1, 2))
    found = variance(problem, {gamma: Rational(1, 5), alpha: Rational(4, 5), y: noise, t: law})
    assert float(found) == pytest.approx(0.00460886593799773, rel=1e-10)


def test_a_variance_that_differs_from_site_to_site():
    """A weight per feature in the couplings is one in the penalty: the same problem in other units."""
    scale = Quenched("s", i, positive=True)
    z = Coupling("z", variance=scale[i] / N)
    law = {scale: {Rational(1, 2): Rational(1, 2), Rational(3, 2): Rational(1, 2)}}
    values = {alpha: Rational(3, 2), y: Normal("y", 0, 1), **law}
    one = fit(y[mu] - Sum(z[mu, i] * w[i], (i, 1, N)), lambda r: r**2 / 2, weights)
    other = fit(y[mu] - heard, lambda r: r**2 / 2, Sum(w[i] ** 2 / scale[i], (i, 1, N)) / 2)
    assert variance(one, values) == pytest.approx(variance(other, values), rel=1e-12)


def test_instances_scatter_as_much():
    """A smooth and a bent loss together, in 2000 instances with exact minima by their linear equations."""
    size, load, ridge = 40, 2, 0.5
    rng, minima = np.random.default_rng(5), []
    for _ in range(2000):
        data = rng.standard_normal((load * size, size)) / np.sqrt(size)
        labels = rng.choice([-1.0, 2.0], load * size)
        found = np.linalg.solve(data.T @ data + ridge * np.eye(size), data.T @ labels)
        minima.append(np.sum((labels - data @ found) ** 2) / 2 + ridge * found @ found / 2)
    scatter = np.var(minima, ddof=1) / size
    problem = fit(y[mu] - heard, lambda r: r**2 / 2, gamma * weights)
    law = {-1: Rational(1, 2), 2: Rational(1, 2)}
    theory = float(variance(problem, {gamma: Rational(1, 2), alpha: load, y: law}))
    kurtosis = np.mean((minima - np.mean(minima)) ** 4) / np.var(minima) ** 2
    assert abs(scatter - theory) < 4 * scatter * np.sqrt((kurtosis - 1) / 2000) + theory / size
    naive = float(variance_without_edges(problem, {gamma: Rational(1, 2), alpha: load, y: law}))
    assert abs(scatter - naive) > 10 * scatter * np.sqrt((kurtosis - 1) / 2000)


def variance_without_edges(problem, values):
    """The negative control: the sum over kinds alone."""
    theory = problem.cavity()
    solution = theory.solve(values)
    minima = single_site_minima(theory)
    return sum(
        float(solution[k.ratio]) * float(solution[average(m**2)] - solution[average(m)] ** 2)
        for k, m in minima.items()
    )


def test_refusals_say_why():
    for theory, words in [
        (competing_species.problem.cavity(), "has no objective"),
        (soft_margin.problem.naive(), "naive"),
        (manifold.problem.cavity(), "vector field"),
    ]:
        with pytest.raises(UnsupportedLaw, match=words):
            variance_of_minimum(theory)


@pytest.mark.parametrize("size", [25, 50])
def test_the_minimum_of_a_logistic_regression_scatters_as_instances_do(size):
    """By Newton's method on 1500 data sets; labels are a symmetry of the patterns."""
    rng, found, penalty = np.random.default_rng(size), [], 0.2
    for _ in range(1500):
        data, found_at = rng.standard_normal((2 * size, size)) / np.sqrt(size), np.zeros(size)
        for _ in range(50):
            wrong = 1 / (1 + np.exp(data @ found_at))
            force = penalty * found_at - data.T @ wrong
            if abs(force).max() < 1e-10:
                break
            found_at -= np.linalg.solve((data.T * (wrong * (1 - wrong))) @ data + penalty * np.eye(size), force)
        found.append(np.log1p(np.exp(-data @ found_at)).sum() + penalty * found_at @ found_at / 2)
    seen = np.var(found, ddof=1) / size
    objective = Sum(log(1 + exp(-y[mu] * heard)), (mu, 1, P)) + gamma * weights
    values = {alpha: 2, gamma: Rational(1, 5), y: {1: Rational(1, 2), -1: Rational(1, 2)}}
    known = float(ConvexProblem(objective).cavity().solve(values).variance())
    assert abs(seen - known) < 4 * seen * np.sqrt(2 / 1500) + known / size


def lasso():
    """A sparse teacher with noise, at an absolute penalty."""
    residual = y[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))
    problem = fit(residual, lambda r: r**2 / 2, gamma * Sum(Abs(w[i]), (i, 1, N)))
    law = {0: Rational(3, 4), 2: Rational(1, 8), -2: Rational(1, 8)}
    return problem, {gamma: Rational(1, 4), alpha: Rational(3, 2), y: Normal("y", 0, Rational(1, 2)), t: law}


def margins():
    """Soft margins of random labels."""
    return soft_margin.problem, {soft_margin.C: Rational(3, 4), alpha: Rational(5, 2)}


@pytest.mark.parametrize("made", [lasso, margins])
def test_minima_with_kinks_scatter_as_instances_do(made):
    """Instances whose minima the package finds on their active sets; what the edges take away is seen in them."""
    problem, values = made()
    known = float(problem.cavity().solve(values).variance("objective"))
    minima = np.ravel(problem.simulate(values, N=50, seeds=300).objective.samples)
    seen = 50 * np.var(minima, ddof=1)
    kurtosis = np.mean((minima - minima.mean()) ** 4) / np.var(minima) ** 2
    error = seen * np.sqrt((kurtosis - 1) / len(minima))
    assert abs(seen - known) < 4 * error + known / 50
    assert abs(seen - float(variance_without_edges(problem, values))) > 4 * error


@pytest.fixture(scope="module")
def network():
    """Readouts of linear hidden units that learn from a teacher with noise: three kinds of sites, two couplings."""
    a, K = Sites("a", "K", "hidden unit")
    F, v, s = Coupling("F", between=(a, i)), Variable("v", a), Variable("s", i)
    residual = y[mu] + Sum(x[mu, i] * (t[i] - s[i]), (i, 1, N))
    made = [Eq(s[i], Sum(F[a, i] * v[a], (a, 1, K)))]
    loss = Sum(residual**2, (mu, 1, P)) / 2 + gamma * Sum(v[a] ** 2, (a, 1, K)) / 2
    law = {1: Rational(1, 2), -1: Rational(1, 2)}
    sizes = {alpha: Rational(3, 2), K / N: Rational(1, 2), gamma: Rational(1, 2)}
    return ConvexProblem(loss, made), {**sizes, t: law, y: Normal("y", 0, Rational(1, 2))}


def test_the_minimum_of_a_network_with_a_teacher_scatters_as_instances_do(network):
    """4000 instances with exact minima by their linear equations; what the edges take away is seen in them."""
    problem, values = network
    size, rng, minima = 40, np.random.default_rng(7), []
    for _ in range(4000):
        data, mixing = rng.standard_normal((60, size)) / np.sqrt(size), rng.standard_normal((20, size)) / np.sqrt(size)
        labels = data @ rng.choice([-1.0, 1.0], size) + rng.standard_normal(60) / 2
        design = data @ mixing.T
        fit = np.linalg.solve(design.T @ design + np.eye(20) / 2, design.T @ labels)
        minima.append((labels - design @ fit) @ labels / 2)
    seen = np.var(minima, ddof=1) / size
    kurtosis = np.mean((minima - np.mean(minima)) ** 4) / np.var(minima) ** 2
    error = seen * np.sqrt((kurtosis - 1) / len(minima))
    known = float(problem.cavity().solve(values).variance("objective"))
    assert abs(seen - known) < 3 * error + known / size
    assert abs(seen - float(variance_without_edges(problem, values))) > 20 * error


def test_the_minimum_of_a_logistic_regression_by_six_thousand_instances_of_each_size():
    """What ``logistic_minima.py`` printed: at 25, 50 and 100 weights, with a term of order 1/N that is small."""
    objective = Sum(log(1 + exp(-heard)), (mu, 1, P)) + gamma * weights
    known = float(ConvexProblem(objective).cavity().solve({alpha: 2, gamma: Rational(1, 5)}).variance())
    sizes, errors = np.array([25, 50, 100]), np.array([0.00252, 0.00281, 0.00273])
    seen = np.array([0.14334, 0.15417, 0.14755])
    design = np.stack([np.ones(3), 1 / sizes], axis=1) / errors[:, None]
    spread = np.linalg.inv(design.T @ design)
    limit, slope = spread @ design.T @ (seen / errors)
    assert abs(limit - known) < 3 * np.sqrt(spread[0, 0])
    assert abs(slope) < known + 3 * np.sqrt(spread[1, 1])
    assert np.sum(((seen - limit - slope / sizes) / errors) ** 2) < 9
    assert abs(limit - 1.1 * known) > 2 * np.sqrt(spread[0, 0])
