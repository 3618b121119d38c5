"""Couplings with a mean of order 1/sqrt(N): balanced sums, against published capacities and instances."""

import re

import numpy as np
import pytest
from references import near
from sympy import Eq, Integer, Rational, Sum, exp, sqrt, symbols

from symcavity import (
    ConvexProblem,
    Coupling,
    Datum,
    DeclarationError,
    Feature,
    Field,
    N,
    P,
    Quenched,
    Sites,
    System,
    Variable,
    alpha,
    average,
    i,
    mu,
    response,
)
from symcavity.model.rewritings.means import Means

QUARTER, HALF = Rational(1, 4), Rational(1, 2)
w, lam, h = Feature("w"), Datum("lam"), Field("h")
kappa, theta, c = symbols("kappa theta c", positive=True)
y = Quenched("y", mu, law={1: 1 - QUARTER, -1: QUARTER})
ridge = Sum(w[i] ** 2, (i, 1, N)) / 2
x = Coupling("x", mean=c / sqrt(N))
heard = Sum(x[mu, i] * w[i], (i, 1, N))
FAR = 4.5


def test_capacity_of_biased_patterns():
    """Patterns and labels of bias 1/2: published to 14 digits (Gardner, J. Phys. A 21, 257, 1988)."""
    biased = Coupling("x", mean=HALF / sqrt(N), variance=(1 - QUARTER) / N)
    margin = y[mu] * Sum(biased[mu, i] * w[i], (i, 1, N)) >= 1
    theory = ConvexProblem(ridge, [margin], [Eq(average(w[i] ** 2), 1 / kappa**2)]).cavity()
    assert near(theory.solve({kappa: 0})[alpha], "2.4058705964851", "1e-12")


PURKINJE = {
    "threshold inside": [y[mu] * (heard - theta * sqrt(N)) >= kappa, w[i] >= 0],
    "threshold beside": [y[mu] * heard >= kappa + y[mu] * theta * sqrt(N), w[i] >= 0],
    "with a label in the sum": [Sum(y[mu] * x[mu, i] * w[i], (i, 1, N)) - y[mu] * theta * sqrt(N) >= kappa, w[i] >= 0],
}
VALUES = {alpha: Rational(3, 10), theta: 1, kappa: 1, c: 1}


@pytest.mark.parametrize("name", PURKINJE)
def test_weights_that_cannot_change_sign(name):
    """The average weight is theta/c, whatever the load."""
    solution = ConvexProblem(ridge, PURKINJE[name]).cavity().solve(VALUES)
    assert near(solution[average(w[i])], "1", "1e-13")
    assert near(solution[average(w[i] ** 2)], "1.6", "0.1")


def test_instances_approach_with_the_root_of_their_size():
    problem = ConvexProblem(ridge, PURKINJE["threshold inside"])
    theory = problem.cavity()
    found = theory.compare(problem.simulate(VALUES, N=[100, 200, 400], seeds=12))
    assert all(abs(row.z) < FAR for row in found if row.note == "")
    assert "1/sqrt(N) -> 0" in str(found)
    verdict = theory.derivation.verify()
    assert verdict
    assert not verdict.unchecked


def test_least_squares_on_a_threshold():
    """A system by its equations: both sums are balanced; the weights are theta/c plus ridge regression on noise."""
    equations = [Eq(h[mu], heard - theta * sqrt(N)), Eq(w[i], Sum(x[mu, i] * lam[mu], (mu, 1, P)))]
    theory = System([*equations, Eq(lam[mu], y[mu] - h[mu])]).cavity()
    solution = theory.solve({alpha: 2, theta: 1, c: 1})
    s = 2**0.5 - 1  # of ridge regression at alpha = 2, gamma = 1: S = 1/(1 + 2/(1 + S))
    assert near(solution[response(w)], str(s), "1e-14")
    # the free part M takes the mean of the labels; u = <(y - M)^2> + q of what remains of the weights
    q = (1 + 2 * s**2 * 0.75 / (1 + s) ** 2) / (1 - 2 * s**2 / (1 + s) ** 2)
    assert near(solution[average(w[i] ** 2)], str(q), "1e-13")
    assert theory.derivation.verify()


def test_instances_are_of_the_declaration():
    """The normal equations of patterns with their mean, and the threshold of order sqrt(N)."""
    problem = ConvexProblem(ridge + Sum((y[mu] + theta * sqrt(N) - heard) ** 2, (mu, 1, P)) / 2)
    simulation = problem.simulate({alpha: 2, theta: 1, c: 2}, N=30, seeds=2)
    for k, sample in enumerate(simulation.feasible):
        instance = simulation.reader(k).instance
        X = instance.couplings[0] + 2 / np.sqrt(30)
        target = instance.quenched[y] + np.sqrt(30)
        assert sample[w] == pytest.approx(np.linalg.solve(X.T @ X + np.eye(30), X.T @ target))


def broken_balance(monkeypatch):
    rule = Means._balanced

    def wrong(self, sides, where):
        out = rule(self, sides, where)
        for balance in self.balances.values():
            balance.average = 2 * balance.average
        return out

    monkeypatch.setattr(Means, "_balanced", wrong)


def broken_remainder(monkeypatch):
    rule = Means._remainder
    monkeypatch.setattr(Means, "_remainder", lambda *args: 2 * rule(*args))


@pytest.mark.parametrize("sabotage", [broken_balance, broken_remainder])
def test_a_wrong_rule_is_seen(monkeypatch, sabotage):
    sabotage(monkeypatch)
    problem = ConvexProblem(ridge + Sum((1 + theta * sqrt(N) - heard) ** 2, (mu, 1, P)) / 2)
    (step,) = (s for s in problem.cavity().derivation if s.rule == "centre")
    assert not all(v.ok for v in step.verdicts())


t, label = Quenched("t", i), Quenched("l", mu)
WRONG = {
    "mean of order one": (lambda: Coupling("x", mean=label[mu]), "1/sqrt(N)"),
    "threshold without its shape": (
        lambda: ConvexProblem(ridge, [heard - label[mu] * sqrt(N) >= 1]), "do not balance"
    ),
    "two thresholds": (
        lambda: ConvexProblem(ridge, [heard - theta * sqrt(N) >= 1, heard - 2 * theta * sqrt(N) <= 4]), "one threshold"
    ),
    "packing": (lambda: ConvexProblem(-Sum(w[i], (i, 1, N)), [heard <= theta * sqrt(N), w[i] >= 0]), "<= N*theta/c"),
    "loss to one side": (lambda: ConvexProblem(ridge + Sum(exp(-heard), (mu, 1, P))), ">= 0"),
    "a teacher": (
        lambda: ConvexProblem(ridge + Sum((Sum(x[mu, i] * (w[i] - t[i]), (i, 1, N))) ** 2, (mu, 1, P))), "is given"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_balanced(name):
    declare, words = WRONG[name]
    with pytest.raises(DeclarationError, match=re.escape(words)):
        declare()


def test_a_sum_that_nothing_balances_is_zero():
    free = ConvexProblem(ridge - Sum(w[i], (i, 1, N)) + Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2)
    solution = free.cavity().solve({alpha: Integer(1), c: 1})
    assert abs(solution[average(w[i])]) < 1e-13


def test_excitation_and_inhibition_balance_together():
    """Two sums of order sqrt(N) in one field: their difference is the threshold."""
    a, K = Sites("a", "K")
    v = Variable("v", a)
    inhibition = Sum(Coupling("z", between=(mu, a), mean=2 * c / sqrt(N))[mu, a] * v[a], (a, 1, K))
    size = Sum(w[i] ** 2, (i, 1, N)) / 2 + Sum(v[a] ** 2, (a, 1, K)) / 2
    values = {alpha: Rational(2, 5), K / N: Rational(1, 2), c: 1, theta: Rational(1, 2)}
    neuron = ConvexProblem(size, [y[mu] * (heard - inhibition - theta * sqrt(N)) >= 1, w[i] >= 0, v[a] >= 0])
    theory = neuron.cavity()
    solution = theory.solve(values)
    assert float(solution[average(w[i])] - solution[average(v[a])]) == pytest.approx(0.5, abs=1e-9)
    assert solution[average(v[a])] > 0.1
    along = theory.function(average(w[i]), theta, values={k: u for k, u in values.items() if k != theta})
    assert along(0.5) == pytest.approx(float(solution[average(w[i])]), rel=1e-9)
    assert theory.compare(neuron.simulate(values, N=80, seeds=6)).worst < 4
    (step,) = (s for s in theory.derivation if s.rule == "centre")
    assert all(v.ok for v in step.verdicts())
    with pytest.raises(DeclarationError, match="only together"):
        solution[average((heard - theta) ** 2)]
    twin, z = Feature("u"), Coupling("z2", mean=c / sqrt(N))
    both = heard - Sum(z[mu, i] * twin[i], (i, 1, N))
    equal = ConvexProblem(
        ridge + Sum(twin[i] ** 2, (i, 1, N)) / 2, [y[mu] * (both - theta) >= 1, w[i] >= 0, twin[i] >= 0]
    ).cavity()
    first, second = (equal.solve({alpha: Rational(2, 5), c: 1, theta: 1}, dps=dps) for dps in (110, 40))
    assert first["nu"] == 0
    assert near(first[average(w[i] ** 2)], first[average(twin[i] ** 2)], 1e-40)
    assert near(first[average(w[i] ** 2)], second[average(w[i] ** 2)], 1e-35)
