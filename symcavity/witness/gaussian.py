"""Gaussian integrals of polynomials between given points, by a fixed rule: nodes are made once, and shared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import mpmath
from sympy import Expr, Poly, Symbol
from sympy.polys.polyerrors import PolynomialError

DEGREE = 4  # of mpmath's rule: 24 nodes a panel, which is good for 50 digits on panels of width one


def coefficients(expr: Expr, z: Symbol) -> list[Any] | None:
    """The coefficients of a polynomial with numbers for coefficients, highest first; None for anything else."""
    try:
        found = Poly(expr, z)
    except PolynomialError:
        return None
    if found.free_symbols_in_domain:
        return None
    digits = mpmath.mp.dps + 5
    values = [c.evalf(digits) for c in found.all_coeffs()]
    if not all(v.is_Float or v.is_Rational for v in values):
        return None
    return [mpmath.mpf(v._to_mpmath(mpmath.mp.prec)) for v in values]  # noqa: SLF001 - SymPy's own door


def integral(pieces: Sequence[Sequence[Any]], points: Sequence[Any]) -> Any:
    """The Gaussian integral of a polynomial between each two neighbouring points; infinite ends are cut off.

    Parameters
    ----------
    pieces : sequence
        The coefficients of each polynomial, highest first.
    points : sequence
        One more than there are pieces, in order.
    """
    far = reach()
    total = mpmath.mpf(0)
    for (low, high), polynomial in zip(pairwise(points), pieces, strict=True):
        a, b = max(low, -far), min(high, far)
        if a < b:
            total += sum((w * mpmath.polyval(list(polynomial), z) for z, w in weighted(+a, +b)), mpmath.mpf(0))
    return total


def reach() -> Any:
    """Where the density is less than all digits."""
    return mpmath.ceil(mpmath.sqrt(2 * (mpmath.mp.dps + 5) * mpmath.log(10)))


def weighted(low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Nodes between two points, with their weights times the density."""
    return _weighted(low, high, mpmath.mp.prec)


@lru_cache(maxsize=128)
def _weighted(low: Any, high: Any, prec: int) -> list[tuple[Any, Any]]:
    norm = 1 / mpmath.sqrt(2 * mpmath.pi)
    count = int(mpmath.ceil(high - low))
    half = (high - low) / (2 * count)
    out = []
    for k in range(count):
        middle = low + (2 * k + 1) * half
        for x, w in _nodes(prec):
            z = middle + half * x
            out.append((z, half * w * norm * mpmath.exp(-z * z / 2)))
    return out


@lru_cache(maxsize=8)
def _nodes(prec: int) -> list[tuple[Any, Any]]:
    rule = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp)
    return list(rule.calc_nodes(DEGREE, prec))


__all__ = ["coefficients", "integral", "reach", "weighted"]
