"""Norms of what fields miss: the distance of several fields from a point, or from what teachers say."""

import numpy as np
import pytest
from sympy import Rational, Sum, symbols

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, norm

half = Rational(1, 2)
x, z, w = Coupling("x"), Coupling("z"), Feature("w")
gamma = symbols("gamma", positive=True)


def by_rings(load, penalty, shift):
    """Squares of weights whose data pay the distance of two fields from a point, integrated on rings around it."""
    r, weight = np.polynomial.legendre.leggauss(60)
    angles = np.linspace(0, 2 * np.pi, 240, endpoint=False)

    def moments(q, S):
        total = slope = size = 0.0
        for low, high in ((0, S), (S, S + 3), (S + 3, S + 12)):
            radius = (low + (high - low) * (r + 1) / 2)[:, None]
            first, second = shift + radius * np.cos(angles), radius * np.sin(angles)
            density = np.exp(-(first**2 + second**2) / (2 * q)) / (2 * np.pi * q)
            each = (weight[:, None] * (high - low) / 2) * radius * density * (2 * np.pi / len(angles))
            inside = radius <= S
            total += np.sum(each)
            size += np.sum(each * np.where(inside, (radius / S) ** 2, 1))
            slope += np.sum(each * np.where(inside, 2 / S, 1 / radius))
        assert abs(total - 1) < 1e-7
        return size, slope

    q, S = 0.3, 1.0
    for _ in range(400):
        size, slope = moments(q, S)
        S = (S + 1 / (penalty + load * slope)) / 2
        q = (q + load * size * S**2) / 2
    return q


def test_the_distance_of_two_fields_from_a_point():
    """A part of the data meets the point, where the slope of the norm is any vector in the ball."""
    first, second = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(z[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(Sum(norm(first - 1, second), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory = problem.cavity()
    solution = theory.solve({alpha: 1, gamma: half})
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(by_rings(1, 0.5, 1), rel=1e-6)
    simulation = problem.simulate({alpha: 1, gamma: half}, N=80, seeds=8)
    assert abs(simulation[average(w[i] ** 2)].z(solution[average(w[i] ** 2)])) < 4


def test_the_distance_from_two_teachers_is_verified():
    """Teachers and residuals share their sums in the record; the witness knows the norm by its values."""
    t = Quenched("t", i)
    errors = (Sum(c[mu, i] * t[i], (i, 1, N)) - Sum(c[mu, i] * w[i], (i, 1, N)) for c in (x, z))
    problem = ConvexProblem(Sum(norm(*errors), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    outcome = problem.cavity().derivation.verify()
    assert outcome
    assert not outcome.unchecked
