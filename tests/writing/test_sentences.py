"""The sentences are data: each can be filled in, each is used, and the small language does what it says."""

import importlib
import re
from importlib.resources import files

import pytest
from sympy import Symbol

from symcavity.writing.fragments import EarlierSteps, Emphasis, Show
from symcavity.writing.reader import read
from symcavity.writing.words import BadTemplate, Said, names_in, say, sentence, templates

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


def test_names_of_values_are_found_wherever_they_stand():
    assert names_in(templates()["branches"]["before"]) >= {"several", "paired", "branches", "rows", "field"}


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
