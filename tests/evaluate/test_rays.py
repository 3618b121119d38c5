"""Where switching is found along rays, and what a norm of two weights gives against an integral over their length."""

import numpy as np
from mpmath import exp, mp, quad, sqrt
from sympy import Max, Rational, Sum, Symbol
from sympy import sqrt as root

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, average, i, mu
from symcavity.evaluate.averages.rays import sign_changes
from symcavity.model.kinds import alpha


def places(functions, low, high):
    calls = []

    def call(r, some):
        calls.append(len(r))
        return np.array([functions[k](place) for k, place in zip(some, r, strict=True)])

    count = len(functions)
    ends = np.full(count, low), np.full(count, high)
    every = np.arange(count)
    none = np.full(count, np.nan)
    values = call(ends[0], every), call(ends[1], every)
    return sign_changes(call, ends, values, (none, none), (none, none)), len(calls)


def test_sign_changes_are_found_at_corners_jumps_and_ends():
    functions = [
        lambda r: 3 * (r - 0.3) if r < 0.3 else 1e-6 * (r - 0.3),  # a corner
        lambda r: -1.0 if r < 0.7 else 2.0,  # a jump
        lambda r: np.expm1(5 * (r - 0.11)),
        lambda r: 0.0 if r < 0.25 else r - 0.25,  # zero on one side
    ]
    found, count = places(functions, 0.0, 1.0)
    assert np.allclose(found, [0.3, 0.7, 0.11, 0.25], atol=1e-8)
    assert count < 100
    _, count = places(functions[:1], 0.0, 1.0)
    assert count < 20


def test_a_norm_of_two_weights_is_an_integral_over_their_length():
    """By symmetry the two weights are one length, shrunk by the norm and the squares: an integral in one dimension."""
    x, z, w, v, lam = Coupling("x"), Coupling("z"), Feature("w"), Feature("v"), Datum("lambda")
    penalty = Symbol("gamma", positive=True)
    field = Sum(x[mu, i] * w[i], (i, 1, N)) + Sum(z[mu, i] * v[i], (i, 1, N))
    squares = Sum(w[i] ** 2 + v[i] ** 2, (i, 1, N)) / 20
    norms = penalty * Sum(root(w[i] ** 2 + v[i] ** 2), (i, 1, N))
    theory = ConvexProblem(Sum(Max(0, 1 - field), (mu, 1, P)) + norms + squares).cavity()
    found = theory.solve({penalty: Rational(1, 2), alpha: 2})
    force = sqrt(2 * mp.mpf(found[average(lam[mu] ** 2)]))
    curvature = mp.mpf(1) / 10 - 2 * mp.mpf(found["S_lambda_to_h"])
    lowest = mp.mpf(1) / 2 / force

    def over(function):
        return quad(lambda r: r * exp(-r * r / 2) * function(r), [lowest, lowest + 3, lowest + 12]) / 2

    second = over(lambda r: (force * (r - lowest)) ** 2) / curvature**2
    answer = over(lambda r: 2 - lowest / r) / curvature
    assert abs(found[average(w[i] ** 2)] / second - 1) < 1e-10
    assert abs(found["S_w_to_p_2"] / answer - 1) < 1e-10
