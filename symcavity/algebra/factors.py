"""Factors of polynomials, found in the same way in every session.

SymPy factors a polynomial in several symbols at points that it draws from one generator of the whole process.  With
unlucky points that takes minutes or does not end, so that the same call is quick in one session and hangs in another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sympy
from sympy import Expr
from sympy.core.random import rng


@contextmanager
def _same_draws() -> Iterator[None]:
    """Let SymPy draw what it would draw first of all; the session's own sequence goes on afterwards."""
    state = rng.getstate()
    rng.seed(0)
    try:
        yield
    finally:
        rng.setstate(state)


def factor_list(expr: Expr, *symbols: Any) -> tuple[Expr, list[tuple[Expr, int]]]:
    """Return the constant and the factors of a polynomial, whatever was drawn before."""
    with _same_draws():
        return sympy.factor_list(expr, *symbols)


def factor(expr: Expr) -> Expr:
    """Return an expression as a product of factors, whatever was drawn before."""
    with _same_draws():
        return sympy.factor(expr)


__all__ = ["factor", "factor_list"]
