"""Expressions of thousands of parts have code: Python's compiler goes down one level for each part of a line."""

import math

import numpy as np
import pytest
from sympy import Add, Max, Mul, Piecewise, Symbol, exp

from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import Pass

X = Symbol("x", positive=True)
COUNT = 3000
AT = 0.7
NUMBERS = range(1, COUNT + 1)


def _power(k: int) -> float:
    return AT ** (1 + 1 / k)


LONG = {
    "sum": (Add(*(X ** (1 + Add(1) / k) for k in NUMBERS)), math.fsum(map(_power, NUMBERS))),
    "product": (
        Mul(*(1 + X ** (k % 50 + 2) / (k**2 + 1) for k in range(1, 150))),
        math.exp(math.fsum(math.log1p(AT ** (k % 50 + 2) / (k**2 + 1)) for k in range(1, 150))),
    ),
    "largest": (
        Max(*(k * X - Add(k) ** 2 / 400 for k in range(1, 400)), evaluate=False),
        max(k * AT - k**2 / 400 for k in range(1, 400)),
    ),
    "cases": (
        Piecewise(*((exp(-X * k), Add(k) / 1000 > X) for k in range(1, 900)), (1, True), evaluate=False),
        math.exp(-AT * 701),
    ),
}


@pytest.mark.parametrize("name", LONG)
def test_long_expressions_have_code(name):
    expr, expected = LONG[name]
    (value,), ((slope,),) = (run := Pass([expr], [X])).at({X: np.float64(AT)}, run.grids())
    assert value == pytest.approx(expected, rel=1e-12)
    (up,), (down,) = (Pass([expr])({X: AT + way * 1e-6}) for way in (1, -1))
    assert slope == pytest.approx((up - down) / 2e-6, rel=1e-6)


@pytest.mark.parametrize("name", LONG)
def test_long_expressions_have_digits(name):
    expr, expected = LONG[name]
    assert float(ExactPass([expr])({X: AT})[0]) == pytest.approx(expected, rel=1e-12)
