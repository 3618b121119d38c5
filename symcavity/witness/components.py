"""Component indices in checks that write everything out: vectors of two components, unless told otherwise."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import Expr, S, Sum, Symbol

from symcavity.model.kinds import is_index, kind_of_range
from symcavity.model.quantities import SiteQuantity
from symcavity.model.support import Anchor, Support
from symcavity.record.derivation import Step
from symcavity.record.symbols import ComponentSymbol

WIDTH = 2


def component_size(low: Expr, high: Expr) -> int:
    """The number of components that is written out."""
    size = high - low + 1
    return int(size) if size.is_Integer else WIDTH


def component_values(limits: Any) -> list[Any]:
    """The values of a component index; one empty choice where there is none."""
    if not limits:
        return [None]
    return [S(int(limits[1]) + k) for k in range(component_size(limits[1], limits[2]))]


def component_sizes(expr: Expr) -> dict[Any, Any]:
    """Values for the symbols in the ranges of component indices."""
    rule: dict[Any, Any] = {}
    sizes = [lim[2] - lim[1] + 1 for s in expr.atoms(Sum) for lim in s.limits if not kind_of_range(lim)]
    sizes += [node.components.size for node in expr.atoms(Support, Anchor)]
    for size in sizes:
        for symbol in size.free_symbols:
            rule[symbol] = WIDTH - size.subs(symbol, 0)
    return rule


def at_components(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """Replace component indices where no sum and no support function binds them."""
    if not rule:
        return expr
    if isinstance(expr, Sum):
        inner = {k: v for k, v in rule.items() if k not in {lim[0] for lim in expr.limits}}
        return Sum(at_components(expr.function, inner), *expr.limits)
    if isinstance(expr, SiteQuantity | ComponentSymbol | Support | Anchor):
        return expr.xreplace(rule)
    if expr in rule:
        return rule[expr]
    return expr.func(*(at_components(arg, rule) for arg in expr.args)) if expr.args else expr


def component_choices(step: Step) -> list[dict[Any, Any]]:
    """All values of the component indices that the claims of a step leave free."""
    free: dict[Symbol, list[Any]] = {}
    claims = [side for claim in step.claims for side in (claim.lhs, claim.rhs) if isinstance(side, Expr)]
    for expr in claims:
        for q in expr.atoms(SiteQuantity):
            for index in q.indices[len(q.family.slots) :]:
                if index.is_Symbol and not is_index(index):
                    free.setdefault(index, component_values(q.family.components))
    for expr in claims:
        for node in expr.atoms(ComponentSymbol):
            for index in node.indices:
                if index.is_Symbol:
                    free.setdefault(index, next(iter(free.values()), component_values((index, S.One, S(WIDTH)))))
    names = sorted(free, key=str)
    return [dict(zip(names, values, strict=True)) for values in product(*(free[name] for name in names))]


__all__ = ["at_components", "component_choices", "component_size", "component_sizes", "component_values"]
