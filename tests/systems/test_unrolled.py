"""A system in steps with one family of states a step, at rest: the same numbers by another road."""

from itertools import pairwise

import pytest
from sympy import Eq, Sum, Symbol, tanh

from symcavity import Coupling, N, Quenched, System, Time, Variable, average, i
from symcavity.model import system as system_module

g, r = Symbol("g", positive=True), Symbol("r", real=True)
j, t = Symbol("j"), Time("t")
a = Quenched("a", i)
J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=r)
STATES = [Variable(f"x_{'abcde'[k]}", i) for k in range(5)]
VALUES = {g: "3/2", r: "1/2", a: {1: "1/2", -1: "1/2"}}


def unrolled(phi, steps):
    equations = [Eq(STATES[0][i], a[i])]
    for now, new in pairwise(STATES[: steps + 1]):
        equations.append(Eq(new[i], now[i] / 2 + Sum(J[i, j] * phi(now[j]), (j, 1, N))))
    return System(equations)


def moving(phi):
    x = Variable("x", i, over=t)
    heard = Sum(J[i, j] * phi(x[j, t]), (j, 1, N))
    return System([Eq(x[i, t + 1], x[i, t] / 2 + heard)], initial=[Eq(x[i, 0], a[i])]), average(x[i, t] ** 2)


def test_a_linear_network_of_four_steps_is_the_exact_run():
    system, size = moving(lambda u: u)
    rest = unrolled(lambda u: u, 4).cavity().solve(VALUES)
    exact = system.cavity().evolve(VALUES, until=4)[size]
    assert [rest[average(q[i] ** 2)] for q in STATES] == pytest.approx([float(v) for v in exact], rel=1e-12)


@pytest.mark.parametrize(("steps", "reciprocity"), [(2, "1/2"), (3, 0)])
def test_a_saturating_network_is_the_run(steps, reciprocity):
    system, size = moving(tanh)
    values = {**VALUES, r: reciprocity}
    run = system.cavity().evolve(values, until=steps, paths=20000, seed=2)
    rest = unrolled(tanh, steps).cavity().solve(values)
    found = [rest[average(q[i] ** 2)] for q in STATES[: steps + 1]]
    assert found == pytest.approx(run[size], rel=1e-10 if run.method == "gaussian" else 1e-2)
    assert all(abs(found - run[size]) <= 4 * run.errors[size] + 1e-9)
    assert run.method == ("paths" if reciprocity else "gaussian")


def test_what_is_told_before_a_field_does_not_answer_to_it_and_every_claim_holds():
    theory = unrolled(tanh, 2).cavity()
    (step,) = (s for s in theory.derivation.steps if s.rule == "self_coupling_mean")
    assert sum(claim.rhs != 0 for claim in step.claims) == 1
    assert len(step.data["early"]) == 3
    assert all(v.ok for key in ("respond", "self_coupling", "self_coupling_mean")
               for v in theory.derivation[f"feature.{key}"].verdicts(15))  # fmt: skip
    said = " ".join(theory.derivation.to_text().split())
    assert "vanish: the message there does not depend on the shifted field" in said


def test_an_answer_that_is_left_out_is_noticed(monkeypatch):
    right = system_module.answering
    monkeypatch.setattr(system_module, "answering", lambda laws: dict.fromkeys(right(laws), frozenset()))
    step = unrolled(tanh, 2).cavity().derivation["feature.self_coupling_mean"]
    assert not all(v.ok for v in step.verdicts(15))


def test_a_field_that_tells_another_kind_is_answered_by_all():
    """Without a weight in the feature's own equation nothing is told before: data and weights fix each other."""
    from symcavity import ConvexProblem, Feature, P, mu

    x, w = Coupling("x"), Feature("w")
    fit = ConvexProblem(Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)))
    system = fit.kkt()
    assert all(system.answers(q, f) for law in system.laws.values() for q in law.unknowns for f in system.fields)
    assert float(fit.cavity().solve({"alpha": 2})[average(w[i] ** 2)]) == pytest.approx(1.0)
