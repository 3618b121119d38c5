"""Every claim of a derivation is judged, and a wrong claim is caught: negative controls, step by step."""

from functools import cache

import pytest
from sympy import S

from symcavity.derivations import anisotropic, gardner, kernel_ridge, output_bias, soft_margin
from symcavity.model.equations import Equation
from symcavity.record.derivation import PREMISE

MODULES = {m.__name__.split(".")[-1]: m for m in (gardner, kernel_ridge, soft_margin, anisotropic, output_bias)}


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


# steps that state a premise or define a word claim nothing that could be wrong
FREE = {"premise", "definition", "symmetry", "work", "contradiction", ""}


def controls():
    for name in ("gardner", "kernel_ridge", "output_bias"):
        for step in derivation(name):
            if step.check not in FREE and step.claims:
                yield name, step.key


@pytest.mark.parametrize(("name", "key"), list(controls()))
def test_a_flipped_sign_is_caught(name, key):
    whole = derivation(name)
    step = whole[key]
    if all(claim.rhs == 0 for claim in step.claims) and step.check in ("closure", "solved"):
        claims = tuple(Equation(claim.lhs + 1, claim.rhs) for claim in step.claims)
    else:
        claims = (*step.claims[:-1], flipped(step.claims[-1]))
    broken = whole.replaced(key, claims=claims)
    verdicts = broken[key].verdicts(dps=30)
    assert any(not v.ok for v in verdicts), f"{key} survived: {claims[-1]}"


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


def test_premises_are_called_premises():
    (verdict,) = derivation("gardner")["disorder"].verdicts()
    assert verdict.kind == PREMISE


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
