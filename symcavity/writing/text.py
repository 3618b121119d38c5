"""A derivation as plain text: lines of up to 98 columns, fewer on a terminal that has fewer."""

from __future__ import annotations

import shutil
import sys
import textwrap
from typing import Any

from symcavity.record.derivation import Checked, Derivation, Step, Verification
from symcavity.writing.blocks import Block, Display, Numbered, Paragraph, Wording
from symcavity.writing.layout import layout, single
from symcavity.writing.nodes import Row
from symcavity.writing.printing import text
from symcavity.writing.rows import aligned_lines, fragment_tree
from symcavity.writing.unicode import to_text

COLUMNS, NARROWEST = 98, 60
_INDENT = "    "
_HARD = "\u00a0"


def _columns() -> int:
    if not sys.stdout.isatty():
        return COLUMNS
    return max(NARROWEST, min(COLUMNS, shutil.get_terminal_size().columns - 1))


def derivation_text(derivation: Derivation) -> str:
    """Return a whole derivation as text.

    Parameters
    ----------
    derivation : Derivation
        The record to be written.
    """
    doc = layout(derivation)
    out = [doc.title, "=" * len(doc.title), "", _wrapped(inline(doc.opening)), ""]
    for number, section in enumerate(doc.sections, start=1):
        out += _heading(f"{number}. {section.title}")
        for step in section.steps:
            blocks = _blocks(step.blocks)
            out += [*blocks, ""] if blocks else []
    if doc.results:
        out += [*_heading(doc.results_title), *_blocks(doc.results), ""]
    if doc.parameters:
        symbols = [text(symbol) for symbol, _ in doc.parameters]
        column = max(map(len, symbols))
        out += _heading("Order parameters")
        for symbol, (_, meaning) in zip(symbols, doc.parameters, strict=True):
            said = inline(meaning) if isinstance(meaning, list | tuple) else text(meaning)
            out.append(f"{_INDENT}{symbol:<{column}}  {said}".replace(_HARD, " "))
        out.append("")
    if doc.assumptions:
        out += _heading("Assumptions")
        for number, item in enumerate(doc.assumptions, start=1):
            out.append(_wrapped(inline(item), first=f"{number:3}. ", rest="     "))
        out.append("")
    if doc.works:
        out += _heading("References")
        for number, work in enumerate(doc.works, start=1):
            out.append(_wrapped(f"{work}.", first=f"[{number}] ", rest="    "))
    return "\n".join(out).rstrip() + "\n"


def step_text(step: Step) -> str:
    """Return one step as text."""
    return "\n".join(_blocks(single(step)))


def verification_text(verification: Verification) -> str:
    """Return the outcome of a verification as an aligned table with a summary."""
    rows = [row for row in verification if row.step.claims or row.checked]
    keys = max([len(row.step.key) for row in rows] + [4])
    out = [f"{'step':<{keys}}  {'outcome':<8}  checked by", "-" * min(_columns(), keys + 60)]
    for row in rows:
        out += _verdict_lines(row, keys)
    checked = [row for row in rows if row.checked]
    failed = len(verification.failed)
    silent = len(verification.unchecked)
    summary = (
        f"{len(rows)} steps with claims: {len(checked) - failed} ok, {failed} FAILED, {silent} unchecked."
    )
    return "\n".join([*out, "-" * min(_columns(), keys + 60), summary])


def _verdict_lines(row: Checked, keys: int) -> list[str]:
    kinds = ", ".join(dict.fromkeys(verdict.kind for verdict in row.verdicts if verdict.ok is not None))
    outcome = ("ok" if row.ok else "FAILED") if row.checked else "-"
    if outcome == "ok" and row.digits is not None:
        outcome = f"{row.digits} digit{'s' if row.digits != 1 else ''}"
    out = [f"{row.step.key:<{keys}}  {outcome:<8}  {kinds or 'nothing has checked this claim'}"]
    blank = " " * (keys + 12)
    for verdict in row.verdicts:
        if not verdict.ok:
            unmade = f"{verdict.kind}, not made"
            said = f"{verdict.kind if verdict.ok is False else unmade}: {verdict.detail or 'does not hold'}"
            out += textwrap.wrap(said, _columns(), initial_indent=blank, subsequent_indent=blank + "  ")
    return out


# ------------------------------------------------------------------------------------------ pieces


def _heading(title: str) -> list[str]:
    return [title, "-" * len(title), ""]


def inline(fragments: Any) -> str:
    """Return fragments of prose as one line."""
    return "".join(_fragment(fragment) for fragment in fragments)


def _formula(fragment: Any) -> str:
    said = to_text(fragment_tree(fragment))
    return said.replace(" ", _HARD) if len(said) < 40 else said


_fragment = Wording(str, str, "[{}]".format, lambda _, number: f"({number})", _formula)


def _wrapped(said: str, first: str = "", rest: str = "") -> str:
    lines = textwrap.wrap(
        " ".join(said.split(" ")),
        _columns(),
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
    )
    return "\n".join(lines).replace(_HARD, " ")


def _blocks(blocks: tuple[Block, ...]) -> list[str]:
    out: list[str] = []
    for block in blocks:
        if isinstance(block, Paragraph) and block.known:
            continue
        if out:
            out.append("")
        if isinstance(block, Paragraph):
            out.append(_wrapped(inline(block.fragments)))
        else:
            out += _display(block)
    return out


def _display(block: Display) -> list[str]:
    out: list[str] = []
    for group in block.groups:
        rows = _group(group)
        if group.number is not None:
            mark = f"({group.number})"
            rows[-1] = f"{rows[-1]:<{_columns() - len(mark) - 1}} {mark}"
        out += rows
    return out


def _group(group: Numbered) -> list[str]:
    room = _columns() - len(_INDENT) - 8
    out: list[str] = []
    shift = 0
    for place, line in enumerate(aligned_lines(group.written, 1.05 * room)):
        said = to_text(Row((*line.left.items, *line.right.items), (*line.left.spaced, *line.right.spaced)))
        if place == 0:
            left = to_text(line.left)
            shift = len(left) + 1 if left and len(left) < room // 2 else 4
        blank = "" if place == 0 else " " * (shift + 2 * line.continued)
        out += textwrap.wrap(
            blank + said.strip(), room + 2, subsequent_indent=" " * (shift + 4), break_long_words=False
        ) or [""]
    return [_INDENT + row for row in out]
