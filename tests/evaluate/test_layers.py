"""Copies that are one, or nearly: averages over two fields of almost one value."""

from itertools import pairwise

import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, log, sqrt
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu, phi
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.evaluate.averages import groups, layers
from symcavity.evaluate.averages.integrals import Pass

x, w, y = Coupling("x"), Feature("w"), Quenched("y", mu)
gamma, u = Symbol("gamma", positive=True), Symbol("u", nonnegative=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))
LOSSES = {
    "hinge": Max(0, 1 - h),
    "squared hinge": Max(0, 1 - h) ** 2,
    "logistic": log(1 + exp(-h)),
    "absolute": Abs(y[mu] - h),
}
FAR, NEAR = Rational(999, 1000), 1 - Rational(1, 10**9)


def copies_of(name):
    problem = ConvexProblem(Sum(LOSSES[name], (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    noise = {y: Normal("y", 0, 1)} if name == "absolute" else {}
    return problem, problem.copies(2, share={x: u}), noise


def overlap(copies, solution):
    one, other = copies["w_1"], copies["w_2"]
    return float(solution[average(one[i] * other[i])] / solution[average(one[i] ** 2)])


@pytest.mark.parametrize(
    ("name", "load", "penalty"),
    [
        ("hinge", 2, "1/2"),
        ("hinge", "1/2", 2),
        ("hinge", 4, "1/20"),
        ("squared hinge", 3, "1/5"),
        ("logistic", 2, "1/3"),
        ("absolute", 2, "1/2"),
        ("absolute", 3, "1/10"),
    ],
)
def test_copies_go_from_independence_to_one(name, load, penalty):
    """Close to one another they differ by the linear response: ``1 - q12/q = (1 - u)(1 + rho)/(1 - rho)``."""
    problem, copies, noise = copies_of(name)
    values = {alpha: load, gamma: penalty, **noise}
    rho = float(problem.cavity().solve(values).stability)
    theory = copies.cavity()
    rows = [overlap(copies, theory.solve({**values, u: share})) for share in (0, "1/2", FAR, NEAR, 1)]
    assert abs(rows[0]) < 1e-13
    assert all(a < b for a, b in pairwise(rows))
    assert rows[-1] == pytest.approx(1, abs=5e-11)
    assert (1 - rows[-2]) * 1e9 == pytest.approx((1 + rho) / (1 - rho), rel=2e-2)


def test_sparse_fits_that_are_one_and_nearly_so():
    """Of a LASSO with a sparse teacher: ``q - q12`` in linear response, with the gains of both kinds of sites."""
    t = Quenched("t", i)
    fit = Sum((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - y[mu]) ** 2, (mu, 1, P)) / 2
    problem = ConvexProblem(fit + gamma * Sum(Abs(w[i]), (i, 1, N)))
    values = {alpha: "3/2", gamma: "1/2", t: {0: "4/5", 2: "1/5"}, y: Normal("y", 0, Rational(1, 2))}
    alone = problem.cavity().solve(values)
    copies = problem.copies(2, share={x: u})
    one, other = copies["w_1"], copies["w_2"]
    at = [copies.cavity().solve({**values, u: share}) for share in (NEAR, 1)]
    near, same = (float(s[average(one[i] ** 2)] - s[average(one[i] * other[i])]) for s in at)
    assert abs(same) < 1e-11
    rho, slope = float(alone.stability), float(alone["S_lambda"])
    error = float(alone[average((w[i] - t[i]) ** 2)])
    force = float(alone["q_lambda"])
    assert near * 1e9 == pytest.approx((rho * error + rho / slope**2 * force) / (1 - rho), rel=2e-2)


def test_one_copy_has_any_number_of_digits():
    _, copies, _ = copies_of("hinge")
    found = copies.cavity().solve({alpha: 2, gamma: "1/2", u: 1}, dps=25)
    one, other = copies["w_1"], copies["w_2"]
    assert abs(found[average(one[i] ** 2)] - found[average(one[i] * other[i])]) < 1e-24


def relu_overlap():
    """The overlap of two rectified fields of correlation ``r``: one of them averaged at the other, given one."""
    r, z = Symbol("r", positive=True), Symbol("z", real=True)
    s = sqrt(1 - r**2)
    return r, GaussianAverage(Max(0, z) * s * phi(1, r * z / s), z)


@pytest.mark.parametrize("gap", [0.5, 1e-2, 1e-5, 1e-8, 1e-11, 1e-15, 0.0])
def test_overlaps_of_rectified_fields(gap):
    """The kernel of Cho and Saul, ``(sin a + (pi - a) cos a)/(2 pi)`` at the angle ``a``."""
    r, expr = relu_overlap()
    angle = np.arccos(1 - gap)
    (found,) = Pass([expr])({r: 1 - gap})
    assert float(found) == pytest.approx((np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi), rel=4e-15)


def test_without_panels_at_the_layers_the_difference_of_two_copies_is_lost(monkeypatch):
    monkeypatch.setattr(groups, "layers", lambda *_: [])
    _, copies, _ = copies_of("hinge")
    found = overlap(copies, copies.cavity().solve({alpha: 2, gamma: "1/2", u: 1 - Rational(1, 10**9)}))
    assert 1 - found != pytest.approx(3.678e-9, rel=0.1)


def test_a_difference_keeps_its_sign_beyond_rounding():
    found = layers.np_remainder(np.array([0.5, -1e-15, 0.0, -0.5]), 1.0)
    assert found[0] == 0.5
    assert found[-1] == -0.5
    assert all(found[1:3] > 0)
