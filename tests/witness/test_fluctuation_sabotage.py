"""Break the rules of the scatter of the minimum, and see that the declared objective and instances notice."""

import pytest
from sympy import Max, Rational, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, i, mu
from symcavity.method import fluctuation_steps as steps
from symcavity.method import fluctuations as rules
from symcavity.method import given_emissions as given
from symcavity.witness.judge import judge

x, w, gamma = Coupling("x"), Feature("w"), Symbol("gamma", positive=True)
y = Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)})
gap = y[mu] - Sum(x[mu, i] * w[i], (i, 1, N))
problem = ConvexProblem(Sum(gap**2, (mu, 1, P)) / 2 + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2)


def verdict(key):
    made = {step.key: step for step in steps.fluctuation_steps(problem.cavity().fluctuations())}
    return all(v.ok for v in judge(made[key]))


def test_they_hold_as_they_are():
    assert verdict("fluctuations.minima")
    assert verdict("fluctuations.coincide")
    assert "Reveal the random numbers" in str(problem.cavity().fluctuations().derivation)


def test_couplings_that_are_counted_at_both_ends(monkeypatch):
    honest = steps.shared_overlaps
    monkeypatch.setattr(steps, "shared_overlaps", lambda theory: 0 * honest(theory))
    assert not verdict("fluctuations.coincide")


@pytest.mark.parametrize("factor", [0, -1, 2])
def test_a_self_coupling_that_is_wrong(monkeypatch, factor):
    honest = rules.feedback
    monkeypatch.setattr(rules, "feedback", lambda field, site: factor * honest(field, site))
    assert not verdict("fluctuations.minima")


t = Quenched("t", i)
taught = Sum(x[mu, i] * t[i], (i, 1, N))
label = Quenched("s", mu, law={1: (1 + sign(taught)) / 2, -1: (1 - sign(taught)) / 2}, given=taught)
student = ConvexProblem(
    Sum(Max(0, 1 - label[mu] * Sum(x[mu, i] * w[i], (i, 1, N))), (mu, 1, P)) + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
)


def of_a_teacher(key):
    made = {step.key: step for step in steps.fluctuation_steps(student.cavity().fluctuations())}
    return all(v.ok for v in judge(made[key]))


def test_a_teacher_that_is_heard_by_itself():
    assert of_a_teacher("fluctuations.minima")
    assert of_a_teacher("fluctuations.given")
    assert "is given and shifts the field" in str(student.cavity().fluctuations().derivation)


@pytest.mark.parametrize("rule", ["message_response", "coupling_covariance"])
@pytest.mark.parametrize("factor", [Rational(1, 2), -1])
def test_a_curvature_that_is_wrong(monkeypatch, rule, factor):
    honest = getattr(given, rule)
    monkeypatch.setattr(given, rule, lambda *args: factor * honest(*args))
    assert not of_a_teacher("fluctuations.given")
