"""Hinges and their steps: what differentiation of a hinge leaves twice is written once."""

from __future__ import annotations

from sympy import Expr, Heaviside, Max, Mul, Pow


def without_steps(expr: Expr) -> Expr:
    """Return an expression in which no hinge is multiplied by its own step: both are zero at the same arguments.

    Examples
    --------
    >>> from sympy import Symbol
    >>> x = Symbol("x", real=True)
    >>> without_steps(2 * Max(0, x) * Heaviside(x))
    2*Max(0, x)
    """

    def plain(*factors: Expr) -> Expr:
        bases = {f.base if isinstance(f, Pow) and f.exp.is_positive else f for f in factors}
        return Mul(*(f for f in factors if not (isinstance(f, Heaviside) and Max(0, f.args[0]) in bases)))

    return expr.replace(Mul, plain)
