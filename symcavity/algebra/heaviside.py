"""Cases written by step functions, so that their jumps have derivatives."""

from __future__ import annotations

from typing import Any

from sympy import And, Expr, Heaviside, Mul, Not, Or, Piecewise, S, Symbol
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne, Relational


def as_heaviside(expr: Expr, z: Symbol) -> Expr:
    """Write every Piecewise that switches in z by Heaviside functions, so that its jumps differentiate."""

    def indicator(test: Any) -> Expr:
        if isinstance(test, Relational):
            gap = test.lhs - test.rhs
            if isinstance(test, Gt | Ge):
                return Heaviside(gap)
            if isinstance(test, Lt | Le):
                return Heaviside(-gap)
            return S.One if isinstance(test, Ne) else S.Zero if isinstance(test, Eq) else S.NaN
        if isinstance(test, And):
            return Mul(*[indicator(a) for a in test.args])
        if isinstance(test, Or):
            return 1 - Mul(*[1 - indicator(a) for a in test.args])
        if isinstance(test, Not):
            return 1 - indicator(test.args[0])
        return S.One if test == True else S.Zero  # noqa: E712 - SymPy's own true

    def rewrite(*args: Any) -> Expr:
        node = Piecewise(*args)
        if not isinstance(node, Piecewise) or not any(c.has(z) for _, c in node.args):
            return node
        total, left = S.Zero, S.One
        for value, test in node.args:
            here = indicator(test)
            total += left * here * value
            left *= 1 - here
        return total

    return expr.replace(Piecewise, rewrite)
