"""The scatter between instances where parameters are given site by site, and so are the same in all of them."""

from importlib import import_module

import numpy as np
import pytest
from sympy import Abs, Rational, Sum, Symbol, exp, log

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, UnsupportedLaw, alpha, average, i, mu
from symcavity.method import crossed

x, w, t, c = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("c", i)
y, gamma = Quenched("y", mu), Symbol("gamma", positive=True)
HALF = Rational(1, 2)
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
error = average((w[i] - t[i]) ** 2)
POWER = import_module("derivations.power_laws")


@pytest.fixture(scope="module")
def ridge():
    return ConvexProblem(Sum(Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) ** 2, (mu, 1, P)) / 2 + weights).cavity()


def test_equal_values_at_all_sites_are_a_law_of_one_value(ridge):
    by_law = ridge.solve({alpha: 2, gamma: HALF, t: {1: 1}})
    by_site = ridge.solve({alpha: 2, gamma: HALF, t: [1] * 6})
    for what in ("objective", error, average(w[i] * t[i])):
        assert float(by_site.variance(what)) == pytest.approx(float(by_law.variance(what)), rel=1e-11), what


def test_a_teacher_that_is_the_same_in_all_instances_scatters_less(ridge):
    """3000 instances with the weights 0 and 2 of a teacher at half of the sites each, beside those that are drawn."""
    n, count, rows = 60, 3000, {"held": [], "drawn": []}
    rng = np.random.default_rng(3)
    for _ in range(count):
        data = rng.standard_normal((2 * n, n)) / np.sqrt(n)
        fit = np.linalg.solve(data.T @ data + np.eye(n) / 2, data.T @ data)
        for name, teacher in (("held", np.repeat([0.0, 2.0], n // 2)), ("drawn", rng.choice([0.0, 2.0], size=n))):
            found = fit @ teacher
            rest = data @ (found - teacher)
            rows[name].append(((rest @ rest + found @ found / 2) / 2 / n, np.mean((found - teacher) ** 2)))
    for name, law in (("held", [0, 2] * 3), ("drawn", {0: HALF, 2: HALF})):
        solution = ridge.solve({alpha: 2, gamma: HALF, t: law})
        seen = n * np.var(rows[name], axis=0, ddof=1)
        expected = np.array([float(solution.variance(what)) for what in ("objective", error)])
        assert np.all(abs(seen - expected) < (4 * np.sqrt(2 / count) + 2 / n) * expected), name


def scattered(modes, repeats, count):
    """The variances of the error, and of the squared weights, of fits to modes each of which stands several times."""
    strength = np.repeat(1 / np.arange(1.0, modes + 1) ** 2, repeats) / repeats
    n, rows = len(strength), []
    rng = np.random.default_rng([4, repeats])
    for _ in range(count):
        data = rng.standard_normal((n // 2, n)) * np.sqrt(strength)
        fit = np.linalg.solve(data.T @ data + np.eye(n) / 100, data.T @ data @ np.ones(n))
        rows.append((np.sum(strength * (fit - 1) ** 2), np.mean(fit**2)))
    return np.var(rows, axis=0, ddof=1)


def power_law(modes, repeats):
    own = [Rational(1, k**2 * repeats) for k in range(1, modes + 1) for _ in range(repeats)]
    teacher = [1] * len(own)
    return POWER.problem.cavity().solve(
        {P: len(own) // 2, POWER.gamma: Rational(1, 100), POWER.l: own, POWER.t: teacher}
    )


def test_sums_over_modes_whose_strengths_are_given():
    """A mode that stands five times has a fifth of its strength each; the error is a sum over all of them."""
    solution, n, count = power_law(20, 5), 100, 2000
    whole = Sum(POWER.l[i] * (POWER.w[i] - POWER.t[i]) ** 2, (i, 1, N))
    squares = average(POWER.w[i] ** 2)
    expected = np.array([float(solution.variance(what)) / n for what in (whole, squares)])
    assert np.all(abs(scattered(20, 5, count) - expected) < (4 * np.sqrt(2 / count) + 0.03) * expected)
    mean = average(POWER.l[i] * (POWER.w[i] - POWER.t[i]) ** 2)
    assert float(solution.variance(mean)) * n**2 == pytest.approx(float(solution.variance(whole)), rel=1e-12)
    assert float(solution.variance("E_g")) == pytest.approx(float(solution.variance(whole)), rel=1e-12)


def test_an_overlap_that_is_a_sum_is_known_by_its_average(monkeypatch):
    """The sabotage: the overlap of two copies is no function of the sum."""
    expected = float(power_law(20, 5).variance("E_g"))
    monkeypatch.setattr(crossed, "named_averages", lambda _: {})
    declared = POWER.problem
    problem = ConvexProblem(declared.minimize, name="Once more")
    own = [Rational(1, k**2 * 5) for k in range(1, 21) for _ in range(5)]
    values = {P: 50, POWER.gamma: Rational(1, 100), POWER.l: own, POWER.t: [1] * 100}
    solution = problem.cavity().solve(values)
    found = float(solution.variance(Sum(POWER.l[i] * (POWER.w[i] - POWER.t[i]) ** 2, (i, 1, N))))
    assert abs(found / expected - 1) > 0.1


def test_sparse_fits_scatter_as_instances_with_the_same_teacher_do():
    rest = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    problem = ConvexProblem(Sum(rest**2, (mu, 1, P)) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N)))
    values = {alpha: 2, gamma: HALF, t: [0, 0, 0, 2] * 10}
    simulation = problem.simulate(values, N=40, seeds=80)
    table = problem.cavity().compare(simulation, ["objective", error], scatter=True)
    assert all(abs(row.scatter.z) < 4 for row in table)


def test_labels_of_given_signs_are_a_symmetry_of_the_patterns():
    """Laws that are not solved by formulas: the minimum of a site does not know its label."""
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    theory = ConvexProblem(Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + weights).cavity()
    by_law = theory.solve({alpha: 2, gamma: HALF, y: {1: HALF, -1: HALF}})
    by_site = theory.solve({alpha: 2, gamma: HALF, y: [1, -1, 1, -1]})
    for what in ("objective", average(w[i] ** 2)):
        assert float(by_site.variance(what)) == pytest.approx(float(by_law.variance(what)), rel=1e-9), what


def test_what_is_drawn_beside_what_is_given_site_by_site_is_refused():
    rest = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    theory = ConvexProblem(Sum(rest**2, (mu, 1, P)) / 2 + Sum(c[i] * w[i] ** 2, (i, 1, N))).cavity()
    solution = theory.solve({alpha: 2, t: [0, 2], c: {1: HALF, 2: HALF}})
    with pytest.raises(UnsupportedLaw, match="t is given site by site, and c of the same feature sites is drawn"):
        solution.variance("objective")
