"""Lines and powers of one variable."""

from __future__ import annotations

from sympy import Expr, Symbol


def power_of(expr: Expr, z: Symbol) -> int | None:
    """Return n of ``z**n``, or None."""
    base, power = expr.as_base_exp()
    return int(power) if base == z and power.is_Integer and power > 0 else None


def affine_in(expr: Expr, z: Symbol) -> tuple[Expr, Expr] | None:
    """Return a, b with expr = a + b*z, or None."""
    if not expr.is_polynomial(z):
        return None
    expr = expr.expand()
    slope = expr.coeff(z, 1)
    offset = expr.coeff(z, 0)
    return (offset, slope) if (expr - offset - slope * z).expand() == 0 else None
