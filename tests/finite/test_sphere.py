"""Lowest configurations on spheres and in balls: against minimisers that know nothing of eigenvectors, and theory."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sympy import Abs, Eq, Rational, Sum, Symbol, symbols

from symcavity import Coupling, Feature, N, P, Problem, alpha, average, i, mu
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.finite.sphere import SphereEnergy, lowest_on_sphere

w, x, j, c = Feature("w"), Coupling("x"), symbols("j", integer=True), Symbol("c", positive=True)
J = Coupling("J", between=(i, i), reciprocity=1)
pairs = -Sum(J[i, j] * w[i] * w[j], (j, 1, N), (i, 1, N)) / 2
squares = Sum(w[i] ** 2, (i, 1, N))


def spherical(field, conditions):
    return Problem(pairs - field * Sum(w[i], (i, 1, N)), conditions)


def energy(form, y):
    return form.slope @ y + y @ form.matrix @ y / 2


@pytest.mark.parametrize("equality", [True, False])
@pytest.mark.parametrize("kind", ["free", "no slope", "no slope along the lowest", "convex"])
def test_against_descent_from_many_points(kind, equality):
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(5, 5))
    matrix = matrix + matrix.T + (12 if kind == "convex" else 0) * np.eye(5)
    slope = rng.normal(size=5) * (0 if kind == "no slope" else 1)
    weights = np.ones(5) if "along" in kind else rng.uniform(0.5, 2, 5)
    if "along" in kind:
        lowest = np.linalg.eigh(matrix)[1][:, 0]
        slope = 0.1 * (slope - lowest * (lowest @ slope))
    form = SphereEnergy(matrix, slope, weights, 3.0, equality)
    found = lowest_on_sphere(form)
    length = weights @ found**2
    assert length == pytest.approx(3) if equality else length <= 3 * (1 + 1e-12)
    best = np.inf
    for _ in range(30):
        size = {"type": "eq" if equality else "ineq", "fun": lambda y: 3 - weights @ y**2}
        best = min(best, minimize(lambda y: energy(form, y), rng.normal(size=5), constraints=size, tol=1e-12).fun)
    assert energy(form, found) == pytest.approx(best, abs=1e-5 * abs(best))  # as far as descents find it
    around = found + 0.1 * rng.normal(size=(1000, 5))  # of the same length, near the lowest one: none is lower
    around *= np.sqrt(length / (around**2 @ weights))[:, None]
    others = around @ form.slope + np.einsum("ki,ij,kj->k", around, form.matrix, around) / 2
    assert np.all(others >= energy(form, found) - 1e-12 * abs(best))


@pytest.mark.parametrize("field", [0, Rational(1, 2)])
def test_a_spherical_spin_glass(field):
    """In a field its energy is ``-sqrt(1 + field^2)`` per site; without one half of the lowest eigenvalue."""
    problem = spherical(field, [Eq(squares, N)])
    sample = problem.simulate({}, N=150, seeds=10)
    assert sample.method == "eigenvectors"
    found = sample.free_energy
    assert float(found) == pytest.approx(-np.sqrt(1 + float(field) ** 2), abs=4 * found.stderr + 0.02)
    assert float(sample[average(w[i] ** 2)]) == pytest.approx(1)


def test_a_ball_with_losses_and_other_units():
    """Data are fitted within a ball: at its edge where the condition is tight, and inside."""
    data = Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2
    for size, tight in ((Rational(1, 10), True), (100, False)):
        problem = Problem(data, [4 * squares <= 4 * size * N])
        sample = problem.simulate({alpha: 2}, N=40, seeds=2)
        mean = float(sample[average(w[i] ** 2)])
        assert mean == pytest.approx(float(size)) if tight else mean < 50
        assert sample.method == "eigenvectors"


def test_soft_spins_that_meet_in_pairs():
    """A quartic price of each: downhill from all corners, by a minimizer that is told the couplings alone."""
    (one,) = Problem(pairs + Sum(w[i] ** 4, (i, 1, N)) / 4).simulate({}, N=6, seeds=1)
    ((f, factor),) = one.w.pairs.items()
    couplings = one.w.instance.matrix(f)

    def cost(v):
        return -factor * v @ couplings @ v / 2 + np.sum(v**4) / 4

    corners = np.array(np.meshgrid(*[(-1.0, 1.0)] * 6)).reshape(6, -1).T
    (found,) = one.measure.x.values()
    assert cost(found[0]) == pytest.approx(min(minimize(cost, v, method="BFGS").fun for v in corners), rel=1e-6)


def test_what_is_refused():
    with pytest.raises(UnsupportedLaw):
        Problem(pairs + Sum(Abs(w[i]) ** 3, (i, 1, N))).simulate({}, N=10, seeds=1)
    with pytest.raises(ValuesError):
        spherical(1, [Eq(squares, N)]).simulate({}, N=10, seeds=1, method="annealing")
    with pytest.raises(ValuesError):
        lowest_on_sphere(SphereEnergy(np.eye(2), np.ones(2), np.ones(2), -1.0, True))
