"""Averages over sites as what they are: sums, divided by the number of sites."""

from __future__ import annotations

from typing import Any

from sympy import Basic, Dummy, Equality, Sum, Symbol

from symcavity.model.averages import Average, Fresh, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import Field, Global, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.site_sums import free_kind, is_affine


class Sums(Rewriting):
    """``average(w[i]**2)`` in a declaration is ``Sum(w[i]**2, (i, 1, N))/N``; in an observable it stays as it is."""

    key = "sums"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with sums for averages."""
        adapts = declaration.objective is None and any(e.has(Global) for e in declaration.expressions)
        convex = declaration.objective is not None
        return declaration.mapped(lambda value: as_sums(value, is_met=adapts or (convex and _is_linear(value))))


def _is_linear(value: Any) -> bool:
    """Whether the averages of an equation are of linear functions of states, which a convex problem may be given."""
    bodies = [node.body for node in value.atoms(Average)] if isinstance(value, Equality) else []
    return all(is_affine(body, site_quantities(body, Variable, Field)) for body in bodies)


def as_sums(value: Any, *, is_met: bool) -> Any:
    """A part of a declaration with its averages over sites as sums, divided by the number of sites.

    An equation between averages alone stays as it is, as it may be meant as a normalization, unless there
    are global variables by which the system meets it; in a problem one that is linear is a condition on a sum.
    """
    expr = getattr(value, "difference", value)
    nodes = expr.atoms(Average) if isinstance(expr, Basic) else ()
    if isinstance(value, Equality | Equation) and not is_met:
        bare = value.xreplace({node: Dummy() for node in nodes})
        if not site_quantities(bare.difference if isinstance(bare, Equation) else bare):
            return value
    rule = {}
    for node in nodes:
        kind = None if node.has(SiteResponse, Fresh) else free_kind(node.body, str(node))
        if kind is not None:
            index = Symbol(f"{kind.index}'", integer=True)
            rule[node] = Sum(node.body.xreplace({kind.index: index}), (index, 1, kind.size)) / kind.size
    return value.xreplace(rule) if rule else value
