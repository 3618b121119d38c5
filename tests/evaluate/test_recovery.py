"""Exact recoveries of a teacher that other data hear too, as limits at rest: against literature and linear programs."""

import numpy as np
import pytest
from scipy.optimize import brentq, linprog
from sympy import Abs, Max, Piecewise, Rational, Sum, exp, log

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    FlatMinimum,
    Global,
    Infeasible,
    N,
    P,
    Quenched,
    alpha,
    average,
    i,
    mu,
    response,
)

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
heard, c = Quenched("heard", mu), Quenched("c", i)
u, v = (Sum(x[mu, i] * s[i], (i, 1, N)) for s in (w, t))
error = average((w[i] - t[i]) ** 2)
half = Rational(1, 2)
outliers = {heard: {1: "7/10", 0: "3/10"}, t: {1: half, -1: half}}


@pytest.fixture(scope="module")
def deviations():
    """Least absolute deviations; three tenths of the data do not hear the teacher: their label is zero."""
    return ConvexProblem(Sum(Abs(heard[mu] * v - u), (mu, 1, P))).cavity()


def recovers(load, seed, size=60):
    """Whether a linear program finds the teacher from data of which three tenths do not hear it."""
    rng = np.random.default_rng(seed)
    count = int(load * size)
    matrix = rng.standard_normal((count, size)) / np.sqrt(size)
    teacher = rng.choice([-1.0, 1.0], size)
    label = np.where(rng.random(count) < 0.7, matrix @ teacher, 0.0)
    bounds = np.block([[matrix, -np.eye(count)], [-matrix, -np.eye(count)]])
    cost = np.concatenate([np.zeros(size), np.ones(count)])
    ranges = [(None, None)] * size + [(0, None)] * count
    found = linprog(cost, bounds, np.concatenate([label, -label]), bounds=ranges).x[:size]
    return np.mean((found - teacher) ** 2) < 1e-12


def test_least_absolute_deviations_recover_a_teacher_that_some_data_do_not_hear(deviations):
    """The objective is what the outliers leave, 3/10 of the data at ``<|v|> = sqrt(2/pi)`` each."""
    solution = deviations.solve({**outliers, alpha: 20})
    assert solution[error] == solution[response(w)] == 0
    assert solution["q_w"] == solution["q_t_w"] == 1
    assert float(solution.objective) == pytest.approx(6 * np.sqrt(2 / np.pi), rel=1e-9)
    assert 0 < solution.stability < 1
    assert "-2*q_t_w + q_w + average(t[i]**2)" in str(solution)
    with pytest.raises(FlatMinimum, match="dual variables"):
        solution["q_lambda_minus_lambda_2"]


def test_instances_recover_where_theory_does(deviations):
    """On both sides of the load at which the stability reaches one, by linear programs."""
    beyond, before = (deviations.solve({**outliers, alpha: load}) for load in (7, 2))
    assert beyond[error] == 0
    assert float(before[error]) > 0.1
    assert all(recovers(7, seed) for seed in range(5))
    assert not any(recovers(2, seed) for seed in range(5))


def test_recoveries_have_digits(deviations):
    solution = deviations.solve({**outliers, alpha: 20}, dps=40)
    assert solution.digits == 40
    assert solution[average(w[i] ** 2)] == 1
    assert solution[error] == 0


def test_half_of_the_teacher_is_a_recovery_too():
    """Labels may be any multiple of a teacher's field: it stands where the law has its kink."""
    theory = ConvexProblem(Sum(Abs(heard[mu] * v - u), (mu, 1, P))).cavity()
    solution = theory.solve({heard: {half: "9/10", 3: "1/10"}, t: {1: half, -1: half}, alpha: 8})
    assert solution[average((w[i] - t[i] / 2) ** 2)] == 0
    assert float(solution["q_w"]) == pytest.approx(0.25, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "added"),
    [
        (Max(heard[mu] * v - u, (u - heard[mu] * v) / 2), []),
        (Abs(heard[mu] * v - u), [w[i] >= 0]),
    ],
    ids=["pinball", "positive weights"],
)
def test_siblings_recover_too(loss, added):
    law = {heard: outliers[heard], t: {0: "9/10", 1: "1/10"}, alpha: 20}
    solution = ConvexProblem(Sum(loss, (mu, 1, P)), added).cavity().solve(law)
    assert solution[error] == 0
    assert float(solution[average(w[i] > 0)]) == pytest.approx(0.1, rel=1e-12)
    assert solution.stability < 1


@pytest.mark.filterwarnings("ignore::symcavity.RoughSolution")  # six digits as near to the threshold
def test_phase_retrieval_by_linear_programming_has_its_threshold():
    """``(pi/alpha)/tan(pi/alpha) = 1 - rho^2`` for an initial guess at the cosine rho = 1/sqrt(2): alpha = 2.6953.

    O. Dhifallah, C. Thrampoulidis and Y. M. Lu, Phase retrieval via linear programming: fundamental limits and
    algorithmic improvements, Allerton 2017.
    """
    theory = ConvexProblem(-Sum((t[i] + c[i]) * w[i], (i, 1, N)), [Abs(u) <= Abs(v)]).cavity()
    law = {t: {1: half, -1: half}, c: {1: half, -1: half}}
    threshold = np.pi / brentq(lambda z: z / np.tan(z) - 0.5, 0.1, 1.5)
    below, above = (theory.solve({**law, alpha: share * threshold}) for share in (0.99, 1.03))
    assert 1e-6 < float(below[error]) < 1e-2
    assert above[error] == 0
    assert float(above.objective) == pytest.approx(-1, rel=1e-9)
    assert 0.98 < float(above.stability) < 1


def test_a_loss_without_a_kink_recovers_nothing():
    """Huber's loss is smooth at the teacher's field: outliers pull at any load."""
    gap = heard[mu] * v - u
    loss = Piecewise((gap**2 / 2, Abs(gap) < 1), (Abs(gap) - half, True))
    solution = ConvexProblem(Sum(loss, (mu, 1, P))).cavity().solve({**outliers, alpha: 20})
    assert not hasattr(solution, "at_rest")
    assert float(solution[error]) > 0.05


def test_a_bias_without_a_minimum_is_proved_at_once():
    """All labels are one: the loss falls towards zero as the bias grows, and weights stay at zero."""
    b = Global("b")
    loss = Sum(log(1 + exp(-u - b)), (mu, 1, P))
    with pytest.raises(Infeasible, match="as b grows") as caught:
        ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().solve({alpha: 2}, timeout=60)
    assert caught.value.evidence.diverging == (b,)

