"""Witnesses of the substitution: they pass what holds, and neither a wrong claim nor a wrong rule gets through."""

from dataclasses import replace
from functools import cache

import pytest
from sympy import Eq, Max, Rational, S, Sum, Symbol, cancel, exp, log

from symcavity import (
    BipartiteSystem,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
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
)
from symcavity.algebra.indexed import Unequal, joined
from symcavity.derivations import gardner, kernel_ridge
from symcavity.method import substitute
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.symbols import DisorderAverage
from symcavity.witness.judge import judge

MODULES = {"gardner": gardner, "kernel_ridge": kernel_ridge}
a, K = Sites("a", "K")
x, z, J = Coupling("x"), Coupling("z"), Coupling("J", between=(a, i), variance=1 / N)
w, v, lam, m = Feature("w"), Feature("v"), Datum("lam"), Variable("m", a)
t, noise, s = Quenched("t", i), Quenched("noise", mu), Quenched("s", i, positive=True)
gamma = Symbol("gamma", positive=True)


def features(body):
    return Sum(body, (i, 1, N))


def data(body):
    return Sum(body, (mu, 1, P))


def teacher():
    """Ridge regression on a teacher, with penalties that differ."""
    loss = data((noise[mu] + features(x[mu, i] * (w[i] - t[i]))) ** 2) / 2
    return ConvexProblem(minimize=loss + gamma * features(s[i] * w[i] ** 2) / 2)


def logistic():
    """A law of the data that is neither linear nor has pairs."""
    loss = data(log(1 + exp(-features(x[mu, i] * w[i]))))
    return ConvexProblem(minimize=gamma * features(w[i] ** 2) / 2 + loss)


def two_weights():
    """Two weights a feature, which penalise each other, and two couplings a pair of sites."""
    field = features(x[mu, i] * w[i] + z[mu, i] * v[i])
    penalty = features((w[i] ** 2 + v[i] ** 2) / 2 + (w[i] - v[i]) ** 2)
    return ConvexProblem(minimize=penalty + data((field - noise[mu]) ** 2) / 2)


def three_kinds():
    """Features that two kinds of sites hear."""
    return System(
        [
            Eq(w[i], t[i] - data(x[mu, i] * lam[mu]) - gamma * Sum(J[a, i] * m[a], (a, 1, K))),
            Eq(lam[mu], features(x[mu, i] * w[i]) + noise[mu]),
            Eq(m[a], Max(0, features(J[a, i] * w[i]) - 1)),
        ]
    )


INVENTED = {f.__name__: f for f in (teacher, logistic, two_weights, three_kinds)}


@cache
def derivation(name):
    problem = INVENTED[name]() if name in INVENTED else MODULES[name].problem
    return problem.naive().derivation


def steps(record):
    return [step for step in record if step.rule.startswith(("substitution", "no_substitution"))]


def caught(step, claims):
    return any(not verdict.ok for verdict in judge(replace(step, claims=tuple(claims)), 30))


# -- what is claimed ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gardner", "teacher", "logistic", "two_weights", "three_kinds"])
def test_the_whole_naive_record_is_checked_and_holds(name):
    outcome = derivation(name).verify(dps=30)
    assert outcome, [row.step.key for row in outcome.failed]
    assert not outcome.unchecked


def closed(name):
    """The last claim about each average: by order parameters."""
    record = derivation(name)
    meanings = dict(record.parameters)
    claims = record["substitution.statistics"].claims
    return [c.rhs.xreplace(meanings) for c in {c.lhs: c for c in claims}.values()]


def test_the_statistics_of_the_source():
    """Equations 17 and 18, and 80 to 82."""
    lam = derivation("gardner")["substitution.law"].data["messages"][0]
    assert closed("gardner") == [0, alpha * average(lam**2), 1]
    eps = derivation("kernel_ridge")["substitution.law"].data["messages"][0]
    rho, c, g = kernel_ridge.rho, kernel_ridge.a, kernel_ridge.gamma
    square = features(c[i] ** 2) + P * average(eps**2) * features(rho[i] ** 2) / g**2
    mean, second, factor = closed("kernel_ridge")
    assert (mean, factor) == (0, features(rho[i]))
    assert cancel(second - square) == 0


# -- wrong claims ------------------------------------------------------------------------------------


def spoiled(claim):
    """The same claim with another right-hand side."""
    if claim.rhs == 0:
        yield S.One
        return
    yield -claim.rhs
    yield 2 * claim.rhs
    if claim.rhs.is_Add:
        terms = claim.rhs.as_ordered_terms()
        yield from (claim.rhs - term for term in terms)
        yield from (claim.rhs - 2 * term for term in terms)
    if claim.rhs.has(Unequal):
        yield joined(claim.rhs)


WRONG = [
    (name, rule)
    for name in ("gardner", "kernel_ridge", "teacher", "three_kinds")
    for rule in ("put", "split", "field", "statistics", "law")
    if (name, rule) != ("three_kinds", "statistics")  # many, and slow
]


@pytest.mark.parametrize(("name", "rule"), WRONG)
def test_a_wrong_claim_is_caught(name, rule):
    step = derivation(name)[f"substitution.{rule}"]
    for k, claim in enumerate(step.claims):
        for rhs in spoiled(claim):
            claims = [*step.claims[:k], Equation(claim.lhs, rhs), *step.claims[k + 1 :]]
            assert caught(step, claims), rhs


@pytest.mark.parametrize("name", ["gardner", "two_weights"])
def test_a_wrong_agreement_is_caught(name):
    step = derivation(name)["substitution.agreement"]
    for k, claim in enumerate(step.claims):
        claims = [*step.claims[:k], Equation(claim.lhs, 2 * claim.rhs), *step.claims[k + 1 :]]
        assert caught(step, claims)


@pytest.mark.parametrize("rule", ["put", "split", "field", "law"])
def test_a_missing_claim_is_caught(rule):
    step = derivation("two_weights")[f"substitution.{rule}"]
    for k in range(len(step.claims)):
        assert caught(step, [*step.claims[:k], *step.claims[k + 1 :]])


def test_a_missing_average_is_caught():
    step = derivation("two_weights")["substitution.statistics"]
    for lhs in {c.lhs for c in step.claims if "zeta" in str(c.lhs)}:
        assert caught(step, [c for c in step.claims if c.lhs != lhs]), lhs


def test_one_formula_must_hold_at_any_size():
    step = derivation("gardner")["substitution.statistics"]
    assert caught(step, [c for c in step.claims if not c.rhs.has(Unequal)])


def test_messages_that_depend_on_each_other_are_told_from_a_product():
    """With two data there is one other message: the square of a sum and a sum of squares are equal there."""
    step = derivation("gardner")["substitution.statistics"]
    wrong = [c.rhs for c in step.claims if c.rhs.has(Unequal)]
    (total,) = wrong[0].atoms(Sum)
    message = next(q for q in total.atoms(SiteQuantity))
    square = Sum(total.function / message, *total.limits) ** 2
    claims = [Equation(c.lhs, c.rhs.xreplace({total: square})) for c in step.claims]
    assert caught(step, claims)


# -- wrong rules -------------------------------------------------------------------------------------


def lost_echo(*_):
    return S.Zero


def counted_twice(*arguments):
    own, others = split(*arguments)
    return own, joined(others)


def doubled(*arguments):
    return 2 * coupling_covariance(*arguments)


def turned(site):
    return {q: -expr for q, expr in states(site).items()}


def unit(*_):
    return S.One


split, coupling_covariance, states = substitute.split, substitute.coupling_covariance, substitute._states


@pytest.mark.parametrize(
    ("verb", "broken"),
    [
        ("split", counted_twice),
        ("coupling_covariance", doubled),
        ("_states", turned),
        ("_echo", lost_echo),
        ("mean_factor", lost_echo),
        ("covariance", lost_echo),
        ("covariance", unit),
        ("_moved", unit),
    ],
)
@pytest.mark.parametrize("make", [teacher, logistic])
def test_a_broken_rule_is_caught(make, verb, broken, monkeypatch):
    monkeypatch.setattr(substitute, verb, broken)
    found = steps(make().naive().derivation)
    assert any(not verdict.ok for step in found for verdict in judge(step, 30))


# -- where it does not apply -------------------------------------------------------------------------


def quartic():
    loss = data((features(x[mu, i] * w[i]) - noise[mu]) ** 2) / 2
    return ConvexProblem(minimize=features(w[i] ** 4) / 4 + loss)


def not_negative():
    loss = data((features(x[mu, i] * w[i]) - noise[mu]) ** 2) / 2
    return ConvexProblem(minimize=features(w[i] ** 2) / 2 + loss, subject_to=[w[i] >= 0])


def rectified():
    return BipartiteSystem(
        [
            Eq(w[i], Max(0, t[i] - data(x[mu, i] * lam[mu]))),
            Eq(lam[mu], features(x[mu, i] * w[i]) + noise[mu]),
        ]
    )


@pytest.mark.parametrize("make", [quartic, not_negative, rectified])
def test_a_refusal_is_checked(make):
    (step,) = steps(make().naive().derivation)
    assert step.rule == "no_substitution"
    verdicts = judge(step, 30)
    assert verdicts
    assert all(v.ok for v in verdicts)


@pytest.mark.parametrize("name", ["gardner", "two_weights", "three_kinds"])
def test_a_refusal_without_a_reason_is_caught(name):
    theory = derivation(name)["substitution.put"].evidence["theory"]
    step = Step("substitution", "no_substitution", data={"kind": FEATURE}, evidence={"theory": theory})
    assert not any(v.ok for v in judge(step, 30))


# -- the feedback that is dropped --------------------------------------------------------------------


def test_the_drop_is_of_every_self_coupling():
    record = derivation("two_weights")
    step = record["feature.naive_drop"]
    assert len(step.claims) == 4
    assert all(v.ok for v in judge(step, 30))
    assert caught(step, step.claims[1:])
    assert caught(step, [Equation(c.lhs, S.One) for c in step.claims])


def test_nothing_is_dropped_where_nothing_returns():
    one_way = BipartiteSystem(
        [
            Eq(w[i], t[i] + data(x[mu, i] * noise[mu])),
            Eq(lam[mu], Rational(1, 2) + features(x[mu, i] * w[i])),
        ]
    )
    step = one_way.naive().derivation["feature.naive_drop"]
    assert not step.claims
    assert all(v.ok for v in judge(step, 30))


def test_an_average_of_something_else_is_caught():
    step = derivation("gardner")["substitution.statistics"]
    extra = Equation(DisorderAverage(x[mu, i] ** 2), S.One)
    assert caught(step, [*step.claims, extra])
