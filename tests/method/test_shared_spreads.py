"""How observables scatter between instances where all sites share variables: multipliers of sums, and intercepts."""

import mpmath
import numpy as np
import pytest
from sympy import Abs, Eq, Max, Rational, Sum, Symbol, exp, log
from sympy.stats import Normal

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    P,
    Quenched,
    UnsupportedLaw,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.evaluate.solutions import spreads
from symcavity.method.perturbed import perturbed

x, w, y, r = Coupling("x"), Feature("w"), Quenched("y", mu), Quenched("r", i)
gamma, b = Symbol("gamma", positive=True), Global("b")
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = Sum(w[i] ** 2, (i, 1, N)) / 2
risk = Sum(heard**2, (mu, 1, P)) / 2 + gamma * weights
q, half = average(w[i] ** 2), Rational(1, 2)
SIZE = {gamma: half, alpha: 2}


def eigenvalues(function):
    """An average over the eigenvalues of X'X with independent entries, of twice as many data as features."""
    low, high = (1 - mpmath.sqrt(2)) ** 2, (1 + mpmath.sqrt(2)) ** 2

    def weighted(angle):
        s = (low + high) / 2 - (high - low) / 2 * mpmath.cos(angle)
        return ((high - low) / 2 * mpmath.sin(angle)) ** 2 / (2 * mpmath.pi * s) * function(s)

    return mpmath.quad(weighted, [0, mpmath.pi / 2, mpmath.pi])


@pytest.fixture(scope="module")
def portfolio():
    problem = ConvexProblem(risk, [Eq(Sum(w[i], (i, 1, N)), N)])
    theory = problem.cavity()
    return theory, theory.solve(SIZE)


def quadratic_forms():
    """The means of a_k = u'A^k u for a unit vector u and A = (X'X + 1/2)^-1, and N times their covariances.

    X is as likely in all directions, so that the vector is one of the sphere: 2 (<A^(j+k)> - <A^j><A^k>), of the
    eigenvalues, whose own averages do not scatter to this order.
    """
    power = [eigenvalues(lambda s, k=k: (s + 0.5) ** -k) for k in range(5)]
    return power, [[2 * (power[j + k] - power[j] * power[k]) for k in (1, 2)] for j in (1, 2)]


def test_a_portfolio_by_random_matrices(portfolio):
    """With w = nu A 1, nu = 1/a_1 and q = a_2/a_1^2; E = nu/2."""
    _, solution = portfolio
    (_, one, two, *_), spread = quadratic_forms()
    slopes = {"nu": (-1 / one**2, 0), "objective": (-1 / one**2 / 2, 0), q: (-2 * two / one**3, 1 / one**2)}
    for first, left in slopes.items():
        for second, right in slopes.items():
            expected = sum(left[j] * spread[j][k] * right[k] for j in range(2) for k in range(2))
            assert float(solution.covariance(first, second)) == pytest.approx(float(expected), rel=1e-11)


def test_what_a_condition_holds_does_not_scatter(portfolio):
    _, solution = portfolio
    assert abs(float(solution.variance(average(w[i])))) < 1e-12 * float(solution.variance(q))
    taxed = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2, [Sum(w[i] ** 2, (i, 1, N)) <= N])
    held = taxed.cavity().solve({alpha: 2, y: {2: half, -2: half}})
    assert abs(float(held.variance(q))) < 1e-12 * float(held.variance("nu"))


def test_a_multiplier_that_is_held_gives_another_scatter(portfolio):
    """The negative control: the tilt of the weights is a number, and their mean may move."""
    _, solution = portfolio
    tilt = Symbol("c", positive=True)
    tilted = ConvexProblem(risk - tilt * Sum(w[i], (i, 1, N)))
    held = tilted.cavity().solve({**SIZE, tilt: str(solution["nu"])})
    assert float(held[q]) == pytest.approx(float(solution[q]), rel=1e-12)
    assert float(held.variance(q)) > 2 * float(solution.variance(q))


@pytest.mark.parametrize("broken", ["_closure", "_slope"])
def test_a_part_that_is_dropped_is_seen(monkeypatch, broken):
    """The sabotage: order parameters that a shared variable leaves as they are, and a condition that they leave."""
    theory = ConvexProblem(risk, [Eq(Sum(w[i], (i, 1, N)), N), w[i] >= 0]).cavity()
    solution, (slopes,) = theory.solve(SIZE), perturbed(theory).shared.values()
    honest, known = getattr(spreads.Spreads, broken), float(solution.variance(q))
    assert abs(float(solution.variance(average(w[i])))) < 1e-12 * known

    def without(self, one, other):
        kept = other not in self.found.shared or one in slopes.values()
        return honest(self, one, other) if kept else 0 * honest(self, one, other)

    monkeypatch.setattr(spreads.Spreads, broken, without)
    assert float(theory.solve(SIZE).variance(q)) != pytest.approx(known, rel=0.02)


def test_an_intercept_of_least_squares_by_random_matrices():
    """The mean of normal labels is what the intercept fits: b - m = 1'A(y - m)/1'A1, A = (1 + 2 X X')^-1.

    The rest is the fit without it of labels about their mean, to leading order.
    """
    biased = ConvexProblem(Sum((y[mu] - heard - b) ** 2, (mu, 1, P)) / 2 + gamma * weights)
    plain = ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * weights)
    found = biased.cavity().solve({**SIZE, y: Normal("y", 3, half)})
    known = plain.cavity().solve({**SIZE, y: Normal("y", 0, half)})
    for observable in (q, "objective"):
        assert float(found.variance(observable)) == pytest.approx(float(known.variance(observable)), rel=1e-10)
        assert abs(float(found.covariance(observable, b))) < 1e-10 * float(found.variance(b))
    one, two = ((1 + eigenvalues(lambda s, k=k: (1 + 2 * s) ** -k)) / 2 for k in (1, 2))  # half of the data see no X
    assert float(found.variance(b)) == pytest.approx(float(two / one**2 / 8), rel=1e-11)


def measured(rows, size):
    """N times the covariances of the columns, and their errors."""
    gaps = np.array(rows) - np.mean(rows, axis=0)
    products = size * gaps[:, :, None] * gaps[:, None, :]
    return products.mean(axis=0), products.std(axis=0) / np.sqrt(len(rows))


def agree(solution, observables, rows, size):
    """Whether all covariances are those of instances, within errors and terms of order 1/N."""
    seen, errors = measured(rows, size)
    theory = np.array([[float(solution.covariance(o, p)) for p in observables] for o in observables])
    scale = np.sqrt(np.outer(np.diag(theory), np.diag(theory)))
    return np.all(abs(seen - theory) < 4 * errors + 2 * scale / size)


def test_two_conditions_by_instances():
    """3000 instances with exact minima by their linear equations: both multipliers, and moments of the weights."""
    problem = ConvexProblem(risk, [Eq(Sum(w[i], (i, 1, N)), N), Eq(Sum(r[i] * w[i], (i, 1, N)), N)])
    solution = problem.cavity().solve({**SIZE, r: {0: half, 3: half}})
    size, rng, rows = 60, np.random.default_rng(2), []
    for _ in range(3000):
        data = rng.standard_normal((2 * size, size)) / np.sqrt(size)
        returns = rng.choice([0.0, 3.0], size)
        tied = np.stack([np.ones(size), returns], axis=1)
        inverse = np.linalg.inv(data.T @ data + np.eye(size) / 2)
        multipliers = np.linalg.solve(tied.T @ inverse @ tied, size * np.ones(2))
        found = inverse @ tied @ multipliers
        rows.append((*multipliers, found @ found / size, np.mean(returns * found**2)))
    assert agree(solution, ["nu", "nu_2", q, average(r[i] * w[i] ** 2)], rows, size)


def test_an_intercept_of_a_logistic_regression_by_instances():
    """2000 instances by Newton's method, of labels that are unlike; and the share of large fields, which jumps."""
    objective = Sum(log(1 + exp(-y[mu] * (heard + b))), (mu, 1, P)) + gamma * weights
    solution = ConvexProblem(objective).cavity().solve({**SIZE, y: {1: Rational(3, 4), -1: Rational(1, 4)}})
    size, rng, rows = 50, np.random.default_rng(4), []
    curvature = np.diag(np.append(np.full(size, 0.5), 0))
    for _ in range(2000):
        data = np.append(rng.standard_normal((2 * size, size)) / np.sqrt(size), np.ones((2 * size, 1)), axis=1)
        labels, found = rng.choice([1.0, 1.0, 1.0, -1.0], 2 * size), np.zeros(size + 1)
        for _ in range(40):
            wrong = 1 / (1 + np.exp(labels * (data @ found)))
            force = curvature @ found - data.T @ (labels * wrong)
            if abs(force).max() < 1e-10:
                break
            found -= np.linalg.solve((data.T * (wrong * (1 - wrong))) @ data + curvature, force)
        least = np.log1p(np.exp(-labels * (data @ found))).sum() + found @ curvature @ found / 2
        own = data @ found - found[-1]
        rows.append((found[:-1] @ found[:-1] / size, found[-1], least / size, np.mean(own > 1)))
    assert agree(solution, [q, b, "objective", average(heard > 1)], rows, size)


def test_an_intercept_of_margins_by_instances_of_the_package():
    objective = Sum(Max(0, 1 - y[mu] * (heard + b)), (mu, 1, P)) + gamma * weights
    problem = ConvexProblem(objective)
    values = {**SIZE, y: {1: Rational(3, 4), -1: Rational(1, 4)}}
    simulation = problem.simulate(values, N=60, seeds=150)
    found = problem.cavity().compare(simulation, [q, b, "objective"], scatter=True)
    assert all(abs(found[o].scatter.z) < 4 for o in (q, b, "objective"))
    solution = problem.cavity().solve(values)
    assert float(solution.covariance("objective", "objective")) == pytest.approx(float(solution.variance()), rel=1e-9)


def test_a_condition_that_holds_without_its_multiplier_changes_nothing():
    loss, law = Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + gamma * weights, {y: {2: half, -2: half}}
    free = ConvexProblem(loss).cavity().solve({**SIZE, **law})
    slack = ConvexProblem(loss, [Sum(Abs(w[i]), (i, 1, N)) <= 4 * N]).cavity().solve({**SIZE, **law})
    tight = ConvexProblem(loss, [Sum(Abs(w[i]), (i, 1, N)) <= N / 4]).cavity().solve({**SIZE, **law})
    assert float(slack.variance(q)) == pytest.approx(float(free.variance(q)), rel=1e-12)
    assert slack.variance("nu") == 0
    assert abs(float(tight.variance(average(Abs(w[i]))))) < 1e-10 * float(tight.variance(q))


def test_the_next_order_is_not_known_with_a_shared_variable(portfolio):
    _, solution = portfolio
    with pytest.raises(UnsupportedLaw, match="order 1/N"):
        solution.next_order(response(w))
