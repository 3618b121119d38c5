"""Convex problems in the coordinates of their saddle: the map, the steps, and every way in which they end."""

from importlib import import_module

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Piecewise, Rational, Sum, Symbol, exp, log, sqrt
from sympy.stats import Normal

from symcavity import ConvexProblem, Coupling, Feature, FlatMinimum, Global, Infeasible, N, P, Quenched, alpha, i, mu
from symcavity.errors import NotConverged
from symcavity.evaluate.binding import bind
from symcavity.evaluate.given.checked_values import read_values
from symcavity.evaluate.solving.outcomes import Ended, Handover
from symcavity.evaluate.solving.saddle import root
from symcavity.evaluate.solving.saddle_attempt import applies, attempt
from symcavity.evaluate.solving.saddle_map import SaddleMap
from symcavity.evaluate.solving.saddle_proofs import Contradiction, Descent, Flat, Unattained
from symcavity.evaluate.solving.separation import by_class, slopes_far_out
from symcavity.evaluate.tasks import task_of
from symcavity.model.kinds import DATUM

x, w = Coupling("x"), Feature("w")
y, t, c = Quenched("y", mu), Quenched("t", i), Quenched("c", i)
field, total, squares = (Sum(e, (i, 1, N)) for e in (x[mu, i] * w[i], w[i], w[i] ** 2))
HALF, SIGNS = Rational(1, 2), {1: Rational(1, 2), -1: Rational(1, 2)}
R, field_mark = Symbol("R", real=True), Symbol("h", real=True)


def over_data(body):
    return Sum(body, (mu, 1, P))


def ended(problem, values):
    task = task_of(problem.cavity())
    given = read_values(task, values, 15)
    assert applies(task, given)
    return attempt(task, given)


def named(outcome):
    assert isinstance(outcome, Handover)
    return {str(s): v for s, v in outcome.point.items()}


# -- roots of monotone maps ------------------------------------------------------------------------


def linear(matrix, offset):
    """A linear map, as the steps take it."""
    return lambda z: (np.array(matrix) @ z + np.array(offset), np.array(matrix, dtype=float))


def test_a_rotation_has_its_root_at_the_origin_though_no_function_has_it_as_its_slope():
    end = root(linear([[0, 1], [-1, 0]], [0, 0]), np.array([3.0, -2.0]), np.zeros(2, dtype=bool))
    assert end.kind == "settled"
    assert np.abs(end.point).max() < 1e-6


def test_a_map_without_a_root_is_left_along_its_least_value():
    """The range of (u, v) -> (0.3, v) has (0.3, 0) as its element of least norm."""
    end = root(linear([[0, 0], [0, 1]], [0.3, 0]), np.array([1.0, 1.0]), np.zeros(2, dtype=bool))
    assert end.kind == "gone"
    assert end.is_steady(1e-6)
    assert end.displacement == pytest.approx([0.3, 0], abs=1e-6)


def test_at_the_boundary_a_coordinate_is_zero_where_its_slope_is_positive():
    end = root(linear([[1, 0], [0, 1]], [0.5, -2]), np.array([1.0, 1.0]), np.ones(2, dtype=bool))
    assert end.kind == "settled"
    assert end.point == pytest.approx([0, 2], abs=1e-5)
    assert end.value[0] == pytest.approx(0.5, abs=1e-5)


# -- the map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["clusters_hinge", "logistic_teacher", "noisy_inputs", "random_features"])
def test_the_map_is_the_slope_of_a_convex_concave_function(name):
    """Its Jacobian is symmetric in either sort of coordinates, antisymmetric between them, and nowhere negative."""
    declared = import_module(f"symcavity.derivations.{name}")
    theory, values = bind(declared.problem.cavity(), declared.values)
    task = task_of(theory)
    at = SaddleMap(task.saddle(), task, read_values(task, values, 15))
    z = np.where(at.low, np.linspace(0.5, 1.5, at.size), np.linspace(-0.5, 0.4, at.size))
    at.refine(z)
    _, slope = at(z)
    one, other = at.primal, ~at.primal
    for block in (slope[np.ix_(one, one)], slope[np.ix_(other, other)]):
        assert block == pytest.approx(block.T, abs=1e-9)
        assert np.linalg.eigvalsh(block).min() > -1e-9
    assert slope[np.ix_(one, other)] == pytest.approx(-slope[np.ix_(other, one)].T, abs=1e-9)
    way = np.cos(np.arange(at.size))
    step = 1e-5 * way
    assert (at(z + step)[0] - at(z - step)[0]) / 2e-5 == pytest.approx(slope @ way, rel=1e-5, abs=1e-6)


# -- a root inside ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "values", "known"),
    [
        (ConvexProblem(over_data((1 - field) ** 2) / 2 + squares / 2), {alpha: 2}, {"q_w": (sqrt(2) - 1) / 2}),
        (ConvexProblem(squares / 2, [field >= 1]), {alpha: "1.2"}, {"q_w": 8.691271165343348}),
        (ConvexProblem(over_data(Max(0, 1 - field)) + squares / 2), {alpha: 2}, {"q_w": 0.5552044236977545}),
        (ConvexProblem(over_data((y[mu] - field) ** 2) / 2), {alpha: 2, y: SIGNS}, {"q_w": 1, "S_w": 1}),
    ],
    ids=["ridge", "margin", "soft margin", "least squares"],
)
def test_known_minima(problem, values, known):
    found = named(ended(problem, values))
    assert {s: found[s] for s in known} == pytest.approx({s: float(v) for s, v in known.items()}, rel=1e-5)


def test_clusters_with_a_bias():
    """The numbers of an independent iteration of the two clusters' equations."""
    declared = import_module("symcavity.derivations.clusters_hinge")
    found = named(ended(declared.problem, declared.values))
    assert found["q_w"] == pytest.approx(0.874760, abs=1e-5)
    scale = np.sqrt(found["q_w"])
    assert found["M_m_w_hat"] * scale == pytest.approx(0.631246, abs=1e-5)
    assert found["b_hat"] * scale == pytest.approx(0.222411, abs=1e-5)


def test_logistic_regression_with_a_teacher():
    """Sur and Candes (2019): bias 1.4994, spread 4.7436, response 3.0269 at P/N = 5 and signal sqrt(5)."""
    declared = import_module("symcavity.derivations.logistic_teacher")
    found = named(ended(declared.problem, declared.values))
    assert found["q_t_w"] / 5 == pytest.approx(1.4994, abs=1e-4)
    assert np.sqrt(5 * (found["q_w"] - found["q_t_w"] ** 2 / 5)) == pytest.approx(4.7436, abs=1e-4)
    assert found["S_w"] == pytest.approx(3.0269, abs=1e-4)


# -- no root ------------------------------------------------------------------------------------------


def test_margins_contradict_each_other_beyond_covers_capacity_of_two():
    problem = ConvexProblem(squares / 2, [field >= 1])
    outcome = ended(problem, {alpha: "2.02"})
    assert isinstance(outcome.evidence, Contradiction)
    assert outcome.evidence.way == "smaller"
    assert isinstance(ended(problem, {alpha: "1.98"}), Handover)


def test_a_return_that_no_portfolio_has_contradicts_its_budget():
    """Weights of one sign that sum to N return N at most: 1.2 N and N are missed by a tenth each, at best."""
    problem = ConvexProblem(
        over_data(field**2) / 2, [w[i] >= 0, Eq(total, N), Eq(Sum(c[i] * w[i], (i, 1, N)), R * N)]
    )
    with pytest.raises(Infeasible, match="contradict each other") as caught:
        problem.cavity().solve({alpha: 2, R: "1.2", c: SIGNS})
    missed = [size for _, size in caught.value.evidence.missed]
    assert missed == pytest.approx([0.1, -0.1], rel=1e-5)
    assert "Sum(w[i], (i, 1, N)) = N" in str(caught.value)


def test_a_ball_that_is_too_small_for_the_sum_is_missed_at_the_nearest_constant():
    """Of constants a, (1 - a)^2 + (a^2 - 1/2)^2 is least where a^3 = 1/2."""
    problem = ConvexProblem(over_data(field**2) / 2, [w[i] >= 0, total >= N, squares <= R * N])
    with pytest.raises(Infeasible) as caught:
        problem.cavity().solve({alpha: 2, R: HALF})
    a = 0.5 ** (1 / 3)
    assert sorted(abs(size) for _, size in caught.value.evidence.missed) == pytest.approx([a**2 - 0.5, 1 - a], rel=1e-4)


@pytest.mark.parametrize(
    ("constraints", "missed"),
    [([Eq(total, N), Eq(total, R * N)], [0.5, 0.5]), ([w[i] >= R, total <= N], [1.0])],
    ids=["two budgets", "a bound above the mean"],
)
def test_sums_that_cannot_be_met(constraints, missed):
    outcome = ended(ConvexProblem(over_data((1 - field) ** 2) / 2, constraints), {alpha: 2, R: 2})
    assert isinstance(outcome.evidence, Contradiction)
    assert [abs(size) for _, size in outcome.evidence.missed] == pytest.approx(missed, rel=1e-4)


def test_an_objective_without_end_falls_as_the_weights_grow():
    outcome = ended(ConvexProblem(-total, [field <= 1]), {alpha: 1})
    assert isinstance(outcome.evidence, Descent)
    assert "q_w" in map(str, outcome.evidence.diverging)


def test_fewer_data_than_weights_leave_no_force_and_a_flat_minimum():
    outcome = ended(ConvexProblem(over_data((y[mu] - field) ** 2) / 2), {alpha: HALF, y: SIGNS})
    assert isinstance(outcome.evidence, Flat)
    assert {str(s) for s in outcome.evidence.diverging} == {"q_w", "S_w"}
    with pytest.raises(FlatMinimum, match="is that beyond which the minimum is unique") as caught:
        ConvexProblem(over_data((y[mu] - field) ** 2) / 2).cavity().solve({alpha: HALF, y: SIGNS})
    assert caught.value.evidence.load == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("label", [1, y[mu]], ids=["equal labels", "labels of either sign"])
def test_the_likelihood_of_labels_that_can_be_separated_has_no_maximum(label):
    """Below P = 2 N they can (Cover): the slope of the loss is zero nowhere, and at the end no force is left."""
    likelihood = ConvexProblem(over_data(log(1 + exp(-label * field))))
    values = {} if label == 1 else {y: SIGNS}
    outcome = ended(likelihood, {alpha: "1.9", **values})
    assert isinstance(outcome.evidence, Unattained)
    assert "There is no minimum" in str(outcome.evidence)
    assert isinstance(ended(likelihood, {alpha: "2.1", **values}), Handover)


@pytest.mark.parametrize(
    ("loss", "conditions", "load", "given"),
    [
        (log(1 + exp(-y[mu] * field)), [], 2, {y: SIGNS}),  # Cover
        (exp(-y[mu] * field), [], 2, {y: SIGNS}),
        (log(1 + exp(field)) - field * (y[mu] + 1) / 2, [], 2, {y: SIGNS}),
        (log(1 + exp(-field)), [w[i] >= 0], 1, {}),  # half of the directions are left
    ],
    ids=["logistic", "exponential", "log-likelihood", "states of one sign"],
)
def test_whether_there_is_a_minimum_is_known_beside_the_load_at_which_labels_can_be_separated(
    loss, conditions, load, given
):
    """The infimum is not attained where directions along which no term rises have a margin, however small it is."""
    theory = ConvexProblem(over_data(loss), conditions).cavity()
    for below in ("0.99", "0.9995"):
        with pytest.raises(Infeasible, match="There is no minimum") as caught:
            theory.solve({alpha: load * Rational(below), **given})
        assert isinstance(caught.value.evidence, Unattained)
    assert theory.solve({alpha: load * Rational("1.0005"), **given}).residual < 1e-12


def test_terms_that_are_bounded_below_have_their_sides_by_class():
    """Labels of three values: to the one side, to the other, and to neither."""
    body = Piecewise((exp(field_mark) - field_mark, Eq(y[mu], 0)), (exp(-y[mu] * field_mark), True))
    given = read_values(task_of(ridge().cavity()), {alpha: 1, y: {0: HALF, 1: HALF / 2, -1: HALF / 2}}, 15)
    ends = list(slopes_far_out(body, field_mark, DATUM, given))
    sides = {int(next(iter(e.labels.values()))): e.open_sides for e in ends}
    assert sides == {0: (False, False), 1: (False, True), -1: (True, False)}
    assert all(e.is_bounded for e in ends)
    polynomial = by_class([(e.labels, Rational(sum(e.open_sides))) for e in ends])
    assert [polynomial.subs(y[mu], v) for v in (-1, 0, 1)] == [1, 0, 1]


def test_classes_of_which_only_some_are_looked_at_prove_nothing():
    """A label of many values: the one that has another side than all others may be among those left out."""
    many = {k: Rational(1, 40) for k in range(-39, 0)} | {1: Rational(1, 40)}
    given = read_values(task_of(ridge().cavity()), {alpha: 1, y: many}, 15)
    body = log(1 + exp(-y[mu] * field_mark))
    assert list(slopes_far_out(body, field_mark, DATUM, given))
    assert not list(slopes_far_out(body, field_mark, DATUM, given, every=True))


def ridge():
    return ConvexProblem(over_data((y[mu] - field) ** 2) / 2 + squares / 2)


def test_a_bias_explains_equal_labels_at_every_load():
    """No load helps, and none is advised: the likelihood rises with the bias for ever."""
    likelihood = ConvexProblem(over_data(log(1 + exp(-field - Global("b")))))
    with pytest.raises(Infeasible, match="There is no minimum") as caught:
        likelihood.cavity().solve({alpha: 3})
    assert "b" in map(str, caught.value.evidence.diverging)
    assert caught.value.evidence.way == ""


def test_a_bias_explains_equal_labels_beside_data_that_are_left_out():
    """A label of zero leaves a constant: the terms of all others still have a slope everywhere."""
    loss = over_data(log(1 + exp(-y[mu] * (field + Global("b")))))
    with pytest.raises(Infeasible, match="some of them are zero nowhere") as caught:
        ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().solve({alpha: HALF, y: {0: HALF, 1: HALF}})
    assert {str(s) for s in caught.value.evidence.diverging} == {"b"}


def test_a_hinge_without_a_penalty_has_a_flat_minimum_where_labels_can_be_separated():
    outcome = ended(ConvexProblem(over_data(Max(0, 1 - field))), {alpha: 1})
    assert type(outcome.evidence) is Flat


# -- conditions that idle, or hold --------------------------------------------------------------------


def test_the_branch_of_a_condition_is_where_the_saddle_has_its_multiplier():
    """A wide ball idles: the minimum is that without it; of a narrow one the multiplier is positive."""
    with_ball = ConvexProblem(over_data((1 - field) ** 2) / 2, [squares <= R * N])
    free = ConvexProblem(over_data((1 - field) ** 2) / 2)
    wide, narrow = (named(ended(with_ball, {alpha: 2, R: r})) for r in (3, HALF))
    assert wide["nu_hat"] == 0
    assert wide["q_w"] == pytest.approx(named(ended(free, {alpha: 2}))["q_w"], rel=1e-5)
    assert narrow["q_w"] == pytest.approx(0.5, rel=1e-5)
    assert narrow["nu_hat"] > 0


def test_multipliers_of_a_kink_in_an_idle_condition_are_zero():
    """What the multiplier of a condition weighs vanishes with it: not as small as what stands for it."""
    lengths = Sum(Abs(w[i]), (i, 1, N))
    gains = Sum(t[i] * w[i], (i, 1, N)) >= 3 * N / 10
    wide, narrow = (
        ConvexProblem(over_data(field**2) / 2, [Eq(total, N), lengths <= length * N, gains])
        .cavity()
        .solve({alpha: Rational(3, 2), t: Normal("t", 0, 1)})
        for length in (Rational(3, 2), Rational(6, 5))
    )
    names = [f"average({name}[i])" for name in ("nu_4", "nu_5")]
    assert [wide[name] for name in names] == [0, 0]
    assert all(narrow[name] > 0 for name in names)


def test_states_at_rest_are_handed_on():
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
    pursuit = ConvexProblem(Sum(Abs(w[i]), (i, 1, N)), [Eq(error, 0)])
    sparse = {1: Rational(1, 10), 0: Rational(9, 10)}
    beyond = named(ended(pursuit, {alpha: "0.2", t: sparse}))
    assert beyond["q_w_minus_t"] == pytest.approx(0.0902344864, rel=1e-5)
    assert not isinstance(ended(pursuit, {alpha: HALF, t: sparse}), Ended | Handover)


@pytest.mark.parametrize(
    ("loss", "conditions", "below", "above"),
    [
        (Max(0, -field), [], "the minimum is flat", "some variance or response vanishes"),
        (Max(0, 1 - field), [], "the minimum is flat", "there is a solution"),
        (log(1 + exp(-field)), [], "there is no minimum", "there is a solution"),
        (Max(0, -field), [squares <= N], "the minimum is flat", "some variance or response vanishes"),
    ],
    ids=["the perceptron's loss", "a hinge", "logistic", "in a ball"],
)
def test_where_points_cease_to_be_separable_both_sides_are_named(loss, conditions, below, above):
    """By Cover's theorem random points are separable below alpha = 2: there is no answer at this very load."""
    theory = ConvexProblem(over_data(loss), conditions).cavity()
    with pytest.raises(NotConverged) as caught:
        theory.solve({alpha: 2})
    assert f"at alpha = 1.9 {below} and at alpha = 2.1 {above}" in str(caught.value)
