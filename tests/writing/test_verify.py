"""Every claim of a derivation is judged, and a wrong claim is caught: negative controls, step by step."""

from functools import cache

import pytest
from sympy import S

from symcavity.derivations import (
    anisotropic,
    gardner,
    kernel_ridge,
    manifold,
    output_bias,
    soft_manifold,
    soft_margin,
)
from symcavity.model.equations import Equation
from symcavity.witness.judge import judge
from symcavity.witness.registry import WITNESSES

MODULES = {
    m.__name__.split(".")[-1]: m
    for m in (gardner, kernel_ridge, soft_margin, anisotropic, output_bias, manifold, soft_manifold)
}


@cache
def derivation(name, method="cavity"):
    return getattr(MODULES[name].problem, method)().derivation


@pytest.mark.parametrize("method", ["cavity", "naive"])
@pytest.mark.parametrize("name", MODULES)
def test_every_claim_is_checked_and_holds(name, method):
    outcome = derivation(name, method).verify()
    assert outcome, str(outcome)
    assert not outcome.unchecked
    kinds = {v.kind for row in outcome for v in row.verdicts}
    assert {"brute force over explicit sums", "50 digits at seeded points", "symbolic"} <= kinds


def flipped(equation):
    """The same equation with the sign of its right-hand side changed."""
    if equation.rhs == 0:
        return Equation(equation.lhs, S.One)
    return Equation(equation.lhs, -equation.rhs)


def changed_first_term(equation):
    """The same equation with the sign of one term of a sum changed."""
    terms = equation.rhs.as_ordered_terms()
    return Equation(equation.lhs, equation.rhs - 2 * terms[-1])


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("gardner", "cavity"),
        ("gardner", "naive"),
        ("kernel_ridge", "cavity"),
        ("output_bias", "cavity"),
        ("manifold", "cavity"),
    ],
)
def test_a_flipped_sign_is_caught_in_every_step(name, method):
    whole = derivation(name, method)
    for step in whole:
        if not step.claims or step.rule == "inconsistency":  # a false equation is what that one claims
            continue
        if all(claim.rhs == 0 for claim in step.claims) and step.rule not in ("disorder", "naive_drop"):
            claims = tuple(Equation(claim.lhs + 1, claim.rhs) for claim in step.claims)
        else:
            last = max(k for k, c in enumerate(step.claims) if not getattr(c.rhs, "is_ZeroMatrix", False))
            claims = tuple(flipped(c) if k == last else c for k, c in enumerate(step.claims))
        verdicts = whole.replaced(step.key, claims=claims)[step.key].verdicts(dps=30)
        assert any(not v.ok for v in verdicts), f"{step.key} survived: {claims}"


def test_a_wrong_term_inside_a_sum_is_caught():
    whole = derivation("gardner")
    for key in ("feature.substitute", "datum.cavity_equation", "datum.effective_law", "proof.2"):
        step = whole[key]
        claims = (*step.claims[:-1], changed_first_term(step.claims[-1]))
        assert any(not v.ok for v in whole.replaced(key, claims=claims)[key].verdicts(dps=30)), key


def test_the_sign_of_the_printed_mean_is_rejected():
    """Equation 138 of the source lacks the minus sign of its own definition (135): the record notices."""
    whole = derivation("kernel_ridge")
    step = whole["datum.self_coupling_mean"]
    assert step.claims[0].rhs.could_extract_minus_sign()
    broken = whole.replaced(step.key, claims=tuple(flipped(c) for c in step.claims))
    assert not broken.verify(dps=20)


def test_every_rule_that_claims_something_has_a_witness():
    rules = {s.rule for name in MODULES for m in ("cavity", "naive") for s in derivation(name, m) if s.claims}
    assert rules <= set(WITNESSES)


def test_a_claim_that_nothing_has_checked_is_printed_as_such():
    whole = derivation("gardner")
    unknown = whole.replaced("sources", rule="a rule without a witness")
    outcome = unknown.verify(15)
    assert [row.step.key for row in outcome.unchecked] == ["sources"]
    assert "nothing has checked this claim" in str(outcome)
    assert "1 unchecked" in str(outcome)


def test_the_identity_is_proved_and_its_converse_is_not():
    step = derivation("gardner")["consistency"]
    kinds = [v.kind for v in step.verdicts(dps=30)]
    assert "symbolic" in kinds
    assert str(step.claims[0]) == "phi(2, kappa) = kappa*phi(1, kappa) + phi(0, kappa)"


def test_the_naive_record_shows_two_capacities():
    step = derivation("gardner", "naive")["inconsistency"]
    first, second = (claim.rhs for claim in step.claims)
    assert str(first) == "1/phi(2, kappa)"
    assert str(second) == "1/(kappa*phi(1, kappa))"
    assert first != second


@pytest.mark.parametrize("name", MODULES)
def test_the_record_keeps_its_order(name):
    keys = [step.key for step in derivation(name)]
    order = ["problem", "disorder", "sources", "feature.insert", "datum.insert", "closed_system", "symmetry"]
    assert [keys.index(k) for k in order] == sorted(keys.index(k) for k in order)
    assert len(keys) == len(set(keys))
    known = set()
    for step in derivation(name):
        assert set(step.rests_on) <= known | {step.key}, step.key
        known.add(step.key)


def test_a_check_to_few_of_the_digits_that_were_asked_for_says_so():
    """At fifteen digits formulas are held to five at a solved point, and no verdict says fifteen of them."""
    made = {step.rule: step for step in derivation("soft_margin").steps}
    few = [v for v in judge(made["closed_system"], 15) if v.kind != "symbolic"]
    assert [(v.ok, v.digits, v.kind) for v in few] == [(True, 5, "5 digits at a solved point")]
    many = [v for v in judge(made["closed_system"], 50) if v.kind != "symbolic"]
    assert [(v.ok, v.digits) for v in many] == [(True, None)]
