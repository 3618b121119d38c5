"""The text of an expression, of which each part is printed once: what sorts by names asks for it again and again."""

from __future__ import annotations

from typing import Any

from sympy import Basic, Float
from sympy.printing.str import StrPrinter

from symcavity.algebra.memory import Memory

_KNOWN = Memory(20_000)


class _Printer(StrPrinter):
    def _print(self, expr: Any, **options: Any) -> str:
        if options or not isinstance(expr, Basic) or isinstance(expr, Float):  # a Float alone has all its digits
            return str(super()._print(expr, **options))
        if (found := _KNOWN.get(expr)) is None:
            found = _KNOWN[expr] = super()._print(expr)
        return found


def text(expr: Basic) -> str:
    """Return what ``str`` gives."""
    return str(_Printer({"order": None}).doprint(expr))


__all__ = ["text"]
