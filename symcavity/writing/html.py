"""A derivation as one self-contained HTML page: MathML, a style sheet, no script and no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from symcavity.record.derivation import Checked, Derivation, Verification
from symcavity.writing.blocks import Block, Display, Numbered, Paragraph, Span, Wording
from symcavity.writing.fragments import Cite, Emphasis
from symcavity.writing.latex import label
from symcavity.writing.layout import layout
from symcavity.writing.mathml import displayed, element
from symcavity.writing.nodes import Row
from symcavity.writing.printing import tree
from symcavity.writing.rows import PAGE, aligned_lines, fragment_tree

LINE_WIDTH = 56.0

_STYLE = """
.sc { color-scheme: light dark; --ink: light-dark(#1c1e21, #e4e4e0); --faint: light-dark(#6a6f76, #9a9ea6);
  --paper: light-dark(#fdfdfb, #17191c); --rule: light-dark(#e2e2dc, #33363b);
  --accent: light-dark(#1f5fa8, #86b7f0); --good: light-dark(#1c7a3e, #71cf8f);
  --bad: light-dark(#b3261e, #ff8a80); --shade: light-dark(#f4f4ef, #1f2226);
  background: var(--paper); color: var(--ink); margin: 0;
  font: 17px/1.6 "Latin Modern Roman", "STIX Two Text", Georgia, "DejaVu Serif", serif; }
.sc main { max-width: 46rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
.sc h1 { font-size: 1.75rem; line-height: 1.25; margin: 0 0 1rem; }
.sc h2 { font-size: 1.25rem; margin: 2.6rem 0 .8rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
.sc .opening { color: var(--faint); }
.sc p { margin: .7rem 0; }
.sc a { color: var(--accent); text-decoration: none; }
.sc a:hover { text-decoration: underline; }
.sc nav { font-size: .9rem; columns: 2; margin: 1rem 0; }
.sc nav a { display: block; }
.sc .step { scroll-margin-top: 1rem; }
.sc .display { overflow: auto hidden; margin: .5rem 0; }
.sc .display table { border-collapse: collapse; width: 100%; }
.sc .display td { padding: .28rem 0; border: 0; }
.sc .display td.l { text-align: right; width: 30%; min-width: 2rem; white-space: nowrap; }
.sc .display td.r { text-align: left; padding-left: .3rem; white-space: nowrap; }
.sc .display td.m { text-align: center; white-space: nowrap; }
.sc .display td.n { text-align: right; width: 3.2rem; padding-left: .7rem; white-space: nowrap; color: var(--faint); }
.sc .display td.n:not(:empty) { position: sticky; right: 0; background: var(--paper); }
.sc .display td.c { padding-left: 2.2rem; }
.sc tr:target td { background: var(--shade); }
.sc .together { white-space: nowrap; }
.sc math { font-size: 1.06em; }
.sc details { margin: .2rem 0 .9rem; padding-left: .8rem; border-left: 2px solid var(--rule);
  font-size: .95rem; }
.sc summary { cursor: pointer; color: var(--faint); }
.sc table.list { border-collapse: collapse; width: 100%; }
.sc table.list td, .sc table.list th { text-align: left; padding: .45rem .8rem .45rem 0;
  border-bottom: 1px solid var(--rule); vertical-align: top; }
.sc table.list th { font-weight: 600; color: var(--faint); }
.sc .ok { color: var(--good); }
.sc .failed { color: var(--bad); font-weight: 700; }
.sc .none { color: var(--faint); }
.sc mtable.cases mtd { text-align: left; padding-right: .8em; }
.sc code { font-size: .9em; }
.sc pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em; }
.sc figure { background: #fff; margin: 1rem 0; padding: .5rem; border-radius: 4px; text-align: center; }
.sc figure svg { max-width: 100%; height: auto; }
.sc .wide { overflow-x: auto; }
.sc .wide table { border-collapse: collapse; }
.sc .wide td, .sc .wide th { text-align: right; padding: .2rem .8rem .2rem 0; }
.sc .wide td:first-child, .sc .wide th:first-child, .sc .wide caption { text-align: left; }
@media (max-width: 40rem) { .sc { font-size: 15px; } .sc nav { columns: 1; }
  .sc main { padding: 1.2rem .8rem 3rem; } }
@media print { .sc { font-size: 10.5pt; --paper: #fff; --ink: #000; color-scheme: light; }
  .sc nav, .sc .why summary, .sc details:not(.why, [open], :has(.failed)) { display: none; }
  .sc .why::details-content { content-visibility: visible; } .sc main { max-width: none; padding: 0; }
  .sc .display { overflow: visible; } .sc h2, .sc summary { break-after: avoid; }
  .sc tr, .sc figure { break-inside: avoid; } }
"""


def page(
    derivation: Derivation, verification: Verification | None = None, extra: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a self-contained page.

    Parameters
    ----------
    derivation : Derivation
        The record to be written.
    verification : Verification, optional
        Its checks, which unfold below each step.
    extra : sequence of (str, str)
        Titles and HTML of further sections, which stand before the derivation.
    """
    checks = {row.step.key: _checks(row) for row in verification or ()}
    doc = layout(derivation)
    titles = [section.title for section in doc.sections]
    ends = [("results", doc.results_title, doc.results), ("parameters", "Order parameters", doc.parameters)]
    ends += [("assumptions", "Assumptions", doc.assumptions)]
    body = [f"<h1>{escape(doc.title)}</h1>", f'<p class="opening">{inline(doc.opening)}</p>', "<nav>"]
    body += [f'<a href="#extra-{n}">{escape(title)}</a>' for n, (title, _) in enumerate(extra, start=1)]
    body += [f'<a href="#part-{n}">{n}. {escape(title)}</a>' for n, title in enumerate(titles, start=1)]
    body += [f'<a href="#{name}">{title}</a>' for name, title, content in ends if content]
    body.append("</nav>")
    for number, (title, content) in enumerate(extra, start=1):
        body += [f'<h2 id="extra-{number}">{escape(title)}</h2>', content]
    for number, section in enumerate(doc.sections, start=1):
        body.append(f'<h2 id="part-{number}">{number}. {escape(section.title)}</h2>')
        for step in section.steps:
            blocks = "".join(_block(block) for block in step.blocks)
            found = checks.get(step.step.key, "")
            if not blocks:  # what was said before; the check says by its name what it is of
                found = found.replace("</summary>", f" <code>{escape(step.step.key)}</code></summary>", 1)
            body.append(f'<div class="step" id="{escape(_anchor(step.step.key))}">{blocks}{found}</div>')
    if doc.results:
        body += [f'<h2 id="results">{doc.results_title}</h2>', *(_block(block) for block in doc.results)]
    if doc.parameters:
        rows = "".join(
            f"<tr><td>{inline((symbol,))}</td><td>{_cell(meaning)}</td></tr>"
            for symbol, meaning in doc.parameters
        )
        body += ['<h2 id="parameters">Order parameters</h2>', '<table class="list">']
        body += [f"<tr><th>symbol</th><th>meaning</th></tr>{rows}</table>"]
    if doc.assumptions:
        items = "".join(f"<li>{inline(item)}</li>" for item in doc.assumptions)
        body += ['<h2 id="assumptions">Assumptions</h2>', f"<ol>{items}</ol>"]
    if doc.works:
        items = "".join(f'<li id="ref-{n}">{escape(work)}.</li>' for n, work in enumerate(doc.works, start=1))
        body += ['<h2 id="references">References</h2>', f"<ol>{items}</ol>"]
    return _frame(doc.title, "\n".join(body))


def _frame(title: str, body: str) -> str:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style>\n</head>\n"
        f'<body class="sc">\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )


def verification_html(verification: Verification) -> str:
    """Return the outcome of a verification as a table, with its style."""
    rows = []
    for row in verification:
        if not (row.step.claims or row.checked):
            continue
        if not row.checked:
            outcome, said = '<td class="none">–</td>', "nothing has checked this claim"
            said = "<br>".join([said, *(escape(f"{v.kind}, not made: {v.detail}") for v in row.verdicts)])
        elif row.ok:
            outcome = '<td class="ok">ok</td>'
            said = escape(", ".join(dict.fromkeys(verdict.kind for verdict in row.verdicts)))
        else:
            outcome = '<td class="failed">FAILED</td>'
            bad = [verdict for verdict in row.verdicts if verdict.ok is False]
            said = "<br>".join(escape(f"{v.kind}: {v.detail or 'does not hold'}") for v in bad)
        rows.append(f"<tr><td><code>{escape(row.step.key)}</code></td>{outcome}<td>{said}</td></tr>")
    failed, silent = len(verification.failed), len(verification.unchecked)
    good = len(rows) - failed - silent
    summary = f"{len(rows)} steps with claims: {good} ok, {failed} failed, {silent} unchecked."
    head = "<tr><th>step</th><th>outcome</th><th>checked by</th></tr>"
    table = f'<table class="list">{head}{"".join(rows)}</table>'
    return f'<style>{_STYLE}</style><div class="sc">{table}<p>{summary}</p></div>'


def _checks(row: Checked) -> str:
    """Return the verdicts on a step, which unfold."""
    if not row.step.claims:
        return ""
    if not row.checked:
        return '<p class="none">nothing has checked this claim</p>'
    mark = '<span class="ok">checked</span>' if row.ok else '<span class="failed">FAILED</span>'
    said = ""
    for verdict in row.verdicts:
        if verdict.ok is None:
            continue
        words = escape(verdict.kind + (f": {verdict.detail}" if verdict.detail else ""))
        said += f"<li>{words}</li>" if verdict.ok else f'<li class="failed">{words}</li>'
    return f"<details><summary>{mark}</summary><ul>{said}</ul></details>"


def _anchor(key: str) -> str:
    return "step-" + label(key).removeprefix("eq:")


def inline(fragments: Any) -> str:
    """Return words and formulas as HTML."""
    out = ""
    parts = list(fragments)
    for place, part in enumerate(parts):
        body = _fragment(part)
        after = parts[place + 1] if place + 1 < len(parts) else ""
        if (
            not isinstance(part, str | Cite | Emphasis | Span)
            and isinstance(after, str)
            and after[:1] in tuple(",.;:)")
        ):
            body = f'<span class="together">{body}{after[0]}</span>'
            parts[place + 1] = after[1:]
        out += body
    return out


def _cell(meaning: Any) -> str:
    if isinstance(meaning, list | tuple):
        return inline(meaning)
    return escape(meaning) if isinstance(meaning, str) else displayed(tree(meaning))


_fragment = Wording(
    escape,
    "<em>{}</em>".format,
    '<a href="#ref-{0}">[{0}]</a>'.format,
    lambda key, number: f'<a href="#{escape(label(key))}">({number})</a>',
    lambda fragment: element(fragment_tree(fragment, inline=True)),
)


def _block(block: Block) -> str:
    if isinstance(block, Paragraph):
        said = inline(block.fragments).strip()
        if block.why:
            return f'<details class="why"><summary>why</summary>{said}</details>'
        return f"<p>{said}</p>"
    return _display(block)


def _display(block: Display) -> str:
    rows = []
    alone = len(block.groups) == 1
    for group in block.groups:
        rows += _group(group, alone)
    return f'<div class="display"><table>{"".join(rows)}</table></div>'


def _group(group: Numbered, alone: bool) -> list[str]:
    found = aligned_lines(group.written, PAGE if group.abreast else LINE_WIDTH)  # equations abreast are not broken
    out = []
    for place, line in enumerate(found):
        number = f"({group.number})" if group.number is not None and place == len(found) - 1 else ""
        anchor = f' id="{escape(label(group.label))}"' if group.label and place == 0 else ""
        if (alone and len(found) == 1) or (not line.left.items and not line.continued and place == 0):
            whole = Row((*line.left.items, *line.right.items), (*line.left.spaced, *line.right.spaced))
            cells = f'<td class="m" colspan="2">{displayed(whole)}</td>'
        else:
            mark = "r c" if line.continued else "r"
            left = displayed(line.left) if line.left.items else ""
            right = displayed(line.right, line.continued)
            cells = f'<td class="l">{left}</td><td class="{mark}">{right}</td>'
        out.append(f'<tr{anchor}>{cells}<td class="n">{number}</td></tr>')
    return out
