"""How observables scatter between instances that hear a teacher by itself: by instances with exact minima."""

import numpy as np
import pytest
from sympy import Abs, Max, Rational, S, Sum, Symbol, exp, log, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, alpha, average, i, mu
from symcavity.method.fluctuations import minimum_of
from symcavity.method.moved import Moved

x, w, t = Coupling("x"), Feature("w"), Quenched("t", i)
gamma, half = Symbol("gamma", positive=True), Rational(1, 2)
told, heard = Sum(x[mu, i] * t[i], (i, 1, N)), Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
OBSERVED = [average(w[i] ** 2), average(w[i] * t[i]), "objective"]
SIZE, SPREAD = 80, {1: half, 2: half}


def theory(label):
    problem = ConvexProblem(Sum((label(told) - heard) ** 2 / 2, (mu, 1, P)) + gamma * weights)
    return problem.cavity().solve({alpha: 2, gamma: half, t: SPREAD})


def covariances(solution, observed=OBSERVED):
    return np.array([[float(solution.covariance(a, b)) for b in observed] for a in observed])


@pytest.fixture(scope="module")
def signs():
    return theory(sign)


def instances(label, count):
    """N times the covariances of three observables, and their errors: of teachers whose norm scatters."""
    rng, rows = np.random.default_rng(8), []
    for _ in range(count):
        data, teacher = rng.standard_normal((2 * SIZE, SIZE)) / np.sqrt(SIZE), rng.choice([1.0, 2.0], SIZE)
        fields = data @ teacher
        labels = label(fields)
        found = np.linalg.solve(data.T @ data + np.eye(SIZE) / 2, data.T @ labels)
        least = ((labels - data @ found) ** 2).sum() / 2 + found @ found / 4
        rows.append((found @ found / SIZE, found @ teacher / SIZE, least / SIZE))
    gaps = np.array(rows) - np.mean(rows, axis=0)
    products = SIZE * gaps[:, :, None] * gaps[:, None, :]
    return products.mean(axis=0), products.std(axis=0) / np.sqrt(count)


@pytest.mark.parametrize(("label", "counted"), [(sign, np.sign), (Abs, abs)])
def test_fits_to_a_teacher_scatter_as_instances_do(label, counted):
    """Signs, which do not know the teacher's norm, and absolute values, which do; all covariances of three.

    That of the minimum is known by its single sites too.
    """
    solution = theory(label)
    known = covariances(solution)
    assert known[2, 2] == pytest.approx(float(solution.variance()), rel=1e-10)
    seen, errors = instances(counted, 3000)
    scale = np.sqrt(np.outer(np.diag(known), np.diag(known)))
    assert np.all(abs(seen - known) < 4 * errors + 2 * scale / SIZE)


def test_smooth_losses_of_signs_know_their_minimum_by_both_ways():
    problem = ConvexProblem(Sum(log(1 + exp(-sign(told) * heard)), (mu, 1, P)) + gamma * weights)
    solution = problem.cavity().solve({alpha: 2, gamma: half, t: SPREAD})
    assert float(solution.covariance("objective", "objective")) == pytest.approx(float(solution.variance()), rel=1e-9)


@pytest.mark.parametrize("broken", ["tilted", "turned"])
def test_a_part_that_is_dropped_is_seen(signs, monkeypatch, broken):
    """The sabotage: what copies share through their overlaps with the teacher."""
    observed = OBSERVED[:2]
    known = covariances(signs, observed)
    monkeypatch.setattr(Moved, broken, lambda *_: S.Zero)
    assert not np.allclose(covariances(signs, observed), known, rtol=0.02)


def test_the_minimum_of_a_site_has_the_variable_that_bounds_a_kink():
    """Its formulas are linear in the fields, region by region; the kink itself would be cut anew in each of them."""
    margins = ConvexProblem(Sum(Max(0, 1 - sign(told) * heard), (mu, 1, P)) + gamma * weights).cavity()
    found = [minimum_of(margins, site) for site in margins.inserted.values()]
    assert not any(e.has(Max) for e in found)
    ((bound, kink),) = margins.system.record.auxiliary
    assert kink.has(Max)
    assert any(e.has(bound) for e in found)
