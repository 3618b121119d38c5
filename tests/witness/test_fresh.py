"""What is said of fresh sites is held against drawn ones; a self-coupling that is kept is seen."""

import pytest
from sympy import S, Sum, Symbol, acos

from symcavity import ConvexProblem, Coupling, Datum, Feature, Global, N, P, Quenched, average, fresh, i, mu
from symcavity.method import fresh as rule
from symcavity.method import observables
from symcavity.witness.judge import judge

x, w, t, b = Coupling("x"), Feature("w"), Quenched("t", i), Global("b")
y, m = Quenched("y", mu, law={1: S.Half, -1: S.Half}), Quenched("m", i)
h, u = Sum(x[mu, i] * w[i], (i, 1, N)), Sum(x[mu, i] * t[i], (i, 1, N))
shifted = Sum(Coupling("x", mean=y[mu] * m[i] / N)[mu, i] * w[i], (i, 1, N)) + b
E, gamma = Symbol("E_g"), Symbol("gamma", positive=True)
weights = gamma * Sum(w[i] ** 2, (i, 1, N)) / 2


def ridge():
    """A problem that is derived anew."""
    loss = Sum((u - h) ** 2, (mu, 1, P)) / 2
    return ConvexProblem(loss + weights, named={E: average(fresh(u * h < 0))})


def regression():
    """Another one, whose test error is that of a loss."""
    loss = Sum((u - h) ** 2, (mu, 1, P)) / 2
    return ConvexProblem(loss + weights, named={E: average(fresh((u - h) ** 2))})


def verdicts(problem):
    """What the witnesses say of the step about fresh sites."""
    return judge(problem.cavity().derivation["named.fresh"], 20)


@pytest.mark.parametrize(
    "problem",
    [
        ridge,
        lambda: ConvexProblem(
            Sum((y[mu] - shifted) ** 2, (mu, 1, P)) + weights, named={E: average(fresh(y[mu] * shifted < 0))}
        ),
        lambda: ConvexProblem(
            Sum((u - h) ** 2, (mu, 1, P)) / 2 + weights,
            named={E: average(fresh(Sum(x[mu, i] * Datum("lambda")[mu], (mu, 1, P)) ** 2))},
        ),
    ],
    ids=["teacher", "means and a bias", "a feature"],
)
def test_drawn_sites_say_the_same(problem):
    """The moments of the fields, and what is named."""
    (verdict,) = verdicts(problem())
    assert verdict.ok, verdict.detail


def test_a_record_says_what_a_fresh_site_hears():
    """The covariances of its fields, and the error in order parameters; in words too."""
    derivation = ridge().cavity().derivation
    *moments, error = derivation["named.fresh"].claims
    assert len(moments) == 3
    assert error.lhs == E
    assert error.rhs.has(acos)
    assert "took no part in training" in derivation.to_text()


def trained(_system, declared, closed):
    """What the data of training have: their self-coupling is kept."""
    return closed(average(declared))


def halved(system, declared, closed):
    """A wrong rule."""
    return rule.fresh_average(system, declared, closed) / 2


@pytest.mark.parametrize("wrong", [trained, halved])
def test_a_wrong_rule_is_seen(monkeypatch, wrong):
    """A self-coupling that is kept lowers the error."""
    monkeypatch.setattr(observables, "fresh_average", wrong)
    (verdict,) = verdicts(regression())
    assert not verdict.ok


def test_wrong_covariances_are_seen(monkeypatch):
    """Fields of other moments."""
    right = rule.field_covariance
    monkeypatch.setattr(rule, "field_covariance", lambda a, b: right(a, b) / 2)
    (verdict,) = verdicts(regression())
    assert not verdict.ok
