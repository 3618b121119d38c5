"""Resolvents off the real line: closed forms of random matrices, eigenvalues of finite ones, and refusals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sympy import Eq, I, Max, Rational, Sum, Symbol, symbols
from sympy.stats import Uniform

from symcavity import Coupling, Datum, Feature, N, P, Quenched, System, alpha, average, i, mu, response
from symcavity.derivations import wishart_resolvent
from symcavity.errors import NotConverged, SymcavityError, UnsupportedLaw, ValuesError

z, j = Symbol("z"), symbols("j", integer=True)
w, b, G = Feature("w"), Quenched("b", i), average(response(Feature("w")[i]))


def wigner(reciprocity=1, own=z, drive=b[i], extra=0, variance=1):
    J = Coupling("J", between=(i, i), reciprocity=reciprocity, variance=Rational(variance) / N)
    return System([Eq(own * w[i], drive + Sum(J[i, j] * w[j], (j, 1, N)) + extra)])


@pytest.fixture(scope="module")
def semicircle():
    return wigner().cavity()


@pytest.mark.parametrize(
    "place", [0.3 + 0.01j, 0.3 - 1j, 1e-6j, -2.5 + 1e-3j, 1.9999 + 1e-9j, 1e8 + 1j, 1e-3 + 1e8j, np.complex128(1 + 1j)]
)
def test_the_semicircle(semicircle, place):
    found = semicircle.solve({z: place, b: 1})
    with mpmath.workdps(40):
        at = mpmath.mpc(complex(place))
        root = mpmath.sqrt(at - 2) * mpmath.sqrt(at + 2)
        want, squares = (at - root) / 2, at / (2 * root) - mpmath.mpf(1) / 2  # the average of 1/(z - x)^2 is -G'
    edge = 1e-14 / abs(complex(root)) ** 2  # what rounding of z does near an edge
    assert abs(found[G] - want) < (1e-14 + edge) * abs(want)
    assert abs(found[average(w[i] ** 2)] - squares) < (1e-12 + edge) * abs(squares)
    assert found.stability < 1
    assert found.residual < 1e-13
    assert (found["S_w"].imag < 0) == (complex(place).imag > 0)


def test_forty_digits(semicircle):
    found = semicircle.solve({z: Rational(3, 10) + I / 100, b: 1}, dps=40)
    same = semicircle.solve({z: mpmath.mpc(Fraction(3, 10).numerator, 0) / 10 + I / 100, b: 1}, dps=14)
    with mpmath.workdps(60):
        at = mpmath.mpc(mpmath.mpf(3) / 10, mpmath.mpf(1) / 100)
        want = (at - mpmath.sqrt(at - 2) * mpmath.sqrt(at + 2)) / 2
        assert abs(found[G] - want) < mpmath.mpf(10) ** -39
    assert abs(same[G] - want) < 1e-13


def test_the_law_of_marchenko_and_pastur():
    """``z`` is declared positive, and is continued to both sides of the negative line, on which the spectrum is."""
    theory = wishart_resolvent.problem.cavity()
    q = wishart_resolvent
    for load, at in ((2, -1.5 + 0.01j), (0.5, -0.2 - 0.01j), (0.5, -1e-3 + 1e-6j), (2, 3 + 1j)):
        found = theory.solve({q.z: at, alpha: load, q.l: 1, q.s: 1, q.g: 1})[G]
        roots = np.roots([at, load - 1 + at, -1])  # z G^2 + (z + alpha - 1) G - 1 = 0
        (want,) = (r for r in roots if r.imag * at.imag < 0 and (r * at).imag * at.imag > -1e-14)
        assert abs(complex(found) - want) < 1e-9 * abs(want)


def test_eigenvalues_of_covariances_on_both_sides():
    q, size, load = wishart_resolvent, 800, 2
    rng = np.random.default_rng(0)
    l, s = np.repeat([0.5, 2.0], size // 2), np.tile([1.0, 1.0, 3.0], load * size)[: load * size]
    x = rng.normal(size=(load * size, size)) * np.sqrt(s[:, None] * l / size)
    spectrum = np.linalg.eigvalsh(x.T @ x)
    theory = q.problem.cavity()
    law = {q.l: {"1/2": "1/2", 2: "1/2"}, q.s: {1: "2/3", 3: "1/3"}, q.g: 1, alpha: load}
    for at in (-2 + 0.5j, -8 + 0.5j, -0.5 + 0.3j):
        trace = np.mean(1 / (at + spectrum))
        assert abs(complex(theory.solve({**law, q.z: at})[G]) - trace) < 5e-3
    arrays = theory.solve({q.l: l, q.s: s, q.g: 1, alpha: load, q.z: -2 + 0.5j})[G]
    assert abs(complex(arrays - theory.solve({**law, q.z: -2 + 0.5j})[G])) < 1e-3


def test_the_density_sums_to_one():
    """A Wigner matrix with a diagonal that has a density: minus the imaginary part over pi is a density, too."""
    d = Quenched("d", i, law=Uniform("d", 0, 2))
    theory = wigner(own=z - d[i]).cavity()
    line = np.linspace(-2, 4, 25) + 0.5j
    density = np.array([-complex(theory.solve({z: complex(at), b: 1})[G]).imag / np.pi for at in line])
    rng, size = np.random.default_rng(1), 1500
    J = rng.normal(size=(size, size))
    spectrum = np.linalg.eigvalsh((J + J.T) / np.sqrt(2 * size) + np.diag(np.linspace(0, 2, size)))
    instance = np.array([-np.mean(1 / (at - spectrum)).imag / np.pi for at in line])
    assert np.max(np.abs(density - instance)) < 2e-3


@pytest.mark.parametrize("reciprocity", [Rational(1, 2), 0, Rational(-1, 2)])
def test_outside_of_an_ellipse_and_inside(reciprocity):
    """The spectrum is an ellipse of half axes 1 + rho and 1 - rho; inside no trace of a resolvent is analytic."""
    theory, rho = wigner(reciprocity).cavity(), float(reciprocity)
    rng = np.random.default_rng(2)
    J = rng.normal(size=(2, 600, 600)) / np.sqrt(600)
    J = np.sqrt((1 + rho) / 2) * (J[0] + J[0].T) / np.sqrt(2) + np.sqrt((1 - rho) / 2) * (J[1] - J[1].T) / np.sqrt(2)
    spectrum = np.linalg.eigvals(J)
    for at in (1.2 * (1 + rho) + 0.1j, 1.2j * (1 - rho) + 0.05):
        found = theory.solve({z: complex(at), b: 1})
        assert found.stability < 1
        assert abs(complex(found[G]) - np.mean(1 / (at - spectrum))) < 0.03
    for at in (0.8 * (1 + rho) + 0.01j, 0.8j * (1 - rho)):
        with pytest.raises(NotConverged, match="inside"):
            theory.solve({z: complex(at), b: 1})


def test_units_do_not_matter(semicircle):
    """Couplings and z in other units: the same numbers."""
    g = Symbol("g", positive=True)
    J = Coupling("J", between=(i, i), reciprocity=1)
    theory = System([Eq(z * w[i], b[i] + g * Sum(J[i, j] * w[j], (j, 1, N)))]).cavity()
    want = complex(semicircle.solve({z: 0.3 + 0.01j, b: 1})[G])
    for unit in (1e-60, 1e60):
        found = theory.solve({z: (0.3 + 0.01j) * unit, g: unit, b: 1})
        assert abs(complex(found[G]) * unit - want) < 1e-12


def test_with_a_mean_of_the_couplings():
    """A global variable, the mean of the states, answers to its own condition."""
    m = Symbol("m", positive=True)
    J = Coupling("J", between=(i, i), reciprocity=1, mean=m / N)
    theory = System([Eq(z * w[i], 1 + Sum(J[i, j] * w[j], (j, 1, N)))]).cavity()
    at, mean = 0.3 + 0.5j, 0.7
    trace = (at - np.sqrt(at - 2) * np.sqrt(at + 2)) / 2
    found = theory.solve({z: at, m: "0.7"})[average(w[i])]
    assert abs(complex(found) - trace / (1 - mean * trace)) < 1e-12


def test_what_is_refused(semicircle):
    for bad, error in (
        ({z: complex("nan"), b: 1}, ValuesError),
        ({z: complex("inf"), b: 1}, ValuesError),
        ({z: 1 + 1j, b: 1j}, ValuesError),
        ({z: 1 + 1j}, ValuesError),
        ({z: 1 + 1j, b: 1, "y": 2}, ValuesError),
    ):
        with pytest.raises(error):
            semicircle.solve(bad)
    with pytest.raises(ValuesError):
        semicircle.solve({z: 0.3 + 0.1j, b: 1}, dps=30)  # floats do not have thirty digits
    with pytest.raises(ValuesError):
        semicircle.solve({z: 0.3 + 0.1j, b: 1}, guess={"S_w": 1})
    with pytest.raises(UnsupportedLaw):
        semicircle.solve({z: 0.3 + 0.1j, b: 1})[average(abs(w[i]))]
    x, u = Coupling("x"), Datum("u")
    bent = System([
        Eq(u[mu], Max(0, Sum(x[mu, i] * w[i], (i, 1, N)))),
        Eq(z * w[i], 1 - Sum(x[mu, i] * u[mu], (mu, 1, P))),
    ])
    with pytest.raises(SymcavityError):
        bent.cavity().solve({z: 1 + 1j, alpha: 1})


def test_an_imaginary_part_of_zero_is_real(semicircle):
    assert semicircle.solve({z: 3 + 0j, b: 1})[G] == semicircle.solve({z: 3.0, b: 1})[G]
