"""Roots and convex averages of all sites inside of a problem: against problems without them, and instances."""

import numpy as np
import pytest
from references import near
from scipy.optimize import minimize
from sympy import Abs, Eq, Max, Rational, Sum, exp, log, sign, sqrt, symbols, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Field,
    N,
    NotConvex,
    P,
    Quenched,
    System,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.rewritings.norms import Norms

HALF = Rational(1, 2)
x, w = Coupling("x"), Feature("w")
y = Quenched("y", mu, law={1: HALF, -1: HALF})
gamma, epsilon = symbols("gamma epsilon", positive=True)
heard = Sum(x[mu, i] * w[i], (i, 1, N))
squares = Sum((y[mu] - heard) ** 2, (mu, 1, P))
sizes = Sum(Abs(w[i]), (i, 1, N))
norm = sqrt(Sum(w[i] ** 2, (i, 1, N)) / N)
FAR = 4.5
VALUES = {alpha: 2, gamma: HALF}

SPELLINGS = {
    "root of both": sqrt(N) * sqrt(squares) + gamma * sizes,
    "mean inside": N * sqrt(squares / N) + gamma * sizes,
    "norm of a sum": sqrt(N * squares) + gamma * sizes,
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_square_root_lasso_is_lasso_with_its_own_strength(name):
    """min sqrt(A) + g |w| is min A/2 + g sqrt(A) |w| at its own A, the mean of the squared residuals."""
    theory = ConvexProblem(SPELLINGS[name]).cavity()
    solution = theory.solve(VALUES)
    residual = average((y[mu] - heard) ** 2)
    root = (2 * solution[residual]) ** 0.5
    plain = ConvexProblem(squares / 2 + gamma * sizes).cavity().solve({alpha: 2, gamma: root / 2})
    for observable in (average(w[i] ** 2), average(Abs(w[i])), residual):
        assert near(solution[observable], str(float(plain[observable])), "1e-12")


def test_the_record_says_so_and_holds():
    derivation = ConvexProblem(SPELLINGS["mean inside"]).cavity().derivation
    verdict = derivation.verify()
    assert verdict
    assert not verdict.unchecked
    assert "one number for all of them" in str(derivation)


def test_an_instance_of_the_square_root_lasso():
    """Its optimality conditions, by hand: X^T r sqrt(N)/|r| is gamma times a subgradient of |w|."""
    simulation = ConvexProblem(SPELLINGS["mean inside"]).simulate(VALUES, N=40, seeds=2)
    for k, sample in enumerate(simulation.feasible):
        instance = simulation.reader(k).instance
        X, labels, found = instance.couplings[0], instance.quenched[y], sample[w]
        rest = labels - X @ found
        slope = np.sqrt(40) * X.T @ rest / np.linalg.norm(rest)
        assert np.all(np.abs(slope) < 0.5 + 1e-9)
        assert slope[found != 0] == pytest.approx(0.5 * np.sign(found[found != 0]))


def test_the_norm_as_a_penalty():
    """gamma |w| is ridge regression of the strength gamma/|w|."""
    solution = ConvexProblem(squares / 2 + gamma * N * norm).cavity().solve(VALUES)
    size = solution[average(w[i] ** 2)] ** 0.5
    ridge = ConvexProblem(squares / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).cavity()
    assert near(ridge.solve({alpha: 2, gamma: 0.5 / float(size)})[average(w[i] ** 2)], str(float(size**2)), "1e-12")


ADVERSARIAL = {
    "of the norm": Max(0, 1 - y[mu] * heard + epsilon * norm) ** 2,
    "of the sizes": log(1 + exp(-y[mu] * heard + epsilon * sizes / N)),
}


@pytest.mark.parametrize("name", ADVERSARIAL)
def test_training_against_an_adversary(name):
    problem = ConvexProblem(Sum(ADVERSARIAL[name], (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory, values = problem.cavity(), {alpha: 2, epsilon: HALF}
    simulation = problem.simulate(values, N=100, seeds=12)
    assert theory.compare(simulation, [average(w[i] ** 2), response(w)]).worst < FAR
    weak = theory.solve({alpha: 2, epsilon: "1/1000"})[average(w[i] ** 2)]
    assert theory.solve(values)[average(w[i] ** 2)] < 0.5 * weak


def test_an_instance_with_an_adversary_is_the_minimum():
    problem = ConvexProblem(Sum(ADVERSARIAL["of the norm"], (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)) / 2)
    simulation = problem.simulate({alpha: 2, epsilon: HALF}, N=12, seeds=1)
    (sample,) = simulation.feasible
    instance = simulation.reader(0).instance
    X, labels = instance.couplings[0], instance.quenched[y]

    def cost(v):
        margin = 1 - labels * (X @ v) + 0.5 * np.sqrt(np.mean(v**2))
        return np.sum(np.maximum(0, margin) ** 2) + np.sum(v**2) / 2

    assert sample[w] == pytest.approx(minimize(cost, sample[w] + 0.1, tol=1e-14).x, abs=1e-6)


def test_a_system_in_which_an_average_stands_in_a_law():
    """Divisive normalisation, by its equations: r = h/(1 + sqrt(<r^2>))."""
    r, h, J = Datum("r"), Field("h"), Coupling("z")
    equations = [Eq(w[i], tanh(1) * Sum(J[mu, i] * r[mu], (mu, 1, P)) / 2 + 1)]
    equations += [Eq(h[mu], Sum(J[mu, i] * w[i], (i, 1, N)))]
    equations += [Eq(r[mu] * (1 + sqrt(Sum(r[mu] ** 2, (mu, 1, P)) / P)), h[mu])]
    system = System(equations)
    theory = system.cavity()
    values = {alpha: 1}
    solution = theory.solve(values)
    assert theory.compare(system.simulate(values, N=150, seeds=10), [average(r[mu] ** 2), average(w[i])]).worst < FAR
    assert solution[average(r[mu] ** 2)] > 0.1


WRONG = {
    "a norm that is wanted": squares - gamma * N * norm,
    "an adversary that helps": Sum(Max(0, 1 - y[mu] * heard - epsilon * norm) ** 2, (mu, 1, P)) + sizes,
    "a concave function": squares + gamma * N * log(1 + Sum(w[i] ** 2, (i, 1, N)) / N),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_convex(name):
    with pytest.raises(NotConvex):
        ConvexProblem(WRONG[name])


def test_a_wrong_rule_is_seen(monkeypatch):
    rule = Norms._named

    def doubled(self, expr):
        found = rule(self, expr)
        return found.xreplace({g: 2 * g for g in self.norms})

    monkeypatch.setattr(Norms, "_named", doubled)
    (step,) = (s for s in ConvexProblem(SPELLINGS["mean inside"]).cavity().derivation if s.rule == "centre")
    assert not all(v.ok for v in step.verdicts())


@pytest.mark.parametrize(
    "size",
    [
        lambda total: sqrt(1 + total / N),
        lambda total: sqrt((N + total) / N),
        lambda total: sqrt(N + total) / sqrt(N),
        lambda total: sqrt(2 + 2 * total / N) / sqrt(2),
    ],
)
def test_a_root_of_an_average_has_the_units_of_its_terms(size):
    """Divisive normalization of a linear network: q (1 + q) = g**2 q + 1, with any spelling of the divisor."""
    u, r = Quenched("u", i), Feature("r")
    J, j = Coupling("J", between=(i, i), variance=gamma**2 / N), symbols("j", integer=True)
    divisor = size(Sum(r[j] ** 2, (j, 1, N)))
    network = System([Eq(r[i], (Sum(J[i, j] * r[j], (j, 1, N)) + u[i]) / divisor)])
    solution = network.cavity().solve({gamma: "9/10", u: {1: HALF, -1: HALF}})
    assert float(solution[average(r[i] ** 2)]) == pytest.approx((-0.19 + np.sqrt(0.19**2 + 4)) / 2, rel=1e-12)


@pytest.mark.parametrize("number", [60, 150])
def test_training_against_an_adversary_who_moves_inputs(number):
    """A margin that shrinks with the norm of the weights: instances beside the theory."""
    t, delta = Quenched("t", i), symbols("delta", positive=True)
    label = sign(Sum(x[mu, i] * t[i], (i, 1, N)))
    problem = ConvexProblem(
        Sum(Max(0, 1 - label * heard + delta * norm), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N))
    )
    values = {alpha: 2, gamma: "3/10", delta: "1/5", t: {1: HALF, -1: HALF}}
    found = problem.cavity().compare(problem.simulate(values, N=number, seeds=8))
    assert all(abs(row.z) < FAR for row in found.rows)
