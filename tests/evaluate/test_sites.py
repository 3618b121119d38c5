"""Laws of quenched parameters."""

import numpy as np
import pytest
from scipy import stats
from sympy import Rational
from sympy.stats import Bernoulli, Beta, DiscreteUniform, Exponential, Gamma, Normal, Uniform

from symcavity import Quenched, ValuesError, i, mu
from symcavity.evaluate.densities import rule
from symcavity.evaluate.quenched import exact_value, read_quenched
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


def test_arrays_pair_and_laws_are_independent():
    laws = read_quenched([a, l, y], {a: [1, 2], l: [3, 5], y: {1: "1/3", -1: "2/3"}}, 30, {})
    assert laws[FEATURE].points == [(1, 3), (2, 5)]
    assert laws[DATUM].weights == [Rational(1, 3), Rational(2, 3)]
    mixed = read_quenched([a, l], {a: [1, 2], l: {7: "1/2", 8: "1/2"}}, 30, {})[FEATURE]
    assert sorted(mixed.points) == [(7, 1), (7, 2), (8, 1), (8, 2)]
    assert sum(mixed.weights) == 1


@pytest.mark.parametrize("variable", [DiscreteUniform("d", [1, 2, 3]), Bernoulli("b", Rational(1, 3))])
def test_finite_distributions_are_exact(variable):
    law = read_quenched([l], {l: variable}, 30, {})[FEATURE]
    assert not law.continuous
    assert sum(law.weights) == 1


def test_declared_law():
    sides = Quenched("s", mu, law={1: Rational(1, 4), 3: Rational(3, 4)})
    assert read_quenched([sides], {}, 30, {})[DATUM].points == [(1,), (3,)]


def test_large_arrays_are_not_walked():
    law = read_quenched([l], {l: np.ones(1_000_000)}, 15, {})[FEATURE]
    assert law.count == 1_000_000
    assert law.points == [()]


@pytest.mark.parametrize("value", [True, "x", "1/0", float("inf"), 1j, None, object()])
def test_no_numbers(value):
    with pytest.raises(ValuesError):
        exact_value(value, "x", 15)
