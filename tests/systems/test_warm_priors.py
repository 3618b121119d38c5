"""Smooth priors that are no squares: Student's, wells, hyperbolic cosines; against sums over a grid of states."""

import numpy as np
import pytest
from sympy import Gt, Rational, Sum, Symbol, cosh, log

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    alpha,
    average,
    expect,
    i,
    mu,
)

x, w, n = Coupling("x"), Feature("w"), Feature("n", values=(0, 1))
beta, half = Symbol("beta", positive=True), Rational(1, 2)
t, e = Quenched("t", i), Quenched("e", mu)
VALUES = {alpha: 2, t: {0: half, 1: half}, e: {0: half, 1: half}}
GRID = (np.arange(-6 * 1200, 6 * 1200) + 0.5) / 1200


def regression(energy, state=w[i]):
    error = Sum(x[mu, i] * (state - t[i]), (i, 1, N)) + e[mu]
    return Problem(Sum(error**2, (mu, 1, P)) / 2 + Sum(energy, (i, 1, N))).gibbs(beta)


PRIORS = {
    "student": (log(1 + w[i] ** 2), lambda v: np.log(1 + v**2)),
    "well": (w[i] ** 4 / 4 - w[i] ** 2 / 2, lambda v: v**4 / 4 - v**2 / 2),
    "cosh": (cosh(w[i]), np.cosh),
}


def by_grid(energy, b, rounds=200):
    """The closed equations of one weight at load 2, teachers of 0 and 1, and noise of 0 and 1 on the labels."""
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()
    error, answer = 1.0, 1.0
    with np.errstate(over="ignore"):
        prior = energy(GRID)
    for _ in range(rounds):
        rate = 2 / (1 + answer)
        out = np.zeros(5)
        for at in (0, 1):
            eta = rate * at + rate * np.sqrt((error + 0.5) / 2) * z
            exponent = -b * (prior[None] - eta[:, None] * GRID + rate * GRID**2 / 2)
            law = np.exp(exponent - exponent.max(axis=1)[:, None])
            law /= law.sum(axis=1)[:, None]
            m, m2, above = law @ GRID, law @ GRID**2, law @ (GRID > 0.5)
            out += 0.5 * np.array([weight @ row for row in (m2, m**2, (m - at) ** 2, above, b * (m2 - m**2))])
        done = abs(out[2] - error) + abs(out[4] - answer) < 1e-13
        error, answer = out[2], out[4]
        if done:
            break
    return out


@pytest.mark.parametrize(
    ("name", "b"), [("student", 1), ("student", 20), ("cosh", 1), ("cosh", 20), ("well", 1), ("well", 4)]
)
def test_priors_of_every_shape(name, b):
    energy, own = PRIORS[name]
    solution = regression(energy).cavity().solve({beta: b, **VALUES})
    second, square, error, above, _ = by_grid(own, b)
    assert float(solution[average(w[i] ** 2)]) == pytest.approx(second, rel=1e-5)
    assert float(solution[average(expect(w[i]) ** 2)]) == pytest.approx(square, rel=1e-5)
    assert float(solution[average((expect(w[i]) - t[i]) ** 2)]) == pytest.approx(error, rel=1e-5)
    assert float(solution[average(expect(Gt(w[i], half)))]) == pytest.approx(above, rel=1e-5)


def test_the_energy_is_the_slope_of_the_free_energy():
    """``d(beta*f)/d(beta)`` is the mean energy: of the losses, by their own sites, and of the prior."""
    problem = regression(w[i] ** 4 / 4 - w[i] ** 2 / 2)
    theory = problem.cavity()
    near = (Rational(99, 100), Rational(101, 100))
    rows = [b * float(theory.solve({**VALUES, beta: b})[theory.free_energy]) for b in near]
    solution = theory.solve({**VALUES, beta: 1})
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) + e[mu]
    energy = float(solution[average(error**2)]) + float(solution[average(w[i] ** 4 / 4 - w[i] ** 2 / 2)])
    assert (rows[1] - rows[0]) / 0.02 == pytest.approx(energy, rel=1e-4)


def test_a_slab_with_heavy_tails_against_samples():
    """Switched weights with a prior of Student."""
    problem = regression(n[i] + log(1 + w[i] ** 2) + w[i] ** 2 / 10, state=n[i] * w[i])
    solution = problem.cavity().solve({beta: 1, **VALUES})
    sim = problem.simulate({beta: 1, **VALUES}, N=16, seeds=8)
    for observable in (average(n[i]), average(expect(n[i] * w[i]) ** 2)):
        assert abs(sim[observable].z(float(solution[observable]))) < 4


def test_what_is_said_of_a_well_is_verified():
    verdicts = regression(w[i] ** 4 / 4 - w[i] ** 2 / 2).cavity().derivation.verify()
    assert all(v.ok for v in verdicts)


def test_a_quartic_penalty_in_either_word():
    """A convex problem counts from its minimum, a measure from the answers of the others: the same numbers."""
    energy = Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 4 + w[i] ** 2 / 2, (i, 1, N))
    one, other = (kind(energy).gibbs(beta).cavity() for kind in (Problem, ConvexProblem))
    found, same = (theory.solve({alpha: 1, beta: 2}) for theory in (one, other))
    for observable in (average(w[i] ** 2), average(expect(w[i]) ** 2)):
        assert float(found[observable]) == pytest.approx(float(same[observable]), rel=1e-9)


def test_messages_of_a_well_are_those_of_the_state_evolution():
    problem = regression(PRIORS["well"][0])
    run = problem.message_passing({beta: 1, **VALUES}, N=300, seeds=4, steps=15)
    table = run.compare(problem.cavity(), [average(w[i] ** 2), average(expect(w[i]) ** 2)], steps=[1, 2, 5])
    assert table.worst < 4
    assert run.residuals.worst < 1e-3
