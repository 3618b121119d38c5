"""Whether a convex cost of a few states has several minima."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sympy import Add, Dummy, Expr, Integer, Poly, hessian

from symcavity.model.quantities import Global, Quenched, SiteQuantity

SOMEWHERE = Integer(1) / 3  # a value of what stands beside a field
MOST_COMPARED = 3  # states of a site
SAMPLED = tuple(Integer(k) / 2 for k in (-4, -2, -1, 0, 1, 2, 4))  # states at which costs are compared


def has_several_minima(cost: Expr, states: Sequence[Expr], share: float = 0.0) -> bool:
    """Whether a convex cost has several minima: by its curvature, or at the values at which costs are compared.

    Parameters
    ----------
    cost : Expr
    states : sequence of Expr
    share : float
        By which share of its terms a value of the cost may be wrong: that of a multiplier that is known in numbers.
    """
    if any(isinstance(q, SiteQuantity) and isinstance(q.family, Quenched) for q in states):
        return False
    marks = [Dummy() for _ in states]
    cost = cost.xreplace(dict(zip(states, marks, strict=True)))
    if cost.is_polynomial(*marks) and Poly(cost, *marks).total_degree() == 2:
        curvature = hessian(cost, marks)
        return not curvature.free_symbols and curvature.rank() < len(marks)
    if len(marks) > MOST_COMPARED:
        return False
    points = [dict(zip(marks, point, strict=True)) for point in product(SAMPLED, repeat=len(marks))]
    terms = [[term.xreplace(point) for term in Add.make_args(cost)] for point in points]
    values = [Add(*row) for row in terms]
    if not all(v.is_number for v in values):
        return False
    least = min(values)
    return sum(bool(v - least <= share * Add(*map(abs, row))) for v, row in zip(values, terms, strict=True)) > 1


def has_several_minima_beside(cost: Expr, states: Sequence[Expr], share: float) -> bool:
    """Whether a cost has several minima, with all that is given at the sites somewhere."""
    beside = [q for q in cost.atoms(SiteQuantity) if q not in states]
    return has_several_minima(cost.xreplace(dict.fromkeys(beside, SOMEWHERE)), states, share)


def has_several_minima_along(cost: Expr, mark: Expr) -> bool:
    """Whether a cost has several minima in one variable, with all that stands beside it somewhere."""
    beside = cost.free_symbols | cost.atoms(SiteQuantity, Global)
    return has_several_minima(cost.xreplace({q: SOMEWHERE for q in beside if q != mark}), [mark])
