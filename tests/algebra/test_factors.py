"""Factors do not depend on what the session has drawn before, and leave the session's draws alone."""

import pytest
import sympy
from sympy.core.random import rng

from symcavity.algebra import factors

x, y, z, t = sympy.symbols("x y z t")
EXPR = sympy.expand((x**2 * y - 3 * z * t + 1) ** 2 * (x - y * z) * (t**2 + x * y + 2) / 3)


@pytest.mark.parametrize("call", [factors.factor, factors.factor_list])
def test_the_draws_are_those_of_a_fresh_session(call, monkeypatch):
    seen = []
    plain = getattr(sympy, call.__name__)

    def noting(expr, *symbols):
        seen.append(rng.random())
        return plain(expr, *symbols)

    monkeypatch.setattr(factors.sympy, call.__name__, noting)
    for seed in range(3):
        rng.seed(seed)
        expected = rng.getstate()
        found = call.__wrapped__(EXPR)  # not what is remembered of it
        assert rng.getstate() == expected
        assert found == plain(EXPR)
        rng.setstate(expected)
    assert len(set(seen)) == 1


def test_the_product_of_the_factors_is_the_polynomial():
    constant, found = factors.factor_list(EXPR)
    assert sympy.expand(constant * sympy.Mul(*(f**n for f, n in found)) - EXPR) == 0
    assert sorted(n for _, n in found) == [1, 1, 2]
    assert sympy.expand(factors.factor(EXPR) - EXPR) == 0
    assert factors.factor(EXPR).is_Mul


@pytest.mark.parametrize(
    "expr",
    [
        x * y + z,
        -6 * x * y * z + 9 * z * t,
        (x**2 - y**2) * (z * t**2 - x) / 7,
        -x * (y - 1) ** 2,
        2 * x,
        (x + y) * (x - y) * (z + 2 * t) * (z - t),
        sympy.S(5),
    ],
)
def test_what_is_linear_in_a_symbol_has_the_same_factors(expr):
    expr = sympy.expand(expr)
    constant, found = factors.factor_list(expr)
    known, expected = sympy.factor_list(expr)
    assert sympy.expand(constant * sympy.Mul(*(f**n for f, n in found)) - expr) == 0
    assert abs(constant) == abs(known)
    assert sorted(n for _, n in found) == sorted(n for _, n in expected)


def test_a_small_polynomial_that_sympy_does_not_factor_in_a_minute():
    m = sympy.symbols("m0:5")
    a, c, nu, q, s = sympy.symbols("alpha c nu q S")
    expr = -m[1] * m[2] * nu * a * (-m[0] * m[1] * nu + c) + m[3] * s * a + m[4] * s * a + s * q * a**2
    expr += c * (-m[0] * m[1] * nu + c)
    assert factors.factor_list(expr) == (1, [(sympy.expand(expr), 1)])


def test_what_cancels_when_it_is_multiplied_out():
    assert factors.factor_list(x * (y + 1) - x * y - x) == (0, [])
    assert factors.factor((x + 1) * y - x * y - y + 2) == 2
