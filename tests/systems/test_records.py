"""What the records of the installed derivations say, and what they must not say."""

import warnings
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from sympy import Eq, Piecewise, Rational, S, Sum, Symbol, erfc
from sympy.core.relational import Relational

import symcavity
from symcavity import BipartiteSystem, Coupling, Datum, Feature, N, P, i, mu
from symcavity.algebra.phi import phi
from symcavity.model.averages import Average
from symcavity.model.kinds import Sites
from symcavity.model.quantities import SiteQuantity, Variable
from symcavity.record.symbols import Source

NAMES = ("anisotropic", "gardner", "kernel_ridge", "manifold", "output_bias", "soft_manifold", "soft_margin")
METHODS = ("cavity", "naive")
EVERY = [(name, method) for name in NAMES for method in METHODS]


@cache
def record(name, method):
    return getattr(import_module(f"symcavity.derivations.{name}").problem, method)().derivation


@cache
def said(name, method):
    return " ".join(record(name, method).to_text().split())


def sources_in(step):
    return {q for claim in step.claims for q in claim.rhs.atoms(SiteQuantity) if isinstance(q.family, Source)}


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_one_symbol_has_one_value(name, method):
    """Within the insertion of a site, nothing is defined twice: the shift of a field, and what answers to it."""
    for key in ("feature", "datum"):
        left = [c.lhs for verb in ("insert", "respond") for c in record(name, method)[f"{key}.{verb}"].claims]
        assert len(left) == len(set(left)), left
    values = [c.lhs for c in record(name, method)["closed_system"].claims if c.rhs != 0]
    doubled = {s for s in values if values.count(s) > 1}
    assert doubled <= {c.lhs for s in record(name, method) if s.rule == "fixed" for c in s.claims}


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_what_the_response_differentiates_by_is_in_the_solution(name, method):
    for key in ("feature", "datum"):
        step = record(name, method)[f"{key}.solution"]
        if step.rule == "projection":
            assert "With a source the distance is that from T⁰ + I⁰" in said(name, method)
        else:
            assert sources_in(step), step.key


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_pairs_are_displayed_where_they_are_spoken_of(name, method):
    if "complementarity" not in [s.key for s in record(name, method)]:
        assert "each pair" not in said(name, method)
        return
    before, _, _ = record(name, method).to_text().partition("Both members of each pair")
    shown = [line for line in before.splitlines() if line.startswith("    0 ≤")]
    assert len(shown) == len(record(name, method)["complementarity"].data["pairs"])


PARAMETERS = {
    "anisotropic": "the parameters are κ and l_i.",
    "gardner": "the parameter is κ.",
    "kernel_ridge": "the parameters are γ, P, a_i and ρ_i.",
    "manifold": "the parameters are D, κ and g_S.",
    "output_bias": "the parameters are f and κ.",
    "soft_manifold": "the parameters are C, D, α and g_S.",
    "soft_margin": "the parameters are C and α.",
}


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_parameters_are_complete_and_used(name, method):
    assert PARAMETERS[name] in said(name, method)


SIGNS = {
    "anisotropic": ["S^lw > 0", "l₀ S^λ < 0"],
    "gardner": ["S^w > 0", "S^λ < 0"],
    "kernel_ridge": ["1 + S^ρΔ/γ > 0", "γ + P ρ₀ S^ε > 0"],
    "manifold": ["S^w > 0"],
    "output_bias": ["S^w > 0"],
    "soft_manifold": ["S^w > 0"],
    "soft_margin": ["S^w > 0"],
}


@pytest.mark.parametrize("name", NAMES)
def test_every_sign_that_was_used_is_assumed(name):
    item = said(name, "cavity").split("The sign")[-1].split(" Used in equation")[0]
    assert all(sign in item for sign in SIGNS[name])


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_couplings_are_identical_only_where_their_variances_are(name, method):
    identical = name != "anisotropic"
    assert ("The couplings are independent and identically distributed." in said(name, method)) == identical
    assert ("The couplings are independent; their variances differ." in said(name, method)) != identical


IDENTITIES = ("gardner", "manifold", "output_bias")


@pytest.mark.parametrize("name", NAMES)
def test_the_sides_of_an_identity_agree_by_moments_or_by_parts(name):
    step = record(name, "cavity")["consistency"]
    assert step.data["proved"] == (name in IDENTITIES)
    assert ("by the identity" in said(name, "cavity")) == (name in IDENTITIES)
    assert ("Gaussian integration by parts), so that the two sides" in said(name, "cavity")) == (name not in IDENTITIES)
    if name not in IDENTITIES:
        left, right = step.claims
        assert left.rhs == right.rhs
        assert not left.rhs.has(phi)  # in order parameters, not in truncated moments


def gap_at(claim, values):
    """The difference of two sides at given parameters and at one value of the labels, phi written out."""
    rule = {s: values[s.name] for s in claim.difference.free_symbols if s.name in values}
    gap = claim.difference.replace(Average, lambda body: body)
    gap = gap.xreplace({q: S(2) for q in gap.atoms(SiteQuantity)}).subs(rule)
    return abs(gap.rewrite(erfc).evalf(20))


def test_an_identity_holds_away_from_the_solution():
    """The bias of the identity is free."""
    point = {"kappa": Rational(4, 5), "b_hat": Rational(3, 10), "f": Rational(4, 5)}
    assert gap_at(record("output_bias", "cavity")["consistency"].claims[0], point) < 1e-15


@pytest.mark.parametrize("name", ["consumer_resource", "wishart_resolvent"])
def test_the_variance_of_a_coupling_stands_once_in_what_integration_by_parts_gives(name):
    module = import_module(f"symcavity.derivations.{name}")
    theory = module.problem.cavity()
    solution, (step,) = theory.solve(module.values), (s for s in theory.derivation if s.rule == "consistency")
    for claim in step.claims:
        assert float(solution[claim.lhs]) == pytest.approx(float(solution[claim.rhs]), rel=1e-8)


def test_what_integration_by_parts_makes_of_an_identity_holds_where_states_jump():
    """The best subset: the average of the lowest state times its field, at nodes between the jumps, and the display."""
    module = import_module("symcavity.derivations.best_subset")
    theory = module.problem.cavity()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solution = theory.solve(module.values)
    alpha, gamma, theta = (float(module.values[s]) for s in (symcavity.alpha, module.gamma, module.theta))
    S_l, q_l, S_w, q_e = (float(solution[name]) for name in ("S_lambda", "q_lambda", "S_w", "q_w_minus_t"))
    total, slope = 0.0, gamma - alpha * S_l
    for t, weight in module.values[module.t].items():
        eta = np.sqrt(alpha * q_l) * np.linspace(-12, 12, 400_001)
        pull = eta - alpha * S_l * float(t)
        w = np.where(pull**2 > 2 * theta * slope, pull / slope, 0)
        inside = (w - float(t)) * (eta + alpha * S_l * (w - float(t))) * np.exp(-(eta**2) / (2 * alpha * q_l))
        total += float(weight) * inside.sum() * (eta[1] - eta[0]) / np.sqrt(2 * np.pi * alpha * q_l)
    assert total == pytest.approx(alpha * (S_l * q_e + S_w * q_l), rel=1e-4)
    (step,) = (step for step in theory.derivation if step.rule == "consistency")
    assert float(solution[step.claims[0].rhs]) == pytest.approx(total, rel=1e-4)
    assert max(claim.difference.count_ops() for claim in step.claims) < 20  # it took seven lines


@pytest.mark.parametrize("name", NAMES)
def test_no_contradiction_is_resolved_that_was_not_stated(name):
    assert "contradiction" not in said(name, "cavity")
    assert "The two are not equal" in said(name, "naive")


@pytest.mark.parametrize("name", NAMES)
def test_two_values_have_two_names(name):
    first, second = record(name, "naive")["inconsistency"].claims
    assert first.lhs != second.lhs
    assert all(v.ok for v in record(name, "naive")["inconsistency"].verdicts(dps=15))


@pytest.mark.parametrize("name", ["soft_margin", "soft_manifold"])
def test_the_obstacle_to_a_symmetry_is_the_price_of_slack(name):
    found = import_module(f"symcavity.derivations.{name}").problem.symmetry()
    lam, nu = Datum("lam"), Datum("nu")
    assert not found
    assert found.offending.lhs.name == "C"
    assert found.offending.rhs == lam[mu] + nu[mu]
    assert "C = λ^μ + ν^μ is not left as it is" in said(name, "cavity")


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_no_condition_is_on_the_unknown_that_it_gives(name, method):
    for step in record(name, method):
        if not step.key.endswith(".solution"):
            continue
        for claim in step.claims:
            for cases in claim.rhs.atoms(Piecewise):
                for relation in cases.atoms(Relational):
                    assert not relation.has(claim.lhs), f"{step.key}: {claim}"
    assert "≤ 0;" not in said(name, method)


@pytest.mark.parametrize(("name", "method"), EVERY)
def test_kinds_are_named_and_sides_are_not(name, method):
    for words in ("other side", "either side", "one side", "feature side"):
        assert words not in said(name, method)
    assert "a bipartite system of features and data" in said(name, method)
    assert "We take N and P to infinity at a fixed ratio α = P/N." in said(name, method)


def test_three_kinds_are_spoken_of():
    a, K = Sites("a", "K", "hidden unit")
    J, x = Coupling("J", between=(a, i)), Coupling("x")
    v, w, m, t = Variable("v", a), Feature("w"), Datum("m"), Symbol("t", positive=True)
    system = BipartiteSystem(
        [
            Eq(w[i], Sum(x[mu, i] * m[mu], (mu, 1, P)) + t * Sum(J[a, i] * v[a], (a, 1, K))),
            Eq(m[mu], 1 - Sum(x[mu, i] * w[i], (i, 1, N))),
            Eq(v[a], 1 - Sum(J[a, i] * w[i], (i, 1, N))),
        ]
    )
    text = " ".join(system.naive().derivation.to_text().split())
    assert "a system of features, data and hidden units" in text
    assert "We take N, P and K to infinity at fixed ratios α = P/N and α_K = K/N." in text
    assert "bipartite" not in text
    assert "of a feature into that of the data and the hidden units" in text
    assert "(1/N) Σ_{ν ≠ μ} (m^ν)²" in text
    text = " ".join(system.cavity().derivation.to_text().split())
    assert "is heard by the data and the hidden units only" in text


def test_a_kind_that_is_coupled_to_itself_is_written_with_two_indices():
    derivation = import_module("symcavity.derivations.competing_species").problem.cavity().derivation
    text = str(derivation)
    assert "J_ij = z_ij + A/N" in text
    assert "J_ii" not in text
    assert "fixed ratio" not in text
    assert "declared by its complementarity conditions for the feature variables n_i" in text
    said = {s.name for step in derivation for claim in step.claims for s in claim.difference.atoms(Symbol)}
    assert "M_n" in said
    assert "M_n_hat" not in said  # a variable without a unit has one name


@pytest.mark.parametrize("name", ["anisotropic", "gaussian_clusters"])
def test_what_is_read_has_no_average_inside_of_a_function_or_an_average(name):
    steps = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation
    for key in ("result", "consistency"):
        for claim in steps[key].claims:
            for node in claim.difference.atoms(phi, Average):
                assert not any(inner.has(Average) for inner in node.args), claim
            assert claim.difference.count_ops() < 120
