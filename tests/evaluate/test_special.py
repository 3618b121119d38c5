"""phi in double precision: relative accuracy in the tails, shapes, and refusals."""

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtr

from symcavity.algebra.phi_values import mp_phi
from symcavity.errors import ValuesError
from symcavity.evaluate.averages.special import np_log_phi, np_phi


def worst(n, points, values):
    with mp.workdps(40):
        exact = [mp_phi(n, mpf(float(x))) for x in points]
        return max(float(abs(mpf(float(v)) / e - 1)) for v, e in zip(values, exact, strict=True))


@pytest.mark.parametrize("n", range(9))
def test_relative_error_below_1e_13_from_minus_37_to_200(n):
    rng = np.random.default_rng(n)
    joints = np.array([-36.99, -32, -16, -8, -4, -2, -1, -0.5, -1e-9, -0.0, 0.0, 1e-9, 1.0, 37.0, 200.0])
    near = np.concatenate([np.nextafter(joints, -99), joints, np.nextafter(joints, 999)])
    points = np.concatenate([rng.uniform(-37, 0, 300), rng.uniform(-3, 3, 99), rng.uniform(0, 200, 50), near])
    assert worst(n, points, np_phi(n, points)) < 1e-13


@pytest.mark.parametrize("n", [12, 25, 60])
def test_large_orders(n):
    points = np.linspace(-20, 5, 101)
    assert worst(n, points, np_phi(n, points)) < 1e-12


def test_the_textbook_formula_fails_where_ours_holds():
    """The negative control of the accuracy tests."""
    x = np.array([-20.0])
    naive = (1 + x * x) * ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    assert worst(2, x, naive) > 1e-13
    assert worst(2, x, np_phi(2, x)) < 1e-14


def test_shapes_and_kinds():
    assert np_phi(2, 0.5).shape == ()
    assert np_phi(2, [[0.5, -3], [1, 2]]).shape == (2, 2)
    assert np_phi(2, np.arange(5)).dtype == float
    assert np_phi(2, np.zeros((0, 3))).shape == (0, 3)
    strided = np.linspace(-3, 3, 20).reshape(4, 5).T
    assert np.array_equal(np_phi(1, strided), np_phi(1, strided.copy()))
    long = np.linspace(-3, 3, 100_001)
    assert np.array_equal(np_phi(2, long)[::1000], np_phi(2, long[::1000]))
    assert np.allclose(np_phi(2, long)[::10_000], np_phi(2, long[::10_000]), rtol=1e-13, atol=0)  # few, without SciPy
    assert float(np_phi(0, mpf("0.5"))) == pytest.approx(float(mpmath.ncdf(0.5)), rel=1e-15)


def test_infinities_nan_and_extremes():
    assert np_phi(0, np.inf) == 1
    assert np_phi(2, np.inf) == np.inf
    assert np_phi(2, -np.inf) == 0
    assert np.isnan(np_phi(2, np.nan))
    assert np.isnan(np_phi(0, [np.nan, -1.0])[0])
    assert np_phi(1, 1e200) == 1e200
    assert np_phi(2, -1e200) == 0


def test_refusals():
    with pytest.raises(ValuesError, match="order"):
        np_phi(-1, 0.0)
    with pytest.raises(ValuesError, match="real numbers"):
        np_phi(1, np.array([1j]))


def test_the_logarithm_of_a_small_share_has_digits():
    """Where phi itself has no number any more."""
    places = [-200.0, -45.0, -3.0, 0.5, 9.0]
    found = np_log_phi(np.array(places))
    with mp.workdps(40):
        right = [float(mp.log(mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2)) for x in places]
    assert found == pytest.approx(right, rel=1e-13)
