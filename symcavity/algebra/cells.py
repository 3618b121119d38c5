"""Averages over a polyhedron, to any number of digits: one integral is exact, the other is cut at the corners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import mpmath

from symcavity.algebra.phi import gaussian_moment
from symcavity.algebra.phi_values import phis_in
from symcavity.algebra.precision import GENERATED, mp
from symcavity.algebra.quadrature import gaussian_in
from symcavity.errors import ValuesError

EXACT_FIELDS = 2  # so many variables leave one integral, which any number of digits can be had of


def cell_in(at: Any, rows: Sequence[Sequence[Any]], terms: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """Return ``<sum of c*z^powers * 1[all rows >= 0]>`` at the precision of an mpmath context.

    Parameters
    ----------
    at : mpmath context
    rows : sequence of sequences
        For each condition the offset and the slopes.
    terms : sequence of (powers, coefficient)
        The monomials of what is averaged, in one or two variables.

    Raises
    ------
    ValuesError
        If there are more than two variables.

    Notes
    -----
    The integral over the last variable is one of truncated moments; the other is split at the corners.
    """
    return _cell(at, at.prec, tuple(map(tuple, rows)), tuple(terms))


def mp_cell(rows: Sequence[Sequence[Any]], terms: Sequence[tuple[tuple[int, ...], Any]]) -> Any:
    """The same at the precision that the user's mpmath has now."""
    return cell_in(mpmath.mp, rows, terms)


GENERATED["mp_cell"] = partial(cell_in, mp)


@lru_cache(maxsize=512)  # the two sides of an equation are averages over the same cells
def _cell(at: Any, _prec: int, rows: tuple[tuple[Any, ...], ...], terms: tuple[tuple[Any, Any], ...]) -> Any:
    """Return the average at the context's present precision, which is a part of its key."""
    count = len(terms[0][0])
    if count > EXACT_FIELDS:
        raise ValuesError(
            f"{at.dps} digits of an average over {count} fields of one site.",
            "dps <= 15 there; up to two fields that come back to their site at any dps",
        )
    if count == 0:
        return terms[0][1] if all(row[0] >= 0 for row in rows) else at.zero
    if count == 1:
        return _segment(at, [(row[0], row[1]) for row in rows], {p[0]: c for p, c in terms})
    corners = []
    for (a, b, c), (d, e, f) in combinations(rows, 2):
        if b * f != c * e:
            corners.append((c * d - a * f) / (b * f - c * e))
    corners += [-a / b for a, b, c in rows if b]  # where a side crosses the axis, or stands upright

    def slice_at(z: Any) -> Any:
        here: dict[int, Any] = {}
        for (n, k), c in terms:
            here[k] = here.get(k, 0) + c * z**n
        return _segment(at, [(a + b * z, c) for a, b, c in rows], here)

    return gaussian_in(at, slice_at, corners)


def _segment(at: Any, rows: Sequence[tuple[Any, Any]], polynomial: Mapping[int, Any]) -> Any:
    """Average a polynomial of one Gaussian over the interval on which all rows are positive."""
    low, high = -at.inf, at.inf
    for offset, slope in rows:
        if not slope:
            if offset < 0:
                return at.zero
        elif slope > 0:
            low = max(low, -offset / slope)
        else:
            high = min(high, -offset / slope)
    if not low < high:
        return at.zero
    if low > 0:  # the tail on the right, reflected: both ends are then on the left, where phi is small
        low, high = -high, -low
        polynomial = {k: (-1) ** k * c for k, c in polynomial.items()}
    if high <= 0:
        return _below(at, polynomial, high) - _below(at, polynomial, low)
    mirrored = {k: (-1) ** k * c for k, c in polynomial.items()}
    return _below(at, polynomial, at.inf) - _below(at, polynomial, low) - _below(at, mirrored, -high)


def _below(at: Any, polynomial: Mapping[int, Any], end: Any) -> Any:
    """Average a polynomial over ``z < end``, in powers of ``end - z``."""
    if end == -at.inf:
        return at.zero
    if end == at.inf:
        return at.fsum(c * int(gaussian_moment(k)) for k, c in polynomial.items())
    degree = max(polynomial)
    shifted = [polynomial.get(k, at.zero) for k in range(degree + 1)]
    for j in range(degree):
        for k in range(degree - 1, j - 1, -1):
            shifted[k] += end * shifted[k + 1]
    shifted[1::2] = [-c for c in shifted[1::2]]
    return at.fdot(shifted, phis_in(at, degree, end))
