"""Whether a convex cost of a few states has several minima."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from sympy import Dummy, Expr, Integer, Poly, hessian

from symcavity.model.quantities import Global, Quenched, SiteQuantity

SOMEWHERE = Integer(1) / 3  # a value of what stands beside a field
MOST_COMPARED = 3  # states of a site
SAMPLED = tuple(Integer(k) / 2 for k in (-4, -2, -1, 0, 1, 2, 4))  # states at which costs are compared


def has_several_minima(cost: Expr, states: Sequence[Expr]) -> bool:
    """Whether a convex cost has several minima: by its curvature, or at the values at which costs are compared."""
    if any(isinstance(q, SiteQuantity) and isinstance(q.family, Quenched) for q in states):
        return False
    marks = [Dummy() for _ in states]
    cost = cost.xreplace(dict(zip(states, marks, strict=True)))
    if cost.is_polynomial(*marks) and Poly(cost, *marks).total_degree() == 2:
        curvature = hessian(cost, marks)
        return not curvature.free_symbols and curvature.rank() < len(marks)
    if len(marks) > MOST_COMPARED:
        return False
    values = [cost.xreplace(dict(zip(marks, point, strict=True))) for point in product(SAMPLED, repeat=len(marks))]
    return bool(all(v.is_number for v in values)) and values.count(min(values)) > 1


def has_several_minima_along(cost: Expr, mark: Expr) -> bool:
    """Whether a cost has several minima in one variable, with all that stands beside it somewhere."""
    beside = cost.free_symbols | cost.atoms(SiteQuantity, Global)
    return has_several_minima(cost.xreplace({q: SOMEWHERE for q in beside if q != mark}), [mark])
