"""Instances of systems that are not convex: sites take their law at their fields until none would move."""

from itertools import product

import numpy as np
import pytest
from sympy import Eq, Heaviside, Max, Rational, Sum, Symbol, sign

from symcavity import Coupling, Feature, N, NotConverged, System, average, i

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
