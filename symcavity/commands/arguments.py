"""Read what is typed on a command line, as exact numbers and observables; nothing is evaluated as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Abs, Eq, Expr, Max, Min, Rational, Sum, Symbol, erf, exp, log, sign, sqrt, tanh

from symcavity.errors import SymcavityError, ValuesError
from symcavity.face import BipartiteSystem
from symcavity.model.averages import average, response
from symcavity.model.convex_law import holds_set, regime_of
from symcavity.model.kinds import FEATURE, N, SiteCount
from symcavity.model.quantities import Family, Quenched
from symcavity.model.support import SupportFunction

_NUMBER = re.compile(
    r"[+-]?(\d{1,1000}(\.\d{0,1000})?|\.\d{1,1000})([eE][+-]?\d{1,4})?(/\d{1,1000})?", re.ASCII
)
_SHORT = {"lam": "lambda", "eps": "varepsilon"}
_WORDY, _POWER, _POINTS = 400, 20, 100_000
_LARGEST = Fraction(10) ** 300  # beyond it a double overflows, and so does what is made of it
_OBSERVABLES = "average(...), response(...), Sum(..., (i, 1, N)), with the words "
_NUMBERS = "exact decimals or fractions: 2, 0.1, 1e-3, 1/2"


def number(text: str, name: str) -> Rational:
    """Read an exact number.

    Parameters
    ----------
    text : str
        A decimal, a fraction, or a decimal with an exponent.
    name : str
        What it is a value of, for the message.
    """
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped) or ("/" in stripped and not re.fullmatch(r"[+-]?\d+/\d+", stripped)):
        raise ValuesError(f"The value of {name} is {text[:60]!r}.", _NUMBERS)
    try:
        value = Fraction(stripped)
    except ZeroDivisionError:
        raise ValuesError(f"The value of {name} is {text[:60]!r}, a division by zero.", _NUMBERS) from None
    if value and not 1 / _LARGEST <= abs(value) <= _LARGEST:
        raise ValuesError(f"The value of {name} is {text[:60]!r}.", "zero, and numbers from 1e-300 to 1e300")
    return Rational(value)


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
        raise ValuesError(f"The file {path} is no text.", "a .npy file, or a text file of numbers") from None
    return [number(word, f"{name} (in {path.name})") for word in words]


def read_npy(path: Path) -> np.ndarray:
    """Read an array of numbers from a ``.npy`` file; pickled objects are refused."""
    try:
        # mapped, so that a header which claims more than the file holds is refused before memory is asked for
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
            key = number(value, family.name)
            law[key] = law.get(key, Rational(0)) + number(weight, f"a weight of {family.name}")
        return law
    if any(":" in p for p in parts):
        raise ValuesError(
            f"The law of {family.name} is {text[:80]!r}, where some values have a weight and some have none.",
            f"{family.name}=1:0.8,-1:0.2 (values with weights) or {family.name}=0.2,1.8 (one value a site)",
        )
    return [number(p, family.name) for p in parts] if "," in text else number(text, family.name)


def _grid(name: str, text: str) -> list[Any]:
    """Read a grid: ``start:stop:count`` or values separated by commas."""
    if ":" not in text:
        return [number(p, name) for p in text.split(",") if p.strip()]
    parts = text.split(":")
    if len(parts) != 3 or not re.fullmatch(r"\d{1,6}", parts[2].strip()):
        raise ValuesError(f"The grid of {name} is {text[:60]!r}.", "start:stop:count, as in kappa=0:3:61")
    start, stop, count = number(parts[0], name), number(parts[1], name), int(parts[2])
    if not 1 <= count <= _POINTS or (count == 1 and start != stop):
        raise ValuesError(f"The grid of {name} has {count} points.", f"2 to {_POINTS} points")
    return [start + (stop - start) * Rational(k, max(count - 1, 1)) for k in range(count)]


def split_pairs(words: Iterable[str]) -> dict[str, str]:
    """Split words ``name=value``, refusing doubles."""
    out: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.strip():
            raise ValuesError(f"The argument {word[:60]!r} is no value.", "name=value, such as kappa=1/2")
        if name.strip() in out:
            raise ValuesError(f"{name.strip()} is given twice.", "one value for each name")
        out[name.strip()] = text.strip()
    return out


def _key(name: str, system: BipartiteSystem, given: Iterable[str]) -> Any:
    sizes = [s for kind in (FEATURE, *system.kinds) for s in (kind.size, kind.ratio, kind.size / N) if not s.is_Number]
    known: dict[str, Any] = {str(s): s for s in (*system.parameters, *sizes)}
    known |= {q.name: q for q in system.quenched}
    known |= {g.name: g for g in system.support_functions}
    long = _SHORT.get(name, name)
    if long in known:
        return known[long]
    variables = [*system.variables, *(g.name for g in system.globals)]
    if long in variables:
        raise ValuesError(
            f"{name} is a variable of this problem; its value comes out.", f"values for {', '.join(known)}"
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
    return _quenched(key, text) if isinstance(key, Quenched) else number(text, name)


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
    numbers = [number(part, name) for part in inner.split(",")] if inner else []
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
            raise ValuesError(f"The parameter {name} has no value.", _NUMBERS)
    if not grid:
        raise ValuesError(
            "No parameter has several values.", "a grid name=start:stop:count, or name=a,b,c", "kappa=0:3:61"
        )
    return grid, rest


def whole_numbers(text: str, name: str) -> list[int]:
    """Read whole numbers separated by commas."""
    parts = [p.strip() for p in text.split(",")]
    if not all(re.fullmatch(r"\d{1,9}", p) for p in parts):
        raise ValuesError(f"{name} is {text!r}.", f"whole numbers: {name} 400, or {name} 100,200,400")
    return [int(p) for p in parts]


_OPTIONS = "dps|timeout|seeds|couplings|N|steps|damping"


def in_shell(text: str) -> str:
    """Write what a message says in Python as it is typed on a command line: ``{kappa: 1/2}`` as ``kappa=1/2``."""
    text = re.sub(rf"\b({_OPTIONS})=\[([\d, ]+)\]", lambda m: f"--{m[1]} {m[2].replace(' ', '')}", text)
    text = re.sub(rf"\b({_OPTIONS})=(?=[\d ;,.]|$)", r"--\1 ", text)
    law = str.maketrans("", "", " '")
    text = re.sub(r"\{(\w+): \{([^{}]*)\}\}", lambda m: f"{m[1]}={m[2].translate(law)}", text)
    pairs = r"\{(?!value\b)(\w+(?:/\w+)?: [^{}]*?)(?:, \.\.\.)?\}(?: in solve\(\.\.\.\))?"
    text = re.sub(pairs, lambda m: re.sub(r"(?:^|, )(\w+(?:/\w+)?): ", r" \1=", m[1]).strip(), text)
    text = re.sub(r"\bbounds=\(([^(), ]+), ([^(), ]+)\)", r"--over NAME=\1,\2", text)
    text = re.sub(r"(?:\b(?:theory|problem)\.)?\b(simulate|solve)\(\.\.\.\)(?!\.)", r"symcavity \1", text)
    return text.replace("problem.cavity()", "--method cavity")


# -- observables ---------------------------------------------------------------------------------------


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}
_RELATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Gt: lambda a, b: a > b,
    ast.Lt: lambda a, b: a < b,
    ast.GtE: lambda a, b: a >= b,
    ast.LtE: lambda a, b: a <= b,
    ast.Eq: Eq,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "average": average,
    "response": response,
    "sqrt": sqrt,
    "abs": Abs,
} | {f.__name__: f for f in (Abs, Max, Min, erf, exp, log, sign, tanh)}


class _Reader:
    """Translates the syntax tree of an observable, node by node; what is not on the list is refused."""

    def __init__(self, text: str, words: Mapping[str, Any]) -> None:
        self.text, self.words = text, words

    def read(self, node: ast.AST) -> Any:
        reader = getattr(self, f"_{type(node).__name__.lower()}", None)
        if reader is None:
            raise self._refuse(node)
        return reader(node)

    def _refuse(self, node: ast.AST, why: str = "") -> ValuesError:
        piece = ast.get_source_segment(self.text, node) if isinstance(node, ast.expr) else None
        return ValuesError(
            f"The observable {self.text!r} cannot be read" + (f" at {piece!r}" if piece else "") + f"{why}.",
            _OBSERVABLES + ", ".join(sorted(self.words)),
            '--show "average(w[i]**2)"',
        )

    def _expression(self, node: ast.Expression) -> Any:
        return self.read(node.body)

    def _constant(self, node: ast.Constant) -> Any:
        piece = ast.get_source_segment(self.text, node) or ""
        if not _NUMBER.fullmatch(piece):
            raise self._refuse(node)
        return number(piece, "a number in an observable")

    def _name(self, node: ast.Name) -> Any:
        word = _SHORT.get(node.id, node.id)
        if word not in self.words:
            near = get_close_matches(word, self.words, n=1)
            raise self._refuse(node, f"; the nearest word is {near[0]}" if near else "")
        return self.words[word]

    def _subscript(self, node: ast.Subscript) -> Any:
        family = self.read(node.value)
        if not isinstance(family, Family):
            raise self._refuse(node)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return family[tuple(self.read(e) for e in entries)]

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.USub | ast.UAdd):
            raise self._refuse(node)
        value = self.read(node.operand)
        return -value if isinstance(node.op, ast.USub) else value

    def _binop(self, node: ast.BinOp) -> Any:
        a, b = self.read(node.left), self.read(node.right)
        if isinstance(node.op, ast.Pow):
            large = a.is_number and not (a.is_Rational and max(abs(a.p), a.q) < 10**6)
            if not (b.is_Rational and abs(b) <= _POWER) or large:
                raise self._refuse(node, f" (powers up to {_POWER})")
            return a**b
        if type(node.op) not in _OPERATORS or (isinstance(node.op, ast.Div) and b == 0):
            raise self._refuse(node)
        return _OPERATORS[type(node.op)](a, b)

    def _compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in _RELATIONS:
            raise self._refuse(node)
        return _RELATIONS[type(node.ops[0])](self.read(node.left), self.read(node.comparators[0]))

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if node.keywords or any(isinstance(a, ast.Starred) for a in node.args):
            raise self._refuse(node)
        if name == "Sum" and len(node.args) == 2 and isinstance(node.args[1], ast.Tuple):
            limits = tuple(self.read(e) for e in node.args[1].elts)
            components = {tuple(f.components) for f in self.words.values() if isinstance(f, Family)}
            ranges = {word.kind.range for word in self.words.values() if isinstance(word, SiteCount)}
            if limits not in ranges | components or not limits:
                raise self._refuse(node.args[1])
            return Sum(self.read(node.args[0]), limits)
        if name == "Eq" and len(node.args) == 2:
            return Eq(*(self.read(a) for a in node.args))
        if name not in _FUNCTIONS and (near := get_close_matches(name, [*_FUNCTIONS, "Sum", "Eq"], n=1)):
            raise self._refuse(node, f"; the nearest function is {near[0]}")
        if name not in _FUNCTIONS or not 1 <= len(node.args) <= (2 if name in ("response", "Max", "Min") else 1):
            raise self._refuse(node)
        arguments = [self.read(a) for a in node.args]
        if any(isinstance(a, Expr) and a.is_number and not abs(a) <= _POWER for a in arguments) and name != "sqrt":
            raise self._refuse(node, f" (functions of numbers up to {_POWER})")
        return _FUNCTIONS[name](*arguments)


def read_observable(text: str, system: BipartiteSystem, more: Iterable[Symbol] = ()) -> Expr:
    """Read an observable in the words of a declaration, without evaluating anything.

    Parameters
    ----------
    text : str
        Such as ``average(w[i]**2)``, ``response(w)``, ``Sum(Delta[i]**2, (i, 1, N))``.
    system : BipartiteSystem
        Whose variables and parameters are meant.
    more : iterable of Symbol
        Further words, such as order parameters.
    """
    words: dict[str, Any] = {name: q.family for name, q in system.variables.items()}
    words |= {q.name: q for q in system.quenched}
    words |= {f.components[0].name: f.components[0] for f in [*words.values()] if f.components}
    words |= {q.family.name: q.family for q in (regime_of(s) for s, law in system.laws.items() if holds_set(law))}
    words |= {s.name: s for s in (*system.parameters, *system.globals, *more)}
    words |= {str(s): s for k in system.kinds for s in (k.index, k.ratio) if s.is_Symbol}
    words |= {k.size.name: k.size for k in system.kinds}
    if len(text) > _WORDY:
        raise ValuesError(
            f"The observable {text[:60]!r}... has {len(text)} characters.", f"observables of up to {_WORDY} characters"
        )
    written = re.sub(r"\blambda\b", "lam", text.strip())  # lambda is a word of Python's
    try:
        return _Reader(written, words).read(ast.parse(written, mode="eval"))
    except SymcavityError:
        raise
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        raise ValuesError(
            f"The observable {text[:80]!r} cannot be read.",
            _OBSERVABLES + ", ".join(sorted(words)),
            '--show "average(w[i]**2)"',
        ) from None
