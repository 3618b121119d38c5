"""A solution as a table, in text and in HTML."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.numbers import brief

SHOWN = 10  # digits that a solution in double has, or says that it has not


def told(solution: Any) -> str:
    """Return a solution line by line: no more digits than it has, and how well the equations are met."""
    rough = solution.digits < min(solution.dps, SHOWN)
    digits = max(solution.digits, 1) if rough else max(solution.dps, 6)
    lines = [_head(solution)]
    lines += [f"  {s!s:<18} = {mp.nstr(v, digits)}" for s, v in solution.rows()]
    with suppress(UnsupportedLaw, NotConverged):
        lines.append(f"  stability          = {solution.gain_in_words()}  (stable below 1)")
    lines.append(f"  residual           = {mp.nstr(solution.residual, 3)}")
    if rough:
        said = "no digit" if not solution.digits else f"about {digits} digit{'s' if digits > 1 else ''}"
        lines.append(f"  known to           : {said}, for averages are not known to more in double")
    lines += [f"  note               : {remark}" for remark in solution.remarks]
    if solution.certified is not None:
        lines.append("  certified          : exactly one solution in the box of .certified")
    return "\n".join(lines)


def told_in_html(solution: Any) -> str:
    """Return a solution as a table of a notebook."""
    from symcavity.writing.displays import Formula, html  # a solution that is not shown does not load it

    digits = max(solution.dps, 6)
    rows: list[tuple[str, str]] = [(Formula.of(s), mp.nstr(v, digits)) for s, v in solution.rows()]
    with suppress(UnsupportedLaw, NotConverged):
        rows.append(("stability", f"{solution.gain_in_words()} (stable below 1)"))
    rows.append(("residual", mp.nstr(solution.residual, 3)))
    rows += [("note", remark) for remark in solution.remarks]
    return html(["", "value"], rows, _head(solution))


def _head(solution: Any) -> str:
    """Where it was solved, in a line."""
    point = ", ".join(f"{k} = {brief(v)}" for k, v in {**solution.given.told, **solution.beside}.items())
    return f"Solution at {point}" if point else "Solution"
