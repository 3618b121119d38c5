"""Continuous time: derived with integrals, run by Euler's rule at two steps, and held against spectra and instances."""

import numpy as np
import pytest
from sympy import Derivative, Eq, Rational, S, Sum, Symbol, symbols, tanh

from symcavity import (
    Coupling,
    DeclarationError,
    N,
    Noise,
    NotConverged,
    P,
    Quenched,
    System,
    Time,
    UnsupportedLaw,
    ValuesError,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.method import respond
from symcavity.sites import protocol
from symcavity.witness.judge import judge

t, s, j = Time("t"), Time("s"), Symbol("j")
g, D, gamma = symbols("g D gamma", positive=True)
r = Symbol("r", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
START = [Eq(x[i, 0], a[i])]
NETWORK = System([Eq(Derivative(x[i, t], t), -x[i, t] + Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)))], initial=START)
LINEAR = System([Eq(Derivative(x[i, t], t), -x[i, t] + Sum(J[i, j] * x[j, t], (j, 1, N)) + xi[i, t])], initial=START)

X, w, v = Coupling("x"), Variable("w", i, over=t), Variable("v", mu, over=t)
FLOW = System(
    [
        Eq(Derivative(w[i, t], t), -gamma * w[i, t] - Sum(X[mu, i] * v[mu, t], (mu, 1, P))),
        Eq(v[mu, t], Sum(X[mu, i] * (w[i, t] - a[i]), (i, 1, N))),
    ],
    initial=[Eq(w[i, 0], 0)],
)
SIZE = average(x[i, t] ** 2)


def semicircle(count=20000):
    """Eigenvalues of a symmetric random matrix, with their weights."""
    k = np.cos((np.arange(count) + 0.5) / count * np.pi)
    return 2 * k, (1 - k**2) / (1 - k**2).sum()


def test_symmetric_couplings_with_noise_are_their_spectrum():
    values = {g: "1/2", r: 1, D: "1/5", a: HALF}
    run = LINEAR.cavity().evolve(values, until=3, step="1/20")
    spectrum, weights = semicircle()
    rate = spectrum / 2 - 1
    known = [weights @ (np.exp(2 * rate * k) + 0.2 * np.expm1(2 * rate * k) / (2 * rate)) for k in run.times]
    gap = np.abs(run[SIZE] - known)
    assert run.method == "exact"
    assert gap.max() < 2e-4
    assert gap.max() < run.errors[SIZE].max() / 10  # which is that of the finer scheme
    assert run[response(x[i, t], s)][20, 0] == pytest.approx(weights @ np.exp(rate), abs=2e-4)


def test_symmetric_couplings_with_white_noise_obey_the_fluctuation_dissipation_theorem():
    """R = -(dC/dtau)/T at equilibrium, where the noise has the variance 2 T."""
    T = 0.3
    run = LINEAR.cavity().evolve({g: "2/5", r: 1, D: "3/5", a: HALF}, until=8, step="1/10")
    C, R = run[average(x[i, t] * x[i, s])], run[response(x[i, t], s)]
    late = slice(-14, -6)
    slope = (C[-4, -13:-5] - C[-4, -15:-7]) / 0.2  # dC(t, s)/ds
    assert np.allclose(R[-4, late], slope / T, rtol=4e-3)


def test_gradient_flow_is_the_spectrum_of_the_data():
    """Data answer at once: their responses are delta functions, and more; the limit is the theory at rest."""
    values = {alpha: 2, gamma: "1/2", a: HALF}
    run = FLOW.cavity().evolve(values, until=3, step="1/20")
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1600, 800)) / np.sqrt(800)
    lam = np.linalg.eigvalsh(data.T @ data)
    left = lam / (lam + 0.5)
    known = [np.mean(left**2 * (1 - np.exp(-(lam + 0.5) * k)) ** 2) for k in (1, 3)]
    assert run[average(w[i, t] ** 2)][[20, 60]] == pytest.approx(known, rel=4e-3)
    answers = run[response(v[mu, t], s)]
    assert answers[5, 5] == pytest.approx(2 * 40 - 20)  # a delta function has no value: one over the step


def test_a_network_against_instances():
    values = {g: "6/5", r: "1/2", a: HALF}
    run = NETWORK.cavity().evolve(values, until=3, step="1/4", paths=6000, seed=1)
    sim = NETWORK.simulate(values, N=400, seeds=10, until=3, step="1/4")
    comparison = run.compare(sim, [average(tanh(x[i, t]) * tanh(x[i, s])), SIZE])
    assert all(row.rms < 2.5 for row in comparison), str(comparison)
    assert run.times[-1] == sim.times[-1] == 3
    with pytest.raises(ValuesError, match="steps of 1/4, 1/8"):
        run.compare(NETWORK.simulate(values, N=50, seeds=2, until=3, step="1/2"), [SIZE])


def test_paths_that_swing_up_at_one_step_only_are_refused():
    """A stiff force far from rest: few sites are there, and their squares would be all that averages show."""
    y = Variable("y", i, over=t)
    force = -y[i, t] - x[i, t] - x[i, t] ** 3 + Sum(J[i, j] * x[j, t], (j, 1, N))
    stiff = System(
        [Eq(Derivative(x[i, t], t), y[i, t]), Eq(Derivative(y[i, t], t), force)],
        initial=[Eq(x[i, 0], a[i]), Eq(y[i, 0], 0)],
    ).cavity()
    values = {g: 1, r: 1, a: {0: "999/1000", "7/2": "1/1000"}}
    with pytest.raises(NotConverged, match="some paths of"):
        stiff.evolve(values, until=3, step="1/5", paths=2000, seed=1)
    run = stiff.evolve(values, until=1, step="1/20", paths=1000, seed=1)
    assert run.errors[SIZE].max() < 0.05


@pytest.mark.parametrize("system", [LINEAR, FLOW])
def test_every_claim_is_checked_and_holds(system):
    rows = list(system.cavity().derivation.verify(dps=15))
    assert all(row.ok for row in rows)
    assert all(row.checked for row in rows if row.step.claims)


def test_the_record_reads_as_integrals():
    derivation = NETWORK.cavity().derivation
    assert "∫[0..t] F₀₀(t, s)" in derivation.to_text()
    assert "\\int_{0}^{t}" in derivation.to_latex()
    assert "gives the rates at that time" in " ".join(derivation.to_text().split())
    assert "Integral(" in str(NETWORK.cavity())


def failures(system, *rules):
    from symcavity.face import BipartiteSystem

    fresh = BipartiteSystem(list(system.typed[0]), initial=system.initial)
    steps = [step for step in fresh.cavity().derivation if step.rule in rules]
    return {step.key for step in steps if not all(one.ok for one in judge(step, 15))}


def test_an_integral_without_its_element_is_noticed(monkeypatch):
    right = protocol.past
    monkeypatch.setattr(protocol, "past", lambda *args: right(*args[:4], 0))
    assert "feature.effective_law" in failures(FLOW, "effective_law")


def test_an_integral_over_the_future_is_noticed(monkeypatch):
    right = respond.past
    monkeypatch.setattr(respond, "past", lambda body, s, low, t, delay: right(body, s, low, t + 1, delay))
    assert "feature.causality" in failures(FLOW, "causality")


def test_a_delta_function_that_is_left_out_is_noticed(monkeypatch):
    from symcavity.sites import causal

    monkeypatch.setattr(causal, "at_once", lambda *_, **_how: S.Zero)
    assert "feature.response" in failures(NETWORK, "tangent")


def test_what_cannot_be_run_is_refused_before_any_work():
    theory, values = NETWORK.cavity(), {g: 1, r: 0, a: HALF}
    with pytest.raises(ValuesError, match="step is not given"):
        theory.evolve(values, until=3)
    with pytest.raises(ValuesError, match="whole number of steps"):
        theory.evolve(values, until=3, step="2/7")
    with pytest.raises(ValuesError, match="the scheme is unstable"):
        theory.evolve(values, until=6, step=3)
    with pytest.raises(ValuesError, match="the scheme is unstable"):
        NETWORK.simulate(values, N=50, until=6, step=3)
    with pytest.raises(ValuesError, match="at most 2500 steps"):
        theory.evolve(values, until=100, step="1/100")


@pytest.mark.parametrize(
    ("equation", "error", "said"),
    [
        (Eq(Derivative(x[i, t], t, 2), Sum(J[i, j] * x[j, t], (j, 1, N)) - x[i, t]), UnsupportedLaw, "the first deriv"),
        (Eq(x[i, t] * Derivative(x[i, t], t), Sum(J[i, j] * x[j, t], (j, 1, N))), UnsupportedLaw, "keeps still"),
        (Eq(Derivative(x[i, t] ** 2, t), Sum(J[i, j] * x[j, t], (j, 1, N))), UnsupportedLaw, "of one state"),
        (Eq(Derivative(x[i, t], t), Sum(J[i, j] * x[j, t - 1], (j, 1, N))), DeclarationError, "states have rates"),
    ],
)
def test_what_is_no_rate_of_a_state_is_refused(equation, error, said):
    with pytest.raises(error, match=said):
        System([equation], initial=START)


@pytest.mark.parametrize(
    "spelled",
    [
        lambda rate, rest: Eq(gamma * rate, -x[i, t] + rest),
        lambda rate, rest: Eq(gamma * rate + x[i, t], rest),
        lambda rate, rest: Eq(rest, x[i, t] + gamma * rate),
        lambda _rate, rest: Eq(x[i, t].diff(t), (-x[i, t] + rest) / gamma),
    ],
)
def test_an_equation_is_solved_for_its_rate(spelled):
    """A time constant may stand before the derivative, as people write it."""
    rest = Sum(J[i, j] * x[j, t], (j, 1, N))
    known = System([Eq(Derivative(x[i, t], t), (rest - x[i, t]) / gamma)], initial=START)
    system = System([spelled(Derivative(x[i, t], t), rest)], initial=START)
    values, when = {g: "1/2", r: 1, gamma: 2, a: HALF}, {"until": 1, "step": "1/4"}
    assert list(system.cavity().evolve(values, **when)[SIZE]) == list(known.cavity().evolve(values, **when)[SIZE])
    small = {"N": 20, "seeds": 2, **when}
    assert np.allclose(system.simulate(values, **small)[SIZE].mean, known.simulate(values, **small)[SIZE].mean)
    assert not system.cavity().derivation.verify(15).failed


def test_a_time_constant_of_zero_is_refused():
    one, tau = Sum(J[i, j] * x[j, t], (j, 1, N)), Quenched("tau", i)
    system = System([Eq(tau[i] * Derivative(x[i, t], t), one - x[i, t])], initial=START)
    values = {g: 1, r: 0, a: HALF, tau: {0: "1/2", 1: "1/2"}}
    with pytest.raises(ValuesError, match=r"divides by zero at tau\[i\] = 0"):
        system.cavity().evolve(values, until=1, step="1/4")
    with pytest.raises(ValuesError, match=r"divides by zero at tau\[i\] = 0"):
        system.simulate(values, N=20, until=1, step="1/4")


def test_a_missing_beginning_and_noise_in_observables_are_refused():
    with pytest.raises(DeclarationError, match="is missing"):
        System([NETWORK.typed[0][0]])
    run = LINEAR.cavity().evolve({g: 0, r: 0, D: 1, a: HALF}, until=1, step="1/10")
    with pytest.raises(UnsupportedLaw, match="white noise"):
        run[average(x[i, t] * xi[i, t])]
    assert run[SIZE][-1] == pytest.approx(np.exp(-2) + (1 - np.exp(-2)) / 2, abs=3e-3)
