"""Observables and names of parameters as they are typed: read by a grammar, and nothing is evaluated as code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from sympy import Abs, Eq, Expr, I, Max, Min, S, Sum, Symbol, erf, exp, log, sign, sqrt, tanh

from symcavity.algebra.door import NUMBER, as_sympy, read_number
from symcavity.errors import DeclarationError, SymcavityError, ValuesError
from symcavity.model.averages import Average, Fresh, average, expect, fresh, response
from symcavity.model.convex_law import holds_set, regime_of
from symcavity.model.couplings import Coupling
from symcavity.model.exact import refuse_high_powers
from symcavity.model.families import families
from symcavity.model.kinds import SiteCount
from symcavity.model.names import ALIASES
from symcavity.model.objective import objective_of
from symcavity.model.quantities import Family
from symcavity.model.system import System
from symcavity.model.times import other_times

_WORDY, _POWER = 400, 20
_OBSERVABLES = "average(...), response(...), Sum(..., (i, 1, N)), with the words "
_HINT = "average(w[i]**2)"
OBJECTIVE = "objective"  # the minimum of a declared problem per feature


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
    "fresh": fresh,
    "expect": expect,
    "response": response,
    "sqrt": sqrt,
    "abs": Abs,
} | {f.__name__: f for f in (Abs, Max, Min, erf, exp, log, sign, tanh)}


class _ObservableReader:
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
        place = f": the name {piece!r} is unknown" if isinstance(node, ast.Name) else f" at {piece!r}" if piece else ""
        return ValuesError(
            f"The observable {self.text!r} cannot be read{place}{why}.",
            _OBSERVABLES + ", ".join(sorted(self.words)),
            _HINT,
        )

    def _expression(self, node: ast.Expression) -> Any:
        return self.read(node.body)

    def _constant(self, node: ast.Constant) -> Any:
        piece = ast.get_source_segment(self.text, node) or ""
        if not NUMBER.fullmatch(piece):
            raise self._refuse(node)
        return read_number(piece, "a number in an observable")

    def _name(self, node: ast.Name) -> Any:
        word = ALIASES.get(node.id, node.id)
        if word not in self.words:
            near = get_close_matches(word, self.words, n=1)
            raise self._refuse(node, f"; the nearest word is {near[0]}" if near else "")
        return self.words[word]

    def _subscript(self, node: ast.Subscript) -> Any:
        family = self.read(node.value)
        if not isinstance(family, Family):
            raise self._refuse(node)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = [self.read(e) for e in entries]
        short = family.over is not None and len(indices) == len(family.slots)  # at the time over which it moves
        return family[(*indices, family.over) if short else tuple(indices)]

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
        if name not in _FUNCTIONS or not 1 <= len(node.args) <= {"response": 3, "Max": 2, "Min": 2}.get(name, 1):
            raise self._refuse(node)
        arguments = [self.read(a) for a in node.args]
        if any(isinstance(a, Expr) and a.is_number and not abs(a) <= _POWER for a in arguments) and name != "sqrt":
            raise self._refuse(node, f" (functions of numbers up to {_POWER})")
        return _FUNCTIONS[name](*arguments)


def read_observable(text: str, system: System, more: Iterable[Symbol] = ()) -> Expr:
    """Read an observable in the words of a declaration, without evaluating anything.

    Parameters
    ----------
    text : str
        Such as ``average(w[i]**2)``, ``response(w)``, ``Sum(Delta[i]**2, (i, 1, N))``; ``objective`` is the minimum
        of a declared problem per feature.
    system : System
        Whose variables and parameters are meant.
    more : iterable of Symbol
        Further words, such as order parameters.
    """
    words: dict[str, Any] = {f.coupling.family.name: f.coupling.family for f in system.fields}
    words |= {x.name: x for x in families(system.rewritten.typed.entries, Coupling)}
    words |= {name: q.family for name, q in system.variables.items()}
    words |= {q.name: q for q in system.quenched}
    words |= {f.components[0].name: f.components[0] for f in [*words.values()] if f.components}
    words |= {q.family.name: q.family for q in (regime_of(s) for s, law in system.laws.items() if holds_set(law))}
    words |= {s.name: s for s in (*system.parameters, *system.globals, *system.named, *more)}
    words |= {str(s): s for k in system.kinds for s in (k.index, k.ratio) if s.is_Symbol}
    words |= {k.size.name: k.size for k in system.kinds}
    if OBJECTIVE in text and system.record is not None:
        words = {OBJECTIVE: objective_of(system)} | words
    if system.time is not None:
        words |= {q.family.name: q.family for q in system.motion.updates if not q.site}
        words = {t.name: t for t in (*other_times(system.time)[:1], system.time)} | words
    if len(text) > _WORDY:
        raise ValuesError(
            f"The observable {text[:60]!r}... has {len(text)} characters.", f"observables of up to {_WORDY} characters"
        )
    written = re.sub(r"\blambda\b", "lam", text.strip())  # lambda is a word of Python's
    try:
        return _ObservableReader(written, words).read(ast.parse(written, mode="eval"))
    except SymcavityError:
        raise
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        raise ValuesError(
            f"The observable {text[:80]!r} cannot be read.",
            _OBSERVABLES + ", ".join(sorted(words)),
            _HINT,
        ) from None


def in_list(observables: Any) -> list[Any]:
    """The observables that a user gives: one, or several in a definite order."""
    return [observables] if isinstance(observables, str | Expr | Family) else list(observables)


def observable_of(key: Any, system: System, more: Iterable[Symbol] = (), hint: str = "") -> Expr:
    """What a user names an observable by: an expression as it is, a text read in the words of a declaration.

    Names that the declaration gives to observables are written out, unless they are among ``more``.

    Parameters
    ----------
    key : Expr, number or str
    system : System
        Whose words a text is made of.
    more : iterable of Symbol
        Further words, such as order parameters.
    hint : str
        What a family of variables may be asked for, for the message.

    Raises
    ------
    DeclarationError, ValuesError
        For what is no expression with one value.
    """
    more, named = tuple(more), {str(name): value for name, value in system.named.items()}
    found = named.get(str(key)) if isinstance(key, str) or type(key) is Symbol else None
    if found is None:
        found = read_observable(key, system, more) if isinstance(key, str) else key
    if isinstance(found, Family):
        raise DeclarationError(
            f"{found} is a family of variables, not a number.", f"average({found.at_site()}), response({found})", hint
        )
    expr = as_sympy(found, "The observable")
    while names := {name: value for name, value in system.named.items() if name not in more and expr.has(name)}:
        expr = expr.xreplace(names)
    if not isinstance(expr, Expr):
        raise DeclarationError(
            f"{expr!s:.80} is not a number.", "averages, responses and their functions", f"average({expr!s:.80})"
        )
    if expr.xreplace(dict.fromkeys(expr.atoms(Average), S.One)).has(Fresh):
        raise DeclarationError(
            f"The observable {key!s:.80} is of one fresh site: it differs from site to site.",
            "averages over fresh sites",
            "average(fresh(...))",
        )
    refuse_high_powers(expr, "an observable")
    if expr.has(S.NaN, S.ComplexInfinity):
        raise ValuesError(f"The observable {key!s:.80} is {expr!s:.80}.", "expressions that are not divided by zero")
    if expr.has(I):
        raise DeclarationError(f"The observable {key!s:.80} is not real.", "averages, responses and their functions")
    return expr
