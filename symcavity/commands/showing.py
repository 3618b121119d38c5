"""What the commands ``list`` and ``show`` say of declarations, and how results are written as JSON."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from symcavity.algebra.precision import is_mpf, mp


def print_json(value: Any, digits: int = 15) -> None:
    """Print JSON: exact numbers and numbers of many digits as texts, so that no digit is lost in reading them."""
    print(json.dumps(plain(value, digits), indent=2, ensure_ascii=False))


def plain(value: Any, digits: int = 15) -> Any:
    """A value in the types of JSON; what is not a number is null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else str(value)
    if is_mpf(value):
        return str(mp.nstr(value, digits))
    if isinstance(value, Mapping):
        return {str(k): plain(v, digits) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v, digits) for v in value]
    return plain(value.item(), digits) if hasattr(value, "item") else str(value)


def show_list(args: argparse.Namespace) -> int:
    """Print the installed derivations."""
    from symcavity.loading import installed

    names = installed()
    rows: list[dict[str, Any]] = [{"name": name, "words": words} for name, words in names.items()]
    if args.parameters:
        rows = [row | {"parameters": takes(row["name"])} for row in rows]
    if args.json:
        print_json(rows)
        return 0
    width = max(map(len, names))
    for row in rows:
        print(f"{row['name']:<{width}}  {row['words']}")
        if args.parameters:
            print(f"{'':<{width}}    values: {', '.join(row['parameters']) or 'none'}")
    return 0


def _system(target: str, wanted: str = "") -> tuple[Any, Any]:
    from symcavity.loading import load, system_of

    problem = load(target, wanted)
    return problem, system_of(problem)


def takes(target: str, wanted: str = "") -> list[str]:
    """What takes a value: parameters, the load, ratios, laws and sets."""
    _, system = _system(target, wanted)
    return [getattr(thing, "name", str(thing)) for thing in system.without_value]


def show(args: argparse.Namespace) -> int:
    """Print a declaration: what it says, what takes values, and where it stands."""
    from symcavity.loading import is_file, path_of

    problem, system = _system(args.target, args.object)
    given = [f"{q.name}: {q.law}" for q in system.quenched if q.law is not None and q.given is None]
    found = {
        "name": args.target,
        "title": system.name,
        "says": system.says,
        "path": str(Path(args.target) if is_file(args.target) else path_of(args.target)),
        "declaration": str(problem),
        "values": takes(args.target, args.object),
        "laws": given,
        "fixed": [str(e) for e in system.fixed],
        "variables": [*system.variables, *(g.name for g in system.globals)],
        "kinds": {str(kind): str(kind.size) for kind in system.kinds},
    }
    if args.json:
        print_json(found)
        return 0
    said = f"\n{fill(system.says, 98)}\n" if system.says else ""
    print(f"{system.name or args.target}\n{found['path']}\n{said}\n{problem}\n")
    rows = {
        "values": ", ".join(found["values"]) or "none",
        "declared laws": "; ".join(given),
        "solved for": "one of the values, by each fixed condition" if system.fixed else "",
        "variables": ", ".join(found["variables"]),
    }
    for word, text in rows.items():
        if text:
            print(f"{word:<14} {text}")
    return 0
