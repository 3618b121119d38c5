"""What derivations say, where it depends on the system: words that stand only where they are true."""

from importlib import import_module

import pytest
from matplotlib.mathtext import MathTextParser
from sympy import And, Max, Sum, Symbol, sign

from symcavity import ConvexProblem, Coupling, Datum, Feature, N, P, Quenched, average, i, mu
from symcavity.finite.compare import default_observables
from symcavity.finite.labels import label_tex

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
    words = "Parts of emissions that are given"
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
