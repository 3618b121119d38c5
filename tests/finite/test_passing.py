"""Message passing: fixed points, steps, cavity fields and debiased estimates, each against another way to it."""

from importlib import import_module

import numpy as np
import pytest
from declarations_simulated import x
from families_of_messages import FAMILIES, SIGNS, UNIT, data, h, huber, noise, t, u, w, y
from scipy.optimize import minimize
from sympy import Abs, Max, Rational, Sum, exp, log

from symcavity import Ball, ConvexProblem, Coupling, Ellipsoid, N, P, Quenched, alpha, average, i, mu, response
from symcavity.derivations import soft_manifold
from symcavity.errors import DeclarationError, NotConverged, UnsupportedLaw, ValuesError
from symcavity.finite.insertion import extended
from symcavity.finite.minimum import solve_instance
from symcavity.finite.passed import Work, pass_one
from symcavity.finite.passing import MessagePassing
from symcavity.finite.setup import Setup, as_system, prepare
from symcavity.model.kinds import DATUM

STEPS = (1, 2, 3, 5, 10)
WITH_STABILITY = ("ridge", "squared hinge", "logistic", "bias", "variances", "portfolio", "ecology", "network", "balls")
RUNS = {}


def run_of(name, size=100, seeds=4, steps=90):
    problem, values, _ = FAMILIES[name]
    key = name, size, seeds, steps
    if key not in RUNS:
        RUNS[key] = problem.message_passing(values, N=size, seeds=seeds, steps=steps)
    return RUNS[key]


@pytest.mark.parametrize("name", FAMILIES)
def test_a_fixed_point_solves_the_declared_problem(name):
    """Against other methods on the same instances: Newton's method, cutting planes, the central path."""
    problem, values, observable = FAMILIES[name]
    run = run_of(name)
    settled = [one for one in run.runs if one.residuals is not None and one.residuals.worst < 1e-9]
    assert len(settled) >= 3
    ours = run.simulation
    theirs = problem.simulate(values, N=run.N, seeds=[one.seed for one in settled])
    theirs = dict(zip(theirs.seeds, theirs[observable].samples, strict=True))
    ours = dict(zip(ours[observable].seeds, ours[observable].samples, strict=True))
    for one in settled:
        assert ours[one.seed] == pytest.approx(theirs[one.seed], abs=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_each_step_is_one_of_the_closed_equations(name):
    """By z-scores, and a bias of order 1/N."""
    problem, _, observable = FAMILIES[name]
    run = run_of(name)
    evolution = run.evolution(problem.cavity(), steps=max(STEPS))
    for k in STEPS:
        measured, expected = run[observable][k], evolution[observable][k]
        allowed = 4 * measured.stderr + 4 / run.N * max(1, abs(expected))
        assert abs(measured.mean - expected) < allowed, (k, measured, expected)


def test_the_squared_hinge_step_by_step():
    """Six numbers of an independent computation."""
    problem, values, observable = FAMILIES["squared hinge"]
    evolution = problem.cavity().state_evolution(values, steps=11)
    known = [0.14876, 0.23726, 0.27710, 0.29241, 0.29907, 0.29960]
    assert evolution[observable][[1, 2, 3, 4, 6, 11]] == pytest.approx(known, abs=6e-6)
    assert evolution["q_w"] == pytest.approx(evolution[observable])
    run = problem.message_passing(values, N=1000, seeds=5, steps=11)
    assert run.compare(evolution, [observable, response(w), average(w[i] > 0)]).worst < 4


@pytest.mark.parametrize("name", WITH_STABILITY)
def test_it_converges_as_fast_as_the_stability_says(name):
    problem, values, _ = FAMILIES[name]
    rate = run_of(name, size=300, seeds=4, steps=40).rate
    expected = float(problem.cavity().solve(values).stability)
    assert rate.mean**2 == pytest.approx(expected, abs=0.04 + 8 * rate.mean * rate.stderr)


@pytest.mark.parametrize("name", ["ridge", "squared hinge", "ecology", "network", "three kinds"])
def test_damping_slows_the_pace_as_the_theory_says_and_moves_no_line(name):
    """One kind of site: damping + (1 - damping) sqrt(Lambda); two kinds: m - damping = (1 - damping) sqrt(m r)."""
    problem, values, _ = FAMILIES[name]
    solution = problem.cavity().solve(values)
    run = problem.message_passing(values, N=300, seeds=3, steps=100, damping=0.6)
    assert run.rate.mean == pytest.approx(solution.pace(0.6), abs=0.008 + 4 * run.rate.stderr)
    assert "damping 0.6" in str(run)
    assert "pace" in str(run)
    r = float(solution.stability) ** 0.5
    if name != "three kinds":
        bipartite = ((0.4 * r**0.5 + (0.16 * r + 2.4) ** 0.5) / 2) ** 2
        expected = 0.6 + 0.4 * r if name in ("ecology", "network") else bipartite
        assert solution.pace(0.6) == pytest.approx(expected, rel=1e-9)
        assert solution.pace() == pytest.approx(r, rel=1e-9)


@pytest.mark.usefixtures("without_echo")
def test_without_the_echo_of_the_last_step_it_is_wrong():
    """A negative control: the own last emission left in the field, or that of another step."""
    problem, values, observable = FAMILIES["squared hinge"]
    evolution = problem.cavity().state_evolution(values, steps=3)
    run = problem.message_passing(values, N=400, seeds=5, steps=3)
    assert run.compare(evolution, [observable], steps=[2, 3]).worst > 6


# -- what is read off -------------------------------------------------------------------------------


def couplings_of(run, seed=0):
    return run.setup.instance(run.N, seed).couplings[0]


def logistic_fit(X, signs):
    def value(v):
        return v @ v / 2 + np.sum(np.logaddexp(0, -signs * (X @ v)))

    def slope(v):
        return v - X.T @ (signs / (1 + np.exp(signs * (X @ v))))

    return minimize(value, np.zeros(X.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9}).x


def refitted_logistic(size):
    """Errors of the fields without a datum, by refitting, relative to what leaving it out changes."""
    problem, values, _ = FAMILIES["logistic"]
    run = problem.message_passing(values, N=size, seeds=1, steps=30)
    X, signs = couplings_of(run), run.setup.instance(size, 0).quenched[next(iter(run.setup.values.quenched))]
    ours = run.leave_one_out[Sum(x[mu, i] * w[i], (i, 1, N))][0]
    some = range(0, 2 * size, 2 * size // 12)
    fitted = X @ logistic_fit(X, signs)
    without = {m: X[m] @ logistic_fit(np.delete(X, m, 0), np.delete(signs, m)) for m in some}
    wrong = np.array([ours[m] - without[m] for m in some])
    change = np.array([fitted[m] - without[m] for m in some])
    return np.sqrt(np.mean(wrong**2) / np.mean(change**2))


def test_leaving_out_a_datum_is_what_refitting_without_it_gives():
    small, large = refitted_logistic(30), refitted_logistic(120)
    assert small < 0.2
    assert large < 0.1


def test_leave_one_out_errors_of_ridge_regression():
    """Allen's formula, (y - h)/(1 - H), is exact at any size."""
    problem, values, _ = FAMILIES["ridge"]
    for size, bound in ((100, 0.08), (800, 0.03)):
        run = problem.message_passing(values, N=size, seeds=1, steps=60)
        instance = run.setup.instance(size, 0)
        quenched = {str(q): v for q, v in instance.quenched.items()}
        X = couplings_of(run)
        target = X @ quenched["t"] + quenched["noise"]
        hat = X @ np.linalg.solve(X.T @ X + np.eye(size) / 2, X.T)
        exact = (target - hat @ target) / (1 - np.diag(hat))
        ours = target - run.leave_one_out[Sum(x[mu, i] * w[i], (i, 1, N))][0]
        error = run.leave_one_out[Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))][0]
        assert ours == pytest.approx(quenched["noise"] - error)
        twice = run.leave_one_out[2 * noise[mu] - Sum(2 * x[mu, i] * (w[i] - t[i]), (i, 1, N))]
        assert twice[0] == pytest.approx(2 * ours)
        assert np.linalg.norm(ours - exact) < bound * np.linalg.norm(exact)


class OneMore(Setup):
    """Instances with one more datum, the last."""

    def instance(self, features, seed):
        return extended(self, super().instance(features, seed), DATUM)[0]


@pytest.mark.parametrize("name", ["lasso", "hinge", "bias", "clusters", "labels of a teacher", "three kinds", "balls"])
def test_leaving_out_the_last_datum_is_never_having_had_it(name):
    """Fits without it, by exact methods; sets and vectors too. The error is a share of what leaving it out changes."""
    problem, values, _ = FAMILIES[name]
    setup = prepare(as_system(problem), values)
    more, seeds = OneMore(setup.written, setup.values), range(12)
    work = Work(more, 150)
    run = MessagePassing(work, [pass_one(work, (60, seed)) for seed in seeds])
    wrong, change = [], []
    assert all(found.shape[0] == len(run.settled) for found in run.leave_one_out.values())
    for n, seed in enumerate(one.seed for one in run.settled):
        base, big = setup.instance(60, seed), more.instance(60, seed)
        state = solve_instance(setup.system, base).state
        fields = [f for f in setup.system.laws[DATUM].fields if f.states()]
        for f in fields:
            column = base.system.column(f)
            without = big.matrix(f)[-1] @ base.emissions(f.sender, state)[:, column]
            full = big.matrix(f)[-1] @ big.emissions(f.sender, run.runs[seed].steps[-1].state)[:, column]
            wrong.append(run.leave_one_out[f.as_sum][n, -1] - without)
            change.append(full - without)
    assert len(wrong) >= 8
    assert np.linalg.norm(wrong) < 0.3 * np.linalg.norm(change)


shifted = Coupling("shifted", mean=3 * y[mu] * t[i] / N)
PENALISED = {
    "clusters": (y[mu] - Sum(shifted[mu, i] * w[i], (i, 1, N))) ** 2 / 2,
    "ridge": (h - u - noise[mu]) ** 2 / 2,
    "logistic": log(1 + exp(-y[mu] * h)),
    "squared hinge": Max(0, 1 - y[mu] * h) ** 2,
    "huber": huber(h - u - noise[mu]),
    "absolute deviations": Abs(h - u - noise[mu]),
}


@pytest.mark.parametrize("name", PENALISED)
def test_a_debiased_weight_is_that_of_a_fit_which_does_not_penalise_it(name):
    """Refitted by exact methods, without the penalty of one weight; the rest of its shift is noise of order 1/N."""
    loss, strength = PENALISED[name], Quenched("strength", i)
    problem = ConvexProblem(data(loss) + Sum(strength[i] * w[i] ** 2, (i, 1, N)) / 2)
    values = {alpha: 3, **{q: SIGNS for q in (y, t, noise) if loss.has(q) or (name, q) == ("clusters", t)}}
    values |= {noise: UNIT} if name == "absolute deviations" else {}
    size = 240 if name == "absolute deviations" else 60  # half, a fifth and a tenth of the shift at 60, 240 and 960
    wrong, change, damping = [], [], 0.5 * (name in ("clusters", "absolute deviations"))
    run = problem.message_passing({**values, strength: [1.0] * size}, N=size, seeds=2, steps=300, damping=damping)
    for k in range(5):
        free = [1.0] * size
        free[k] = 0.0
        refitted = problem.simulate({**values, strength: free}, N=size, seeds=2)
        for n in range(2):
            exact = refitted.samples[n]["w"][k]
            wrong.append(run.debiased[w[i]][0][n, k] - exact)
            change.append(run.simulation.samples[n]["w"][k] - exact)
    assert np.linalg.norm(wrong) < 0.3 * np.linalg.norm(change)


def test_couplings_with_a_mean_are_read_as_they_were_declared():
    """Allen's formula for the sum over couplings with their mean, and what is refused."""
    size, errors = 400, Sum((y[mu] - (total := Sum(shifted[mu, i] * w[i], (i, 1, N)))) ** 2, (mu, 1, P))
    problem = ConvexProblem(errors / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)
    run = problem.message_passing({alpha: 2, y: SIGNS, t: SIGNS}, N=size, seeds=1, steps=300, damping=0.5)
    instance = run.setup.instance(size, 0)
    quenched = {str(q): v for q, v in instance.quenched.items()}
    signs = quenched["y"]
    X = instance.couplings[0] + 3 * np.outer(signs, quenched["t"]) / size
    hat = X @ np.linalg.solve(X.T @ X + np.eye(size), X.T)
    exact = (signs - hat @ signs) / (1 - np.diag(hat))
    assert total in run.leave_one_out
    for ours in (signs - run.leave_one_out[total][0], run.leave_one_out[y[mu] - total][0]):
        assert np.linalg.norm(ours - exact) < 0.05 * np.linalg.norm(exact)
    other = Sum(x[mu, i] * w[i], (i, 1, N))
    for wrong in (other, w[i], next(q for q in problem.kkt().laws[DATUM].unknowns)):
        with pytest.raises((ValuesError, DeclarationError)):
            run.leave_one_out[wrong]


def test_debiased_estimates_of_the_lasso():
    """The formula of Javanmard and Montanari; and noise of the stated variance around the teacher."""
    problem, values, _ = FAMILIES["lasso"]
    scores, size = [], 400
    run = problem.message_passing(values, N=size, seeds=4, steps=80)
    (estimate, variance) = run.debiased[w[i]]
    sim = run.simulation
    for k in range(4):
        instance = run.setup.instance(size, k)
        quenched = {str(q): v for q, v in instance.quenched.items()}
        X, fit = couplings_of(run, k), sim.samples[k]["w"]
        rest = X @ quenched["t"] + quenched["noise"] - X @ fit
        known = fit + X.T @ rest / (1 - np.count_nonzero(np.abs(fit) > 1e-9) / size)
        assert np.sqrt(np.mean((estimate[k] - known) ** 2)) < 0.08 * np.sqrt(np.mean((known - fit) ** 2))
        scores.append((estimate[k] - quenched["t"]) / np.sqrt(variance[k]))
    scores = np.concatenate(scores)
    assert abs(scores.mean()) < 4 / np.sqrt(scores.size)
    assert scores.std() == pytest.approx(1, abs=4 / np.sqrt(2 * scores.size) + 2 / size)
    assert np.mean(np.abs(scores) < 1.96) == pytest.approx(0.95, abs=4 * np.sqrt(0.05 * 0.95 / scores.size))


# -- what it refuses --------------------------------------------------------------------------------


def test_above_one_it_says_so_and_keeps_what_it_has():
    """Species that compete too strongly: the stability is above one, and messages never settle."""
    problem, values, _ = FAMILIES["ecology"]
    sigma = next(s for s in values if str(s) == "sigma")
    with pytest.raises(NotConverged, match="does not converge") as caught:
        problem.message_passing({**values, sigma: 2}, N=200, seeds=3, steps=40)
    assert len(caught.value.best.runs) == 3
    assert caught.value.best.diverged


def test_bad_requests_are_refused_before_long_work():
    problem, values, _ = FAMILIES["squared hinge"]
    theory = problem.cavity()
    for steps in (0, -1, 2.5, True):
        with pytest.raises(ValuesError, match="steps"):
            problem.message_passing(values, N=10**9, steps=steps)
        with pytest.raises(ValuesError, match="steps"):
            theory.state_evolution(values, steps=steps)
    with pytest.raises(ValuesError):
        problem.message_passing({alpha: 2}, N=10**9)
    with pytest.raises(UnsupportedLaw, match="naive"):
        problem.naive().state_evolution(values)
    with pytest.raises(UnsupportedLaw, match="no data"):
        run_of("ecology").leave_one_out  # noqa: B018
    with pytest.raises(UnsupportedLaw, match="3 fields"):
        run_of("balls").debiased  # noqa: B018
    with pytest.raises(ValuesError, match="nothing"):
        theory.state_evolution(values, steps=2)["nothing"]


def test_workers_do_the_same():
    problem, values, observable = FAMILIES["squared hinge"]
    alone = problem.message_passing(values, N=50, seeds=2, steps=5)
    others = problem.message_passing(values, N=50, seeds=2, steps=5, executor=2)
    assert alone[observable][5].samples == pytest.approx(others[observable][5].samples, abs=0)


def test_damping_settles_what_overshoots():
    """A mean and its multiplier chase each other where steps are whole; the fixed point is that of exact methods."""
    m = import_module("symcavity.derivations.gaussian_clusters")
    problem, values, shown, theory = m.problem, m.values, m.shown[0], m.problem.cavity()
    with pytest.raises(NotConverged):  # though the stability is below one, as is the state evolution
        problem.message_passing(values, N=80, seeds=2, steps=20)
    with pytest.raises(NotConverged):
        theory.state_evolution(values, steps=20)
    run = problem.message_passing(values, N=80, seeds=2, steps=400, damping=0.5)
    assert run.converged
    exact = problem.simulate(values, N=80, seeds=2)[shown].samples
    assert run[shown][-1].samples == pytest.approx(exact, rel=1e-6)
    left, right = run.figure(shown, theory).axes
    assert left.lines[0].get_ydata()[0] == pytest.approx(float(theory.solve(values | {alpha: Rational(98, 80)})[shown]))
    pace = right.lines[-1].get_ydata()
    at = theory.solve(values | {alpha: Rational(98, 80)})
    assert pace[9] / pace[8] == pytest.approx(at.pace(0.5))
    assert at.pace() < at.pace(0.5) < 1
    with pytest.raises(UnsupportedLaw, match="damping"):
        run.evolution(theory)
    with pytest.raises(ValuesError, match="damping"):
        problem.message_passing(values, N=80, seeds=2, damping=1)


def test_a_label_that_is_the_sign_of_another_field():
    """Its law has no slope at the value zero, where sites begin."""
    m = import_module("symcavity.derivations.sign_teacher")
    run = m.problem.message_passing(m.values, N=100, seeds=1, steps=250)
    exact = m.problem.simulate(m.values, N=100, seeds=1)[m.shown[1]].samples
    assert run[m.shown[1]][-1].samples == pytest.approx(exact, rel=1e-6)


def test_figures():
    pytest.importorskip("matplotlib")
    from symcavity.finite.labels import label_tex
    from symcavity.finite.plots import plot_convergence

    problem, values, observable = FAMILIES["squared hinge"]
    theory, run = problem.cavity(), run_of("squared hinge")
    axes = run.plot(observable, theory)
    assert axes.lines[0].get_ydata()[:2] == pytest.approx([0, 0.14876], abs=1e-5)
    assert axes.get_ylabel() == run.figure(observable, theory).axes[0].get_ylabel() == f"${label_tex(observable)}$"
    stability = theory.solve(values).stability
    axes = plot_convergence([(stability, run)])
    assert axes.lines[0].get_xdata()[0] == pytest.approx(float(stability))
    assert axes.lines[0].get_ydata()[0] == pytest.approx(float(stability), abs=0.06)
    left, right = run.figure(observable, theory).axes
    assert list(left.lines[0].get_ydata()) == pytest.approx(list(axes_of_steps(run, observable, theory)))
    pace = right.lines[-1].get_ydata()
    assert pace[4] / pace[2] == pytest.approx(float(stability))
    moves = right.lines[0].get_ydata()
    assert (moves[40] / moves[10]) ** (1 / 30) == pytest.approx(float(stability) ** 0.5, abs=0.06)


def axes_of_steps(run, observable, theory):
    return run.evolution(theory)[observable]


def test_at_the_terminal(capsys):
    from symcavity.cli import main

    assert main(["messages", "soft_margin", "alpha=2", "C=3/4", "--N", "60", "--seeds", "3", "--steps", "5"]) == 0
    out = capsys.readouterr().out
    assert "Message passing on 3 instances with N = 60, P = 120" in out
    assert "average(w[i]**2) after 5 steps" in out
    assert "stability of the theory 0.32" in out
    assert main(["messages", "gardner", "alpha=0.5", "--N", "60,80"]) == 2
    assert "one number of features" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [Ellipsoid(["1/2", "1/4"]), Ball(2, "1/2")])
def test_state_evolution_of_sets_with_slack(shape):
    """Steps where little is heard: sampled averages far from the tip, and those of a ball by integrals."""
    values = {**soft_manifold.values, soft_manifold.g: shape}
    run = soft_manifold.problem.message_passing(values, N=150, seeds=8, steps=3)
    assert run.compare(soft_manifold.problem.cavity(), soft_manifold.shown, steps=[1, 2, 3]).worst < 4.5


@pytest.mark.parametrize("name", ["box_detection", "minority", "robust_regression"])
def test_sites_without_a_penalty_begin_as_the_state_evolution_does(name):
    """They keep still at first: their states are zero, what is given is not, and their response has its own sign."""
    module = import_module(f"symcavity.derivations.{name}")
    run = module.problem.message_passing(module.values, N=500, seeds=6, steps=4)
    assert run.compare(module.problem.cavity(), module.shown[:1], steps=[1, 2, 3]).worst < 4
    evolution = module.problem.cavity().state_evolution(module.values, steps=1)
    first = run[module.shown[0]][0]
    assert abs(evolution[module.shown[0]][0] - first.mean) < 4 * first.stderr + 1e-6


def test_only_the_steps_of_a_table_are_read_and_instances_are_drawn_once(monkeypatch):
    """A table of seven steps cost as much as all steps; the negative control is an observable after every step."""
    module = import_module("symcavity.finite.passed_messages")
    problem, values, observable = FAMILIES["ridge"]
    run = problem.message_passing(values, N=30, seeds=2, steps=20)
    read, drawn = [], []

    class Counted(module.Reader):
        def __call__(self, key):
            read.append(key)
            return super().__call__(key)

    of_seed = type(run.setup).instance
    monkeypatch.setattr(module, "Reader", Counted)
    monkeypatch.setattr(type(run.setup), "instance", lambda *args: drawn.append(args[-1]) or of_seed(*args))
    shown = run._told_at()[1]
    rows = [min(k, len(one.steps) - 1) for one in run.runs for k in (0, 1, 2, 3, 5, 10, 20)]
    assert len(read) <= len(rows) * len(shown)
    assert sorted(drawn) == sorted(one.seed for one in run.runs)
    read.clear()
    whole = run[observable]
    assert len(whole) == 21
    assert len(read) >= sum(len(one.steps) - 7 for one in run.runs)
    again = problem.message_passing(values, N=30, seeds=2, steps=20)
    assert [e.mean for e in whole] == [e.mean for e in again[observable]]
