"""Instances of systems that are not convex: sites take their law at their fields until none would move."""

from itertools import product

import numpy as np
import pytest
from sympy import Eq, Heaviside, Max, Rational, Sum, Symbol, sign

from symcavity import (
    Coupling,
    Feature,
    Global,
    N,
    NotConverged,
    Quenched,
    SeveralSolutions,
    System,
    average,
    i,
)
from symcavity.finite.compare import compare

w, j, g = Feature("w"), Symbol("j", integer=True), Symbol("g", positive=True)
DRIVE = Rational(1, 4)


def network(unit, reciprocity=0):
    J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=reciprocity)
    return System([Eq(w[i], unit(Sum(J[i, j] * w[j], (j, 1, N)) + DRIVE))])


@pytest.mark.parametrize(("unit", "step"), [(sign, np.sign), (Heaviside, lambda h: (h > 0) * 1.0)])
def test_a_fixed_point_of_units_with_a_threshold_is_one_of_those_that_there_are(unit, step):
    """All states of ten units are tried; where a unit inhibits itself some never come to rest, and this is said."""
    sim = network(unit, reciprocity=1).simulate({g: 1}, N=10, seeds=6)
    states = np.array(list(product({sign: (-1.0, 1.0), Heaviside: (0.0, 1.0)}[unit], repeat=10)))
    for seed in range(6):
        instance = sim.setup.instance(10, seed)
        fields = states @ instance.couplings[0].T + float(DRIVE)
        still = states[np.all(step(fields) == states, axis=1)]
        if seed in sim.failed:
            assert "never came to rest" in sim.failed[seed]
            assert np.min(np.diag(instance.couplings[0])) < 0
        else:
            found = sim.samples[list(sim.seeds).index(seed)]["w"]
            assert any(np.array_equal(found, one) for one in still)
    assert len(sim.failed) < 4


def test_silence_is_no_state_of_units_with_two_signs():
    """The sign of nothing is on neither side of the jump."""
    J = Coupling("J", between=(i, i))
    silent = System([Eq(w[i], sign(Sum(J[i, j] * w[j], (j, 1, N))))])
    with pytest.raises(NotConverged, match="never came to rest"):
        silent.simulate({}, N=40, seeds=2)


@pytest.mark.filterwarnings("ignore::symcavity.JumpingLaw", "ignore::symcavity.UnstableSolution")
def test_the_record_of_units_with_two_signs_says_that_nothing_settles():
    J = Coupling("J", between=(i, i))
    theory = System([Eq(w[i], sign(Sum(J[i, j] * w[j], (j, 1, N))))]).cavity()
    assert theory.derivation.verify()
    solution = theory.solve({})
    assert solution[average(w[i] ** 2)] == 1
    assert solution.stability == float("inf")


def test_rates_that_divide_by_their_power_come_to_rest_where_newton_steps_turn_around_at_kinks():
    """The equations are written out in numbers; theory and instances agree."""
    J = Coupling("J", between=(i, i))
    rates = System([Eq(w[i], Max(0, 1 + Sum(J[i, j] * w[j], (j, 1, N))) / (1 + average(w[i] ** 2)))])
    sim = rates.simulate({}, N=100, seeds=16)
    assert not sim.failed
    for seed, sample in zip(sim.seeds, sim.samples, strict=True):
        (couplings,), found = sim.setup.instance(100, seed).couplings, sample["w"]
        heard = np.maximum(0, 1 + couplings @ found)
        assert found * (1 + np.mean(found**2)) == pytest.approx(heard, abs=1e-10)
    solution = rates.cavity().solve({})
    seen = sim[average(w[i] ** 2)]
    assert seen.mean == pytest.approx(solution[average(w[i] ** 2)], abs=4 * seen.stderr)


def test_of_several_solutions_that_of_the_instances_is_compared():
    """Infections h/(1 + h) of a positive field h; there is a root at negative ones, at which no instance ends."""
    mean, half = Symbol("m", positive=True), Rational(1, 2)
    d = Quenched("d", i, law={Rational(1, 10): half, Rational(3, 10): half})
    A = Coupling("A", between=(i, i), mean=mean / N, variance=g**2 / N)
    system = System([Eq(w[i], (1 - w[i]) * (Sum(A[i, j] * w[j], (j, 1, N)) + d[i]))])
    values, theory = {g: Rational(1, 5), mean: 2}, system.cavity()
    with pytest.raises(SeveralSolutions) as error:
        theory.solve(values)
    below, above = (theory.solve(values, guess=guess) for guess in error.value.solutions)
    assert float(below["M_w"]) < 0 < float(above["M_w"])
    simulation = system.simulate(values, N=300, seeds=6)
    table = theory.compare(simulation)
    assert table.agrees(4)
    assert table[average(w[i] ** 2)].theory == pytest.approx(float(above["q_w"]))
    assert any("several solutions" in note for note in table.notes)
    assert compare(below, simulation).worst > 6
    there, here = (theory.settling(values, guess=guess) for guess in error.value.solutions)
    assert here < there


def test_a_mean_is_held_by_a_global_variable_however_it_is_written():
    level, J = Global("c"), Coupling("J", between=(i, i), variance=g**2 / N)
    law = Eq(w[i], Max(0, level - Sum(J[i, j] * w[j], (j, 1, N))))
    by_sum, by_mean = (
        System([law, held]).cavity().solve({g: Rational(1, 2)})
        for held in (Eq(Sum(w[i], (i, 1, N)), N), Eq(average(w[i]), 1))
    )
    assert float(by_mean[level]) == pytest.approx(float(by_sum[level]), rel=1e-12)
    assert float(by_mean[average(w[i])]) == pytest.approx(1, rel=1e-12)
