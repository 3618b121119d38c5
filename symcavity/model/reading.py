"""Reading the parts of a convex problem: what is summed over each kind of sites, and its constraints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Equality, Expr, GreaterThan, LessThan, S, Sum
from sympy.core.relational import Relational

from symcavity.errors import DeclarationError, NotConvex
from symcavity.model.equations import DECIDED
from symcavity.model.exact import exact
from symcavity.model.fields import FieldBook, FieldSymbol, extract_fields
from symcavity.model.kinds import FEATURE, Kind, N, SiteCount, in_units_of_n, sorted_kinds, to_leading_order
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.refusals import check_words
from symcavity.model.rewritings.proportion import in_proportion, terms_of
from symcavity.model.site_sums import free_kind, is_affine, site_sum
from symcavity.model.support import Support, free_components


@dataclass(frozen=True)
class Constraint:
    """One constraint of every site of a kind: ``expr >= 0``, or ``expr = 0``."""

    kind: Kind
    expr: Expr
    equality: bool
    declared: Any


@dataclass(frozen=True)
class SumCondition:
    """One condition on sums over all sites: ``total >= 0``, or ``total = 0``.

    Attributes
    ----------
    parts : dict
        The summand of each kind of site, with random fields as placeholders.
    shared : Expr
        What depends on no site, in proportion to N.
    met : bool
        Whether an inequality is known to hold as an equality.
    """

    parts: dict[Kind, Expr]
    shared: Expr
    equality: bool
    declared: Any
    met: bool = False

    @property
    def total(self) -> Expr:
        """The sums and what is shared, with random fields as placeholders."""
        return Add(*(Sum(body, kind.range) for kind, body in self.parts.items()), self.shared)


def _constraint_hint(relation: Any) -> str:
    """What to write in place of something that is not a constraint."""
    if isinstance(relation, Relational):
        strict = {">": ">=", "<": "<="}.get(getattr(relation, "rel_op", ""))
        return f"{relation.lhs} {strict} {relation.rhs}; the closed set has the same minimum" if strict else ""
    if isinstance(relation, Expr):
        return f"{relation} >= 0, or Eq({relation}, 0)"
    return "a relation, without quotes" if isinstance(relation, str) else ""


def _range_of(term: Expr) -> str:
    """The sum that a term without one asks for."""
    free = free_kind(term, "the objective")
    kinds = sorted_kinds(kind for q in site_quantities(term, Variable) for kind in q.site) or [FEATURE]
    return f"({', '.join(map(str, (free or kinds[-1]).range))})"


def variables_of(expr: Expr) -> set[Any]:
    """What varies in a site's function: states, fields, globals."""
    return {*site_quantities(expr, Variable), *expr.atoms(FieldSymbol, Global)}


def summed(expr: Expr, where: str, book: FieldBook) -> tuple[dict[Kind, Expr], Expr]:
    """Read sums over sites, each of one kind, and terms in proportion to N: the summands, and those terms."""
    check_words(expr, where)
    parts: dict[Kind, Expr] = {}
    shared: Expr = S.Zero
    objective, moves = where == "the objective", False
    for term in terms_of(expr):
        factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
        if isinstance(rest, Sum):
            kind, body = site_sum(rest, where)
            moves = moves or bool(site_quantities(body, Variable, Field)) or term.has(Global)
            if free_kind(body, where) not in (kind, None):
                raise DeclarationError(
                    f"{rest} in {where} leaves an index of another kind of site free.",
                    "a sum over every site of one kind, with nested Sum(...) over another",
                )
            factor, shared_factor = factor.as_independent(Global, as_Add=False)
            body *= shared_factor
            share = in_units_of_n(factor).cancel()
            factor = factor if share.has(N) else share
            parts[kind] = parts.get(kind, S.Zero) + factor * extract_fields(body, kind, book, where)
            continue
        if rest.has(SiteQuantity):
            raise DeclarationError(
                f"The term {term} of {where} is not summed over the sites.",
                "Sum(..., (i, 1, N)) or Sum(..., (mu, 1, P)), times constants",
                f"Sum({term}, {_range_of(term)})",
            )
        moves = moves or term.has(Global)
        density = (in_units_of_n(term) / N).cancel()
        if objective and not term.has(Global) and to_leading_order(density).has(N) and not term.has(SiteCount):
            continue  # a constant of order one, which is nothing beside sums over sites
        if to_leading_order(density).has(N):
            sized = term.has(SiteCount)
            what = "is not in proportion to the number of sites" if sized else "is of order one"
            raise DeclarationError(
                f"The {'penalty' if objective else 'term'} {term} "
                f"{'on a global variable' if objective else 'of ' + where} {what}, against sums over all sites.",
                f"extensive {'penalties' if objective else 'terms'}, in proportion to N or P",
                f"N*({(density if sized else term).subs(N, 1)})",
            )
        shared += term
    if objective and expr != 0 and not moves:
        raise DeclarationError(
            f"{where[0].upper()}{where[1:]} {expr} depends on no variable.", "terms with states or globals"
        )
    return parts, shared


def read_constraint(relation: Any, book: FieldBook, *, met: bool = False) -> Constraint | SumCondition:
    """Read one relation: a constraint of every site of a kind, or a condition on sums, which may be known as met."""
    if relation in (True, False, S.true, S.false):
        raise DeclarationError(
            f"A constraint of the problem is the constant {relation}.",
            "relations between quantities of a site",
            DECIDED,
        )
    if not isinstance(relation, GreaterThan | LessThan | Equality):
        raise DeclarationError(
            f"The constraint {relation!r} is not supported.",
            ">=, <= and Eq between quantities of one site",
            _constraint_hint(relation),
        )
    lhs = exact(relation.lhs, f"the constraint {relation}")
    rhs = exact(relation.rhs, f"the constraint {relation}")
    expr = rhs - lhs if isinstance(relation, LessThan) else lhs - rhs
    where = f"the constraint {relation}"
    check_words(expr, where)
    kind = free_kind(expr, where)
    if kind is None and not site_quantities(expr) and not expr.has(Global):
        raise DeclarationError(
            f"The constraint {relation} contains no quantity of a site.",
            "constraints on states and on global variables",
            "declare the range of a parameter by its assumptions: Symbol('...', positive=True)",
        )
    if kind is None:
        return _read_condition(expr, relation, where, book, met=met)
    body = extract_fields(expr, kind, book, where)
    if not site_quantities(body, Variable) and not body.has(*([f.symbol for f in book.all(kind)] or [SiteQuantity])):
        raise DeclarationError(f"The constraint {relation} contains no variable.", "constraints on states")
    bare = body.xreplace(dict.fromkeys(body.atoms(Support), S.One))
    loose: dict[Any, Any] = {**free_components(body)}
    loose |= {f.components[0]: () for f in book.all(kind) if f.components and bare.has(f.symbol)}
    if loose:
        raise DeclarationError(
            f"The component index {', '.join(map(str, loose))} of the constraint {relation} is free.",
            "vectors in the argument of a support function, or explicit components such as u[mu, i, 1]",
            "g(Sum(u[mu, i, a]*w[i], (i, 1, N))) >= 1",
        )
    if isinstance(relation, Equality) and not _is_affine(body, kind, book):
        raise NotConvex(
            f"The equality {relation} is not linear in the states.",
            "linear equalities; concave g in g >= 0",
            "the set on which a non-linear equality holds is not convex",
        )
    return Constraint(kind, body, isinstance(relation, Equality), relation)


def _read_condition(expr: Expr, relation: Any, where: str, book: FieldBook, *, met: bool) -> SumCondition:
    """Read a condition on sums over all sites, or on global variables."""
    parts, shared = summed(in_proportion(expr), where, book)
    equality = isinstance(relation, Equality)
    if not any(variables_of(e) for e in (*parts.values(), shared)):
        raise DeclarationError(f"The constraint {relation} contains no variable.", "constraints on states")
    every = [*parts.items(), (FEATURE, shared)]
    if equality and book.affine and not all(_is_affine(body, kind, book) for kind, body in every):
        raise NotConvex(
            f"The equality {relation} is not linear in the states.",
            "linear equalities; Sum(w[i]**2, (i, 1, N)) <= N*B with convex summands",
            "fixed=[Eq(average(...), ...)] holds an average at a value without a multiplier, and solves for the "
            "load or a parameter",
        )
    return SumCondition(parts, shared, equality, relation, met and not equality)


def _is_affine(body: Expr, kind: Kind, book: FieldBook) -> bool:
    heard = [f.symbol for f in book.all(kind) if f.states()]
    return is_affine(body, [*site_quantities(body, Variable, Field), *heard, *body.atoms(Global)])
