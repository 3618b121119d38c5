"""Messages at a temperature with global variables: sums over sites told by thermal means, and conditions on them."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from sympy import Eq, Heaviside, Rational, Sum, Symbol

from symcavity import (
    Coupling,
    Feature,
    Global,
    N,
    P,
    Problem,
    Quenched,
    Sites,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.derivations import associative_memory as memory
from symcavity.derivations import bidirectional_memory, binary_margin, fewest_errors, spiked_matrix
from symcavity.finite import messages
from symcavity.finite.sums_met import SumsMet
from symcavity.model.kinds import FEATURE

half, fifth = Rational(1, 2), Rational(1, 5)
x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
k, beta = Symbol("k", integer=True), Symbol("beta", positive=True)
J = Coupling("J", between=(i, i), reciprocity=1)
h = Sum(x[mu, i] * w[i], (i, 1, N))
NORM = Sum(w[i] ** 2, (i, 1, N))


def pairs(q):
    return Sum(q[i] * Sum(J[i, k] * q[k], (k, 1, N)), (i, 1, N)) / 2


MAGNET = Problem(-pairs(s) - Sum(s[i], (i, 1, N)) ** 2 / (4 * N) - Sum(s[i], (i, 1, N)) / 5).gibbs(beta)
SPHERE = Problem(-pairs(w) - Sum(w[i], (i, 1, N)) / 2, [Eq(NORM, N)]).gibbs(beta)
ERRORS = Problem(Sum(Heaviside(half - h), (mu, 1, P)), [Eq(NORM, N)]).gibbs(2)
BALL = Problem(Sum(Heaviside(half - h), (mu, 1, P)), [NORM <= N]).gibbs(2)
M = memory.M
HEBB = Sum(Sum(memory.x[mu, i] * memory.s[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
MEMORY = Problem(N * M**2 / 2 - M * Sum(memory.s[i], (i, 1, N)) - HEBB).gibbs(beta)

SYSTEMS = {
    "spiked": (
        spiked_matrix.problem,
        spiked_matrix.values,
        [*spiked_matrix.shown, average(spiked_matrix.s[i] * spiked_matrix.t[i])],
    ),
    "memory": (MEMORY, {beta: 4, alpha: Rational(1, 20)}, [average(expect(memory.s[i]) ** 2), M]),
    "magnet": (MAGNET, {beta: Rational(4, 5)}, [average(s[i]), average(expect(s[i]) ** 2)]),
    "sphere": (SPHERE, {beta: half}, [average(w[i]), average(expect(w[i]) ** 2)]),
    "errors": (ERRORS, {alpha: 3}, [response(w), average(expect(w[i]) ** 2)]),
    "ball": (BALL, {alpha: 3}, [response(w), average(expect(w[i]) ** 2)]),
}


def sent(run, seed=0):
    """The thermal means of the features after the last step."""
    last, law = run.runs[seed].steps[-1].state, run.setup.system.laws[FEATURE]
    return last.site[FEATURE][:, law.unknowns.index(run.setup.system.weights[FEATURE].mean)]


# -- against the theory -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_each_step_is_one_of_the_state_evolution(name):
    problem, values, observables = SYSTEMS[name]
    run = problem.message_passing(values, N=1000, seeds=5, steps=6)
    compared = run.compare(problem.cavity(), observables, steps=(0, 1, 2, 3, 5))
    assert len(compared.rows) == 5 * len(observables)
    assert compared.worst < 4


@pytest.mark.usefixtures("without_echo")
def test_without_the_echo_a_memory_leaves_the_state_evolution():
    problem, values, observables = SYSTEMS["sphere"]
    run = problem.message_passing(values, N=1000, seeds=10, steps=6)
    assert run.compare(problem.cavity(), observables, steps=(2, 3, 5)).worst > 6


@pytest.mark.parametrize("name", ["errors", "sphere"])
def test_where_the_condition_is_not_met_they_leave_it(name, monkeypatch):
    """The sum of the first step, held from then on."""
    problem, values, observables = SYSTEMS[name]
    evolution, solved = problem.cavity().state_evolution(values, steps=5), SumsMet.solved

    def held(self, state, eta, coupling, last, **_):
        return solved(self, state, eta, coupling, last, held=last is not None)

    monkeypatch.setattr(SumsMet, "solved", held)
    run = problem.message_passing(values, N=1000, seeds=10, steps=6)
    assert not run.converged
    assert run.compare(evolution, observables, steps=(3, 5)).worst > 6


@pytest.mark.parametrize("name", ["spiked", "memory", "sphere", "errors"])
def test_at_rest_they_are_where_the_theory_is(name):
    problem, values, observables = SYSTEMS[name]
    run = problem.message_passing(values, N=1000, seeds=10, steps=60)
    evolution = problem.cavity().state_evolution(values, steps=40)
    assert run.converged
    for observable in observables:
        end = run[observable][-1]
        assert end.mean == pytest.approx(evolution[observable][-1], abs=4 * end.stderr + 2e-3)


# -- by hand, and by all configurations -------------------------------------------------------------


def test_a_spherical_magnet_by_hand():
    """Each step: fields, Onsager's reaction, and the multiplier with which the squares have the mean one."""
    run = SPHERE.message_passing({beta: half}, N=60, seeds=1, steps=12)
    couplings = run.setup.instance(60, 0).couplings[0]
    m, variance, told = np.zeros(60), np.zeros(60), np.zeros(60)
    off = couplings - np.diag(np.diag(couplings))
    own = np.diag(couplings)
    for step in run.runs[0].steps:
        back = (off * off.T) @ variance / 2 + own
        eta = 0.5 + off @ m - (off * off.T) @ variance / 2 * told

        def square(nu, eta=eta, back=back):
            return np.mean((eta / (nu - back)) ** 2 + 2 / (nu - back)) - 1

        nu = brentq(square, back.max() + 1e-6, 100, xtol=1e-14)
        told, m, variance = m, eta / (nu - back), 2 / (nu - back)
        assert step.state.site[FEATURE][:, 1] == pytest.approx(m, abs=1e-5)
        assert -2 * step.state.shared[0] == pytest.approx(nu, abs=1e-5)
    assert run[average(w[i] ** 2)][-1].mean == pytest.approx(1, abs=1e-12)


def means_of_all(problem, values, size, seed, energy):
    """Exact magnetizations: sums over all configurations, of which half are the mirror images of the others."""
    instance = problem.message_passing(values, N=size, seeds=[seed], steps=2).setup.instance(size, seed)
    spins = np.array([*product((-1.0, 1.0), repeat=size)])
    logs, seen = energy(instance, spins)
    weights = np.exp(logs - logs.max()) * (np.ones(len(spins)) if seen is None else seen)
    return weights @ spins / weights.sum()


def of_magnet(instance, spins):
    size, (couplings,) = spins.shape[1], instance.couplings
    total = spins.sum(axis=1)
    off = np.einsum("ci,ij,cj->c", spins, couplings, spins) / 2
    return 0.4 * (off + total**2 / (4 * size) + total / 5), None


def of_spike(instance, spins):
    size, (noise,) = spins.shape[1], instance.couplings
    (t,) = instance.quenched.values()
    total = spins @ t
    return 3 * np.einsum("ci,ij,cj->c", spins, noise, spins) / 2 + 9 * total**2 / (2 * size), np.sign(total) + 1


EXACT = {
    "magnet": (MAGNET, {beta: Rational(2, 5)}, of_magnet),
    "spiked": (spiked_matrix.problem, {spiked_matrix.snr: 9}, of_spike),
}


def distance(name, size=13, seeds=6):
    """From exact magnetizations: the error of all sites over their spread; the median of some instances."""
    problem, values, energy = EXACT[name]
    run, missed = problem.message_passing(values, N=size, seeds=seeds, steps=400), []
    for seed in range(seeds):
        exact = means_of_all(problem, values, size, seed, energy)
        missed.append(np.mean((sent(run, seed) - exact) ** 2) / np.var(exact))
    return float(np.sqrt(np.median(missed)))


def test_means_by_all_configurations(monkeypatch):
    """And the control, without the answer of the others: at a strong signal there is next to none."""
    assert distance("spiked") < 0.01
    right = distance("magnet")
    assert right < 0.2
    monkeypatch.setattr(messages.Way, "echo", lambda *_: np.zeros(13))
    assert distance("magnet") > 4 * right


# -- how they begin ---------------------------------------------------------------------------------

FLAT = Problem(Sum((h - 1) ** 2, (mu, 1, P)) / 2).gibbs(2)


def test_states_that_nothing_holds_by_themselves_keep_still_first():
    """Least squares: the mean of the measure, exactly, at any size."""
    run = FLAT.message_passing({alpha: 3}, N=30, seeds=1, steps=300)
    (couplings,) = run.setup.instance(30, 0).couplings
    assert sent(run) == pytest.approx(np.linalg.lstsq(couplings, np.ones(90), rcond=None)[0], abs=1e-10)
    assert run[average(expect(w[i]) ** 2)][0].mean == 0
    many = FLAT.message_passing({alpha: 3}, N=1000, seeds=5, steps=5)
    assert many.compare(FLAT.cavity(), [average(expect(w[i]) ** 2), average(w[i] ** 2)], steps=(1, 2, 4)).worst < 4


a, K = Sites("a", "K", "unit")
z, v = Coupling("z", between=(mu, a)), Variable("v", a)
field = Sum(z[mu, a] * v[a], (a, 1, K))
FIRST = Problem(Sum((field - 1) ** 2, (mu, 1, P)) / 2 + Sum(v[a] ** 2, (a, 1, K)) / 2).gibbs(1)


def test_fields_of_those_who_have_not_spoken_have_no_spread():
    """The data come first here: the force on a field is the slope of its loss at zero, and nothing else."""
    run = FIRST.message_passing({alpha: 2, K / N: 1}, N=30, seeds=1, steps=300)
    kind = next(kind for kind in run.setup.system.laws if run.setup.system.weights[kind].is_field)
    assert next(iter(run.setup.system.laws)) == kind
    law = run.setup.system.laws[kind]
    first = run.runs[0].steps[0].state.site[kind][:, law.unknowns.index(law.weight.mean)]
    assert first == pytest.approx(np.ones(60), abs=1e-4)
    (couplings,) = run.setup.instance(30, 0).couplings
    exact = np.linalg.solve(couplings.T @ couplings + np.eye(30), couplings.sum(axis=0))
    last = run.runs[0].steps[-1].state.site[a.kind][:, -1]
    assert last == pytest.approx(exact, abs=1e-10)


@pytest.mark.parametrize("unit", [100, Rational(1, 100)])
def test_a_magnetization_begins_in_units_of_the_states(unit):
    """The same memory in other units: every step has the same numbers, times the unit."""
    steps = []
    for value in (1, unit):
        state, overlap = Feature("s", values=(-value, value)), Global("M")
        hebb = Sum(Sum(x[mu, i] * state[i], (i, 1, N)) ** 2, (mu, 1, P)) / 2
        problem = Problem(N * overlap**2 / 2 - overlap * Sum(state[i], (i, 1, N)) - hebb).gibbs(beta)
        values = {alpha: Rational(1, 20), beta: Rational(4) / value**2}
        run = problem.message_passing(values, N=200, seeds=1, steps=6)
        evolution = problem.cavity().state_evolution(values, steps=6)
        told = [run[overlap][k].mean / float(value) for k in range(7)]
        steps.append([*told, *(evolution[overlap] / float(value))])
    assert steps[0] == pytest.approx(steps[1], rel=1e-6)
    assert min(steps[0]) > 0.9


# -- what it refuses --------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [memory, bidirectional_memory, binary_margin, fewest_errors])
def test_the_lowest_minimum_is_refused_for_its_jumps(module):
    with pytest.raises(UnsupportedLaw, match=r"jump"):
        module.problem.message_passing(module.values, N=10**9)


def test_no_configuration_tells_a_multiplier():
    simulated = spiked_matrix.problem.simulate({spiked_matrix.snr: 4}, N=6, seeds=1)
    overlap, multiplier = spiked_matrix.problem.globals
    assert str(multiplier) == "nu"
    with pytest.raises(ValuesError, match="depends on nu"):
        simulated[multiplier]
    run = spiked_matrix.problem.message_passing({spiked_matrix.snr: 4}, N=300, seeds=2, steps=40)
    assert run[multiplier][-1].mean == pytest.approx(2 * run[overlap][-1].mean, abs=1e-9)  # lambda/2 of it


# -- sums that losses weigh, at zero temperature -----------------------------------------------------


def with_means(states):
    """Couplings with a mean along a label: what data hear holds a sum over all sites."""
    y, t = Quenched("y", mu), Quenched("t", i)
    z = Coupling("z", mean=y[mu] * t[i] / N)
    values = {alpha: half, y: {1: half, -1: half}, t: {1: half, -1: half}}
    return Sum((Sum(z[mu, i] * states[i], (i, 1, N)) - y[mu]) ** 2, (mu, 1, P)) / 2, values


def cost_of(one):
    """The loss of some configurations of an instance, from its couplings, labels and teacher."""
    ((f,),) = (one.w.weighed(kind).values() for kind in one.w.heard)
    label, teacher = (next(v for q, v in one.w.quenched.items() if q.family.name == name) for name in "yt")
    couplings = one.w.instance.matrix(f)

    def cost(rows):
        heard = rows @ couplings.T + (rows @ teacher)[:, None] * label / len(teacher)
        return np.sum((heard - label) ** 2, axis=1) / 2

    return cost


def test_the_lowest_configuration_beside_means_of_couplings():
    """Losses know a sum over all sites, however the minimum is looked for: a raw NameError was raised."""
    loss, values = with_means(s)
    rows = np.array(list(product((-1.0, 1.0), repeat=8)))
    for method in ("enumeration", "annealing"):
        for one in Problem(loss).simulate(values, N=8, seeds=2, method=method, sweeps=60).instances:
            ((found,),) = one.measure.x.values()
            cost = cost_of(one)
            assert cost(found[None])[0] == pytest.approx(cost(rows).min(), rel=1e-12)
            force = -sum(cost_forces(one, found)) / 4
            assert one.value(average(Problem(loss)["lambda"][mu])) == pytest.approx(force, rel=1e-12)


def cost_forces(one, row):
    """The slopes of the losses of an instance at a configuration, datum by datum."""
    ((f,),) = (one.w.weighed(kind).values() for kind in one.w.heard)
    label, teacher = (next(v for q, v in one.w.quenched.items() if q.family.name == name) for name in "yt")
    return one.w.instance.matrix(f) @ row + label * (teacher @ row) / len(row) - label


def test_descent_beside_means_of_couplings():
    """A double well: the slope of what all sites tell together, against a minimizer that differs the energy."""
    loss, values = with_means(w)
    problem = Problem(loss + Sum((w[i] ** 2 - 1) ** 2, (i, 1, N)) - Sum(w[i], (i, 1, N)) ** 2 / (4 * N))
    for one in problem.simulate(values, N=6, seeds=2):
        cost = cost_of(one)

        def energy(row, cost=cost):
            return cost(row[None])[0] + np.sum((row**2 - 1) ** 2) - np.sum(row) ** 2 / 24

        best = min(minimize(energy, start, tol=1e-10).fun for start in product((-1.0, 1.0), repeat=6))
        ((found,),) = one.measure.x.values()
        assert energy(found) == pytest.approx(best, rel=1e-8)
