"""What a declaration says of its couplings, in the numbers of a world, and which indices claims leave free."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import (
    S,
    Sum,
)

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.quantities import site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.model.times import Time
from symcavity.record.symbols import (
    ComponentSymbol,
)
from symcavity.witness.world import STEPS, Key, World


def coupling_variance(world: World, key: Key) -> Any:
    """The declared variance of a coupling, given by what it is known by; that of a site with itself is no exception."""
    family = next(f.coupling.family for f in world.system.fields if f.coupling.family.name == key[1])
    ends = list(zip(family.slots, key[3], strict=False))
    return world.value(family.variance, {kind.index: at for kind, at in reversed(ends)})


def coupling_moment(world: World, x: Key, y: Key) -> Any:
    """The declared mean of the product of two centered couplings, given by what they are known by."""
    families = {f.coupling.family.name: f.coupling.family for f in world.system.fields}
    one, other = families[x[1]], families[y[1]]
    if one != other:
        rho = one.correlation.get(other, other.correlation.get(one, S.Zero))
        if rho == 0 or x[3] != y[3]:
            return mp.mpf(0)
        return world.value(rho) * mp.sqrt(coupling_variance(world, x) * coupling_variance(world, y))
    turned = world.value(one.reciprocity) if one.reciprocity != 0 and x[3] == y[3][::-1] else 0
    return coupling_variance(world, x) * (int(x[3] == y[3]) + turned)


def free_points(world: World, claims: Any) -> list[dict[Any, int]]:
    """All values of the indices that claims leave free: of sites, and of components."""
    ranges: dict[Any, range] = {}
    exprs = [side for c in claims for side in ((c.lhs, c.rhs) if isinstance(c, Equation) else (c,))]
    for expr in exprs:
        bound = {lim[0] for s in expr.atoms(Sum) for lim in s.limits}
        bound |= {node.components.index for node in expr.atoms(Support, Anchor)}
        for q in site_quantities(expr):
            for k, index in enumerate(q.indices):
                if index in bound or not index.is_Symbol:
                    continue
                if k < len(q.family.slots):
                    ranges.setdefault(index, world.sites(q.family.slots[k]))
                else:
                    ranges.setdefault(index, component_range(world, q.family.components))
        for symbol in expr.atoms(ComponentSymbol):
            if symbol.moves:
                continue
            limits = next(f.components for f in world.system.laws[symbol.kind].fields if f.components)
            for index in symbol.indices:
                if index.is_Symbol and index not in bound:
                    ranges.setdefault(index, component_range(world, limits))
    ranges |= {t: range(STEPS) for expr in exprs for t in expr.free_symbols if isinstance(t, Time)}
    names = sorted(ranges, key=str)
    return [dict(zip(names, chosen, strict=True)) for chosen in product(*(ranges[n] for n in names))]


def component_range(world: World, limits: Any) -> range:
    """The values of a component index."""
    return range(int(world.value(limits[1])), int(world.value(limits[2])) + 1)
