"""phi(n, kappa) as a SymPy function, and in arbitrary precision, against integrals done independently."""

import math
import pickle

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from sympy import (
    Float,
    I,
    Integer,
    Integral,
    Rational,
    Symbol,
    ccode,
    cxxcode,
    diff,
    erf,
    erfc,
    exp,
    expand_func,
    julia_code,
    lambdify,
    latex,
    limit,
    nan,
    oo,
    pi,
    rust_code,
    series,
    sqrt,
    zoo,
)
from sympy.printing.numpy import JaxPrinter

from symcavity.algebra.phi import gaussian_density, phi, phi_coefficients, phi_reduce
from symcavity.algebra.phi_values import mp_phi
from symcavity.errors import SymcavityError, ValuesError

kappa = Symbol("kappa", real=True)
m = Symbol("m", integer=True, nonnegative=True)


def by_quadrature(n, x, digits):
    """The defining integral, by Gauss-Legendre panels of the substituted integrand t**n density(x - t)."""
    with mp.workdps(digits + 25):
        x = mpf(x)
        top = mp.sqrt(2 * mp.log(10) * (digits + 25) + n) + 6
        if x < 0:  # density(x) factors out: what is left decays like exp(-|x| t) or exp(-t**2/2)
            scale = min(mpf(1), 1 / abs(x))
            end = min(top * 2, scale * (mp.log(10) * (digits + 25) + 20 * n + 20))
            grid = mp.linspace(0, end, 25 + 3 * n)
            return mp.npdf(x) * mp.quad(lambda t: t**n * mp.exp(x * t - t * t / 2), grid)
        grid = mp.linspace(max(mpf(0), x - top), x + top, 30 + n)
        return mp.quad(lambda t: t**n * mp.npdf(x - t), grid)


def relative(a, b):
    with mp.workdps(1100):
        return abs(mpf(a) / mpf(b) - 1)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 20])
def test_the_value_is_the_defining_integral_to_a_relative_error(n):
    rng = np.random.default_rng(100 * n)
    points = [-200, -rng.uniform(20, 199), -rng.uniform(1, 9), -rng.uniform(0, 1), 0, rng.uniform(0, 6), 200]
    for x in points:
        expected = by_quadrature(n, x, 50)
        for digits in (15, 50):
            with mp.workdps(digits):
                value = mp_phi(n, mpf(x))
            assert relative(value, expected) < mpf(10) ** (1 - digits), (n, x, digits)


@pytest.mark.parametrize("x", ["-200", "-37.25", "-3", "-0.125", "0.125", "3", "200"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
def test_no_digit_moves_when_the_precision_is_raised_up_to_a_thousand(n, x):
    with mp.workdps(1050):
        exact = mp_phi(n, mpf(x))
        # the closed form, with more digits than it can lose (30 orders, 2*30*log10(200) digits)
    with mp.workdps(1500):
        lower, upper = mp.ncdf(mpf(x)), mpf(x) * mp.ncdf(mpf(x)) + mp.npdf(mpf(x))
        for k in range(1, n):
            lower, upper = upper, mpf(x) * upper + k * lower
        closed = lower if n == 0 else upper
    assert relative(exact, closed) < mpf(10) ** -1049
    for digits in (15, 50, 300, 1000):
        with mp.workdps(digits):
            value = mp_phi(n, mpf(x))
        assert relative(value, exact) < mpf(10) ** (1 - digits)


@pytest.mark.parametrize("bits", [40, 100, 400, 1300])
def test_the_series_meet_where_one_takes_over_from_the_other(bits):
    """Around the argument whose density is the last bit, on both sides, against the error function of mpmath."""
    rng = np.random.default_rng(bits)
    edge = (bits / 0.72) ** 0.5
    sides = [sign * round(edge * rng.uniform(0.8, 1.6) * 1024) / 1024 for sign in (-1, 1) for _ in range(8)]
    for x in (*sides, 2.0**-90, -(2.0**-90), -200, -(2.0**90)):  # short, since they are taken as exact
        with mp.workprec(bits):
            found = mp_phi(0, mpf(x)), mp_phi(2, mpf(x))
        with mp.workprec(3 * bits + 900):
            below, density = mp.erfc(-mpf(x) / mp.sqrt(2)) / 2, mp.npdf(mpf(x))
            cancelled = (1 + mpf(x) ** 2) * below + x * density
            for value, expected in zip(found, (below, cancelled), strict=True):
                assert abs(value / expected - 1) < mp.ldexp(1, 1 - bits), x


def test_without_the_guard_digits_the_tail_is_lost():
    """The negative control: the closed form at 50 digits has nothing left at -200."""
    with mp.workdps(50):
        x = mpf(-200)
        naive = (1 + x * x) * mp.ncdf(x) + x * mp.npdf(x)
        assert relative(mp_phi(2, x), by_quadrature(2, -200, 50)) < mpf(10) ** -49
        assert relative(naive, mp_phi(2, x)) > mpf(10) ** -45
        wrong = (1 + x * x) * mp.ncdf(x) - x * mp.npdf(x)
        assert relative(wrong, mp_phi(2, x)) > 1


def test_evalf_at_any_precision_through_sympy():
    assert str(phi(2, -200).evalf(30)) == "1.28572140028658131738732864834e-8693"
    with mp.workdps(1000):
        reference = mp_phi(2, mpf(-200))
    assert relative(phi(2, -200).evalf(1000)._to_mpmath(3400), reference) < mpf(10) ** -999
    assert mp.dps == 15
    irrational = phi(3, -100 * pi).evalf(40)
    with mp.workdps(80):
        assert relative(irrational._to_mpmath(200), mp_phi(3, -100 * mp.pi)) < mpf(10) ** -38
    assert (phi(2, -3) - phi(0, -3) + 3 * phi(1, -3)).evalf(20, chop=True) == 0
    assert phi(2, kappa).evalf() == phi(2, kappa)
    assert phi(m, 1).evalf() == phi(m, 1)
    assert phi(2, 0.5) == phi(2, Rational(1, 2)).evalf()
    assert isinstance(phi(2, 0.5), Float)
    half = phi(2, Rational(-1, 2)).evalf(25)
    assert abs(phi(2, kappa).evalf(25, subs={kappa: Rational(-1, 2)}) - half) < Float("1e-24")


def test_complex_arguments():
    value = phi(2, 1 + I).evalf(30)
    x = mp.mpc(1, 1)
    with mp.workdps(60):
        expected = (1 + x * x) * mp.erfc(-x / mp.sqrt(2)) / 2 + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        assert abs(mpmath.mpc(*[c._to_mpmath(100) for c in value.as_real_imag()]) - expected) < mpf(10) ** -29
    assert phi(1, 1 - I).evalf(20) == phi(1, 1 + I).conjugate().evalf(20)
    assert mpmath.isnan(mp_phi(1, mpmath.mpc(0, mpf(10) ** 200)))  # its square is beyond every precision


def test_derivative_and_recurrence():
    assert phi(3, kappa).diff(kappa) == 3 * phi(2, kappa)
    assert phi(0, kappa).diff(kappa) == gaussian_density(kappa) == exp(-(kappa**2) / 2) / sqrt(2 * pi)
    assert phi(2, kappa**2).diff(kappa) == 4 * kappa * phi(1, kappa**2)
    assert diff(phi(m + 1, kappa), kappa) == (m + 1) * phi(m, kappa)
    assert diff(phi(m, kappa), kappa).subs(m, 0) == gaussian_density(kappa)
    assert diff(phi(m, kappa), kappa).subs(m, 2) == 2 * phi(1, kappa)
    for n in range(1, 9):
        step = phi(n + 1, kappa) - kappa * phi(n, kappa) - n * phi(n - 1, kappa)
        assert phi_reduce(step) == 0
        assert phi_reduce(step + phi(0, kappa)) != 0
    with pytest.raises(ValuesError, match="order"):
        phi(m, kappa).diff(m)


def test_reduction_to_two_basis_functions():
    assert expand_func(phi(2, kappa)) == phi(0, kappa) + kappa * phi(1, kappa)
    x = Symbol("x")
    assert phi_coefficients(4) == (x**2 + 3, x**3 + 5 * x)


def test_rewriting():
    for n in range(6):
        for form in (phi(n, kappa).rewrite(erfc), phi(n, kappa).rewrite(erf)):
            assert not form.has(phi)
            assert abs((form - phi(n, kappa)).subs(kappa, Rational(-7, 5)).evalf(30)) < 1e-28
    integral = phi(2, kappa).rewrite(Integral)
    assert isinstance(integral, Integral)
    assert phi(m, kappa).rewrite(erfc) == phi(m, kappa)


def test_special_points():
    assert [phi(n, 0) for n in range(5)] == [
        Rational(1, 2), 1 / sqrt(2 * pi), Rational(1, 2), sqrt(2 / pi), Rational(3, 2),
    ]
    assert phi(m, 0).subs(m, 3).doit() == sqrt(2) / sqrt(pi)
    assert phi(0, oo) == 1
    assert phi(2, oo) is oo
    assert phi(m, -oo) == phi(2, -oo) == 0
    assert phi(m, oo) == phi(m, oo, evaluate=False)
    assert phi(2, zoo) is nan
    assert (m * phi(2, kappa / m)).subs(m, 0) is nan
    assert phi(2, nan) is nan
    assert (mp_phi(0, mp.inf), mp_phi(3, mp.inf), mp_phi(3, -mp.inf)) == (1, mp.inf, 0)
    assert mp.isnan(mp_phi(1, mp.nan))


@pytest.mark.parametrize("order", [-1, Rational(1, 2), 2.0, oo, Symbol("q", negative=True)])
def test_orders_that_are_not_nonnegative_integers_are_refused(order):
    with pytest.raises(SymcavityError, match="Supported: a nonnegative integer"):
        phi(order, kappa)


def test_numeric_orders():
    assert mp_phi(Integer(2), 1) == mp_phi(2, 1) == mp_phi(np.int64(2), 1)
    with pytest.raises(ValuesError):
        mp_phi(-1, 1)
    with pytest.raises(ValuesError):
        mp_phi(0.5, 1)


def test_assumptions():
    assert phi(2, kappa).is_positive
    assert phi(2, kappa).is_real
    assert phi(m, kappa).is_positive
    assert phi(2, Symbol("z")).is_real is None
    extended = Symbol("e", extended_real=True)
    assert phi(2, extended).is_extended_nonnegative
    assert phi(2, extended).is_positive is None


def test_writing():
    assert latex(phi(2, kappa)) == r"\phi_{2}\left(\kappa\right)"
    assert latex(phi(2, kappa) ** 3) == r"\phi_{2}^{3}\left(\kappa\right)"
    assert latex(phi(m, -kappa)) == r"\phi_{m}\left(- \kappa\right)"
    assert latex(1 / phi(2, kappa)) == r"\frac{1}{\phi_{2}\left(\kappa\right)}"
    assert str(phi(2, kappa)) == "phi(2, kappa)"
    assert pickle.loads(pickle.dumps(phi(2, kappa))) == phi(2, kappa)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("backend", ["scipy", "numpy", "math"])
def test_lambdify_in_double(backend):
    f = lambdify(kappa, phi(2, kappa) / phi(0, kappa), backend)
    with mp.workdps(30):
        expected = mp_phi(2, mpf(-20)) / mp_phi(0, mpf(-20))
        assert relative(float(f(-20.0)), expected) < 1e-13
    if backend != "math":
        assert f(np.array([[1.0, 2.0]])).shape == (1, 2)


def test_lambdify_in_mpmath():
    f = lambdify((m, kappa), phi(m, kappa), "mpmath")
    with mp.workdps(40):
        assert f(2, mpf(-20)) == mp_phi(2, mpf(-20))


def test_series_and_limit():
    assert series(phi(2, kappa), kappa, 0, 2).removeO() == Rational(1, 2) + kappa * sqrt(2) / sqrt(pi)
    assert limit(phi(2, kappa) * exp(kappa**2 / 2) * kappa**3, kappa, -oo) == -sqrt(2) / sqrt(pi)


def test_tails_whose_squares_are_beyond_every_precision():
    from mpmath import libmp

    from symcavity.algebra.phi_values import _phis_mpf, _tail

    for order in (0, 1, 3):
        size = mpmath.mpf(10) ** 140
        assert libmp.mpf_eq(_tail(order, size._mpf_, 100, 112), _phis_mpf(order, (-size)._mpf_, 100)[-1])
        assert _phis_mpf(order, (-(size**2))._mpf_, 100)[-1][0] == 0


@pytest.mark.parametrize("value", [-2.5, 0.3, 4.0])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_code_of_other_languages_is_the_same_number(n, value):
    """C is read as Python here: the operators and the names of functions are the same."""
    x = Symbol("x", real=True)
    names = {"erfc": math.erfc, "exp": math.exp, "sqrt": math.sqrt, "pow": math.pow, "M_PI": math.pi}
    names |= {"M_SQRT2": math.sqrt(2), "M_1_PI": 1 / math.pi, "x": value}
    right = float(phi(n, x).subs(x, Rational(str(value))).evalf(30))
    assert eval(ccode(phi(n, x)), names) == pytest.approx(right, rel=1e-10)  # noqa: S307 - code of our own
    assert eval(ccode(phi(n, 2 * x - x)), names) == pytest.approx(right, rel=1e-10)  # noqa: S307 - code of our own
    moved = eval(ccode(3 * phi(n, x + 1)), {**names, "x": value - 1})  # noqa: S307 - code of our own
    assert moved == pytest.approx(3 * right, rel=1e-10)


def test_code_of_other_languages_is_printed():
    x, m = Symbol("x", real=True), Symbol("m", integer=True, nonnegative=True)
    assert "std::exp" in cxxcode(phi(1, x))
    assert "erfc(" in julia_code(phi(1, x))
    assert "libm::erfc(-0.7071067811865476*(x + 1" in rust_code(phi(1, x + 1))  # SymPy itself drops such brackets
    assert "jax.scipy.special.erfc(" in JaxPrinter().doprint(phi(1, x))
    with pytest.raises(NotImplementedError):
        ccode(phi(m, x))
