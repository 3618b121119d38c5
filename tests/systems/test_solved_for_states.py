"""Bounds on products of states that cannot be negative: cones, which are convex once they are solved for a state."""

import numpy as np
import pytest
from references import near
from scipy.optimize import minimize
from sympy import Abs, Rational, Sum, Symbol, sqrt

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    N,
    NotConvex,
    P,
    Quenched,
    Variable,
    alpha,
    average,
    i,
    mu,
)

x, w, v, z, y = Coupling("x"), Feature("w"), Variable("v", i), Datum("z"), Quenched("y", mu)
c = Symbol("c", positive=True)
r = Sum(x[mu, i] * w[i], (i, 1, N)) - y[mu]
SIGNS = {y: {1: "1/2", -1: "1/2"}}
ridge, lengths = Sum(w[i] ** 2, (i, 1, N)) / 2, Sum(z[mu], (mu, 1, P))
both, misfit = Sum(v[i] + w[i], (i, 1, N)), Sum(r**2, (mu, 1, P)) / 2
NORM = average(w[i] ** 2)


def norm(objective, bounds, **values):
    given = {alpha: 2, **SIGNS, **{Symbol(k, positive=True): number for k, number in values.items()}}
    return ConvexProblem(objective, bounds).cavity().solve(given)[NORM]


@pytest.mark.parametrize(
    ("bounds", "values"),
    [
        ([z[mu] ** 2 >= 1 + r**2, z[mu] >= 0], {}),
        ([z[mu] ** 2 - r**2 >= 1, z[mu] >= 0], {}),
        ([c + r**2 <= z[mu] ** 2, z[mu] >= 0], {"c": 1}),
    ],
    ids=["turned", "one side", "a parameter"],
)
def test_a_cone_is_a_length(bounds, values):
    assert near(norm(lengths + ridge, bounds, **values), norm(Sum(sqrt(1 + r**2), (mu, 1, P)) + ridge, []), "1e-13")


@pytest.mark.parametrize("least", [0, 1])
def test_what_a_cone_implies_is_left_out(least):
    """A bound that is met nowhere, or only where the cone is: it would have a multiplier of its own."""
    wanted = norm(Sum(1 + r**2, (mu, 1, P)) + ridge, [])
    squares = Sum(z[mu] ** 2, (mu, 1, P))
    assert near(norm(squares + ridge, [z[mu] ** 2 >= 1 + r**2, z[mu] >= least]), wanted, "1e-13")


def test_a_cone_with_a_tip_is_a_size():
    wanted = norm(Sum(Abs(r), (mu, 1, P)) + ridge, [])
    assert near(norm(lengths + ridge, [z[mu] ** 2 >= r**2, z[mu] >= 0]), wanted, "1e-13")


@pytest.mark.parametrize(
    ("bounds", "values"),
    [
        ([v[i] * w[i] >= 1, v[i] >= 0, w[i] >= 0], {}),
        ([v[i] * w[i] >= 1, w[i] >= 0], {}),
        ([2 * c <= 2 * v[i] * w[i], v[i] >= Rational(1, 100)], {"c": 1}),
    ],
    ids=["both signs", "one sign, which implies the other", "a parameter"],
)
def test_a_branch_of_a_hyperbola(bounds, values):
    wanted = norm(both + misfit, [w[i] >= 1 / v[i], v[i] >= 0])
    assert near(norm(both + misfit, bounds, **values), wanted, "1e-13")


def test_a_hyperbola_of_each_site():
    m = Quenched("m", i, positive=True)
    given = {alpha: 2, m: {1: "1/2", 2: "1/2"}, **SIGNS}
    pairs = [w[i] >= m[i] / v[i], v[i] >= 0], [v[i] * w[i] >= m[i], v[i] >= 0]
    wanted, found = (ConvexProblem(both + misfit, bounds).cavity().solve(given)[NORM] for bounds in pairs)
    assert near(found, wanted, "1e-13")


def test_a_hyperbola_against_instances():
    """With v = 1/w what is left is a fit with ``w + 1/w``, which a quasi-Newton method minimizes in logarithms."""
    solution = ConvexProblem(both + misfit, [v[i] * w[i] >= 1, v[i] >= 0]).cavity().solve({alpha: 2, **SIGNS})
    draw, n, found = np.random.default_rng(3), 150, []
    for _ in range(12):
        X, target = draw.normal(size=(2 * n, n)) / np.sqrt(n), draw.choice([-1.0, 1.0], size=2 * n)

        def cost(u, X=X, target=target):
            at = np.exp(u)
            miss = X @ at - target
            return (at + 1 / at).sum() + miss @ miss / 2, at * (1 - 1 / at**2 + X.T @ miss)

        found.append(np.mean(np.exp(minimize(cost, np.zeros(n), jac=True, method="L-BFGS-B").x) ** 2))
    assert abs(np.mean(found) - float(solution[NORM])) < 4.5 * np.std(found, ddof=1) / np.sqrt(len(found))


def test_the_record_of_a_cone():
    assert not ConvexProblem(lengths + ridge, [z[mu] ** 2 >= 1 + r**2, z[mu] >= 0]).cavity().derivation.verify().failed


@pytest.mark.parametrize(
    "bounds",
    [
        [z[mu] ** 2 >= 1 + r**2],
        [z[mu] ** 2 >= r**2 - 1, z[mu] >= 0],
        [z[mu] ** 2 + 1 >= r**2, z[mu] >= 0],
    ],
    ids=["of either sign", "no sum of squares", "nor written so"],
)
def test_what_is_no_cone_is_refused(bounds):
    with pytest.raises(NotConvex):
        ConvexProblem(lengths + ridge, bounds)
