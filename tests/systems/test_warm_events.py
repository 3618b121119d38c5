"""Probabilities of events under the measure, for priors of every kind: against sums over a grid of states."""

import numpy as np
import pytest
from sympy import Abs, And, Eq, Ge, Gt, Max, Ne, Piecewise, Rational, Sum, Symbol, cos, exp, log, sign, sqrt

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    expect,
    i,
    mu,
)
from symcavity.witness.judge import judge

x, w, n = Coupling("x"), Feature("w"), Feature("n", values=(0, 1))
beta, half, third = Symbol("beta", positive=True), Rational(1, 2), Rational(1, 3)
t, e, y = Quenched("t", i), Quenched("e", mu), Quenched("y", mu)
VALUES = {beta: Rational(3, 2), alpha: 2, t: {0: half, 1: half}, e: {0: 1}}
GRID = (np.arange(-8 * 1200, 8 * 1200) + 0.5) / 1200  # ends of events lie between its points


def measure(energy, bounds=(), state=w[i]):
    field = Sum(x[mu, i] * (state - t[i]), (i, 1, N))
    return Problem(Sum((field + e[mu]) ** 2, (mu, 1, P)) / 2 + Sum(energy, (i, 1, N)), list(bounds)).gibbs(beta)


PRIORS = {
    "square": (measure(w[i] ** 2 / 2), lambda v: v**2 / 2),
    "modulus": (measure(Abs(w[i] - third)), lambda v: np.abs(v - 1 / 3)),
    "both": (measure(Abs(w[i]) + w[i] ** 2 / 2), lambda v: np.abs(v) + v**2 / 2),
    "box": (measure(w[i], [w[i] >= -1, w[i] <= 2]), lambda v: np.where((v >= -1) & (v <= 2), v, np.inf)),
    "two kinks": (measure(Abs(w[i]) + Abs(w[i] - 1)), lambda v: np.abs(v) + np.abs(v - 1)),
    "heavy tails in a box": (
        measure(log(1 + w[i] ** 2) + Abs(w[i]), [w[i] >= -1, w[i] <= 2]),
        lambda v: np.where((v >= -1) & (v <= 2), np.log1p(v**2) + np.abs(v), np.inf),
    ),
    "end": (measure(w[i], [w[i] >= third]), lambda v: np.where(v >= 1 / 3, v, np.inf)),
}
EVENTS = {
    Gt(w[i], 0): lambda v, _: v > 0,
    Gt(Abs(w[i]), half): lambda v, _: np.abs(v) > 0.5,
    And(w[i] > 0, w[i] < half): lambda v, _: (v > 0) & (v < 0.5),
    Gt(w[i], t[i]): lambda v, t: v > t,
    Gt(w[i] * t[i], half): lambda v, t: v * t > 0.5,
    Max(half, w[i]) ** 2: lambda v, _: np.maximum(0.5, v) ** 2,
}


@pytest.mark.parametrize("name", PRIORS)
def test_events_against_a_grid_of_states(name):
    """The field of a weight has the mean r*t and the variance alpha*E/(1 + S)**2; F = -r, r = alpha/(1 + S)."""
    problem, energy = PRIORS[name]
    solution = problem.cavity().solve(VALUES)
    second, square = (float(solution[average(b)]) for b in (w[i] ** 2, expect(w[i]) ** 2))
    error = float(solution[average((expect(w[i]) - t[i]) ** 2)])
    rate = 2 / (1 + 1.5 * (second - square))
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    weight /= weight.sum()
    found = {}
    with np.errstate(over="ignore"):
        for at in (0, 1):
            for node, share in zip(z, weight, strict=True):
                eta = rate * at + rate * np.sqrt(error / 2) * node
                law = np.exp(-1.5 * (energy(GRID) - eta * GRID + rate * GRID**2 / 2))
                law /= law.sum()
                for event, holds in EVENTS.items():
                    p = np.sum(law * holds(GRID, at))
                    found[event] = found.get(event, 0) + share / 2 * np.array([p, p**2])
    for event, (mean, twice) in found.items():
        assert float(solution[average(expect(event))]) == pytest.approx(mean, rel=2e-6), event
        assert float(solution[average(event)]) == pytest.approx(mean, rel=2e-6), event
        assert float(solution[average(expect(event) ** 2)]) == pytest.approx(twice, rel=2e-6), event
    assert float(solution[average(expect(Eq(w[i], 0)))]) == 0
    assert float(solution[average(expect(Ne(w[i], 1)))]) == 1


def test_events_of_a_spike_and_a_slab():
    """The share that is exactly zero is that of the switch; the rest lies on both sides."""
    measured = measure(n[i] + w[i] ** 2 / 2, state=n[i] * w[i])
    solution = measured.cavity().solve(VALUES)
    effect = n[i] * w[i]
    zero, above, below, on = (
        float(solution[average(expect(c))]) for c in (Eq(effect, 0), effect > 0, effect < 0, Eq(n[i], 1))
    )
    assert zero == pytest.approx(1 - on, rel=1e-12)
    assert above + below == pytest.approx(on, rel=1e-12)
    assert float(solution[average(expect(Ge(effect, 0)))]) == pytest.approx(zero + above, rel=1e-12)
    residual = Sum(x[mu, i] * (effect - t[i]), (i, 1, N)) + e[mu]
    sim = measured.simulate(VALUES, N=20, seeds=8)
    for observable in (average(residual**2), average(expect(effect > 0)), average(expect(Eq(effect, 0)))):
        seen = sim[observable]
        assert abs(float(seen) - float(solution[observable])) < 4 * seen.stderr + 0.02


def test_events_of_a_field_with_a_kink():
    """Hinges with labels of either sign: a margin is on one of the sides of any place."""
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    hinge = Problem(Sum(Max(0, 1 - y[mu] * h), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(beta)
    solution = hinge.cavity().solve({beta: 2, alpha: 2, y: {1: third, -2: 2 * third}})
    above, below, large = (float(solution[average(expect(c))]) for c in (h > third, h < third, Abs(h) > third))
    assert above + below == pytest.approx(1, rel=1e-12)
    assert above < large < 1
    step = Piecewise((1, h > third), (0, True))
    assert float(solution[average(step)]) == pytest.approx(above, rel=1e-12)


def test_what_is_no_polynomial_by_cases_is_refused():
    solution = PRIORS["modulus"][0].cavity().solve(VALUES)
    with pytest.raises(UnsupportedLaw, match="polynomials of it there, by cases"):
        solution[average(expect(cos(w[i])))]


def test_margins_of_clusters_with_labels_of_any_law():
    """A kink that a label turns, without a law in the declaration; the share of large margins by sums by hand."""
    signs, m, found = {1: half, -1: half}, Quenched("m", i), []
    for given in ({}, {"law": signs}):
        c = Quenched("c", mu, **given)
        centred = Coupling("x", mean=c[mu] * m[i] / N)
        margin = c[mu] * Sum(centred[mu, i] * w[i], (i, 1, N))
        loss = Sum(Max(0, 1 - margin), (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2
        theory = ConvexProblem(loss).gibbs(beta).cavity()
        solution = theory.solve({alpha: 2, beta: 1, m: signs} | ({} if given else {c: signs}))
        values = {str(name).removesuffix("_2"): float(solution[name]) for name in theory.order_parameters}
        large = average(expect(margin > half))
        found.append([float(solution[large]), values["q_m"], values["S_m"], float(solution[average(m[i] * w[i])])])
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    share, square, width, overlap = found[0]
    field = np.linspace(-8, 8, 801)[:, None]
    v = np.arange(-9.995, 12, 0.01)
    weight = np.exp(-np.maximum(0, 1 - v) - (v - overlap - np.sqrt(square) * field) ** 2 / (2 * width))
    density = np.exp(-(field[:, 0] ** 2) / 2)
    expected = density @ (weight @ (v > 0.5) / weight.sum(1)) / density.sum()
    assert share == pytest.approx(expected, rel=1e-5)


def test_events_about_a_smooth_minimum_are_those_of_sums_over_states():
    found = []
    for kind in (ConvexProblem, Problem):
        field = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))
        energy = Sum(field**2, (mu, 1, P)) / 2 + Sum(sqrt(1 + w[i] ** 2), (i, 1, N))
        solution = kind(energy).gibbs(beta).cavity().solve({beta: 1, alpha: 2, t: {1: half, -1: half}})
        found.append([float(solution[average(expect(w[i] * t[i] > place))]) for place in (0, half)])
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_the_mean_beside_two_kinks_is_judged():
    verdicts = judge(PRIORS["two kinks"][0].cavity().derivation["feature.solution"], 15)
    assert verdicts
    assert all(v.ok for v in verdicts)


def test_a_kink_may_stand_beside_an_event():
    """The mean energy of a hinge with a teacher's labels is the slope of beta times the free energy."""
    heard, told = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
    loss = Max(0, 1 - sign(told) * heard)
    theory = Problem(Sum(loss, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 4).gibbs(beta).cavity()
    near, far, at = (theory.solve({beta: b, alpha: 2, t: {1: 1}}) for b in ("999/1000", "1001/1000", 1))
    slope = (1.001 * float(far[theory.free_energy]) - 0.999 * float(near[theory.free_energy])) / 0.002
    energy = 2 * float(at[average(expect(loss))]) + float(at[average(expect(w[i] ** 2))]) / 4
    assert energy == pytest.approx(slope, abs=1e-5)
    assert float(at[theory.entropy]) == pytest.approx(energy - float(at[theory.free_energy]), rel=1e-9)


def test_the_mean_of_a_steep_loss_is_judged():
    field = Sum(x[mu, i] * w[i], (i, 1, N))
    energy = Sum(exp(2 * field) - field, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))
    verdicts = judge(ConvexProblem(energy).gibbs(beta).cavity().derivation["datum.solution"], 15)
    assert verdicts
    assert all(v.ok for v in verdicts)
