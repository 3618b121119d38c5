"""Averages over one variable: the code of its nodes, of the integrands on them, and of the sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Expr, Sum, Symbol, exp, oo

from symcavity.evaluate.averages.layers import layers
from symcavity.evaluate.averages.nodes import own_quantities


class Scope:
    """The values that one variable of summation or integration has seen: names, lines of code, what is known."""

    def __init__(self, depth: int, bound: Mapping[Any, str]) -> None:
        self.depth = depth
        self.names: dict[Any, str] = dict(bound)
        self.moves: dict[Any, dict[int, str]] = {}
        self.memo: dict[Any, str] = {}
        self.tangents: dict[tuple[Any, int], str | None] = {}
        self.views: dict[str, str] = {}
        self.lines: list[str] = []


class NodeGroup:
    """Averages over one variable: what the grid of its nodes needs to know.

    Attributes
    ----------
    kind : str
        ``'sites'``, ``'gauss'``, ``'line'`` (gauss, smooth on the whole line) or ``'implicit'``.
    families : tuple of Quenched
        The quenched parameters that are averaged (sites).
    breaks : list of Expr
        Where the integrand is not smooth, or rises within a narrow layer (gauss).
    """

    def __init__(self, key: tuple[Any, ...], members: list[Expr], number: int, depth: int) -> None:
        self.key, self.kind, self.members, self.number, self.depth = key, key[0], members, number, depth
        self.families: tuple[Any, ...] = key[2] if self.kind == "sites" else ()
        self.breaks: list[Expr] = []
        if self.kind == "gauss":
            for node in members:
                self.breaks += [b for b in node.breaks if b not in self.breaks]
            self.breaks += [b for b in layers(members, key[2]) if b not in self.breaks]

    def write(self, program: Any, path: Sequence[Scope]) -> None:
        """Write the nodes, the integrands on them, and the sums."""
        home = path[-1]
        grid = f"grids[{self.number}]"
        moves: dict[int, str] = {}  # the tangents of the weights
        if self.kind == "sites":
            scope, weight = self._sites(program, home, grid)
        elif self.kind in ("gauss", "line"):
            scope, weight, moves = self._gauss(program, path, grid)
        else:
            scope, weight, moves = self._implicit(program, path, grid)
        inner = [*path, scope]
        sums: list[str] = []
        for node in self.members:
            body = node.args[0]
            name = program.name("m")
            home.memo[node] = name
            value = program.seen(body, inner)
            scope.lines.append(self._add(program, name, f"{grid}.sum({value}, {weight})", f"{value}*{weight}"))
            sums.append(name)
            for k in range(len(program.wrt)):
                slope = program.seen_tangent(body, k, inner)
                terms = [f"{grid}.slope({slope}, {weight})"] if slope else []
                terms += [f"{grid}.slope({value}, {moves[k]})"] if k in moves else []
                home.tangents[node, k] = program.name("d") if terms else None
                if terms:
                    scope.lines.append(f"{home.tangents[node, k]} = {' + '.join(terms)}")
        if program.loops:
            home.lines += [f"{n} = zero" for n in sums]
            home.lines.append(scope.names["header"])
            home.lines += ["    " + line for line in scope.lines]
        else:
            home.lines += scope.lines
        for node in self.members:
            if isinstance(node, Sum):
                mark = Symbol(home.memo[node])
                name = program.name("m")
                home.lines.append(f"{name} = {mark}*{program.seen(node.limits[0][2], path)}")
                for k in range(len(program.wrt)):
                    slope, size = home.tangents[node, k], node.limits[0][2]
                    if slope:
                        fresh = program.name("d")
                        home.lines.append(f"{fresh} = {slope}*{program.seen(size, path)}")
                        home.tangents[node, k] = fresh
                    if turn := program.seen_tangent(size, k, path):
                        fresh = program.name("d")
                        home.lines.append(f"{fresh} = {home.tangents[node, k] or '0.0'} + {turn}*{mark}")
                        home.tangents[node, k] = fresh
                home.memo[node] = name

    def _add(self, program: Any, name: str, arrays: str, scalars: str) -> str:
        return f"{name} += {scalars}" if program.loops else f"{name} = {arrays}"

    def _sites(self, program: Any, home: Scope, grid: str) -> tuple[Scope, str]:
        quantities = sorted({q for n in self.members for q in own_quantities(n.args[0])}, key=str)
        names = {q: program.name("q") for q in quantities}
        weight = program.name("w")
        columns = program.name("t")
        scope = Scope(home.depth + 1, names)
        table = [self.families.index(q.family) for q in quantities]
        if program.loops:
            scope.names["header"] = f"for {columns}, {weight} in {grid}.points(laws):"
        else:
            scope.lines.append(f"{columns}, {weight} = {grid}.points(laws)")
        scope.lines += [f"{name} = {columns}[{n}]" for name, n in zip(names.values(), table, strict=True)]
        return scope, weight

    def _gauss(self, program: Any, path: Sequence[Scope], grid: str) -> tuple[Scope, str, dict[int, str]]:
        home = path[-1]
        z, weight = program.name("z"), program.name("w")
        variable = self.members[0].z
        breaks = [program.seen(b, path) for b in self.breaks]
        scope = Scope(home.depth + 1, {variable: z})
        if program.loops:
            scope.names["header"] = f"for {z}, {weight} in {grid}.gauss([{', '.join(breaks)}]):"
            return scope, weight, {}
        slopes = {
            k: row
            for k in range(len(program.wrt))
            if any(row := [program.seen_tangent(b, k, path) for b in self.breaks])
        }
        rows = ", ".join("[" + ", ".join(t or "0.0" for t in row) + "]" for row in slopes.values())
        turns = {k: (program.name("d"), program.name("d")) for k in slopes}
        names = program.pattern([f"({a}, {b})" for a, b in turns.values()])
        scope.lines.append(f"{z}, {weight}, {names} = {grid}.gauss([{', '.join(breaks)}], [{rows}])")
        scope.moves[variable] = {k: a for k, (a, _) in turns.items()}
        return scope, weight, {k: b for k, (_, b) in turns.items()}

    def _implicit(self, program: Any, path: Sequence[Scope], grid: str) -> tuple[Scope, str, dict[int, str]]:
        """The unknown is the variable: the density is that of the field at which the unknown has this value."""
        home, node = path[-1], self.members[0]
        _, x, psi, low, high, *rest = node.args
        asked, method = (node.law, node.method) if rest else ((psi, psi.diff(x)), "implicit")
        ends = [(e, None if abs(e) == oo else program.seen(e, path)) for e in (low, high)]
        law, there = program.name("psi"), program.name("y")
        trial = Scope(home.depth + 1, {x: there})
        result = "return " + ", ".join(program.seen(e, [*path, trial]) for e in asked)
        home.lines += [f"def {law}({there}):", *("    " + line for line in trial.lines), "    " + result]
        y, rule, side = program.name("y"), program.name("w"), program.name("s")
        scope = Scope(home.depth + 1, {x: y})
        call = f"{grid}.{method}({law}, {ends[0][1]}, {ends[1][1]}"
        moves: dict[int, str] = {}
        if program.loops:
            jumps = f", {program.seen(rest[1], path)}" if rest else ""
            scope.names["header"] = f"for {y}, {rule} in {call}{jumps}):"
        else:
            slopes = {
                k: row
                for k in range(len(program.wrt))
                if any(row := [None if t is None else program.seen_tangent(e, k, path) for e, t in ends])
            }
            rows = ", ".join("[" + ", ".join(t or "0.0" for t in row) + "]" for row in slopes.values())
            turns = {k: (program.name("d"), program.name("d")) for k in slopes}
            names = program.pattern([f"({a}, {b})" for a, b in turns.values()])
            scope.lines.append(f"{y}, {rule}, {side}, {names} = {call}, [{rows}])")
            scope.moves[x] = {k: a for k, (a, _) in turns.items()}
            moves = {k: b for k, (_, b) in turns.items()}
        return scope, *self._weighed(program, [*path, scope], (rule, side), moves)

    def _weighed(
        self, program: Any, inner: Sequence[Scope], names: tuple[str, str], moves: Mapping[int, str]
    ) -> tuple[str, dict[int, str]]:
        """The weights of the nodes of an implicit law, and their tangents."""
        scope, (rule, side) = inner[-1], names
        _, x, psi, _, _, *rest = self.members[0].args
        density = program.safe(exp(-(psi**2) / 2) * psi.diff(x))
        value, weight, out = program.seen(density, inner), program.name("w"), dict[int, str]()
        factor = "" if program.loops or rest else f"*{side}"
        if rest and rest[1] != 0 and not program.loops:
            scope.lines.append(f"{rule} = {rule} + {side}.weight({program.seen(rest[1], inner)})")
        scope.lines.append(f"{weight} = {value}*({rule}*density0{factor})")
        for k in range(len(program.wrt)):
            terms = []
            if t := program.seen_tangent(density, k, inner):
                terms.append(f"{t}*({rule}*density0{factor})")
            if k in moves:
                terms.append(f"{value}*({moves[k]}*density0{factor})")
            moving = (*self.members[0].moving, psi) if rest else ()
            turned = [program.seen_tangent(e, k, inner) or "0.0" for e in moving]
            if any(t != "0.0" for t in turned):
                there = program.seen(program.safe(exp(-(psi**2) / 2)), inner)
                *told, own = turned
                terms.append(f"{there}*{side}.moved({side}.tilt({', '.join(told)}), {own})*density0")
            if terms:
                out[k] = program.name("d")
                scope.lines.append(f"{out[k]} = {' + '.join(terms)}")
        return weight, out
