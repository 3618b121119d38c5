"""Averages over the quenched parameters of a site: laws that a declaration gives are summed at once."""

from __future__ import annotations

from sympy import Add, Dummy, Expr, Pow, S, Tuple
from sympy.core.relational import Relational

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities


def divides_by(expr: Expr, q: SiteQuantity) -> bool:
    """Whether an expression divides by what vanishes with a quenched parameter; those of averages in it are bound."""
    expr = expr.xreplace({a: Dummy(positive=True) for a in expr.atoms(Average)})
    bases = {node.base for node in expr.atoms(Pow) if node.exp.is_negative and node.has(q)}
    return any(base.xreplace({q: S.Zero}) == 0 for base in bases)


def hears_nothing(q: SiteQuantity) -> tuple[str, str, str]:
    """What is wrong with a site at which a quenched parameter is zero: found, supported, what to try."""
    return (
        f"{q} takes the value 0, at which a site does not hear its field: what it is at other values divides by {q}.",
        "values that are not zero",
        f"leave the sites out at which {q} = 0, which change nothing for the others; the load counts those left",
    )


def at_value(expr: Expr, q: SiteQuantity, value: Expr) -> Expr:
    """An average over the fields at one value of a quenched parameter; raises UnsupportedLaw where it has none."""
    if value == 0 and divides_by(expr, q):
        raise UnsupportedLaw(*hears_nothing(q))
    return expr.xreplace({q: value})


def switches_events(body: Expr) -> SiteQuantity | None:
    """A parameter in an event whose finite law in the declaration has a zero."""
    for q in sorted({q for e in body.atoms(Relational) for q in site_quantities(e, Quenched)}, key=str):
        law = q.family.law
        open_ = q.family.given is not None or not isinstance(law, Tuple) or q.family.low is not None
        if not open_ and any(value == 0 for value, _ in law) and not any(w.has(SiteQuantity) for _, w in law):
            return q
    return None


def over_laws(expr: Expr, over: set[Quenched]) -> Expr:
    """The average over those of some quenched families that have a finite law in their declaration."""
    for q in site_quantities(expr, Quenched):
        law = q.family.law
        if q.family in over and isinstance(law, Tuple) and q.family.low is None:
            expr = Add(*(weight * at_value(expr, q, value) for value, weight in law))
    return expr


def quenched_average(expr: Expr) -> Expr:
    """Average over the quenched parameters of the site; finite laws that are declared are summed at once."""
    marks = {node: Dummy(real=True, nonnegative=node.is_nonnegative) for node in expr.atoms(Average)}
    expr = expr.xreplace(marks)  # their quantities are bound
    back = {mark: quenched_average(node.args[0]) for node, mark in marks.items()}
    quenched = site_quantities(expr, Quenched)
    if not quenched:
        return expr.xreplace(back)
    expr = over_laws(expr, {q.family for q in quenched})
    if not site_quantities(expr, Quenched):
        return expr.xreplace(back)
    constant, rest = expr.as_independent(SiteQuantity, as_Add=False)
    return constant.xreplace(back) * Average(rest.xreplace(back))
