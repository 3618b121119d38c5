"""Tables as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines of a table: what stands first is flush left, everything else flush right."""
    table = list(rows)
    width = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(width[0]), *(c.rjust(w) for c, w in zip(row[1:], width[1:], strict=True))]).rstrip()
        for row in table
    ]


def html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table."""
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    cells = "".join(f"<th>{escape(h)}</th>" for h in head)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


__all__ = ["aligned", "html"]
