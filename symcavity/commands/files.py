"""Files that a command writes: refused before any work if they cannot be written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from symcavity.errors import ValuesError
from symcavity.evaluate.progress import silent


def say(text: str) -> None:
    """Say something beside the results, on stderr, unless asked to be quiet."""
    if not silent.get():
        print(text, file=sys.stderr)


def check_writable(name: str | None) -> None:
    """Refuse a file that cannot be written before any work is done; leave no trace of the attempt."""
    if not name or name == "-":
        return
    path = Path(name)
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise ValuesError(
            f"The file {name} cannot be written: {error.strerror or error}.", "a path in a folder that exists"
        ) from None
    if new:
        path.unlink()


def write(name: str, content: str) -> None:
    """Write a text file, or print it where the name is ``-``."""
    if name == "-":
        print(content)
        return
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise ValuesError(f"The file {name} cannot be written: {error.strerror or error}.") from None
    say(f"wrote {name}")


def save_figure(drawn: Any, name: str) -> None:
    """Save the figure that holds what was drawn."""
    try:
        getattr(drawn, "figure", drawn).savefig(name)
    except (OSError, ValueError) as error:
        raise ValuesError(
            f"The figure {name} cannot be written: {error}.", "file names that end in .pdf, .png or .svg"
        ) from None
    say(f"wrote {name}")


def check_figure(name: str | None) -> None:
    """Refuse a figure that cannot be drawn or written, before any work is done."""
    if not name:
        return
    check_writable(name)
    if Path(name).suffix.lower() not in {".pdf", ".png", ".svg", ".eps"}:
        raise ValuesError(f"The figure {name} has no known format.", "names that end in .pdf, .png or .svg")
    from symcavity.finite.plots import need_matplotlib

    need_matplotlib()
