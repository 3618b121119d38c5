"""The directions along which no term of a convex problem rises, as a problem of its own: that of the widest margin.

A convex function is bounded along a direction d where its recession function ``lim f(t d)/t`` is not positive.  Where
each term is bounded below, this is a cone, with one or two inequalities for each site: ``h >= 0`` for
``log(1 + exp(-h))``.  Some direction lies inside it if and only if ``h >= 1`` has a solution.  The infimum of the
problem is then not attained, or its minimum is not unique.  (R. T. Rockafellar, Convex Analysis, 1970, section 27.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sympy import Add, Eq, Expr, S, Sum

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.kkt import optimality
from symcavity.method.theory import Theory
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import Kind
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.reading import Constraint

HALF = S.Half


@dataclass(frozen=True)
class Side:
    """To which side one field may go without a rise of its terms.

    Attributes
    ----------
    kind : Kind
        The sites that hear it.
    mark : FieldSymbol
        The field, in their terms.
    inward : Expr
        Plus or minus one where it may go to one side only, as a polynomial in the labels of the site; zero elsewhere.
    held : Expr
        One where it may go to neither side, likewise.
    """

    kind: Kind
    mark: FieldSymbol
    inward: Expr
    held: Expr


def bare_terms(problem: Problem) -> dict[tuple[Kind, FieldSymbol], Expr] | None:
    """The terms of each field, where these are all that bounds a direction; None where others do.

    Others are costs of states and of global variables, constraints and conditions on fields, and terms of two fields.
    """
    if problem.global_objective != 0 or problem.conditions or problem.known:
        return None
    found: dict[tuple[Kind, FieldSymbol], Expr] = {}
    for kind, body in problem.objective.items():
        marks = {f.symbol for f in problem.book.all(kind)} & body.free_symbols
        if len(marks) > 1 or (not marks and body != 0):
            return None
        found |= {(kind, mark): body for mark in marks}
    return None if any(_along(c) is None for c in problem.constraints) else found


def _along(constraint: Constraint) -> Any:
    """Where a constraint that is affine in the states of a site holds in all directions; None for any other."""
    expr = constraint.expr
    moving = site_quantities(expr, Variable, Field)
    once, twice = (
        expr.xreplace({q: k * q for q in moving}) - expr.xreplace({q: (k - 1) * q for q in moving}) for k in (1, 2)
    )
    if expr.atoms(FieldSymbol, Global) or (once - twice).expand() != 0:
        return None
    return Eq(once.expand(), 0) if constraint.equality else once.expand() >= 0


def combination(body: Expr, mark: FieldSymbol) -> Expr | None:
    """The one combination of a field and global variables that a term depends on; None where it is not one."""
    slope = body.diff(mark)
    parts: list[Expr] = [mark]
    for g in sorted(body.atoms(Global), key=str):
        ratio = (body.diff(g) / slope).simplify()
        if ratio.has(mark, Global):
            return None
        parts.append(ratio * g)
    return Add(*parts)


def widest_margin(problem: Problem, sides: Sequence[Side]) -> Theory | None:
    """The theory of the shortest states of margin one along such directions; None where it is not of this form."""
    terms = bare_terms(problem)
    if terms is None:
        return None
    senders: dict[Kind, set[SiteQuantity]] = {}
    entries = [_along(c) for c in problem.constraints]
    for side in sides:
        (field,) = (f for f in problem.book.all(side.kind) if f.symbol == side.mark)
        argument = combination(terms[side.kind, side.mark], side.mark)
        if argument is None or field.components or field.inner:
            return None
        senders.setdefault(field.sender, set()).update(field.states())
        argument = argument.xreplace({side.mark: field.as_sum})
        way = (side.inward + side.held).expand()
        entries.append(way * argument >= (side.inward**2).expand())
        if side.held != 0:
            entries.append(-side.held * argument >= 0)
    squares = [Sum(Add(*(q**2 for q in states)), kind.range) for kind, states in senders.items()]
    try:
        return Theory(optimality(Problem(HALF * Add(*squares), entries)), naive=False)
    except (DeclarationError, UnsupportedLaw):  # sides by labels of a form that no constraint has
        return None
