"""The record's section on message passing: what it claims, and that a false claim or a broken rule is seen."""

from dataclasses import replace

import pytest
from sympy import Rational, Sum, Symbol, symbols

from symcavity import Complementary, ConvexProblem, Coupling, Datum, Feature, N, P, SupportFunction, System, i, mu
from symcavity.method import messages
from symcavity.record.symbols import AtStep
from symcavity.witness.judge import judge

a, D = symbols("a D", integer=True, positive=True)
x, w, xi, n, j = Coupling("x"), Feature("w"), Datum("xi"), Feature("n"), Symbol("j", integer=True)
C, g = symbols("C g", positive=True)
J = Coupling("J", between=(i, i), reciprocity=g, variance=Rational(1, 4) / N)


def soft():
    loss = Sum(w[i] ** 2, (i, 1, N)) / 2 + C * Sum(xi[mu] ** 2, (mu, 1, P)) / 2
    return ConvexProblem(loss, [Sum(x[mu, i] * w[i], (i, 1, N)) >= 1 - xi[mu]])


def species():
    return System([], [Complementary(n[i], n[i] - 1 + Sum(J[i, j] * n[j], (j, 1, N)))])


def touching(count=D):
    """Vectors: components of what is heard, and of what is sent."""
    u = Coupling("u", components=(a, 1, count))
    convex = SupportFunction("g")(Sum(u[mu, i, a] * w[i], (i, 1, N)))
    return ConvexProblem(Sum(w[i] ** 2, (i, 1, N)) / 2, [convex >= 1])


MADE = {"soft": soft, "species": species, "touching": touching, "three components": lambda: touching(3)}


def steps_of(name):
    found = [s for s in MADE[name]().cavity().derivation if s.section == "Message passing"]
    assert [s.rule for s in found] == ["messages", "state_evolution"]
    return found


def confirmed(step):
    verdicts = judge(step, 30)
    assert verdicts
    return all(v.ok for v in verdicts)


@pytest.mark.parametrize("name", MADE)
def test_true_claims_are_confirmed_and_false_ones_are_not(name):
    for step in steps_of(name):
        assert confirmed(step)
        for place, claim in enumerate(step.claims):
            for wrong in falsified(claim):
                claims = (*step.claims[:place], wrong, *step.claims[place + 1 :])
                assert not confirmed(replace(step, claims=claims)), wrong


def falsified(claim):
    """The claim with one sign turned, and with one number of another step."""
    for a in sorted(claim.rhs.atoms(AtStep), key=str):
        if a.args[0].is_Symbol or not claim.rhs.has(Sum):
            yield claim.xreplace({a: AtStep(a.args[0], a.shift - 1)})
        if (turned := claim.rhs.xreplace({a: -a})) != claim.rhs:
            yield replace_side(claim, turned)


def replace_side(claim, rhs):
    return type(claim)(claim.lhs, rhs)


def test_a_rule_that_forgets_the_order_is_seen(monkeypatch):
    whole = messages.stepped
    monkeypatch.setattr(messages, "stepped", lambda expr, _shift: whole(expr, 0))
    first, _ = steps_of("species")
    assert not confirmed(first)


def test_the_hopfield_like_echo_is_of_the_step_before():
    """Sites that hear their own kind: what comes back was sent two steps ago (Bolthausen)."""
    (claim,) = steps_of("species")[0].claims
    assert "n[0](t-1)" in str(claim)
    assert "n[j](t)" in str(claim)


def test_it_reads_in_every_format():
    derivation = soft().cavity().derivation
    assert "Onsager" in derivation.to_text()
    assert "q_{w}^{t + 1}" in derivation.to_latex() or "q_{w}^{t+1}" in derivation.to_latex()
    assert "Message passing" in derivation.to_html()
