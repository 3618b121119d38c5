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
