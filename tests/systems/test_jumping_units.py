"""Units that jump with what moves, and hear themselves again: responses by integration by parts along sampled paths."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sympy import Derivative, Eq, Heaviside, Rational, S, Sum, Symbol, erf, pi, sign, sqrt, symbols

import symcavity.evaluate.moving.drawing as drawing
from symcavity import (
    Coupling,
    Noise,
    P,
    Quenched,
    System,
    Time,
    UnsupportedLaw,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity import N as SIZE
from symcavity.model.equations import Equation

t, s, j = Time("t"), Time("s"), symbols("j", integer=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=Rational(1, 4))
r, g = Symbol("r", real=True), Symbol("g", positive=True)
J = Coupling("J", between=(i, i), variance=g / SIZE, reciprocity=r)
heard = Sum(J[i, j] * x[j, t], (j, 1, SIZE))
SPINS = System([Eq(x[i, t + 1], sign(heard))], initial=[Eq(x[i, 0], a[i])])
FLOW = System(
    [Eq(Derivative(x[i, t], t), -x[i, t] + Sum(J[i, j] * Heaviside(x[j, t]), (j, 1, SIZE)))],
    initial=[Eq(x[i, 0], a[i])],
)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
TWO = [average(x[i, t] * x[i, s]), average(x[i, t])]


def test_the_first_steps_of_spins_with_symmetric_couplings_are_known():
    """E. Gardner, B. Derrida, P. Mottishaw (1987): what is left of the beginning after two steps is erf(1/sqrt(pi)).

    The response to the first field is the density of spins at the jump, 2 phi(0).
    """
    run = SPINS.cavity().evolve({r: 1, g: 1, a: 1}, until=2, paths=100000, seed=1)
    left, spread = run[TWO[1]], run.errors[TWO[1]]
    assert abs(left[2] - float(erf(1 / sqrt(pi)))) < 4.5 * spread[2] < 0.02
    answers = response(x[i, t], s)
    assert abs(run[answers][1, 0] - float(sqrt(2 / pi))) < 4.5 * run.errors[answers][1, 0] < 0.02
    assert np.all(np.triu(run[answers]) == 0)


def test_the_first_two_steps_of_hopfields_memory_are_known():
    """Gardner, Derrida and Mottishaw (1987), by hand: other patterns send back by the density at zero."""
    xi_, X, o = Quenched("xi", i), Coupling("X"), Variable("o", mu, over=t)
    overlap = Sum(xi_[i] * x[i, t], (i, 1, SIZE)) / SIZE
    others = Sum(X[mu, i] * o[mu, t], (mu, 1, P)) - alpha * x[i, t]
    told = Eq(o[mu, t], Sum(X[mu, i] * x[i, t], (i, 1, SIZE)))
    memory = System([Eq(x[i, t + 1], sign(xi_[i] * overlap + others)), told], initial=[Eq(x[i, 0], xi_[i] * a[i])])
    load, first, erf_ = 0.1, 0.4, np.vectorize(math.erf)
    values = {alpha: "1/10", xi_: HALF, a: {1: Rational(7, 10), -1: Rational(3, 10)}}
    run = memory.cavity().evolve(values, until=2, paths=40000, seed=1)
    m1 = math.erf(first / np.sqrt(2 * load))
    G = np.sqrt(2 / np.pi / load) * np.exp(-(first**2) / 2 / load)
    spread = np.sqrt(2 * load * (1 + G**2 + 2 * G * first * m1))
    side = np.array([1, -1])
    m2 = float((1 + first * side) / 2 @ erf_((m1 + G * load * side) / spread))
    seen = average(xi_[i] * x[i, t])
    for step, want in ((1, m1), (2, m2)):
        assert abs(run[seen][step] - want) < 4.5 * run.errors[seen][step] < 0.05
    without = math.erf(m1 / np.sqrt(2 * load))  # Amari's and Maginu's first guess, without what comes back
    assert abs(without - m2) > 0.1


@pytest.mark.parametrize("value", [1, Rational(-1, 2)])
@pytest.mark.parametrize("noisy", [False, True])
def test_spins_agree_with_instances(value, noisy):
    system = System([Eq(x[i, t + 1], sign(heard + xi[i, t]))], initial=SPINS.initial) if noisy else SPINS
    values = {r: value, g: 1, a: {1: Rational(3, 4), -1: Rational(1, 4)}}
    run = system.cavity().evolve(values, until=6, paths=20000, seed=1)
    found = run.compare(system.simulate(values, N=500, seeds=20, until=6), TWO)
    assert all(row.rms < 2 and np.all(np.abs(row.z) < 4.5) for row in found.rows)


def test_without_what_comes_back_spins_do_not_agree(monkeypatch):
    """The negative control: responses that are dropped are seen."""
    monkeypatch.setattr(drawing.CavityFields, "answers", lambda self, _v, n: np.zeros((self.shape[0], n)))
    values = {r: 1, g: 1, a: {1: Rational(3, 4), -1: Rational(1, 4)}}
    run = SPINS.cavity().evolve(values, until=4, paths=20000, seed=1)
    found = run.compare(SPINS.simulate(values, N=500, seeds=20, until=4), [TWO[1]])
    assert max(row.rms for row in found.rows) > 5


def test_a_response_by_parts_is_the_tangent_of_a_steep_law():
    """A law with a kink, whose tangents exist, in the words of one that jumps: both ways give the same responses."""
    ramp = System([Eq(x[i, t + 1], erf(heard + xi[i, t]))], initial=SPINS.initial)
    run = ramp.cavity().evolve({r: "1/2", g: 1, a: HALF}, until=3, paths=40000, seed=2)
    parts = run.runner.tangents.parts
    (f,) = run.plan.heard
    for later, before in ((1, 0), (2, 0), (3, 1), (3, 2)):
        one = parts.mean(x[i, t], f, later, before, S.One)
        two = run.runner.tangents.mean(x[i, t], f, later, before)
        gap = one - two
        assert abs(gap.mean()) < 4.5 * gap.std(ddof=1) / np.sqrt(len(gap)) + 1e-9


def test_emissions_that_jump_in_continuous_time_agree_with_instances():
    values = {r: 1, g: 4, a: {1: Rational(1, 2), -1: Rational(1, 2)}}
    run = FLOW.cavity().evolve(values, until=2, step="1/10", paths=8000, seed=1)
    found = run.compare(FLOW.simulate(values, N=400, seeds=16, until=2, step="1/10"), TWO)
    assert all(row.rms < 2 for row in found.rows)


def test_two_kinds_of_which_both_jump_agree_with_instances():
    """Data that answer by their sign, and features by theirs: responses of both kinds come back."""
    X, o = Coupling("X"), Variable("o", mu, over=t)
    told = Eq(o[mu, t], sign(Sum(X[mu, i] * x[i, t], (i, 1, SIZE))))
    system = System(
        [Eq(x[i, t + 1], sign(a[i] + Sum(X[mu, i] * o[mu, t], (mu, 1, P)))), told], initial=[Eq(x[i, 0], a[i])]
    )
    values = {alpha: 2, a: {1: Rational(3, 4), -1: Rational(1, 4)}}
    run = system.cavity().evolve(values, until=4, paths=20000, seed=1)
    found = run.compare(system.simulate(values, N=400, seeds=16, until=4), TWO)
    assert all(row.rms < 2 for row in found.rows)


b, n = Quenched("b", i), Quenched("n", i)
RANK_ONE = Coupling("W", between=(i, i), variance=1 / SIZE, mean=b[i] * n[j] / SIZE, reciprocity=r)
STRUCTURED = System(
    [Eq(x[i, t + 1], sign(Sum(RANK_ONE[i, j] * x[j, t], (j, 1, SIZE))))], initial=[Eq(x[i, 0], n[i] * a[i])]
)


def test_structured_couplings_with_a_random_part_agree_with_instances():
    """A pattern that is recalled, or decays into another one, beside what comes back through the random part."""
    seen = [average(n[i] * x[i, t]), average(x[i, t] * x[i, s])]
    for echo in ("1/2", "-1/2"):
        values = {r: echo, b: {2: "1/2", -2: "1/2"}, n: {1: "1/2", -1: "1/2"}, a: {1: "9/10", -1: "1/10"}}
        run = STRUCTURED.cavity().evolve(values, until=5, paths=20000, seed=1)
        found = run.compare(STRUCTURED.simulate(values, N=500, seeds=16, until=5), seen)
        assert all(row.rms < 2.2 for row in found.rows), str(found)


@pytest.mark.parametrize("system", [SPINS, FLOW, STRUCTURED])
def test_every_step_is_judged(system):
    found = system.cavity().derivation.verify(15)
    assert not found.failed
    assert not found.unchecked
    assert "no tangents" in system.cavity().derivation.to_text()


@pytest.mark.parametrize("system", [SPINS, FLOW, STRUCTURED])
def test_a_falsified_identity_fails(system):
    step = system.cavity().derivation["feature.by_parts"]
    (claim,) = step.claims
    wrong = replace(step, claims=(Equation(claim.lhs, Rational(11, 10) * claim.rhs),))
    assert not any(v.ok for v in wrong.verdicts(15))


def test_a_field_that_vanishes_tells_nothing_of_a_jump():
    with pytest.raises(UnsupportedLaw, match="vanishes"):
        SPINS.cavity().evolve({r: 1, g: 1, a: 0}, until=3, paths=400)


def test_units_that_jump_have_no_sampled_stationary_state():
    with pytest.raises(UnsupportedLaw, match="jumps"):
        System([Eq(x[i, t + 1], sign(heard + xi[i, t]))], initial=SPINS.initial).cavity().stationary(
            {r: 1, g: 1, a: HALF}, until=16, paths=400
        )
