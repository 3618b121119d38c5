"""The page that shows every displayed equation of the source paper, and what the engine makes of it."""

import json
from pathlib import Path

from symcavity.loading import paper_table

PRINTED = Path(__file__).with_name("paper_equations.json")  # by section and number, as the paper prints them


def printed():
    """Return the equations as the paper prints them, by section and number, in LaTeX."""
    return json.loads(PRINTED.read_text(encoding="utf-8"))


def page():
    """Return the sections of the page, in Markdown: each equation with its row of the table below it."""
    rows = {row["number"]: row for row in paper_table()}
    out, part = [], ""
    for section, equations in printed().items():
        first, _, rest = section.partition(" / ")
        if first != part:
            out.append(f"## {first}")
            part = first
        if rest:
            out.append(f"### {rest.rpartition(' / ')[2]}")
        out += [_row(rows[number], latex) for number, latex in equations.items()]
    return "\n\n".join(out) + "\n"


def _row(row, latex):
    verdict = f"**{row['verdict']}**" if row["verdict"] == "corrected" else row["verdict"]
    said = f"**({row['number']})** {verdict} ({row['witness']}): `{row['where']}`"
    remark = f"; {row['remark']}" if row["remark"] else ""
    return f"$$\n{latex}\n$$\n\n{said}{remark}"


def write(file):
    """Write the page where it is not as it should be."""
    content = page()
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != content:
        file.write_text(content, encoding="utf-8")


__all__ = ["page", "printed", "write"]
