"""How declarations and theories show themselves in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

from sympy import Add, S, Sum

from symcavity.algebra.joint import JointAverage
from symcavity.method.close import kind_of_body, over_sites
from symcavity.method.declared import declaration, sources
from symcavity.method.named_laws import field_at, with_names
from symcavity.method.naming import at_zero
from symcavity.model.equations import Equation
from symcavity.record.derivation import Derivation
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.writing.abbreviate import shorten
from symcavity.writing.display_form import as_shown
from symcavity.writing.html import inline
from symcavity.writing.lines import lines
from symcavity.writing.mathml import displayed
from symcavity.writing.nodes import Row, to_tex
from symcavity.writing.notation import meanings as notation
from symcavity.writing.printing import mathml, tex
from symcavity.writing.rows import PAGE, aligned_lines, fits, row_of
from symcavity.writing.words import say
from symcavity.writing.write_once import Alike

if TYPE_CHECKING:
    from symcavity.method.theory import Theory
    from symcavity.method.views import SiteView
    from symcavity.model.problem import Problem
    from symcavity.model.system import System


class Formula(str):
    """A formula in a cell, as MathML."""

    __slots__ = ()

    @classmethod
    def of(cls, obj: Any) -> Formula:
        """A symbol, an expression or an equation as a formula."""
        return cls(mathml(obj))


def html(head: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "") -> str:
    """Return an HTML table; text is escaped, formulas are shown."""

    def cell(content: str, kind: str = "td") -> str:
        return f"<{kind}>{content if isinstance(content, Formula) else escape(content)}</{kind}>"

    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    cells = "".join(cell(h, "th") for h in head)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def system_latex(system: System) -> str:
    """Return the equations of a system as displayed LaTeX."""
    rows = [tex(e) for law in system.laws.values() for e in law.written()]
    rows += [tex(p) for law in system.laws.values() for p in law.pairs]
    rows += [f"{tex(Add(*(Sum(e, s.range) for s, e in c.items())))} = 0" for c in system.global_conditions]
    rows += [tex(e) for e in system.fixed]
    return "$$\\begin{gathered}" + " \\\\ ".join(rows) + "\\end{gathered}$$"


def problem_latex(problem: Problem) -> str:
    """Return what is minimized, subject to what, as displayed LaTeX."""
    minimize, subject_to = problem.typed
    rows = [f"\\text{{minimize }} & {_broken(minimize)}"]
    rows += [f"\\text{{subject to }} & {_broken(c)}" for c in subject_to]
    rows += [f"\\text{{fixed }} & {_broken(e)}" for e in problem.fixed]
    return "$$\\begin{aligned}" + " \\\\ ".join(rows) + "\\end{aligned}$$"


def _broken(obj: Any) -> str:
    """TeX in lines that fit a page."""
    return " \\\\ & \\qquad ".join(map(to_tex, lines(row_of(obj), PAGE)))


def theory_html(theory: Theory) -> str:
    """Return the order parameters with their meanings, and the closed equations, as MathML; one of those alike."""
    shown = _shown(theory, theory.equations)
    alike = Alike(shown)
    name = f" of {escape(theory.system.name)}" if theory.system.name else ""
    method = "Naive mean field" if theory.is_naive else "Cavity theory"
    meanings = meanings_html(theory.introduced | {s: m for s, m in shown.parameters if s not in alike.others})
    others = "<p>What is written for some components holds for any others in their places.</p>" if alike else ""
    every = [e for e in shown.results if not alike.stood_for(e)]
    said = notation(every, set())
    words = f"<p>{inline(said)}</p>" if said else ""
    return f"<p>{method}{name}</p>{meanings}<p>closed by</p>{_closed(every)}{_laws(theory)}{words}{others}"


def _laws(theory: Theory) -> str:
    """The laws that the closed equations name without writing them out: functions of one state, and joint laws."""
    parts: list[tuple[Any, Sequence[Equation]]] = []
    for kind, law in with_names(theory, theory.equations)[1]:
        functions = [law.at(q) for q in law.functions]
        at: dict[str, Any] = {"sites": kind.sites, "argument": law.argument, "field": field_at(kind), **law.beside}
        said = say("notation.laws", **at, named=functions, labels=law.labels, thermal=law.is_thermal)
        parts.append((said, law.equations()))
    joint = [theory.order_parameters[s] for s, value in theory.closures.items() if value.has(JointAverage)]
    for kind in dict.fromkeys(kind_of_body(average.args[0]) for meaning in joint for average in over_sites(meaning)):
        site = theory.inserted[kind]
        inside = dict(site.means) | dict.fromkeys((h.source for h in site.heard), S.Zero)
        solved = [at_zero(Equation(e.lhs.xreplace(inside), e.rhs.xreplace(inside)), kind) for e in site.equations()]
        parts.append((say("notation.joint_law", site=kind.site), solved))
    return "".join(f"<p>{inline(said)}</p>{_closed(_shown(theory, law).results)}" for said, law in parts)


def meanings_html(meanings: Mapping[Any, Any]) -> str:
    """Return symbols with what each stands for, as a table of MathML."""
    rows = (f"<tr><td>{mathml(s)}</td><td style='text-align:left'>{mathml(m)}</td></tr>" for s, m in meanings.items())
    return f"<table>{''.join(rows)}</table>"


def equations_html(theory: Theory, equations: Sequence[Equation]) -> str:
    """Return equations of a theory, every one that there is, as MathML."""
    return _closed(_shown(theory, equations).results)


def site_html(site: SiteView) -> str:
    """Return what a theory says of a site: its law, what it hears, its states and their responses, as MathML."""
    field = [Equation(DisorderAverage(a * b), c) for (a, b), c in _pairs(site.field)]
    feedback = [Equation(DisorderAverage(f), mean) for f, mean in site.self_couplings.items()]
    states = [Equation(q, value) for q, value in site.solution.items() if q != value]
    every = {"law": site.equations, "cavity field": field, "self-coupling": feedback, "states": states}
    return "".join(f"<p>{word}</p>{_closed(some)}" for word, some in every.items() if some)


def _pairs(covariance: Mapping[tuple[Any, Any], Any]) -> list[tuple[tuple[Any, Any], Any]]:
    """The entries of a symmetric table, each pair once."""
    seen: dict[frozenset[Any], tuple[tuple[Any, Any], Any]] = {}
    for pair, value in covariance.items():
        seen.setdefault(frozenset(pair), (pair, value))
    return list(seen.values())


def _shown(theory: Theory, equations: Sequence[Equation]) -> Derivation:
    """The order parameters and some equations, in the form in which they are read."""
    make = StepMaker({}, theory.is_naive)
    declared = (*declaration(theory.system, make), *sources(theory.system, make))  # quenched parameters, what is heard
    steps = tuple(replace(step, claims=()) for step in declared)
    named, _ = with_names(theory, equations)
    return as_shown(Derivation("", "", steps, tuple(theory.order_parameters.items()), tuple(named)))


def _closed(equations: Iterable[Equation]) -> str:
    """Equations in lines, with names for what is too wide for one."""
    rows, _, named = shorten([row_of(e) for e in equations], {}, fits)
    return _lines(rows) + (f"<p>with</p>{_lines(named)}" if named else "")


def _lines(rows: Iterable[Row]) -> str:
    """Formulas in lines that fit a page, aligned at their relations."""

    def cell(row: Row, side: str, continued: bool = False) -> str:
        return f'<div style="text-align:{side}">{displayed(row, continued)}</div>'

    every = [line for row in rows for line in aligned_lines([row], PAGE)]
    body = "".join(cell(line.left, "right") + cell(line.right, "left", line.continued) for line in every)
    grid = "display:grid;grid-template-columns:max-content max-content;gap:.5em .3em;align-items:baseline"
    return f'<div style="{grid};overflow:auto hidden;padding:.5em 0">{body}</div>'
