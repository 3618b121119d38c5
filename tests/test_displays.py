"""What users hold shows itself in a notebook: HTML that parses, with the numbers that the text has."""

import pickle
import re
import xml.etree.ElementTree as ET
from importlib import import_module

import numpy as np
import pytest
from sympy import Symbol, latex

from symcavity import alpha, average, i, spectrum
from symcavity.derivations import gardner, soft_margin
from symcavity.loading import paper_table
from symcavity.study.boundary import Boundary

w, C = soft_margin.w, Symbol("C", positive=True)
AT = {alpha: 2, C: 1}


def tree(obj):
    """The HTML of an object, read."""
    text = re.sub(r"<style>.*?</style>", "", obj._repr_html_(), flags=re.DOTALL).replace("<br>", "<br/>")
    return ET.fromstring(f"<div>{text}</div>".replace("&nbsp;", " "))  # noqa: S314 - our own


def words(obj):
    return " ".join(tree(obj).itertext())


@pytest.fixture(scope="module")
def theory():
    return soft_margin.problem.cavity()


@pytest.fixture(scope="module")
def run():
    return soft_margin.problem.message_passing(AT, N=60, seeds=2, steps=12)


def test_a_run_of_message_passing_is_a_table_of_its_steps(run):
    found = tree(run)
    rows = [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]
    assert [row[0] for row in rows] == ["step", "0", "1", "2", "3", "5", "10", "12"]
    assert len(found.findall(".//th//math")) == len(rows[0]) - 2 > 2
    at = 2 + [str(o) for o in run._told_at()[1]].index("average(w[i]**2)")
    shown = float(re.match(r"[-\d.e]+", rows[-1][at]).group())
    assert shown == pytest.approx(run[average(w[i] ** 2)][12].mean, abs=0.02)
    assert "residuals" in words(run)
    assert "N = 60" in words(run)
    assert "in a step" in words(run)
    assert str(run).count("\n") == len(rows) + 2  # with the residuals and the pace


def test_equations_of_a_theory_stand_in_lines_that_fit(theory):
    from symcavity.writing.printing import tree as formula
    from symcavity.writing.rows import PAGE, width

    (cells,) = tree(theory).findall("div")
    said = ["".join(cell.itertext()).strip() for cell in cells]
    starts = [left for left in said[::2] if left]
    assert len(starts) == len(theory.equations) < len(said) / 2  # long ones go on below
    assert max(width(formula(e)) for e in theory.equations) > PAGE
    assert all(len(left + right) < PAGE for left, right in zip(said[::2], said[1::2], strict=True))


def test_state_evolution_is_a_table_of_its_steps(theory):
    evolution = theory.state_evolution(AT, steps=4)
    rows = [["".join(cell.itertext()) for cell in row] for row in tree(evolution).iter("tr")]
    assert [row[0] for row in rows] == ["step", "0", "1", "2", "3", "4"]
    values = list(evolution.values.values())
    assert [float(x) for x in rows[-1][1:]] == pytest.approx([float(v[4]) for v in values], rel=1e-5)


def test_an_optimum_shows_its_solution(theory):
    best = theory.optimize(average(w[i] ** 2), C, {alpha: 1}, bounds=("1/2", 1))
    assert str(best) in words(best)
    assert "residual" in words(best)


def test_a_boundary_is_a_table():
    one = Boundary("stability", C, alpha, ((1, 2.5, 0.01), (2, 3.5, 0.0)))
    found = words(one)
    assert "stability is lost at" in found
    assert "2.500(10)" in found
    assert "3.5" in found
    assert len(tree(one).findall(".//th//math")) == 2
    alone = Boundary("stability", None, alpha, ((None, 2.5, 0.01),))
    assert "2.500(10)" in words(alone)


def test_the_rest_shows_itself(theory):
    rng = np.random.default_rng(1)
    seen = spectrum(rng.normal(size=(40, 3)), rng.normal(size=40))
    assert "3 directions" in words(seen)
    table = paper_table()
    assert len(list(tree(table).iter("tr"))) == len(table) + 1
    solution = theory.solve(AT)
    assert "residual" in words(solution)
    simulation = soft_margin.problem.simulate(AT, N=30, seeds=2)
    assert "N = 30" in words(simulation)
    assert "theory" in words(theory.compare(simulation, [average(w[i] ** 2)]))
    assert "alpha" in words(theory.sweep({alpha: [1, 2]}, values={C: 1}))
    assert "closed by" in words(theory)
    assert theory.equations[0]._repr_latex_().startswith("$")


def test_a_theory_shows_one_of_what_is_alike_and_says_what_responds_to_what():
    from symcavity.derivations import clusters_hinge, softmax

    page = softmax.problem.cavity()._repr_html_()
    rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    assert len(rows) == len(set(rows)) == 8  # two of nine responses and two of six moments, of either kind
    assert "holds for any others in their places" in page
    assert len(softmax.problem.cavity().order_parameters) == 30
    meanings = [row.partition("<td style")[2] for row in rows]
    assert len(set(meanings)) == len(rows)  # each response says to which field
    assert "renamed" not in clusters_hinge.problem.cavity()._repr_html_()


def test_equations_and_sites_are_formulas_and_equations_are_a_list(theory):
    shown = theory.equations._repr_html_()
    assert isinstance(theory.equations, list)
    assert list(theory.equations) == theory.equations[:]
    for part in (shown, theory.feature._repr_html_(), theory.datum._repr_html_()):
        ET.fromstring(f"<div>{part}</div>")  # noqa: S314 - our own markup
        assert part.count("<math") >= 4
    assert shown.count("=</mo>") >= len(theory.equations)
    assert type(pickle.loads(pickle.dumps(theory.equations))) is list  # noqa: S301 - our own


def test_order_parameters_and_symmetries_are_formulas(theory):
    shown = theory.order_parameters
    assert len(tree(shown).findall(".//math")) == 2 * len(shown)
    assert type(pickle.loads(pickle.dumps(shown))) is dict  # noqa: S301 - our own
    found = gardner.problem.symmetry()
    assert "<math" in found._repr_html_()
    assert "leaves the declared law as it is" in words(found)
    assert "No rescaling symmetry" in words(soft_margin.problem.symmetry())


def test_sympy_writes_a_theory_as_its_equations(theory):
    written = latex(theory)
    assert written.count("&=") == len(theory.equations)
    assert "mathtt" not in written


@pytest.mark.parametrize("name", ["driven_network", "chaotic_network"])
def test_a_variable_that_nobody_declared_is_told_before_it_is_used(name):
    theory = import_module(f"symcavity.derivations.{name}").problem.cavity()
    said = str(theory).splitlines()
    assert re.match(r"  u_x\[i(, t)?\] = (tanh|erf)", said[1]), said[1]
    assert "u_x" in said[2]
    cells = ["".join(row.itertext()) for row in tree(theory).iter("tr")]
    assert re.search("tanh|erf", cells[0]), cells[0]
    assert "u_" not in str(soft_margin.problem.cavity())


def test_a_theory_writes_out_each_law_that_its_equations_name():
    """Functions of an implicit law, and states that a joint law fixes together, are defined where they are shown."""
    from symcavity.derivations import logistic_teacher, softmax

    theory = logistic_teacher.problem.cavity()
    assert str(theory).split("with, at each cavity field\n")[1].split("\n") == [
        "  h[mu] = S_w*lambda(h[mu]) + eta[mu]",
        "  lambda(h[mu]) = y[mu]/(exp(h[mu]*y[mu]) + 1)",
    ]
    assert "S_lambda = average(lambda'(h[mu])/(1 - S_w*lambda'(h[mu])))" in str(theory)
    assert "solves the first of these equations at each value of the cavity field" in words(theory)
    joint = words(softmax.problem.cavity())
    assert "a datum site solves" in joint
    assert "a feature site solves" in joint


def test_a_site_says_each_thing_once():
    from symcavity.derivations import softmax

    for site in softmax.problem.cavity().sites.values():
        said = [line.strip().split(" = ", 1) for line in str(site).split("\n") if " = " in line]
        assert sum(left.startswith("<eta") for left, _ in said) == 6
        assert not any(left == right for left, right in said)
