"""Averages of products over two parts of a site that hear no field in common, by the density of all fields.

Each factor is a function of the fields of its own part, so that it is found on a grid of these alone. With the weights
of both grids the average is a double sum over the pairs of their points, times the density of all fields over the
product of those of the two parts. This knows no series, and no order in which fields are averaged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sympy import Add, Expr, Mul, S, Symbol, expand_mul

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Quenched, site_quantities

BOTH = 2
ROWS = 500  # points of the first grid that are taken at once

Seen = Callable[[Any, list[Symbol], Expr], tuple[np.ndarray, np.ndarray]]
Terms = list[tuple[Expr, list[tuple[Any, list[Symbol], Expr]]]]


def in_halves(side: Any, body: Expr, heard_by: Callable[[Any, Expr], tuple[Any, list[Symbol]]]) -> Terms | None:
    """Each term of a sum as what knows no field, and a factor of each of two parts; None where one is anything else.

    Parameters
    ----------
    side : Site
    body : Expr
    heard_by : callable
        The part of a law that an expression belongs to, and the fields of that part.
    """
    out = []
    for term in Add.make_args(expand_mul(body)):
        known, halves = S.One, dict[tuple[Any, ...], tuple[Any, list[Symbol], Expr]]()
        for factor in Mul.make_args(term):
            if not _hears(side, factor):
                known *= factor
                continue
            part, order = _owner(side, factor, heard_by)
            if part is None:
                return None
            key = tuple(part.unknowns)
            halves[key] = part, order, factor * (halves[key][2] if key in halves else S.One)
        found = list(halves.values())
        if len(found) != BOTH or set(found[0][1]) & set(found[1][1]):
            return None
        out.append((known, found))
    return out


def _hears(side: Any, expr: Expr) -> bool:
    states = {q for q in site_quantities(expr) if not isinstance(q.family, Quenched)}
    return bool(states or expr.atoms(SiteResponse) or expr.has(*(h.eta for h in side.heard)))


def _owner(
    side: Any, factor: Expr, heard_by: Callable[[Any, Expr], tuple[Any, list[Symbol]]]
) -> tuple[Any, list[Symbol]]:
    """The part that a factor belongs to, with its fields; None if there is none or more than one."""
    part, order = heard_by(side, factor)
    if part is not side.solution:
        return part, order
    if site_quantities(factor) or factor.atoms(SiteResponse):
        return None, []
    fields = {h.eta for h in side.heard if factor.has(h.eta)}  # that stand alone, as integration by parts leaves them
    parts = [heard_by(side, Mul(*one.unknowns)) for one in getattr(side.solution, "parts", ())]
    found = [(one, own) for one, own in parts if one is not side.solution and fields <= set(own)]
    return found[0] if len(found) == 1 else (None, [])


def average_of_halves(
    terms: Terms, plain: Callable[[Expr], Expr], matrix: Callable[[list[Symbol]], np.ndarray], seen: Seen
) -> float:
    """The average of a sum of products.

    Parameters
    ----------
    terms : list
        As :func:`in_halves` gives them.
    plain : callable
        An expression with all its values put in.
    matrix : callable
        The covariance of some fields.
    seen : callable
        Fields of one part on a grid, shape (fields, points), and what a factor is at each of them, times the weight of
        the point.
    """
    total = 0.0
    for known, ((one, order, first), (other, others, second)) in terms:
        (a, f), (b, g) = seen(one, order, first), seen(other, others, second)
        total += float(plain(known)) * _summed(a, f, b, g, matrix([*order, *others]))
    return total


def _summed(a: np.ndarray, f: np.ndarray, b: np.ndarray, g: np.ndarray, covariance: np.ndarray) -> float:
    """The double sum over the points of two grids, with the density of the pairs beside that of each alone."""
    (a, f), (b, g) = ((x[:, w != 0], w[w != 0]) for x, w in ((a, f), (b, g)))
    n = len(a)
    own = np.linalg.inv(covariance[:n, :n]), np.linalg.inv(covariance[n:, n:])
    whole = np.linalg.inv(covariance)
    logs = [np.linalg.slogdet(m)[1] for m in (covariance[:n, :n], covariance[n:, n:], covariance)]
    left = -0.5 * np.einsum("ik,ij,jk->k", a, whole[:n, :n] - own[0], a) + (logs[0] + logs[1] - logs[2]) / 2
    right = -0.5 * np.einsum("ik,ij,jk->k", b, whole[n:, n:] - own[1], b)
    across = whole[:n, n:] @ b
    total = 0.0
    for k in range(0, a.shape[1], ROWS):
        some = slice(k, k + ROWS)
        density = np.exp(left[some, None] + right - a[:, some].T @ across)
        total += float(f[some] @ density @ g)
    return total
