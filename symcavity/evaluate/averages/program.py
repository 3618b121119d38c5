"""Straight-line code for expressions with averages in them: one pass for all, with derivatives.

A set of expressions is a tree of scopes: the root, in which the parameters live, and one scope for every
variable that is integrated or summed over.  Equal subexpressions are computed once, in the outermost scope in which
their variables are known, and averages over the same variable share its nodes.  Two writers turn the tree into code:
arrays with one axis for each scope (NumPy), or loops (mpmath, in a context of its own).  Derivatives are carried
along, forward: every line has its tangent in each direction in which it moves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sympy import (
    Abs,
    Add,
    DiracDelta,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Sum,
    Symbol,
    cosh,
    exp,
    log,
    sign,
    sinh,
)
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne, Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import ITE, And, BooleanFalse, BooleanTrue, Not, Or
from sympy.printing.numpy import SciPyPrinter
from sympy.printing.pycode import MpmathPrinter

from symcavity.algebra.choice import in_cases
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.overflow import largest, log_sum, logistic, without_overflow
from symcavity.algebra.phi import phi
from symcavity.algebra.tails import log_tail, overhang, with_scaled_tails
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.groups import NodeGroup, Scope
from symcavity.evaluate.averages.nodes import NODES, Needs, own_quantities, together
from symcavity.evaluate.averages.peaks import Peak, from_peaks
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity

_NAMES = re.compile(r"\b[a-z]\d+\b")
MOST_JOINED = 64  # parts of one line without brackets: Python's compiler goes down one level for each
COMPARED = {Lt: "<", Le: "<=", Gt: ">", Ge: ">=", Eq: "==", Ne: "!="}


class Program:
    """Write the code of expressions.

    Parameters
    ----------
    exprs : sequence of Expr
    wrt : sequence of Symbol
        The directions of the derivatives; none for values alone.
    loops : bool
        Whether to write loops over scalars instead of arrays.

    Attributes
    ----------
    source : str
        Of a function ``run(inputs, laws, grids)``.
    inputs : list
        The symbols and quenched parameters whose values it takes, in order.
    groups : list of Group
        The variables of summation and integration: the grids that it takes, in order.
    """

    def __init__(self, exprs: Sequence[Expr], wrt: Sequence[Symbol] = (), *, loops: bool = False) -> None:
        self.wrt, self.loops = list(wrt), loops
        self.needs = Needs()
        self.inputs: list[Any] = []
        self.groups: list[NodeGroup] = []
        self.space: dict[str, Any] = {}
        self._count = 0
        self._numbers: dict[Any, str] = {}
        self._printer = (MpmathPrinter if loops else SciPyPrinter)(
            {"fully_qualified_modules": True, "allow_unknown_functions": False, "inline": True}
        )
        self.root = Scope(0, {})
        self._grouped: dict[Any, list[Expr]] = {}
        self._heights: dict[Any, int] = {}
        self._bound: set[Any] = set()
        exprs = [self.safe(from_peaks(with_scaled_tails(in_cases(together(expr))))) for expr in exprs]
        for expr in exprs:
            self._collect(expr)
        values = [self.value(e, [self.root]) for e in exprs]
        slopes = []
        for e in exprs:
            tick("code for the closed equations")
            slopes.append([self.tangent(e, k, [self.root]) for k in range(len(self.wrt))])
        lines = [f"({', '.join(self._inputs())},) = inputs"] if self.inputs else []
        if not loops:
            lines.append("flat = not any(map(axes, inputs))")
        lines += self.root.lines
        rows = ", ".join(f"({', '.join(t or '0.0' for t in row)},)" for row in slopes) if self.wrt else ""
        lines.append(f"return ({', '.join(values)}{',' if values else ''}), ({rows}{',' if rows else ''})")
        lines = lines if loops else _forgetting(lines)
        self.source = "def run(inputs, laws, grids):\n" + "\n".join("    " + line for line in lines)

    def _inputs(self) -> list[str]:
        return [self.root.names[s] for s in self.inputs]

    def safe(self, expr: Any) -> Any:
        """An expression whose exponentials do not overflow in double; the numbers of loops know no largest one."""
        return expr if self.loops else without_overflow(expr)

    def name(self, letter: str = "v") -> str:
        """Return a name that is used nowhere else."""
        self._count += 1
        return f"{letter}{self._count}"

    # -- which averages share their nodes ----------------------------------------------------------

    def _collect(self, expr: Any) -> int:
        """Sort all averages into groups; return how deeply they stand inside each other."""
        if expr in self._heights:
            return self._heights[expr]
        whole = expr.args[:1] if isinstance(expr, Average | Sum) else expr.args
        parts = () if isinstance(expr, NumberedAverage) else whole
        if isinstance(expr, ImplicitAverage):
            parts = (*parts, expr.args[2].diff(expr.args[1]))  # the density, which may hold averages of its own
        if isinstance(expr, ImplicitAverage | GaussianAverage):
            self._bound.add(expr.args[1])
        if isinstance(expr, Average | Sum):
            self._bound |= own_quantities(expr.args[0])
        height = max((self._collect(a) for a in parts), default=0) if not isinstance(expr, SiteQuantity) else 0
        if isinstance(expr, NODES) and not isinstance(expr, NumberedAverage):
            height += 1
        self._heights[expr] = height
        if isinstance(expr, NODES) and not isinstance(expr, NumberedAverage):
            found = self._grouped.setdefault(self._key(expr), [])
            if expr not in found:
                found.append(expr)
        return height

    def _key(self, node: Expr) -> tuple[Any, ...]:
        height = self._heights[node]
        if isinstance(node, Average | Sum):
            families = tuple(sorted({q.family for q in own_quantities(node.args[0])}, key=lambda f: f.name))
            return ("sites", height, families)
        if isinstance(node, ImplicitAverage):
            return ("implicit", height, *node.args[1:])
        return ("gauss", height, node.z)

    # -- values ------------------------------------------------------------------------------------

    def _home(self, expr: Any, path: Sequence[Scope]) -> Scope:
        """The innermost scope on a path whose variable an expression contains."""
        needs = self.needs(expr)
        return next((scope for scope in reversed(path) if not needs.isdisjoint(scope.names)), path[0])

    def value(self, expr: Any, path: Sequence[Scope]) -> str:
        """Write the lines that compute an expression; return its name as its home scope sees it."""
        return self._value(expr, path)[0]

    def _value(self, expr: Any, path: Sequence[Scope]) -> tuple[str, Scope]:
        if not expr.args and (expr.is_Boolean or expr.is_number):
            return self._constant(expr), path[-1]
        home = self._home(expr, path)
        if isinstance(expr, Symbol | SiteQuantity):
            if expr not in home.names:
                home.names[expr] = self.name("a")
                self.inputs.append(expr)
            return home.names[expr], home
        if expr not in home.memo:
            inner = path[: home.depth + 1]
            if isinstance(expr, NumberedAverage):
                self._box(expr, inner)
            elif isinstance(expr, NODES):
                self._average(expr, inner)
            elif isinstance(expr, Peak):
                self._peak(expr, inner)
            else:
                self._line(expr, self._text(expr, inner), home)
        return home.memo[expr], home

    def seen(self, expr: Any, path: Sequence[Scope]) -> str:
        """The value of an expression as the innermost scope of a path sees it."""
        name, home = self._value(expr, path)
        return self._view(name, home, path[-1])

    def _view(self, name: str, home: Scope, there: Scope) -> str:
        if self.loops or home.depth == there.depth:
            return name
        if name not in there.views:
            there.views[name] = self.name("x")
            text = f"spread({name}, {there.depth - home.depth})"
            text = f"{name} if flat else {text}" if home is self.root else text
            there.lines.append(f"{there.views[name]} = {text}")
        return there.views[name]

    def _line(self, expr: Any, text: str, home: Scope) -> None:
        name = self.name()
        home.memo[expr] = name
        home.lines.append(f"{name} = {text}")

    def _constant(self, number: Any) -> str:
        if number is S.true or number is S.false:
            return str(bool(number))
        if number.is_Integer:
            return f"{int(number)}" if self.loops else f"{float(number)!r}"
        if number not in self._numbers:
            self._numbers[number] = self.name("k")
            self.space[self._numbers[number]] = number
        return self._numbers[number]

    def _text(self, expr: Any, path: Sequence[Scope]) -> str:
        """The right-hand side of one line."""

        def of(part: Any) -> str:
            return self.seen(part, path)

        if isinstance(expr, Add):
            return _joined(" + ", list(map(of, self._gathered(expr, path))))
        if isinstance(expr, Mul):
            if expr.args[0] is S.NegativeOne:
                return "-" + of(Mul(*expr.args[1:]))
            return self._product(self._gathered(expr, path), path)
        if isinstance(expr, Pow):
            return self._power(expr, of)
        if isinstance(expr, Max | Min):
            return _nested("top" if isinstance(expr, Max) else "bottom", list(map(of, expr.args)))
        if isinstance(expr, Piecewise):
            return self._cases([(of(c), self._branch(v, path) if self.loops else of(v)) for v, c in expr.args], path)
        if isinstance(expr, Relational):
            return f"({of(expr.lhs)} {COMPARED[type(expr)]} {of(expr.rhs)})"
        if isinstance(expr, And | Or):
            words = (" and ", " or ") if self.loops else (" & ", " | ")
            word = words[isinstance(expr, Or)]
            return _joined(word, [f"({of(a)})" for a in expr.args])
        if isinstance(expr, ITE):  # a condition by cases
            test, one, other = expr.args
            return of(Or(And(test, one), And(Not(test), other)))
        if isinstance(expr, Not):
            return f"not {of(expr.args[0])}" if self.loops else f"~{of(expr.args[0])}"
        if isinstance(expr, BooleanTrue | BooleanFalse | ExprCondPair):
            return str(bool(expr))
        if isinstance(expr, log) and isinstance(share := expr.args[0], phi) and share.args[0] == 0:
            return f"log_phi({of(share.args[1])})"
        if isinstance(expr, log_tail):
            return f"log_phi({of(expr.args[0])})"
        if isinstance(expr, phi):
            if not expr.args[0].is_Integer:
                raise UnsupportedLaw(f"{expr} cannot be evaluated: its order is a symbol.", "phi of a given integer")
            return f"phi({int(expr.args[0])}, {of(expr.args[1])})"
        if isinstance(expr, overhang):
            return f"overhang({int(expr.args[0])}, {of(expr.args[1])})"
        if isinstance(expr, exp | sinh | cosh | largest | logistic | log_sum):
            return f"{expr.func.__name__}({', '.join(map(of, expr.args))})"
        if isinstance(expr, DiracDelta):
            raise UnsupportedLaw(f"{expr} stands outside of an average.", "averages over jumps, by parts")
        return self._printed(expr, of)

    def _product(self, args: Sequence[Any], path: Sequence[Scope]) -> str:
        """A product with one division at most, and quotients of equal powers as powers of quotients."""

        def of(*factors: Any) -> str:
            return self.seen(Mul(*factors), path)

        powers = [(a, *a.as_base_exp()) if a.is_Pow and a.exp.is_Integer else (a, a, S.One) for a in args]
        signed = {n for _, _, n in powers}
        for n in (n for n in (S(2), S(3)) if {n, -n} <= signed):
            quotient = of(*(base if m > 0 else 1 / base for _, base, m in powers if abs(m) == n))
            return _joined("*", [*(of(a) for a, _, m in powers if abs(m) != n), *[quotient] * n])
        below = [(a, base**-n) for a, base, n in powers if n < 0 and self._home(a, path) is path[-1]]
        over = [a for a in args if all(a is not b for b, _ in below)]
        text = _joined("*", list(map(of, over))) or "1"
        return f"{text}/{of(*(b for _, b in below))}" if below else text

    def _gathered(self, expr: Any, path: Sequence[Scope]) -> Sequence[Any]:
        """The parts of a sum or product, those of outer scopes as one part: it is computed there, once."""
        outer = [a for a in expr.args if self._home(a, path) is not path[-1]]
        if len(outer) < 2 or len(outer) == len(expr.args):
            return expr.args
        return [expr.func(*outer), *(a for a in expr.args if a not in outer)]

    def _printed(self, expr: Any, of: Any) -> str:
        """Any other function, as SymPy's printers write it."""
        if not expr.args:
            name = f"c_{expr}"
            self.space[name] = expr
            return name
        marks = [Symbol(of(a)) for a in expr.args]
        try:
            text: str = self._printer.doprint(expr.func(*marks))
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            text = ""
        if not text or "Not supported" in text:
            raise UnsupportedLaw(
                f"There is no numerical code for {expr.func.__name__}.", "functions that SymPy can print as code"
            )
        return text

    def _power(self, expr: Pow, of: Any) -> str:
        base, power = expr.args
        if power.is_Integer and 2 <= int(power) <= 3:
            return "*".join([of(base)] * int(power))
        if power.is_Integer and power > 3:
            half = of(base ** (power // 2))
            return f"{half}*{half}" + (f"*{of(base)}" if power % 2 else "")
        if power == -1:
            return f"1/{of(base)}"
        if power == S.Half:
            return f"sqrt({of(base)})"
        if power.is_Rational and power < 0:
            return f"1/{of(base**-power)}"
        if power.is_Rational and power.q == 2:
            return f"{of(base ** (power - S.Half))}*{of(base**S.Half)}"
        return f"{of(base)}**{of(power)}"

    def _branch(self, value: Any, path: Sequence[Scope]) -> str:
        """Write a branch as a function of its own: where another one holds it may have no value."""
        home = path[-1]
        lines, memo = home.lines, dict(home.memo)
        home.lines = []
        result = self.seen(value, path)
        body, home.lines, home.memo = home.lines, lines, memo
        if not body:
            return result
        name = self.name("b")
        home.lines += [f"def {name}():", *("    " + line for line in body), f"    return {result}"]
        return f"{name}()"

    def _cases(self, cases: list[tuple[str, str]], path: Sequence[Scope]) -> str:
        """The first value whose condition holds; many cases take several lines."""
        text = "nan"
        for count, (condition, value) in enumerate(reversed(cases), start=1):
            if condition == "True":
                text = value
            elif condition != "False":
                text = f"({value} if {condition} else {text})" if self.loops else f"where({condition}, {value}, {text})"
            if count % MOST_JOINED == 0:
                text = self._aside(text, path[-1])
        return text

    def _aside(self, text: str, home: Scope) -> str:
        """Write a part of a line as a line of its own; of a loop as a function: it may have no value."""
        name = self.name("b")
        home.lines += [f"def {name}():", f"    return {text}"] if self.loops else [f"{name} = {text}"]
        return f"{name}()" if self.loops else name

    # -- tangents ----------------------------------------------------------------------------------

    def tangent(self, expr: Any, k: int, path: Sequence[Scope]) -> str | None:
        """Write the derivative of an expression in direction k; None where it does not move."""
        if self.loops or isinstance(expr, Relational | And | Or | Not) or not self._moves(expr, k, path):
            return None
        home = self._home(expr, path)
        if isinstance(expr, Symbol | SiteQuantity):
            if expr in home.moves:
                return home.moves[expr].get(k)
            return "1.0" if home is self.root and expr == self.wrt[k] else None
        if (expr, k) not in home.tangents:
            inner = path[: home.depth + 1]
            self._value(expr, inner)
            if (expr, k) not in home.tangents:  # averages have written theirs along with their values
                terms = self._slopes(expr, k, inner)
                name = self.name("d") if terms else None
                if terms:
                    home.lines.append(f"{name} = {_joined(' + ', terms)}")
                home.tangents[expr, k] = name
        return home.tangents[expr, k]

    def _moves(self, expr: Any, k: int, path: Sequence[Scope]) -> bool:
        needs = self.needs(expr)
        if self.wrt[k] in needs and not any(self.wrt[k] in s.names for s in path[1:]):
            return True
        return any(k in scope.moves.get(leaf, ()) for scope in path for leaf in needs)

    def seen_tangent(self, expr: Any, k: int, path: Sequence[Scope]) -> str | None:
        """The tangent of an expression as the innermost scope of a path sees it."""
        name = self.tangent(expr, k, path)
        return None if name is None else self._view(name, self._home(expr, path), path[-1])

    def _slopes(self, expr: Any, k: int, path: Sequence[Scope]) -> list[str]:
        """The terms of a derivative: for every part that moves, its tangent times the partial derivative."""
        if isinstance(expr, sign | Heaviside | largest | Peak):
            return []
        moved = [(a, self.seen_tangent(a, k, path)) for a in expr.args if not isinstance(expr, Piecewise)]
        moving = [(n, a, t) for n, (a, t) in enumerate(moved) if t is not None]
        if isinstance(expr, Add):
            return [t for _, _, t in moving]
        if isinstance(expr, Mul):
            return [
                f"{t}*{self.seen(Mul(*expr.args[:n], *expr.args[n + 1 :]), path)}" for n, _, t in moving
            ]
        if isinstance(expr, Piecewise):
            slopes = [self.seen_tangent(v, k, path) for v, _ in expr.args]
            if not any(slopes):
                return []
            cases = [(self.seen(c, path), t or "0.0") for (_, c), t in zip(expr.args, slopes, strict=True)]
            return [self._cases(cases, path)]
        if isinstance(expr, Max | Min):
            here = self.seen(expr, path)
            cases = []
            for n, a, t in moving:
                rest = _joined(" | ", [f"({self.seen(b, path)} == {here})" for b in expr.args[:n]])
                cases.append((f"({self.seen(a, path)} == {here})" + (f" & ~({rest})" if rest else ""), t))
            return [self._cases([*reversed(cases), ("True", "0.0")], path)] if moving else []
        if isinstance(expr, Abs):
            return [f"{t}*{self.seen(sign(a), path)}" for _, a, t in moving]
        if isinstance(expr, Pow):
            base, power = expr.args
            out = []
            for n, _, t in moving:
                partial = power * base ** (power - 1) if n == 0 else expr * log(base)
                out.append(f"{t}*{self.seen(partial, path)}")
            return out
        return [f"{t}*{self.seen(expr.fdiff(n + 1), path)}" for n, _, t in moving]

    # -- averages ----------------------------------------------------------------------------------

    def _box(self, node: Expr, path: Sequence[Scope]) -> None:
        """An average that has code of its own: it takes its symbols' values, and their tangents."""
        home = path[-1]
        leaves = sorted(self.needs(node), key=str)
        name, table = self.name("m"), self.name("box")
        self.space[table] = node
        values = ", ".join(f"{table}_s[{n}]: {self.seen(leaf, path)}" for n, leaf in enumerate(leaves))
        self.space[f"{table}_s"] = [q.family if isinstance(q, SiteQuantity) else q for q in leaves]
        moving = {k: [self.seen_tangent(leaf, k, path) for leaf in leaves] for k in range(len(self.wrt))}
        moving = {k: row for k, row in moving.items() if not self.loops and any(row)}
        rows = ", ".join(
            "{" + ", ".join(f"{table}_s[{n}]: {t}" for n, t in enumerate(row) if t) + "}" for row in moving.values()
        )
        slopes = [self.name("d") for _ in moving]
        home.lines.append(f"{name}, {self.pattern(slopes)} = {table}({{{values}}}, laws, [{rows}])")
        home.memo[node] = name
        for k in range(len(self.wrt)):
            home.tangents[node, k] = dict(zip(moving, slopes, strict=True)).get(k)

    def _peak(self, node: Peak, path: Sequence[Scope]) -> None:
        """The place where a weight is largest, by its exponent as a function."""
        home, law, there = path[-1], self.name("psi"), self.name("y")
        exponent, z = node.args
        trial = Scope(home.depth + 1, {z: there})
        result = self.seen(self.safe(exponent), [*path, trial])
        home.lines += [f"def {law}({there}):", *("    " + line for line in trial.lines), f"    return {result}"]
        self._line(node, f"highest({law})", home)

    def _average(self, node: Expr, path: Sequence[Scope]) -> None:
        """Write a whole group of averages: those over the same variable that live in the same scope."""
        home = path[-1]
        elsewhere = self._bound.difference(*(scope.names for scope in path))  # what averages bind, not entered yet
        members = [
            n
            for n in self._grouped[self._key(node)]
            if n == node
            or (self._home(n, path) is home and n not in home.memo and elsewhere.isdisjoint(self.needs(n)))
        ]
        group = NodeGroup(self._key(node), members, len(self.groups), home.depth)
        if group.kind == "sites" and not group.families:
            for n in members:
                self._line(n, self.seen(_scaled(n, n.args[0]), path), home)
                for k in range(len(self.wrt)):
                    home.tangents[n, k] = self.seen_tangent(_scaled(n, n.args[0]), k, path)
            return
        self.groups.append(group)
        group.write(self, path)

    def pattern(self, names: Sequence[str]) -> str:
        """A tuple of names."""
        return "(" + "".join(n + ", " for n in names) + ")"


def _joined(word: str, parts: list[str]) -> str:
    """Parts with a word between them, many of them in brackets."""
    while len(parts) > MOST_JOINED:
        parts = [f"({word.join(parts[k : k + MOST_JOINED])})" for k in range(0, len(parts), MOST_JOINED)]
    return word.join(parts)


def _nested(function: str, args: list[str]) -> str:
    """A function of two arguments applied to many, in halves."""
    half = len(args) // 2
    return f"{function}({_nested(function, args[:half])}, {_nested(function, args[half:])})" if half else args[0]


def _scaled(node: Expr, value: Any) -> Any:
    """The size times a value for a sum over all sites."""
    return node.limits[0][2] * value if isinstance(node, Sum) else value


def _forgetting(lines: Sequence[str]) -> list[str]:
    """Drop each intermediate after its last use: the next one takes its memory, which is five times as quick."""
    inner = {name for line in lines if line.startswith(" ") for name in _NAMES.findall(line)}
    own = {name for line in lines for name in _NAMES.findall(line.partition(" = ")[0])} - inner
    last = {name: n for n, line in enumerate(lines) for name in _NAMES.findall(line) if name in own}
    out: list[str] = []
    for n, line in enumerate(lines):
        dead = [name for name, end in last.items() if end == n]
        out += [line, f"del {', '.join(dead)}"] if dead and not line.startswith(("return", "def")) else [line]
    return out
