"""The sentences are data: each can be filled in, each is used, and the small language does what it says."""

import importlib
import re
import warnings
from importlib.resources import files

import pytest
from sympy import Eq, Max, Sum, Symbol, cosh, log, sign

from symcavity import (
    Complementary,
    ConvexProblem,
    Coupling,
    Datum,
    Feature,
    Global,
    N,
    P,
    Quenched,
    Sites,
    System,
    UnsupportedLaw,
    Variable,
    alpha,
    i,
    mu,
)
from symcavity.writing.fragments import EarlierSteps, Emphasis, Show
from symcavity.writing.reader import read
from symcavity.writing.words import BadTemplate, Said, say, sentence, templates

a, b, c = map(Symbol, "abc")


@pytest.fixture
def section(monkeypatch):
    """A section of our own, by its text."""
    from symcavity.writing import words

    def made(text):
        whole = {"own": {"before": words._read(text, 0, inside=False)[0][0]}}
        monkeypatch.setattr(words, "templates", lambda: whole)
        return "own"

    return made


@pytest.mark.parametrize(
    ("text", "values", "said"),
    [
        ("We insert a {kind}.", {"kind": "datum"}, ["We insert a datum."]),
        ("Here {x} stand.", {"x": [a, b, c]}, ["Here ", a, ", ", b, " and ", c, " stand."]),
        ("The {x: sum | sums} {x: is | are}", {"x": [a]}, ["The sum is"]),
        ("The {x: sum | sums} {x: is | are}", {"x": [a, b]}, ["The sums are"]),
        ("One{if x:, and {x}}.", {"x": a}, ["One, and ", a, "."]),
        ("One {if x: and {x}}.", {"x": None}, ["One."]),
        ("{unless x: No | A} word", {"x": 1}, ["A word"]),
        ("{list rows: {s} to {t}}", {"rows": [{"s": a, "t": b}, {"s": c, "t": a}]},
         [a, " to ", b, " and ", c, " to ", a]),
        ("{chain rows: the {s}}", {"rows": [{"s": "x"}, {"s": "y"}]}, ["the x, and the y"]),
        ("{each rows: Take {s}.} End.", {"rows": [{"s": "x"}, {"s": "y"}]}, ["Take x. Take y. End."]),
        ("We solve {display rows} Then.", {"rows": [a]}, ["We solve", Show((a,)), "Then."]),
        ("{premises}The sum {x} is", {"x": a}, [EarlierSteps("The sum "), a, " is"]),
        ("with $\\delta @x > 0$,", {"x": b}, ["with ", read("\\delta b > 0"), ","]),
        ("It is *not* so.", {}, ["It is ", Emphasis("not"), " so."]),
        ("So {why}", {"why": Said(["because ", a])}, ["So because ", a]),
    ],
)  # fmt: skip
def test_the_small_language(section, text, values, said):
    assert say(section(text), **values) == said


@pytest.mark.parametrize("text", ["A {brace", "A | bar {x: one | two", "No {: name}"])
def test_what_cannot_be_read_is_refused(section, text):
    with pytest.raises(BadTemplate):
        section(text)


def test_a_value_that_is_not_there_is_refused(section):
    with pytest.raises(BadTemplate, match="ask for kappa"):
        say(section("The margin {kappa} is"), margin=1)


def test_every_work_that_is_cited_is_there_and_no_other():
    text = files("symcavity").joinpath("writing/sentences.txt").read_text(encoding="utf-8")
    cited = {f"works.{name}" for name in re.findall(r"\{cite (\w+)\}", text)}
    assert cited == {name for name in templates() if name.startswith("works.")}
    assert all(re.search(r"\d{4}\)$", sentence(work)) for work in cited)


def test_every_section_is_asked_for_somewhere():
    """By its whole name, or as one of a family that code names by its first part."""
    folder = files("symcavity").joinpath("writing")
    code = "\n".join(p.read_text(encoding="utf-8") for p in folder.iterdir() if p.name.endswith(".py"))
    face = files("symcavity").joinpath("face")
    code += "\n".join(p.read_text(encoding="utf-8") for p in face.iterdir() if p.name.endswith(".py"))
    for name in (name for name in templates() if not name.startswith("works.")):
        family, _, member = name.partition(".")
        assert not member or f"{name}" in code or f'"{family}.' in code or f'"{member}"' in code, name


def strings(data):
    """All strings in the data of a step."""
    if isinstance(data, str):
        return [data]
    if isinstance(data, dict):
        return [text for pair in data.items() for part in pair for text in strings(part)]
    return [text for part in data for text in strings(part)] if isinstance(data, list | tuple | set) else []


@pytest.mark.parametrize("name", ["gardner", "chaotic_network", "least_deviations"])
def test_steps_hold_data_and_no_sentence(name):
    steps = importlib.import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.steps
    assert not [text for step in steps for text in strings(dict(step.data)) if len(text.split()) > 3]


def opening(name, detail="paper"):
    problem = importlib.import_module(f"symcavity.derivations.{name}").problem
    return problem.cavity().derivation.to_latex(detail=detail).split("\\end{abstract}")[0]


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("gardner", "at zero temperature"),
        ("spin_glass", "at finite temperature"),
        ("chaotic_network", "dynamical cavity"),
    ],
)
def test_the_abstract_names_the_temperature_that_the_theory_has(name, there):
    words = ("at zero temperature", "at finite temperature", "dynamical cavity")
    assert [word for word in words if word in " ".join(opening(name).split())] == [there]


def test_one_order_parameter_is_one():
    assert "Its order parameter, defined where it is first used, is $" in opening("chaotic_network", "full")
    assert "Its order parameters, each defined where it is first used, are $" in opening("gardner", "full")
    assert "each defined where it is first used" not in opening("gardner")  # the closed system lists its unknowns


def paper(name):
    problem = importlib.import_module(f"symcavity.derivations.{name}").problem
    return problem.cavity().derivation.to_latex(detail="paper")


def test_constraints_hold_at_every_site_only_where_they_carry_an_index():
    said = "A constraint that carries a site index holds at every site."
    assert said in paper("gardner")
    assert said not in paper("least_variance_portfolio")  # its one constraint is on the sum over all sites


def test_a_result_that_was_said_is_not_said_again_and_needs_no_minus():
    text = paper("least_variance_portfolio")
    assert text.count(r"= - \frac{\alpha S^{\lambda}}{") == 1  # the condition on the sum is not eliminated once more
    assert r"\frac{\alpha}{\alpha - 1}" in text  # the cost of estimation, positive where there is a solution
    assert r"}{1 - \alpha}" not in text


def test_notation_is_explained_where_it_is_first_displayed():
    text = paper("binary_perceptron")
    assert text.count(r"\Theta(x)") + text.count(r"\Theta\left(x\right)") == 1
    assert text.index(" is one for positive ") < text.index(r"\section{Thermal means}")


def test_components_of_several_fields_of_a_site_have_names_of_their_own():
    from sympy import latex

    from symcavity.model.kinds import DATUM
    from symcavity.record.symbols import ComponentSymbol

    first, second = (ComponentSymbol("T", DATUM, (a,), tag) for tag in "12")
    assert (latex(first), latex(second)) == ("T_{1,a}^{0}", "T_{2,a}^{0}")
    assert first.whole() == r"\bm{T}^{0}_{1}"
    assert latex(ComponentSymbol("T", DATUM, (a,))) == "T_{a}^{0}"


def test_a_sign_stands_before_an_average():
    text = paper("binary_perceptron")
    assert r"1 - \left\langle \tanh^{2}" in text
    assert "+ -" not in text
    assert r"\left\langle -" not in text


def in_text(name):
    problem = importlib.import_module(f"symcavity.derivations.{name}").problem
    return " ".join(problem.cavity().derivation.to_text(detail="paper").split())


def test_the_values_of_discrete_states_are_stated_where_there_are_any():
    assert "Each s_i is -1 or 1." in in_text("associative_memory")
    assert "Each s_i is -1 or 1. Each v_a is -1 or 1." in in_text("boltzmann_machine")
    assert "Each w_i" not in in_text("fewest_errors")
    assert "each of the states s_i and v^μ is where its energy" in in_text("projection_memory")


def test_a_gibbs_measure_has_an_energy_and_minimizes_nothing():
    text = in_text("spin_glass")
    assert "with the energy E = -H Σ_i s_i" in text
    assert "minimize" not in text
    assert "minimize Σ_μ Θ" in in_text("fewest_errors")


def test_the_multiplier_of_a_condition_is_introduced_before_it_is_used():
    """The energy with this term is stationary where the condition holds: of w, -2 nu w is the slope of the term."""
    said = "The condition Σ_i w_i² - N = 0 has the multiplier ν, which all sites share: the term -ν (Σ_i w_i² - N) is"
    text = in_text("fewest_errors")
    assert text.index(said) < text.index("Through ν it reaches all sites")
    assert "E(w₀) = -η₀ w₀ - ν w₀² - α S^λ w₀²/2" in text
    assert "has the multiplier" not in in_text("best_subset")


def test_a_sum_is_in_brackets_where_a_sentence_multiplies_it():
    text = in_text("best_subset")
    assert "lowers the energy by (η₀ - α t₀ S^λ) · w₀ and" in text
    assert "It is {" not in text.split("lowers the energy by")[0]
    assert "lowers the energy by η₀ · w₀ and" in in_text("fewest_errors")


@pytest.mark.parametrize(
    ("words", "values", "said"),
    [
        ("$@x \\cdot @y$", {"x": a + b, "y": c}, "(a + b) · c"),
        ("$(@x)^2 / (2 \\, @y)$", {"x": a + b, "y": a + c}, "(a + b)²/(2 (a + c))"),
        ("$@x \\ge 0$", {"x": a + b}, "a + b ≥ 0"),
        ("$1 + R @x$", {"x": a + b}, "1 + R (a + b)"),
        ("$c - @x$", {"x": a + b}, "c - (a + b)"),
        ("$c + @x = 0$", {"x": a + b}, "c + a + b = 0"),
    ],
)  # fmt: skip
def test_sums_in_formulas_of_sentences_have_brackets_where_they_are_factors(section, words, values, said):
    from symcavity.writing.unicode import to_text

    (found,) = say(section(words), **values)
    assert to_text(found) == said


@pytest.mark.parametrize("name", ["manifold", "correlated_manifolds"])
def test_the_matrix_of_a_touching_set_and_its_vector_are_defined_before_they_are_used(name):
    text = in_text(name)
    assert text.index("P = (1 - ") < text.index("tr(P)")
    assert text.index("Here V_a^μ = Σ_") < text.index("(∇ g_S)_a(V^μ) λ^μ")
    assert "axis of the ball" not in text  # an example, which a paper leaves out
    assert "the trace of the response of the vector multiplier is" in text


def test_a_radius_of_a_ball_is_multiplied_by_the_whole_response():
    problem = importlib.import_module("symcavity.derivations.correlated_manifolds").problem
    text = " ".join(problem.cavity().derivation.to_text().split())
    assert "1/(1 + R (ρ S_(λ₂)^m" in text
    assert "λ⁰/r), where r is the length of the part of the vector that is orthogonal to the axis of the ball" in text


def test_a_letter_d_is_a_factor_and_a_differential_clings():
    text = in_text("random_features")
    assert "g^μ = noise^μ - d h₂^μ - h^μ" in text
    assert "S_ψ^v = ⟨dv_a/dI_a⟩" in text
    assert "du_(x, i)(t)/dI_j(s)" in in_text("chaotic_network")


def test_self_couplings_are_defined_in_the_number_that_there_are():
    assert "The terms of first order, in which" in in_text("random_features")
    assert "define the self-couplings" in in_text("random_features")
    assert "The term of first order, in which" in in_text("gardner")


def test_responses_from_kind_to_kind_are_left_out_where_several_kinds_hear_the_new_site():
    """Fresh couplings F and x are independent: F[a, 0]*x[mu, 0] vanishes on average, whatever it multiplies."""
    said = "The responses of one kind to the fields of another are left out"
    assert in_text("random_features").count(said) == 1
    assert said not in in_text("gardner")
    assert said not in in_text("competing_species")


def test_continuous_laws_that_the_problem_declares_are_stated():
    from sympy import Sum
    from sympy.stats import Gamma

    from symcavity import ConvexProblem, Coupling, Feature, N, P, Quenched, i, mu

    assert "(t_i is Gaussian with mean 0 and variance 1; y^μ is 1 with" in in_text("bayes_perceptron")
    assert "is Gaussian with mean 0" not in in_text("gardner")
    x, w, e = Coupling("x"), Feature("w"), Quenched("e", mu, law=Gamma("e", 2, 3))
    loss = Sum((e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    text = ConvexProblem(loss + Sum(w[i] ** 2, (i, 1, N))).cavity().derivation.to_text()
    assert "(e^μ has the distribution Gamma(2, 3))" in " ".join(text.split())


def test_a_temperature_of_one_is_not_written_as_a_divisor():
    assert "fluctuates with the variance S^m: it is" in in_text("sparse_means")
    assert "fluctuates with the variance S^m/β: it is" in in_text("binary_perceptron")


def test_a_descent_says_by_which_number_the_slope_of_a_shared_variable_is_divided():
    """The step of the bias in the record is the rate over N, times the sum of the slopes of all losses."""
    text = in_text("descent_momentum")
    assert "the slope in w_i(t) and b(t) (that in b(t) divided by N) of the objective" in text
    assert "(ϵ/N) Σ_μ y^μ" in text
    assert "same for all sites and for every instance: global variables, each fixed by an equation of its own." in text
    assert "divided by N)" not in in_text("noisy_teacher")
    assert "for every instance: a global variable, fixed by an equation of its own." in in_text("competing_species")


def test_averages_inside_of_averages_are_over_letters_of_their_own():
    text = in_text("boltzmann_machine")
    assert "√(α_K ⟨tanh²(β √q_s z₂)⟩_(z₂)))⟩_z" in text
    assert "⟩_z))⟩_z" not in text


def test_an_elimination_that_says_what_an_equation_says_is_not_displayed():
    text = in_text("correlated_points")
    assert text.count("S_(v₂)^w = ") == 2  # its meaning, and its closed equation
    assert "the theory is reduced to equations" in text
    assert in_text("random_features").count("q_λ = ") == 2


def test_a_section_in_text_has_one_blank_line_between_paragraphs():
    problem = importlib.import_module("symcavity.derivations.random_features").problem
    assert "\n\n\n" not in problem.cavity().derivation.to_text(detail="paper")


@pytest.mark.parametrize("name", ["bidirectional_memory", "best_subset", "gardner"])
def test_an_infinite_stability_is_said_where_states_jump_with_what_comes_back(name):
    module = importlib.import_module(f"symcavity.derivations.{name}")
    theory = module.problem.cavity()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stability = theory.solve(module.values).stability
    assert ("is infinite" in theory.derivation.to_text()) == (stability == float("inf")) == (name != "gardner")


def test_a_jump_that_is_only_passed_on_makes_no_stability_infinite():
    w, t, x = Feature("w"), Datum("t"), Coupling("x")
    heard = Eq(t[mu], sign(Sum(x[mu, i] * 1, (i, 1, N))))
    learned = Eq(w[i], Sum(x[mu, i] * t[mu], (mu, 1, P)))
    assert "is infinite" not in System([learned, heard]).cavity().derivation.to_text()
    j = Symbol("j", integer=True)
    returned = Eq(w[i], sign(Sum(Coupling("J", between=(i, i))[i, j] * w[j], (j, 1, N))))
    assert "is infinite" in System([returned]).cavity().derivation.to_text()


def full(name):
    return " ".join(
        importlib.import_module(f"symcavity.derivations.{name}").problem.cavity().derivation.to_text().split()
    )


def test_nothing_is_subtracted_from_fields_that_nothing_comes_back_to():
    assert "nothing is subtracted from it" in full("driven_network")  # independent couplings of both directions
    assert "Onsager" not in full("driven_network")
    assert "Onsager" in full("gardner")
    assert "nothing is subtracted" not in full("gardner")


@pytest.mark.parametrize(
    ("name", "labels", "steps"),
    [("logistic_teacher", True, False), ("sign_teacher", False, True), ("gardner", False, False)],
)
def test_messages_say_what_local_responses_do_not_contain(name, labels, steps):
    text = full(name)
    assert ("without the change of their probabilities" in text) == labels
    assert ("the delta functions of a law that jumps: their part" in text) == steps


def test_the_lowest_states_are_found_by_no_messages_where_they_jump():
    """Their local responses vanish, and the stability is infinite: the package refuses to pass them, too."""
    problem = importlib.import_module("symcavity.derivations.associative_memory").problem
    derivation = problem.cavity().derivation
    assert not {"messages", "state_evolution"} & {step.rule for step in derivation.steps}
    with pytest.raises(UnsupportedLaw, match="Messages are not passed for the lowest minimum"):
        problem.message_passing({alpha: "1/20"}, N=20, seeds=1)


def test_a_bound_of_the_stability_of_minima_is_said_of_minima_only():
    said = "A convex problem with one minimum has"
    assert [said in full(name) for name in ("gardner", "bayes_perceptron", "spin_glass")] == [True, False, False]


def test_changes_go_from_kind_to_kind_where_there_are_several():
    assert "After one step the variances are" in full("spin_glass")
    assert "After one step from kind to kind the variances are" in full("gardner")


def test_the_naive_analysis_is_explained_where_it_is_first_named():
    for name in ("gardner", "soft_margin"):
        text = full(name)
        first = text.index("naive analysis")
        assert "leaves out the self-coupling of a feature" in text[first : first + 80]


def test_a_reduced_system_says_which_unknowns_it_fixes():
    assert "these are equations for S^w and q_w." in full("soft_margin")
    assert "this is an equation for q_m." in full("spin_glass")
    assert "put in, th" not in full("gardner")  # its results are closed forms


def test_one_work_is_one_reference():
    """The works of a system and those of the method may be written in different styles."""
    text = importlib.import_module("symcavity.derivations.spin_glass").problem.cavity().derivation.to_text()
    assert text.count("11, 983 (1978)") == 1


def test_stationarity_names_each_state_once():
    w, b, nu = Feature("w"), Global("b"), Symbol("tau", positive=True)
    x, y = Coupling("x"), Quenched("y", mu, law={1: "1/2", -1: "1/2"})
    margin = y[mu] * (Sum(x[mu, i] * w[i], (i, 1, N)) + b)
    loss = Sum(Max(0, 1 - margin) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2
    text = ConvexProblem(loss, [w[i] >= 0, Eq(Sum(w[i], (i, 1, N)), N * nu)]).cavity().derivation.to_text()
    assert text.count("tationarity of the Lagrangian") == 1


def test_responses_to_several_fields_are_one_where_a_site_hears_their_combination():
    said = "Datum sites hear one combination of their fields only"
    assert [said in full(name) for name in ("correlated_manifolds", "manifold", "group_lasso")] == [True, False, False]


def test_a_vector_response_stands_once_in_a_paper():
    """By the order parameter that it is; in the whole derivation it is that of the inserted site."""
    derivation = importlib.import_module("symcavity.derivations.manifold").problem.cavity().derivation
    text, whole = (" ".join(derivation.to_text(detail=detail).split()) for detail in ("paper", "full"))
    assert text.count("⟨ψ⟩_(1/√q_w)/S^w") == 1
    assert "isplacement is along the anchor point" not in text  # the law says it
    assert "isplacement is along the anchor point" in whole


def test_roots_steps_and_averages_are_written_once():
    text = full("bayes_perceptron")
    assert "|√" not in text  # a root is not negative
    assert "S_(u_y)^λ = (2/(q_m ⟨t_i²⟩ - q_tm²))" in text  # two averages that differ by their sign are one
    w, b = Feature("w"), Global("b")
    x, y = Coupling("x"), Quenched("y", mu, law={1: "1/2", -1: "1/2"})
    margin = y[mu] * (Sum(x[mu, i] * w[i], (i, 1, N)) + b)
    problem = ConvexProblem(Sum(Max(0, 1 - margin) ** 2, (mu, 1, P)) / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)
    assert "Θ" not in problem.cavity().derivation.to_text()  # a positive part vanishes where its step does


def test_averages_over_a_measure_are_thermal_ones_first():
    assert "m = ⟨⟨s_i⟩_β⟩, q = ⟨⟨s_i⟩_β²⟩" in full("spin_glass")
    assert "⟨s_i⟩ = m" in full("associative_memory")  # a lowest state does not fluctuate


def test_observables_of_copies_are_derivatives_of_minima():
    from symcavity import average
    from symcavity.derivations import soft_margin

    size, slack = average(soft_margin.w[i] ** 2), average(soft_margin.xi[mu])
    theory = soft_margin.problem.cavity()
    one, two = (theory.fluctuations(*some).derivation.to_text() for some in ((size,), (size, slack)))
    assert "the variance of the observable, times N, is the mixed derivative" in " ".join(one.split())
    assert "the covariance of the two observables, times N, is the mixed derivative" in " ".join(two.split())
    assert "divided by N, by the numbers of the two copies" in " ".join(two.split())


def test_a_lasso_prints_soft_thresholds():
    text = in_text("sparse_regression")
    assert "w₀ = (1/(α S^λ)) ([α s₀ size₀ S^λ - η₀ - C - I₀]_+ - [η₀ - α s₀ size₀ S^λ - C + I₀]_+)" in text
    assert "if η₀ < α s₀ size₀ S^λ + C" not in in_text("sparse_regression")


def test_equations_that_vanish_are_solved_for_what_stands_alone():
    assert "M = 2 φ₀(M/√(α q_λ)) - 1" in in_text("associative_memory")
    assert "1 = α (φ₂(1/√q_w) - φ₂((1 - C S^w)/√q_w)) - 2 C α S^w φ₁((1 - C S^w)/√q_w)/√q_w" in full("soft_margin")


def test_a_finite_sum_over_states_uses_no_sign():
    assert "This uses" not in full("spin_glass")
    assert "This uses 1 - α S^λ > 0" in full("bayes_perceptron")  # an integral that converges


def test_self_couplings_of_further_kinds_are_defined_in_a_paper():
    assert "are again the factors of its own messages in the terms of first order" in in_text("gardner")


@pytest.mark.parametrize("name", ["logistic_teacher", "flipped_labels"])
def test_an_effective_law_cites_no_number_that_holds_the_law_before_its_average(name):
    """Beside the field of a teacher, which has no feedback, stands that of the student with its self-coupling."""
    text = full(name)
    law = text[text.index("the effective law of a datum site is") :][:160]
    assert "site is equation" not in law
    assert "u_y⁰ = η" in law


def test_unknowns_of_a_reduced_system_go_by_names_that_stand_in_it():
    """Where a variable that all sites share has no unit, its name in units is nowhere defined."""
    text = in_text("spiked_matrix")
    assert "these are equations for q_m, M_st and ν." in text
    assert "M̂" not in text


def test_a_weight_is_a_function_of_all_states_of_its_site():
    text = in_text("sparse_means")
    assert "P(v₀, z₀) = " in text
    assert "the mean is a sum over the states z₀ and an integral over v₀," in text
    assert "the mean is a sum over the states s₀," in in_text("spin_glass")


def test_a_posterior_is_the_prior_times_the_likelihood():
    assert "is, up to a constant factor, its prior times the likelihood of the data" in in_text("sparse_means")


def test_sums_over_the_past_say_why_they_end_a_step_earlier():
    """What is sent follows the field one step later, or at once: gradients of a loss at this step."""
    said = "so that the sum ends one step earlier"
    assert said in in_text("reciprocal_network")
    text = in_text("descent_momentum")
    assert said not in text[: text.index("Datum cavity")]  # data answer at once
    assert said in text


def test_an_average_with_two_indices_names_both():
    assert "carry the margin, and the bound of the multiplier, in these units as indices" in in_text("soft_manifold")
    assert "carry the bound in these units as an index" in in_text("manifold")
    assert ", at this minimum h⁰ = " in in_text("soft_manifold")


def test_a_joint_law_without_its_sources_says_so():
    text = in_text("softmax")
    assert "at zero source, for each value of η_(0, 1), η_(0, 2) and η_(0, 3), the law fixes" in text
    assert "where a value of it is put into the bracket, the site has this value" in text


def test_an_unknown_with_the_opposite_sign_has_not_the_letter_of_the_state():
    """The state is y >= 0, and the law is solved in -y."""
    y, k = Feature("y"), Quenched("K", i)
    J, j = Coupling("J", between=(i, i), variance=1 / (4 * N)), Symbol("j", integer=True)
    pair = Complementary(y[i], y[i] + y[i] ** 2 - k[i] + Sum(J[i, j] * y[j], (j, 1, N)))
    text = System(equations=[], conditions=[pair]).cavity().derivation.to_text()
    assert "solved for y_- < 0" in text
    assert "{-y_- if" in text


def test_an_error_is_not_named_as_the_energy_of_a_site():
    for name in ("best_subset", "projection_memory"):
        problem = importlib.import_module(f"symcavity.derivations.{name}").problem
        assert Symbol("E") not in problem.named


def test_a_sum_over_all_sites_has_not_the_index_of_its_site():
    text = in_text("recalled_memory")
    problem = text[: text.index("At the beginning")]
    assert "Σ_j ξ_j x_j(t)" in problem
    assert "Σ_i ξ_i x_i(t)" not in problem


def test_a_new_site_moves_what_all_share_in_time_as_well():
    for name, shared in (("moving_species", "M_n(t)"), ("recalled_memory", "M_(x, ξ)(t)")):
        assert f"Through {shared} it reaches all sites, but moves it by terms of order 1/N only" in in_text(name)


def test_minima_of_sites_are_written_in_cavity_fields():
    """A sum of couplings times messages is the cavity field of a record: the minimum of a site is taken at this one."""
    from symcavity.derivations import noisy_teacher

    record = noisy_teacher.problem.cavity().fluctuations().derivation
    again = [claim.rhs for claim in record["fluctuations.minima"].claims]
    assert again == [claim.rhs for claim in record["minimum"].claims[:-1]]
    assert "M₀ = γ w₀²/2 - (w₀ - t₀) (η₀ + α S^λ (w₀ - t₀)/2)" in record.to_text()


def test_a_minimum_has_one_letter_in_a_record():
    w, x, shift = Feature("w"), Coupling("x"), Global("M")
    error = Sum((1 - shift - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    record = ConvexProblem(error + Sum(w[i] ** 2, (i, 1, N))).cavity().fluctuations().derivation
    assert {claim.lhs.family.name for claim in record["fluctuations.minima"].claims} == {"B"}
    assert {claim.lhs.family.name for claim in record["minimum"].claims[:-1]} == {"B"}


def test_records_of_two_sites_say_what_they_have():
    from symcavity.derivations import driven_network, noisy_teacher

    text = " ".join(driven_network.problem.cavity().pair(over=[driven_network.b]).derivation.to_text().split())
    assert "the mean response of a single site is" in text
    assert "Keep the couplings, and let b_i vary" in text
    assert "the covariance matrix of u_(x, i) over" in text  # of all sites, not of the new one
    theory = noisy_teacher.problem.cavity()
    text = " ".join(theory.pair(over=[noisy_teacher.noise]).derivation.to_text().split())
    assert "Keep the couplings and the parameter t_i, and let noise^μ vary" in text
    assert "At given m_(v, 0), m_u⁰ and t_i, the mean of the message of a site" in text


def test_rates_of_order_parameters_are_written_as_these_are():
    """A message that is given feels a curvature: it is defined in the record whose rates hold it."""
    from symcavity import average
    from symcavity.derivations import noisy_teacher, sign_teacher

    size = average(sign_teacher.w[i] ** 2)
    text = " ".join(sign_teacher.problem.cavity().fluctuations(size).derivation.to_text().split())
    assert "at the rates dS^g, dS_(h₂)^g, dq_g, dS^w, dq_w, dq_tw and dK" in text
    assert "times K, the curvature of the minima of all neighbors in this field" in text
    plain = noisy_teacher.problem.cavity().fluctuations(average(noisy_teacher.w[i] ** 2)).derivation.to_text()
    assert "To second order in the field" not in plain
    assert "the self-couplings and the variances of the fields, at the rates" in " ".join(plain.split())


def test_messages_of_several_fields_have_several_echoes():
    one, several = full("gardner"), full("correlated_points")
    assert "Each site subtracts from its field the part that its own last message has caused" in one
    assert "Each site subtracts from each of its fields the part that its own last messages have caused" in several
    assert "at these cavity fields, with these self-couplings" in several
    assert "at this cavity field, with this self-coupling" in one


def test_means_of_several_couplings_are_left_out_in_the_plural():
    assert "have means; without them we write" in full("one_sided_diet")
    assert "has a mean; without it we write" in full("spiked_matrix")


def test_a_shared_variable_that_moves_is_introduced():
    assert "The variable b(t) is shared by all sites" in in_text("descent_momentum")
    assert "shared by all sites" not in in_text("moving_modes")


def test_functions_that_depend_on_a_parameter_say_so():
    """``m(eta)`` differs from site to site: the average over the parameter would be one over nothing that is seen."""
    w, x, u = Feature("w"), Coupling("x"), Quenched("u", i)
    loss = Sum((1 - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P)) / 2
    for center, said in ((u[i], True), (0, False)):
        prior = Sum(log(cosh(w[i] - center)) + w[i] ** 2 / 2, (i, 1, N))
        theory = ConvexProblem(loss + prior).gibbs(Symbol("beta", positive=True)).cavity()
        text = " ".join(theory.derivation.to_text().split())
        assert "keeps its name from here on, m(η₀)" in text
        assert ("m(η₀) depends on u₀, too, which is not written." in text) is said
    assert "v(r₀) depends on K₀, too" in full("supplied_resources")  # R(r₀) does not


def test_an_abstract_names_the_variables_of_all_sites():
    assert "are S^λ, q_λ, S^w and q_w; the variable b belongs to all sites." in full("output_bias")
    assert "to all sites." not in full("gardner")


def test_sites_differ_whatever_the_equations_say():
    """The equations before a claim were given as the reason for which features have parameters of their own."""
    text = full("spiked_matrix")
    assert re.search(r"The features differ by their parameters\. By equation \(\d+\), the average over", text)


def test_an_effective_law_without_a_self_coupling_says_so():
    derivation = importlib.import_module("symcavity.derivations.gardner").problem.naive().derivation
    text = " ".join(derivation.to_text().split())
    assert "without the self-coupling, the effective law of a feature site is" in text
    assert "with the self-coupling at its mean, the effective law of a datum site is" in text
    assert "without the self-coupling" not in full("gardner")


def test_the_fields_of_a_site_are_changed_together_where_it_has_several():
    """The product of two changes at one site has a mean: only those at different sites are independent."""
    one = "Change the cavity field of every site by a small random amount, independent from site to site"
    many = "Change the cavity fields of every site by small random amounts, independent from site to site"
    assert [one in full(name) for name in ("gardner", "group_lasso")] == [True, False]
    assert [many in full(name) for name in ("gardner", "group_lasso")] == [False, True]


def test_places_where_a_support_function_has_no_gradient_may_have_positive_probability():
    """An isolated edge of a smooth body has none; a plane through the origin holds no point of the margin."""
    text = full("manifold")
    assert "a flat face of the set makes one, which may have positive probability" in text
    assert "A set that lies in a hyperplane off the origin is such a face as a whole" in text



def test_an_abstract_names_multipliers_beside_the_variables():
    assert "with the variables w_i and the multiplier λ^μ, which interact" in full("gardner")
    assert "with the variables w_i, which interact" in full("noisy_teacher")


def test_kinds_of_several_words_have_their_plural_in_the_noun():
    names = {"hidden unit": "hidden units", "example of the second task": "examples of the second task",
             "stored memory": "stored memories", "class": "classes", "way": "ways"}  # fmt: skip
    for place, (one, several) in enumerate(names.items()):
        kind = Variable("v", Sites(f"c{place}", f"M{place}", one)[0]).slots[0]
        assert kind.plural == several
    task = Variable("v", Sites("c", "M", "example of the second task")[0]).slots[0]
    assert (task.site, task.sites) == ("an example of the second task", "examples of the second task")


def test_logarithms_of_states_have_not_their_letter():
    n, m, j = Feature("n"), Symbol("m", positive=True), Symbol("j", integer=True)
    J = Coupling("J", between=(i, i), variance=1 / (9 * N))
    law = Eq(n[i] * (1 - n[i] - Sum(J[i, j] * n[j], (j, 1, N))) + m, 0)
    said = System([law], [n[i] >= 0]).cavity().derivation.to_text()
    assert "n₀ = e^(ℓ_n)" in said
    assert "e^n" not in said
