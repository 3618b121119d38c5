"""The declaration compared with the laws that were read from it: each kind by the equations of the user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from sympy import Expr, Integer, Sum

from symcavity.method.sources import carrier_state
from symcavity.model.averages import Average
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, is_index
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.support import Anchor, Support, stays_whole
from symcavity.model.system import System
from symcavity.record.symbols import Source, source_label
from symcavity.witness.moments import component_range, free_points
from symcavity.witness.world import DIGITS, World, same

SEEDS = (1, 2)


class Undeclared(ValueError):
    """Something that was read is not what was declared."""


@dataclass(frozen=True)
class DeclaredEquation:
    """One equation of a law.

    Attributes
    ----------
    kind : Kind
    declared : Equation
        As the user wrote it, with sums; where the reading gave a sum a name, the name and the sum.
    named : SiteQuantity or None
        That name.
    """

    kind: Kind
    declared: Equation
    named: SiteQuantity | None = None


@dataclass(frozen=True, kw_only=True)
class Carrier(DeclaredEquation):
    """An equation in which a random field stands.

    Attributes
    ----------
    field : RandomField
    source : SiteQuantity
        The source that belongs to the field.
    """

    field: RandomField
    source: SiteQuantity


class Declared:
    """The laws of a system by its declared equations.

    Raises
    ------
    Undeclared
        If a law and the declaration say different things at seeded values.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.rows: dict[Kind, list[DeclaredEquation]] = {}
        self.pairs: dict[Kind, list[Complementary]] = {}
        for kind in system.kinds:
            self._read(kind)

    def world(self, seed: int, states: int | None = None, digits: int = DIGITS) -> World:
        """Numbers for everything declared; what the reading named has the value of its sum."""
        world = World(self.system, seed, states, digits)
        for kind in self.system.kinds:
            for q, expr in named_sums(self.system, kind).items():
                world.defined[q.family] = expr
        world.labels = _labels(self.system)
        return world

    def carriers(self, kind: Kind) -> list[Carrier]:
        """The equations of a kind that carry a field."""
        return [row for row in self.rows[kind] if isinstance(row, Carrier)]

    def _read(self, kind: Kind) -> None:
        law = self.system.laws[kind]
        named, symbols = named_sums(self.system, kind), {f.symbol for f in law.fields}
        worlds = [self.world(seed) for seed in SEEDS]
        written = [r for e in self.system.declared if kind_of(e) == kind for r in rows_of(worlds[0], e)]
        marks = [_mark(worlds, kind, (e.lhs, e.rhs)) for e in written]
        rows: list[DeclaredEquation] = []
        free = list(range(len(written)))
        for equation, full in zip(law.equations, law.written(), strict=True):
            f = next((f for f in law.fields if equation.difference.has(f.symbol)), None)
            if equation.lhs in named and equation.rhs in symbols:  # a name alone may be a side of what was declared
                rows.append(self._row(kind, Equation(equation.lhs, named[equation.lhs]), equation.lhs, f))
                continue
            mark = _mark(worlds, kind, (full.lhs, full.rhs))
            place = next((k for k in free if _agree(marks[k], mark)), None)
            if place is None:
                raise Undeclared(f"the equation {full} of a {kind} is not among the declared ones")
            free.remove(place)
            rows.append(self._row(kind, written[place], None, f))
        if free:
            raise Undeclared(f"no {kind} obeys the declared equation {written[free[0]]}")
        self.rows[kind] = rows
        self._read_pairs(kind, worlds)

    def _row(
        self, kind: Kind, declared: Equation, named: SiteQuantity | None, f: RandomField | None
    ) -> DeclaredEquation:
        if f is None:
            return DeclaredEquation(kind, declared, named)
        return Carrier(kind, declared, named, field=f, source=source_of(self.system, f))

    def _read_pairs(self, kind: Kind, worlds: list[World]) -> None:
        declared = [
            p for c in self.system.conditions if kind_of(Equation(*c.pair)) == kind for p in _pair_rows(worlds[0], c)
        ]
        left = list(declared)
        for pair in self.system.laws[kind].pairs:
            rule = {f.symbol: f.as_sum for f in self.system.laws[kind].fields}
            mark = _mark(worlds, kind, [q.xreplace(rule) for q in pair.pair])
            found = next((d for d in left if _agree(_mark(worlds, kind, d.pair), mark)), None)
            if found is None:
                raise Undeclared(f"the condition {pair} of a {kind} is not among the declared ones")
            left.remove(found)
        if left:
            raise Undeclared(f"no {kind} obeys the declared condition {left[0]}")
        self.pairs[kind] = declared


def declared_of(theory: Any) -> Declared:
    """The declaration of a theory's system, read once."""
    if "declared" not in theory.memory:
        theory.memory["declared"] = Declared(theory.system)
    return theory.memory["declared"]


def kind_of(equation: Equation) -> Kind | None:
    """The kind whose canonical index an equation leaves free; None where it is a condition on all sites."""
    found: list[Kind] = []

    def walk(expr: Any, bound: frozenset[Any]) -> None:
        if isinstance(expr, SiteQuantity):
            found.extend(k for k, at in expr.site.items() if is_index(at) and at not in bound)
        elif isinstance(expr, Sum):
            walk(expr.function, bound | {lim[0] for lim in expr.limits})
        elif not isinstance(expr, Average):
            for arg in getattr(expr, "args", ()):
                walk(arg, bound)

    walk(equation.lhs, frozenset())
    walk(equation.rhs, frozenset())
    return found[0] if found else None


def named_sums(system: System, kind: Kind) -> dict[SiteQuantity, Expr]:
    """The variables that the reading gave to sums that stand inside of other functions, with their sums."""
    written = {q.family for e in system.declared for q in site_quantities(e.difference)}
    written |= {q.family for c in system.conditions for q in site_quantities(c)}
    sums = {f.symbol: f.as_sum for f in system.laws[kind].fields}
    return {
        e.lhs: sums[e.rhs]
        for e in system.laws[kind].equations
        if isinstance(e.lhs, SiteQuantity) and e.rhs in sums and e.lhs.family not in written
    }


def source_of(system: System, f: RandomField) -> SiteQuantity:
    """The source in the equation of a field: the first of a law has no mark, the others are counted."""
    fields = system.laws[f.hearer].fields
    return Source(f.hearer, source_label(fields.index(f), len(fields)), f.components, f.time).at_site()


def rows_of(world: World, equation: Equation) -> Iterator[Equation]:
    """An equation at each value of the component indices that it leaves free, unless its vectors stay whole."""
    for rule in _components(world, equation.lhs, equation.rhs):
        yield Equation(at_components(equation.lhs, rule), at_components(equation.rhs, rule))


def _pair_rows(world: World, pair: Complementary) -> Iterator[Complementary]:
    for rule in _components(world, *pair.pair):
        yield Complementary(*(at_components(q, rule) for q in pair.pair))


def _components(world: World, *exprs: Expr) -> Iterator[dict[Any, Any]]:
    free: dict[Any, Any] = {}
    whole = {k for expr in exprs for q in site_quantities(expr) if stays_whole(q) for k in q.indices}
    for expr in exprs:
        bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits}
        bound |= {node.components.index for node in expr.atoms(Support, Anchor)}
        for q in site_quantities(expr):
            for index in q.indices[len(q.family.slots) :]:
                if index.is_Symbol and index not in bound | whole:
                    free[index] = component_range(world, q.family.components)
    names = sorted(free, key=str)
    for chosen in product(*(free[n] for n in names)):
        yield {name: Integer(k) for name, k in zip(names, chosen, strict=True)}


def at_components(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """An expression at values of component indices that no sum binds."""
    if not rule:
        return expr
    if isinstance(expr, Sum):
        inner = {k: v for k, v in rule.items() if k not in {lim[0] for lim in expr.limits}}
        return Sum(at_components(expr.function, inner), *expr.limits)
    if isinstance(expr, SiteQuantity | Support | Anchor) or not expr.args:
        return expr.xreplace(rule)
    return expr.func(*(at_components(arg, rule) for arg in expr.args))


def _mark(worlds: list[World], kind: Kind, exprs: Any) -> list[Any]:
    """The values of some expressions, by which they are recognized."""
    out = []
    for world in worlds:
        for rule in free_points(world, exprs):
            if rule.get(kind.index, 1) == 1:
                out += [world.value(e, {kind.index: 1, **rule}) for e in exprs]
    return out


def _agree(one: list[Any], two: list[Any]) -> bool:
    return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))


def _labels(system: System) -> dict[tuple[Any, Any], str]:
    """Which source belongs to the field of an equation that is known by a variable."""
    out = {}
    for law in system.laws.values():
        for place, f in enumerate(law.fields):
            name = carrier_state(system, f)
            if name is not None:
                out[name.family, name.indices[len(name.site) :]] = source_label(place, len(law.fields))
    return out
