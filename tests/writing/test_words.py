"""What derivations say, where it depends on the system: words that stand only where they are true."""

import re
from importlib import import_module

import pytest
from matplotlib.mathtext import MathTextParser
from sympy import And, Max, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, average, i, mu
from symcavity.face import Step
from symcavity.finite.compare import default_observables
from symcavity.finite.labels import label_tex
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE
from symcavity.writing.latex import words as in_tex

w, t, h = Feature("w"), Quenched("t", i), Datum("h")


def theory(name):
    return import_module(f"symcavity.derivations.{name}").problem.cavity()


def text(name):
    return theory(name).derivation.to_text()


def test_a_law_without_pairs_has_branches_and_no_kink_that_no_state_shows():
    said = text("robust_regression")
    assert "The law has three branches" in said
    assert "complementary pairs leave" not in said
    assert "The complementary pairs leave two branches" in text("gardner")


def test_the_gain_has_a_letter_that_the_system_leaves_free():
    for name, letter in (("gardner", "Lambda"), ("manifold", "Gamma")):
        assert theory(name).derivation["stability"].data["gain"].name == letter


def test_what_is_given_in_an_emission_is_said_only_where_there_is_such():
    words = "Quenched parameters are not perturbed"
    assert words in text("robust_regression")
    assert words not in text("gardner")


def test_the_field_of_a_label_is_defined_with_its_law_and_no_average_stands_twice():
    derivation = theory("logistic_teacher").derivation
    (heard,) = derivation["problem"].data["heard"]
    assert heard.rhs.has(Coupling("x"))
    assert "site.q_lambda" not in [step.key for step in derivation]
    said = derivation.to_latex()
    assert "the data differ by their parameters" not in said
    assert said.count("\\frac{e^{h}}") <= 2  # in the response, and at a step of the state evolution


def test_a_hinge_is_not_multiplied_by_its_step():
    x, gamma = Coupling("x"), Symbol("gamma", positive=True)
    margin, u = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (w, t))
    loss = Sum(Max(0, 1 - sign(u) * margin) ** 2, (mu, 1, P)) / 2
    system = ConvexProblem(loss + gamma * Sum(w[i] ** 2, (i, 1, N)) / 2).kkt()
    assert "Heaviside" not in str(system)
    assert default_observables(system)[0] == average(w[i] ** 2)


@pytest.mark.parametrize(
    ("observable", "written"),
    [
        (average((w[i] - t[i]) ** 2), "\\left\\langle \\left(w_{i} - t_{i}\\right)^{2} \\right\\rangle"),
        (average(h[mu] >= 1), "P\\left(h^{\\mu} \\geq 1\\right)"),
        (average(And(w[i] > 0, w[i] <= 1)), "P\\left(0 < w_{i} \\leq 1\\right)"),
    ],
)
def test_labels_are_printed_as_in_derivations_and_plots_can_draw_them(observable, written):
    assert label_tex(observable) == written
    MathTextParser("path").parse(f"${written}$")


# -- sentences stand only where they hold ------------------------------------------------------------


def sentence_in(name, words):
    """Whether a derivation says some words, wherever its lines end."""
    return " ".join(words.split()) in " ".join(text(name).replace("\u00a0", " ").split())


@pytest.mark.parametrize(
    ("words", "where", "elsewhere"),
    [
        ("Message passing needs this [5] [6], and it needs the state evolution to settle", "gardner", None),
        ("and the global variables M_mw, b and ν move, too", "clusters_hinge", None),
        ("A convex problem with one minimum has Λ at most one. At one the minimum is flat, or isostatic", "zero_sum",
         "rectified_network"),
        ("of order 1/√N only, with mean", "structured_network", "gardner"),
        ("only the diagonal of the response matrix survives", "gardner", "structured_network"),
        ("nothing survives: the couplings on the way out are uncorrelated", "structured_network", "gardner"),
        ("Different couplings are independent of each other", "structured_network", "gardner"),
        ("For every A > 0 the same states", "gardner", "sign_teacher"),
        ("a set of full dimension never is", "manifold", "gardner"),
        ("The law jumps with h₂⁰", "sign_teacher", "noisy_teacher"),
        ("The law jumps with u_y⁰", "flipped_labels", "logistic_teacher"),
        ("y⁰ is drawn with a probability that changes with its field", "logistic_teacher", "flipped_labels"),
        ("do not contain the delta functions of a law that jumps", "sign_teacher", "noisy_teacher"),
        ("Eq. (138), where the minus sign is missing", "kernel_ridge", "gardner"),
        ("which leaves out the third regime", "manifold", "gardner"),
        ("moves them by terms of order 1/N only", "clusters_hinge", "gardner"),
        ("The variables M_mw, b and ν, which all sites share, are self-averaging", "clusters_hinge", "gardner"),
        ("Message passing needs this", "gardner", "chaotic_network"),
        ("and the global variables", "clusters_hinge", "gardner"),
        ("survives: the couplings on the way out are uncorrelated", "group_lasso", "random_features"),
        ("through fresh couplings R_a0 and L_0a", "structured_network", "gardner"),
        ("with the self-couplings at their means", "logistic_teacher", "gardner"),
        ("It has one unknown", "driven_network", "gardner"),
        ("We measure the variable that all sites share", "output_bias", "clusters_hinge"),
        ("The kinds of sites take turns", "gardner", "rectified_network"),
        ("are quenched: given for each site", "kernel_ridge", "gardner"),
        ("is drawn once and then held fixed", "clusters_hinge", "kernel_ridge"),
    ],
)  # fmt: skip
def test_sentences_stand_where_they_hold_and_nowhere_else(words, where, elsewhere):
    assert sentence_in(where, words)
    assert elsewhere is None or not sentence_in(elsewhere, words)


@pytest.mark.parametrize("name", ["logistic_teacher", "bayes_perceptron", "driven_network"])
def test_works_have_the_numbers_in_the_order_in_which_they_are_cited(name):
    tex = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_latex(detail="paper")
    first = list(dict.fromkeys(map(int, re.findall(r"cite\{ref(\d+)\}", tex))))
    assert first == sorted(first)


@pytest.mark.parametrize("name", ["bayes_perceptron", "wishart_resolvent"])
def test_letters_for_parts_of_formulas_come_in_the_order_in_which_they_are_met(name):
    tex = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_latex(detail="paper")
    first = list(dict.fromkeys(map(int, re.findall(r"mathcal\{A\}_\{(\d+)\}", tex))))
    assert first
    assert first == sorted(first)


def test_two_averages_that_differ_by_the_sign_of_their_variable_are_one():
    said = text("spiked_matrix")
    assert "ν - ζ" not in said
    assert "M_st = ⟨tanh(λ M_st/2 + ν + ζ √(λ q_m))⟩_ζ" in said


@pytest.mark.parametrize(("name", "defined"), [("logistic_teacher", True), ("gardner", False)])
def test_truncated_moments_are_defined_once(name, defined):
    """In words where no step writes averages in them."""
    paper = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_latex(detail="paper")
    assert ("$\\phi_{n}(x)$ is the average of" in paper) is defined
    assert ("is the standard Gaussian measure" in paper) is not defined


def test_roots_and_averages_in_what_is_found_are_those_of_tex():
    assert in_tex("a signal √5, β² < √(N/K)") == "a signal $\\sqrt{5}$, $\\beta$$^2$ $<$ $\\sqrt{N/K}$"
    assert in_tex("√<v²/Δ> and <t²>") == "$\\sqrt{\\langle v^2/\\Delta\\rangle}$ and $\\langle$t$^2$$\\rangle$"


def test_coefficients_in_which_a_problem_is_stated_are_introduced():
    from symcavity.derivations import kernel_ridge

    problems = kernel_ridge.from_coefficients, kernel_ridge.from_loss
    said = [" ".join(str(p.cavity().derivation["problem"]).replace("\u00a0", " ").split()) for p in problems]
    words = "It is stated in the coefficients λ^μ; the variables named above take their place"
    assert [words in one for one in said] == [True, False]


@pytest.mark.parametrize("linear", [True, False])
def test_a_linear_law_of_several_states_is_not_solved_by_iteration(linear):
    data = {"kind": FEATURE, "unknowns": [w[0]], "fields": [t[0]], "linear": linear}
    said = str(Step("feature.solution", "joint", (Equation(w[0], t[0]),), data=data))
    assert ("The equations are linear" in " ".join(said.split())) is linear
    assert ("Newton" in said) is not linear


def test_no_state_is_defined_by_itself_and_an_implicit_law_keeps_its_name():
    said = theory("logistic_teacher").derivation.to_text()
    assert "h⁰ = h," not in said
    assert "λ⁰ = λ(h⁰)" in said
    assert "S^λ = ⟨λ′(h^μ)/(1 - S^w λ′(h^μ))⟩" in said
    assert "⟩_ζ" not in said


@pytest.mark.parametrize("words", ["A field is a sum over couplings", "its terms are couplings times the messages"])
def test_terms_are_said_where_they_are_first_used(words):
    assert sentence_in("gardner", words)


@pytest.mark.parametrize(("name", "states"), [("spin_glass", True), ("fewest_errors", True), ("soft_margin", False)])
def test_papers_state_replica_symmetry_where_it_is_assumed(name, states):
    """They have no list of assumptions; of a convex problem the one minimum is proved."""
    paper = import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_latex(detail="paper")
    assert ("replica symmetry" in " ".join(paper.split())) is states


def test_cases_that_end_where_they_vanish_are_positive_parts():
    assert "g⁰ = [1 - η₁⁰ sign(η₂⁰ + I₂⁰) - sign(η₂⁰ + I₂⁰) I⁰]_+ sign(η₂⁰ + I₂⁰)/S^w" in text("sign_teacher")


def test_factors_that_do_not_fluctuate_stand_before_a_thermal_mean():
    assert "0 = Σ_i (M_st - t_i ⟨s_i⟩_β)" in text("spiked_matrix")


def test_a_named_result_has_a_square_for_its_terms():
    said = theory("noisy_teacher").derivation["named.result"].claims
    assert "((alpha + gamma*(S_w + 1))**2 - alpha)" in str(said[1])
