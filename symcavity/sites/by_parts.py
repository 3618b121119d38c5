"""Averages of responses by Gaussian integration by parts, where the states jump with the field."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sympy import Add, Dummy, Expr, Heaviside, Matrix, Poly, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import site_quantities


def by_parts(
    ensemble: Any, field: Any, body: Expr, average: Callable[[Expr], Expr], heard: Sequence[Any] | None = None
) -> Expr:
    """The average of the derivative of a body along one of the fields: ``sum_b (C^-1)_ab <eta_b body>``.

    Parameters
    ----------
    ensemble
        With ``fields`` and their ``covariance``.
    field, body : Symbol, Expr
    average : callable
    heard : sequence of Symbol, optional
        The fields on which the body depends, where it is not all: C is their covariance, and no other is averaged.
    """
    covariance = ensemble.covariance
    fields = [f for f in (ensemble.fields if heard is None else heard) if covariance[f, f] != 0]
    if field not in fields:
        return S.Zero
    inverse = Matrix([[covariance[a, b] for b in fields] for a in fields]).inv()
    row = fields.index(field)
    return Add(*(cancel(inverse[row, column]) * average(body * other) for column, other in enumerate(fields)))


def weights(
    body: Expr, jumping: Sequence[SiteResponse], unknowns: Sequence[Any]
) -> tuple[Expr, list[tuple[SiteResponse, Expr]]]:
    """What of a body holds no response that jumps, and what multiplies each of them.

    Raises
    ------
    UnsupportedLaw
        If it is multiplied by states.
    """
    marks = {r: Dummy("R", real=True) for r in jumping}
    marked = body.xreplace(marks)
    found = [(r, marked.diff(mark)) for r, mark in marks.items()]
    for _, weight in found:
        if weight.has(*marks.values()) or set(site_quantities(weight)) & set(unknowns):
            raise UnsupportedLaw(
                f"{body} multiplies a response to a field in which the law jumps with other states.",
                "responses with quenched weights there",
            )
    return marked.xreplace(dict.fromkeys(marks.values(), S.Zero)), found


def infinite_square(body: Expr, jumping: Sequence[SiteResponse], unknowns: Sequence[Any]) -> Expr | None:
    """The average of a body that holds the square of a response that jumps: infinite, as that of a delta function is.

    None where it holds none, or where the sign is not known. A step of a field that moves nothing of the state, such as
    that of a teacher, is one on a side of it.
    """
    if not body.is_polynomial(*jumping):
        return None
    steep = [(powers, factor) for powers, factor in Poly(body, *jumping).terms() if sum(powers) > 1]
    if not steep or any(max(powers) < sum(powers) or sum(powers) % 2 for powers, _ in steep):
        return None  # products of responses that jump at places of their own may vanish
    if any(set(site_quantities(factor)) & set(unknowns) for _, factor in steep):
        return None
    factors = [factor.xreplace(dict.fromkeys(factor.atoms(Heaviside), S.One)) for _, factor in steep]
    for sign, has_sign in ((1, "is_nonnegative"), (-1, "is_nonpositive")):
        if all(getattr(factor, has_sign) for factor in factors):
            return sign * S.Infinity
    return None
