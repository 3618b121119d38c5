"""Noise with heavy tails: what is infinite is refused, what is not has its value."""

import warnings

import mpmath
import pytest
from scipy.integrate import quad
from scipy.special import voigt_profile
from sympy import Abs, Max, Piecewise, Rational, Sum, Symbol, sqrt
from sympy.stats import Cauchy, Laplace, Normal, StudentT

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Quenched,
    RoughSolution,
    ValuesError,
    alpha,
    average,
    i,
    mu,
    phi,
    response,
)
from symcavity.evaluate.averages.integrals import LAWS, Pass
from symcavity.evaluate.averages.quenched import read_quenched

x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
gamma = Symbol("gamma", positive=True)
r = e[mu] + Sum(x[mu, i] * (t[i] - w[i]), (i, 1, N))
RIDGE = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
ERROR = average((w[i] - t[i]) ** 2)
LOSSES = {
    "squared": r**2 / 2,
    "absolute": Abs(r),
    "huber": Piecewise((r**2 / 2, Abs(r) <= 1), (Abs(r) - Rational(1, 2), True)),
}
VALUES = {alpha: 2, gamma: 1, t: Normal("t", 0, 1)}


def problem(loss):
    return ConvexProblem(Sum(LOSSES[loss], (mu, 1, P)) + RIDGE)


@pytest.mark.parametrize("law", [Cauchy("e", 0, 1), StudentT("e", 2), StudentT("e", Rational(3, 2))])
def test_a_squared_loss_of_infinite_variance_is_refused(law):
    with pytest.raises(ValuesError, match=r"law of e has heavy tails.* power 2, and is infinite"):
        problem("squared").cavity().solve({**VALUES, e: law})


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_robust_losses_bear_cauchy_noise(loss):
    here = problem(loss)
    values = {**VALUES, e: Cauchy("e", 0, 1)}
    theory = here.cavity()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        solution = theory.solve(values)
    assert solution.residual < 1e-6
    S, q = float(solution[response(w)]), float(solution[ERROR])
    if loss == "absolute":  # by Voigt's profile, the density of a sum of Gauss' and Cauchy's numbers
        inside, _ = quad(lambda u: voigt_profile(u, q**0.5, 1), -S, S, epsabs=1e-13)
        assert abs(S * (float(VALUES[gamma]) + float(VALUES[alpha]) * inside / S) - 1) < 10 * solution.residual
    said = str(solution)
    rough = solution.residual > 1e-10
    assert ("known to           : about" in said) == rough == (solution.digits < 10)
    assert [f"known to about {solution.digits} digits" in str(w.message) for w in warned] == [True] * rough
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RoughSolution)
        (row,) = theory.compare(here.simulate(values, N=100, seeds=8), [ERROR]).rows
    assert abs(row.z) < 5
    with pytest.raises(ValuesError, match="the observable is the average"):
        solution[average(e[mu] ** 2)]


@pytest.mark.parametrize(("law", "spread"), [(Laplace("e", 0, 1), sqrt(2)), (StudentT("e", Rational(5, 2)), sqrt(5))])
def test_a_squared_loss_knows_the_variance_only(law, spread):
    theory = problem("squared").cavity()
    one, other = (theory.solve({**VALUES, e: noise}) for noise in (law, Normal("e", 0, spread)))
    assert abs(one[ERROR] / other[ERROR] - 1) < 1e-11


def test_tails_without_a_mean_modulus_of_any_digits_are_refused():
    with pytest.raises(ValuesError, match="no digits"):
        problem("huber").cavity().solve({**VALUES, e: StudentT("e", Rational(1, 2))})


@pytest.mark.parametrize("far", [1, 30, 180, 400])
def test_what_only_tails_contribute_to(far):
    """The chance that the modulus of a Gaussian, times another, is beyond a bound: an integral of a Bessel function."""
    y = Quenched("y", mu)
    laws = read_quenched([y], {y: Normal("n", 0, 1)}, 15)
    (value,) = Pass([average(phi(0, -far / Abs(y[mu])))])({LAWS: laws})
    with mpmath.workdps(16):
        ends = [far + step for step in (0, 1, 3, 6, 10, 15, 20, 30, 60)]  # beyond it is exp(-60) times as much
        exact = mpmath.quad(lambda s: mpmath.besselk(0, s), ends) / mpmath.pi
    assert value == pytest.approx(float(exact), rel=1e-10)


def test_labels_that_multiply_a_margin_and_are_often_small():
    """All messages are one, but where a label is beyond thirteen: the norm is that of a sum of independent terms."""
    y, c = Quenched("y", mu), Symbol("c", positive=True)
    field = Sum(Coupling("z", variance=c**2 / N)[mu, i] * w[i], (i, 1, N))
    problem = ConvexProblem(
        Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(Max(0, 1 - y[mu] * field), (mu, 1, P))
    )
    solution = problem.cavity().solve({y: Normal("n", 0, 1), alpha: "3/10", c: "1/10"})
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(0.003, rel=1e-13)
    assert float(solution[response(w)]) == pytest.approx(1, rel=1e-13)
