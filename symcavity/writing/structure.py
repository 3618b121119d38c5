"""Expressions as plain data, and back: nodes of known classes are built, and nothing that is read is evaluated."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import sympy
from sympy import Basic, Dummy, Integer, Rational, S, Symbol
from sympy.core.containers import Tuple
from sympy.core.symbol import Str

from symcavity.errors import SymcavityError, UnsupportedLaw, ValuesError
from symcavity.model.atoms import DataAtom
from symcavity.model.kinds import SiteCount, SiteIndex
from symcavity.model.quantities import Global

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
LARGEST = 4000  # digits of a number


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
        if not isinstance(nodes, list):
            raise ValuesError("The nodes are no list.", "what Derivation.to_json wrote")
        for place, node in enumerate(nodes):
            try:
                self._built.append(self._build(node))
            except SymcavityError as problem:
                raise ValuesError(f"The node {place} cannot be read: {problem.found}", problem.supported) from None
            except (TypeError, ValueError, AttributeError, IndexError, KeyError, RecursionError) as problem:
                raise ValuesError(
                    f"The node {place} cannot be read: {type(problem).__name__}.", "what Derivation.to_json wrote"
                ) from None

    def __getitem__(self, place: Any) -> Any:
        if type(place) is not int or not 0 <= place < len(self._built):
            raise ValuesError(f"There is no node {place!r:.40} before this one.", "the place of an earlier node")
        return self._built[place]

    def _build(self, node: Any) -> Any:
        name, args = node["class"], node["args"]
        if name in _CONSTANTS:
            return getattr(S, name)
        if name in _TRUTHS:
            return _TRUTHS[name]
        if name == "Rational":
            return _rational(args[0]["value"])
        assumptions = dict(node.get("assumptions", {}))
        if not all(k.isidentifier() and isinstance(v, bool) for k, v in assumptions.items()):
            raise ValuesError("An assumption is no yes or no.", "true or false")
        values = [self._value(a) for a in args]
        if name == "Dummy":
            known = self._dummies.get(values[1])
            if known is None or known.name != values[0]:
                known = self._dummies[values[1]] = Dummy(values[0], **assumptions)
            return known
        found = classes().get(name)
        if found is None:
            raise ValuesError(f"The class {name!r:.60} is not known.", ", ".join(sorted(classes())))
        if issubclass(found, SiteIndex | SiteCount):
            return values[0].index if issubclass(found, SiteIndex) else values[0].size
        if issubclass(found, DataAtom):
            return found._make(*values)
        if issubclass(found, Symbol | Str):
            _check_texts(a for v in values if isinstance(v, tuple) for a in v)
            known_positive = found is Global and assumptions.get("positive")
            return Global.above_zero(*values) if known_positive else found(*values, **assumptions)
        _check_texts(values)
        if found.__module__.startswith("sympy.") and not issubclass(found, Tuple):
            return _unevaluated(found, values)
        return found(*values)

    def _value(self, arg: Any) -> Any:
        if isinstance(arg, dict) and "value" in arg:
            value = arg["value"]
            if value is not None and not isinstance(value, bool | str | int):
                raise ValuesError(f"{value!r:.40} is no text, number or truth.", "these")
            return value
        if isinstance(arg, dict):
            return tuple(self._value(a) for a in arg["tuple"])
        return self[arg]


def _check_texts(values: Iterable[Any]) -> None:
    """Refuse a text where an expression belongs: SymPy would read it as code."""
    for value in values:
        if not isinstance(value, Basic):
            raise ValuesError(f"{value!r:.60} stands where an expression belongs.", "the place of a node")


def _unevaluated(found: Any, values: Sequence[Any]) -> Any:
    """A node of SymPy's as it was, where its class can be told not to evaluate."""
    try:
        return found(*values, evaluate=False)
    except TypeError:
        return found(*values)


def _rational(text: Any) -> Any:
    if not isinstance(text, str) or len(text) > LARGEST:
        raise ValuesError(f"The number is {text!r:.60}.", "a fraction as text")
    value = Fraction(text)
    return Rational(value.numerator, value.denominator) if value.denominator != 1 else Integer(value.numerator)
