"""Parameters far from one: limits that are known by hand."""

import mpmath
import pytest
from sympy import Abs, Eq, Integer, Max, Rational, Sum, Symbol
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    FlatMinimum,
    Global,
    N,
    NotConverged,
    P,
    Quenched,
    alpha,
    average,
    i,
    mu,
    response,
)

x, w, y, t = Coupling("x"), Feature("w"), Quenched("y", mu), Quenched("t", i)
C = Symbol("C", positive=True)
u = Sum(x[mu, i] * w[i], (i, 1, N))
RIDGE = Sum(w[i] ** 2, (i, 1, N)) / 2
LABELS = {y: {1: "1/2", -1: "1/2"}}
NORM = average(w[i] ** 2)


def data(body):
    return Sum(body, (mu, 1, P))


def solved(objective, values, constraints=()):
    solution = ConvexProblem(minimize=objective, subject_to=constraints).cavity().solve(values)
    assert solution.residual < 1e-14
    return solution


@pytest.mark.parametrize("strength", ["1e-6", "1e-12", "1e-30"])
def test_a_weak_hinge_pushes_every_datum(strength):
    """All data are inside the margin: w is C times their sum."""
    solution = solved(RIDGE + C * data(Max(0, 1 - u)), {alpha: 2, C: strength})
    assert abs(solution[NORM] / (2 * mpmath.mpf(strength) ** 2) - 1) < 1e-6


@pytest.mark.parametrize("load", ["0.5", "2"])
@pytest.mark.parametrize("strength", ["1e20", "1e-30"])
def test_ridges_of_all_strengths(load, strength):
    """Strong: w is the sum of the data over gamma; weak: the least squares, or the interpolation of least norm."""
    solution = solved(data((u - y[mu]) ** 2) / 2 + C * RIDGE, {alpha: load, C: strength, **LABELS})
    limits = {"1e20": mpmath.mpf(load) * mpmath.mpf("1e-40"), "1e-30": 1}  # load/(1-load), or 1/(load-1)
    assert abs(solution[NORM] / limits[strength] - 1) < 1e-14


def test_lasso_with_a_weak_penalty_recovers_a_sparse_teacher():
    """Below the line of Donoho and Tanner the error vanishes as the square of the penalty."""
    taught = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    objective = data(taught**2) / 2 + C * Sum(Abs(w[i]), (i, 1, N))
    law = {t: {0: "9/10", 1: "1/10"}}
    errors = []
    for strength in ("3e-3", "3e-5", "3e-7"):
        solution = solved(objective, {alpha: "1/2", C: strength, **law})
        errors.append(solution[average((w[i] - t[i]) ** 2)] / mpmath.mpf(strength) ** 2)
    assert abs(errors[2] / errors[1] - 1) < 1e-4
    assert abs(errors[1] / errors[0] - 1) < 1e-2


@pytest.mark.parametrize("eigenvalue", ["1e-12", "1e12"])
def test_one_eigenvalue_is_a_unit_of_the_weights(eigenvalue):
    l = Quenched("l", i, positive=True)
    field = Sum(Coupling("x", variance=l[i] / N)[mu, i] * w[i], (i, 1, N))
    one, other = (solved(RIDGE, {alpha: 1, l: {value: 1}}, [field >= 1]) for value in ("1", eigenvalue))
    assert abs(other[NORM] * mpmath.mpf(eigenvalue) / one[NORM] - 1) < 1e-14
    assert abs(other[response(w)] / one[response(w)] - 1) < 1e-14


@pytest.mark.parametrize(
    ("loss", "load"), [(u**2 / 2, 1), (u**2 / 2 + u**4, 1), (Max(0, -1 - u), 2), (Max(0, Abs(u) - 1) ** 2, 2)]
)
def test_a_minimum_at_zero_is_reported_as_such(loss, load):
    problem = ConvexProblem(minimize=RIDGE + data(loss))
    solution = problem.cavity().solve({alpha: load})
    assert {"q_lambda", "q_w"} <= {str(s) for s in solution.at_rest}
    assert solution[NORM] == 0
    states = problem.simulate({alpha: load}, N=30, seeds=1)
    assert abs(states.arrays(w)).max() < 1e-8


def test_a_weak_loss_whose_closed_forms_cancel():
    """At C = 1e-9 doubles hold nothing of q_lambda/C**2; theory goes over to more digits by itself."""
    from symcavity.derivations import support_vector_regression as tube

    theory, found = tube.problem.cavity(), {}
    for penalty in ("1e-9", "1e-6"):
        values = {**tube.values, alpha: 8} | {k: penalty for k in tube.values if str(k) == "C"}
        solution = theory.solve(values)
        assert solution.residual < 1e-9
        moment = next(solution[k] for k in solution.values if str(k).startswith("q_") and str(k) != "q_w")
        found[penalty] = float(moment) / float(penalty) ** 2
    assert found["1e-9"] == pytest.approx(found["1e-6"], rel=1e-5)


@pytest.mark.parametrize("cost", [20, 1000])
def test_weights_that_are_too_dear_leave_messages_as_they_are(cost):
    """No weight moves: each datum pushes by its slope, 2 or 1/2, and fields are Gaussian; doubles cancel to nothing."""
    residual = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - y[mu]
    loss = data(Max(2 * residual, -residual / 2))
    theory = ConvexProblem(minimize=loss + C * Sum(Abs(w[i]), (i, 1, N))).cavity()
    law = {y: {2: "1/3", -1: "2/3"}, t: Normal("n", 0, 1)}
    solution = theory.solve({alpha: 1, C: cost, **law})
    above = (mpmath.ncdf(-2) + 2 * mpmath.ncdf(1)) / 3
    moment, force = 1 + 15 * above, -5 * (mpmath.npdf(2) + 2 * mpmath.npdf(1)) / 3  # in halves of messages
    width = mpmath.sqrt(moment / 4 + (force / 2) ** 2)
    found = {str(k)[:3]: v for k, v in solution.values.items()}
    assert abs(found["q_1"] / moment - 1) < 1e-12
    assert abs(found["S_1"] / force - 1) < 1e-12
    assert abs(found["S_w"] - mpmath.erfc(cost / width / mpmath.sqrt(2)) / (-force / 2)) <= 1e-9 * found["S_w"] + 1e-250
    assert solution.residual < 1e-12
    if cost == 20:
        assert abs(solution.stability - 1) < 1e-9  # as many weights as data are between two slopes: marginal


def test_an_unknown_without_a_value_is_no_solution():
    """Data that are met exactly have |w|**2 = alpha <y**2>/(1 - alpha) = 3/7: no weight of the loss gives more."""
    problem = ConvexProblem(RIDGE + C * data(Abs(y[mu] - u)), fixed=[Eq(NORM, 1)])
    with pytest.raises(NotConverged, match="does not prove") as caught:
        problem.cavity().solve({alpha: "3/10", **LABELS})
    assert caught.value.best[C] > 100  # it comes closer the larger C is


@pytest.mark.parametrize(("margins", "cost"), [((1, 1), "1/1000"), ((1, 2), "1/10")])
def test_a_bias_that_no_site_answers_is_not_fixed_and_all_else_is(margins, cost):
    """Such weak weights leave all data on one side of the kink: each sends ``y C``, and ``|w|**2 = alpha C**2``."""
    b, (right, left) = Global("b"), margins
    losses = Max(0, (right + left + (right - left) * y[mu]) / Integer(2) - y[mu] * (u + b))
    solution = ConvexProblem(RIDGE + C * data(losses)).cavity().solve({alpha: "1/1000", C: cost, **LABELS})
    assert float(solution[NORM]) == pytest.approx(float(Rational(cost) ** 2 / 1000), rel=1e-14)
    assert float(solution[response(w)]) == pytest.approx(1, rel=1e-14)
    with pytest.raises(FlatMinimum, match="differs from one minimum to another"):
        solution[b]
    assert solution.stability == 0
