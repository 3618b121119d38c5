"""Smooth energies that are not convex, at zero temperature: the minimum that the others' answer leaves to a site."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sympy import Eq, Rational, Sum, Symbol, exp, log

from symcavity import (
    Coupling,
    Feature,
    N,
    NegativeEntropy,
    P,
    Problem,
    Quenched,
    UnstableSolution,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{word.__module__}.{word.__name__}")
    for word in (UnstableSolution, NegativeEntropy)
]

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
t, e = Quenched("t", i), Quenched("e", mu)
gamma, c = Symbol("gamma", positive=True), Symbol("c", positive=True)
residue = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) - e[mu]
heard = Sum(x[mu, i] * s[i], (i, 1, N))
half, often, rarely = Rational(1, 2), Rational(2, 5), Rational(1, 10)
TEACHER = {
    t: {1: half, -1: half},
    e: {Rational(3, 10): often, -Rational(3, 10): often, 3: rarely, -3: rarely},
}
AT = {alpha: 3, gamma: Rational(1, 5), **TEACHER}
LOSSES = {
    "cauchy": (lambda d: log(1 + d**2), lambda d: 2 * d / (1 + d**2)),
    "geman": (lambda d: d**2 / (1 + d**2), lambda d: 2 * d / (1 + d**2) ** 2),
    "welsch": (lambda d: 1 - exp(-(d**2) / 2), lambda d: d * np.exp(-(d**2) / 2)),
}
Z = np.linspace(-9, 9, 4001)
WEIGHT = np.exp(-(Z**2) / 2) / np.sqrt(2 * np.pi) * (Z[1] - Z[0])
DENSE = np.linspace(-40, 40, 160001)


def inverse(field, at):
    """The states at some fields, where the field is a rising function of the state."""
    told = field(DENSE)
    assert np.all(np.diff(told) > 0)
    return np.interp(at, told, DENSE)


def regression(loss):
    return Problem(Sum(loss(residue), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_by_quadrature(name):
    """The equations iterated by hand: fields by interpolation, and the response by parts."""
    loss, slope = LOSSES[name]
    theory = regression(loss).cavity()
    found = theory.solve(AT)
    load, ridge, S_w, q = 3.0, 0.2, 0.5, 0.3
    for _ in range(200):
        S_l = q_l = 0.0
        for shift, share in ((0.3, 0.8), (3.0, 0.2)):  # the law of the noise is even, and so is the loss
            eta = np.sqrt(q) * Z - shift
            lam = -slope(inverse(lambda d, answer=S_w: d + answer * slope(d), eta))
            S_l += share * np.sum(WEIGHT * lam * Z) / np.sqrt(q)
            q_l += share * np.sum(WEIGHT * lam**2)
        S_w = 1 / (ridge - load * S_l)
        q = S_w**2 * (load * q_l + ridge**2)
    assert float(found[average((w[i] - t[i]) ** 2)]) == pytest.approx(q, rel=1e-6)
    assert float(found[response(w)]) == pytest.approx(S_w, rel=1e-6)


def test_the_energy_is_that_of_instances():
    """Geman and McClure's loss, minimized by quasi-Newton steps from the teacher."""
    theory = regression(LOSSES["geman"][0]).cavity()
    found, size, rows = theory.solve(AT), 300, []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        couplings = rng.normal(size=(3 * size, size)) / np.sqrt(size)
        teacher, noise = rng.choice([-1, 1], size), rng.choice([0.3, -0.3, 3, -3], 3 * size, p=[0.4, 0.4, 0.1, 0.1])

        def cost(v, couplings=couplings, teacher=teacher, noise=noise):
            d = couplings @ (v - teacher) - noise
            value = np.sum(d**2 / (1 + d**2)) + 0.1 * v @ v
            return value / size, (couplings.T @ (2 * d / (1 + d**2) ** 2) + 0.2 * v) / size

        best = minimize(cost, teacher, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9})
        rows.append((best.fun, np.mean((best.x - teacher) ** 2)))
    means, errors = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
    told = [float(found[theory.free_energy]), float(found[average((w[i] - t[i]) ** 2)])]
    assert np.all(np.abs(means - told) < 4 * errors + 2 * np.abs(told) / size)


def test_a_penalty_by_quadrature():
    """Squares with the price log(1 + w**2): the state of a weight by interpolation."""
    student = Problem(Sum(residue**2, (mu, 1, P)) / 2 + c * Sum(log(1 + w[i] ** 2), (i, 1, N)))
    found = student.cavity().solve({alpha: 3, c: half, **TEACHER})
    load, S_w, q, noise = 3.0, 0.4, 0.5, 0.8 * 0.09 + 0.2 * 9
    for _ in range(200):
        stiff, spread = load / (1 + S_w), np.sqrt((q + noise) / load)
        at = inverse(lambda v, stiff=stiff: v + 0.5 * 2 * v / (1 + v**2) / stiff, 1 + spread * Z)
        S_w, q = np.sum(WEIGHT * at * Z) / (spread * stiff), np.sum(WEIGHT * (at - 1) ** 2)
    assert float(found[average((w[i] - t[i]) ** 2)]) == pytest.approx(q, rel=1e-6)
    assert float(found[response(w)]) == pytest.approx(S_w, rel=1e-6)


def test_binary_weights_with_a_smooth_loss():
    """Signs that jump hear messages that do not: the equations by hand, and the entropy of one lowest state."""
    binary = Problem(Sum(log(1 + exp(-heard)), (mu, 1, P)))
    theory = binary.cavity()
    found = theory.solve({alpha: 1})
    S_s = 2.0
    for _ in range(200):
        lam = 1 / (1 + np.exp(inverse(lambda h, answer=S_s: h - answer / (1 + np.exp(h)), Z)))
        q_l, S_l = np.sum(WEIGHT * lam**2), np.sum(WEIGHT * lam * Z)
        S_s = np.sqrt(2 / np.pi / q_l)
    assert float(found[response(s)]) == pytest.approx(S_s, rel=1e-6)
    bend = 1 + S_s * lam * (1 - lam)
    entropy = -np.sum(WEIGHT * np.log(bend)) / 2 - S_l * S_s / 2  # as that of hinges, by the slopes of the states
    assert float(found[theory.entropy]) == pytest.approx(entropy, rel=1e-5)


@pytest.mark.parametrize("price", [gamma * w[i] ** 2 / 2, c * log(1 + w[i] ** 2)])
def test_the_law_of_a_site_is_verified(price):
    both = Problem(Sum(log(1 + residue**2), (mu, 1, P)) + Sum(price, (i, 1, N)))
    record = both.cavity().derivation
    wanted = [step for step in record if step.key.endswith((".energy", ".solution", ".response"))]
    assert all(verdict.ok for step in (*wanted, record["closed_system"]) for verdict in judge(step))


def test_another_stationary_state_is_seen():
    step = regression(LOSSES["cauchy"][0]).cavity().derivation["datum.solution"]
    field, *others = step.claims
    wrong = replace(step, claims=(Equation(field.lhs, field.rhs + Rational(1, 3)), *others))
    assert not any(verdict.ok for verdict in judge(wrong))


def test_a_sphere_and_digits():
    on_sphere = Problem(Sum(log(1 + residue**2), (mu, 1, P)), [Eq(Sum(w[i] ** 2, (i, 1, N)), N)])
    found = on_sphere.cavity().solve({alpha: 3, **TEACHER})
    assert float(found[average(w[i] ** 2)]) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(("load", "ridge", "has_one"), [(1, 1, True), (4, AT[gamma], True), (1, AT[gamma], False)])
def test_the_stability_is_infinite_where_a_site_has_several_minima(load, ridge, has_one):
    """The loss d**2/(1 + d**2) bends down by 1/2 at most: with a response above two some energies have two minima."""
    loss = Sum(residue**2 / (1 + residue**2), (mu, 1, P))
    found = Problem(loss + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().solve({**TEACHER, alpha: load, gamma: ridge})
    assert (float(found[response(w)]) < 2) == has_one == bool(np.isfinite(float(found.stability)))
