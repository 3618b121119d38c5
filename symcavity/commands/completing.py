"""Completion of the command line by argcomplete: names of derivations, files, and what takes a value."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer a shell that asks for completions, and leave; nothing where argcomplete is missing."""
    try:
        import argcomplete
    except ImportError:
        return
    by_place = {"target": targets, "values": values}
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001 - no other way
    for command in commands.choices.values():
        for action in command._actions:  # noqa: SLF001 - argparse has no other way
            if action.dest in by_place:
                setattr(action, "completer", by_place[action.dest])  # noqa: B010 - argcomplete reads it
    argcomplete.autocomplete(parser)


def targets(prefix: str, **_: Any) -> list[str]:
    """Return the installed derivations, and files and folders that begin so."""
    from symcavity.loading import installed

    folder = Path(prefix) if prefix.endswith("/") else Path(prefix).parent
    files = [p for p in folder.glob("*") if p.suffix == ".py"] if folder.is_dir() else []
    folders = [p for p in folder.glob("*") if p.is_dir() and not p.name.startswith(".")] if folder.is_dir() else []
    return [n for n in (*installed(), *map(str, files), *(f"{p}/" for p in folders)) if n.startswith(prefix)]


def values(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """Return what takes a value in the declaration that is named, but for what has one."""
    from symcavity.commands.showing import takes
    from symcavity.errors import SymcavityError

    given = {word.partition("=")[0] for word in parsed_args.values or ()}
    try:
        names = takes(parsed_args.target, parsed_args.object)
    except (SymcavityError, OSError):
        return []
    return [f"{name}=" for name in names if name not in given and name.startswith(prefix)]
