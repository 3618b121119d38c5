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

from sympy import Expr, S, Sum, Symbol
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, Not, Or
from sympy.printing.numpy import SciPyPrinter
from sympy.printing.pycode import MpmathPrinter

from symcavity.algebra.choice import in_cases
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.overflow import without_overflow
from symcavity.algebra.tails import with_scaled_tails
from symcavity.evaluate.averages.groups import NodeGroup, Scope
from symcavity.evaluate.averages.layers import with_remainders
from symcavity.evaluate.averages.lines import LineWriter, joined_by
from symcavity.evaluate.averages.nodes import NODES, Needs, Variables, own_quantities, together
from symcavity.evaluate.averages.peaks import Peak, from_peaks
from symcavity.evaluate.averages.summits import Breadth, SmoothAverage, Summit, from_summits
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity

_NAMES = re.compile(r"\b[a-z]\d+\b")


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
        self.printer = (MpmathPrinter if loops else SciPyPrinter)(
            {"fully_qualified_modules": True, "allow_unknown_functions": False, "inline": True}
        )
        self.root = Scope(0, {})
        self._grouped: dict[Any, list[Expr]] = {}
        self._heights: dict[Any, int] = {}
        self._bound: set[Any] = set()
        variables = Variables(self.needs)
        exprs = [with_remainders(from_peaks(with_scaled_tails(in_cases(together(expr))))) for expr in exprs]
        exprs = [self.safe(variables(expr if loops else from_summits(expr))) for expr in exprs]
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
            return ("implicit", height, node.which, *node.args[1:])
        return ("line" if isinstance(node, SmoothAverage) else "gauss", height, node.z)

    # -- values ------------------------------------------------------------------------------------

    def home(self, expr: Any, path: Sequence[Scope]) -> Scope:
        """The innermost scope on a path whose variable an expression contains."""
        needs = self.needs(expr)
        return next((scope for scope in reversed(path) if not needs.isdisjoint(scope.names)), path[0])

    def value(self, expr: Any, path: Sequence[Scope]) -> str:
        """Write the lines that compute an expression; return its name as its home scope sees it."""
        return self._value(expr, path)[0]

    def _value(self, expr: Any, path: Sequence[Scope]) -> tuple[str, Scope]:
        if not expr.args and (expr.is_Boolean or expr.is_number):
            return self._constant(expr), path[-1]
        home = self.home(expr, path)
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
                self._line(expr, LineWriter(self, inner).value(expr), home)
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

    # -- tangents ----------------------------------------------------------------------------------

    def tangent(self, expr: Any, k: int, path: Sequence[Scope]) -> str | None:
        """Write the derivative of an expression in direction k; None where it does not move."""
        if self.loops or isinstance(expr, Relational | And | Or | Not) or not self._moves(expr, k, path):
            return None
        home = self.home(expr, path)
        if isinstance(expr, Symbol | SiteQuantity):
            if expr in home.moves:
                return home.moves[expr].get(k)
            return "1.0" if home is self.root and expr == self.wrt[k] else None
        if (expr, k) not in home.tangents:
            inner = path[: home.depth + 1]
            self._value(expr, inner)
            if (expr, k) not in home.tangents:  # averages have written theirs along with their values
                terms = LineWriter(self, inner).slopes(expr, k)
                name = self.name("d") if terms else None
                if terms:
                    home.lines.append(f"{name} = {joined_by(' + ', terms)}")
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
        return None if name is None else self._view(name, self.home(expr, path), path[-1])

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
        by_slopes = isinstance(node, Summit | Breadth)
        place = [self.seen(Summit(*node.args), path)] if isinstance(node, Breadth) else []
        trial = Scope(home.depth + 1, {z: there})
        asked = [exponent.diff(z), exponent.diff(z, 2)] if by_slopes else [exponent]
        result = ", ".join(self.seen(self.safe(e), [*path, trial]) for e in asked)
        home.lines += [f"def {law}({there}):", *("    " + line for line in trial.lines), f"    return {result}"]
        function = type(node).__name__.lower() if by_slopes else "highest"
        self._line(node, f"{function}({', '.join([law, *place])})", home)

    def _average(self, node: Expr, path: Sequence[Scope]) -> None:
        """Write a whole group of averages: those over the same variable that live in the same scope."""
        home = path[-1]
        elsewhere = self._bound.difference(*(scope.names for scope in path))  # what averages bind, not entered yet
        members = [
            n
            for n in self._grouped[self._key(node)]
            if n == node or (self.home(n, path) is home and n not in home.memo and elsewhere.isdisjoint(self.needs(n)))
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


def _scaled(node: Expr, value: Any) -> Any:
    """The size times a value for a sum over all sites."""
    return node.limits[0][2] * value if isinstance(node, Sum) else value


def _forgetting(lines: Sequence[str]) -> list[str]:
    """Drop each intermediate after its last use: the next one takes its memory, which is five times as quick."""
    inner = {name for line in lines if line.startswith(" ") for name in _NAMES.findall(line)}
    own = {name for line in lines for name in _NAMES.findall(line.partition(" = ")[0])} - inner
    last = {name: n for n, line in enumerate(lines) for name in _NAMES.findall(line) if name in own}
    dead: dict[int, list[str]] = {}
    for name, n in last.items():
        dead.setdefault(n, []).append(name)
    out: list[str] = []
    for n, line in enumerate(lines):
        drops = n in dead and not line.startswith(("return", "def"))
        out += [line, f"del {', '.join(dead[n])}"] if drops else [line]
    return out
