"""The cavity, tested: insertions of a site, sample by sample."""

import numpy as np
import pytest
from declarations_simulated import SIGNS, VALUES, C, assert_contradicts, field, hard, ridge, soft, uneven, w, x, y
from scipy.stats import norm
from scipy.stats import t as student
from sympy import Sum, exp, log, sign

from symcavity import N, Quenched, i
from symcavity.errors import Infeasible, UnsupportedLaw
from symcavity.face import ConvexProblem
from symcavity.finite.experiment import cavity_experiment
from symcavity.finite.insertion import extended, insert
from symcavity.finite.setup import as_system, prepare
from symcavity.model.kinds import DATUM, FEATURE, P, alpha, mu

likelihood = ConvexProblem(Sum(log(1 + exp(-y[mu] * field)), (mu, 1, P)))


def setup_of(name):
    problem, values = VALUES[name]
    system = as_system(problem)
    return prepare(system, values)


@pytest.fixture(scope="module")
def experiment():
    return cavity_experiment(soft, soft.cavity(), {alpha: 1, C: 1}, N=150, seeds=40)


def line(inserted, name):
    return next(f for f in inserted.findings() if f.name == name)


@pytest.mark.parametrize("side", [FEATURE, DATUM])
def test_the_instance_without_the_site_is_part_of_the_instance_with_it(side):
    setup = setup_of("uneven")
    instance = setup.instance(30, 5)
    grown, fresh = extended(setup, instance, side)
    n, p = grown.size[FEATURE], grown.size[DATUM]
    assert (n, p) == ((31, 15) if side == FEATURE else (30, 16))
    assert np.array_equal(grown.couplings[0][:15, :30], instance.couplings[0])
    last = grown.couplings[0][:, -1] if side == FEATURE else grown.couplings[0][-1]
    (strand,) = fresh.values()
    assert np.array_equal(last, strand.couplings)
    assert strand.variance.shape == strand.couplings.shape
    assert instance.size == {FEATURE: 30, DATUM: 15}


def test_a_new_datum_draws_its_label_on_its_own_field():
    """Labels that are the sign of a teacher's field; a new feature would change those of all others."""
    u = Sum(x[mu, i] * (t := Quenched("t", i))[i], (i, 1, N))
    label = Quenched("label", mu, law={1: (1 + sign(u)) / 2, -1: (1 - sign(u)) / 2}, given=u)
    loss = Sum((label[mu] - field) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))
    setup = prepare(as_system(ConvexProblem(loss)), {alpha: 2, t: {1: 0.5, -2: 0.5}})
    for seed in range(8):
        instance = setup.instance(20, seed)
        grown, _ = extended(setup, instance, DATUM)
        labels, teacher = (next(v for q, v in grown.quenched.items() if q.name == name) for name in ("label", "t"))
        assert np.array_equal(labels, np.sign(grown.couplings[0] @ teacher))
        assert len(labels) == 41
    with pytest.raises(UnsupportedLaw, match="changes the labels"):
        extended(setup, instance, FEATURE)


@pytest.mark.parametrize("side", [FEATURE, DATUM])
def test_a_linear_system_obeys_the_cavity_exactly(side):
    setup = setup_of("ridge")
    found, _ = insert(setup, (side, 30, 1))
    assert found.linear_shift == pytest.approx(found.shift, abs=1e-10)
    own = found.shift  # what the others send has moved by R x0 times what the site sends
    assert own.shape == (60 if side == FEATURE else 30,)
    states = dict(zip(as_system(ridge).laws[side].unknowns, found.state, strict=True))
    sent = next(iter(states.values()))
    assert found.field == pytest.approx(found.cavity_field + found.self_coupling[:, 0] * sent, rel=1e-9)


@pytest.mark.parametrize("name", ["biased", "tied", "logistic", "mixed", "positive"])
def test_globals_losses_and_bounds_have_a_cavity_too(name):
    problem, values = VALUES[name]
    found = cavity_experiment(problem, None, values, N=80, seeds=12)
    for inserted in found:
        j = inserted._shown()
        gap = np.abs(inserted.actual[:, j] - inserted.predicted[:, j])
        assert np.median(gap) < 0.05 * np.std(inserted.actual[:, j])


@pytest.mark.parametrize("side", [FEATURE, DATUM])
def test_the_single_site_law_holds_sample_by_sample(experiment, side):
    inserted = getattr(experiment, side.name)
    j = inserted._shown()
    actual = inserted.actual[:, j]
    assert np.corrcoef(actual, inserted.predicted[:, j])[0, 1] > 0.99
    assert np.corrcoef(actual, inserted.predicted_by_mean[:, j])[0, 1] > 0.95
    wrong = inserted._site(-inserted.stack("self_coupling"))[:, j]
    good = np.isfinite(wrong)
    assert np.mean((wrong - actual)[good] ** 2) > 5 * np.mean((inserted.predicted[:, j] - actual) ** 2)


def test_fields_and_self_couplings_are_what_theory_says(experiment):
    for inserted in experiment:
        assert inserted.theory_self_coupling is not None
        for f in inserted.findings():
            if "self-coupling" in f.name and "fluctuation" not in f.name:
                assert abs(f.z) < 4, f
            if f.name.startswith("cavity field"):
                assert abs(f.z) < 4, f
            if "fluctuation" in f.name:
                assert 0.1 < f.measured < 10


def test_independence_holds_without_the_site_and_not_with_it():
    experiment = cavity_experiment(hard, None, {alpha: 0.5}, N=150, seeds=80)
    without = line(experiment.feature, "field squared over its variance, without the site")
    within = line(experiment.feature, "field squared over its variance, with the site")
    assert abs(without.z) < 3.5
    assert within.z < -8


def test_fluctuations_shrink_like_one_over_sqrt_n():
    spread = []
    for n in (50, 200):
        stack = cavity_experiment(ridge, None, VALUES["ridge"][1], N=n, seeds=40).datum
        relative = stack.stack("self_coupling") / stack.stack("mean_self_coupling") - 1
        spread.append(np.std(relative))
    assert spread[0] / spread[1] == pytest.approx(2, rel=0.45)


def test_uneven_features_have_a_self_coupling_of_their_own():
    found = cavity_experiment(uneven, uneven.cavity(), VALUES["uneven"][1], N=120, seeds=20)
    theory = found.feature.theory_self_coupling[:, 0, 0]
    assert len(set(np.round(theory, 6))) == 2
    assert theory.min() / theory.max() == pytest.approx(9, rel=1e-6)
    assert np.corrcoef(theory, found.feature.stack("self_coupling")[:, 0, 0])[0, 1] > 0.9


def test_instances_that_become_infeasible_are_counted():
    found = cavity_experiment(hard, None, {alpha: 1.8}, N=20, seeds=25)
    assert 0 < len(found.datum.missing) < 25
    assert set(found.datum.missing.values()) == {"infeasible"}
    assert f"left out, before or after: seeds {min(found.datum.missing)}, " in str(found)
    with pytest.raises(Infeasible) as caught:
        cavity_experiment(hard, None, {alpha: 5}, N=20, seeds=2)
    assert_contradicts(caught.value.evidence)
    single = cavity_experiment(likelihood, None, {alpha: 2.4, y: SIGNS}, N=12, seeds=12)  # some data are separable
    assert 0 < len(single.datum.missing) < 12
    assert all("lies at infinity" in why for why in single.datum.missing.values())


def test_few_insertions_are_held_to_the_law_of_student():
    few = cavity_experiment(soft, None, {alpha: 1, C: 1}, N=30, seeds=4)
    found = line(few.feature, "field squared over its variance, with the site")
    distance = (found.measured - found.expected) / found.stderr
    assert found.z == pytest.approx(norm.isf(student.sf(abs(distance), 3)) * np.sign(distance))


def test_the_experiment_is_shown(experiment, tmp_path):
    assert "one feature added to 40 instances" in str(experiment)
    assert experiment._repr_html_().count("<table>") == 2
    pytest.importorskip("matplotlib")
    experiment.plot().savefig(tmp_path / "cavity.png")
    assert (tmp_path / "cavity.png").stat().st_size > 10000
