"""Read what is typed on a command line, as exact numbers and observables; nothing is evaluated as code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Rational, Symbol

from symcavity.algebra.door import NUMBERS, read_number
from symcavity.errors import ValuesError
from symcavity.evaluate.given.reading import Vocabulary
from symcavity.face import BipartiteSystem
from symcavity.model.kinds import SiteCount
from symcavity.model.names import ALIASES
from symcavity.model.quantities import Quenched
from symcavity.model.support import SupportFunction

_POINTS = 100_000


def numbers_from_file(path: Path, name: str) -> Any:
    """Read an array: ``.npy`` without pickled objects, anything else as numbers in text."""
    try:
        if path.suffix == ".npy":
            return read_npy(path)
        words = path.read_text(encoding="utf-8-sig").replace(",", " ").replace(";", " ").split()
    except OSError as error:
        raise ValuesError(
            f"The file {path} with the values of {name} cannot be read: {error.strerror or error}.",
            "a .npy file, or a text file of numbers",
        ) from None
    except UnicodeDecodeError:
        raise ValuesError(f"The file {path} is not text.", "a .npy file, or a text file of numbers") from None
    return [read_number(word, f"{name} (in {path.name})") for word in words]


def read_npy(path: Path) -> np.ndarray:
    """Read an array of numbers from a ``.npy`` file; pickled objects are refused."""
    try:
        # mapped, so that a header which claims more than the file holds is refused before memory is allocated
        array = np.load(path, allow_pickle=False, mmap_mode="r" if path.stat().st_size else None)
        if isinstance(array, np.ndarray):
            array = np.array(array)
    except (ValueError, EOFError, OverflowError, MemoryError) as error:
        raise ValuesError(
            f"The file {path} is not a .npy array of numbers: {error or type(error).__name__}.",
            "arrays of numbers, as numpy.save writes them; objects are not loaded",
        ) from None
    except OSError as error:
        reason = error.strerror or error
        raise ValuesError(f"The file {path} cannot be read: {reason}.", "a .npy file") from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu":
        raise ValuesError(f"The file {path} holds no array of real numbers.", "arrays of floats or integers")
    return array


def _quenched(family: Quenched, text: str) -> Any:
    """Read a number, a law ``1:0.8,-1:0.2``, an array ``0.2,1.8``, or a file ``@values.npy``."""
    if text.startswith("@"):
        array = numbers_from_file(Path(text[1:]), family.name)
        return array if isinstance(array, list) else array.astype(float)
    parts = [p for p in text.split(",") if p.strip()]
    if not parts:
        raise ValuesError(
            f"The quenched parameter {family.name} has no value.",
            "a number, a law y=1:0.8,-1:0.2 (value:weight), an array l=0.2,1.8, or a file rho=@values.csv",
        )
    if all(p.count(":") == 1 for p in parts):
        law: dict[Any, Any] = {}
        for part in parts:
            value, weight = part.split(":")
            key = read_number(value, family.name)
            law[key] = law.get(key, Rational(0)) + read_number(weight, f"a weight of {family.name}")
        return law
    if any(":" in p for p in parts):
        raise ValuesError(
            f"The law of {family.name} is {text[:80]!r}, where some values have a weight and some have none.",
            f"{family.name}=1:0.8,-1:0.2 (values with weights) or {family.name}=0.2,1.8 (one value per site)",
        )
    return [read_number(p, family.name) for p in parts] if "," in text else read_number(text, family.name)


def _grid(name: str, text: str) -> list[Any]:
    """Read a grid: ``start:stop:count`` or values separated by commas."""
    if ":" not in text:
        return [read_number(p, name) for p in text.split(",") if p.strip()]
    parts = text.split(":")
    if len(parts) != 3 or not re.fullmatch(r"\d{1,6}", parts[2].strip()):
        raise ValuesError(f"The grid of {name} is {text[:60]!r}.", f"start:stop:count, as in {name}=1:2:5")
    start, stop, count = read_number(parts[0], name), read_number(parts[1], name), int(parts[2])
    if not 1 <= count <= _POINTS or (count == 1 and start != stop):
        raise ValuesError(f"The grid of {name} has {count} point{'s' if count != 1 else ''}.", f"2 to {_POINTS} points")
    return [start + (stop - start) * Rational(k, max(count - 1, 1)) for k in range(count)]


def split_pairs(words: Iterable[str]) -> dict[str, str]:
    """Split words ``name=value``, refusing doubles."""
    out: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise ValuesError(f"{word[:60]!r} is not of the form name=value.", "a name with a value: kappa=1/2")
        if name.strip() in out:
            raise ValuesError(f"{name.strip()} is given twice.", "one value for each name")
        out[name.strip()] = text.strip()
    return out


def known_names(system: BipartiteSystem) -> dict[str, Any]:
    """Everything of a problem that takes a value, by its name."""
    known = Vocabulary(tuple(system.parameters), system.kinds, tuple(system.quenched)).names
    return {**known, **{g.name: g for g in system.support_functions}}


def _key(name: str, system: BipartiteSystem, given: Iterable[str]) -> Any:
    known = known_names(system)
    long = ALIASES.get(name, name)
    if long in known:
        return known[long]
    variables = [*system.variables, *(g.name for g in system.globals)]
    if long in variables:
        raise ValuesError(
            f"{name} is a variable of this problem, and is solved for.", f"values for {', '.join(known)}"
        )
    near = get_close_matches(name, [word for word in known if word not in given], n=1, cutoff=0.5)
    raise ValuesError(
        f"This problem has no parameter {name}.", f"values for {', '.join(known)}", near[0] if near else ""
    )


def read_pairs(words: Iterable[str], system: BipartiteSystem) -> dict[Any, Any]:
    """Read the values ``name=value`` of a problem.

    Parameters
    ----------
    words : iterable of str
        For a parameter an exact number; for a quenched parameter a law ``y=1:0.8,-1:0.2``, an array
        ``l=0.2,1.8``, or a file ``rho=@modes.npy``; for a support function a shape ``g_S=Ball(5,1)``, or a
        file of points ``g_S=@points.npy``.
    system : BipartiteSystem
        Whose parameters they are.
    """
    pairs = split_pairs(words)
    keys = {name: _key(name, system, pairs) for name in pairs}
    return {keys[name]: _value(keys[name], text, name) for name, text in pairs.items()}


def _value(key: Any, text: str, name: str) -> Any:
    if isinstance(key, SupportFunction):
        return _shape(text, name)
    if isinstance(key, Quenched):
        return _quenched(key, text)
    if ":" in text or "," in text:
        found = f"{name} has the values {text[:60]!r}, and here takes one."
        raise ValuesError(found, NUMBERS, f"symcavity sweep, which takes grids: {name}={text[:60]}")
    return read_number(text, name)


def _shape(text: str, name: str) -> Any:
    """Read a shape by its name and its numbers, or the points of a cloud from a file."""
    from symcavity import shapes

    if text.startswith("@"):
        return shapes.PointCloud(numbers_from_file(Path(text[1:]), name))
    found = re.fullmatch(r"(Ball|Segment|TwoPoints|Ellipsoid)\(([^()]*)\)", text.replace(" ", ""))
    if found is None:
        raise ValuesError(
            f"The shape {name} is {text[:60]!r}.",
            "Ball(D,R), Segment(R), TwoPoints(overlap), Ellipsoid(R1,R2,...), or @points.npy",
        )
    kind, inner = found.groups()
    numbers = [read_number(part, name) for part in inner.split(",")] if inner else []
    wanted = {"Ball": 2, "Segment": 1, "TwoPoints": 1}.get(kind, len(numbers))
    if len(numbers) != wanted or not numbers:
        raise ValuesError(f"{text[:60]} has {len(numbers)} numbers.", f"{kind} of {wanted or 'some'}")
    return shapes.Ellipsoid(numbers) if kind == "Ellipsoid" else getattr(shapes, kind)(*numbers)


def read_grid(words: Iterable[str], system: BipartiteSystem) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Read the values of a sweep: those with several values make the grid, the others stay."""
    grid: dict[Any, list[Any]] = {}
    rest: dict[Any, Any] = {}
    pairs = split_pairs(words)
    for name, text in pairs.items():
        key = _key(name, system, pairs)
        if isinstance(key, Quenched | SupportFunction):
            rest[key] = _value(key, text, name)
            continue
        points = _grid(name, text)
        if len(points) > 1:
            grid[key] = points
        elif points:
            rest[key] = points[0]
        else:
            raise ValuesError(f"The parameter {name} has no value.", NUMBERS)
    if not grid:
        raise ValuesError(
            "No parameter has several values.",
            "a grid name=start:stop:count, or name=a,b,c",
            _proposed(rest, known_names(system)),
        )
    return grid, rest


def _proposed(given: Mapping[Any, Any], known: Mapping[str, Any]) -> str:
    """A grid that a message can propose: about the first number that is given, else of the first parameter."""
    open_ = [(name, key) for name, key in known.items() if isinstance(key, Symbol) and not isinstance(key, SiteCount)]
    value = next(((name, given[key]) for name, key in open_ if getattr(given.get(key), "is_Rational", False)), None)
    if value is None:
        return next((f"{name}=1/2:2:7" for name, _ in open_), "")
    name, number = value
    start, stop = sorted([number / 2, 2 * number]) if number else (Rational(0), Rational(1))
    return f"{name}={start}:{stop}:7"


def whole_numbers(text: str, name: str) -> list[int]:
    """Read whole numbers separated by commas."""
    parts = [p.strip() for p in text.split(",")]
    if not all(re.fullmatch(r"\d{1,9}", p) for p in parts):
        raise ValuesError(f"{name} is {text!r}.", f"whole numbers: {name} 400, or {name} 100,200,400")
    return [int(p) for p in parts]


_OPTIONS = "dps|timeout|seeds|couplings|N|steps|damping"


_TYPED = (
    (", or a callable(rng, shape)", ""),
    ("guess=, the values of a solution nearby; ", ""),
    ("; guess=, the values of a solution nearby", ""),
    (", an array with one entry a site, or a SymPy distribution", ", or an array with one entry a site"),
    ("a dictionary {value: weight}", "a law value:weight,value:weight"),
    ("a law {value: weight}", "a law value:weight,value:weight"),
    (", system.simulate(values, N=..., until=...), run.compare(sim, ...)", ", with --N and --seeds for instances"),
    ("theory.evolve(values, until=...)", "symcavity evolve NAME name=value --until T"),
)
"""Features of Python only, and their replacements on a command line."""


def in_shell(text: str) -> str:
    """Write what a message says in Python as it is typed on a command line: ``{kappa: 1/2}`` as ``kappa=1/2``."""
    for words, typed in _TYPED:
        text = text.replace(words, typed)
    text = re.sub(rf"\b({_OPTIONS})=\[([\d, ]+)\]", lambda m: f"--{m[1]} {m[2].replace(' ', '')}", text)
    text = re.sub(rf"\b({_OPTIONS})=(?=[\d ;,.]|$)", r"--\1 ", text)
    law = str.maketrans("", "", " '")
    text = re.sub(r"\{(\w+): \{([^{}]*)\}\}", lambda m: f"{m[1]}={m[2].translate(law)}", text)
    text = re.sub(r"\{(-?\d[^{}:]*: [^{}]*)\}", lambda m: m[1].translate(law), text)  # the law of one parameter
    pairs = r"\{(?!value\b)(\w+(?:/\w+)?: [^{}]*?)(?:, \.\.\.)?\}(?: in solve\(\.\.\.\))?"
    text = re.sub(r"\{(\w+): (\w+\([^()]*\))\}", r"'\1=\2'", text)  # parentheses, which a shell would read, are quoted
    text = re.sub(pairs, lambda m: re.sub(r"(?:^|, )(\w+(?:/\w+)?): ", r" \1=", m[1]).strip(), text)
    text = re.sub(r"\bbounds=\(([^(), ]+), ([^(), ]+)\)", r"--over NAME=\1,\2", text)
    text = re.sub(r"(?:\b(?:theory|problem)\.)?\b(simulate|solve)\(\.\.\.\)(?!\.)", r"symcavity \1", text)
    return text.replace("problem.cavity()", "--method cavity")
