"""Gaussian integrals of polynomials between given points, by a fixed rule: nodes are made once, and shared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from mpmath.calculus.quadrature import GaussLegendre
from sympy import Expr, Poly, Symbol
from sympy.polys.polyerrors import PolynomialError

from symcavity.algebra.precision import mp

DEGREE = 4  # of mpmath's rule: 24 nodes a panel, which is good for 50 digits on panels of width one


def coefficients(expr: Expr, z: Symbol) -> list[Any] | None:
    """The coefficients of a polynomial with numbers for coefficients, highest first; None for anything else."""
    try:
        found = Poly(expr, z)
    except PolynomialError:
        return None
    if found.free_symbols_in_domain:
        return None
    digits = mp.dps + 5
    values = [c.evalf(digits) for c in found.all_coeffs()]
    if not all(v.is_Float or v.is_Rational for v in values):
        return None
    return [mp.mpf(v._to_mpmath(mp.prec)) for v in values]  # noqa: SLF001 - SymPy's own door


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
    total = mp.mpf(0)
    for (low, high), polynomial in zip(pairwise(points), pieces, strict=True):
        a, b = max(low, -far), min(high, far)
        if a < b:
            total += sum((w * mp.polyval(list(polynomial), z) for z, w in weighted(+a, +b)), mp.mpf(0))
    return total


def reach() -> Any:
    """Where the density is less than all digits."""
    return mp.ceil(mp.sqrt(2 * (mp.dps + 5) * mp.log(10)))


def weighted(low: Any, high: Any) -> list[tuple[Any, Any]]:
    """Nodes between two points, with their weights times the density."""
    return _weighted(low, high, mp.prec)


@lru_cache(maxsize=128)
def _weighted(low: Any, high: Any, prec: int) -> list[tuple[Any, Any]]:
    norm = 1 / mp.sqrt(2 * mp.pi)
    count = int(mp.ceil(high - low))
    half = (high - low) / (2 * count)
    out = []
    for k in range(count):
        middle = low + (2 * k + 1) * half
        for x, w in _nodes(prec):
            z = middle + half * x
            out.append((z, half * w * norm * mp.exp(-z * z / 2)))
    return out


@lru_cache(maxsize=8)
def _nodes(prec: int) -> list[tuple[Any, Any]]:
    rule = GaussLegendre(mp)
    return list(rule.calc_nodes(DEGREE, prec))
