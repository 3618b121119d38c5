"""Minima that are not unique, minima at infinity, and instances without a solution: said, never averaged."""

from dataclasses import replace

import numpy as np
import pytest
from declarations_simulated import SIGNS, field, t, w, x, y
from scipy.optimize import linprog
from sympy import Abs, Eq, Max, Sum, exp, log
from sympy.stats import Normal

from symcavity.errors import FlatMinimum, Infeasible, NotConverged
from symcavity.face import ConvexProblem
from symcavity.finite import minimum
from symcavity.finite.compare import compare
from symcavity.finite.experiment import cavity_experiment
from symcavity.finite.run import simulate
from symcavity.finite.sweep import sweep_simulation
from symcavity.model.averages import average, response
from symcavity.model.kinds import FEATURE, N, P, alpha, i, mu
from symcavity.model.quantities import Feature, Global

least_squares = ConvexProblem(Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2)
deviations = ConvexProblem(Sum(Abs(field - y[mu]), (mu, 1, P)))
hyperbolic = ConvexProblem(Sum(log(exp(field - y[mu]) + exp(y[mu] - field)), (mu, 1, P)))
likelihood = ConvexProblem(Sum(log(1 + exp(-y[mu] * field)), (mu, 1, P)))
game = ConvexProblem(Sum((field + y[mu]) ** 2, (mu, 1, P)) / 2, [w[i] <= 1, w[i] >= -1])
hinge = ConvexProblem(Sum(Max(0, 1 - field), (mu, 1, P)))
NORM, LOSS = average(w[i] ** 2), average((field - y[mu]) ** 2)


@pytest.mark.parametrize("problem", [least_squares, deviations, hyperbolic])
def test_fewer_data_than_features_leave_the_null_space_of_the_couplings(problem):
    sim = simulate(problem, {alpha: 0.5, y: SIGNS}, N=60, seeds=3)
    assert sim.flat == {
        s.seed: 60 - np.linalg.matrix_rank(sim.reader(k).instance.couplings[0]) for k, s in enumerate(sim.samples)
    }
    assert set(sim.flat.values()) == {30}
    assert "minimum not unique: 3 (seeds 0, 1, 2), sets of 30 dimensions" in str(sim)
    for read in (
        lambda: sim[NORM],
        lambda: sim[response(w)],
        lambda: sim[average(w[i] > 0)],
        lambda: sim.arrays("w"),
        lambda: sim.values(w[i] ** 2),
    ):
        with pytest.raises(FlatMinimum, match=r"30 (dim|dir)") as caught:
            read()
        assert caught.value.dimension == 30
    assert abs(sim[LOSS].mean) < 1e-12  # the same for all of them
    assert sim[LOSS].flat == 0


@pytest.mark.parametrize("event", [w[i] > 0, w[i] > 5, Eq(w[i], 0)])
def test_a_share_that_is_open_is_refused_by_every_instance(event):
    """The shares of two minimisers are often equal by chance: comparing them, some instances would give a number."""
    sim = simulate(least_squares, {alpha: 0.5, y: SIGNS}, N=20, seeds=12)
    with pytest.raises(FlatMinimum, match="not unique"):
        sim[average(event)]
    assert sim[average(field * y[mu] > 0)].mean == 1


def test_what_is_the_same_for_all_minimisers_is_told_from_its_parts():
    """Two weights that share a field and a penalty: their sums are unique, neither of them is."""
    v = Feature("v")
    both = Sum(x[mu, i] * (w[i] + v[i]), (i, 1, N))
    split = ConvexProblem(Sum((both - y[mu]) ** 2, (mu, 1, P)) / 2 + Sum(Abs(w[i]) + Abs(v[i]), (i, 1, N)) / 4)
    sim = simulate(split, {alpha: 2, y: SIGNS}, N=12, seeds=2)
    lasso = ConvexProblem(Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2 + Sum(Abs(w[i]), (i, 1, N)) / 4)
    alone = simulate(lasso, {alpha: 2, y: SIGNS}, N=12, seeds=2)
    alive = alone[average(Abs(w[i]) > 0)].samples
    assert list(sim.flat.values()) == [round(12 * share) for share in alive]
    assert sim[average(Abs(w[i]) + Abs(v[i]))].samples == pytest.approx(alone[average(Abs(w[i]))].samples, rel=1e-7)
    assert sim[average(Abs(w[i])) + average(Abs(v[i]))].flat == 0
    assert sim[average((both - y[mu]) ** 2)].flat == 0
    for one in (Abs(w[i]), w[i] ** 2, Max(w[i], v[i]), w[i] > 0):
        with pytest.raises(FlatMinimum):
            sim[average(one)]


def test_more_data_than_features_have_one_minimum():
    sim = simulate(least_squares, {alpha: 1.1, y: SIGNS}, N=60, seeds=3)
    assert sim.flat == {}
    for k, s in enumerate(sim.samples):
        instance = sim.reader(k).instance
        best = np.linalg.lstsq(instance.couplings[0], instance.quenched[y], rcond=None)[0]
        assert s["w"] == pytest.approx(best, abs=1e-9)
    assert sim[NORM].flat == 0


def test_boxed_weights_that_are_free_make_a_flat_minimum_where_they_outnumber_the_data():
    sim = simulate(game, {alpha: 0.35, y: SIGNS}, N=40, seeds=12)
    free = {s.seed: int(np.sum(np.abs(s["w"]) < 1 - 1e-7)) for s in sim.samples}
    assert sim.flat == {seed: count - 14 for seed, count in free.items() if count > 14}
    assert 0 < len(sim.flat) < 12  # close to where the minority game stops to be so
    found = sim[NORM]
    assert (found.flat, len(found.samples)) == (len(sim.flat), 12 - len(sim.flat))
    assert set(found.seeds) == set(sim.seeds) - set(sim.flat)
    assert f"{found.flat} without a unique value" in str(found)
    table = compare({NORM: 1.0}, sim, [NORM])
    assert any(f"In {found.flat} instances" in note and "not unique" in note for note in table.notes)


def test_a_penalty_makes_a_flat_minimum_unique_however_small():
    gentle = ConvexProblem(Sum((field - y[mu]) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 10**9)
    sim = simulate(gentle, {alpha: 0.5, y: SIGNS}, N=40, seeds=2)
    assert sim.flat == {}
    for k, s in enumerate(sim.samples):
        instance = sim.reader(k).instance
        shortest = np.linalg.pinv(instance.couplings[0]) @ instance.quenched[y]
        assert s["w"] == pytest.approx(shortest, abs=1e-6)


def test_a_minimum_at_infinity_is_no_solution():
    with pytest.raises(NotConverged, match="lies at infinity"):
        simulate(likelihood, {alpha: 0.8, y: SIGNS}, N=40, seeds=2)


def test_seeds_without_a_solution_are_counted_and_named():
    sim = simulate(likelihood, {alpha: 2, y: SIGNS}, N=12, seeds=20)
    separable = set()
    for seed in sim.seeds:
        instance = sim.setup.instance(12, seed)
        rows = instance.quenched[y][:, None] * instance.couplings[0]
        if linprog(np.zeros(12), A_ub=-rows, b_ub=-np.ones(24), bounds=(None, None)).status == 0:
            separable.add(seed)
    assert 0 < len(separable) < 20
    assert set(sim.failed) == separable
    assert sim.infeasible == 0
    assert len(sim[NORM].samples) == 20 - len(separable)
    assert sim[NORM].failed == len(separable)
    assert f"no solution found: {len(separable)} (seeds {min(separable)}, " in str(sim)
    assert sim.feasible_fraction.mean == 1
    assert sim.feasible_fraction.failed == len(separable)


def test_a_sweep_over_flat_minima_keeps_what_is_the_same_for_all():
    rows = sweep_simulation(
        least_squares, {alpha: [0.5, 2]}, N=20, seeds=2, values={y: SIGNS}, observables=[NORM, LOSS]
    )
    assert [bool(row.get("error")) for row in rows] == [True, True, False, False]
    assert "not unique" in rows.failed[0]["error"]
    assert rows.column(NORM)[:2] == [None, None]
    assert rows.column(LOSS)[:2] == pytest.approx([0, 0], abs=1e-20)


def test_sites_are_not_inserted_into_flat_minima():
    with pytest.raises(NotConverged, match=r"No instance .* not unique, but flat in 10 directions"):
        cavity_experiment(least_squares, None, {alpha: 0.5, y: SIGNS}, N=20, seeds=2)


def test_separable_data_leave_a_hinge_without_weights_to_prefer():
    sim = simulate(hinge, {alpha: 0.5}, N=30, seeds=2)
    assert set(sim.flat.values()) == {30}
    with pytest.raises(FlatMinimum):
        sim[NORM]
    assert sim[average(Max(0, 1 - field))].mean == 0


def test_an_objective_without_end_is_proved_to_have_none():
    """Fewer goods' limits than goods that pay: the profit grows for ever along some direction."""
    profit = ConvexProblem(-Sum(w[i], (i, 1, N)), [field <= 1])
    sim = simulate(profit, {alpha: 1.2}, N=20, seeds=4)
    assert (sim.infeasible, sim.failed) == (4, {})
    with pytest.raises(Infeasible, match="goes on for ever") as caught:
        sim[NORM]
    direction = caught.value.evidence.direction
    rows = sim.setup.instance(20, 0).couplings[0]
    assert np.max(rows @ direction) < 1e-9
    assert np.sum(direction) > 1e-3
    spread = ConvexProblem(Sum(field**2, (mu, 1, P)) / 2 - Sum(w[i], (i, 1, N)), [w[i] >= 0])
    sim = simulate(spread, {alpha: 0.3}, N=20, seeds=3)
    with pytest.raises(Infeasible, match="goes on for ever") as caught:
        sim[NORM]
    proof = caught.value.evidence
    assert proof.holds
    assert np.max(np.abs(sim.setup.instance(20, 0).couplings[0] @ proof.direction)) < 1e-9  # no curvature
    assert not replace(proof, direction=-proof.direction).holds
    tilted = ConvexProblem(Sum(field**2, (mu, 1, P)) / 2 - Sum(w[i], (i, 1, N)))
    assert simulate(tilted, {alpha: 0.5}, N=20, seeds=2).infeasible == 2
    assert simulate(tilted, {alpha: 1.5}, N=20, seeds=2).infeasible == 0


def test_programs_with_and_without_an_end_are_told_apart():
    profit = ConvexProblem(-Sum(w[i], (i, 1, N)), [field <= 1])
    sim = simulate(profit, {alpha: 1.9}, N=30, seeds=20)
    ends = {}
    for seed in sim.seeds:
        (rows,) = sim.setup.instance(30, seed).couplings
        ends[seed] = linprog(-np.ones(30), A_ub=rows, b_ub=np.ones(57), bounds=(None, None)).status == 0
    assert {s.seed: s.feasible for s in sim} == ends
    assert 0 < sim.infeasible < 20
    assert sim.residuals.worst < 1e-8


def test_the_largest_error_of_fewer_data_than_weights_is_zero_for_many_weights():
    """All sites are singular: two constraints meet at each datum. The plane of the multipliers is not counted."""
    largest = Global("largest", positive=True)
    error = field - y[mu]
    chebyshev = ConvexProblem(N * largest, [largest >= error, largest >= -error])
    sim = simulate(chebyshev, {alpha: 0.5, y: SIGNS}, N=30, seeds=2)
    assert set(sim.flat.values()) == {30 - 15}
    assert abs(sim[LOSS].mean) < 1e-12
    with pytest.raises(FlatMinimum):
        sim[NORM].mean  # noqa: B018 - it raises
    unique = simulate(chebyshev, {alpha: 2, y: Normal("y", 0, 1)}, N=30, seeds=2)
    assert unique.flat == {}
    for k, sample in enumerate(unique.samples):
        instance = unique.reader(k).instance
        rows, target = instance.couplings[0], instance.quenched[y]
        ones = np.ones((len(rows), 1))
        table, right = np.block([[rows, -ones], [-rows, -ones]]), np.concatenate([target, -target])
        best = linprog([0.0] * 30 + [1.0], table, right, bounds=[(None, None)] * 30 + [(0, None)])
        assert sample["w"] == pytest.approx(best.x[:30], abs=1e-6)


@pytest.mark.parametrize("twice", [[w[i] >= 0, 2 * w[i] >= 0], [w[i] >= 0, t[i] * w[i] >= 0]])
def test_a_constraint_that_is_stated_twice_leaves_the_minimiser_unique(twice):
    cost = Sum((field - 1) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2
    weights = {t: {1: "1/2", 3: "1/2"}} if any(c.has(t[i]) for c in twice) else {}
    once = simulate(ConvexProblem(cost, twice[:1]), {alpha: 2}, N=20, seeds=2)
    found = simulate(ConvexProblem(cost, twice), {alpha: 2, **weights}, N=20, seeds=2)
    assert found.flat == {}
    for what in (NORM, average(w[i] > 0), average(response(w))):
        assert found[what].samples == pytest.approx(once[what].samples, rel=1e-9)
    if not weights:  # the declaration itself shows that they are one
        return
    multiplier = next(q for q in found.system.laws[FEATURE].unknowns if q.family != w)
    with pytest.raises(FlatMinimum, match="multipliers are not"):
        found[average(multiplier)]
    with pytest.raises(FlatMinimum, match="no unique multiplier"):
        found[average(response(multiplier))]


def test_constraints_that_contradict_each_other_are_proved_to_before_any_path(monkeypatch):
    """A path towards a solution that does not exist runs to infinity: it took more than a minute an instance."""
    followed = []
    monkeypatch.setattr(minimum, "follow_path", lambda *_: followed.append(1))
    widest = ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [field >= 1])
    sim = simulate(widest, {alpha: 5}, N=30, seeds=3)
    assert (sim.infeasible, followed) == (3, [])
    with pytest.raises(Infeasible) as caught:
        sim[NORM]
    assert caught.value.evidence.holds
