"""Gradient descent on declared problems: exact spectra, the theory at rest that it ends in, instances, refusals."""

from fractions import Fraction

import numpy as np
import pytest
from pastur import pastur
from sympy import Abs, Eq, Max, Min, Piecewise, Rational, Sum, Symbol, exp, log, sqrt, symbols

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    N,
    P,
    Quenched,
    Sites,
    System,
    Time,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.evaluate.moving.paths import PathRun

b, eta, gamma, m = symbols("b eta gamma m", positive=True)
x, w = Coupling("x"), Feature("w")
t, e, y = Quenched("t", i), Quenched("e", mu), Quenched("y", mu)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
heard = Sum(x[mu, i] * w[i], (i, 1, N))
error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
ridge = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
REGRESSION = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + ridge)
VALUES = {alpha: 3, gamma: "1/8", t: HALF, e: {Rational(1, 2): Rational(1, 2), Rational(-1, 2): Rational(1, 2)}}
TEST, TRAIN = average((w[i] - t[i]) ** 2), average(error**2)


@pytest.mark.parametrize("momentum", [Fraction(0), Fraction(1, 2)])
def test_descent_on_a_ridge_is_the_moments_of_the_spectrum_exactly(momentum):
    descent = REGRESSION.descent(rate=eta, momentum=m if momentum else 0)
    run = descent.cavity().evolve({**VALUES, eta: "1/7", **({m: "1/2"} if momentum else {})}, until=6)
    known = list(pastur(Fraction(3), Fraction(1, 7), Fraction(1, 8), Fraction(1, 4), 6, momentum))
    assert list(run[TEST]) == [test for test, _ in known]
    assert list(run[TRAIN]) == [train for _, train in known]


def test_descent_on_a_ridge_ends_at_rest():
    run = REGRESSION.descent(rate=Rational(1, 7), momentum=Rational(1, 2)).cavity().evolve(VALUES, until=150)
    rest = REGRESSION.cavity().solve(VALUES)
    assert run[TEST][-1] == pytest.approx(rest[TEST], rel=1e-10)
    assert run[TRAIN][-1] == pytest.approx(rest[TRAIN], rel=1e-10)


def test_a_flow_is_derived_and_ends_at_rest():
    flow = REGRESSION.flow(initial=[Eq(w[i], 2 * t[i])])
    steps = list(flow.cavity().derivation.verify(dps=15))
    assert all(row.ok and (row.checked or not row.step.claims) for row in steps)
    run = flow.cavity().evolve(VALUES, until=8, step="1/6")
    assert run[TEST][0] == pytest.approx(1)
    assert run[TEST][-1] == pytest.approx(float(REGRESSION.cavity().solve(VALUES)[TEST]), rel=1e-3)


residual = y[mu] - Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
huber = Piecewise((residual**2 / 2, Abs(residual) <= 1), (Abs(residual) - Rational(1, 2), True))
PROBLEMS = {
    "logistic": (ConvexProblem(Sum(log(1 + exp(-y[mu] * heard)), (mu, 1, P)) + ridge), {}, "1"),
    "huber": (ConvexProblem(Sum(huber, (mu, 1, P)) + ridge), {t: HALF}, "1/3"),
    "squared hinge": (ConvexProblem(Sum(Max(0, 1 - y[mu] * heard) ** 2, (mu, 1, P)) / 2 + ridge), {}, "1/3"),
    "a mean of smooth losses": (
        ConvexProblem(Sum(sqrt(1 + residual**2), (mu, 1, P)) / P + ridge / P), {t: HALF}, "1/2"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_long_descent_ends_at_rest(name):
    problem, more, rate = PROBLEMS[name]
    values, size = {alpha: 2, gamma: "1/2", y: HALF, **more}, average(w[i] ** 2)
    run = problem.descent(rate=Rational(rate)).cavity().evolve(values, until=20, paths=6000, seed=1)
    left = abs(run[size][-1] - run[size][-2])
    assert abs(run[size][-1] - problem.cavity().solve(values)[size]) < 4 * run.errors[size][-1] + 4 * left
    assert run.errors[size][-1] < 0.02 * run[size][-1]


def test_a_descent_with_momentum_against_instances():
    problem, *_ = PROBLEMS["squared hinge"]
    descent = problem.descent(rate=eta, momentum=m, initial=[Eq(w[i], t[i])])
    values = {alpha: 2, gamma: "1/2", y: HALF, t: HALF, eta: "1/4", m: "1/2"}
    run = descent.cavity().evolve(values, until=6, paths=8000, seed=2)
    sim = descent.simulate(values, N=300, seeds=12, until=6)
    for row in run.compare(sim, [average(w[i] ** 2), average(w[i] * t[i]), average(Max(0, 1 - y[mu] * heard) ** 2)]):
        assert row.rms < 2.5, row
        assert np.abs(row.z).max() < 4.5, row


def test_batches_against_instances_and_all_data_are_the_whole_descent():
    problem, *_ = PROBLEMS["squared hinge"]
    values = {alpha: 2, gamma: "1/2", y: HALF, eta: "1/4", m: "1/4"}
    some, size = problem.descent(rate=eta, momentum=m, batch=b), average(w[i] ** 2)
    run = some.cavity().evolve({**values, b: "1/3"}, until=6, paths=8000, seed=2)
    sim = some.simulate({**values, b: "1/3"}, N=300, seeds=12, until=6)
    for row in run.compare(sim, [size, average(Max(0, 1 - y[mu] * heard) ** 2)]):
        assert row.rms < 2.5, row
    whole = problem.descent(rate=eta, momentum=m).cavity().evolve(values, until=4, paths=8000)
    every = some.cavity().evolve({**values, b: 1}, until=4, paths=8000)
    assert np.all(abs(whole[size] - every[size]) <= 4 * np.hypot(whole.errors[size], every.errors[size]))
    assert run[size][-1] > whole[size][-1] + 0.1
    assert str(problem.descent(rate=eta, batch=1)) == str(problem.descent(rate=eta))
    with pytest.raises(ValuesError):
        some.cavity().evolve({**values, b: 2}, until=2)


a, K = Sites("a", "K", "hidden unit")
F, v = Coupling("F", between=(a, i)), Variable("v", a)
BEHIND = ConvexProblem(
    Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * Sum(v[a] ** 2, (a, 1, K)) / 2,
    [Eq(w[i], Sum(F[a, i] * v[a], (a, 1, K)))],
)


def test_states_that_an_equality_defines_follow_at_once():
    values = {alpha: 2, gamma: 4, K / N: "3/2", y: HALF}
    run = BEHIND.descent(rate=eta).cavity().evolve({**values, eta: "1/18"}, until=50)
    rest = BEHIND.cavity().solve(values)
    for size in (average(v[a] ** 2), average(w[i] ** 2)):
        assert run[size][-1] == pytest.approx(float(rest[size]), rel=1e-4)


@pytest.mark.parametrize("problem", [REGRESSION, BEHIND, PROBLEMS["logistic"][0]])
def test_every_claim_is_checked_and_holds(problem):
    steps = list(problem.descent(rate=eta, momentum=m, batch=b).cavity().derivation.verify(dps=15))
    assert all(row.ok for row in steps)
    assert all(row.checked for row in steps if row.step.claims)
    assert "descent" in [row.step.key for row in steps]


def test_the_record_says_what_is_descended():
    text = REGRESSION.descent(rate=eta, momentum=m).cavity().derivation.to_text()
    assert "This is gradient descent with momentum: each step is" in " ".join(text.split())


@pytest.mark.parametrize(
    ("objective", "constraints", "said"),
    [
        (Sum(Abs(heard - y[mu]), (mu, 1, P)) + ridge, [], "The slope of .* jumps"),
        (Sum(Abs(w[i]), (i, 1, N)) + Sum(error**2, (mu, 1, P)), [], "The slope of .* jumps"),
        (ridge, [heard >= 1], "does not keep the constraint"),
        (ridge, [Eq(heard, y[mu])], "defines no state"),
        (Sum(error**2, (mu, 1, P)), [Sum(w[i] ** 2, (i, 1, N)) <= N], "does not keep the constraint"),
        (sqrt(Sum(w[i] ** 2, (i, 1, N))) * sqrt(N) + Sum(error**2, (mu, 1, P)), [], "not a sum of functions"),
    ],
)
def test_what_cannot_be_descended_says_what_to_try(objective, constraints, said):
    with pytest.raises(UnsupportedLaw, match=said) as problem:
        ConvexProblem(objective, constraints).descent(rate=eta)
    assert "Try: " in str(problem.value)


def test_rates_and_initial_values_are_checked():
    for wrong in (0, -1, w[i]):
        with pytest.raises(DeclarationError, match="rate"):
            REGRESSION.descent(rate=wrong)
    with pytest.raises(DeclarationError, match="momentum"):
        REGRESSION.descent(rate=eta, momentum=-m)
    for wrong in (0, 2, w[i]):
        with pytest.raises(DeclarationError, match="batch"):
            REGRESSION.descent(rate=eta, batch=wrong)
    with pytest.raises(DeclarationError, match="of no state that the problem is minimized over"):
        REGRESSION.descent(rate=eta, initial=[Eq(v[a], 1)])
    fixed = ConvexProblem(Sum(error**2, (mu, 1, P)) + ridge, fixed=[Eq(average(w[i] ** 2), 1)])
    with pytest.raises(UnsupportedLaw, match="fixes"):
        fixed.descent(rate=eta)
    assert Symbol("eta", positive=True) in REGRESSION.descent(rate=eta).parameters


j, rate, C = Time("t"), symbols("rate", positive=True), symbols("C", positive=True)
W, E, lam = Variable("w", i, over=j), Variable("residual", mu, over=j), Variable("lambda", mu, over=j)


def test_a_lasso_by_proximal_steps_ends_at_rest():
    lasso = ConvexProblem(Sum(error**2, (mu, 1, P)) / 2 + C * Sum(Abs(w[i]), (i, 1, N)))
    moved = W[i, j] - rate * Sum(x[mu, i] * E[mu, j], (mu, 1, P))
    steps = System(
        [
            Eq(W[i, j + 1], Max(0, moved - rate * C) - Max(0, -moved - rate * C)),
            Eq(E[mu, j], Sum(x[mu, i] * (W[i, j] - t[i]), (i, 1, N)) - e[mu]),
        ],
        initial=[Eq(W[i, 0], 0)],
    )
    values = {alpha: 2, C: "1/2", t: {0: "1/2", 1: "1/2"}, e: {Rational(1, 2): "1/2", Rational(-1, 2): "1/2"}}
    run = steps.cavity().evolve({**values, rate: "1/3"}, until=24, paths=6000, seed=3)
    at_rest = lasso.cavity().solve(values)
    for seen in (TEST, average(Abs(w[i]))):
        left = abs(run[seen][-1] - run[seen][-3])
        assert abs(run[seen][-1] - float(at_rest[seen])) < 4 * run.errors[seen][-1] + 4 * left


def test_a_soft_margin_by_dual_ascent_ends_at_rest():
    xi = Datum("xi")
    margin = ConvexProblem(
        Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu], (mu, 1, P)), [xi[mu] >= 0, heard >= 1 - xi[mu]]
    )
    ascent = System(
        [
            Eq(lam[mu, j + 1], Min(C, Max(0, lam[mu, j] + rate * (1 - Sum(x[mu, i] * W[i, j], (i, 1, N)))))),
            Eq(W[i, j], Sum(x[mu, i] * lam[mu, j], (mu, 1, P))),
        ],
        initial=[Eq(lam[mu, 0], 0)],
    )
    run = ascent.cavity().evolve({alpha: 2, C: "1/2", rate: "1/3"}, until=24, paths=6000, seed=3)
    at_rest, seen = margin.cavity().solve({alpha: 2, C: "1/2"}), average(w[i] ** 2)
    left = abs(run[seen][-1] - run[seen][-3])
    assert abs(run[seen][-1] - float(at_rest[seen])) < 4 * run.errors[seen][-1] + 4 * left


def test_data_that_remember_one_step_only_learn_otherwise(monkeypatch):
    """A negative control: with the echo of the last step alone, the learning curve is visibly another one."""
    theory, values = REGRESSION.descent(rate=eta).cavity(), {**VALUES, alpha: 1, eta: "1/2"}
    exact = theory.evolve(values, until=9)[TEST].astype(float)
    right = PathRun.back

    def short(self, echo, t):
        return [kept if t - k <= 1 else 0 * kept for k, kept in enumerate(right(self, echo, t))]

    whole = theory.evolve(values, until=9, method="paths", paths=6000)
    assert np.all(abs(whole[TEST] - exact) <= 4 * whole.errors[TEST] + 1e-12)
    monkeypatch.setattr(PathRun, "back", short)
    forgetful = theory.evolve(values, until=9, method="paths", paths=6000)
    assert abs(forgetful[TEST][-1] - exact[-1]) > 10 * forgetful.errors[TEST][-1]
