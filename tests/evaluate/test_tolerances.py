"""No answer depends on a threshold: half of each, and twice, give the same outcomes."""

import warnings
from dataclasses import asdict

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, tanh
from sympy.stats import Uniform

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
from symcavity.derivations import group_lasso
from symcavity.errors import FlatMinimum, SymcavityError
from symcavity.evaluate.tasks import task_of
from symcavity.evaluate.tolerances import Tolerances, using

x, J, w, v, y = Coupling("x"), Coupling("J", between=(i, i)), Feature("w"), Feature("v"), Quenched("y", mu)
j, g, kappa = Symbol("j", integer=True), Symbol("g", positive=True), Symbol("kappa", positive=True)
u = Sum(x[mu, i] * w[i], (i, 1, N))
half = Sum(w[i] ** 2, (i, 1, N)) / 2


def data(loss):
    return Sum(loss, (mu, 1, P))


margin = ConvexProblem(half, [u >= 1], fixed=[Eq(average(w[i] ** 2), 1 / kappa**2)])
t, heard = Quenched("t", i), Quenched("heard", mu)
outliers = {heard: {1: "7/10", 0: "3/10"}, t: {1: Rational(1, 2), -1: Rational(1, 2)}}
deviations = ConvexProblem(data(Abs(heard[mu] * Sum(x[mu, i] * t[i], (i, 1, N)) - u))).cavity()
ROWS = [
    ("a margin at a load", margin.cavity(), {alpha: 1}),
    ("a load beyond the capacity", margin.cavity(), {alpha: "5/2"}),
    ("fewer data than weights", ConvexProblem(data((u - y[mu]) ** 2)).cavity(), {alpha: "1/2", y: {1: 1}}),
    ("a kink", ConvexProblem(data(Max(0, 1 - u)) + half).cavity(), {alpha: 2}),
    ("states at rest", ConvexProblem(data(Abs(u)) + half).cavity(), {alpha: 2}),
    ("a recovery", deviations, {**outliers, alpha: 20}),
    ("a tight condition", ConvexProblem(data(u**2) / 2, [Eq(Sum(w[i], (i, 1, N)), N), w[i] <= 1]).cavity(), {alpha: 2}),
    ("a group of weights", group_lasso.problem.cavity(), group_lasso.values),
    ("a root of a system", System([Eq(v[i], tanh(1 + g * Sum(J[i, j] * v[j], (j, 1, N))))]).cavity(), {g: "1/2"}),
]


SLOW = {"fewer data than weights", "states at rest"}
ON_BRANCHES = {"close", "far", "settled", "vanished", "diverged", "steep"}  # what is read where these are solved
OWN = {  # the rows of one threshold
    "a recovery": {"recovered"}, "a tight condition": {"left"}, "a group of weights": {"settled_law"},
}  # fmt: skip
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
        "Solution", "Infeasible", "FlatMinimum", "Solution", "RestingSolution",
        "RestingSolution", "RestingSolution", "Solution", "Solution",
    ]  # fmt: skip


@pytest.mark.parametrize("factor", [Rational(1, 2), 2], ids=["half", "twice"])
@pytest.mark.parametrize("name", asdict(Tolerances()))
def test_no_answer_depends_on_a_threshold(name, factor, answers):
    with using(**{name: float(factor) * getattr(Tolerances(), name)}):
        for row, theory, values in ROWS:
            if row in OWN and name not in OWN[row]:
                continue
            if row in SLOW and name not in ON_BRANCHES | OF_SADDLES:
                continue
            kind, numbers = outcome(theory, values)
            assert kind == answers[row][0], row
            assert numbers == pytest.approx(answers[row][1], rel=1e-9, abs=1e-12), row


def of_limits(solutions):
    """Averages of states and multipliers at rest: numbers, zeros, infinities, and what the minimum leaves open."""
    out = []
    for theory, solution in solutions:
        for meaning in theory.order_parameters.values():
            try:
                out.append(float(solution[meaning]))
            except FlatMinimum:
                out.append("open")
    return out


@pytest.fixture(scope="module")
def limits():
    rows = [(theory, values) for name, theory, values in ROWS if name in ("states at rest", "a recovery")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [(theory, theory.solve(values)) for theory, values in rows]


@pytest.mark.parametrize("factor", [Rational(1, 2), 2], ids=["half", "twice"])
def test_no_limit_depends_on_a_threshold(factor, limits):
    frozen = of_limits(limits)
    assert {0, np.inf, "open"} <= {v if v == "open" else abs(v) for v in frozen}
    with using(**{name: float(factor) * getattr(Tolerances(), name) for name in ("fixed", "goes")}):
        assert of_limits(limits) == frozen


gamma, c, xi = Symbol("gamma", positive=True), Quenched("c", i, positive=True), Quenched("xi", mu)
fit = data((xi[mu] - u) ** 2) / 2


@pytest.fixture(scope="module")
def spectra():
    """Directions without noise, and an edge far from zero; penalties with a density."""
    even = {xi: {1: Rational(1, 2), -1: Rational(1, 2)}}
    few = ConvexProblem(fit + gamma * half).cavity().solve({**even, alpha: Rational(1, 3), gamma: 3})
    many = ConvexProblem(fit + Sum(c[i] * w[i] ** 2, (i, 1, N)) / 2).cavity()
    return few, many.solve({**even, alpha: 2, c: Uniform("c", Rational(1, 5), 2)})


def of_spectra(solutions):
    found = [solution.spectrum(w, over=[xi]) for solution in solutions]
    return [number for one in found for number in (one.at_zero, *one.edges)]


@pytest.mark.parametrize("factor", [Rational(1, 2), 2], ids=["half", "twice"])
def test_no_spectrum_depends_on_a_threshold(factor, spectra):
    names = ("apart", "band", "sure", "ruled")
    with using(**{name: float(factor) * getattr(Tolerances(), name) for name in names}):
        found = of_spectra(spectra)
    low, high = ((1 + k / np.sqrt(3)) ** 2 for k in (-1, 1))
    assert found[:3] == pytest.approx([2 / 3, low / (low + 3) ** 2, high / (high + 3) ** 2], rel=1e-6)
    assert found[3:] == pytest.approx([0, 0.0683071121, 0.6173210487], rel=1e-8, abs=1e-6)


time, D = Time("time"), Symbol("D", positive=True)
q, noise = Variable("q", i, over=time), Noise("noise", i, over=time, variance=D)
loud = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=Rational(1, 2))
unit = Symbol("unit", positive=True)
sent = unit * Sum(loud[i, j] * tanh(q[j, time] / unit), (j, 1, N))
AT_UNIT = [Eq(q[i, 0], unit)]
DRIVEN = System([Eq(q[i, time + 1], q[i, time] / 2 + sent / 2 + unit * noise[i, time])], initial=AT_UNIT).cavity()
PUSHED = System([Eq(q[i, time + 1], q[i, time] / 2 + sent / 2 + unit)], initial=AT_UNIT).cavity()
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
