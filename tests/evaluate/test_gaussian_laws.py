"""Averages over Gaussian parameters in closed form: polynomials whose coefficients are long."""

import numpy as np
from sympy import Add, Rational, symbols

from symcavity import Quenched, i
from symcavity.evaluate.averages.gaussian_laws import absorb
from symcavity.model.averages import Average


def test_a_polynomial_with_long_coefficients_is_not_multiplied_out():
    """Four factors, each with sums of ten letters beside two parameters: by a rule of Gauss and Hermite."""
    letters, s, t = symbols("a:10"), Quenched("s", i), Quenched("t", i)
    long = [Add(*((k + 1 + (m * k) % 7) * a for k, a in enumerate(letters))) for m in range(8)]
    factors = [long[2 * m] * s[i] + long[2 * m + 1] * t[i] / long[0] + 1 for m in range(4)]
    body = factors[0] ** 2 * factors[1] * factors[2] * factors[3]
    found = absorb(Average(body), {s: (Rational(1, 2), Rational(1)), t: (Rational(0), Rational(2))})
    assert not found.has(Average)
    assert found.count_ops() < 60 * body.count_ops()  # multiplied out it has 10**5 terms
    values = {a: Rational(k - 3, 40) for k, a in enumerate(letters)}
    z, weight = np.polynomial.hermite_e.hermegauss(6)
    weight = weight / weight.sum()
    numbers = [float(e.xreplace(values)) for e in long]
    one, other = 0.5 + z[:, None], 2 * z[None, :]
    rows = [numbers[2 * m] * one + numbers[2 * m + 1] * other / numbers[0] + 1 for m in range(4)]
    expected = weight @ (rows[0] ** 2 * rows[1] * rows[2] * rows[3]) @ weight
    assert np.isclose(float(found.xreplace(values)), expected, rtol=1e-12)
