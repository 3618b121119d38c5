"""Networks whose units answer like a power of what is above threshold: powers that are not whole numbers."""

import numpy as np
import pytest
from sympy import Eq, Max, Rational, Sum, Symbol, sqrt, symbols
from sympy.stats import Normal

from symcavity import Coupling, Feature, N, Quenched, System, average, i, phi

j = symbols("j", integer=True)
r, b = Feature("r"), Quenched("b", i)
GAIN = Rational(1, 4)


def network(reciprocity):
    J = Coupling("J", between=(i, i), variance=GAIN / N, reciprocity=reciprocity)
    return System([Eq(r[i], Max(0, b[i] + Sum(J[i, j] * r[j], (j, 1, N))) ** Rational(3, 2))])


def by_hand(reciprocity, spread=0.5):
    """Iterate ``r = [x]_+^(3/2)``, ``x = I + F r``, over the total input I, which is Gaussian."""
    gain, response, q = float(GAIN), 0.5, 0.1
    for _ in range(80):
        deviation = np.sqrt(gain * q + spread**2)
        roots = np.linspace(0.0, 12.0 * np.sqrt(deviation), 40001)[1:]  # root of what is above threshold
        back = reciprocity * gain * response
        total = roots**2 - back * roots**3
        slope = 2 * roots - 3 * back * roots**2
        density = np.exp(-((total / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation
        weight = density * slope * (roots[1] - roots[0])
        response, q = np.sum(weight * 3 * roots**2 / slope), np.sum(weight * roots**6)
    return response, q


def test_a_power_that_feeds_back_on_itself():
    """What the law assumes is asked where its unknown, the root of what is above threshold, can be."""
    theory = network(Rational(-1, 2)).cavity()
    solution = theory.solve({b: Normal("b", 0, Rational(1, 2))})
    response, q = by_hand(-0.5)
    assert float(solution[average(r[i] ** 2)]) == pytest.approx(q, rel=1e-6)
    assert float(solution[Symbol("S_r")]) == pytest.approx(response, rel=1e-6)
    assert by_hand(0.0)[1] > 1.1 * q


def test_a_power_of_a_sum_stays_one():
    """It gives the moment of order three of what is above threshold."""
    theory = network(0).cavity()
    (equation,) = theory.equations
    (q,) = theory.unknowns
    assert equation.rhs == q ** Rational(3, 2) * average(phi(3, 2 * b[i] / sqrt(q))) / 8
    near = theory.solve({b: Normal("b", 0, Rational(1, 2))}, guess={q: 0.1})
    assert float(near[q]) == pytest.approx(by_hand(0.0)[1], rel=1e-6)
