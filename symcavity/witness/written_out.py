"""Seeded values for everything that can be written out: the numbers behind every brute-force check."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from sympy import Add, Expr, Float, Rational, S, Sum, Symbol, sqrt

from symcavity.algebra.indexed import explicit
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, P, alpha, is_index
from symcavity.model.quantities import (
    Average,
    Coupling,
    Quenched,
    SiteQuantity,
    SiteResponse,
    site_quantities,
)
from symcavity.model.support import Anchor, Support
from symcavity.record.derivation import Step
from symcavity.record.symbols import CavitySymbol, ResponseElement, Source
from symcavity.sites.sets.averages import ProjectionSymbol
from symcavity.witness.components import at_components, component_size, component_sizes

SIZES = {N: 3, P: 2, alpha: Rational(2, 3)}


class Leaves:
    """Seeded rational values for every indexed quantity, parameter and response matrix element."""

    def __init__(self, seed: int, step: Step | None = None) -> None:
        self._rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
        self._values: dict[Any, Rational] = {}
        self.rademacher: dict[SiteQuantity, int] | None = None
        self.components: dict[Any, Any] = {} if step is None else step.evidence.get("components", {})
        self.named: dict[Any, Callable[[Expr], Any]] = {}
        self.labels: dict[Any, str] = {}

    def number(self, key: Any, *, positive: bool = False) -> Rational:
        """The value that belongs to a key."""
        if isinstance(key, SiteQuantity):  # the same parameter, whether its sign is declared or not
            key = (type(key.family).__name__, key.family.name, key.indices)
        if key not in self._values:
            value = Rational(self._rng.randint(1, 40), self._rng.randint(7, 13))
            self._values[key] = value if positive or self._rng.random() < 0.5 else -value
        return self._values[key]

    def __call__(self, node: Expr) -> Any:
        """The value of a leaf: a site quantity, a response, an element of a response matrix."""
        if isinstance(node, ResponseElement):
            message, source = node.args
            states = site_quantities(message)
            return Add(
                *(
                    self.value(message.diff(q)) * self.number(("R", q, source))
                    for q in states
                    if not isinstance(q.family, Quenched)
                )
            )
        if isinstance(node, Support | Anchor):
            return self.support(node)
        if isinstance(node, SiteResponse):
            return self.number(("R", node.state, self.source(node)))
        if isinstance(node, SiteQuantity):
            if isinstance(node.family, Coupling) and self.rademacher is not None:
                return self.rademacher[node] * sqrt(self.variance(node))
            if node.family in self.named:
                return self.named[node.family](node)
            return self.number(node, positive=isinstance(node.family, Quenched))
        return self.number(node, positive=bool(getattr(node, "is_positive", False)))

    def source(self, node: SiteResponse) -> SiteQuantity:
        """The source that a diagonal response refers to."""
        ((side, index),) = node.state.site.items()
        family = node.state.family
        inner = node.state.indices[len(family.slots) :]
        if inner:
            return Source(side, "", family.components)[(index, *inner)]
        label = (
            self.labels.get(node.field.family if node.field is not None else None, "") if node.field is not None else ""
        )
        return Source(side, label)[index]

    def support(self, node: Any) -> Any:
        """A smooth support function ``V_1 + ... - sqrt(V^T A V)``, or a component of its gradient."""
        index, low, high = node.components.range
        count = range(int(low), component_size(low, high) + int(low))
        V = [self.value(node.body.xreplace({index: S(k)})) for k in count]
        A = [[Rational(1 + (r == c), 3 + abs(r - c)) for c in range(len(V))] for r in range(len(V))]
        size = sqrt(sum((A[r][c] * V[r] * V[c] for r in range(len(V)) for c in range(len(V))), S.Zero))
        if isinstance(node, Support):
            return sum(((k + 2) * v for k, v in enumerate(V)), S.Zero) - size
        at = int(node.at) - int(low)
        return at + 2 - sum((A[at][c] * V[c] for c in range(len(V))), S.Zero) / size

    def variance(self, x: SiteQuantity) -> Expr:
        """The variance of a coupling at the explicit sizes."""
        rule = dict(zip((s.index for s in x.family.slots), x.indices, strict=False))
        return self.value(x.family.variance.xreplace(rule))

    def value(self, expr: Expr) -> Any:
        """Evaluate an expression with all sums written out."""
        expr = at_components(self._averages(expr), self.components)
        symbols = {
            s: self.number(s, positive=bool(s.is_positive))
            for s in expr.atoms(Symbol)
            if not isinstance(s, CavitySymbol)
            and s not in SIZES
            and not is_index(s)
            and not _bound(expr, s)
            and not isinstance(s, ProjectionSymbol)
        }
        leaf = (SiteQuantity, ResponseElement, SiteResponse, Support, Anchor)
        return explicit(expr.xreplace(component_sizes(expr)).xreplace(symbols), SIZES, self, leaf)

    def _averages(self, expr: Expr) -> Expr:
        """Averages over sites, as sums divided by their number."""
        rule = {}
        for node in expr.atoms(Average):
            sides = {s for q in site_quantities(node.body) for s in q.site}
            sides |= {s for r in node.body.atoms(SiteResponse) for s in r.state.site}
            (side,) = sides
            rule[node] = Sum(node.body, (side.index, 1, side.size)) / SIZES[side.size]
        return expr.xreplace(rule) if rule else expr


def _bound(expr: Expr, symbol: Symbol) -> bool:
    return any(symbol == lim[0] for s in expr.atoms(Sum) for lim in s.limits)


def equal(left: Any, right: Any) -> bool:
    """Whether two numbers agree, exactly or to thirty digits where roots stand in them."""
    gap = sqrt(1) * (S(left) - S(right))
    if gap == 0:
        return True
    gap = gap.expand()
    if gap == 0 or not gap.is_number:
        return bool(gap == 0)
    parts = gap.evalf(40).as_real_imag()
    return all(part.is_Float and abs(part) < Float("1e-30") for part in parts if part != 0)


def outside(expr: Expr) -> list[SiteQuantity]:
    """Site quantities whose index is not summed over."""
    out: list[SiteQuantity] = []

    def walk(node: Any, bound: frozenset[Any]) -> None:
        if isinstance(node, SiteQuantity):
            if not set(node.indices) & bound:
                out.append(node)
            elif any(index not in bound for index in node.indices):
                out.append(node.xreplace(dict.fromkeys(bound, S.NegativeOne)))
        elif isinstance(node, Sum):
            walk(node.function, bound | {lim[0] for lim in node.limits})
        else:
            for arg in node.args:
                walk(arg, bound)

    walk(expr, frozenset())
    return out


def at_site(equation: Equation, side: str, site: int) -> Equation:
    """An equation at one site; the canonical index is free in it."""
    from sympy import Dummy

    index = side.index

    def replace(expr: Expr) -> Expr:
        sums = {s: Dummy() for s in expr.atoms(Sum) if any(lim[0] == index for lim in s.limits)}
        return expr.xreplace(sums).xreplace({index: S(site)}).xreplace({v: k for k, v in sums.items()})

    return Equation(replace(equation.lhs), replace(equation.rhs))


def source_label(system: Any, g: Any) -> str:
    """The label of the source in the equation of a field."""
    position = system.laws[g.hearer].fields.index(g)
    return str(position + 1) if position else ""


def labelled(leaves: Leaves, system: Any) -> Leaves:
    """Tell the leaves which source belongs to the field of a named equation."""
    from symcavity.method.average import carrier_state

    labels = {}
    for law in system.laws.values():
        for f in law.fields:
            name = carrier_state(system, f)
            if name is not None:
                labels[name.family] = source_label(system, f)
    leaves.labels = labels
    return leaves
