"""What all expression nodes of this package share: they are real numbers, and print as one piece."""

from __future__ import annotations

from typing import Any

from sympy import Expr, sympify


class Node(Expr):
    """An expression of our own, which stands for a real number."""

    is_commutative = True
    is_real = True

    def __new__(cls, *args: Any) -> Any:
        """Return the expression of these arguments, read."""
        return Expr.__new__(cls, *map(sympify, args))


def raised(tex: str, exp: str | None) -> str:
    """A formula to a power, in brackets."""
    return f"\\left({tex}\\right)^{{{exp}}}" if exp else tex


__all__ = ["Node", "raised"]
