"""Laws that depend on several fields through one combination are averaged over that one."""

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from sympy import Eq, Max, Rational, Sum, symbols, tanh

from symcavity import Coupling, DeclarationError, N, Quenched, Sites, System, Variable, average, i, response
from symcavity.algebra.gaussian import GaussianAverage

HALF = Rational(1, 2)
g = symbols("g", positive=True)
k, M = Sites("k", "M", "inhibitory unit")
j = symbols("j")
E, F, b = Variable("E", i), Variable("F", k), Quenched("b", i)
u, v = Variable("u", i), Variable("v", i)
within, across = Coupling("A", between=(i, i), variance=g**2 / N), Coupling("B", between=(i, k), variance=g**2 / N)
back = Coupling("C", between=(k, i), variance=g**2 / N)
excited, inhibited = Sum(within[i, j] * E[j], (j, 1, N)), Sum(across[i, k] * F[k], (k, 1, M))
NODES, WEIGHTS = hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def test_smooth_units_that_hear_two_kinds_have_one_gaussian():
    """The state is a function of the difference of two fields: one average, of the sum of their variances."""
    network = System(
        [
            Eq(E[i], tanh(u[i] - v[i] + b[i])),
            Eq(u[i], excited),
            Eq(v[i], inhibited),
            Eq(F[k], Max(0, Sum(back[k, i] * E[i], (i, 1, N)))),
        ]
    )
    theory = network.cavity()
    inner = [a.expr for e in theory.equations for a in e.rhs.atoms(GaussianAverage)]
    assert inner
    assert not any(e.has(GaussianAverage) for e in inner)
    solution = theory.solve({g: Rational(3, 4), M / N: HALF, b: {1: HALF, -HALF: HALF}})
    q, p = 0.5, 0.1
    for _ in range(300):
        states = np.tanh(np.sqrt(0.5625 * (q + p / 2)) * NODES + np.array([[1.0], [-0.5]]))
        q, p = (states**2 @ WEIGHTS).mean(), 0.5625 * q / 2
    assert float(solution[average(E[i] ** 2)]) == pytest.approx(q, rel=1e-9)
    assert float(solution[average(F[k] ** 2)]) == pytest.approx(p, rel=1e-9)
    mean = (states @ WEIGHTS).mean()
    assert float(solution[average(E[i])]) == pytest.approx(mean, rel=1e-9)
    slope = ((1 - states**2) @ WEIGHTS).mean()
    for field, sign in ((u, 1), (v, -1)):
        assert float(solution[average(response(E[i], field[i]))]) == pytest.approx(sign * slope, rel=1e-9)


def test_a_sum_is_named_before_a_response_to_it_is_asked_for():
    with pytest.raises(DeclarationError, match=r"Eq\(u\[i\], Sum"):
        response(E[i], excited)
