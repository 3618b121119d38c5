"""The allowed nodes of a document: the types of their arguments, and bounds for the size of their values.

A document may come from anybody.  SymPy's constructors execute a text where they expect an expression, and evaluate a
power of huge integers before anybody hears of it, so that both are looked at before a class is called.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Basic, Expr, Mul, Pow, Rational, S, Symbol, Tuple
from sympy.core.assumptions import _assume_defined as assumptions_known
from sympy.core.symbol import Str

from symcavity.errors import ValuesError
from symcavity.model.atoms import DataAtom
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import Kind
from symcavity.model.names import read_text
from symcavity.model.quantities import Family, Quenched, site_quantities
from symcavity.model.times import Time, read_time

LETTERS, WORDS = 300, 4000  # of a name, of a title
NODES = 100_000  # the documents of the gallery have 2,200 at most
DEPTH = 100  # of a node above its leaves: 20
SIZE = 100_000  # nodes of one expression, written out as a tree: 800
DIGITS = 4000  # of a number, or of what a power of numbers would be
EXPONENT = 1000
TERMS = 100_000  # of an expression whose products and powers of sums are multiplied out
_GROWING = ("exp", "sinh", "cosh", "csch", "sech", "gamma", "uppergamma", "erfi", "besseli", "tan", "cot", "sec", "csc")
_COMMANDS = re.compile(r"\\(input|include|write|read|open|immediate|catcode|def|edef|let|csname|special|loop)|\^\^")

_FAMILY = (str, Tuple, Kind)
_ATOMS: dict[str, tuple[Any, ...]] = {
    "Kind": (str, str, str, str, Expr, bool),
    **dict.fromkeys(("Variable", "Field", "Source", "VectorVariable", "VectorField"), _FAMILY),
    "Quenched": (*_FAMILY, Basic, bool, Tuple),
    "Coupling": (str, Tuple, Expr, Kind, Kind, Expr, Tuple, Expr),
    "Kernel": (str, Coupling, Quenched),
    "SupportFunction": (str, type(None), (int, type(None)), int, (int, type(None))),
    "Components": (Symbol, Expr, Expr),
    "Shown": (Family,),
    "Noise": (*_FAMILY, Expr, Time),
    "SharedState": (str, Tuple, Time),
}
_MORE: dict[str, tuple[Any, ...]] = {  # what may stand behind: the time of what moves, the states of what is discrete
    **dict.fromkeys(("Field", "Source", "Quenched"), (Time,)),
    "Variable": ((Tuple, Time),),
}
_SYMBOLS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("Symbol", "Str", "OrderParameter", "Count", "DrawnOn", "FieldSymbol", "Global", "_Bold"), (str,)),
    "Time": (str,),
    "MovingParameter": (str, tuple),
    **dict.fromkeys(("TexSymbol", "LawSymbol", "ProjectionSymbol"), (str, str)),
    **dict.fromkeys(("SiteIndex", "SiteCount"), (Kind,)),
    "Dummy": (str, int),
    "CavitySymbol": (str, Kind, str),
    "ComponentSymbol": (str, Kind, tuple, str),
}
_FIRST: dict[str, tuple[Any, ...]] = {  # the first arguments of nodes that look into them
    "SiteQuantity": (Family,),
    "Average": (Expr,),
    "Choice": (Expr, Tuple),
    "Complementary": (Expr, Expr),
    "GaussianAverage": (Expr, Symbol),
    "Rate": (Expr, Time),
    "Element": (Symbol,),
    "RandomSymbol": (Basic,),
}


def check_arguments(name: str, found: Any, values: Sequence[Any]) -> None:
    """Refuse arguments of another sort than a class of nodes has.

    Raises
    ------
    ValuesError
        With the place of the first that does not belong there.
    """
    expected = _ATOMS.get(name) or _SYMBOLS.get(name)
    if expected is None:
        if issubclass(found, DataAtom | Symbol | Str):
            raise ValuesError(f"The class {name} has no nodes of its own.", ", ".join(sorted({*_ATOMS, *_SYMBOLS})))
        first = _FIRST.get(name, ())
        expected = (*first, *[Basic] * (len(values) - len(first)))
    if len(values) > len(expected):
        expected = (*expected, *_MORE.get(name, ()))
    if len(values) != len(expected):
        raise ValuesError(f"A {name} has {len(expected)} arguments, and here {len(values)}.", "all arguments")
    for place, (value, kind) in enumerate(zip(values, expected, strict=True)):
        truth = isinstance(value, bool) and kind is not bool
        if truth or not isinstance(value, kind):
            raise ValuesError(
                f"{value!r:.60} stands where an expression belongs, as argument {place} of {name}.",
                "the place of a node of the right class",
            )
        if isinstance(value, str):
            check_words(value, name)
    _look_inside(name, values)


def _look_inside(name: str, values: Sequence[Any]) -> None:
    """Check what the arguments of a declared thing consist of."""
    words = [str(v) for v in values if isinstance(v, str)]
    if name in _ATOMS and not all(w.isidentifier() for w in (words[2:] if name == "Kind" else words)):
        raise ValuesError(f"{words!r:.60} are not names.", "identifiers")
    if name == "Kind" and not (values[4] == 1 or isinstance(values[4], Symbol)):
        raise ValuesError(f"The ratio of a kind is {values[4]!s:.60}.", "a symbol")
    ranges = values[1] if name in _ATOMS and len(values) > 2 and isinstance(values[1], Tuple) else ()
    if ranges and not (len(ranges) == 3 and isinstance(ranges[0], Symbol) and all(isinstance(e, Expr) for e in ranges)):
        raise ValuesError(f"The range of components is {ranges!s:.60}.", "an index, and its two ends")
    states = [part for part in values[3:] if isinstance(part, Tuple)] if name == "Variable" else []
    if not all(isinstance(v, Rational) for part in states for v in part):
        raise ValuesError(f"The states of a variable are {values[3]!s:.60}.", "numbers")
    pairs = values[6] if name == "Coupling" else ()
    if not all(isinstance(p, Tuple) and len(p) == 2 and isinstance(p[0], Coupling) for p in pairs):
        raise ValuesError(f"The correlations are {pairs!s:.60}.", "pairs of a coupling and a coefficient")
    components = {"ComponentSymbol": 2, "MovingParameter": 1}.get(name)
    if components is not None and not all(isinstance(k, Expr) for k in values[components]):
        raise ValuesError(f"The components are {values[components]!r:.60}.", "the places of nodes")
    if name == "SiteQuantity" and not all(isinstance(k, Expr) for k in values[1:]):
        raise ValuesError(f"The indices are {values[1:]!r:.60}.", "the places of nodes")
    if name == "SiteQuantity" and values[0].over is not None:
        read_time(values[-1], values[0].name, values[0].over)
    moves = name in _ATOMS and isinstance(values[-1], Time)
    drawn = (name == "Quenched" and values[5]) or (name == "Noise" and site_quantities(values[3]))
    if moves and (values[1] or drawn):
        raise ValuesError(f"{values[0]} moves, and has {values[1:-1]!s:.60}.", "scalars with laws of their own")
    if name in ("Variable", "Field", "Quenched", "Noise") and not isinstance(values[2], Kind):
        raise ValuesError(f"A {name} belongs to {values[2]!r:.60}.", "a kind of site")


def check_words(text: Any, what: str, most: int = LETTERS) -> str:
    """Refuse a text that is none, is too long, or holds what is not printed or a command of TeX that does more."""
    if len(read_text(text, f"A text in {what}")) > most:
        raise ValuesError(f"A text in {what} has {len(text)} letters.", f"up to {most}")
    if _COMMANDS.search(text):
        raise ValuesError(f"The text {text!r:.60} in {what} holds a command of TeX.", "letters and formulas")
    return text


def check_assumptions(found: Any) -> dict[str, bool]:
    """Read the assumptions of a symbol."""
    if not isinstance(found, dict) or not all(
        k in assumptions_known and isinstance(v, bool) for k, v in found.items()
    ):
        raise ValuesError("An assumption is neither true nor false.", "true or false")
    return dict(found)


@dataclass(frozen=True)
class FormulaSize:
    """How large a node is.

    Attributes
    ----------
    depth, size : int
        Of its tree.
    digits : float
        A bound for the digits of a number; negative if it is not a number.
    terms : int
        Of its sums, multiplied out.
    """

    depth: int = 1
    size: int = 1
    digits: float = -1
    terms: int = 1


def measured(name: str, found: Any, parts: Sequence[FormulaSize], values: Sequence[Any]) -> FormulaSize:
    """Measure a node by its arguments, before it is built.

    Raises
    ------
    ValuesError
        If it would be too large to be worked with.
    """
    depth = 1 + max((p.depth for p in parts), default=0)
    size = 1 + sum(p.size for p in parts)
    numbers = bool(parts) and all(p.digits >= 0 for p in parts) and name not in ("Tuple", "Sum", "Integral")
    digits, terms = _digits(name, parts, values) if numbers else -1, 1
    if found is Add:
        terms = sum(p.terms for p in parts)
    elif found is Mul:
        terms = math.prod(p.terms for p in parts)
    elif found is Pow:
        terms = _terms_of_power(parts, values)
    for what, value, most in (
        ("levels", depth, DEPTH), ("nodes", size, SIZE), ("digits", digits, DIGITS), ("terms", terms, TERMS)
    ):
        if value > most:
            raise ValuesError(f"A {name} has {value:.3g} {what}.", f"up to {most}")
    return FormulaSize(depth, size, digits, terms)


def _digits(name: str, parts: Sequence[FormulaSize], values: Sequence[Any]) -> float:
    """A bound for the digits of a number that is made of others."""
    if name in ("Pow", "MatPow"):
        power = values[1]
        times = abs(power) if isinstance(power, Rational) else _power_of_ten(parts[1].digits)
        return max(parts[0].digits, 1) * max(float(times), 1.0)
    if name in _GROWING:
        value = values[-1]
        return float(abs(value)) + 1 if isinstance(value, Rational) else _power_of_ten(max(p.digits for p in parts))
    return sum(p.digits for p in parts) + 1


def _power_of_ten(digits: float) -> float:
    return 10.0 ** min(digits, 300)


def _terms_of_power(parts: Sequence[FormulaSize], values: Sequence[Any]) -> int:
    power = values[1]
    if not isinstance(power, Rational) or parts[0].digits >= 0:
        return 1
    if abs(power) > EXPONENT:
        raise ValuesError(f"An exponent is {str(power)[:40]}.", f"exponents up to {EXPONENT}")
    whole = int(power)
    return math.comb(parts[0].terms + whole - 1, whole) if whole == power and whole > 0 else 1


def check_limits(name: str, values: Sequence[Any]) -> None:
    """Refuse sums over very many numbers, and derivatives of very many orders."""
    if name not in ("Sum", "Integral", "Derivative", "Identity", "ZeroMatrix"):
        return
    whole = [e for v in values for e in (v.args if isinstance(v, Tuple) else (v,)) if getattr(e, "is_Integer", False)]
    if any(abs(e) > EXPONENT for e in whole):
        raise ValuesError(f"A {name} runs to {max(whole, key=abs)!s:.40}.", f"numbers up to {EXPONENT}")


def of_number(value: Any) -> FormulaSize:
    """The measure of a rational number, or of a constant."""
    if not isinstance(value, Rational):
        return FormulaSize(digits=1 if value not in (S.Infinity, S.NegativeInfinity) else -1)
    return FormulaSize(digits=max(int(value.p).bit_length(), int(value.q).bit_length()) * 0.30103)

