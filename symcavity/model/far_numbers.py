"""Numbers of a declaration that are far from one, as letters: they have units, as values of parameters do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Basic, Integral, Pow, Rational, Sum, Symbol, Tuple

from symcavity.model.quantities import SiteQuantity

FAR = 6  # the logarithm, to base two, from which on a number is far from one


class FarNumber(Symbol):
    """A positive number of a declaration that stands there as a letter."""

    __slots__ = ("number",)
    number: Rational

    def __new__(cls, number: Rational) -> FarNumber:
        """Return the letter of a number."""
        symbol = Symbol.__xnew__(cls, str(number), positive=True)
        symbol.number = number
        return symbol

    def __getnewargs_ex__(self) -> Any:
        return (self.number,), {}


def lettered(expr: Any) -> Any:
    """An expression with letters in the place of its numbers that are far from one; exponents stay."""
    if isinstance(expr, Rational):
        is_far = expr.is_finite and expr != 0 and abs(np.log2(abs(expr.p)) - np.log2(expr.q)) > FAR
        return (FarNumber(abs(expr)) * (1 if expr > 0 else -1)) if is_far else expr
    if not isinstance(expr, Basic) or not expr.args or isinstance(expr, SiteQuantity | Tuple):
        return expr
    if isinstance(expr, Pow | Sum | Integral):
        return expr.func(lettered(expr.args[0]), *expr.args[1:])
    return expr.func(*map(lettered, expr.args))
