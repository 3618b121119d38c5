"""What is broken of the derivation of states that move is noticed: a rule, or what the record claims of it."""

from dataclasses import replace

import pytest
from sympy import Eq, S, Sum, Symbol, symbols, tanh

from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, System, Time, Variable, i, mu
from symcavity.method import average, descent, identify, kkt, respond
from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.sites.causal import CausalSolution
from symcavity.witness.judge import judge

t, s, j = Time("t"), Time("s"), Symbol("j")
eta, gamma, r = symbols("eta gamma r", positive=True)
X, w, lam, e = Coupling("x"), Variable("w", i, over=t), Variable("lambda", mu, over=t), Quenched("e", mu)
V = Feature("v")
pull = gamma * w[i, t] + Sum(X[mu, i] * lam[mu, t], (mu, 1, P))
heard = Sum(X[mu, i] * w[i, t], (i, 1, N)) - e[mu]
DESCENT = System([Eq(w[i, t + 1], w[i, t] - eta * pull), Eq(lam[mu, t], heard)], initial=[Eq(w[i, 0], 0)])
x, J = Variable("x", i, over=t), Coupling("J", between=(i, i), reciprocity=r)
NETWORK = System(
    [Eq(x[i, t + 1], Sum(J[i, j] * tanh(x[j, t]), (j, 1, N)))], initial=[Eq(x[i, 0], 1)]
)


def failures(system, *rules):
    from symcavity.face import BipartiteSystem

    fresh = BipartiteSystem(list(system.typed[0]), initial=system.initial)
    steps = [step for step in fresh.cavity().derivation if step.rule in rules]
    return {step.key for step in steps if not all(v.ok for v in judge(step, 15))}


def test_nothing_is_noticed_where_nothing_is_broken():
    assert not failures(DESCENT, "causality", "self_coupling", "self_coupling_mean", "effective_law", "tangent")


def test_a_sum_that_leaves_out_the_present_is_noticed(monkeypatch):
    late = respond.delay
    monkeypatch.setattr(respond, "delay", lambda *args: 1 + 0 * late(*args))
    assert "feature.causality" in failures(DESCENT, "causality")  # data answer at once


def test_a_self_coupling_that_is_dropped_is_noticed(monkeypatch):
    monkeypatch.setattr(average, "self_coupling_mean", lambda *_: S.Zero)
    assert failures(DESCENT, "self_coupling_mean") == {"feature.self_coupling_mean", "datum.self_coupling_mean"}


def test_a_kernel_that_is_transposed_is_noticed(monkeypatch):
    right = average.field_covariance

    def turned(a, b):
        return right(a, b).xreplace({t: s, s: t + 1})

    monkeypatch.setattr(average, "field_covariance", turned)
    assert failures(NETWORK, "field_statistics")


def test_reciprocity_that_is_counted_twice_is_noticed(monkeypatch):
    right = average.self_coupling_mean
    monkeypatch.setattr(average, "self_coupling_mean", lambda *args: 2 * right(*args))
    assert failures(NETWORK, "self_coupling_mean") == {"feature.self_coupling_mean"}


def test_an_echo_that_belongs_to_the_wrong_time_is_noticed(monkeypatch):
    right = identify.Feedback

    def late(symbol, through, definition, delay=0):
        return right(symbol, through, definition, delay + 1)

    monkeypatch.setattr(identify, "Feedback", late)
    assert failures(NETWORK, "cavity_equation", "effective_law") == {"feature.cavity_equation", "feature.effective_law"}


def test_a_response_that_forgets_the_memory_is_noticed(monkeypatch):
    monkeypatch.setattr(CausalSolution, "_memory", lambda *_: S.Zero)
    assert failures(NETWORK, "tangent") == {"feature.response"}


def descent_fails():
    descended = ConvexProblem(Sum(Sum(X[mu, i] * V[i], (i, 1, N)) ** 4, (mu, 1, P)) + gamma * Sum(V[i] ** 2, (i, 1, N)))
    step = next(q for q in descended.descent(rate=eta, momentum=r).cavity().derivation if q.rule == "descent")
    return not all(verdict.ok for verdict in judge(step, 15))


def test_a_descent_that_goes_elsewhere_is_noticed(monkeypatch):
    assert not descent_fails()
    right = descent._step
    for twice in ("rate", "momentum"):

        def wrong(q, e, at, time, rate, momentum, twice=twice):
            return right(q, e, at, time, rate * (1 + (twice == "rate")), momentum * (1 + (twice == "momentum")))

        monkeypatch.setattr(descent, "_step", wrong)
        assert descent_fails()


def test_a_slope_that_lacks_a_part_is_noticed(monkeypatch):
    right = kkt._stationarity

    def without_penalty(side, record, *rest):
        record.site[side] = record.site[side] / 2
        right(side, record, *rest)

    monkeypatch.setattr(kkt, "_stationarity", without_penalty)
    assert descent_fails()


@pytest.mark.parametrize("rule", ["causality", "self_coupling_mean", "effective_law", "tangent", "path_average"])
def test_a_claim_that_is_falsified_is_noticed(rule):
    theory = Theory(NETWORK)
    step = next(q for q in NETWORK.cavity().derivation if q.rule == rule)
    wrong = replace(step, claims=tuple(Equation(c.lhs, 3 * c.rhs) for c in step.claims))
    assert theory.system.time is not None
    assert not all(v.ok for v in judge(wrong, 15))
