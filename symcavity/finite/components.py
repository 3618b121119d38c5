"""Systems with vectors, written out by components once the convex sets in their laws are known.

A finite instance needs numbers: each component of a vector field, of a vector multiplier and of a coupling
becomes a quantity of its own, and the observables of the declaration are translated likewise.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sympy import Expr, Integer

from symcavity.errors import ValuesError
from symcavity.model.averages import SiteResponse
from symcavity.model.bound_sets import take_sets, vector_sizes
from symcavity.model.complementary import Complementary
from symcavity.model.convex_law import heard_vector, holds_set, read_law
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.fields import FieldBook, extract_fields
from symcavity.model.laws import Law, componentwise
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.site_sums import expand_components
from symcavity.model.support import SupportFunction, free_components, stays_whole
from symcavity.model.system import System


@dataclass(frozen=True)
class WrittenOut:
    """A declared system, and the system of numbers that its instances are made of.

    Attributes
    ----------
    declared : System
        As it was declared.
    system : System
        With every vector written out by its components; the declared one where there is no vector.
    sets : dict
        Each support function with its set in it.
    """

    declared: System
    system: System
    sets: dict[SupportFunction, SupportFunction] = field(default_factory=dict)
    rule: dict[Any, Any] = field(default_factory=dict)
    sources: dict[SiteQuantity, SiteQuantity] = field(default_factory=dict)

    def observable(self, expr: Expr) -> Expr:
        """Return an observable of the declared system in the quantities of the system of numbers.

        Raises
        ------
        ValuesError
            If a component of a vector stands alone, under a free index.
        """
        if not self.sets:
            return expr
        out = expand_components(_translated(expr, self.rule), f"the observable {expr}")
        loose = sorted(map(str, free_components(out)))
        if loose:
            raise ValuesError(
                f"The observable {expr} leaves the component {loose[0]} open.",
                "sums over the components, or a component by its number",
                f"Sum(..., ({loose[0]}, 1, ...))",
            )
        bare = {r for r in out.atoms(SiteResponse) if r.field is None and r.state in self.sources}
        return out.xreplace({r: SiteResponse(r.state, self.sources[r.state]) for r in bare})


def write_out(system: System, values: Mapping[Any, Any]) -> tuple[WrittenOut, Mapping[Any, Any]]:
    """Take the sets out of the values, and write the system out by components.

    Parameters
    ----------
    system : System
        The declared system.
    values : mapping
        What the user gave: the sets stand under their support functions.

    Returns
    -------
    tuple
        The system, and the other values.

    Raises
    ------
    ValuesError
        If a set is missing, or has another dimension than its vectors.
    UnsupportedLaw
        If the law of a side is not one vector field, a multiple of its anchor point, and a scalar law.
    """
    if not system.support_functions or not isinstance(values, Mapping):
        return WrittenOut(system, system), values
    needed = vector_sizes(system)
    rule, rest = take_sets(needed, values)
    rule = {**{g: g for g in needed}, **rule}
    return _write(system, tuple(sorted(rule.items(), key=str))), rest


@lru_cache(maxsize=32)
def _write(system: System, sets: tuple[tuple[Any, Any], ...]) -> WrittenOut:
    out, rule, book = copy.copy(system), dict(sets), FieldBook()
    out.laws = {}
    for kind, law in system.laws.items():
        where = f"the law of {kind.site}"
        parts = _parts(law)
        written = [Equation(e.lhs, e.rhs.xreplace(parts)) for e in law.written() if e.lhs not in parts]
        whole = [Equation(_translated(e.lhs, rule), _translated(e.rhs, rule)) for e in written]
        sides = [[extract_fields(side, kind, book, where) for side in (e.lhs, e.rhs)] for e in componentwise(whole)]
        equations = tuple(Equation(lhs, rhs) for lhs, rhs in sides)
        pairs = tuple(Complementary(*(_translated(q, rule) for q in p.pair)) for p in law.pairs)
        unknowns = tuple(part for q in law.unknowns if q not in parts for part in _components(q, rule))
        out.laws[kind] = Law(kind, unknowns, equations, pairs, tuple(book.all(kind)))
    out.fixed = tuple(
        Equation(expand_components(_translated(e.lhs, rule), "a condition"), _translated(e.rhs, rule))
        for e in system.fixed
    )
    out.global_conditions = tuple(
        {kind: _translated(body, rule) for kind, body in parts.items()} for parts in system.global_conditions
    )
    sources: dict[SiteQuantity, SiteQuantity] = {}
    for law in system.laws.values():
        if not holds_set(law):
            continue
        convex = read_law(law)
        V, Lam = (_components(q, rule) for q in (convex.V, convex.Lam))
        sources |= dict(zip(Lam, V, strict=True)) | dict(zip(V, V, strict=True))
    bound = {g: v for g, v in rule.items() if isinstance(g, SupportFunction)}
    return WrittenOut(system, out, bound, rule, sources)


def _parts(law: Law) -> dict[SiteQuantity, Expr]:
    """The vectors that a site hears as one, written out: what they add up to takes their place."""
    own = heard_vector(law) if holds_set(law) else None
    if own is None or len(own[1]) == 1:
        return {}
    return {e.lhs: e.rhs for e in law.written() if e.lhs in own[1]}


def _range(q: SiteQuantity, rule: dict[Any, Any]) -> list[Integer]:
    _, low, high = (x.xreplace(rule) for x in q.family.components)
    return [Integer(k) for k in range(int(low), int(high) + 1)]


def _components(q: SiteQuantity, rule: dict[Any, Any]) -> list[SiteQuantity]:
    if not stays_whole(q):
        return [_translated(q, rule)]
    return [_translated(q, rule).xreplace({q.indices[-1]: k}) for k in _range(q, rule)]


def _translated(expr: Any, rule: dict[Any, Any]) -> Any:
    """Put the sets and their dimensions into an expression; its vectors become families with explicit components."""
    families = {q: _explicit(q, rule) for q in site_quantities(expr) if stays_whole(q)}
    families |= {q: _explicit(q, rule) for q in site_quantities(expr, Coupling) if q.family.components}
    return expr.xreplace({**rule, **families})


def _explicit(q: SiteQuantity, rule: dict[Any, Any]) -> SiteQuantity:
    family = q.family
    components = family.components.xreplace(rule)
    made: Any
    if isinstance(family, Coupling):
        made = family.explicit(components, family.variance.xreplace(rule))
    elif isinstance(family, Field):
        made = Field(family.name, components, family.slots[0].index)
    else:
        made = Variable(family.name, family.slots[0].index, components)
    return made[q.indices]
