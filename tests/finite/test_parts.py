"""Responses of solutions that jump: against theory, against finite sources, and against matrices where there is one."""

import numpy as np
import pytest
from declarations_simulated import SIGNS, VALUES, field, half_norm, hard, pursuit, soft, w, y
from scipy.optimize import linprog
from sympy import Abs, Eq, Max, Rational, Sum

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.face import ConvexProblem
from symcavity.finite.compare import compare
from symcavity.finite.responses_by_parts import InstanceByParts, jumps
from symcavity.finite.run import simulate
from symcavity.model.averages import average, response
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE, N, P, alpha, i, mu
from symcavity.model.quantities import Quenched

cost, scale = Quenched("c", i), Quenched("s", i)
COSTS = {1: Rational(1, 4), -1: Rational(3, 4)}
other = Sum(Coupling("z")[mu, i] * w[i], (i, 1, N))
uneven = Sum(Coupling("x", variance=scale[i] / N)[mu, i] * w[i], (i, 1, N))
goods = ConvexProblem(Sum(cost[i] * w[i], (i, 1, N)), [field <= 1, w[i] >= 0])
boxed = ConvexProblem(Sum(cost[i] * w[i], (i, 1, N)), [field <= 1, w[i] <= 1, w[i] >= -1])
sparse = ConvexProblem(Sum(Max(0, 1 - field), (mu, 1, P)) + Sum(Abs(w[i]), (i, 1, N)))
scaled = ConvexProblem(Sum(cost[i] * w[i], (i, 1, N)), [uneven <= 1, w[i] >= 0])
twofold = ConvexProblem(Sum(cost[i] * w[i], (i, 1, N)), [field <= 1, other <= 1, w[i] >= 0])

teacher = Quenched("t", i)
recall = ConvexProblem(
    Sum(Abs(w[i]), (i, 1, N)), [Eq(field, Sum(Coupling("x")[mu, i] * teacher[i], (i, 1, N)))]
)
noisy = ConvexProblem(
    Sum(Abs(field - Sum(Coupling("x")[mu, i] * teacher[i], (i, 1, N)) - y[mu]), (mu, 1, P)) + Sum(Abs(w[i]), (i, 1, N))
)

apart = ConvexProblem(Sum(Abs(field - Sum(Coupling("z")[mu, i] * teacher[i], (i, 1, N))), (mu, 1, P)))
linked = Coupling("z", correlation={Coupling("x"): Rational(1, 2)})
bound = ConvexProblem(Sum(Abs(field - Sum(linked[mu, i] * teacher[i], (i, 1, N))), (mu, 1, P)))

PROGRAMS = {
    "goods": (goods, {alpha: 2, cost: COSTS}),
    "boxed": (boxed, {alpha: 1, cost: SIGNS}),
    "sparse": (sparse, {alpha: 2}),
    "scaled": (scaled, {alpha: 2, cost: COSTS, scale: {Rational(1, 2): Rational(1, 2), 2: Rational(1, 2)}}),
    "recall": (recall, {alpha: Rational(2, 5), teacher: {0: Rational(1, 2), 1: Rational(1, 4), -1: Rational(1, 4)}}),
    "noisy": (noisy, {alpha: 2, y: SIGNS, teacher: {1: Rational(1, 2), 2: Rational(1, 2)}}),
    "apart": (apart, {alpha: 3, teacher: {1: Rational(1, 2), 2: Rational(1, 2)}}),
    "pursuit": (pursuit, {alpha: Rational(1, 2), y: SIGNS}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_responses_of_linear_programs_are_those_of_theory(name):
    problem, values = PROGRAMS[name]
    sim = simulate(problem, values, N=80, seeds=40)
    table = compare(problem.kkt().cavity(), sim, [response(w), response(sim.system["lambda"])])
    for row in table:
        assert abs(row.z) < 4
        assert row.simulation.stderr < 0.15 * abs(row.theory)  # the check has power


def test_they_are_those_to_finite_sources():
    """The mean over sites of the effect of a site's own source, by another solver: over every second of them."""
    size, differences = 0.3, []
    sim = simulate(goods, {alpha: 2, cost: COSTS}, N=40, seeds=24)
    for k in range(24):
        instance = sim.reader(k).instance
        (rows,), costs = instance.couplings, instance.quenched[cost]

        def best(site, source):
            shifted = costs - source * (np.arange(40) == site)  # noqa: B023
            return linprog(shifted, A_ub=rows, b_ub=np.ones(80)).x[site]  # noqa: B023

        differences.append(np.mean([best(s, size) - best(s, -size) for s in range(0, 40, 2)]) / (2 * size))
    measured = sim[response(w)]
    error = np.hypot(measured.stderr, np.std(differences, ddof=1) / np.sqrt(24))
    assert abs(measured.mean - np.mean(differences)) < 4 * error
    assert error < 0.15 * measured.mean


@pytest.mark.parametrize("problem", [hard, soft])
def test_they_agree_with_the_matrices_of_a_solution_that_does_not_jump(problem):
    sim = simulate(problem, {alpha: 0.8} if problem is hard else {alpha: 2, "C": 1}, N=150, seeds=20)
    for variable, side in ((w, FEATURE), (sim.system["lambda"], DATUM)):
        matrices, parts = [], []
        for k in range(20):
            reader = sim.reader(k)
            at = reader.instance.system.laws[side].names.index(variable.name)
            assert reader.responses.by_parts is None
            matrices.append(reader.responses.local(side, at).mean())
            parts.append(InstanceByParts(reader.instance, reader.solved.state).local(side, at).mean())
        gap = np.subtract(parts, matrices)
        assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(20)
        assert gap.std(ddof=1) < 0.5 * abs(np.mean(matrices))


@pytest.mark.parametrize("name", VALUES)
def test_only_vertices_jump(name):
    problem, values = VALUES[name]
    sim = simulate(problem, values, N=40, seeds=2)
    for k in range(2):
        reader = sim.reader(k)
        assert jumps(reader.instance, reader.solved.state) is (name == "pursuit")


def test_what_cannot_be_told_is_refused_and_not_zero():
    sim = simulate(twofold, {alpha: 1, cost: COSTS}, N=30, seeds=2)
    with pytest.raises(UnsupportedLaw, match="several fields"):
        sim[response(sim.system["lambda"], sim.system["h"])]
    sim = simulate(bound, {alpha: 3, teacher: 1}, N=30, seeds=2)
    with pytest.raises(UnsupportedLaw, match="several fields"):
        sim[response(w)]
    one = simulate(goods, {alpha: 2, cost: COSTS}, N=30, seeds=2)
    for read in (lambda: one.values(response(w[i])), lambda: one[average(response(w[i]) * w[i])]):
        with pytest.raises(ValuesError, match="average responses"):
            read()
    assert one[average(response(w[i]) * cost[i] ** 2)].mean == pytest.approx(one[response(w)].mean)


def test_a_field_that_vanishes_measures_nothing():
    """So strong a penalty that all weights are zero, and each datum is on the slope of its hinge."""
    weak = ConvexProblem(Sum(Max(0, 1 - field), (mu, 1, P)) / 10 + Sum(Abs(w[i]), (i, 1, N)))
    sim = simulate(weak, {alpha: 1}, N=30, seeds=2)
    assert np.all(sim.arrays("w") == 0)
    assert sim[response(w)].mean == 0
    parts = InstanceByParts(sim.reader(0).instance, sim.reader(0).solved.state)
    with pytest.raises(UnsupportedLaw, match="messages that vanish or are given"):
        parts.local(DATUM, 0)


def test_a_degenerate_instance_has_no_response_and_the_others_do():
    problem = ConvexProblem(half_norm, [field >= 1])
    sim = simulate(problem, {alpha: 0.5}, N=20, seeds=4)
    whole = sim[response(w)]
    sim = simulate(problem, {alpha: 0.5}, N=20, seeds=4)
    sim.samples[2].solved.sharp = False
    found = sim[response(w)]
    assert found.seeds == (0, 1, 3)
    assert found.flat == 1
    assert found.samples == pytest.approx(np.delete(whole.samples, 2))
    assert "1 without a unique value" in str(found)


def test_a_wrong_response_is_told_from_the_right_one():
    sim = simulate(goods, {alpha: 2, cost: COSTS}, N=100, seeds=40)
    right = goods.kkt().cavity().solve({alpha: 2, cost: COSTS})[response(w)]
    assert abs(sim[response(w)].z(1.3 * float(right))) > 5


