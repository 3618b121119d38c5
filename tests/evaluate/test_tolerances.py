"""No answer depends on a threshold: half of each, and twice, give the same outcomes."""

import warnings
from dataclasses import asdict

import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    Noise,
    P,
    Quenched,
    System,
    Time,
    Variable,
    alpha,
    average,
    i,
    mu,
)
from symcavity.errors import SymcavityError
from symcavity.evaluate.binding import task_of
from symcavity.evaluate.tolerances import Tolerances, using

x, J, w, v, y = Coupling("x"), Coupling("J", between=(i, i)), Feature("w"), Feature("v"), Quenched("y", mu)
j, g, kappa = Symbol("j", integer=True), Symbol("g", positive=True), Symbol("kappa", positive=True)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2


def data(loss):
    return Sum(loss, (mu, 1, P))


margin = ConvexProblem(half, [u >= 1], fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)])
ROWS = [
    ("a margin at a load", margin.cavity(), {alpha: 1}),
    ("a load beyond the capacity", margin.cavity(), {alpha: "5/2"}),
    ("fewer data than weights", ConvexProblem(data((u - y[mu]) ** 2)).cavity(), {alpha: "1/2", y: {1: 1}}),
    ("a kink", ConvexProblem(data(Max(0, 1 - u)) + half).cavity(), {alpha: 2}),
    ("states at rest", ConvexProblem(data(Abs(u)) + half).cavity(), {alpha: 2}),
    ("a root of a system", System([Eq(v[i], tanh(1 + g * Sum(J[i, j] * v[j], (j, 1, N))))]).cavity(), {g: "1/2"}),
]


SLOW = {"fewer data than weights", "states at rest"}
ON_BRANCHES = {"close", "far", "settled", "vanished", "diverged", "steep"}  # what is read where these are solved
OF_SADDLES = {"gone", "lost_sight", "agree", "clear", "steady", "negligible", "growing", "short", "beside"}


def outcome(theory, values):
    """The kind of answer, and its numbers."""
    task_of(theory).maps.clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = theory.solve(values)
    except SymcavityError as error:
        return type(error).__name__, {}
    return type(solution).__name__, {s: float(value) for s, value in solution.values.items()}


@pytest.fixture(scope="module")
def answers():
    return {name: outcome(theory, values) for name, theory, values in ROWS}


def test_the_rows_are_of_all_kinds(answers):
    assert [kind for kind, _ in answers.values()] == [
        "Solution", "Infeasible", "FlatMinimum", "Solution", "RestingSolution", "Solution"
    ]  # fmt: skip


@pytest.mark.parametrize("factor", [Rational(1, 2), 2], ids=["half", "twice"])
@pytest.mark.parametrize("name", asdict(Tolerances()))
def test_no_answer_depends_on_a_threshold(name, factor, answers):
    with using(**{name: float(factor) * getattr(Tolerances(), name)}):
        for row, theory, values in ROWS:
            if row in SLOW and name not in ON_BRANCHES | OF_SADDLES:
                continue
            kind, numbers = outcome(theory, values)
            assert kind == answers[row][0], row
            assert numbers == pytest.approx(answers[row][1], rel=1e-9, abs=1e-12), row


t, D = Time("t"), Symbol("D", positive=True)
q, noise = Variable("q", i, over=t), Noise("noise", i, over=t, variance=D)
loud = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=Rational(1, 2))
unit = Symbol("unit", positive=True)
sent = unit * Sum(loud[i, j] * tanh(q[j, t] / unit), (j, 1, N))
DRIVEN = System([Eq(q[i, t + 1], q[i, t] / 2 + sent / 2 + unit * noise[i, t])], initial=[Eq(q[i, 0], unit)]).cavity()
PUSHED = System([Eq(q[i, t + 1], q[i, t] / 2 + sent / 2 + unit)], initial=[Eq(q[i, 0], unit)]).cavity()
SAMPLED = [  # of each: whether it moves, and whether a part of it stays
    (DRIVEN, {g: "1/2", D: "1/2", unit: Rational(1, 10**8)}, True, False),
    (PUSHED, {g: "1/2", unit: Rational(1, 10**8)}, False, True),
    (PUSHED, {g: "1/2", unit: 10**8}, False, True),
]


def sampled(theory, values):
    """Whether a stationary state moves, and whether its dimension is refused for what stays."""
    rest = theory.stationary(values, until=16, paths=400)
    try:
        rest.dimension(q)
    except SymcavityError:
        return rest.moves, True
    return rest.moves, False


@pytest.mark.parametrize("factor", [Rational(1, 2), 2], ids=["half", "twice"])
def test_no_sampled_state_depends_on_a_threshold_or_on_units(factor):
    names = ("moved", "stayed")
    with using(**{name: float(factor) * getattr(Tolerances(), name) for name in names}):
        for theory, values, moves, stays in SAMPLED:
            assert sampled(theory, values) == (moves, stays), values
