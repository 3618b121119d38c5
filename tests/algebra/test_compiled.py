"""Code for expressions: real numbers, or none."""

import numpy as np
from sympy import LambertW, Symbol, exp

from symcavity.algebra.compiled import compiled


def test_the_lambert_function_is_real_or_no_number():
    x = Symbol("x", real=True)
    value = compiled([x], LambertW(x))
    assert np.isrealobj(value(np.array([1.0])))
    assert abs(value(np.exp(1.0)) - 1) < 1e-15
    assert np.isnan(value(-1.0))  # below -1/e the principal branch is complex
    weight = value(2.5)
    assert abs(weight * np.exp(weight) - 2.5) < 1e-14
    assert compiled([x], exp(x))(0.0) == 1
