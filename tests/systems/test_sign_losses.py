"""Losses that jump through signs of a field, at zero temperature: equal to those that jump through steps."""

import pytest
from sympy import Heaviside, Piecewise, Rational, Sum, sign

from symcavity import Coupling, Feature, N, P, Problem, Quenched, alpha, average, i, mu

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
h = Sum(x[mu, i] * w[i], (i, 1, N))
half = Rational(1, 2)
square = Sum(w[i] ** 2, (i, 1, N)) / 2
MARGINS = [
    (y[mu] - sign(h - half * y[mu])) ** 2,
    (y[mu] * sign(h - half * y[mu]) - 1) ** 2,
    2 - 2 * sign(y[mu] * h - half),
    Piecewise((4, y[mu] * h < half), (0, True)),
]


def lowest(loss, load):
    theory = Problem(Sum(loss, (mu, 1, P)) + square).cavity()
    found = theory.solve({alpha: load})
    return float(found[average(w[i] ** 2)]), float(found[theory.free_energy])


@pytest.mark.filterwarnings("ignore::symcavity.UnstableSolution")
@pytest.mark.parametrize("loss", MARGINS)
def test_errors_of_a_margin_are_those_of_steps(loss):
    power, energy = lowest(4 * Heaviside(half - y[mu] * h), half)
    assert lowest(loss, half) == pytest.approx((power, energy), rel=1e-10)
    assert energy == pytest.approx(power / 2 + 4 * half * counted(), rel=1e-8)


def counted():
    """The share of errors with this margin, as an event of the solution."""
    theory = Problem(Sum(4 * Heaviside(half - y[mu] * h), (mu, 1, P)) + square).cavity()
    return float(theory.solve({alpha: half})[average(Heaviside(half - y[mu] * h))])


@pytest.mark.filterwarnings("ignore::symcavity.UnstableSolution")
def test_a_sign_without_labels_has_the_lower_value_on_its_jump():
    by_steps = lowest(4 * Heaviside(1 - h), half)
    assert lowest((1 - sign(h - 1)) ** 2, half) == pytest.approx(by_steps, rel=1e-10)
    assert by_steps[1] < 2  # of no weights, at which all are errors


@pytest.mark.parametrize("loss", [(y[mu] - sign(h)) ** 2, 1 - y[mu] * sign(h), 4 * Heaviside(-y[mu] * h)])
def test_small_weights_make_no_error_below_capacity(loss):
    """The direction of the weights alone decides on errors: their infimum beside a penalty is that without one."""
    assert lowest(loss, half) == (0, 0)
