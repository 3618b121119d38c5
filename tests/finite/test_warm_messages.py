"""Messages at a temperature: fixed points against recursions by hand and enumeration, steps against the theory."""

from itertools import product

import numpy as np
import pytest
from scipy.special import log_ndtr
from sympy import Abs, Heaviside, Max, Min, Rational, Sum, Symbol, exp, log
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    NotConverged,
    P,
    Problem,
    Quenched,
    Sites,
    UnsupportedLaw,
    ValuesError,
    alpha,
    average,
    expect,
    i,
    mu,
    response,
)
from symcavity.derivations import (
    bayes_perceptron,
    binary_perceptron,
    boltzmann_machine,
    sparse_means,
    spin_glass,
)
from symcavity.finite import messages
from symcavity.model.kinds import DATUM, FEATURE

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
beta, sigma = Symbol("beta", positive=True), Symbol("sigma", positive=True)
xi = Quenched("xi", mu, law=Normal("xi", 0, 1))
t, signs = Quenched("t", i, law=Normal("t", 0, 1)), Quenched("t", i, law={1: Rational(1, 2), -1: Rational(1, 2)})


def measured(state, teacher):
    miss = Sum(x[mu, i] * (state - teacher), (i, 1, N)) - sigma * xi[mu]
    return Sum(miss**2, (mu, 1, P)) / (2 * sigma**2)


RIDGE = ConvexProblem(measured(w[i], t[i]) + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(beta)
LASSO = ConvexProblem(measured(w[i], signs[i]) + Sum(Abs(w[i]), (i, 1, N))).gibbs(beta)
SIGNS = Problem(measured(s[i], signs[i])).gibbs(1)
NOISE = Rational(1, 2)
MAGNET = {spin_glass.beta: Rational(4, 5), spin_glass.H: NOISE}


def drawn(run, seed=0):
    instance = run.setup.instance(run.N, seed)
    return instance.couplings[0], {str(q): v for q, v in instance.quenched.items()}


def sent(run, kind, seed=0):
    """The thermal means of the sites of a kind after the last step."""
    last, law = run.runs[seed].steps[-1].state, run.setup.system.laws[kind]
    return last.site[kind][:, law.unknowns.index(run.setup.system.weights[kind].mean)]


# -- fixed points and steps by hand -----------------------------------------------------------------


def test_a_magnet_obeys_the_equations_of_thouless_anderson_and_palmer():
    run = spin_glass.problem.message_passing(MAGNET, N=14, seeds=2, steps=300)
    for seed in (0, 1):
        J, _ = drawn(run, seed)
        J = J - np.diag(np.diag(J))  # the square of a spin is one
        m, before = np.zeros(14), np.zeros(14)
        for _ in range(3000):
            reaction = 0.8 * (J * J.T) @ (1 - m**2) * before
            m, before = np.tanh(0.8 * (0.5 + J @ m - reaction)), m
        assert sent(run, FEATURE, seed) == pytest.approx(m, abs=1e-10)
        assert run[average(spin_glass.s[i])][-1].samples[seed] == pytest.approx(m.mean(), abs=1e-10)
        assert run[response(spin_glass.s)][-1].samples[seed] == pytest.approx(0.8 * np.mean(1 - m**2), abs=1e-10)
    assert run.converged
    assert run.residuals.worst < 1e-10


def enumerated(J, cold, pull):
    spins = np.array([*product((-1.0, 1.0), repeat=len(J))])
    off = J - np.diag(np.diag(J))
    logs = cold * (np.einsum("ci,ij,cj->c", spins, off, spins) / 2 + pull * spins.sum(axis=1))
    weights = np.exp(logs - logs.max())
    return weights @ spins / weights.sum()


def distance(problem, values, size, seeds):
    """From exact magnetizations: the error of all sites over the spread that the couplings give them."""
    run = problem.message_passing(values, N=size, seeds=seeds, steps=300)
    found = []
    for seed in range(seeds):
        exact = enumerated(drawn(run, seed)[0], 0.4, 0.5)
        found.append(np.mean((sent(run, FEATURE, seed) - exact) ** 2) / np.var(exact))
    return float(np.sqrt(np.mean(found)))


def test_a_warm_magnet_by_enumeration(monkeypatch):
    """Every configuration at a high temperature; and the control, without the answer of the others."""
    values = {spin_glass.beta: Rational(2, 5), spin_glass.H: NOISE}
    right = distance(spin_glass.problem, values, 13, 6)
    assert right < 0.1
    monkeypatch.setattr(messages.Way, "echo", lambda *_: np.zeros(13))
    assert distance(spin_glass.problem, values, 13, 6) > 4 * right


def test_a_gaussian_posterior_has_the_mean_of_ridge_regression():
    """Exactly, at any size: only its variance is that of many sites."""
    values = {alpha: 2, sigma: NOISE, beta: 1}
    run = RIDGE.message_passing(values, N=30, seeds=2, steps=300)
    X, quenched = drawn(run)
    precision = 4 * X.T @ X + np.eye(30)
    exact = np.linalg.solve(precision, 4 * X.T @ (X @ quenched["t"] + quenched["xi"] / 2))
    assert sent(run, FEATURE) == pytest.approx(exact, abs=1e-10)
    run = RIDGE.message_passing(values, N=600, seeds=1, steps=100)
    X, _ = drawn(run)
    spread = np.trace(np.linalg.inv(4 * X.T @ X + np.eye(600))) / 600
    ours = run[average(w[i] ** 2)][-1].mean - run[average(expect(w[i]) ** 2)][-1].mean
    assert ours == pytest.approx(spread, rel=0.01)


def test_signs_from_projections_step_by_step_by_hand():
    """Approximate message passing (Donoho, Maleki, Montanari 2009; Kabashima 2003), written out."""
    run = SIGNS.message_passing({alpha: 1, sigma: NOISE}, N=50, seeds=1, steps=12)
    X, quenched = drawn(run)
    target, squares = X @ quenched["t"] + quenched["xi"] / 2, X**2
    m, told = np.zeros(50), np.zeros(50)
    law = run.setup.system.laws[FEATURE]
    column = law.unknowns.index(law.weight.mean)
    first, *steps = (step.state.site[FEATURE][:, column] for step in run.runs[0].steps)
    assert np.abs(first).max() < 1e-5  # they have heard nothing
    m, variance, told = first, 1 - first**2, np.zeros(50)
    for ours in steps:
        strength = squares @ variance
        mean = X @ m - strength * told
        told = (target - mean) / (0.25 + strength)
        back = squares.T @ (1 / (0.25 + strength))
        m = np.tanh(X.T @ told + back * m)
        variance = 1 - m**2
        assert ours == pytest.approx(m, abs=1e-10)
    assert np.std(m) > 0.5


def test_a_perceptron_that_makes_no_error_by_hand():
    """Truncated Gaussians: the mean force on a field of mean eta and variance F beyond zero."""
    run = bayes_perceptron.problem.message_passing({alpha: 2}, N=40, seeds=1, steps=300)
    X, quenched = drawn(run)
    labels = np.sign(X @ quenched["t"])
    squares, m, variance, force = X**2, np.zeros(40), np.ones(40), np.zeros(80)
    for _ in range(2000):
        spread = squares @ variance
        mean = X @ m - spread * force
        reach = labels * mean / np.sqrt(spread)
        force = labels / np.sqrt(spread) * np.exp(-(reach**2) / 2 - log_ndtr(reach)) / np.sqrt(2 * np.pi)
        stiffness = squares.T @ (force * (force + mean / spread))
        m = (X.T @ force + stiffness * m) / (1 + stiffness)
        variance = 1 / (1 + stiffness)
    assert sent(run, FEATURE) == pytest.approx(m, abs=1e-9)
    assert sent(run, DATUM) == pytest.approx(force, abs=1e-8)
    assert run[average(w[i] ** 2)][-1].mean == pytest.approx(np.mean(m**2 + variance), abs=1e-9)


# -- several fields ---------------------------------------------------------------------------------

a, K = Sites("a", "K", "second datum")
seen, J, k = Coupling("z", between=(a, i)), Coupling("J", between=(i, i), reciprocity=1), Symbol("k", integer=True)


def of_three_fields(q, own):
    """Two kinds of data and pairs pull each state."""
    first, second = Sum(x[mu, i] * q[i], (i, 1, N)), Sum(seen[a, i] * q[i], (i, 1, N))
    pairs = Rational(3, 4) * Sum(q[i] * Sum(J[i, k] * q[k], (k, 1, N)), (i, 1, N)) / 2
    losses = Sum((first - 1) ** 2, (mu, 1, P)) / 2 + Sum((second - 2) ** 2, (a, 1, K)) / 2
    return Problem(losses - pairs + own).gibbs(1)


def test_states_that_several_fields_pull_have_the_mean_of_their_gaussian():
    """Exactly, at any size; its variance up to what finite sizes leave."""
    problem = of_three_fields(w, 2 * Sum(w[i] ** 2, (i, 1, N)))
    run = problem.message_passing({alpha: NOISE, K / N: Rational(1, 4)}, N=24, seeds=1, steps=400)
    instance = run.setup.instance(24, 0)
    matrices = {f.coupling.family.name: instance.matrix(f) for f in run.setup.system.fields if f.sender == FEATURE}
    X, Z, pairs = matrices["x"], matrices["z"], matrices["J"]
    precision = X.T @ X + Z.T @ Z - 3 * pairs / 4 + 4 * np.eye(24)
    exact = np.linalg.solve(precision, X.sum(axis=0) + 2 * Z.sum(axis=0))
    assert sent(run, FEATURE) == pytest.approx(exact, abs=1e-10)
    spread = run[average(w[i] ** 2)][-1].mean - run[average(expect(w[i]) ** 2)][-1].mean
    assert spread == pytest.approx(np.mean(np.diag(np.linalg.inv(precision))), rel=0.02)


# -- against the theory -----------------------------------------------------------------------------

z, v = sparse_means.z, sparse_means.v
STEPS = {
    "sparse": (
        sparse_means.problem,
        sparse_means.values,
        [sparse_means.shown[0], average(z[i])],
    ),
    "signs": (SIGNS, {alpha: 1, sigma: NOISE}, [average(expect(s[i]) * signs[i]), average(expect(s[i]) ** 2)]),
    "lasso": (LASSO, {alpha: 2, sigma: NOISE, beta: 1}, [average((expect(w[i]) - signs[i]) ** 2), response(w)]),
    "perceptron": (bayes_perceptron.problem, {alpha: 2}, bayes_perceptron.shown),
    "errors": (binary_perceptron.problem, binary_perceptron.values, binary_perceptron.shown),
    "magnet": (spin_glass.problem, MAGNET, spin_glass.shown),
    "three fields": (
        of_three_fields(s, -Sum(s[i], (i, 1, N)) / 2),
        {alpha: NOISE, K / N: Rational(1, 4)},
        [average(s[i]), average(expect(s[i]) ** 2)],
    ),
    "machine": (boltzmann_machine.problem, boltzmann_machine.values, boltzmann_machine.shown),
}


@pytest.mark.parametrize("name", STEPS)
def test_each_step_is_one_of_the_state_evolution(name):
    problem, values, observables = STEPS[name]
    run = problem.message_passing(values, N=1000, seeds=5, steps=6)
    compared = run.compare(problem.cavity(), observables, steps=(1, 2, 3, 5))
    assert len(compared.rows) == 4 * len(observables)
    assert compared.worst < 4


@pytest.mark.usefixtures("without_echo")
def test_without_the_echo_of_the_last_step_signs_leave_the_state_evolution():
    """Onsager's term dropped."""
    problem, values, observables = STEPS["signs"]
    evolution = problem.cavity().state_evolution(values, steps=5)
    with pytest.raises(NotConverged) as caught:  # it overshoots, and does so forever
        problem.message_passing(values, N=1000, seeds=10, steps=5)
    assert caught.value.best.compare(evolution, observables, steps=[2, 3]).worst > 6


def test_messages_of_a_magnet_settle_as_fast_as_its_stability_says():
    solution = spin_glass.problem.cavity().solve(MAGNET)
    run = spin_glass.problem.message_passing(MAGNET, N=800, seeds=4, steps=60)
    assert run.rate.mean**2 == pytest.approx(float(solution.stability), abs=0.03 + 8 * run.rate.mean * run.rate.stderr)
    damped = spin_glass.problem.message_passing(MAGNET, N=800, seeds=4, steps=200, damping=0.5)
    assert damped.converged
    for k, one in enumerate(damped[spin_glass.shown[1]][-1].samples):
        assert one == pytest.approx(run[spin_glass.shown[1]][-1].samples[k], abs=1e-9)


def test_below_the_line_of_instability_they_do_not_settle():
    """de Almeida and Thouless: beyond beta = 1.8687923 at this field."""
    values = {spin_glass.beta: 3, spin_glass.H: NOISE}
    run = spin_glass.problem.message_passing(values, N=400, seeds=3, steps=200)
    assert not run.converged
    assert min(changes[-1] for changes in run.changes) > 1e-3


def test_the_lasso_at_a_low_temperature_is_its_minimum():
    """Laplace's limit, on the same instance: the mean of the measure goes to the minimizer like the temperature."""
    cold = ConvexProblem(measured(w[i], signs[i]) + Sum(Abs(w[i]), (i, 1, N))).simulate(
        {alpha: 2, sigma: NOISE}, N=40, seeds=1
    )
    gaps = []
    for value in (100, 1000):
        run = LASSO.message_passing({alpha: 2, sigma: NOISE, beta: value}, N=40, seeds=1, steps=300)
        assert run.converged
        gaps.append(np.abs(sent(run, FEATURE) - cold.samples[0]["w"]).max())
    assert gaps[1] < 0.3 * gaps[0] < 0.03


# -- weights that are integrated --------------------------------------------------------------------

h = Sum(x[mu, i] * w[i], (i, 1, N))
LOGISTIC = ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(beta)
RAMP = Problem(Sum(Min(1, Max(0, 1 - Sum(x[mu, i] * s[i], (i, 1, N)))), (mu, 1, P))).gibbs(2)


def test_steps_of_a_logistic_loss_by_hand():
    """With a rule of Gauss and Hermite of our own at every datum, and Onsager's term as it is written."""
    run = LOGISTIC.message_passing({alpha: 2, beta: 1}, N=40, seeds=1, steps=8)
    X, _ = drawn(run)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    squares, m, variance, force = X**2, np.zeros(40), np.ones(40), np.zeros(80)
    law = run.setup.system.laws[FEATURE]
    for step in run.runs[0].steps[1:]:
        spread = squares @ variance
        mean = X @ m - spread * force
        z = mean[:, None] + np.sqrt(spread)[:, None] * nodes
        weight = weights / (1 + np.exp(-z))
        weight /= weight.sum(axis=1, keepdims=True)
        force = (weight * nodes).sum(axis=1) / np.sqrt(spread)
        told = ((weight * nodes**2).sum(axis=1) - (weight * nodes).sum(axis=1) ** 2 - 1) / spread
        stiffness = -squares.T @ told
        m = (X.T @ force + stiffness * m) / (1 + stiffness)
        variance = 1 / (1 + stiffness)
        assert step.state.site[FEATURE][:, law.unknowns.index(law.weight.mean)] == pytest.approx(m, abs=1e-5)


@pytest.mark.parametrize("name", ["logistic", "ramp"])
def test_steps_with_integrals_are_those_of_the_state_evolution(name):
    problem, values, observables = {
        "logistic": (LOGISTIC, {alpha: 2, beta: 1}, [average(w[i] ** 2), average(expect(w[i]) ** 2)]),
        "ramp": (RAMP, {alpha: 1}, [average(s[i]), average(expect(s[i]) ** 2)]),
    }[name]
    run = problem.message_passing(values, N=500, seeds=4, steps=3)
    assert run.compare(problem.cavity(), observables, steps=(1, 2, 3)).worst < 4


@pytest.mark.usefixtures("without_echo")
def test_without_the_echo_they_are_not():
    run = LOGISTIC.message_passing({alpha: 4, beta: 2}, N=500, seeds=9, steps=3)
    assert run.compare(LOGISTIC.cavity(), [average(expect(w[i]) ** 2)], steps=(2, 3)).worst > 6


def test_low_temperatures_of_a_loss_without_a_closed_sum_are_its_minimum():
    """The same instance at none: what is left is of the order of the temperature."""
    cold = ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    lowest = cold.simulate({alpha: 2}, N=30, seeds=1).samples[0]["w"]
    gaps = []
    for value in (10**4, 10**5):
        run = LOGISTIC.message_passing({alpha: 2, beta: value}, N=30, seeds=1, steps=200)
        assert run.converged
        gaps.append(np.abs(sent(run, FEATURE) - lowest).max())
    assert gaps[1] < 0.2 * gaps[0] < 1e-4


def test_a_weight_that_is_lost_is_named():
    """Between bounds nothing says yet where it is largest."""
    bounded = Problem(Sum(log(1 + exp(-h)), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2, [h >= 0]).gibbs(beta)
    with pytest.raises(NotConverged, match="too small for a number"):
        bounded.message_passing({alpha: Rational(1, 2), beta: 10**6}, N=20, seeds=1)


# -- data that are left out -------------------------------------------------------------------------


def test_data_left_out_of_a_gaussian_posterior():
    """Each datum in turn left out, exactly: the mean of its field and its spread, from one run."""
    values = {alpha: 2, sigma: NOISE, beta: 1}
    run = RIDGE.message_passing(values, N=400, seeds=1, steps=100)
    X, quenched = drawn(run)
    target = X @ quenched["t"] + quenched["xi"] / 2
    inverse = np.linalg.inv(4 * X.T @ X + np.eye(400))
    mean, spread = X @ inverse @ (4 * X.T @ target), np.einsum("pi,ij,pj->p", X, inverse, X)
    kept = 1 - 4 * spread  # Sherman and Morrison
    exact, wide = (mean - 4 * spread * target) / kept, spread / kept
    (ours,) = run.leave_one_out[h]
    (square,) = run.leave_one_out[h**2]
    scale = np.std(exact)
    assert np.sqrt(np.mean((ours - exact) ** 2)) < 0.03 * scale
    assert np.sqrt(np.mean((mean - exact) ** 2)) > 0.2 * scale  # control: with the datum
    assert square - ours**2 == pytest.approx(wide, rel=0.2)
    assert np.mean(square - ours**2) == pytest.approx(np.mean(wide), rel=0.01)
    (error,) = run.leave_one_out[sigma * xi[mu] - 2 * Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))]
    assert error == pytest.approx(quenched["xi"] / 2 - 2 * (ours - X @ quenched["t"]), abs=1e-9)
    assert [*run.leave_one_out] == [Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)), h]


def test_predictive_probabilities_by_all_configurations():
    """Signs with a logistic loss, every datum left out of all 2**12 configurations."""
    field = Sum(x[mu, i] * s[i], (i, 1, N))
    problem = Problem(Sum(log(1 + exp(-field)), (mu, 1, P))).gibbs(1)
    run = problem.message_passing({alpha: 2}, N=12, seeds=4, steps=200)
    ours, spins = run.leave_one_out[log(expect(1 / (1 + exp(-field))))], np.array([*product((-1.0, 1.0), repeat=12)])
    missed, kept = [], []
    for seed in range(4):
        logs = -np.log1p(np.exp(-spins @ drawn(run, seed)[0].T))
        for datum in range(24):
            rest = np.exp(logs.sum(axis=1) - logs[:, datum])
            exact = np.log(rest @ np.exp(logs[:, datum]) / rest.sum())
            whole = np.exp(logs.sum(axis=1))
            missed.append(ours[seed, datum] - exact)
            kept.append(np.log(whole @ np.exp(logs[:, datum]) / whole.sum()) - exact)
    assert np.std(missed) < 0.3 * np.std(kept)


def test_what_a_datum_that_is_left_out_does_not_have():
    run = RIDGE.message_passing({alpha: 2, sigma: NOISE, beta: 1}, N=20, seeds=1, steps=100)
    force = run.setup.system.weights[DATUM].mean
    for wanted, words in ((force, "left out"), (w[i], "not a quantity"), (Sum(w[i] ** 2, (i, 1, N)), "do not hear")):
        with pytest.raises(ValuesError, match=words):
            run.leave_one_out[wanted]


def test_a_prior_without_a_gaussian_part_needs_the_answer_of_the_data():
    """``exp(-|w|**3)``: the first step has no Gaussian to compare it with; the theory against sums over a grid."""
    problem = Problem(measured(w[i], signs[i]) + Sum(Abs(w[i]) ** 3, (i, 1, N))).gibbs(1)
    values = {alpha: 2, sigma: 1}
    states, z = np.linspace(-6, 6, 1001), np.linspace(-7, 7, 201)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
    width, q, overlap = 1.0, 0.5, 0.5
    for _ in range(80):
        pull, noise = 2 / (1 + width), np.sqrt(2 * (2 - 2 * overlap + q)) / (1 + width)
        power = (pull + noise * z)[:, None] * states - pull * states**2 / 2 - np.abs(states) ** 3
        weight = np.exp(power - power.max(axis=1, keepdims=True))
        mean, square = ((weight * states**k).sum(1) / weight.sum(1) for k in (1, 2))
        width = (width + np.sum((square - mean**2) * density)) / 2
        q, overlap = (q + np.sum(mean**2 * density)) / 2, (overlap + np.sum(mean * density)) / 2
    solution = problem.cavity().solve(values)
    assert float(solution[average(expect(w[i]) ** 2)]) == pytest.approx(q, rel=1e-8)
    assert float(solution[average(expect(w[i] ** 2))]) == pytest.approx(q + width, rel=1e-8)
    run = problem.message_passing(values, N=300, seeds=6, steps=100)
    last = run[average(expect(w[i]) ** 2)][-1]
    assert run.converged
    assert abs(last.mean - q) < 4 * last.stderr


# -- what it refuses --------------------------------------------------------------------------------

@pytest.mark.parametrize(
    ("problem", "values", "words"),
    [
        (Problem(Sum(Heaviside(-Sum(x[mu, i] * s[i], (i, 1, N))), (mu, 1, P))), {alpha: 1}, "not passed for the low"),
    ],
)
def test_what_is_refused_before_an_instance_is_drawn(problem, values, words):
    with pytest.raises(UnsupportedLaw, match=words):
        problem.message_passing(values, N=10**9)


def test_what_messages_at_a_temperature_do_not_have():
    run = spin_glass.problem.message_passing(MAGNET, N=20, seeds=1, steps=5)
    for name in ("simulation", "debiased"):
        with pytest.raises(UnsupportedLaw, match="at a temperature"):
            getattr(run, name)
    with pytest.raises(UnsupportedLaw, match="no data"):
        run.leave_one_out  # noqa: B018
    with pytest.raises(ValuesError, match="depends on"):
        run[spin_glass.s[i]]
    (fields,) = run.cavity_fields.values()
    assert fields.shape == (1, 20)
    assert "residuals" in str(run)
