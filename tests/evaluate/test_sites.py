"""Laws of quenched parameters."""

import numpy as np
import pytest
from scipy import stats
from sympy import Max, Rational, Sum, Symbol, exp
from sympy.stats import (
    Bernoulli,
    Beta,
    DiscreteUniform,
    Exponential,
    Gamma,
    Laplace,
    LogNormal,
    Normal,
    StudentT,
    Uniform,
)

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, ValuesError, alpha, average, i, mu
from symcavity import response as response_of
from symcavity.evaluate.averages.densities import rule
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.evaluate.numbers import exact_value
from symcavity.model.kinds import DATUM, FEATURE

a, l, y = Quenched("a", i), Quenched("l", i), Quenched("y", mu)


@pytest.mark.parametrize(
    ("variable", "law"),
    [
        (Uniform("u", -1, 3), stats.uniform(-1, 4)),
        (Normal("n", 2, 3), stats.norm(2, 3)),
        (Exponential("e", 2), stats.expon(scale=0.5)),
        (Gamma("g", Rational(1, 2), 2), stats.gamma(0.5, scale=2)),
        (Beta("b", 2, 3), stats.beta(2, 3)),
    ],
    ids=lambda v: getattr(v, "name", None),
)
def test_nodes_give_moments(variable, law):
    nodes, weights = rule(variable, 0)
    for order in (1, 2, 4):
        assert np.sum(weights * nodes**order) == pytest.approx(law.moment(order), rel=1e-9)


@pytest.mark.parametrize(
    ("variable", "law"),
    [
        (Normal("n", 0, 1), stats.norm()),
        (Normal("n", 1, 1), stats.norm(1)),
        (Laplace("p", 0, 1), stats.laplace()),
        (Laplace("p", 1, 2), stats.laplace(1, 2)),
        (StudentT("s", 3), stats.t(3)),
        (Uniform("u", -1, 3), stats.uniform(-1, 4)),
        (LogNormal("g", 0, 1), stats.lognorm(1)),
    ],
    ids=["normal", "shifted", "laplace", "wide laplace", "student", "uniform", "lognormal"],
)
def test_kinks_at_zero_and_heavy_tails(variable, law):
    """What is broken at zero, and the second moment of a law whose fourth one diverges."""
    nodes, weights = rule(variable, 1)
    assert np.all(nodes != 0)
    for f in (np.abs, lambda v: np.maximum(0, v) / (1 + v * v), lambda v: (v > 0) * np.exp(-abs(v))):
        parts = [law.expect(f, lb=a, ub=b, epsabs=1e-12, limit=200) for a, b in ((-np.inf, 0), (0, np.inf))]
        assert weights @ f(nodes) == pytest.approx(sum(parts), rel=1e-9)
    assert weights @ nodes**2 == pytest.approx(law.moment(2), rel=1e-10)


def test_averages_that_diverge_one_by_one():
    """A hinge whose label is Gaussian: each branch holds 1/y**2, whose average over the density is infinite."""
    w, x, C = Feature("w"), Coupling("x"), Symbol("C", positive=True)
    hinge = Max(0, 1 - y[mu] * Sum(x[mu, i] * w[i], (i, 1, N)))
    theory = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(hinge, (mu, 1, P))).cavity()
    values = {alpha: 1, C: 2, y: Normal("n", 0, 1)}
    solution, exact = theory.solve(values), theory.solve(values, dps=20)
    size, response = (float(solution[k]) for k in (average(w[i] ** 2), average(response_of(w[i]))))
    field, label = np.meshgrid(*2 * [np.linspace(-8, 8, 3200) + 0.0012])
    weight = np.exp(-(field**2 + label**2) / 2) / 2 / np.pi * (16 / 3199) ** 2
    message = np.clip((1 - label * np.sqrt(size) * field) / response / label**2, 0, 2) * label
    slope = -1.0 * ((message != 0) & (abs(message) < 2 * abs(label))) / response
    by_hand = 1 / (1 - np.sum(weight * slope))
    assert response == pytest.approx(by_hand, rel=2e-3)
    assert size == pytest.approx(np.sum(weight * message**2) * by_hand**2, rel=2e-3)
    assert size == pytest.approx(float(exact[average(w[i] ** 2)]), rel=1e-10)


def test_arrays_pair_and_laws_are_independent():
    laws = read_quenched([a, l, y], {a: [1, 2], l: [3, 5], y: {1: "1/3", -1: "2/3"}}, 30)
    assert laws[FEATURE].points == [(1, 3), (2, 5)]
    assert laws[DATUM].weights == [Rational(1, 3), Rational(2, 3)]
    mixed = read_quenched([a, l], {a: [1, 2], l: {7: "1/2", 8: "1/2"}}, 30)[FEATURE]
    assert sorted(mixed.points) == [(7, 1), (7, 2), (8, 1), (8, 2)]
    assert sum(mixed.weights) == 1


@pytest.mark.parametrize("variable", [DiscreteUniform("d", [1, 2, 3]), Bernoulli("b", Rational(1, 3))])
def test_finite_distributions_are_exact(variable):
    law = read_quenched([l], {l: variable}, 30)[FEATURE]
    assert not law.continuous
    assert sum(law.weights) == 1


def test_declared_law():
    sides = Quenched("s", mu, law={1: Rational(1, 4), 3: Rational(3, 4)})
    assert read_quenched([sides], {}, 30)[DATUM].points == [(1,), (3,)]


def test_values_that_are_not_asked_for_are_not_read():
    u = Sum(Coupling("x")[mu, i] * l[i], (i, 1, N))
    label = Quenched("s", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    given = {l: {1: 1}, label: dict(label.law)}  # its weights are formulas of a field
    assert read_quenched([l], given, 30)[FEATURE].points == [(1,)]
    with pytest.raises(ValuesError, match="weight of s"):
        read_quenched([label], given, 30)


def test_large_arrays_are_not_walked():
    law = read_quenched([l], {l: np.ones(1_000_000)}, 15)[FEATURE]
    assert law.count == 1_000_000
    assert law.points == [()]


@pytest.mark.parametrize("value", [True, "x", "1/0", float("inf"), 1j, None, object()])
def test_no_numbers(value):
    with pytest.raises(ValuesError):
        exact_value(value, "x", 15)
