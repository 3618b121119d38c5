"""Factors do not depend on what the session has drawn before, and leave the session's draws alone."""

import numpy as np
import pytest
import sympy
from sympy import Abs, E, Piecewise, Symbol, exp, pi, sqrt
from sympy.core.random import rng

from symcavity.algebra import factors
from symcavity.algebra.nonzero import differs
from symcavity.algebra.phi import phi
from symcavity.algebra.text import text

x, y, z, t = sympy.symbols("x y z t")
EXPR = sympy.expand((x**2 * y - 3 * z * t + 1) ** 2 * (x - y * z) * (t**2 + x * y + 2) / 3)


def test_factors_draw_nothing():
    before = rng.getstate()
    assert factors.factor.__wrapped__(EXPR) == (x - y * z) * (t**2 + x * y + 2) * (3 * t * z - x**2 * y - 1) ** 2 / 3
    factors.factor_list.__wrapped__(EXPR)
    assert rng.getstate() == before


def test_many_symbols_are_no_limit():
    """Two sums of twelve symbols each, multiplied out, beside a root and a function."""
    a, b = (sympy.Add(*sympy.symbols(f"{name}0:12")) for name in "ab")
    product = sympy.expand((a + sqrt(x)) * (b - phi(2, y)) ** 2)
    assert factors.factor(product) == (a + sqrt(x)) * (b - phi(2, y)) ** 2


P, Q = sympy.symbols("p q", positive=True)


@pytest.mark.parametrize(
    "expr",
    [
        sqrt(2) * x + sqrt(6) * y * x, sqrt(4 * x**2 - 4 * y**2), sqrt(4 * P * Q + 4 * Q**2), (y - x) / (x - y) ** 2,
        exp(x) * y + exp(2 * x), 1 / (x + 1) + 1 / (y - 1), pi * x + pi, sqrt(2) + sqrt(6),
        x**sympy.Rational(3, 2) + sqrt(x) * y, sqrt(8 * x), (2 * x + 2) ** y, Abs(x) * x + x,
        (x**2 - y**2) ** 3 / (2 * x - 2 * y) ** 2, -x + y,
        (2 * x * y + 2 * x) ** Symbol("n", integer=True), phi(1, x) ** 2 - phi(2, x) ** 2, sympy.S(0), -sympy.S(2) / 3,
    ],
)  # fmt: skip
def test_products_are_those_of_sympy(expr):
    ours, theirs = factors.factor(expr), sympy.factor(expr)
    assert sympy.simplify(ours - theirs) == 0
    assert ours.count_ops() <= theirs.count_ops() + 1  # a sign may stand elsewhere


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


def test_what_is_not_zero_is_seen_at_a_point_and_what_is_zero_is_not():
    """Zeros that SymPy finds by multiplying out, roots, exponentials, functions and cases among them."""
    x, y, r = Symbol("x", positive=True), Symbol("y", positive=True), Symbol("r", real=True)
    case, square = Piecewise((x, r > 0), (y, True)), exp(-(x**2) / 2)
    zeros = [
        (x + y) ** 2 - x**2 - 2 * x * y - y**2,
        1 / (x + y) + 1 / (x - y) - 2 * x / (x**2 - y**2),
        sqrt(x) * (sqrt(x) * y + 1) - x * y - sqrt(x),
        sqrt(2) * (sqrt(3) + 1) - sqrt(6) - sqrt(2),
        sqrt(2 * pi * x + y) * (sqrt(2 * pi * x + y) * r + 1) - r * (2 * pi * x + y) - sqrt(2 * pi * x + y),
        square * (square * y + 1) - exp(-(x**2)) * y - square,
        exp((x + y) ** 2) * (1 + exp(-2 * x * y)) - exp(x**2 + y**2) * (exp(2 * x * y) + 1),
        E * (E + 1) - exp(2) - E,
        Abs(r) * (Abs(r) * y + 1) - r**2 * y - Abs(r),
        phi(2, (x + y) ** 2) - phi(2, x**2 + 2 * x * y + y**2),
        case * (case + 1) - case**2 - case,
    ]
    for zero in zeros:
        assert zero.together().as_numer_denom()[0].expand() == 0
        assert not differs(zero), zero
    others = (x + y, sqrt(x) - x, phi(1, x) - phi(2, x), exp(x) - exp(2 * x) + y, sqrt(6) - 2, case - x * y)
    assert all(map(differs, others))


def test_the_text_of_an_expression_is_that_of_str():
    x, y = Symbol("x"), Symbol("y")
    for expr in ((x - y) ** 2 / (1 + phi(2, x * (y - 1))), -(x**-2) + y, Piecewise((x, x > y), (-y, True)), x * 0.1):
        assert text(expr) == text(expr) == str(expr)


def test_one_denominator_is_that_of_sympy():
    """Sums, products and powers of what was drawn, with roots, functions, numbers and what does not commute."""
    draw = np.random.default_rng(5)
    p, n = Symbol("p", positive=True), Symbol("n", integer=True)
    pool = [x, y, z, p, sqrt(p), x**n, exp(x / y), pi, sympy.I, sympy.Rational(2, 3), -sympy.S(4)]
    pool += [sympy.Float("0.5"), Abs(x - y), sqrt(2), Symbol("A", commutative=False), phi(2, 1 / x + y)]
    pool += [sympy.S(6), x / (x + 1)]
    for _ in range(30):
        found = [pool[k] for k in draw.integers(len(pool), size=6)]
        for k in draw.integers(6, size=9):
            one, other = found[k], found[draw.integers(6)]
            new = [one + other, one * other, one / other, (one + 2 * other) ** 2, one - 3 * other][draw.integers(5)]
            found[k] = new if new.is_finite is not False and not new.has(sympy.nan) else one
        for expr in found:
            assert factors.together.__wrapped__(expr) == sympy.together(expr), expr
