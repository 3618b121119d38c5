"""The infinitesimal sources: one in each equation that carries a random field."""

from __future__ import annotations

from sympy import Expr

from symcavity.errors import UnsupportedLaw
from symcavity.method.insert import second_component
from symcavity.model.fields import RandomField
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System
from symcavity.record.symbols import Source, source_label


def source_of(system: System, f: RandomField) -> Source:
    """The source in the equation that carries a field (paper, equations 26 and 27)."""
    fields = system.laws[f.hearer].fields
    return Source(f.hearer, source_label(fields.index(f), len(fields)), f.components, f.time)


def source_at(system: System, f: RandomField, index: Expr) -> SiteQuantity:
    """The source of a field at a site; of a vector at the second component index, of what moves at the second time."""
    inner = second_component(f).values() if f.components or f.time else ()
    return source_of(system, f)[(index, *inner)]


def carrier_state(system: System, f: RandomField) -> SiteQuantity | None:
    """The quantity that names the equation of a field, needed where a site hears several, or a label is drawn on it.

    It is the left-hand side where that is a single variable; the others take the first variable of their
    equation, or else of the law, that names no other equation.
    """
    law = system.laws[f.hearer]
    if len(law.fields) == 1 and all(q.given is None for q in law.quenched()):
        return None
    names: dict[str, SiteQuantity] = {}
    for g in law.fields:
        lhs = law.carrier(g).lhs
        if isinstance(lhs, SiteQuantity) and lhs not in names.values():
            names[g.symbol.name] = lhs
    for g in law.fields:
        if g.symbol.name in names:
            continue
        carrier = law.carrier(g)
        own = [q for member in (carrier.lhs, carrier.rhs) for q in site_quantities(member, Variable, Field)]
        free = [q for q in (*own, *law.unknowns) if q not in names.values()]
        if not free:
            raise UnsupportedLaw(
                f"The equation {carrier} of a {f.hearer} has no variable to name its source by.",
                "as many variables as random fields; equations of the form Eq(u[mu], Sum(...) + ...)",
            )
        names[g.symbol.name] = free[0]
    return names[f.symbol.name]
