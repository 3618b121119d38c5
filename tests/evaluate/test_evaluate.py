"""Compiled expressions: averages over sites and fields, nested in each other."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, cos, exp, oo, sqrt

from symcavity import N, Quenched, ValuesError, average, gaussian_average, i, mu, phi
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.compiler import Compiled, to_mpf
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.inversion import invert
from symcavity.evaluate.averages.quenched import read_quenched

k, z = Symbol("k", positive=True), Symbol("z", real=True)
l, y = Quenched("l", i), Quenched("y", mu)


def laws(**given):
    table = {"l": l, "y": y}
    return read_quenched([table[n] for n in given], {table[n]: v for n, v in given.items()}, 15)


@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_plain(backend):
    call = Compiled(phi(2, k) + sqrt(k), backend)
    value = call({k: 0.7 if backend == "numpy" else mpmath.mpf("0.7")})
    assert float(value) == pytest.approx(float((phi(2, k) + sqrt(k)).subs(k, Rational(7, 10)).evalf()), rel=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_averages_of_both_sides_nest(backend):
    inner = average(y[mu] ** 2)
    call = Compiled(average(exp(-l[i] * inner)) + Sum(l[i], (i, 1, N)) * k, backend)
    one = 1.0 if backend == "numpy" else mpmath.mpf(1)
    env = {LAWS: laws(l=[1, 3], y={2: "1/4", 0: "3/4"}), k: 2 * one, N: 2 * one}
    assert float(call(env)) == pytest.approx((np.exp(-1) + np.exp(-3)) / 2 + 8, rel=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_a_law_that_holds_averages(backend):
    """z = x (1 + <1/l> + <1/l**2>), by which <x**2> is one over the square of the slope."""
    x = Symbol("x", real=True)
    psi = x + x * average(1 / l[i]) + x * average(l[i] ** -2)
    call = Compiled(ImplicitAverage(x**2, x, psi, -oo, oo), backend)
    assert float(call({LAWS: laws(l=[1, 2])})) == pytest.approx((1 + 3 / 4 + 5 / 8) ** -2, rel=1e-13)


def test_arrays_of_parameters_and_of_sites():
    call = Compiled(average(1 / (k + l[i])), "numpy")
    values = call({LAWS: laws(l=np.array([1.0, 2.0, 5.0])), k: np.array([[1.0], [2.0]])})
    assert values == pytest.approx(np.array([[(1 / 2 + 1 / 3 + 1 / 6) / 3], [(1 / 3 + 1 / 4 + 1 / 7) / 3]]))


@pytest.mark.parametrize("backend", ["numpy", "mpmath"])
def test_gaussian_average_with_a_kink(backend):
    node = gaussian_average(cos(Max(0, z - k)), z)
    with mpmath.workdps(20):
        value = Compiled(node, backend)({k: 0.3 if backend == "numpy" else mpmath.mpf("0.3")})
        want = mpmath.quad(lambda t: mpmath.cos(max(0, t - mpmath.mpf("0.3"))) * mpmath.npdf(t), [-12, 0.3, 4, 12])
    assert float(value) == pytest.approx(float(want), rel=1e-13)


def test_missing_value():
    with pytest.raises(ValuesError, match="k has no value"):
        Compiled(k + Abs(z), "numpy")({z: 1.0})


def test_inversion():
    targets = np.linspace(-9, 9, 7)
    x = invert(lambda v: (v**3 + v, 3 * v**2 + 1), targets, near=1e-12)
    assert x**3 + x == pytest.approx(targets, abs=1e-12)
    assert invert(lambda v: (-np.sinh(v), -np.cosh(v)), targets, near=1e-12) == pytest.approx(
        -np.arcsinh(targets), abs=1e-12
    )
    shifts = np.array([[0.0], [100.0]])
    steep = invert(lambda v: (1e6 * np.tanh(v) + v - shifts, 1e6 / np.cosh(v) ** 2 + 1), targets, near=1e-9)
    assert 1e6 * np.tanh(steep) + steep - shifts == pytest.approx(np.tile(targets, (2, 1)), abs=1e-8)


def test_exact_values():
    with mp.workdps(40):
        assert to_mpf(sqrt(2)) == mp.sqrt(2)
