"""Algebraic expressions as quotients of polynomials: zeros that are proved, and common factors."""

from functools import reduce

import pytest
from sympy import Rational, S, exp, pi, sqrt, symbols

from symcavity.algebra.quotients import cancelled, vanishes
from symcavity.algebra.signs import is_zero, tidy

x, y = symbols("x y", real=True)
a, b, c = symbols("a b c", positive=True)


@pytest.mark.parametrize(
    "expr",
    [
        S.Zero,
        1 / (x - y) - 1 / (x + y) - 2 * y / (x**2 - y**2),
        (1 + sqrt(x**2 + y)) * (1 - sqrt(x**2 + y)) - 1 + x**2 + y,
        1 / (1 + sqrt(x**2 + 1)) - (sqrt(x**2 + 1) - 1) / x**2,
        (1 + sqrt(1 + a)) ** 2 - 2 - a - 2 * sqrt(1 + a),
        sqrt(1 + sqrt(1 + a)) ** 3 - (1 + sqrt(1 + a)) * sqrt(1 + sqrt(1 + a)),
        sqrt(2) * (1 + sqrt(2)) - 2 - sqrt(2),
        (a + sqrt(a) * sqrt(b)) / (sqrt(a) + sqrt(b)) - sqrt(a),
        (a + b) / sqrt(a + b) - sqrt(a + b),
        pi * exp(x) / (1 + exp(x)) + pi / (1 + exp(x)) - pi,
    ],
)
def test_what_is_zero_is_proved_and_what_is_not_is_not(expr):
    assert vanishes(expr)
    assert not vanishes(expr + Rational(1, 10**9))
    assert not vanishes(expr + a - b)


def test_where_a_denominator_vanishes_nothing_is_said():
    assert not vanishes((x - y) / ((x + y) ** 2 - x**2 - 2 * x * y - y**2))


def test_quotients_are_not_multiplied_out():
    """The value of a jump of 24 continuous hinges at their common place: expanded, it has two to the 24 terms."""
    names = symbols("s:24", positive=True)
    slopes = [1 / (1 + s) for s in names]
    place = x / (a + b * y) + c
    jump = reduce(lambda p, s: p * (s * (place - c) + y), slopes, S.One)
    other = reduce(lambda p, s: p * (x / ((a + b * y) * (1 + s)) + y), names, S.One)
    assert is_zero(jump - other)
    assert tidy(jump - other) == 0
    assert not is_zero(jump - other + 1 / (a + b))


def test_common_factors_are_cancelled():
    for expr, expected in (
        ((x**2 - y**2) / (2 * x - 2 * y), x / 2 + y / 2),
        (1 / (1 + x) + x / (1 + x), S.One),
        ((a - b) / (sqrt(a) + sqrt(b)), sqrt(a) - sqrt(b)),
        (exp(x) / (exp(x) * y + exp(x)) - 3 / (2 + 2 * y), -1 / (2 * y + 2)),
    ):
        assert cancelled(expr).expand() == expected.expand()
        assert vanishes(cancelled(expr + c) - expected - c)
    assert cancelled(x / (a + b) + 1 / (a + b) ** 2).equals(x / (a + b) + 1 / (a + b) ** 2)
