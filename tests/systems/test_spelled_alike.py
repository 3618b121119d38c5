"""Declarations that differ in spelling only, and laws whose numbers once ended in errors of another library."""

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, sqrt, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    System,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.evaluate.averages.compiler import Compiled

x, w, v, s = Coupling("x"), Feature("w"), Feature("v"), Feature("s")
t, xi, j = Quenched("t", i), Quenched("xi", i), Symbol("j", integer=True)
RIDGE = Sum(w[i] ** 2, (i, 1, N)) / 2
HERMITE = np.polynomial.hermite_e.hermegauss(120)


def gauss(f):
    """The average of a function of a standard Gaussian."""
    nodes, weights = HERMITE
    return float(weights @ f(nodes) / weights.sum())


def norm_of(problem, values):
    """The mean square of the weights."""
    return problem.cavity().solve(values)[average(w[i] ** 2)]


@pytest.mark.parametrize("shift", [0, 1], ids=["a copy", "a shifted copy"])
def test_a_copy_of_the_weights(shift):
    """Constraints with coefficient one name the weights anew."""
    heard = Sum(x[mu, i] * v[i], (i, 1, N))
    copied = ConvexProblem(RIDGE + Sum((1 - heard) ** 2, (mu, 1, P)), [Eq(v[i], w[i] - shift * t[i])])
    plain = Sum(x[mu, i] * (w[i] - shift * t[i]), (i, 1, N))
    values = {alpha: 2, t: {1: 1}} if shift else {alpha: 2}
    assert norm_of(copied, values) == pytest.approx(
        norm_of(ConvexProblem(RIDGE + Sum((1 - plain) ** 2, (mu, 1, P))), values), rel=1e-10
    )


def test_a_coupling_that_is_another():
    """Correlation one is the coupling itself."""
    z = Coupling("z", correlation={x: 1})
    one, two = (
        ConvexProblem(RIDGE + Sum(Abs(Sum(x[mu, i] * w[i], (i, 1, N)) - Sum(u[mu, i] * t[i], (i, 1, N))), (mu, 1, P)))
        for u in (x, z)
    )
    values = {alpha: 2, t: {1: 1}}
    assert norm_of(one, values) == pytest.approx(norm_of(two, values), rel=1e-10)


def test_the_root_of_what_rounding_made_negative():
    """It is no number, in digits as in double."""
    size = Symbol("q", real=True)
    for backend in ("numpy", "mpmath"):
        value = Compiled(sqrt(size) + 1, backend)({size: -1e-17})
        assert not isinstance(value, complex)
        assert np.isnan(float(value))


def test_a_float_in_an_observable():
    """A number in scientific notation."""
    solution = ConvexProblem(RIDGE + Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - 1) ** 2, (mu, 1, P)) / 2).cavity().solve(
        {alpha: 2}
    )
    key = average(w[i] ** 2)
    assert solution[1e20 * key] == pytest.approx(1e20 * float(solution[key]), rel=1e-14)


def test_a_rectified_saturating_unit():
    """Kinks of a function that vanishes at one place."""
    J = Coupling("J", between=(i, i), reciprocity=0)
    system = System([Eq(s[i], Max(0, tanh(Sum(J[i, j] * s[j], (j, 1, N)) + xi[i])))])
    q = float(system.cavity().solve({xi: {1: "1/2", 0: "1/2"}})[average(s[i] ** 2)])
    ends = np.linspace(-12, 12, 4001)
    share = np.exp(-ends**2 / 2) / np.exp(-ends**2 / 2).sum()
    found = sum(share @ np.maximum(0, np.tanh(np.sqrt(q) * ends + b)) ** 2 / 2 for b in (0, 1))
    assert q == pytest.approx(found, rel=1e-5)


def test_a_loop_of_three_kinds_with_a_drive():
    """Averages over a drive stand inside of averages over the next kind's fields."""
    (a, K), (b, M) = Sites("a", "K"), Sites("b", "M")
    y, z = Variable("y", a), Variable("z", b)
    A, B, D = (Coupling(name, between=ends) for name, ends in (("A", (a, i)), ("B", (b, a)), ("D", (i, b))))
    equations = [
        Eq(s[i], tanh(Sum(D[i, b] * z[b], (b, 1, M)) + xi[i])),
        Eq(y[a], tanh(Sum(A[a, i] * s[i], (i, 1, N)))),
        Eq(z[b], tanh(Sum(B[b, a] * y[a], (a, 1, K)))),
    ]
    solution = System(equations).cavity().solve({xi: {"3/2": "1/2", "-1/2": "1/2"}, K / N: 1, M / N: 2})
    size = float(solution[average(z[b] ** 2)])
    q = np.mean([gauss(lambda u, c=c: np.tanh(np.sqrt(2 * size) * u + c) ** 2) for c in (1.5, -0.5)])
    q = gauss(lambda u: np.tanh(np.sqrt(q) * u) ** 2)
    assert size == pytest.approx(gauss(lambda u: np.tanh(np.sqrt(q) * u) ** 2), rel=1e-8)


def test_a_power_that_is_not_known_is_refused_for_what_it_is():
    """Its slope may be infinite at the origin."""
    p = Symbol("p", positive=True)
    loss = Sum((Sum(x[mu, i] * w[i], (i, 1, N)) - 1) ** 2, (mu, 1, P))
    with pytest.raises(UnsupportedLaw, match="slope"):
        ConvexProblem(loss + Sum(Abs(w[i]) ** p, (i, 1, N))).cavity()
    assert norm_of(ConvexProblem(loss / 2 + Sum(Abs(w[i]) ** Rational(3, 2), (i, 1, N))), {alpha: 2}) > 0
