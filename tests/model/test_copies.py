"""Copies of a problem that share their couplings in part: hand formulas, instances, the variance of the minimum."""

import numpy as np
import pytest
from sympy import Abs, Eq, Rational, Sum, Symbol, exp
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, DeclarationError, Feature, Global, N, P, Quenched, alpha, average, i, mu
from symcavity.derivations import gardner, soft_margin

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
u, gamma = Symbol("u", nonnegative=True), Symbol("gamma", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
ridge = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * weights)
AT = {gamma: Rational(1, 3), alpha: 2}
ONE = Normal("y", 0, 1)


def overlap(problem, values):
    first, second = problem["w_1"], problem["w_2"]
    solution = problem.cavity().solve(values)
    return [float(solution[average(a[i] * b[i])]) for a, b in ((first, first), (first, second), (second, second))]


@pytest.mark.parametrize("shared", ["0", "2/5", "9/10", "1"])
def test_ridge_by_hand(shared):
    """``w = S zeta`` and ``lambda = (y - eta)/(1 + S)`` close in one line."""
    share = float(Rational(shared))
    (response,) = (s for s in np.roots([1 / 3, 1 / 3 + 2 - 1, -1]) if s > 0)
    first, both, second = overlap(ridge.copies(2, share={x: u}), {**AT, u: shared, y: ONE})
    scale = 2 * response**2
    assert first == pytest.approx(scale / ((1 + response) ** 2 - scale), rel=1e-12)
    assert second == pytest.approx(first, rel=1e-12)
    assert both == pytest.approx(scale * share / ((1 + response) ** 2 - scale * share**2), rel=1e-12, abs=1e-15)


def test_other_labels_on_the_same_data():
    """Independent labels: the overlap is that of two independent drives of one linear map, zero on average."""
    copies = ridge.copies(2, share={y: 0})
    first, both, _ = overlap(copies, {**AT, Quenched("y_1", mu): ONE, Quenched("y_2", mu): ONE})
    assert first > 0.4
    assert abs(both) < 1e-12


def test_another_penalty_on_the_same_data():
    """Two ridges on one data set against 60 instances."""
    copies = ridge.copies(2, share={gamma: 0})
    one, other = Symbol("gamma_1", positive=True), Symbol("gamma_2", positive=True)
    _, both, _ = overlap(copies, {one: Rational(1, 3), other: 2, alpha: 2, y: ONE})
    rng, found = np.random.default_rng(3), []
    for _ in range(60):
        data, labels = rng.standard_normal((160, 80)) / np.sqrt(80), rng.standard_normal(160)
        fits = [np.linalg.solve(data.T @ data + g * np.eye(80), data.T @ labels) for g in (1 / 3, 2)]
        found.append(fits[0] @ fits[1] / 80)
    assert abs(np.mean(found) - both) < 4 * np.std(found) / np.sqrt(60)


def test_the_steps_of_the_martingale_add_up_to_the_variance():
    """``dCov(E, E')/du = N alpha <lambda lambda'> <w w'>``, as Gaussian couplings are interpolated."""
    copies = soft_margin.problem.copies(2, share={soft_margin.x: u})
    theory, at = copies.cavity(), {soft_margin.C: Rational(3, 4), alpha: Rational(5, 2)}
    overlaps = average(copies["w_1"][i] * copies["w_2"][i]), average(copies["lambda"][mu] * copies["lambda_2"][mu])
    nodes, rule = np.polynomial.legendre.leggauss(6)
    total = 0.0
    for v, weight in zip((nodes + 1) / 2, rule / 2, strict=True):  # u = 1 - v^2: overlaps leave u = 1 like a root
        solution = theory.solve({**at, u: float(1 - v * v)})
        total += weight * 2 * v * 2.5 * float(solution[overlaps[0]]) * float(solution[overlaps[1]])
    assert total == pytest.approx(float(soft_margin.problem.cavity().solve(at).variance()), rel=2e-5)


def test_names_of_a_copy():
    b, t = Global("b"), Quenched("t", i)
    field = Sum(x[mu, i] * t[i], (i, 1, N))
    label = Quenched("s", mu, law={1: 1 / (1 + exp(-field)), -1: 1 / (1 + exp(field))}, given=field)
    margins = ConvexProblem(weights + Sum(Abs(heard + b - label[mu]), (mu, 1, P)))
    text = str(margins.copies(3, share={x: 0}))
    assert all(name in text for name in ("w_3[i]", "b_2", "x_1[mu, i]", "s_3[mu]"))
    assert "x_1[mu, i]" not in str(margins.copies(2))
    assert "s_1" not in str(margins.copies(2, share={t: 1}))


taken = ConvexProblem(Symbol("w_1", positive=True) * weights, [Eq(heard, 1)])


@pytest.mark.parametrize(
    ("problem", "count", "share", "words"),
    [
        (ridge, 1, {}, "two copies or more"),
        (ridge, 2, {Coupling("z"): 0}, "not in the problem"),
        (ridge, 2, {y: u}, "each copy has its own"),
        (ridge, 2, {x: 2}, "between 0 and 1"),
        (ridge, 2, {x: "half"}, "share of x"),
        (ridge, 2, [x], "shares"),
        (gardner.problem, 2, {}, "fixes"),
        (taken, 2, {}, "a name of the problem"),
    ],
)
def test_refusals(problem, count, share, words):
    with pytest.raises(DeclarationError, match=words):
        problem.copies(count, share)
