"""Norms of several quantities, ``sqrt(w1**2 + w2**2)``: the largest product with a vector of length at most one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Add, Dummy, Expr, Poly, Pow, Rational, S, sqrt

from symcavity.algebra.signs import sign_given, sign_of
from symcavity.errors import NotConvex, UnsupportedLaw
from symcavity.method.lagrangian import Lagrangian, Norm
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Variable
from symcavity.model.ranges import margins


def without_norms(
    body: Expr, side: Kind, varying: Sequence[Expr], record: Lagrangian, fresh: Callable[[str], str]
) -> Expr:
    """Write each norm ``|v|`` of a site's function as ``p.v``, with ``|p| <= 1`` and a multiplier s of that bound.

    The slope of a norm is not defined where the vector vanishes.  There p is any vector in the ball; elsewhere it is
    the direction of v.

    Raises
    ------
    NotConvex
        If a norm enters with a negative factor.
    """
    for node in sorted((e for e in body.atoms(Pow) if e.exp == Rational(1, 2)), key=str):
        mark = Dummy("t", real=True)
        factor = body.xreplace({node: mark}).diff(mark)
        vector = None if factor.has(mark, *varying) else _vector(node.base, varying)
        if vector is None:
            continue
        if sign_given(factor, margins(record.problem.ranges)) not in (0, 1):
            raise NotConvex(f"{node} enters the objective with the factor {factor}.", "positive factors of norms")
        p = tuple(Variable(fresh(f"p_{k + 1}"), side.index).at_site() for k in range(len(vector)))
        s = Variable(fresh("s"), side.index).at_site()
        record.norms.append(Norm(node, vector, p, s))
        body = body.xreplace({node: Add(*(a * b for a, b in zip(p, vector, strict=True)))})
    return body


def refuse_tips(expr: Expr, varying: Sequence[Expr], heard: Sequence[Expr], declared: object) -> None:
    """Refuse ``expr >= 0`` where it may be met with equality while a norm in it vanishes: the tip of a cone.

    Raises
    ------
    UnsupportedLaw
        If the rest depends on what the site hears, or is not positive where all states vanish.
    """
    for node in sorted((e for e in expr.atoms(Pow) if e.exp == Rational(1, 2)), key=str):
        if _vector(node.base, varying) is None:
            continue
        rest = expr.xreplace({node: S.Zero})
        if rest.has(*heard, Dummy()) or sign_of(rest.xreplace(dict.fromkeys(varying, S.Zero))) in (0, -1):
            raise UnsupportedLaw(
                f"A norm is bounded by other states in {declared}: where its vector vanishes it has no slope.",
                "norms in the objective, with factors that do not depend on states; norms bounded by numbers",
                "a convex set: h - norm(h1, h2) >= 1 is SupportFunction('g')(V) >= 1 for couplings with three "
                "components, at the value Ball(2, 1) of g; see docs/sets.md",
            )


def _vector(square: Expr, varying: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Write a quadratic function as a sum of squares of linear ones; None if it is no such sum of several."""
    own = [q for q in varying if square.has(q)]
    if len(own) < 2 or not square.is_polynomial(*own):
        return None
    polynomial = Poly(square.expand(), *own)
    if polynomial.total_degree() != 2:
        return None
    half = polynomial.as_expr().expand()
    rows: list[Expr] = []
    for q in own:  # completing squares, one quantity after the other
        lead = half.coeff(q, 2)
        if half == 0:
            break
        if lead == 0:
            continue
        if sign_of(lead) != 1:
            return None
        line = (half.diff(q) / (2 * sqrt(lead))).expand()
        rows.append(line)
        half = (half - line**2).expand()
    # a rest that does not vanish keeps it above zero, where its root is smooth
    return tuple(rows) if half == S.Zero and len(rows) > 1 else None
