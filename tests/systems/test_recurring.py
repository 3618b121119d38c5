"""Stationary states of sites that hear themselves: in closed form where all is linear, else sampled around a ring."""

import numpy as np
import pytest
from scipy.linalg import expm, solve_continuous_lyapunov
from sympy import Derivative, Eq, Rational, Sum, Symbol, symbols, tanh
from sympy.stats import Normal, Uniform

from symcavity import (
    Coupling,
    DeclarationError,
    Global,
    N,
    Noise,
    NotConverged,
    Quenched,
    System,
    Time,
    UnsupportedLaw,
    ValuesError,
    Variable,
    average,
    i,
    response,
)
from symcavity.evaluate.moving import ring
from symcavity.evaluate.moving.two_sites import TwoSites

t, s, j = Time("t"), Time("s"), Symbol("j")
g, D = symbols("g D", positive=True)
r = Symbol("r", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
LAG, ANSWER = average(x[i, t] * x[i, s]), response(x[i, t], s)
BEGIN = Normal("a", 0, 1)


def network(phi, force=lambda u: -u, more=0):
    field = Sum(J[i, j] * phi(x[j, t]), (j, 1, N))
    return System([Eq(Derivative(x[i, t], t), force(x[i, t]) + field + more)], initial=[Eq(x[i, 0], a[i])])


def couplings(size, gain, reciprocity, seed):
    entries = np.random.default_rng(seed).standard_normal((size, size)) * gain / np.sqrt(size)
    up, down = np.sqrt(1 + reciprocity), np.sqrt(1 - reciprocity)
    return (up + down) / 2 * entries + (up - down) / 2 * entries.T


LINEAR = network(lambda u: u, more=xi[i, t]).cavity()
STEPS = System(
    [Eq(x[i, t + 1], x[i, t] / 2 + Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)) / 2 + xi[i, t])],
    initial=[Eq(x[i, 0], a[i])],
)
IN_STEPS = {g: "3/2", r: "1/2", D: "1/2", a: BEGIN}


@pytest.fixture(scope="module")
def in_steps():
    return STEPS.cavity().stationary(IN_STEPS, until=40, paths=2000, seed=2)


# -- linear networks ------------------------------------------------------------------------------------------------


def test_symmetric_couplings_are_their_spectrum():
    rest = LINEAR.stationary({g: "2/5", r: 1, D: "3/5"})
    angle = (np.arange(4000) + 0.5) / 4000 * np.pi
    rates, weights = 1 - 0.8 * np.cos(angle), np.sin(angle) ** 2 / (np.sin(angle) ** 2).sum()
    for lag in (0, 1, 6):
        assert rest[LAG](lag) == pytest.approx(weights @ (0.3 / rates * np.exp(-rates * lag)), rel=1e-12)
        assert rest[ANSWER](lag) == pytest.approx(weights @ np.exp(-rates * lag), rel=1e-12)
    assert rest.lyapunov == pytest.approx(-0.2)


@pytest.mark.parametrize(("gain", "reciprocity"), [(0.5, 0.5), (1.5, -0.5)])
def test_partly_symmetric_couplings_by_their_transform(gain, reciprocity):
    """The integral of the spectrum over real frequencies, which the contour of the closed form leaves."""
    rest = LINEAR.stationary({g: str(gain), r: str(reciprocity), D: "3/5"})
    count = 4000
    angle = ((np.arange(count) + 0.5) / count - 0.5) * np.pi
    z, edge = 1 + 1j * np.tan(angle), 2 * gain * np.sqrt(complex(reciprocity))
    size = np.abs(2 / (z + np.sqrt(z - edge) * np.sqrt(z + edge))) ** 2
    known = np.sum(0.6 * size / (1 - gain**2 * size) / np.cos(angle) ** 2) / (2 * count)
    assert rest.variance == pytest.approx(known, rel=1e-9)
    assert rest[average(x[i, t] ** 4)] == pytest.approx(3 * known**2, rel=1e-9)
    assert rest.lyapunov == pytest.approx(gain * (1 + reciprocity) - 1)


def test_digits_a_drive_that_stays_and_where_no_state_is_reached():
    few, many = (LINEAR.stationary({g: "1/2", r: "1/2", D: "3/5"}, dps=n)[LAG](1) for n in (15, 30))
    assert few == pytest.approx(float(many), rel=1e-14)
    driven = network(lambda u: u, more=1).cavity().stationary({g: "1/2", r: "1/2"})
    at_once = 4 * (1 - 0.5**0.5)  # the root of R^2/8 - R + 1
    mean = at_once**2 / 4 / (1 - at_once**2 / 4) * at_once**2
    assert not driven.moves
    assert driven[average(x[i, t])] == pytest.approx(at_once, rel=1e-13)
    assert driven.variance == pytest.approx(mean, rel=1e-13)
    with pytest.raises(NotConverged, match="small changes of x"):
        LINEAR.stationary({g: "7/10", r: "1/2", D: 1})


# -- sampled states -------------------------------------------------------------------------------------------------


def test_symmetric_couplings_with_noise_answer_as_they_fluctuate():
    """R = -(dC/dlag)/T for soft spins at the temperature 1: noise of the variance 2, and J = J'."""
    soft = network(lambda u: u, force=lambda u: -u - u**3, more=xi[i, t]).cavity()
    rest = soft.stationary({g: "1/2", r: 1, D: 2, a: BEGIN}, until=8, step="1/10", paths=2000, seed=1)
    assert rest.moves
    for lag in (0.5, 1.0):
        slope = (rest[LAG](lag + 0.1) - rest[LAG](lag - 0.1)) / 0.2
        assert abs(rest[ANSWER](lag) + slope) < 4 * rest.errors[ANSWER](lag) + 0.01
    assert rest.errors[ANSWER](1) < 0.03


def test_a_network_in_steps_against_instances(in_steps):
    """Correlations and responses, and the sabotage: without what comes back the correlations are others."""
    found, size = [], 400
    for seed in range(6):
        rng, coupling = np.random.default_rng([7, seed]), couplings(size, 1.5, 0.5, seed)
        state, past = rng.standard_normal(size), []
        for step in range(1500):
            state = state / 2 + coupling @ np.tanh(state) / 2 + np.sqrt(0.5) * rng.standard_normal(size)
            past += [state] if step >= 100 else []
        past = np.array(past)
        found.append([(past[: len(past) - lag] * past[lag:]).mean() for lag in (0, 2, 8)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    here, own = (np.array([e[LAG](lag) for lag in (0, 2, 8)]) for e in (in_steps, in_steps.errors))
    assert np.all(abs(here - mean) < 4 * np.hypot(error, own) + 0.01 * mean)
    deaf = STEPS.cavity().stationary({**IN_STEPS, r: 0}, until=40, paths=400, seed=2)
    assert abs(deaf[LAG](8) - mean[2]) > 0.2 * mean[2]


def test_the_same_seed_gives_the_same_state(in_steps):
    again = STEPS.cavity().stationary(IN_STEPS, until=40, paths=2000, seed=2)
    assert again[LAG](3) == in_steps[LAG](3)


def test_species_that_compete_come_to_rest_as_instances_do():
    """Lotka and Volterra's equations with immigration, below their transition."""
    rate = x[i, t] * (1 - x[i, t] - Sum(J[i, j] * x[j, t], (j, 1, N))) + Rational(1, 10)
    species = System([Eq(Derivative(x[i, t], t), rate)], initial=[Eq(x[i, 0], a[i])]).cavity()
    rest = species.stationary({g: "1/2", r: "1/2", a: Uniform("a", 0, 1)}, until=16, step="1/5", paths=2000, seed=3)
    found = []
    for seed in range(8):
        coupling, state = couplings(400, 0.5, 0.5, seed), np.ones(400)
        for _ in range(600):
            state = state + 0.1 * (state * (1 - state - coupling @ state) + 0.1)
        found.append([state.mean(), (state**2).mean()])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    assert not rest.moves
    for key, known, spread in zip((average(x[i, t]), average(x[i, t] ** 2)), mean, error, strict=True):
        assert abs(rest[key] - known) < 4 * np.hypot(spread, rest.errors[key])


def test_states_that_age_have_no_stationary_state():
    """Symmetric couplings without noise: the slower, the longer one looks."""
    with pytest.raises(NotConverged, match="No stationary state is"):
        network(tanh).cavity().stationary({g: "3/2", r: 1, a: BEGIN}, until=20, step="1/5", paths=600, seed=1)


def test_what_is_asked_for_wrongly_says_so(in_steps):
    theory = network(tanh).cavity()
    with pytest.raises(UnsupportedLaw, match="until=20"):
        theory.stationary({g: 1, r: 1, a: 0})
    with pytest.raises(ValuesError, match="step"):
        theory.stationary({g: 1, r: 1, a: 0}, until=20)
    with pytest.raises(ValuesError, match="in steps"):
        STEPS.cavity().stationary(IN_STEPS, until=20, step=1)
    with pytest.raises(ValuesError, match="longest lag"):
        STEPS.cavity().stationary(IN_STEPS, until=3)
    with pytest.raises(UnsupportedLaw, match="not the response of one state"):
        assert in_steps.lyapunov
    with pytest.raises(DeclarationError, match="lag 50 is not sampled"):
        in_steps[LAG](50)
    with pytest.raises(DeclarationError, match=r"lag 0\.5 is not sampled"):
        in_steps[LAG](0.5)


# -- how many directions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gain", "reciprocity"), [(0.6, 0), (0.5, 0.5), (0.7, -0.5)])
def test_the_dimension_of_a_linear_network_is_that_of_lyapunovs_equation(gain, reciprocity):
    """The covariance of each matrix without sampling; with the first correction in 1/N taken off."""
    rest = LINEAR.stationary({g: str(gain), r: str(reciprocity), D: 1})
    found = {}
    for size in (100, 300):
        rows = []
        for seed in range(6):
            moves = couplings(size, gain, reciprocity, seed) - np.eye(size)
            covariance = solve_continuous_lyapunov(moves, -np.eye(size))
            rows.append([np.trace(c) ** 2 / size / np.sum(c**2) for c in (covariance, expm(moves) @ covariance)])
        found[size] = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(6)
    limit = 1.5 * found[300][0] - 0.5 * found[100][0]
    error = np.hypot(1.5 * found[300][1], 0.5 * found[100][1])
    dimension = np.array([rest.dimension(x, lag) for lag in (0, 1)])
    assert np.all(abs(dimension - limit) < 4 * error)
    assert abs(dimension[0] - (1 - gain**2) ** 2) > 0.05  # what holds of states at rest


def test_the_dimension_of_a_network_that_is_sampled_against_instances(monkeypatch):
    """Products of two halves of the runs, so that their noise does not add up; and responses that are left out."""
    rest = STEPS.cavity().stationary({**IN_STEPS, g: "9/10"}, until=24, paths=4000, seed=2)
    found, size = [], 250
    for seed in range(6):
        rng, coupling = np.random.default_rng([9, seed]), couplings(size, 0.9, 0.5, seed)
        state, halves = rng.standard_normal((size, 8)), [np.zeros((2, size, size)), np.zeros((2, size, size))]
        for step in range(1600):
            state = state / 2 + coupling @ np.tanh(state) / 2 + np.sqrt(0.5) * rng.standard_normal(state.shape)
            if step >= 100:
                for k, seen in enumerate((state, np.tanh(state))):
                    halves[0][k] += seen[:, :4] @ seen[:, :4].T
                    halves[1][k] += seen[:, 4:] @ seen[:, 4:].T
        both, product = halves[0] + halves[1], halves[0] * halves[1]
        found.append([np.trace(both[k]) ** 2 / 4 / size / np.sum(product[k]) for k in range(2)])
    mean, error = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    for k, what in enumerate((x, tanh(x[i, t]))):
        dimension, own = rest.dimension(what), rest.errors.dimension(what)
        assert abs(dimension - mean[k]) < 4 * np.hypot(error[k], own)
        assert np.hypot(error[k], own) < 0.02
    line = TwoSites._line
    broken = staticmethod(lambda a, b, c, e: line(a, b, c, lambda sent, heard: 0.8 * e(sent, heard)))
    monkeypatch.setattr(TwoSites, "_line", broken)
    rest._dimensions.clear()
    assert abs(rest.dimension(x) - mean[0]) > 0.08


def test_a_part_that_stays_is_no_direction():
    driven = System(
        [Eq(Derivative(x[i, t], t), -x[i, t] + Sum(J[i, j] * x[j, t], (j, 1, N)) + 1 + xi[i, t])],
        initial=[Eq(x[i, 0], a[i])],
    )
    with pytest.raises(UnsupportedLaw, match="differs from site to site"):
        driven.cavity().stationary({g: "1/2", r: "1/2", D: 1}).dimension(x)
    with pytest.raises(DeclarationError, match="not a quantity of one site"):
        LINEAR.stationary({g: "1/2", r: "1/2", D: 1}).dimension(average(x[i, t]))


def test_a_memory_that_is_left_out_is_seen(in_steps, monkeypatch):
    monkeypatch.setattr(ring.RingRun, "_returned", lambda _self, _f, _t: 0.0)
    deaf = STEPS.cavity().stationary(IN_STEPS, until=40, paths=2000, seed=2)
    assert abs(deaf[LAG](0) - in_steps[LAG](0)) > 6 * in_steps.errors[LAG](0)


def test_states_that_die_out_are_at_rest_and_responses_are_known_where_nothing_comes_back():
    """A readout that all units hear, and couplings too weak to keep an activity up."""
    quiet = network(tanh, more=Sum(tanh(x[j, t]), (j, 1, N)) / (3 * N)).cavity()
    rest = quiet.stationary({g: "1/4", r: 0, a: BEGIN}, until=8, step="1/2", paths=400, seed=1)
    assert not rest.moves
    assert abs(rest[LAG](0)) < 1e-8
    assert rest[ANSWER](1) == pytest.approx(0.75**3, rel=1e-6)  # at the finer step, three steps after the first


def test_a_number_that_all_sites_share_is_read_in_a_stationary_state():
    m, size = Global("m", over=t), average(x[i, t] ** 2)
    field = Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)) / 2
    shared = System(
        [Eq(x[i, t + 1], x[i, t] / 2 + field + m[t] / 2 + Rational(1, 4)), Eq(m[t], average(tanh(x[i, t])))],
        initial=[Eq(x[i, 0], a[i])],
    )
    values = {g: "1/2", r: "1/2", a: {1: 1}}
    rest = shared.cavity().stationary(values, until=20, paths=2000, seed=1)
    sim = shared.simulate(values, N=300, seeds=8, until=40)
    seen = np.asarray(sim[m[t]].samples)[:, -1]
    assert rest[m[t]] == pytest.approx(rest[average(tanh(x[i, t]))], rel=1e-12)
    assert abs(rest[m[t]] - seen.mean()) < 4 * np.hypot(seen.std(ddof=1) / np.sqrt(8), rest.errors[m[t]])
    assert abs(rest[m[t]] * rest[size] - rest[m[t] * size]) < 1e-3
