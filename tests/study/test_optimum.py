"""Optimal parameters against closed forms."""

import mpmath
import pytest
from sympy import Rational, Sum, Symbol, log, sqrt

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, ValuesError, alpha, average, i, mu
from symcavity.errors import NotConverged

half = Rational(1, 2)
x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
gamma, s = Symbol("gamma", positive=True), Symbol("s", positive=True)
gap = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - s * e[mu]
ridge = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)
error = average((w[i] - t[i]) ** 2)
values = {alpha: 2, t: {1: half, -1: half}, e: {1: half, -1: half}}


@pytest.fixture(scope="module")
def theory():
    return ridge.cavity()


def test_the_best_ridge_is_noise_over_signal(theory):
    """The posterior mean of Gaussian weights, whatever the load: gamma = s**2/<t**2>."""
    for load, noise, signal in ((2, "1/2", 1), ("0.6", "2", 3)):
        law = {signal: half, -signal: half}
        found = theory.optimize(error, gamma, {**values, alpha: load, s: noise, t: law})
        assert float(found.place) == pytest.approx(float(Rational(noise)) ** 2 / signal**2, rel=1e-7)
        assert not found.bound
        given = {**values, alpha: load, s: noise, t: law}
        assert min(theory.solve({**given, gamma: found.place * f})[error] for f in (0.9, 1.1)) > found.value


def test_to_forty_digits(theory):
    found = theory.optimize(error, gamma, {**values, s: "1/3"}, dps=40)
    with mpmath.workdps(40):
        assert abs(found.place - mpmath.mpf(1) / 9) < mpmath.mpf("1e-39")


def test_bounds_are_reported_and_ends_that_nobody_asked_for_refused(theory):
    found = theory.optimize(error, gamma, {**values, s: half}, bounds=("1/2", 10))
    assert (found.bound, float(found.place)) == ("lower", 0.5)
    assert "at the lower bound" in str(found)
    found = theory.optimize(error, gamma, {**values, s: half}, bounds=("1/100", 10), maximize=True)
    assert (found.bound, float(found.place)) == ("upper", 10.0)
    with pytest.raises(NotConverged, match="no optimum inside"):
        theory.optimize(average(w[i] ** 2), gamma, {**values, s: half})
    with pytest.raises(NotConverged, match="does not depend"):
        theory.optimize(average(t[i] ** 2), gamma, {**values, s: half})


def test_bad_input(theory):
    with pytest.raises(ValuesError, match="varied, and has a value"):
        theory.optimize(error, gamma, {**values, s: half, gamma: 1})
    with pytest.raises(ValuesError, match="bounds"):
        theory.optimize(error, gamma, {**values, s: half}, bounds=(2, 1))
    with pytest.raises(ValuesError, match="not a parameter"):
        theory.optimize(error, Symbol("c"), {**values, s: half})
    with pytest.raises(ValuesError, match="of the declaration"):
        theory.optimize(error, Symbol("gamma"), {**values, s: half})
    with pytest.raises(ValuesError, match="not a parameter"):
        theory.optimize(error, "gama", {**values, s: half})
    for several in ([gamma, s], (gamma, s), {gamma: (1, 2), s: (1, 2)}):
        with pytest.raises(ValuesError, match="one parameter at a time"):
            theory.optimize(error, several, values)
    with pytest.raises(ValuesError, match="mapping"):
        theory.optimize(error, gamma, [values])
    with pytest.raises(ValuesError, match="divided by zero"):
        theory.optimize(error / (s - s), gamma, {**values, s: half})


def test_an_observable_that_is_no_number_somewhere_is_refused_there(theory):
    given = {**values, s: half}
    best = theory.optimize(error, gamma, given).value
    edge = Rational(float(theory.solve({**given, gamma: 2})[error]))  # the root is a number on one side of two only
    with pytest.raises(NotConverged, match=r"At gamma = .*is not a number"):
        theory.optimize(sqrt(edge - error), gamma, given, bounds=("1/10", 10))
    assert theory.optimize(sqrt(edge - error), gamma, given, bounds=("1/10", "19/10"), maximize=True).value > 0
    found = theory.optimize(log(error), gamma, given, bounds=("1/10", 10))
    assert float(found.value) == pytest.approx(float(mpmath.log(best)))
