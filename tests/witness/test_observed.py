"""The record of how observables scatter: judged by problems with a source, and by instances; broken, it is seen."""

import pytest
from sympy import Eq, Rational, Sum, Symbol, sqrt

from symcavity import ConvexProblem, Coupling, Derivation, Feature, Global, N, P, Quenched, alpha, average, i, mu
from symcavity.derivations import soft_margin
from symcavity.method import moved as rules
from symcavity.method.observed import observed_of, observed_steps
from symcavity.method.perturbed import Perturbed
from symcavity.witness.judge import judge
from symcavity.witness.observed import _claimed
from symcavity.witness.points import solve_shared

x, w, y, gamma, b = Coupling("x"), Feature("w"), Quenched("y", mu), Symbol("gamma", positive=True), Global("b")
heard = Sum(x[mu, i] * w[i], (i, 1, N))
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2
q = average(w[i] ** 2)


def ridge():
    """Declared anew: what is broken must not be remembered."""
    return ConvexProblem(Sum((y[mu] - heard) ** 2, (mu, 1, P)) / 2 + weights).cavity()


def judged(theory, *keys):
    """What the witnesses say of each step."""
    return {s.key: [v.ok for v in judge(s)] for s in observed_steps(observed_of(theory, keys))[1:]}


CASES = {
    "size": (ridge, [q]),
    "norm": (ridge, [sqrt(q)]),
    "size and minimum": (ridge, [q, "objective"]),
    "margins": (soft_margin.problem.cavity, [average(soft_margin.w[i] ** 2)]),
    "intercept": (
        lambda: ConvexProblem(Sum((y[mu] - b - heard) ** 2, (mu, 1, P)) / 2 + weights).cavity(),
        [q, b],
    ),
    "budget": (
        lambda: ConvexProblem(Sum(heard**2, (mu, 1, P)) / 2 + weights, [Eq(Sum(w[i], (i, 1, N)), N)]).cavity(),
        [q],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_holds(name):
    declared, keys = CASES[name]
    for key, found in judged(declared(), *keys).items():
        assert found == [True], key


def test_what_bends_downwards_is_judged_by_instances_alone():
    share = average(Sum(soft_margin.x[mu, i] * soft_margin.w[i], (i, 1, N)) > 1)
    found = judged(soft_margin.problem.cavity(), share)
    assert found.pop("observed.coincide") == [True]
    assert all(verdicts == [None] for verdicts in found.values())


@pytest.mark.parametrize("name", ["size and minimum", "margins"])
def test_the_claims_together_are_the_number_of_a_solution(name):
    """Each claim is put into the next one, in numbers; the solution has its own linear algebra."""
    declared, keys = CASES[name]
    theory, half = declared(), Rational(1, 2)
    values = {alpha: 2, soft_margin.C: half} if name == "margins" else {alpha: 2, gamma: half, y: {1: half, -2: half}}
    solution = solve_shared(theory, values, 15)
    last = observed_steps(observed_of(theory, keys))[-1]
    assert _claimed(last, solution, {}) == pytest.approx(float(solution.covariance(keys[0], keys[-1])), rel=1e-10)


@pytest.mark.parametrize(
    ("owner", "rule", "factor", "seen"),
    [
        (rules.Moved, "answer", 2, "observed.close"),
        (rules.Moved, "carried", 0, "observed.close"),
        (rules.Moved, "curvature", Rational(1, 2), "observed.coincide"),
        (rules.Moved, "pushed", 2, "observed.coincide"),
        (Perturbed, "moves", 2, "observed.added"),
        (Perturbed, "moves", 0, "observed.added"),
    ],
)
def test_what_is_broken_is_seen(monkeypatch, owner, rule, factor, seen):
    honest = getattr(owner, rule)
    monkeypatch.setattr(owner, rule, lambda *args: factor * honest(*args))
    assert judged(ridge(), q)[seen] == [False]


def test_a_part_of_the_observable_that_is_dropped_is_seen(monkeypatch):
    honest = rules.Parts.of
    monkeypatch.setattr(rules.Parts, "of", lambda *args: honest(*args) / 2)
    assert judged(ridge(), q)["observed.source"] == [False]


def test_it_is_said_and_written_and_read_back():
    theory = ridge()
    record = theory.fluctuations(q, "objective").derivation
    assert "each to that of one of the two copies" in record.to_text()
    back = Derivation.from_json(record.to_json(verify=False))
    assert [step.claims for step in back] == [step.claims for step in record]
    assert all(v.ok for v in back["observed.close"].verdicts(15))
    assert str(theory.fluctuations(q).equation).startswith("V = ")
