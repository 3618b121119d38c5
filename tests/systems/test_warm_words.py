"""Measures in the obvious spelling: budgets, spheres, codes, and the equations of Thouless, Anderson and Palmer."""

import numpy as np
import pytest
from sympy import DiracDelta, Eq, Heaviside, Max, Rational, Sum, Symbol, exp, log, sign, tanh
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Global,
    N,
    P,
    Problem,
    Quenched,
    System,
    alpha,
    average,
    expect,
    i,
    mu,
)

j, beta, field = Symbol("j", integer=True), Symbol("beta", positive=True), Symbol("H", real=True)
sigma = Symbol("sigma", positive=True)
x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))
J = Coupling("J", between=(i, i), reciprocity=1)
h, hs = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * s[i], (i, 1, N))
square = Sum(w[i] ** 2, (i, 1, N)) / 2
t = Quenched("t", i, law={1: Rational(1, 2), -1: Rational(1, 2)})
xi, u = Quenched("xi", mu, law=Normal("xi", 0, 1)), Sum(x[mu, i] * t[i], (i, 1, N))
second, first = average(w[i] ** 2), average(expect(w[i]) ** 2)


def test_thouless_anderson_and_palmer():
    """Their equations, a system with the term of Onsager, have the overlap and the stability of the measure."""
    m, G = Feature("m"), Global("G")
    heard = field + Sum(J[i, j] * m[j], (j, 1, N)) - beta * G * m[i]
    tap = System([Eq(m[i], tanh(beta * heard)), Eq(Sum(1 - m[i] ** 2, (i, 1, N)), N * G)])
    pairs = Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
    at = {beta: Rational(4, 5), field: Rational(1, 2)}
    one = tap.cavity().solve(at)
    other = Problem(-pairs - field * Sum(s[i], (i, 1, N))).gibbs(beta).cavity().solve(at)
    assert float(one[average(m[i] ** 2)]) == pytest.approx(float(other[average(expect(s[i]) ** 2)]), rel=1e-12)
    assert float(one.stability) == pytest.approx(float(other.stability), rel=1e-10)


def test_codes_as_equations_of_means():
    """Signs from noisy projections: means by approximate message passing as a system, and as the measure."""
    measure = Problem(Sum((hs - u - sigma * xi[mu]) ** 2, (mu, 1, P)) / (2 * sigma**2)).gibbs(1)
    q = float(measure.cavity().solve({alpha: 1, sigma: 1})[average(expect(s[i]) ** 2)])
    m, r = Feature("m"), Datum("r")
    chi, K = Global("chi", positive=True), Global("K", positive=True)
    passing = System(
        [
            Eq(r[mu] * sigma**2, Sum(x[mu, i] * (t[i] - m[i]), (i, 1, N)) + sigma * xi[mu]),
            Eq(m[i], tanh(Sum(x[mu, i] * r[mu], (mu, 1, P)) + K * m[i])),
            Eq(Sum(1 - m[i] ** 2, (i, 1, N)), N * chi),
            Eq(N * K * (sigma**2 + chi), P),
        ]
    )
    solution = passing.cavity().solve({alpha: 1, sigma: 1})
    assert float(solution[average(m[i] ** 2)]) == pytest.approx(q, rel=1e-8)
    assert float(solution[chi]) == pytest.approx(1 - q, rel=1e-8)


@pytest.mark.parametrize(
    ("problem", "observable", "power"),
    [
        (ConvexProblem(Sum(log(1 + exp(-h)), (mu, 1, P)) + square), first, 1),
        (ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 4 / 4 + w[i] ** 2 / 2, (i, 1, N))), second, 1),
        (ConvexProblem(Sum(h**2, (mu, 1, P)) / 2 + square, [Eq(Sum(w[i], (i, 1, N)), N)]), second, 1),
    ],
    ids=["logistic", "quartic", "portfolio"],
)
def test_a_large_beta_is_extrapolated_to_the_minimum(problem, observable, power):
    """Laplace: what is left goes as 1/beta, so that two temperatures tell the minimum up to 1/beta**2."""
    cold = float(problem.cavity().solve({alpha: 2})[second])
    theory = problem.gibbs(beta).cavity()
    one, two = (float(theory.solve({alpha: 2, beta: b})[observable]) for b in (100, 200))
    assert abs(one - cold) > 1e-4
    assert 2**power * two - one == pytest.approx(cold, rel=3e-4)


def test_a_warm_portfolio():
    """A budget at a temperature: the minimum and beside it the thermal variance of the resolvent."""
    problem = ConvexProblem(Sum(h**2, (mu, 1, P)) / 2 + square, [Eq(Sum(w[i], (i, 1, N)), N)])
    solution = problem.gibbs(beta).cavity().solve({alpha: 2, beta: 3})
    rng = np.random.default_rng(4)
    couplings = rng.normal(size=(3000, 1500)) / np.sqrt(1500)
    inverse = np.linalg.inv(couplings.T @ couplings + np.eye(1500))
    lowest = inverse.sum(axis=1) / inverse.mean() / 1500
    assert float(solution[average(w[i])]) == pytest.approx(1, rel=1e-12)
    assert float(solution[second]) == pytest.approx(np.mean(lowest**2) + np.trace(inverse) / 4500, rel=1e-2)


def test_a_spherical_magnet_in_a_field():
    """Kosterlitz, Thouless and Jones: ``q = beta**2 (q + H**2) (1 - q)**2``."""
    energy = -Sum(w[i] * Sum(J[i, j] * w[j], (j, 1, N)), (i, 1, N)) / 2 - field * Sum(w[i], (i, 1, N))
    theory = Problem(energy, [Eq(Sum(w[i] ** 2, (i, 1, N)), N)]).gibbs(beta).cavity()
    q = float(theory.solve({beta: 2, field: Rational(1, 2)})[first])
    assert q == pytest.approx(4 * (q + 0.25) * (1 - q) ** 2, rel=1e-12)


def test_all_signs_that_make_no_error():
    """Gyorgyi: signs learn from a teacher of signs, by all that agree with it; nothing is minimised."""
    y = Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)
    solution = Problem(0, [y[mu] * hs >= 0]).gibbs(1).cavity().solve({alpha: 1})
    overlap = float(solution[average(expect(s[i]) * t[i])])
    assert any("other solution of higher free energy, unstable" in r for r in solution.remarks)  # at .991
    assert overlap == pytest.approx(float(solution[average(expect(s[i]) ** 2)]), rel=1e-9)
    z = np.linspace(-12, 12, 6001)
    weight = np.exp(-(z**2) / 2) / np.sum(np.exp(-(z**2) / 2))
    from scipy.stats import norm

    scale = np.sqrt(overlap / (1 - overlap))
    gain = 2 / (1 - overlap) * np.sum(weight * np.exp(2 * norm.logpdf(scale * z) - norm.logcdf(scale * z)))
    assert overlap == pytest.approx(np.sum(weight * np.tanh(gain + np.sqrt(gain) * z)), rel=1e-8)


def test_a_magnet_with_a_mean():
    """Two mirror images beside a paramagnet of higher free energy: one is shown, and the rest is told."""
    energy = -Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2 - Sum(s[i], (i, 1, N)) ** 2 / N
    solution = Problem(energy).gibbs(beta).cavity().solve({beta: Rational(9, 10)})
    assert float(solution[average(s[i])]) > 0.5
    assert any("mirror" in r for r in solution.remarks)
    assert any("higher free energy" in r for r in solution.remarks)


def test_a_shared_offset():
    """A global variable of a convex problem: the mean energy is stationary in it."""
    b, y = Global("b"), Quenched("y", mu, law={1: Rational(1, 2), 3: Rational(1, 2)})
    problem = ConvexProblem(Sum((y[mu] - h - b) ** 2, (mu, 1, P)) / 2 + square)
    solution, cold = problem.gibbs(beta).cavity().solve({alpha: 1, beta: 2}), problem.cavity().solve({alpha: 1})
    assert float(solution[b]) == pytest.approx(2, rel=1e-10)
    assert float(solution[first]) == pytest.approx(float(cold[second]), rel=1e-10)


@pytest.mark.parametrize("place", ["a margin", "a step"])
def test_places_that_a_variable_moves(place):
    """A margin that is bought, and the threshold of a count: least is the free energy of theories at given places."""
    k, v = Symbol("k", real=True), {alpha: Rational(1, 2), beta: 2}
    moved = Global("moved")

    def declared(at, more=0):
        if place == "a margin":
            return Problem(square + more, [h >= at]).gibbs(beta).cavity()
        return Problem(Sum(Heaviside(at - hs), (mu, 1, P)) + more).gibbs(beta).cavity()

    solution = declared(moved, N * moved**2 - N * moved).solve(v)
    found, given = float(solution["moved"]), declared(k)
    places = (found - 0.01, found, found + 0.01)
    below, here, above = (float(given.solve({**v, k: y})[given.free_energy]) + y**2 - y for y in places)
    assert here < min(below, above)
    assert (above - below) / 0.02 == pytest.approx(0, abs=1e-4)


def test_hinges_with_the_labels_of_a_teacher():
    """Labels are the sign of a field that the state does not hear: its response is averaged by parts, by instances."""
    loss = Sum(Max(0, 1 - sign(u) * h), (mu, 1, P)) + sigma * square
    warm, values = ConvexProblem(loss).gibbs(beta), {alpha: 2, sigma: "3/10", beta: 1}
    theory = warm.cavity()
    assert not any(e.difference.has(DiracDelta) for e in theory.equations)
    found = theory.compare(warm.simulate(values, N=60, seeds=6), [average(t[i] * expect(w[i])), first])
    assert all(abs(row.z) < 4.5 for row in found.rows)


def test_logistic_losses_with_the_labels_of_a_teacher_hold_no_delta():
    loss = Sum(log(1 + exp(-sign(u) * h)), (mu, 1, P)) + sigma * square
    assert not any(e.difference.has(DiracDelta) for e in ConvexProblem(loss).gibbs(beta).cavity().equations)


def test_pairs_of_bits_are_pairs_of_spins():
    """States of zero and one that meet in pairs as 2 b - 1: the magnet, its free energy and every claim."""
    bit = Feature("b", values=(0, 1))
    J = Coupling("J", between=(i, i), reciprocity=1, mean=1 / (2 * N))

    def magnet(spin):
        here, there = spin, spin.xreplace({s[i]: s[j], bit[i]: bit[j]})
        return Problem(-Sum(here * (Sum(J[i, j] * there, (j, 1, N)) / 2 + Rational(1, 2)), (i, 1, N))).gibbs(1)

    found = []
    for spin in (s[i], 2 * bit[i] - 1):
        theory = magnet(spin).cavity()
        solution = theory.solve({})
        found.append([solution[o] for o in (average(spin), average(expect(spin) ** 2), theory.free_energy)])
    assert found[1] == pytest.approx(found[0], rel=1e-12)
    verdict = theory.derivation.verify()
    assert verdict
    assert not verdict.unchecked


def test_the_loss_of_the_data_as_it_is_typed():
    """The training error of a posterior: in the theory, in messages, in samples, and by the law of Marchenko-Pastur."""
    y = Quenched("y", mu, law=Normal("y", 0, 1))
    residue = Sum(x[mu, i] * w[i], (i, 1, N)) - y[mu]
    problem = ConvexProblem(Sum(residue**2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2).gibbs(2)
    loss, product = average(residue**2), average(Sum(x[mu, i] * w[i], (i, 1, N)) * y[mu])
    solution = problem.cavity().solve({alpha: 2})
    rng = np.random.default_rng(1)
    found = []
    for _ in range(4):
        X, labels = rng.normal(size=(2000, 1000)) / np.sqrt(1000), rng.normal(size=2000)
        inverse = np.linalg.inv(X.T @ X + np.eye(1000))
        mean = inverse @ X.T @ labels
        spread = np.trace(X @ inverse @ X.T) / 2  # of a Gaussian at beta = 2
        found.append([(np.sum((X @ mean - labels) ** 2) + spread) / 2000, labels @ X @ mean / 2000])
    assert [float(solution[o]) for o in (loss, product)] == pytest.approx(np.mean(found, axis=0), rel=0.03)
    run = problem.message_passing({alpha: 2}, N=400, seeds=4)
    last = run[loss][-1]
    assert last.mean == pytest.approx(float(solution[loss]), abs=4 * last.stderr)
    with pytest.raises(DeclarationError, match=r"declaration: Sum\(w\[i\]\*x\[mu, i\]"):
        solution[average(Sum(x[mu, i] * t[i] * w[i], (i, 1, N)))]
