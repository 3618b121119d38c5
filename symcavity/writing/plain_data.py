"""Expressions as plain data, and back: nodes of known classes are built, and nothing that is read is evaluated."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy
from sympy import Basic, Dummy, Rational, S, Symbol
from sympy.core.containers import Tuple
from sympy.core.symbol import Str

from symcavity.errors import SymcavityError, UnsupportedLaw, ValuesError
from symcavity.model.atoms import DataAtom
from symcavity.model.kinds import SiteCount, SiteIndex
from symcavity.model.quantities import Global
from symcavity.writing.limits import (
    DIGITS,
    NODES,
    FormulaSize,
    check_arguments,
    check_assumptions,
    check_limits,
    measured,
    of_number,
)

_SYMPY = (
    *("Add", "Mul", "Pow", "Tuple", "Sum", "Integral", "Derivative", "Subs", "Piecewise", "Max", "Min", "Abs", "sign"),
    *("exp", "log", "erf", "erfc", "erfi", "erfinv", "erfcinv", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan"),
    *("asin", "acos", "asinh", "acosh", "atanh", "sec", "csc", "cot", "coth", "sech", "csch", "gamma", "loggamma"),
    *("Heaviside", "DiracDelta", "KroneckerDelta", "LambertW", "floor", "ceiling", "besseli", "besselj", "besselk"),
    *("Equality", "Unequality", "StrictLessThan", "StrictGreaterThan", "LessThan", "GreaterThan", "And", "Or", "Not"),
    *("MatAdd", "MatMul", "MatPow", "Transpose", "Inverse", "Trace", "Identity", "ZeroMatrix", "uppergamma", "Indexed"),
    "IndexedBase",
)
_LAWS = tuple(f"sympy.stats.{name}" for name in ("rv", "crv", "drv", "frv", "crv_types", "drv_types", "frv_types"))
_ROOMS = ("algebra", "model", "record", "sites")  # whose classes of expressions stand in claims
_CONSTANTS = ("Infinity", "NegativeInfinity", "ComplexInfinity", "NaN", "Pi", "Exp1", "ImaginaryUnit", "GoldenRatio")
_TRUTHS = {"true": S.true, "false": S.false}
_FRACTION = re.compile(r"([+-]?\d+)/(\d+)", re.ASCII)
RAW = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RuntimeError, AssertionError)
"""What classes of SymPy's may raise that are given something odd."""


@cache
def classes() -> dict[str, Any]:
    """The classes of nodes that are written and read, by name."""
    found: dict[str, Any] = {name: getattr(sympy, name) for name in _SYMPY}
    found |= {"ExprCondPair": sympy.functions.elementary.piecewise.ExprCondPair, "Str": Str, "Symbol": Symbol}
    rooms = [*map(importlib.import_module, _LAWS)]
    for name in _ROOMS:
        package = importlib.import_module(f"symcavity.{name}")
        walk = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        rooms += [importlib.import_module(module.name) for module in walk]
    for room in rooms:
        own = (item for item in vars(room).values() if inspect.isclass(item) and item.__module__ == room.__name__)
        found |= {item.__name__: item for item in own if issubclass(item, Basic)}
    return found


class Encoder:
    """Writes expressions into one table, each node once.

    Attributes
    ----------
    nodes : list of dict
        ``class``, ``args`` (a number is the place of another node) and, of symbols, ``assumptions``.
    dummies : list of Dummy
        In the order in which they were met: their numbers stand for them.
    """

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.dummies: list[Dummy] = []
        self._known: dict[Any, int] = {}

    def __call__(self, expr: Any) -> int:
        """Return the place of an expression in the table.

        Raises
        ------
        UnsupportedLaw
            If it holds a node of another class: floats, undefined functions.
        """
        key = (type(expr), expr)
        if key not in self._known:
            node = self._node(expr)
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return self._known[key]

    def _node(self, expr: Any) -> dict[str, Any]:
        name = type(expr).__name__
        if isinstance(expr, Rational):
            return {"class": "Rational", "args": [{"value": f"{expr.p}/{expr.q}"}]}
        for constant in _CONSTANTS:
            if expr is getattr(S, constant):
                return {"class": constant, "args": []}
        if expr is S.true or expr is S.false:
            return {"class": "true" if expr is S.true else "false", "args": []}
        if isinstance(expr, Dummy):
            if expr not in self.dummies:
                self.dummies.append(expr)
            args: Sequence[Any] = (expr.name, self.dummies.index(expr))
            return self._with("Dummy", args, expr.__getnewargs_ex__()[1])
        if classes().get(name) is not type(expr):
            raise UnsupportedLaw(f"{expr} is a {name}, and is not written as data.", "exact expressions")
        if isinstance(expr, SiteIndex | SiteCount):
            return self._with(name, (expr.kind,))
        if isinstance(expr, DataAtom):
            return self._with(name, expr._data)  # noqa: SLF001 - what it is identified by
        if isinstance(expr, Str):
            return self._with(name, (expr.name,))
        if isinstance(expr, Symbol):
            newargs, assumptions = expr.__getnewargs_ex__()
            return self._with(name, newargs, assumptions)
        return self._with(name, expr.args)

    def _with(self, name: str, args: Sequence[Any], assumptions: Any = None) -> dict[str, Any]:
        node: dict[str, Any] = {"class": name, "args": [self._arg(a) for a in args]}
        if assumptions:
            node["assumptions"] = {k: bool(v) for k, v in sorted(assumptions.items()) if v is not None}
        return node

    def _arg(self, arg: Any) -> Any:
        if isinstance(arg, Basic):
            return self(arg)
        if arg is None or isinstance(arg, bool | str | int):
            return {"value": arg}
        if isinstance(arg, tuple):
            return {"tuple": [self._arg(a) for a in arg]}
        raise UnsupportedLaw(f"{arg!r:.80} is not written as data.", "exact expressions")


class Decoder:
    """Builds the expressions of a table.

    Parameters
    ----------
    nodes : list of dict
        As :class:`Encoder` writes them.
    dummies : sequence of Dummy
        What the numbers of dummies stand for; others are made.

    Raises
    ------
    ValuesError
        For a class that is not known, a reference to a later node, or a text where none belongs.
    """

    def __init__(self, nodes: Any, dummies: Sequence[Dummy] = ()) -> None:
        self._dummies: dict[int, Dummy] = dict(enumerate(dummies))
        self._built: list[Any] = []
        self._measures: list[FormulaSize] = []
        if not isinstance(nodes, list):
            raise ValuesError("The nodes are not a list.", "a file that Derivation.to_json wrote")
        if len(nodes) > NODES:
            raise ValuesError(f"There are {len(nodes)} nodes.", f"documents of up to {NODES} nodes")
        for place, node in enumerate(nodes):
            try:
                built, measure = self._build(node)
            except SymcavityError as problem:
                raise ValuesError(f"The node {place} cannot be read: {problem.found}", problem.supported) from None
            except RAW as problem:
                raise ValuesError(
                    f"The node {place} cannot be read: {type(problem).__name__}.",
                    "a file that Derivation.to_json wrote",
                ) from None
            self._built.append(built)
            self._measures.append(measure)

    def __getitem__(self, place: Any) -> Any:
        if type(place) is not int or not 0 <= place < len(self._built):
            raise ValuesError(f"There is no node {place!r:.40} before this one.", "the place of an earlier node")
        return self._built[place]

    def _build(self, node: Any) -> tuple[Any, FormulaSize]:
        if not isinstance(node, dict) or not isinstance(node.get("class"), str) or not isinstance(node["args"], list):
            raise ValuesError("It is not a class with arguments.", "a file that Derivation.to_json wrote")
        name, args = node["class"], node["args"]
        if name in _CONSTANTS or name in _TRUTHS:
            constant = _TRUTHS.get(name) or getattr(S, name)
            return constant, of_number(constant)
        if name == "Rational":
            value = _rational(args[0]["value"])
            return value, of_number(value)
        found = Dummy if name == "Dummy" else classes().get(name)
        if found is None:
            raise ValuesError(f"The class {name!r:.60} is not known.", ", ".join(sorted(classes())))
        values = [self._value(a) for a in args]
        check_arguments(name, found, values)
        check_limits(name, values)
        measure = measured(name, found, [self._measures[a] for a in args if type(a) is int], values)
        return self._made(found, values, check_assumptions(node.get("assumptions", {}))), measure

    def _made(self, found: Any, values: list[Any], assumptions: dict[str, bool]) -> Any:
        """The node of a class, of arguments that have been checked."""
        if found is Dummy:
            known = self._dummies.get(values[1])
            if known is None or known.name != values[0]:
                known = self._dummies[values[1]] = Dummy(values[0], **assumptions)
            return known
        if issubclass(found, SiteIndex | SiteCount):
            return values[0].index if issubclass(found, SiteIndex) else values[0].size
        if issubclass(found, DataAtom):
            return found._make(*values)
        if issubclass(found, Symbol | Str):
            known_positive = found is Global and assumptions.get("positive")
            return Global.above_zero(*values) if known_positive else found(*values, **assumptions)
        if found.__module__.startswith("sympy.") and not issubclass(found, Tuple):
            return _unevaluated(found, values)
        return found(*values)

    def _value(self, arg: Any) -> Any:
        if isinstance(arg, dict) and "value" in arg:
            value = arg["value"]
            if value is not None and not isinstance(value, bool | str | int):
                raise ValuesError(f"{value!r:.40} is neither text nor a number nor a truth value.", "these")
            return value
        if isinstance(arg, dict):
            return tuple(self._value(a) for a in arg["tuple"])
        return self[arg]


def _unevaluated(found: Any, values: Sequence[Any]) -> Any:
    """A node of SymPy's as it was, where its class can be told not to evaluate."""
    try:
        return found(*values, evaluate=False)
    except TypeError:
        return found(*values)


def _rational(text: Any) -> Any:
    if not isinstance(text, str) or len(text) > 2 * DIGITS or not (found := _FRACTION.fullmatch(text)):
        raise ValuesError(f"The number is {text!r:.60}.", "a fraction of two whole numbers as text")
    number = [int(part) for part in found.groups() if len(part) <= DIGITS]
    if len(number) < 2 or not number[1]:
        raise ValuesError(f"The number is {text!r:.60}.", "a fraction of two whole numbers as text")
    return Rational(*number)
