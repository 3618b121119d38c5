"""A derivation as a LaTeX document that needs amsmath and bm only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from symcavity.record.derivation import Derivation, Step
from symcavity.writing.blocks import Block, Display, Document, Numbered, Paragraph, Span, Wording
from symcavity.writing.fragments import Cite, Emphasis
from symcavity.writing.layout import layout, single
from symcavity.writing.lines import width
from symcavity.writing.nodes import LETTERS, Row, escape_tex, to_tex
from symcavity.writing.printing import tex
from symcavity.writing.rows import Line, aligned_lines, fragment_tree

LINE_WIDTH = 64.0
_INLINE = 32.0  # a formula in running text that is wider stands on a line of its own

_PREAMBLE = r"""\documentclass[11pt]{article}
\usepackage{amsmath}
\usepackage{bm}
\setlength{\textwidth}{16cm}
\setlength{\textheight}{23cm}
\setlength{\oddsidemargin}{0cm}
\setlength{\topmargin}{-1cm}
\setlength{\emergencystretch}{4em}
\setlength{\jot}{6pt}
\allowdisplaybreaks
"""
_CLOSE = r"""\setlength{\textheight}{25.3cm}
\setlength{\jot}{3pt}
\setlength{\topmargin}{-2.7cm}
\AtBeginDocument{\abovedisplayskip=5pt plus 2pt minus 3pt\belowdisplayskip=\abovedisplayskip
\abovedisplayshortskip=2pt plus 2pt\belowdisplayshortskip=3pt plus 2pt minus 1pt}
"""
_TYPOGRAPHY = {char: f"${command}$" for char, command in LETTERS.items()} | {
    "\u00a0": "~",
    "…": "\\ldots{}", "–": "--", "—": "---", "“": "``", "”": "''", "’": "'", "é": "\\'e", "ï": "\\\"{\\i}",
    "²": "$^2$", "√": "$\\surd$", "⟨": "$\\langle$", "⟩": "$\\rangle$", "−": "$-$", "<": "$<$", ">": "$>$",
}  # fmt: skip
_SIZES = ((1.45, "\\scriptsize"), (1.22, "\\footnotesize"), (1.06, "\\small"))


LONG = 5  # rows of a table that stands in one column

def document(derivation: Derivation, *, preamble: bool = True) -> str:
    """Return a complete LaTeX document.

    Parameters
    ----------
    derivation : Derivation
        The record to be written.
    preamble : bool
        Whether it is a document of its own; if not, it is to be read into another one, which loads amsmath and bm.
    """
    doc = layout(derivation)
    if not preamble:
        return "\n".join(["\\noindent " + _inline(doc.opening), "", *_sections(doc), *_closing(doc)]) + "\n"
    above = "\\vspace{-6ex}" if derivation.brief else ""
    parts = [
        _PREAMBLE.replace("11pt", "10pt") + _CLOSE if derivation.brief else _PREAMBLE,
        f"\\title{{{above}{words(doc.title)}}}",
        "\\author{\\vspace{-6ex}}",
        "\\date{}",
        "\\begin{document}",
        "\\maketitle" + ("\\vspace{-6ex}" if derivation.brief else ""),
    ]
    parts += ["\\begin{abstract}", "\\noindent " + _inline(doc.opening), "\\end{abstract}", ""]
    return "\n".join([*parts, *_sections(doc), *_closing(doc), "\\end{document}"]) + "\n"


def _sections(doc: Document) -> list[str]:
    parts: list[str] = []
    for section in doc.sections:
        parts.append(f"\\section{{{words(section.title)}}}")
        for blocks in _continued([*step.blocks] for step in section.steps):
            parts += _blocks(blocks)
    return parts


def _closing(doc: Document) -> list[str]:
    parts: list[str] = []
    if doc.results:
        parts += [f"\\section{{{doc.results_title}}}", *_blocks(doc.results)]
    if doc.parameters:
        parts += ["\\section*{Order parameters}", "\\begin{center}", "\\renewcommand{\\arraystretch}{1.6}"]
        cells = [f"{_math(symbol)} & {_cell(meaning)}" for symbol, meaning in doc.parameters]
        meanings = (c for row in doc.parameters for c in row[1:] if not isinstance(c, str | list | tuple))
        widest = 9 + max((width(fragment_tree(c)) for c in meanings), default=LINE_WIDTH)
        side = max(1, min(3, int(LINE_WIDTH / widest), -(-len(cells) // LONG)))  # long tables stand in columns
        rows = -(-len(cells) // side)
        columns = [[*cells[k * rows : (k + 1) * rows], *["&"] * rows][:rows] for k in range(side)]
        layout, head = "@{\\qquad}".join(["ll"] * len(columns)), " & ".join(["symbol & meaning"] * len(columns))
        parts += [f"\\begin{{tabular}}{{{layout}}}", "\\hline", f"{head} \\\\", "\\hline"]
        parts += ["\\noalign{\\vskip 6pt}"]
        parts += [f"{' & '.join(row)} \\\\ \\noalign{{\\vskip 4pt}}" for row in zip(*columns, strict=True)]
        parts += ["\\hline", "\\end{tabular}", "\\end{center}", ""]
    if doc.assumptions:
        parts += ["\\section*{Assumptions}", "\\begin{enumerate}\\itemsep=0pt"]
        parts += [f"\\item {_inline(item)}" for item in doc.assumptions]
        parts += ["\\end{enumerate}", ""]
    if doc.works:
        parts += ["\\begin{thebibliography}{9}"]
        parts += [f"\\bibitem{{ref{n}}} {words(work)}." for n, work in enumerate(doc.works, start=1)]
        parts += ["\\end{thebibliography}", ""]
    return parts


def step_latex(step: Step) -> str:
    """Return the displayed mathematics of one step, for a notebook."""
    rows = []
    for block in single(step):
        if isinstance(block, Display):
            for group in block.groups:
                rows += [_line(line) for line in aligned_lines(group.written, 1.4 * LINE_WIDTH)]
    if not rows:
        said = [_inline(block.fragments) for block in single(step) if isinstance(block, Paragraph)]
        return " ".join(said)
    return "$$\n\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}\n$$"


def words(sentence: str) -> str:
    """Return plain words as LaTeX."""
    averaged = re.sub(r"<([^<>\s][^<>]*)>", "⟨\\1⟩", sentence)
    written = "".join(_TYPOGRAPHY.get(char, char) for char in escape_tex(averaged))
    return re.sub(r"\$\\surd\$(?:(\w+)|\(([^()]*)\)|(\$\\langle\$.*?\$\\rangle\$))", _root, written)


def _root(found: re.Match[str]) -> str:
    """A root of a number, a letter or what stands in brackets, as TeX."""
    body = (found[1] or found[2] or found[3]).replace("\\langle$", "\\langle ").replace("$", "")
    return f"$\\sqrt{{{body}}}$"


def _math(obj: Any) -> str:
    return f"${to_tex(fragment_tree(obj, inline=True), close=isinstance(obj, Row))}$"


def _cell(meaning: Any) -> str:
    if isinstance(meaning, list | tuple):
        return _inline(meaning)
    return words(meaning) if isinstance(meaning, str) else f"$\\displaystyle {tex(meaning)}$"


def _inline(fragments: Any) -> str:
    parts, out = list(fragments), ""
    for place, part in enumerate(parts):
        after = parts[place + 1] if place + 1 < len(parts) else ""
        if isinstance(part, str | Cite | Emphasis | Span) or width(fragment_tree(part, inline=True)) < _INLINE:
            out += _fragment(part)
            continue
        end = after[0] if isinstance(after, str) and after[:1] in tuple(",.;:") else ""
        parts[place + 1 : place + 2] = [after[len(end) :]] if end else [after]  # a formula that no line ends in
        out += f"\n{_display(Display((Numbered((part if isinstance(part, Row) else fragment_tree(part),)),), end))}\n"
    return re.sub(r" {2,}", " ", out).strip()


def label(key: str) -> str:
    """Return a key as a TeX label."""
    return "eq:" + re.sub(r"[^A-Za-z0-9.:+-]", "-", key)


_fragment = Wording(
    words, "\\emph{{{}}}".format, "\\cite{{ref{}}}".format, lambda key, _: f"\\eqref{{{label(key)}}}", _math, "--"
)


def _continued(steps: Iterable[list[Block]]) -> list[list[Block]]:
    """A display that begins a step is one with the display before it; a reason stands once."""
    out: list[list[Block]] = []
    for blocks in ([b for b in step if not (isinstance(b, Paragraph) and b.known)] for step in steps):
        last, first = out[-1][-1] if out else None, blocks[0] if blocks else None
        if isinstance(last, Display) and isinstance(first, Display):
            out[-1][-1:] = [Display((*last.groups, *first.groups), first.end), *blocks[1:]]
        elif blocks:
            out.append(blocks)
    return out


def _blocks(blocks: Sequence[Block]) -> list[str]:
    """Text after a display continues its paragraph."""
    out: list[str] = []
    for place, block in enumerate(blocks):
        if isinstance(block, Display):
            out.append(_display(block))
            continue
        on = block.why or block.goes_on
        first = on and place and not isinstance(blocks[place - 1], Paragraph)
        out.append(("\\noindent " if first else "") + _inline(block.fragments))
    return [*out, ""]


def _line(line: Line) -> str:
    indent = "\\qquad " if line.continued else ""
    return f"{to_tex(line.left)} & {indent}{to_tex(line.right)}".strip()


def _display(block: Display) -> str:
    numbered = any(group.label for group in block.groups)
    star = "" if numbered else "*"
    groups = [(group, aligned_lines(group.written, LINE_WIDTH)) for group in block.groups]
    widest = max(
        width(line.left) + width(line.right) + 4 * line.continued for _, some in groups for line in some
    )
    left = max(width(line.left) for _, some in groups for line in some)
    right = max(width(line.right) + 4 * line.continued for _, some in groups for line in some)
    size = next((name for ratio, name in _SIZES if max(widest, left + right) > ratio * LINE_WIDTH), "")
    if len(groups) == 1 and len(groups[0][1]) == 1:
        group, (line,) = groups[0]
        body = f"{to_tex(line.left)} {to_tex(line.right)}".strip() + block.end
        out = f"\\begin{{equation{star}}}{_label(group.label)}\n{body}\n\\end{{equation{star}}}"
    elif len(groups) == 1:
        group, some = groups[0]
        body = " \\\\\n".join(_line(line) for line in some) + block.end
        out = f"\\begin{{equation{star}}}{_label(group.label)}\n\\begin{{split}}\n{body}\n\\end{{split}}\n"
        out += f"\\end{{equation{star}}}"
    else:
        rows = []
        for place, (group, some) in enumerate(groups):
            end = block.end if place == len(groups) - 1 else ","
            for number, line in enumerate(some):
                last = number == len(some) - 1
                mark = (_label(group.label) if numbered else "") if last else "\\notag" if numbered else ""
                rows.append(f"{_line(line)}{end if last else ''} {mark}".rstrip())
        out = f"\\begin{{align{star}}}\n" + " \\\\\n".join(rows) + f"\n\\end{{align{star}}}"
    return f"\\begingroup{size}\n{out}\n\\endgroup" if size else out


def _label(key: str) -> str:
    return f"\\label{{{label(key)}}}" if key else ""
