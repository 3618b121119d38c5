"""The root of a quadratic equation that is the solution: as an explicit expression in the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Expr, Poly, Symbol, fraction, sqrt

from symcavity.algebra.factors import together
from symcavity.model.convexity import sample_parameters, seeded
from symcavity.model.quantities import SiteQuantity

DRAWS = 12  # of values of the parameters, at which one root only is a solution


def quadratic_root(equation: Expr, unknown: Symbol, positive: Sequence[Expr], ranges: Sequence[Any]) -> Expr | None:
    """Return the root of an equation that is quadratic in its one unknown; None where it is another equation.

    Parameters
    ----------
    equation : Expr
        What vanishes.
    unknown : Symbol
        With the sign that it is known to have.
    positive : sequence of Expr
        What is positive at the solution, in the unknown and the parameters.
    ranges : sequence of Relational
        What the parameters have to meet.

    Returns
    -------
    Expr or None
        The root that meets all signs at seeded values of the parameters, at none of which the other one does.
    """
    top = fraction(together(equation))[0]
    if not top.is_polynomial(unknown) or top.has(SiteQuantity):
        return None
    poly = Poly(top, unknown)
    if poly.degree() != 2 or any(e.free_symbols - top.free_symbols for e in positive):
        return None
    a, b, c = (e.factor() for e in poly.all_coeffs())
    root = sqrt((b**2 - 4 * a * c).factor())
    pair = [(-b + root) / (2 * a), (-b - root) / (2 * a)]
    parameters = sorted(top.free_symbols - {unknown}, key=str)
    rng, sign = seeded(29), 1 if unknown.is_positive else -1 if unknown.is_negative else 0
    meets = [0, 0]
    for _ in range(DRAWS):
        point = dict(zip(parameters, sample_parameters(parameters, rng, ranges), strict=True))
        for k, candidate in enumerate(pair):
            value = complex(candidate.evalf(15, subs=point))
            if value.imag or (sign and sign * value.real <= 0):
                continue
            there = point | {unknown: value.real}
            meets[k] += all(complex(e.evalf(15, subs=there)).real > 0 for e in positive)
    sure = (r for r, n, other in zip(pair, meets, meets[::-1], strict=True) if 3 * n >= DRAWS and not other)
    return next(sure, None)
