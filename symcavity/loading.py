"""Find a declaration: by name among the installed derivations, or in a file of the user's own."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.resources
import importlib.util
import json
import pkgutil
import sys
import traceback
import types
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from symcavity.errors import DeclarationError, SymcavityError

if TYPE_CHECKING:
    from symcavity.face import BipartiteSystem, Problem

PACKAGE = "symcavity.derivations"
PREFERRED = "problem"


class UserCodeError(SymcavityError):
    """An exception that the user's own file raised, with the place in that file."""


def installed() -> dict[str, str]:
    """Return the names of the installed derivations, each with the first line of its description."""
    out = {}
    for name in _names():
        spec = importlib.util.find_spec(f"{PACKAGE}.{name}")
        read = getattr(spec.loader, "get_source", None) if spec is not None else None
        words = (ast.get_docstring(ast.parse(read(spec.name))) or "") if read is not None and spec else ""
        out[name] = words.partition("\n")[0]
    return out


def _names() -> list[str]:
    entries = pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__)
    return sorted(entry.name for entry in entries if not entry.name.startswith("_"))


class PaperTable(list[dict[str, str]]):
    """Rows of the table of the paper, which show themselves in a notebook."""

    def _repr_html_(self) -> str:
        from symcavity.writing.displays import html

        return html(list(self[0]), ([*row.values()] for row in self))


def paper_table() -> PaperTable:
    """Return the table of the equations of the paper that the installed derivations follow, one row each.

    Each has ``number``, ``verdict``, ``witness``, ``where`` and ``remark``, which may be empty.  The tests make it.
    """
    text = importlib.resources.files(PACKAGE).joinpath("paper.json").read_text(encoding="utf-8")
    return PaperTable({**row, "remark": row.get("remark", "")} for row in json.loads(text)["rows"])


def is_file(target: str) -> bool:
    """Whether a target of the command line means a file rather than a name."""
    return target.endswith(".py") or "/" in target or "\\" in target


def path_of(name: str) -> Path:
    """The file of an installed derivation."""
    return Path(str(importlib.resources.files(PACKAGE).joinpath(f"{name}.py")))


def load(target: str, wanted: str = "") -> Problem | BipartiteSystem:
    """Return the declared problem that a name or a file stands for.

    Parameters
    ----------
    target : str
        The name of an installed derivation, or the path of a Python file.
    wanted : str, optional
        Which object to take, where a file declares several; ``problem`` by default.

    Raises
    ------
    DeclarationError
        If there is no such name or file, or if it does not declare exactly one problem.
    UserCodeError
        If the user's file raises.
    """
    if is_file(target):
        path = Path(target)
        return choose(run_file(path), path.name, wanted)
    names = _names()
    if target not in names:
        near = get_close_matches(target, names, n=3, cutoff=0.4)
        hint = f"{' or '.join(near)}" if near else "symcavity list"
        if Path(f"{target}.py").is_file():
            hint = f"{target}.py, the file in this folder"
        elif Path(target).is_file():
            hint = f"./{target}, if you mean the file in this folder"
        raise DeclarationError(
            f"No derivation is named {target!r}.", "what 'symcavity list' shows, or the path of a file FILE.py", hint
        )
    return choose(vars(importlib.import_module(f"{PACKAGE}.{target}")), target, wanted)


def system_of(declared: Problem | BipartiteSystem) -> BipartiteSystem:
    """The system that a declaration stands for: the conditions of a minimum, or the lowest of several minima."""
    from symcavity.face import ConvexProblem, Problem

    if isinstance(declared, ConvexProblem):
        return declared.kkt()
    return declared.lowest() if isinstance(declared, Problem) else declared


def choose(namespace: dict[str, object], origin: str, wanted: str = "") -> Problem | BipartiteSystem:
    """Return the one problem of a namespace, the one called ``problem``, or the one that is wanted."""
    from symcavity.face import BipartiteSystem, Problem

    kinds = (Problem, BipartiteSystem)
    found = {name: value for name, value in namespace.items() if isinstance(value, kinds)}
    if wanted:
        if wanted in found:
            return found[wanted]
        what = f"is a {type(namespace[wanted]).__name__}" if wanted in namespace else "is not there"
        near = get_close_matches(wanted, found, n=1, cutoff=0.4)
        raise DeclarationError(
            f"{origin} has no usable object {wanted}: it {what}.",
            f"a ConvexProblem, a Problem or a BipartiteSystem: {', '.join(found) or 'this file has none'}",
            f"--object {near[0]}" if near else "",
        )
    if PREFERRED in found:
        return found[PREFERRED]
    different = {id(value): name for name, value in reversed(found.items())}
    if len(different) == 1:
        return next(iter(found.values()))
    if not found:
        own = (namespace.get("__name__"), types.FunctionType)  # not what the file imports
        made = [n for n, v in namespace.items() if (getattr(v, "__module__", ""), type(v)) == own]
        raise DeclarationError(
            f"{origin} declares no problem.",
            "a file whose top level makes one ConvexProblem, Problem or System",
            f"problem = {made[-1]}(...), so that the problem stands at the top level of the file"
            if made
            else "problem = ConvexProblem(minimize=..., subject_to=[...])",
        )
    names = sorted(different.values())
    raise DeclarationError(
        f"{origin} declares {len(different)} problems: {', '.join(names)}.",
        "one problem in a file, or one that is called problem",
        f"--object {names[0]}",
    )


def run_file(path: Path) -> dict[str, object]:
    """Execute a Python file of the user's and return its namespace; what it prints goes to stderr."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise DeclarationError(
            f"The file {path} cannot be read: {error.strerror or error}.", "the path of a Python file"
        ) from None
    module = types.ModuleType(f"_declaration_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        with _beside(path), contextlib.redirect_stdout(sys.stderr):
            exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102 - it is the user's own program
    except (Exception, SystemExit) as error:
        raise _theirs(path, error) from error
    return vars(module)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let a file import its neighbors, as it could when run by Python."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _theirs(path: Path, error: BaseException) -> SymcavityError:
    """Say where in the user's file an exception came from; ours keep their words."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = f"\n    {error.text.strip()}" if error.text else ""
        return UserCodeError(f"{path}, line {error.lineno}: {type(error).__name__}: {error.msg}{line}")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    place = f"{path}, line {frames[-1].lineno}" if frames else str(path)
    line = f"\n    {frames[-1].line}" if frames and frames[-1].line else ""
    if isinstance(error, SymcavityError):
        return UserCodeError(f"{place}:{line}\n{error.found}", error.supported, error.hint)
    if isinstance(error, SystemExit):
        return UserCodeError(f"{place}: the file left with SystemExit({error.code!r}).{line}")
    return UserCodeError(f"{place}: {type(error).__name__}: {error}{line}", hint=_meant(error))


def _meant(error: BaseException) -> str:
    """What a user may have meant who came upon an exception of Python's."""
    if isinstance(error, NameError) and error.name:
        import sympy

        import symcavity

        homes = dict.fromkeys(sympy.__all__, "sympy") | dict.fromkeys(symcavity.__all__, "symcavity")
        near = get_close_matches(error.name, homes, n=1)
        return f"from {homes[near[0]]} import {near[0]}" if near else ""
    if isinstance(error, TypeError) and "'Symbol' object is not subscriptable" in str(error):
        return 'what carries an index is declared as Feature("w"), Datum("xi"), Quenched("y", mu) or Coupling("x")'
    return ""


__all__ = ["UserCodeError", "choose", "installed", "is_file", "load", "run_file"]
