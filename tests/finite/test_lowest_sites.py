"""Lowest configurations of continuous states: penalties that are squares by cases, against all of their pieces."""

import warnings
from itertools import product

import numpy as np
import pytest
from sympy import Abs, Eq, Max, Ne, Piecewise, Rational, Sum, exp

from symcavity import Coupling, Feature, N, NotConverged, P, Problem, Quenched, UnsupportedLaw, alpha, average, i, mu

x, w, t, e = Coupling("x"), Feature("w"), Quenched("t", i), Quenched("e", mu)
half, size = Rational(1, 2), Abs(w[i])
VALUES = {alpha: 2, t: {0: Rational(4, 5), 2: Rational(1, 5)}, e: {half: half, -half: half}}


def regression(penalty):
    error = Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N)) + e[mu]
    return Problem(Sum(error**2, (mu, 1, P)) / 2 + Sum(penalty, (i, 1, N)))


def minimax(a, scale=half):
    """MCP: a slope that falls to zero at ``a*scale``."""
    return Piecewise((scale * size - w[i] ** 2 / (2 * a), size <= a * scale), (a * scale**2 / 2, True))


def clipped(a, scale=half):
    """SCAD: a modulus, a square that bends down, a constant."""
    middle = (2 * a * scale * size - w[i] ** 2 - scale**2) / (2 * (a - 1))
    return Piecewise((scale * size, size <= scale), (middle, size <= a * scale), (scale**2 * (a + 1) / 2, True))


COUNTED = Piecewise((0, Eq(w[i], 0)), (Rational(1, 8), True)) + w[i] ** 2 / 10


def parts_of(one):
    """The couplings and what the sums miss at zero weights."""
    (f,) = (f for f in one.w.system.laws[mu_kind(one)].fields if f.states())
    matrix = one.w.instance.matrix(f)
    told, noise = one.w.quenched[t[i]], one.w.quenched[e[mu]]
    return matrix, noise - matrix @ told


def mu_kind(one):
    (kind,) = one.w.heard
    return kind


def test_the_best_subset_of_all():
    """Of 2**10 subsets of weights, each with its ridge, the best."""
    sim = regression(COUNTED).simulate(VALUES, N=10, seeds=6)
    assert "by descent: energies are upper bounds" in str(sim)
    for one, seen in zip(sim, sim.free_energy.samples, strict=True):
        matrix, rest = parts_of(one)
        best = np.inf
        for kept in product((False, True), repeat=10):
            own = matrix[:, np.array(kept)]
            v = np.linalg.solve(own.T @ own + np.eye(own.shape[1]) / 5, -own.T @ rest)
            best = min(best, np.sum((own @ v + rest) ** 2) / 2 + np.sum(v**2) / 10 + sum(kept) / 8)
        assert 10 * seen == pytest.approx(best, rel=1e-10)


def test_the_lowest_of_all_pieces_of_a_penalty():
    """A weight is zero, on one of two squares that bend down, or on one of two constants: 5**6 linear systems."""
    a, scale = 0.8, 0.5
    sim = regression(minimax(Rational(4, 5))).simulate(VALUES, N=6, seeds=6)
    rows = np.array(list(product(range(5), repeat=6)))  # zero, below, above, far below, far above
    slope = np.array([0, -scale, scale, 0, 0])[rows]
    bend = np.array([0, -1 / a, -1 / a, 0, 0])[rows]
    for one, seen in zip(sim, sim.free_energy.samples, strict=True):
        matrix, rest = parts_of(one)
        square, free = matrix.T @ matrix, (rows > 0)[:, :, None]
        whole = np.where(free, square + np.eye(6) * bend[:, :, None], np.eye(6))
        v = np.linalg.solve(whole, np.where(free[:, :, 0], -(matrix.T @ rest) - slope, 0.0)[:, :, None])[:, :, 0]
        penalty = np.where(np.abs(v) <= a * scale, scale * np.abs(v) - v**2 / (2 * a), a * scale**2 / 2)
        energy = np.sum((v @ matrix.T + rest) ** 2, axis=1) / 2 + penalty.sum(axis=1)
        assert 6 * seen == pytest.approx(energy.min(), rel=1e-10)


@pytest.mark.parametrize("penalty", [minimax(3), minimax(Rational(4, 5)), clipped(Rational(37, 10)), COUNTED])
def test_instances_against_the_theory(penalty):
    """Where a site has one minimum and where it jumps; the energy of one state is close to the minimum."""
    problem = regression(penalty)
    theory = problem.cavity()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = theory.solve(VALUES)
    sim = problem.simulate(VALUES, N=40, seeds=12, sweeps=200)
    for observable in (average(w[i] ** 2), average(Ne(w[i], 0)), average(penalty)):
        assert abs(sim[observable].z(float(solution[observable]))) < 3.5
    assert abs(sim.free_energy.z(float(solution[theory.free_energy]))) < 3.5


def test_penalties_that_are_no_squares_are_refused():
    with pytest.raises(UnsupportedLaw, match=r"cannot be ordered|no number"):
        regression(1 - exp(-Abs(w[i]))).simulate(VALUES, N=6, seeds=1)


def test_an_energy_that_falls_without_end_along_one_site_is_refused():
    """Far out the penalty falls faster than the data hold."""
    gap = 1 - Sum(x[mu, i] * w[i], (i, 1, N))
    falling = Sum(gap**2, (mu, 1, P)) / 2 - 2 * Sum(Max(0, Abs(w[i]) - 1) ** 2, (i, 1, N))
    with pytest.raises(NotConverged, match="falls without end along w"):
        Problem(falling).simulate({alpha: Rational(1, 2)}, N=12, seeds=2)
