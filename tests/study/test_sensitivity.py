"""Derivatives of observables against closed forms, and against difference quotients of solutions with many digits."""

import mpmath
import pytest
from sympy import Rational, Sum, Symbol, exp, log

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    phi,
)
from symcavity.derivations import anisotropic, gardner, manifold
from symcavity.errors import NotConverged
from symcavity.shapes import Ball

half = Rational(1, 2)
x, w, gamma = Coupling("x"), Feature("w"), Symbol("gamma", positive=True)
h = Sum(x[mu, i] * w[i], (i, 1, N))


def test_the_capacity_moves_with_the_margin_to_fifty_digits():
    """alpha = 1/phi_2(kappa), and phi_2' = 2 phi_1."""
    kappa = gardner.kappa
    found = gardner.problem.cavity().sensitivity(alpha, kappa, {kappa: 1}, dps=50)
    exact = (-2 * phi(1, kappa) / phi(2, kappa) ** 2).subs(kappa, 1).evalf(60)
    with mpmath.workdps(50):
        assert abs(found / mpmath.mpf(str(exact)) - 1) < mpmath.mpf("1e-48")


def test_the_margin_moves_with_the_capacity_the_other_way():
    kappa, theory = gardner.kappa, gardner.problem.cavity()
    there = theory.sensitivity(kappa, alpha, {alpha: "1.2"})
    margin = theory.solve({alpha: "1.2"}, dps=30)[kappa]
    back = theory.sensitivity(alpha, kappa, {kappa: mpmath.nstr(margin, 25)}, dps=20)
    assert abs(there * back - 1) < 1e-13


def differences(theory, observable, parameter, values, step="1e-8", dps=30):
    with mpmath.workdps(dps):
        step = mpmath.mpf(step)
        ends = [mpmath.mpf(str(values[parameter])) + way * step for way in (1, -1)]
        up, down = (theory.solve({**values, parameter: mpmath.nstr(e, dps)}, dps=dps)[observable] for e in ends)
        return (up - down) / (2 * step)


def test_features_of_two_variances():
    kappa, theory = anisotropic.kappa, anisotropic.problem.cavity()
    values = {kappa: "0.5", anisotropic.l: {"1/5": half, "9/5": half}}
    reference = differences(theory, alpha, kappa, values)
    assert abs(theory.sensitivity(alpha, kappa, values) / reference - 1) < 1e-14


def test_averages_by_quadrature_in_double_and_beyond():
    logistic = ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    values = {alpha: 2, gamma: "1"}
    observable = average(w[i] ** 2)
    reference = differences(logistic, observable, gamma, values, "1e-6", 20)
    double = logistic.sensitivity(observable, gamma, values)
    fine = logistic.sensitivity(observable, gamma, values, dps=18)
    assert abs(fine / reference - 1) < 1e-10
    assert abs(double / fine - 1) < 1e-12


def test_a_teacher_in_double():
    t = Quenched("t", i)
    u = Sum(x[mu, i] * t[i], (i, 1, N))
    y = Quenched("y", mu, law={1: 1 / (1 + exp(-u)), -1: 1 / (1 + exp(u))}, given=u)
    learning = ConvexProblem(Sum(log(1 + exp(-y[mu] * h)), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory, values = learning.cavity(), {alpha: 2, gamma: 1, t: {1: half, -1: half}}
    up, down = (float(theory.solve({**values, gamma: 1 + s})[average(w[i] * t[i])]) for s in (1e-4, -1e-4))
    assert theory.sensitivity(average(w[i] * t[i]), gamma, values) == pytest.approx((up - down) / 2e-4, rel=1e-7)


def test_averages_over_sets_in_double_only():
    theory, values = manifold.problem.cavity(), {manifold.kappa: "1/2", manifold.g: Ball(5, 1)}
    up, down = (float(theory.solve({**values, manifold.kappa: k})[alpha]) for k in ("0.501", "0.499"))
    assert theory.sensitivity(alpha, manifold.kappa, values) == pytest.approx((up - down) / 2e-3, rel=1e-5)
    with pytest.raises(UnsupportedLaw, match="double"):
        theory.sensitivity(alpha, manifold.kappa, values, dps=25)


def test_what_has_no_derivative_is_refused():
    theory, kappa = gardner.problem.cavity(), gardner.kappa
    with pytest.raises(ValuesError, match="not a parameter with a value"):
        theory.sensitivity(alpha, alpha, {kappa: 1})
    flat = ConvexProblem(Sum(h**2, (mu, 1, P)) / 2, subject_to=[Sum(w[i], (i, 1, N)) >= N]).cavity()
    assert theory.sensitivity(average(w[i] ** 2), kappa, {kappa: 2}) == pytest.approx(-2 / 8)
    with pytest.raises((NotConverged, ValuesError)):
        flat.sensitivity(average(w[i]), gamma, {alpha: 2})
