"""Letters of the method make way for those of a declaration: no symbol of a printed derivation means two things."""

import re
from importlib import import_module

import pytest
from sympy import Eq, Rational, Sum, Symbol, exp, log, symbols

from symcavity import ConvexProblem, Coupling, Feature, N, P, Problem, Quenched, System, average, i, mu
from symcavity.writing.letters import LETTERS

x, w, s = Coupling("x"), Feature("w"), Feature("s", values=(-1, 1))


def ridge(teacher, noise, strength):
    error = Sum(x[mu, i] * (w[i] - teacher[i]), (i, 1, N)) - noise[mu]
    loss = Sum(error**2, (mu, 1, P)) / 2 + strength * Sum(w[i] ** 2, (i, 1, N)) / 2
    return ConvexProblem(minimize=loss, name="Ridge").cavity().derivation


def test_a_noise_eta_is_not_the_cavity_field():
    text = ridge(Quenched("t", i), Quenched("eta", mu), Symbol("gamma", positive=True)).to_text()
    assert "λ⁰ = η⁰ - h⁰, h⁰ = ω⁰ + S^w λ⁰ + I⁰" in text  # η⁰ - h⁰ is the noise less the field
    assert "⟨(ω⁰)²⟩ = q_(w - t)" in text
    assert "⟨(δω⁰)²⟩" in text


def test_inputs_of_the_name_i_are_not_the_sources():
    j, units, inputs = Symbol("j", integer=True), Feature("s"), Quenched("I", i)
    J = Coupling("J", between=(i, i), variance=1 / (4 * N), reciprocity=Rational(1, 2))
    system = System(equations=[Eq(units[i], Sum(J[i, j] * units[j], (j, 1, N)) + inputs[i])])
    text = system.cavity().derivation.to_text()
    assert "s_i = I_i + Σ_j J_ij s_j + Y_i" in text
    assert "s₀ = η₀ + F₀₀ s₀ + I₀ + Y₀" in text


def test_a_number_of_the_name_l_is_not_the_lagrangian():
    text = ridge(Quenched("t", i), Quenched("e", mu), Symbol("L", positive=True)).to_text()
    assert "ℒ = " in text
    assert not re.search(r"^ *L = ", text, re.MULTILINE)


@pytest.mark.parametrize(("teacher", "step"), [("t", "s"), ("u", "t")])
def test_the_step_of_a_message_is_not_a_teacher(teacher, step):
    text = ridge(Quenched(teacher, i), Quenched("e", mu), Symbol("gamma", positive=True)).to_text()
    assert f"^({step} + 1)" in text
    assert f"{'t' if step == 's' else 's'} + 1)" not in text


def test_the_step_beside_two_other_letters_is_not_an_abundance():
    text = ridge(Quenched("t", i), Quenched("s", mu), Symbol("gamma", positive=True)).to_text()
    assert "^(r + 1)" in text


def test_a_third_time_is_not_a_message():
    """A message that is not linear has the letter u: no sum over times runs over it."""
    from symcavity.derivations import moving_modes

    text = moving_modes.problem.cavity().derivation.to_text()
    assert "u_(x, 0)(r)" in text
    assert not re.search(r"\(u\)|u = s", text)


def test_a_number_of_the_name_e_is_not_the_energy():
    E, beta = symbols("E beta", positive=True)
    square = Sum(Sum(x[mu, i] * s[i], (i, 1, N)) ** 2, (mu, 1, P)) / (2 * E)
    text = Problem(minimize=square, named={Symbol("m"): average(s[i])}).gibbs(beta).cavity().derivation.to_text()
    assert "exp(-β U)" in text
    assert re.search(r"^ *U = \(1/\(2 E\)\)", text, re.MULTILINE)


def test_letters_stay_where_nothing_asks_for_them():
    text = ridge(Quenched("u", i), Quenched("e", mu), Symbol("gamma", positive=True)).to_text()
    assert "h⁰ = η⁰ + S^w λ⁰ + I⁰" in text
    assert re.search(r"^ *L = ", text, re.MULTILINE)
    assert all(letter == every[0] for letter, every in LETTERS.items())


def test_averages_of_a_joint_law_have_the_letter_of_its_fields():
    """A label of the name eta is averaged over as well: it is no cavity field."""
    one, other, label = Feature("v"), Feature("u"), Quenched("eta", mu)
    first, second = (Sum(x[mu, i] * v[i], (i, 1, N)) for v in (one, other))
    loss = log(1 + exp(first) + exp(second)) - label[mu] * first
    ridges = Sum(one[i] ** 2 + other[i] ** 2, (i, 1, N)) / 2
    text = ConvexProblem(Sum(loss, (mu, 1, P)) + ridges).cavity().derivation.to_text()
    assert "⟩_ω⟩" in text
    assert "⟩_η" not in text
    assert "A bracket with the index ω is an average over the cavity fields" in " ".join(text.split())
    inputs = ConvexProblem(Sum(loss.xreplace({label[mu]: Quenched("I", mu)[mu]}), (mu, 1, P)) + ridges)
    text = inputs.cavity().derivation.to_text()
    assert "⟨⟨∂g⁰/∂J⁰⟩_η⟩" in text
    assert "∂I" not in text


@pytest.mark.parametrize("name", ["moving_species", "reciprocal_network"])
def test_a_time_has_no_letter_of_a_parameter(name):
    """The reciprocity r stood in an integral over the time r."""
    theory = import_module(f"symcavity.derivations.{name}").problem.cavity()
    text = theory.derivation.to_text()
    assert not re.search(r"\(t, r\)|\bdr\b|_\(r = ", text)
    assert re.search(r"\(t, p\)", text)
    assert "(t, s)" in text


def test_the_second_time_keeps_its_letter_where_it_is_free():
    theory = import_module("symcavity.derivations.recalled_memory").problem.cavity()
    assert not re.search(r"\(t, p\)", theory.derivation.to_text())
