"""The writers, on derivations made by hand."""

import importlib
import importlib.util
import re
import xml.etree.ElementTree as ET
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
from sympy import Eq, Rational, Sum, Symbol, exp, latex, log, sign, tanh

from symcavity import (
    ConvexProblem,
    Coupling,
    Feature,
    Global,
    N,
    Noise,
    P,
    Quenched,
    System,
    Time,
    Variable,
    average,
    fresh,
    i,
    mu,
)
from symcavity.algebra.phi import phi
from symcavity.algebra.prove import TruncatedIntegral
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.face import Derivation, Step, Verification
from symcavity.model.equations import Equation
from symcavity.record.derivation import NUMERIC, SYMBOLIC, Checked, Verdict
from symcavity.writing.assumptions import assumption
from symcavity.writing.html import page, verification_html
from symcavity.writing.latex import document, step_latex
from symcavity.writing.nodes import to_tex
from symcavity.writing.text import derivation_text, step_text
from symcavity.writing.words import templates

_spec = importlib.util.spec_from_file_location("derivation_samples", Path(__file__).with_name("samples.py"))
s = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(s)



def _two_classes():
    """A loss of two fields that bends in both: its law is solved for both states together."""
    x, v, w = Coupling("x"), Feature("v"), Feature("w")
    first, second = (Sum(x[mu, i] * u[i], (i, 1, N)) for u in (v, w))
    loss = Sum(log(1 + exp(first) + exp(second)), (mu, 1, P))
    return ConvexProblem(loss + Sum(v[i] ** 2 + w[i] ** 2, (i, 1, N)) / 2)


def _moving():
    """A network in steps that hears its past, and its own past through the couplings."""
    t, j, g = Time("t"), Symbol("j", integer=True), Symbol("g", positive=True)
    y, a = Variable("y", i, over=t), Quenched("a", i)
    J = Coupling("J", between=(i, i), variance=g**2 / N, reciprocity=Rational(1, 2))
    field = Sum(J[i, j] * tanh(y[j, t]), (j, 1, N))
    return System([Eq(y[i, t + 1], field)], initial=[Eq(y[i, 0], a[i])])


def _tested():
    """A least square whose error of prediction has a name."""
    x, w = Coupling("x"), Feature("w")
    h = Sum(x[mu, i] * w[i], (i, 1, N))
    named = {Symbol("E"): average(fresh(h**2))}
    return ConvexProblem(Sum((1 - h) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N)), named=named)


def _shared():
    """A network in steps with noise, whose sites hear a variable that all of them move."""
    t, j = Time("t"), Symbol("j", integer=True)
    y, b = Variable("y", i, over=t), Global("b", over=t)
    field = Sum(Coupling("J", between=(i, i))[i, j] * y[j, t], (j, 1, N))
    noise = Noise("xi", i, over=t, variance=1)[i, t]
    equations = [Eq(y[i, t + 1], field - b[t] + noise), Eq(b[t + 1], Sum(y[i, t], (i, 1, N)) / N)]
    return System(equations, initial=[Eq(y[i, 0], 0), Eq(b[0], 0)])


def _all_that_is_derived():
    """One problem, and all that is derived of it besides its theory."""
    from symcavity.derivations import chaotic_network, driven_network

    x, w, e, t = Coupling("x"), Feature("w"), Quenched("e", mu), Quenched("t", i)
    ranked = Sum((x[mu, i] - Coupling("z")[mu, i]) * w[i], (i, 1, N))
    taught = Sum((sign(Sum(x[mu, i] * t[i], (i, 1, N))) - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    yield ConvexProblem(taught + Sum(w[i] ** 2, (i, 1, N))).cavity().fluctuations().derivation
    yield ConvexProblem(taught + Sum(w[i] ** 2, (i, 1, N))).descent(rate=Rational(1, 2)).cavity().derivation
    yield ConvexProblem(Sum((1 - ranked) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))).cavity().derivation
    tied = Sum(Coupling("z", correlation={x: 1})[mu, i] * w[i], (i, 1, N))
    yield ConvexProblem(Sum((e[mu] * ranked - tied) ** 2, (mu, 1, P)) + Sum(w[i] ** 2, (i, 1, N))).cavity().derivation
    loss = Sum((e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    problem = ConvexProblem(loss / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2)
    theory = problem.cavity()
    yield theory.fluctuations().derivation
    yield theory.fluctuations(average(w[i] ** 2)).derivation
    yield theory.pair(over=[e]).derivation
    louder = Sum((Quenched("c", mu)[mu] * e[mu] - Sum(x[mu, i] * w[i], (i, 1, N))) ** 2, (mu, 1, P))
    yield ConvexProblem(louder / 2 + Sum(w[i] ** 2, (i, 1, N)) / 2).cavity().pair(over=[e]).derivation
    yield driven_network.problem.cavity().pair(over=[driven_network.b]).derivation
    yield problem.descent(rate=Rational(1, 2)).cavity().derivation
    yield problem.gibbs(Symbol("beta", positive=True)).cavity().derivation
    yield _shared().cavity().derivation
    yield chaotic_network.problem.cavity().pair(over=[chaotic_network.t]).derivation


def test_the_sample_has_every_rule():
    from symcavity.derivations import best_subset, gardner, kernel_ridge, manifold, soft_manifold, spiked_matrix

    still = (gardner, kernel_ridge, manifold, soft_manifold, spiked_matrix, best_subset)
    problems = [module.problem for module in still]
    problems += [kernel_ridge.from_coefficients, _two_classes(), _moving(), _tested()]
    records = [*(problem.cavity().derivation for problem in problems), *_all_that_is_derived()]
    rules = {name for name in templates() if "." not in name} - {"limit", "opening", "clock", "insert_again"}
    assert rules <= {step.rule for step in (*s.STEPS, *(step for record in records for step in record))}


@pytest.mark.parametrize("step", s.STEPS, ids=lambda step: step.key)
def test_every_step_renders_alone_in_every_writer(step):
    alone = Derivation("One step", "cavity", (step,))
    assert step_text(step).strip()
    assert str(step) == step_text(step)
    assert step_latex(step).strip()
    assert "\\label" not in step_latex(step)
    for whole in (derivation_text(alone), document(alone), page(alone)):
        assert "One step" in whole


def test_the_number_of_an_equation_is_the_same_everywhere():
    derivation = s.sample()
    latex, plain, html = document(derivation), derivation_text(derivation), page(derivation)
    labels = re.findall(r"\\label\{(.*?)\}", latex)
    assert len(labels) == len(set(labels))
    assert plain.count(f"({len(labels)})\n") == 1
    assert f"({len(labels) + 1})" not in plain
    assert re.findall(r'<tr id="(.*?)"', html) == labels
    for label in re.findall(r"\\eqref\{(.*?)\}", latex):
        assert label in labels
    for anchor in re.findall(r'href="#(.*?)"', html):
        assert f'id="{anchor}"' in html


def test_references_reasons_and_assumptions_are_said():
    plain = " ".join(derivation_text(s.sample()).split())
    assert "(Eq. (28) in print)" in plain
    cited = replace(s.sample(), cite="A. Author, A & B 1, 2 (1990)")
    plain, latex, html = " ".join(derivation_text(cited).split()), document(cited), page(cited)
    assert "(Ref. [1], Eq. (28))" in plain
    assert "(Ref. [1], Eqs. (11), (12))" in plain
    assert "[1] A. Author, A & B 1, 2 (1990)." in plain
    assert "\\cite{ref1}, Eq.~(28)" in latex
    assert "\\bibitem{ref1} A. Author, A \\& B 1, 2 (1990)." in latex
    assert html.count('href="#ref-1"') == latex.count("\\cite{ref1}") > 1
    assert '<li id="ref-1">A. Author, A &amp; B 1, 2 (1990).</li>' in html
    assert "By equations (3) and (12), the cavity field is Gaussian" in plain
    assert "independent of the unperturbed messages" in plain
    assert "smaller by a factor of order 1/√N" in plain
    assert "The sign S^w > 0. Used in equation (21)." in plain
    assert "Some new rule" in plain
    assert "Odd_thing{kappa}" in plain


def test_what_is_found_stands_once_at_the_beginning():
    said = replace(s.sample(), says="At κ = 0,\n 50 % of\tall\xa0w_i <= √2; {not} $x$ \\input{x}.")
    plain, latex, html = " ".join(derivation_text(said).split()), document(said), page(said)
    assert plain.count("At κ = 0, 50 % of all w_i <= √2; {not} $x$ \\input{x}. We derive") == 1
    assert latex.count("\\noindent At $\\kappa$ = 0, 50 \\% of all~w\\_i $<$= $\\sqrt{2}$; \\{not\\} \\$x\\$ "
                       "\\textbackslash input\\{x\\}. We derive") == 1  # fmt: skip
    assert html.count("At κ = 0, 50 % of all\xa0w_i &lt;= √2; {not} $x$ \\input{x}. We derive") == 1
    for write in (derivation_text, document, page):
        assert write(s.sample()) == write(replace(s.sample(), says=""))
        assert "At κ" not in write(s.sample())
    assert page(s.sample()).count('class="opening">We derive') == 1


def test_a_fragment_is_what_a_document_holds_without_its_title():
    whole, part = document(s.sample()), document(s.sample(), preamble=False)
    assert "documentclass" not in part
    assert "maketitle" not in part
    sections = part[part.index("\\section{") :].rstrip()
    assert sections in whole
    assert whole.rstrip().endswith(f"{sections}\n\n\\end{{document}}")
    assert part.startswith("\\noindent We derive")


def test_contradictory_formulas_are_not_joined_to_a_chain():
    step = next(step for step in s.STEPS if step.rule == "inconsistency")
    assert step_text(step).count("1/α = ") == 2


def test_the_naive_method_announces_itself():
    assert "not justified in general" in " ".join(derivation_text(s.sample(method="naive")).split())


def test_unknown_assumptions_are_said_by_name():
    assert assumption("no_such_name", {}) == ["No such name", "."]
    assert assumption("any", {"text": "In words."}) == ["In words."]


def test_text_fits_the_terminal():
    for derivation in (s.sample(), s.long_sample()):
        assert max(map(len, derivation_text(derivation).splitlines())) <= 100


def test_latex_needs_two_packages_only():
    assert set(re.findall(r"\\usepackage(?:\[.*?\])?\{(.*?)\}", document(s.sample()))) == {"amsmath", "bm"}


@pytest.mark.parametrize("name", ["sample", "long_sample"])
def test_documents_compile_and_nothing_runs_over_the_margin(name, typeset):
    log = typeset(document(getattr(s, name)()), passes=2)
    assert "undefined" not in log
    assert "Double superscript" not in log
    over = [float(size) for size in re.findall(r"Overfull \\hbox \(([0-9.]+)pt", log)]
    assert max(over, default=0.0) < 20


def test_every_step_compiles_in_a_notebook_cell(typeset):
    cells = [step_latex(step) for step in s.STEPS]
    head = "\\documentclass{article}\\usepackage{amsmath}\\begin{document}\n"
    typeset(head + "\n\n".join(cells) + "\n\\end{document}\n")


@pytest.mark.parametrize("name", ["sample", "long_sample"])
def test_the_page_is_well_formed_and_needs_no_network(name):
    whole = page(getattr(s, name)())
    assert "http" not in whole
    assert "<script" not in whole
    body = re.sub(r"<meta [^>]*>|<br>", "", whole.split("\n", 1)[1]).replace("&#160;", " ")
    ET.fromstring(body)  # noqa: S314 - our own output
    if name == "sample":
        assert "points &amp; 100%" in whole
        assert '<details class="why">' in whole


def _judged(step, ok):
    verdicts = [Verdict(SYMBOLIC, True), Verdict(NUMERIC, ok, "" if ok else "0.25 against 0.75")]
    return Checked(step, tuple(verdicts) if step.key != "c" else ())


def test_the_table_of_a_verification():
    claims = (Equation(s.S_w, 1 - s.alpha),)
    steps = [Step(key, "result", claims) for key in "abc"]
    outcome = Verification((*(_judged(step, step.key != "b") for step in steps), Checked(Step("d", "problem"), ())))
    plain = str(outcome)
    assert not outcome
    assert re.search(r"^a +ok +symbolic, 50 digits", plain, re.MULTILINE)
    assert re.search(r"^b +FAILED", plain, re.MULTILINE)
    assert "0.25 against 0.75" in plain
    assert re.search(r"^c +- +nothing has checked this claim", plain, re.MULTILINE)
    assert "3 steps with claims: 1 ok, 1 FAILED, 1 unchecked." in plain
    html = verification_html(outcome)
    assert "nothing has checked this claim" in html
    assert "FAILED" in html


@pytest.mark.parametrize("name", ["gardner", "soft_margin", "manifold", "kernel_ridge"])
def test_each_equation_stands_once_and_each_symbol_is_defined_where_it_is_first_used(name):
    from symcavity.writing.blocks import Display, Paragraph
    from symcavity.writing.layout import layout

    module = importlib.import_module(f"symcavity.derivations.{name}")
    derivation = module.problem.cavity().derivation
    blocks = [b for section in layout(derivation).sections for step in section.steps for b in step.blocks]
    rows = [(row, k) for k, b in enumerate(blocks) if isinstance(b, Display) for g in b.groups for row in g.rows]
    claims = [(row, k) for row, k in rows if isinstance(row, Equation)]
    assert len({row for row, _ in claims}) == len(claims)
    for symbol, meaning in derivation.parameters:
        first = min(k for row, k in claims if row.difference.has(symbol))
        words = blocks[first + 1]
        assert isinstance(words, Paragraph)
        assert Equation(symbol, meaning) in words.fragments
    moments = [k for row, k in claims if row.difference.has(phi)]
    defined = [k for row, k in claims if row.lhs.has(phi) and row.rhs.has(TruncatedIntegral)]
    assert not moments or defined[0] == moments[0]


def test_documents_are_short():
    from symcavity.writing.blocks import Display
    from symcavity.writing.display_form import as_shown
    from symcavity.writing.layout import layout

    derivation = importlib.import_module("symcavity.derivations.soft_margin").problem.cavity().derivation
    tex, html = document(derivation), page(derivation)
    for reason in ("so the averages factorize", "only the diagonal of the response matrix"):
        assert (tex.count(reason), html.count(reason)) == (1, 2)  # one site of each kind; a page unfolds each step
    sections = {section.title: section for section in layout(derivation).sections}
    blocks = [b for step in sections["Feature cavity"].steps for b in step.blocks if isinstance(b, Display)]
    moments = next(g for b in blocks for g in b.groups if g.abreast)
    assert len(moments.rows) == 2  # the mean and the variance of the field, in one line with one number
    assert tex.count(to_tex(moments.written[0])) == 1
    assert "{eq:closure.S-" not in tex  # a mean response stands once, where it is found
    assert len(re.findall(r"(?m)^S\^\{w\}(?: &)? = \\frac\{1\}", tex)) == 1
    closure = as_shown(derivation)["closure.q_lambda"].claims[0]
    assert closure.rhs.as_numer_denom()[1].is_Pow  # one denominator for all terms, and the same number
    values = {symbol: Rational(k, 7) for k, symbol in enumerate(sorted(closure.difference.free_symbols, key=str), 2)}
    same = [c.rhs.subs(values).evalf(30) for c in (closure, derivation["closure.q_lambda"].claims[0])]
    assert abs(same[0] - same[1]) < 1e-25
    assert "The signs $" in tex
    assert tex.count("Stationarity of the Lagrangian") + tex.count("stationarity of the Lagrangian") == 1


def test_symbols_of_one_name_keep_their_own_tex():
    """Two problems may use one name for what each prints in its own way; neither changes the other's documents."""
    one, other = (TexSymbol("dw1/dI", tex) for tex in ("I_0", "I_{(1)0}"))
    assert one != other
    assert [latex(s) for s in (one, other)] == ["I_0", "I_{(1)0}"]
    assert deepcopy(one) == one == TexSymbol("dw1/dI", "I_0")


def test_what_is_the_same_for_every_component_is_written_once():
    from symcavity.writing.blocks import Display
    from symcavity.writing.display_form import as_shown
    from symcavity.writing.layout import layout
    from symcavity.writing.write_once import Alike

    def three_fields():
        x, w = Coupling("x"), [Feature(f"w{k}") for k in (1, 2, 3)]
        h = [Sum(x[mu, i] * u[i], (i, 1, N)) for u in w]
        ridge = Sum(sum(u[i] ** 2 for u in w), (i, 1, N))
        loss = Sum(sum(h) ** 2 + sum(u**2 for u in h), (mu, 1, P))
        return as_shown(ConvexProblem((loss + ridge) / 2).cavity().derivation)

    def written(derivation, key):
        steps = [step for section in layout(derivation).sections for step in section.steps if step.step.key == key]
        return [r for s in steps for b in s.blocks if isinstance(b, Display) for g in b.groups for r in g.rows]

    def terms(claim):  # of what Python prints
        return tuple(sorted(str(claim).replace(" = ", " + ").split(" + ")))

    same = three_fields()
    once = Alike(same).first
    for key in ("feature.self_coupling", "feature.respond", "feature.cavity_equation"):
        for claim in same[key].claims:
            for places in (str.maketrans("123", "231"), str.maketrans("123", "213")):
                turned = re.sub(r"(?<=_)[123]+\b|(?<=w)[123]", lambda m, p=places: m[0].translate(p), str(claim))
                assert terms(turned) in {terms(c) for c, one in once.items() if one == once[claim]}
        assert len(written(same, key)) == len({once[claim] for claim in same[key].claims}) < len(same[key].claims)
    step = same["datum.self_coupling_mean"]
    first, *rest = step.claims
    wrong = replace(step, claims=(Equation(first.lhs, 2 * first.rhs), *rest))
    steps = tuple(wrong if s.key == step.key else s for s in same.steps)
    found = Alike(replace(same, steps=steps))
    assert [found.stood_for(claim) for claim in wrong.claims].count(False) == 4  # the diagonal ones are not the same
    assert document(same).count("\\label") < 110
