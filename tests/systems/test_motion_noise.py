"""What is drawn anew at each step: noise, and masks that say which data are heard."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sympy import Eq, Rational, Sum, Symbol, symbols, tanh

from symcavity import (
    Coupling,
    DeclarationError,
    N,
    Noise,
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
)
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge

t, s, j = Time("t"), Time("s"), Symbol("j")
g, h, D, eta = symbols("g h D eta", positive=True)
r = Symbol("r", real=True)
x, a, xi = Variable("x", i, over=t), Quenched("a", i), Noise("xi", i, over=t, variance=D)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
HALF = {1: Rational(1, 2), -1: Rational(1, 2)}
START = [Eq(x[i, 0], a[i])]
LINEAR = System([Eq(x[i, t + 1], (1 - h) * x[i, t] + h * Sum(J[i, j] * x[j, t], (j, 1, N)) + xi[i, t])], initial=START)
NONLINEAR = System(
    [Eq(x[i, t + 1], (1 - h) * x[i, t] + h * Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)) + a[i] * xi[i, t])], initial=START
)

X, w, lam, teacher = Coupling("x"), Variable("w", i, over=t), Variable("lambda", mu, over=t), Quenched("w0", i)
mask, noise = Quenched("m", mu, over=t), Quenched("e", mu)
residual = Sum(X[mu, i] * (w[i, t] - teacher[i]), (i, 1, N))
BATCHES = System(
    [
        Eq(w[i, t + 1], w[i, t] - eta * Sum(X[mu, i] * lam[mu, t], (mu, 1, P))),
        Eq(lam[mu, t], mask[mu, t] * residual),
    ],
    initial=[Eq(w[i, 0], 0)],
)
RATE = {alpha: 3, eta: "1/7", teacher: HALF}
TEST = average((w[i, t] - teacher[i]) ** 2)


def test_noise_alone_adds_up_exactly():
    """Without couplings x is a random walk that forgets: its variance obeys V' = V/4 + D."""
    run = LINEAR.cavity().evolve({g: 0, h: "1/2", r: 0, D: "1/3", a: HALF}, until=4)
    known = [Fraction(1)]
    for _ in range(4):
        known.append(known[-1] / 4 + Fraction(1, 3))
    assert run.method == "exact"
    assert list(run[average(x[i, t] ** 2)]) == known
    assert run[average(x[i, t] * x[i, s])][4, 2] == known[2] / 4


@pytest.mark.parametrize(("system", "seeds"), [(LINEAR, 12), (NONLINEAR, 12)])
def test_noise_in_a_network_against_instances(system, seeds):
    values = {g: "1/2", h: "1/2", r: "1/2", D: "1/3", a: HALF}
    run = system.cavity().evolve(values, until=5, paths=10000, seed=3)
    comparison = run.compare(system.simulate(values, N=300, seeds=seeds, until=5), [average(x[i, t] * x[i, s])])
    assert run.method == ("exact" if system is LINEAR else "paths")
    assert comparison.rows[0].rms < 2.5, str(comparison)


def test_paths_with_noise_agree_with_the_exact_run():
    theory, values = LINEAR.cavity(), {g: "1/2", h: "1/2", r: "1/2", D: "1/3", a: HALF}
    exact, paths = (theory.evolve(values, until=6, method=m)[average(x[i, t] ** 2)] for m in ("exact", "paths"))
    assert np.allclose(exact.astype(float), paths, rtol=0.06)


def test_masks_against_instances_and_full_batches_are_no_batches():
    half = RATE | {mask: {0: "1/2", 2: "1/2"}}
    theory = BATCHES.cavity()
    run = theory.evolve(half, until=5, paths=8000)
    comparison = run.compare(BATCHES.simulate(half, N=300, seeds=12, until=5), [TEST, average(lam[mu, t] ** 2)])
    assert all(row.rms < 2.5 for row in comparison), str(comparison)
    whole = theory.evolve(RATE | {mask: {1: 1}}, until=3, paths=8000)
    full = System([BATCHES.typed[0][0], Eq(lam[mu, t], residual)], initial=[Eq(w[i, 0], 0)])
    known = full.cavity().evolve(RATE, until=3)[TEST].astype(float)
    assert np.allclose(whole[TEST], known, rtol=0.05)
    assert abs(run[TEST][5] - known[3]) > 0.01


apart = Variable("h", mu, over=t)
SHARES = System(  # the same with a name for the sum: the mask multiplies a state
    [
        BATCHES.typed[0][0],
        Eq(lam[mu, t], mask[mu, t] * (apart[mu, t] - noise[mu])),
        Eq(apart[mu, t], residual),
    ],
    initial=[Eq(w[i, 0], 0)],
)
GIVEN = RATE | {mask: {0: "3/4", 4: "1/4"}, noise: {"1/2": "1/2", "-1/2": "1/2"}, eta: "1/8"}


def test_masks_that_multiply_states_keep_a_linear_law_exact():
    """The first step by hand; then the covariance of all weights of some large instances, without drawing a mask."""
    run = SHARES.cavity().evolve(GIVEN, until=8)
    assert run.method == "exact"
    # w_1 is eta alpha w_0, and noise of the variance eta^2 alpha <m^2> (1 + <e^2>)
    assert run[TEST][1] == (1 - Fraction(3, 8)) ** 2 + Fraction(1, 64) * 3 * 4 * Fraction(5, 4)
    size, curves = 240, []
    for seed in range(8):
        rng = np.random.default_rng([5, seed])
        data, labels = rng.standard_normal((3 * size, size)) / np.sqrt(size), rng.choice([-0.5, 0.5], 3 * size)
        far = rng.choice([-1.0, 1.0], size)
        step, push, spread, curve = np.eye(size) - data.T @ data / 8, data.T @ labels / 8, np.outer(far, far), [1.0]
        for _ in range(8):
            gaps = np.einsum("pi,ij,pj->p", data, spread, data, optimize=True) - 2 * labels * (data @ far) + labels**2
            cross = np.outer(step @ far + push / 2, push)
            spread = step @ spread @ step + cross + cross.T + 3 * data.T @ (gaps[:, None] * data) / 64
            far = step @ far + push
            curve.append(np.trace(spread) / size)
        curves.append(curve)
    mean, error = np.mean(curves, axis=0), np.std(curves, axis=0, ddof=1) / np.sqrt(len(curves))
    assert np.all(abs(run[TEST].astype(float) - mean) < 5 * error + 0.002)
    assert np.all(error < 0.02)
    whole = SHARES.cavity().evolve(GIVEN | {mask: {1: 1}}, until=8)
    assert abs(float(whole[TEST][8]) - mean[8]) > 0.05


def test_what_masks_add_and_is_not_known_is_sampled_or_refused():
    run = SHARES.cavity().evolve(GIVEN, until=3)
    with pytest.raises(UnsupportedLaw, match="contribution of masks"):
        assert run[average(noise[mu] ** 2 * lam[mu, t] ** 2)]
    assert run[average(noise[mu] * lam[mu, t])][0] == Fraction(-1, 4)
    twice = System([Eq(lam[mu, t], mask[mu, t] * apart[mu, t] + mask[mu, t]), *SHARES.typed[0][::2]],
                   initial=[Eq(w[i, 0], 0)])  # fmt: skip
    assert twice.cavity().evolve(RATE | {mask: {0: "3/4", 4: "1/4"}}, until=2).method == "exact"
    other = Variable("o", mu, over=t)
    both = [*SHARES.typed[0], Eq(other[mu, t], mask[mu, t] * apart[mu, t])]
    assert System(both, initial=[Eq(w[i, 0], 0)]).cavity().evolve(GIVEN, until=2, paths=400).method == "paths"


def test_the_same_seed_draws_the_same_noise():
    values = {g: 1, h: "1/2", r: 0, D: "1/3", a: HALF}
    first, second = (NONLINEAR.simulate(values, N=50, seeds=2, until=3)[average(x[i, t] ** 2)].samples for _ in "ab")
    assert (first == second).all()


@pytest.mark.parametrize("system", [NONLINEAR, BATCHES])
def test_every_claim_is_checked_and_holds(system):
    rows = list(system.cavity().derivation.verify(dps=15))
    assert all(row.ok for row in rows)
    assert all(row.checked for row in rows if row.step.claims)


def test_the_record_tells_of_noise_and_a_wrong_variance_is_noticed():
    derivation = LINEAR.cavity().derivation
    assert "ξ_i(t) is drawn anew at each time" in " ".join(derivation.to_text().split())
    step = derivation["feature.noise"]
    (claim,) = step.claims
    wrong = replace(step, claims=(Equation(claim.lhs, 2 * claim.rhs),))
    still = replace(step, claims=(Equation(claim.lhs, D),))
    assert [judge(one)[0].ok for one in (step, wrong, still)] == [True, False, False]


def test_what_noise_cannot_be_is_said():
    with pytest.raises(DeclarationError, match="without a time"):
        Noise("xi", i)
    with pytest.raises(DeclarationError, match="the variance"):
        Noise("xi", i, over=t, variance=-1)
    with pytest.raises(DeclarationError, match="up to that of"):
        System([Eq(x[i, t + 1], Sum(J[i, j] * x[j, t], (j, 1, N)) + xi[i, t - 1])], initial=START)
    with pytest.raises(DeclarationError, match="keep still"):
        System([Eq(x[i, t + 1], Sum(J[i, j] * x[j, t], (j, 1, N)))], initial=[Eq(x[i, 0], xi[i, 0])])
    with pytest.raises(UnsupportedLaw, match="without a state"):
        System([Eq(x[i, t + 1], Sum(J[i, j] * xi[j, t], (j, 1, N)) - x[i, t])], initial=START)
    with pytest.raises(ValuesError, match="array"):
        BATCHES.cavity().evolve(RATE | {mask: [1.0, 0.0]}, until=2)
    with pytest.raises(ValuesError):
        LINEAR.cavity().evolve({g: 1, h: 1, r: 0, D: -1, a: HALF}, until=2)
