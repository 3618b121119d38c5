"""Certificates: boxes that hold the solution, and none around what is no solution."""

import sys

import mpmath
import numpy as np
import pytest
from sympy import Abs, Max, Rational, Sum, Symbol, exp, log, sign

from symcavity import (
    Ball,
    ConvexProblem,
    Coupling,
    Feature,
    MissingDependency,
    N,
    NotConverged,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    i,
    mu,
)
from symcavity.derivations import anisotropic, gardner, manifold, output_bias
from symcavity.evaluate.certificate import certify

flint = pytest.importorskip("flint")
HALF = Rational(1, 2)
x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2
gamma = Symbol("gamma", positive=True)


def data(loss):
    return Sum(loss, (mu, 1, P))


def test_the_capacity_of_the_perceptron_lies_in_its_ball():
    solution = gardner.problem.cavity().solve({gardner.kappa: 1}, dps=35, certify=True)
    ball = solution.certified[alpha]
    with mpmath.workdps(50):  # 1/alpha = (1 + k^2) Phi(k) + k density(k)
        value = 1 / (2 * mpmath.ncdf(1) + mpmath.npdf(1))
        assert ball.overlaps(flint.arb(mpmath.nstr(value, 48)))
    assert ball.rad() < 1e-35
    assert "certified" in str(solution)


@pytest.mark.parametrize("dps", [15, 30])
def test_a_smooth_loss_is_enclosed_with_its_integrals(dps):
    """Logistic regression, against a fixed point on a plain grid."""
    solution = ConvexProblem(data(log(1 + exp(-u))) + half).cavity().solve({alpha: 2}, dps=dps, certify=True)
    z = np.linspace(-12, 12, 4801)
    weight = np.exp(-z * z / 2)
    weight /= weight.sum()
    q, s = 0.2, 0.7
    for _ in range(200):
        h = np.sqrt(q) * z
        for _ in range(60):
            p = 1 / (1 + np.exp(h))
            h -= (h - np.sqrt(q) * z - s * p) / (1 + s * p * (1 - p))
        p = 1 / (1 + np.exp(h))
        curvature = p * (1 - p)
        s = 1 / (1 + 2 * (weight @ (curvature / (1 + s * curvature))))
        q = 2 * (weight @ p**2) * s**2
    names = {str(k): v for k, v in solution.certified.items()}
    assert abs(float(names["q_w"].mid()) - q) < 1e-10
    assert abs(float(names["S_w"].mid()) - s) < 1e-10
    assert all(ball.rad() < 10.0 ** -(dps - 1) for ball in names.values())


CASES = {
    "bias": (output_bias.problem, {output_bias.kappa: HALF, output_bias.y: {1: Rational(4, 5), -1: Rational(1, 5)}}),
    "an array": (anisotropic.problem, {anisotropic.kappa: HALF, anisotropic.l: [0.25, 0.5, 2.0, 1.25]}),
    "kinks": (
        ConvexProblem(data((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))) ** 2) / 2 + gamma * Sum(Abs(w[i]), (i, 1, N))),
        {alpha: 2, gamma: HALF, t: {0: HALF, 1: HALF}},
    ),
    "a teacher": (
        ConvexProblem(data(Max(0, 1 - sign(Sum(x[mu, i] * t[i], (i, 1, N))) * u)) + half),
        {alpha: 2, t: {1: 1}},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_enclosed_is_what_was_solved(case):
    problem, values = CASES[case]
    theory = problem.cavity()
    solution = theory.solve(values, certify=True)
    for symbol, ball in solution.certified.items():
        assert abs(float(ball.mid()) - float(solution.values[symbol])) < 1e-12 * (1 + abs(float(ball.mid())))
        assert ball.rad() < 1e-12


def test_a_wrong_root_is_not_certified():
    solution = gardner.problem.cavity().solve({gardner.kappa: 1})
    assert certify(solution)
    right = dict(solution.values)
    solution.values = {s: v * mpmath.mpf("1.00001") for s, v in right.items()}
    near = certify(solution)  # Newton's method leads back: the box is around the solution, not around what was given
    assert near[alpha].overlaps(flint.arb("0.51957222960493794693765648676917"))
    solution.values = {s: v * mpmath.mpf("1.3") for s, v in right.items()}
    with pytest.raises(NotConverged, match=r"not certified|degenerate"):
        certify(solution)


def test_a_false_equation_moves_the_box(monkeypatch):
    """The certificate is of the closed equations: with another one the box is elsewhere, or there is none."""
    theory = gardner.problem.cavity()
    solution = theory.solve({gardner.kappa: 1})
    first = solution.task.equations[0]
    wrong = [type(first)(first.lhs, 2 * first.rhs), *solution.task.equations[1:]]
    monkeypatch.setattr(solution.task, "equations", wrong)  # a theory is one object for all who ask for it
    with pytest.raises(NotConverged, match=r"not certified|degenerate"):
        certify(solution)


def test_what_is_not_enclosed_is_refused(monkeypatch):
    with pytest.raises(UnsupportedLaw, match="sets"):
        manifold.problem.cavity().solve({manifold.g: Ball(2, HALF), manifold.kappa: 1}, certify=True)
    with pytest.raises(UnsupportedLaw, match="limit"):
        ConvexProblem(data(u**2) + half).cavity().solve({alpha: 2}, certify=True)
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingDependency, match="python-flint"):
        gardner.problem.cavity().solve({gardner.kappa: 1}, certify=True)
