"""Derivatives by the chain rule, step by step."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Max, Piecewise, Symbol, cosh, exp, log, symbols, tanh

from symcavity.algebra.chain import Chain

x, y, z = symbols("x y z", real=True)
total = log(exp(x) + exp(y) + exp(z))
shares = [exp(s) / (exp(x) + exp(y) + exp(z)) for s in (x, y, z)]
CASES = {
    "shares": ([*shares, total], lambda x, y, z: mpmath.exp(x) / (mpmath.exp(x) + mpmath.exp(y) + mpmath.exp(z))),
    "powers": ([(x * y + 1) ** 3 / (1 + (x * y + 1) ** 2)], lambda x, y, _z: (x * y + 1) ** 3 / (1 + (x * y + 1) ** 2)),
    "hyperbolic": ([tanh(x * y) * cosh(x * y) + z], lambda x, y, z: mpmath.tanh(x * y) * mpmath.cosh(x * y) + z),
    "kinks": ([Max(0, x - y) ** 2 * Abs(x - y)], lambda x, y, _z: max(0, x - y) ** 2 * abs(x - y)),
    "cases": (
        [Piecewise((exp(x * y), x > 0), (1 + x * y, True)) * z],
        lambda x, y, z: (mpmath.exp(x * y) if x > 0 else 1 + x * y) * z,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives_are_those_of_the_first_expression(name):
    exprs, by_hand = CASES[name]
    chain = Chain([x, y, z], exprs, [x, y, z])
    run = chain.code([chain.values[0], *chain.slopes[0]])
    for point in ((0.7, -0.3, 0.4), (-0.6, 0.9, 1.1)):
        found = run(*map(np.float64, point))
        truth = [by_hand(*map(mpmath.mpf, point))]
        for k in range(3):
            ways = [tuple(int(n == k) for n in range(3))]
            truth += [mpmath.diff(by_hand, tuple(map(mpmath.mpf, point)), way) for way in ways]
        np.testing.assert_allclose(np.array(found, dtype=float), np.array(truth, dtype=float), rtol=1e-9, atol=1e-12)


def test_exponentials_that_overflow_apart_do_not_together():
    chain = Chain([x, y, z], shares, [x, y])
    found = chain.code([chain.values[0], *chain.slopes[0]])(1000.0, 0.0, 0.0)
    np.testing.assert_array_equal(np.array(found, dtype=float), [1.0, 0.0, 0.0])


def test_what_is_left_out_is_zero_and_what_is_missing_is_not_asked_for():
    source = Symbol("s", real=True)
    chain = Chain([x, y, source], [exp(x + source) * y + source], [x, source])
    assert chain.code([chain.slopes[0][1]], [x, y], zero=[source])(0.0, 2.0) == [3.0]
    assert not chain.holds(chain.slopes[0][0], [])
    assert chain.holds(chain.slopes[0][0], [source])
    flat = Chain([x, y], [3 * x + y], [x])
    assert not flat.holds(flat.slopes[0][0], [x, y])


def test_a_derivative_of_a_long_product_is_short_code():
    """The slopes of shares by all three exponents are products of shares."""
    chain = Chain([x, y, z], shares, [x, y, z])
    assert len(chain.steps) < 30
    assert sum(e.count_ops() for row in chain.slopes for e in row) < 40
