"""Which closed forms lose digits in double."""

import numpy as np
import pytest
from sympy import Symbol

from symcavity.evaluate.averages.cancelling import Cancelling
from symcavity.evaluate.averages.integrals import LAWS

X = Symbol("X", real=True)


def mended(expr, x, slope):
    """What is evaluated with digits of a condition, and of an average, at a point where it has a slope in double."""
    here, env = np.array([x]), {LAWS: {}}
    return [Cancelling({0: expr}, [X], some).slopes(here, env, np.array([[slope]])) for some in ((0,), ())]


def test_a_condition_vanishes_at_its_root_without_loss():
    root = np.sqrt(2.0)
    condition, average = mended(X**2 - 2, root, 2 * root)
    assert condition == {}
    assert average[0][0] == pytest.approx(2 * root * (root - np.longdouble(2) ** 0.5), rel=1e-3)


def test_a_condition_whose_root_rounding_moves_is_evaluated_with_digits():
    x = 1 + 2.0**-30
    for found in mended(X**2 - 2 * X + 1, x, 2 * (x - 1)):
        value, slope = found[0]
        assert value == pytest.approx(2.0**-60, rel=1e-12)
        assert slope[0] == pytest.approx(2.0**-29, rel=1e-6)
