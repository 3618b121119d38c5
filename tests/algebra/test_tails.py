"""Quotients of what overflows together have numbers far out."""

import numpy as np
import pytest
from sympy import Sum, Symbol, cosh, factorial, log, sinh

from symcavity import ConvexProblem, Coupling, N, P, Sites, Variable, alpha, average, i, mu
from symcavity.algebra.compiled import compiled
from symcavity.algebra.phi import phi
from symcavity.algebra.phi_values import mp_phi
from symcavity.algebra.precision import mp
from symcavity.algebra.tails import with_scaled_tails

x = Symbol("x", real=True)


@pytest.mark.parametrize(
    ("expr", "same"),
    [
        (3 * sinh(x) / cosh(x), lambda v: 3 * np.tanh(v)),
        (1 - sinh(x) ** 2 / cosh(x) ** 2, lambda v: 1 - np.tanh(v) ** 2),
        (sinh(x) / cosh(x) ** 3 + sinh(x - 1) / cosh(x - 1), lambda v: np.tanh(v) / np.cosh(v) ** 2 + np.tanh(v - 1)),
        (sinh(x) + cosh(x), lambda v: np.sinh(v) + np.cosh(v)),
    ],
)
def test_hyperbolic_sines_over_cosines(expr, same):
    far = [] if expr == sinh(x) + cosh(x) else [-5e3, 5e3]
    points = np.array([-3.0, -0.1, 0.0, 2.0, *far])
    with np.errstate(over="ignore"):
        assert compiled([x], expr)(points) == pytest.approx(same(points), rel=1e-14)


def test_a_smooth_penalty_beside_a_condition_of_its_own_kind():
    """log cosh of states that hear the data and a condition: its slope is far out where a self-coupling is weak."""
    a, K = Sites("a", "K")
    X, Z, F = Coupling("X"), Coupling("Z", between=(mu, a)), Coupling("F", between=(a, i))
    w, h = Variable("w", i), Variable("h", a)
    heard = Sum(X[mu, i] * w[i], (i, 1, N)) + Sum(Z[mu, a] * h[a], (a, 1, K))
    problem = ConvexProblem(
        Sum(log(cosh(h[a])), (a, 1, K)) + Sum(w[i] ** 2, (i, 1, N)) + Sum((heard - 1) ** 2, (mu, 1, P)),
        [w[i] + Sum(F[a, i] * h[a], (a, 1, K)) <= 1],
    )
    values = {alpha: 2, K / N: "3/4"}
    observables = [average(w[i] ** 2), average(h[a] ** 2)]
    assert problem.cavity().compare(problem.simulate(values, N=60, seeds=5), observables).agrees(4)


def test_moments_over_their_tail():
    """Where both vanish in double, the quotient and its slope have numbers: ``n!/x**n`` to leading order."""
    x = Symbol("x", real=True)
    quotient = with_scaled_tails((3 * phi(1, x) - phi(2, x)) / phi(0, x) + phi(1, x) ** 2 / phi(0, x) ** 2)
    assert not quotient.has(phi)
    for n in (1, 2, 5):
        own = with_scaled_tails(phi(n, x) / phi(0, x))
        call, slope = compiled([x], own), compiled([x], own.diff(x))
        for place in (2.0, -3.0, -3.999, -4.001, -12.0):
            told = mp_phi(n, mp.mpf(place)) / mp_phi(0, mp.mpf(place))
            assert float(call(place)) == pytest.approx(float(told), rel=1e-13)
        assert float(call(-1e5)) == pytest.approx(float(factorial(n)) * 1e-5**n, rel=1e-8)
        assert float(slope(-300.0)) == pytest.approx((call(-299.99) - call(-300.01)) / 0.02, rel=1e-4)
