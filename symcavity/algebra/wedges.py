"""The share of directions between two half-spaces: an angle."""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Rational, acos, cancel, collect, expand_mul, factor, pi, sqrt

from symcavity.algebra.polyhedral import CellAverage


def by_angles(expr: Expr) -> Expr:
    """Return an expression in which the probabilities of wedges at the origin are angles, one term for each angle.

    Two Gaussians of the correlation ``c`` are both positive with the probability ``acos(-c)/(2*pi)`` (W. F. Sheppard,
    Philos. Trans. R. Soc. A 192, 101, 1899).
    """
    rule: dict[Any, Any] = {node: _angle(*node.rows()) for node in expr.atoms(CellAverage) if _is_wedge(node)}
    if not rule:
        return expr
    found = expr.xreplace(rule)
    return collect(expand_mul(found), sorted(found.atoms(acos), key=str), factor)


def _is_wedge(node: CellAverage) -> bool:
    """Whether it is the probability of two conditions without offsets."""
    rows = node.rows()
    return node.body == 1 and len(rows) == 2 and not any(row[0] for row in rows)


def _angle(one: list[Expr], other: list[Expr]) -> Expr:
    along, *squares = (
        Add(*(p * q for p, q in zip(a[1:], b[1:], strict=True))) for a, b in ((one, other), (one, one), (other, other))
    )
    lengths = [sqrt(factor(cancel(square))) for square in squares]
    cosine = factor(cancel(along)) / (lengths[0] * lengths[1])
    if cosine.could_extract_minus_sign():
        return acos(-cosine) / (2 * pi)
    return Rational(1, 2) - acos(cosine) / (2 * pi)
