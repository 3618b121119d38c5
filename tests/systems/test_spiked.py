"""Signals in noisy matrices, and conditions on sums, at a temperature: literature, mirror images, instances."""

import numpy as np
import pytest
from sympy import Eq, Rational, Sum, Symbol, log, sqrt
from sympy.stats import Normal

from symcavity import (
    Coupling,
    Feature,
    N,
    P,
    Problem,
    Quenched,
    Sites,
    UnsupportedLaw,
    ValuesError,
    Variable,
    average,
    expect,
    i,
    mu,
)
from symcavity.method.mirrors import mirrors

j, snr, beta = Symbol("j", integer=True), Symbol("lambda", positive=True), Symbol("beta", positive=True)
J, s = Coupling("J", between=(i, i), reciprocity=1), Feature("s", values=(-1, 1))
t = Quenched("t", i, law={1: Rational(1, 2), -1: Rational(1, 2)})
seen = Coupling("Y", between=(i, i), reciprocity=1, mean=sqrt(snr) * t[i] * t[j] / N)
MEAN = -sqrt(snr) * Sum(s[i] * Sum(seen[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
PAIRS = -Sum(s[i] * Sum(J[i, j] * s[j], (j, 1, N)), (i, 1, N)) / 2
SUM = sqrt(snr) * PAIRS - snr * Sum(t[i] * s[i], (i, 1, N)) ** 2 / (2 * N)
share = Rational(1, 10)
r, c = Feature("r", values=(-1, 0, 1)), Quenched("c", i, law={0: 1 - share, 1: share / 2, -1: share / 2})
SPARSE = (
    -sqrt(snr) * Sum(r[i] * Sum(J[i, j] * r[j], (j, 1, N)), (i, 1, N)) / 2
    - snr * Sum(c[i] * r[i], (i, 1, N)) ** 2 / (2 * N)
    + snr * Sum(r[i] ** 2, (i, 1, N)) ** 2 / (4 * N)
    + Sum(r[i] ** 2, (i, 1, N)) * log(2 * (1 - share) / share)
)
x, g = Feature("x"), Quenched("g", i, law=Normal("g", 0, 1))
GAUSS = (
    -sqrt(snr) * Sum(x[i] * Sum(J[i, j] * x[j], (j, 1, N)), (i, 1, N)) / 2
    - snr * Sum(g[i] * x[i], (i, 1, N)) ** 2 / (2 * N)
    + snr * Sum(x[i] ** 2, (i, 1, N)) ** 2 / (4 * N)
    + Sum(x[i] ** 2, (i, 1, N)) / 2
)
z = np.linspace(-12, 12, 6001)
weight = np.exp(-(z**2) / 2) / np.sum(np.exp(-(z**2) / 2))


def overlap(ratio, q=0.5):
    """The overlap of signs: ``q = <tanh(lambda q + sqrt(lambda q) z)>``."""
    for _ in range(500):
        q = float(np.sum(weight * np.tanh(ratio * q + np.sqrt(ratio * q) * z)))
    return q


@pytest.mark.parametrize("energy", [MEAN, SUM], ids=["mean", "sum"])
def test_one_of_two_mirror_images(energy):
    """Signs in a noisy matrix, as a mean of the couplings and as a squared sum: one number, and its image is named."""
    solution = Problem(energy).gibbs(1).cavity().solve({snr: 2})
    assert float(solution[average(expect(s[i]) ** 2)]) == pytest.approx(overlap(2), rel=1e-12)
    assert float(solution[average(expect(s[i]) * t[i])]) == pytest.approx(overlap(2), rel=1e-12)
    assert "sign symmetry is broken" in str(solution)
    assert len(solution.remarks) == 2


def test_nothing_is_seen_below_the_threshold():
    solution = Problem(SUM).gibbs(1).cavity().solve({snr: Rational(9, 10)})
    assert float(solution[average(expect(s[i]) ** 2)]) == pytest.approx(0, abs=1e-12)
    assert float(solution.stability) == pytest.approx(0.9, rel=1e-8)


def test_a_gaussian_signal_is_that_of_random_matrices():
    """The overlap of a Gaussian signal is ``1 - 1/lambda``, that of the first eigenvector (Baik, Ben Arous, Peche)."""
    solution = Problem(GAUSS).gibbs(1).cavity().solve({snr: 2})
    assert float(solution[average(expect(x[i]) ** 2)]) == pytest.approx(0.5, rel=1e-10)


def test_a_sparse_signal():
    """Rademacher signs among zeros: the scalar channel of the same prior; a multiplier keeps its value at rest."""
    theory = Problem(SPARSE).gibbs(1).cavity()
    q, ratio = 0.08, 120.0
    for _ in range(500):
        total = 0.0
        for value, chance in ((1.0, 0.1), (0.0, 0.9)):
            field = ratio * q * value + np.sqrt(ratio * q) * z
            one = 0.1 * np.exp(-ratio * q / 2)
            total += chance * value * float(np.sum(weight * one * np.sinh(field) / (one * np.cosh(field) + 0.9)))
        q = total
    assert float(theory.solve({snr: 120})[average(expect(r[i]) ** 2)]) == pytest.approx(q, rel=1e-9)
    rest = theory.solve({snr: 40})  # below the threshold, at 100
    assert float(rest["nu_2"]) == pytest.approx(2, rel=1e-6)
    assert float(rest[average(r[i] ** 2)]) == pytest.approx(0.1, rel=1e-6)


def test_mirrors_are_seen_in_the_declaration():
    """A field takes the symmetry away; what losses hear of a teacher alone turns with the states."""
    assert mirrors(Problem(SUM).gibbs(1).cavity())
    assert not mirrors(Problem(SUM - Sum(s[i], (i, 1, N))).gibbs(1).cavity())
    y = Coupling("y")
    h, u = (Sum(y[mu, i] * q[i], (i, 1, N)) for q in (s, t))
    (image,) = mirrors(Problem(Sum((h**2 - u**2) ** 2, (mu, 1, P))).gibbs(1).cavity())
    assert {str(symbol) for symbol in image} == {"S_lambda_to_u_3", "q_t_m"}


def test_signals_by_enumeration():
    """All configurations, of each two mirror images the one whose overlap is positive."""
    problem = Problem(MEAN).gibbs(1)
    sim = problem.simulate({snr: 4}, N=[8, 12, 16], seeds=30)
    theory = problem.cavity()
    assert theory.compare(sim, [average(expect(s[i]) ** 2)]).agrees(4)
    assert abs(sim.free_energy.z(float(theory.solve({snr: 4})[theory.free_energy]))) < 3


def test_a_sum_that_is_held():
    """A magnet of random pairs at a given magnetisation, by a condition on a sum, which may idle."""
    held = Problem(PAIRS, [Eq(Sum(s[i], (i, 1, N)), N / 2)]).gibbs(beta)
    above = Problem(PAIRS, [Sum(s[i], (i, 1, N)) >= N / 2]).gibbs(beta)
    below = Problem(PAIRS, [Sum(s[i], (i, 1, N)) <= N / 2]).gibbs(beta)
    q = 0.3
    nu = 1.0
    for _ in range(300):
        field = 0.5 * (np.sqrt(q) * z + nu)
        q, m, slope = (float(np.sum(weight * e)) for e in (np.tanh(field) ** 2, np.tanh(field), np.cosh(field) ** -2.0))
        nu += (0.5 - m) / (0.5 * slope)
    at = {beta: Rational(1, 2)}
    for problem in (held, above):
        solution = problem.cavity().solve(at)
        assert float(solution[average(expect(s[i]) ** 2)]) == pytest.approx(q, rel=1e-10)
        assert float(solution["nu"]) == pytest.approx(nu, rel=1e-10)
    assert float(below.cavity().solve(at)[average(s[i])]) == pytest.approx(0, abs=1e-12)
    sim = held.simulate(at, N=[8, 12, 16], seeds=30)
    assert held.cavity().compare(sim, [average(expect(s[i]) ** 2)]).agrees(4)
    exact, drawn = (above.simulate(at, N=12, seeds=2, method=how) for how in ("enumeration", "sampling"))
    assert np.max(np.abs(exact[average(s[i])].samples - drawn[average(s[i])].samples)) < 0.03
    with pytest.raises(ValuesError, match="meets"):
        held.simulate(at, N=7, seeds=1)
    with pytest.raises(UnsupportedLaw, match="no move of one site"):
        held.simulate(at, N=8, seeds=1, method="sampling")


ABOVE = Problem(PAIRS, [Sum(s[i], (i, 1, N)) >= N / 2])


@pytest.mark.parametrize("problem", [Problem(MEAN), ABOVE], ids=["mean", "sum"])
def test_every_step_is_verified(problem):
    derivation = problem.gibbs(1).cavity().derivation
    assert all(verdict.ok is not False for row in derivation.verify() for verdict in row.verdicts)


def test_two_factors_of_a_matrix():
    """A sparse factor beside one of signs: state evolution by hand; numbers of sites in the energy are ratios."""
    a, K = Sites("a", "K", "column")
    u, v, p = Feature("u", values=(0, 1)), Variable("v", a, values=(-1, 1)), Rational(1, 5)
    tu, tv = Quenched("tu", i, law={1: p, 0: 1 - p}), Quenched("tv", a, law={1: Rational(1, 2), -1: Rational(1, 2)})
    matrix = Coupling("Y", between=(i, a), mean=sqrt(snr) * tu[i] * tv[a] / N)
    likelihood = -sqrt(snr) * Sum(u[i] * Sum(matrix[i, a] * v[a], (a, 1, K)), (i, 1, N))
    own = snr * K / (2 * N) * Sum(u[i] ** 2, (i, 1, N)) + log((1 - p) / p) * Sum(u[i], (i, 1, N))
    theory = Problem(likelihood + own).gibbs(1).cavity()
    found = theory.solve({snr: 8, K / N: Rational(3, 2)})
    sparse, signs = 0.1, 0.5
    for _ in range(500):
        signs = np.sum(weight * np.tanh(8 * sparse + np.sqrt(8 * sparse) * z))
        seen_of = 12 * signs
        sparse = 0.2 * np.sum(weight / (1 + 4 * np.exp(-seen_of / 2 - np.sqrt(seen_of) * z)))
    assert float(found[average(expect(u[i]) ** 2)]) == pytest.approx(sparse, rel=1e-9)
    assert float(found[average(expect(u[i]) * tu[i])]) == pytest.approx(sparse, rel=1e-9)
    assert float(found[average(expect(v[a]) * tv[a])]) == pytest.approx(signs, rel=1e-9)
    assert all(row.ok for row in theory.derivation.verify())
