"""Each symbol is introduced before it is used, and sentences with a condition stand only where it holds."""

from functools import cache
from importlib import import_module

import pytest
from sympy import Eq, Rational, Sum, Symbol, tanh

from symcavity import Coupling, Feature, N, System, i


@cache
def text(name):
    return import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_text()


def test_the_field_in_thermal_means_is_said():
    assert text("bayes_perceptron").count("Here h^μ = Σ_i x_i^μ w_i.") == 1
    assert "Here h^μ" not in text("spin_glass")  # its energy holds no field by name


def test_a_step_function_of_a_label_is_said_where_it_stands_first():
    said = text("bayes_perceptron")
    assert said.count("Θ(x) is one for positive x") == 1
    assert said.index("Θ(x) is one") < said.index("2. Thermal means")


def test_fields_in_complementary_pairs_are_said():
    assert "Here h^μ = Σ_(k = 1..K) A_k^μ m_k and h₂^μ = Σ_i z_i^μ w_i." in text("correlated_points")
    assert "Here h^μ" not in text("gardner")  # the slack is displayed


@pytest.mark.parametrize(("name", "holds"), [("competing_species", True), ("gardner", False), ("best_subset", False)])
def test_fields_within_a_law_have_their_names_before_their_sources(name, holds):
    said = " ".join(text(name).split())
    assert ("A field that stands within a law has a name, v_i = Σ_j z_ij n_j." in said) == holds
    assert ("within a law" in said) == holds


def test_the_sign_by_which_an_energy_has_a_minimum_is_said():
    assert "This uses S^λ < 0." in text("best_subset")
    assert "S^λ < 0 and S^w > 0. Used in equations" in text("best_subset")


def test_other_responses_follow_from_a_fraction_only_where_they_do():
    assert "holds; other responses follow from it" in " ".join(text("correlated_points").split())
    assert "follow from it" not in text("anisotropic")
    assert "the condition in the bracket holds" in " ".join(text("anisotropic").split())


def test_state_evolution_announces_no_equations_where_all_are_those_above():
    j = Symbol("j", integer=True)
    s, J = Feature("s"), Coupling("J", between=(i, i), variance=1 / (4 * N), reciprocity=Rational(1, 2))
    network = System([Eq(s[i], tanh(Sum(J[i, j] * s[j], (j, 1, N)) + 1))]).cavity().derivation.to_text()
    assert "follow the steps (state evolution)." in network
    assert "(state evolution) (see" in text("gardner")


def test_numbers_of_self_couplings_are_explained_where_there_are_any():
    for name, holds in (("correlated_points", True), ("bayes_perceptron", True), ("gardner", False)):
        assert ("In an index of F the first number is" in " ".join(text(name).split())) == holds


def test_a_bound_beside_a_teacher_t_has_a_letter_of_its_own():
    said = text("basis_pursuit")
    assert "t₂" not in said
    assert "by a variable r_i that is at least as large" in " ".join(said.split())


def test_no_name_is_the_average_of_a_name():
    names = [line.strip() for line in text("sparse_means").splitlines() if line.strip().startswith("𝒜")]
    assert names
    assert not [line for line in names if line.split(" = ")[1].startswith("⟨𝒜")]
