"""Bad input is refused with an explanation; seeds and couplings do what they say."""

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from declarations_simulated import (
    SIGNS,
    VALUES,
    C,
    assert_contradicts,
    biased,
    field,
    half_norm,
    hard,
    kappa,
    l,
    logistic,
    ridge,
    soft,
    t,
    taught,
    uneven,
    w,
    y,
)
from sympy import Eq, Rational
from sympy.stats import Normal

from symcavity.errors import Infeasible, NotConverged, ValuesError
from symcavity.face import ConvexProblem
from symcavity.finite.certificate import evidence
from symcavity.finite.draw import memory, own_limits
from symcavity.finite.executors import processes
from symcavity.finite.run import simulate
from symcavity.model.averages import average
from symcavity.model.kinds import N, P, alpha, i, mu


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ({}, {}, "alpha"),
        ({kappa: 1}, {}, "condition on an average"),
        ({alpha: 1, kappa: 1}, {}, "condition on an average"),
        ({alpha: -1}, {}, "alpha = -1"),
        ({alpha: float("nan")}, {}, "nan"),
        ({alpha: "x"}, {}, "alpha"),
        ({alpha: "1 + 1"}, {}, "alpha"),  # a text is a number, and no code
        ({alpha: 1, C: 1}, {}, "no parameter C"),
        ({alpha: 1, y: SIGNS}, {}, "no quenched parameter y"),
        ({"beta": 1}, {}, "beta"),
        ({P: 2.5}, {}, "P = 2.5"),
        ({P: 0}, {}, "P = 0"),
        (3, {}, "values are 3"),
        ({alpha: 1}, {"N": 0}, "N = 0"),
        ({alpha: 1}, {"N": 1}, "N = 1"),
        ({alpha: 1}, {"N": 10.5}, "N = 10.5"),
        ({alpha: 1}, {"N": None}, "number of features"),
        ({alpha: 1}, {"N": [20, 20]}, "N = "),
        ({alpha: 0.01}, {"N": 20}, "no datum"),
        ({alpha: 1}, {"seeds": 0}, "seeds = 0"),
        ({alpha: 1}, {"seeds": -2}, "seeds = -2"),
        ({alpha: 1}, {"seeds": [1, 1]}, "seeds"),
        ({alpha: 1}, {"seeds": []}, "seeds"),
        ({alpha: 1}, {"couplings": "cauchy"}, "cauchy"),
        ({alpha: 1}, {"couplings": 3}, "coupling law is 3"),
        ({alpha: 1}, {"couplings": lambda rng, shape: rng.uniform(size=shape)}, "mean 0.49"),
        ({alpha: 1}, {"couplings": lambda rng, shape: 2 * rng.standard_normal(shape)}, "second moment"),
        ({alpha: 1}, {"couplings": lambda rng, _: rng.standard_normal(3)}, "shape"),
        ({alpha: 1}, {"executor": "many"}, "executor"),
        ({alpha: 1}, {"executor": 0}, "executor = 0"),
    ],
)
def test_bad_input_is_refused(values, options, message):
    with pytest.raises(ValuesError, match=message):
        simulate(hard, values, **{"N": 20, "seeds": 1} | options)


@pytest.mark.parametrize(
    ("problem", "values", "message"),
    [
        (soft, {alpha: 1}, "C"),
        (soft, {alpha: 1, C: -1}, "positive"),
        (biased, {alpha: 1}, "y"),
        (biased, {alpha: 1, y: {1: 0.5, -1: 0.6}}, "1.1"),
        (biased, {alpha: 1, y: [1, -1]}, "2 values"),
        (biased, {alpha: 1, y: [[1, -1]]}, "values of y"),
        (biased, {alpha: 1, y: "coin"}, "'coin'"),
        (uneven, {alpha: 1, l: {-1: 1}}, "variance"),
        ("problem", {alpha: 1}, "cannot be simulated"),
    ],
)
def test_bad_parameters_are_refused(problem, values, message):
    with pytest.raises(ValuesError, match=message):
        simulate(problem, values, N=20, seeds=1)


def test_the_way_from_kappa_to_alpha_is_told():
    with pytest.raises(ValuesError, match=r"average is known instead, solve") as caught:
        simulate(hard, {kappa: 1}, N=20)
    assert "alpha" in caught.value.hint


def test_values_may_be_named_in_many_ways():
    one = simulate(soft, {"alpha": 2, "C": Rational(1, 2)}, N=20, seeds=2)
    two = simulate(soft, {P: 40, N: 20, C: 0.5}, seeds=[0, 1])
    assert np.array_equal(one.arrays("w"), two.arrays("w"))
    assert (one.N, one.P, one.load) == (20, 40, 2.0)


def test_the_load_that_was_simulated_is_recorded():
    assert simulate(hard, {alpha: 0.52}, N=50, seeds=1).load == 26 / 50
    assert simulate(hard, {alpha: 0.519}, N=50, seeds=1).load == 26 / 50


@pytest.mark.parametrize("given", ["law", "array", "variable", "number"])
def test_quenched_parameters(given):
    values = {"law": SIGNS, "array": np.linspace(-1, 1, 60), "variable": Normal("t", 0, 2), "number": 1}[
        given
    ]
    sim = simulate(taught, {alpha: 1, C: 1, t: values}, N=60, seeds=2)
    drawn = sim.reader(1).instance.quenched[t]
    assert drawn.shape == (60,)
    if given == "array":
        assert np.array_equal(drawn, values)
    elif given == "variable":
        assert drawn.std() == pytest.approx(2, rel=0.4)
        assert not np.array_equal(drawn, sim.reader(0).instance.quenched[t])
    else:
        assert set(drawn) <= {-1.0, 1.0}


@pytest.mark.parametrize("couplings", ["gaussian", "rademacher", "uniform", "callable"])
def test_coupling_laws_have_the_declared_variance(couplings):
    law = (
        (lambda rng, shape: rng.laplace(scale=0.5**0.5, size=shape)) if couplings == "callable" else couplings
    )
    sim = simulate(hard, {alpha: 1.0}, N=100, seeds=1, couplings=law)
    (drawn,) = sim.reader(0).instance.couplings
    assert 100 * drawn.var() == pytest.approx(1, rel=0.06)
    assert sim.residuals.worst < 1e-8


def test_couplings_that_are_not_gaussian_give_the_same():
    estimates = [
        simulate(hard, {alpha: 0.5}, N=150, seeds=15, couplings=law)[average(w[i] ** 2)]
        for law in ("gaussian", "rademacher", "uniform")
    ]
    for e in estimates[1:]:
        assert abs(e.mean - estimates[0].mean) < 3.5 * np.hypot(e.stderr, estimates[0].stderr)


def test_a_seed_is_a_number_not_a_position():
    all_seeds = simulate(hard, {alpha: 0.5}, N=30, seeds=5)
    some = simulate(hard, {alpha: 0.5}, N=30, seeds=[4, 2])
    assert np.array_equal(some.arrays("w"), all_seeds.arrays("w")[[4, 2]])
    assert some.seeds == (4, 2)


def test_processes_and_threads_give_the_same_numbers():
    here = simulate(logistic, VALUES["logistic"][1], N=30, seeds=6)
    with processes(2) as pool:
        assert isinstance(pool, ProcessPoolExecutor)
        there = simulate(logistic, VALUES["logistic"][1], N=30, seeds=6, executor=pool)
        bumpy = simulate(ridge, VALUES["ridge"][1], N=20, seeds=4, executor=pool)
    with ThreadPoolExecutor(2) as pool:
        threads = simulate(logistic, VALUES["logistic"][1], N=30, seeds=6, executor=pool)
    assert np.array_equal(here.arrays("w"), there.arrays("w"))
    assert np.array_equal(here.arrays("w"), threads.arrays("w"))
    assert [s.residuals for s in here] == [s.residuals for s in there]
    assert there[average(w[i] ** 2)].samples == pytest.approx(here[average(w[i] ** 2)].samples)
    assert len(bumpy) == 4


def test_a_coupling_law_that_cannot_travel_is_refused():
    with processes(2) as pool, pytest.raises(ValuesError, match="other processes"):
        simulate(
            hard, {alpha: 1}, N=20, seeds=2, couplings=lambda rng, s: rng.standard_normal(s), executor=pool
        )


def test_all_infeasible_is_an_error_only_when_asked():
    sim = simulate(hard, {alpha: 4}, N=20, seeds=3)
    assert sim.infeasible == 3
    assert sim.feasible_fraction.mean == 0
    with pytest.raises(Infeasible) as caught:
        sim[average(w[i] ** 2)]
    with pytest.raises(Infeasible):
        _ = sim.residuals
    assert "infeasible: 3 (seeds 0, 1, 2)" in str(sim)
    rows = caught.value.evidence.program.matrix.toarray()
    assert rows == pytest.approx(sim.setup.instance(20, 0).couplings[0])  # the constraints are the declared ones
    assert_contradicts(caught.value.evidence)


def test_a_bounded_problem_with_equations_is_infeasible_for_a_reason():
    """Sums of 10 weights between 0 and 1 with given values, which no such weights have."""
    bounded = ConvexProblem(half_norm, [Eq(field, y[mu]), w[i] >= 0, w[i] <= 1])
    sim = simulate(bounded, {alpha: 0.8, y: {9: 1}}, N=10, seeds=2)
    with pytest.raises(Infeasible) as caught:
        sim[average(w[i])]
    proof = caught.value.evidence
    assert_contradicts(proof)
    assert proof.program.equal.sum() == 8
    assert "add up to 0 >= " in str(caught.value)
    feasible = simulate(bounded, {alpha: 0.1, y: {0: 1}}, N=10, seeds=1)
    with pytest.raises(NotConverged, match="no proof"):
        evidence(feasible.setup.system, feasible.setup.instance(10, 0))


def test_the_memory_of_a_job_is_that_of_its_control_group(tmp_path):
    job = tmp_path / "fs" / "slurm" / "job_7"
    (job / "step_0").mkdir(parents=True)
    (job / "memory.max").write_text("123456\n")
    (job / "step_0" / "memory.max").write_text("max\n")
    groups = tmp_path / "cgroup"
    groups.write_text("0::/slurm/job_7/step_0\n")
    assert memory(own_limits(tmp_path / "fs", groups)) == 123456
    older = tmp_path / "fs" / "memory" / "job_8"
    older.mkdir(parents=True)
    (older / "memory.limit_in_bytes").write_text("2000")
    groups.write_text("4:memory:/job_8\n3:cpu,cpuacct:/job_8\n")
    assert memory(own_limits(tmp_path / "fs", groups)) == 2000
    assert memory(own_limits(tmp_path / "none", tmp_path / "none")) > 10**6
