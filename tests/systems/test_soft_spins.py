"""Continuous spins that meet in pairs at a temperature: only their energies hold them, and no Gaussian of their own."""

import numpy as np
import pytest
from sympy import Rational, Sum, Symbol, cosh

from symcavity import Coupling, Feature, N, Problem, average, expect, i

J, w = Coupling("J", between=(i, i), reciprocity=1), Feature("w")
beta, j = Symbol("beta", positive=True), Symbol("j", integer=True)
pairs = Sum(w[i] * Sum(J[i, j] * w[j], (j, 1, N)), (i, 1, N)) / 2
OBSERVABLES = (average(w[i]), average(w[i] ** 2), average(expect(w[i]) ** 2))


def by_quadrature(energy, b, field):
    """The fixed point of ``q = <m^2>``, ``Q = <w^2>`` on a grid, with the weight written out as it stands."""
    x = np.linspace(-6, 6, 1201)
    z, share = np.polynomial.hermite_e.hermegauss(80)
    share = share / share.sum()
    q, Q = 0.2, 1.0
    for _ in range(3000):
        pull = np.sqrt(q) * z + field
        weight = np.exp(-b * (energy(x) - pull[:, None] * x - b * (Q - q) * x**2 / 2) + 0.0)
        weight /= weight.sum(axis=1, keepdims=True)
        means, squares = weight @ x, weight @ x**2
        old, (q, Q) = (q, Q), (share @ means**2, share @ squares)
        if abs(q - old[0]) + abs(Q - old[1]) < 1e-14:
            break
    return share @ means, Q, q


@pytest.mark.parametrize(
    ("energy", "plain", "b"),
    [
        ((w[i] ** 2 - 1) ** 2, lambda x: (x**2 - 1) ** 2, 1.0),
        (w[i] ** 4 + w[i] ** 2, lambda x: x**4 + x**2, 2.0),
        (cosh(w[i]) + w[i] ** 2, lambda x: np.cosh(x) + x**2, 1.0),
    ],
    ids=["double well", "stiff", "cosh"],
)
def test_a_fixed_point_on_a_grid(energy, plain, b):
    spins = Problem(Sum(energy - w[i] / 3, (i, 1, N)) - pairs).gibbs(beta)
    solution = spins.cavity().solve({beta: Rational(b)})
    found = [float(solution[o]) for o in OBSERVABLES]
    assert found == pytest.approx(by_quadrature(plain, b, 1 / 3), rel=1e-9)


def test_its_steps_are_verified():
    spins = Problem(Sum((w[i] ** 2 - 1) ** 2 - w[i] / 3, (i, 1, N)) - pairs).gibbs(beta)
    assert all(verdict.ok for row in spins.cavity().derivation.verify() for verdict in row.verdicts)
