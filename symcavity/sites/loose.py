"""Multipliers that a law does not fix: those of bounds that meet and depend on each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Matrix, PolynomialError, S

from symcavity.model.quantities import SiteQuantity


def open_multipliers(pairs: Sequence[Any], unknowns: Sequence[SiteQuantity]) -> list[SiteQuantity]:
    """The multipliers of linear bounds of which a combination vanishes wherever the states are.

    All of these bounds can hold with equality at once, and there the combination may be added to their multipliers.

    Parameters
    ----------
    pairs : sequence of Complementary
        The pairs of the law, of a multiplier and a bound each.
    unknowns : sequence of SiteQuantity
        The multipliers and the states.
    """
    rows = [(p, q) if p in unknowns else (q, p) for p, q in (pair.pair for pair in pairs)]
    multipliers, bounds = [m for m, _ in rows], [b for _, b in rows]
    states = [x for x in unknowns if x not in multipliers]
    still = dict.fromkeys(states, S.Zero)
    slopes = [[bound.diff(x) for x in states] for bound in bounds]
    if not rows or any(slope.has(*unknowns) for row in slopes for slope in row):
        return []
    whole = Matrix([[*row, bound.xreplace(still)] for row, bound in zip(slopes, bounds, strict=True)])
    try:
        found = whole.T.nullspace()
    except (PolynomialError, ValueError):
        return []
    return [m for k, m in enumerate(multipliers) if any(vector[k] != 0 for vector in found)]
