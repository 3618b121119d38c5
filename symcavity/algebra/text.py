"""The text of an expression: to sort by, where each part is printed once, and as people write it."""

from __future__ import annotations

from typing import Any

from sympy import Basic, Float, Integral, Sum
from sympy.printing.str import StrPrinter

from symcavity.algebra.flow import integrand
from symcavity.algebra.memory import Memory

_KNOWN = Memory(20_000)


class _Integrals(StrPrinter):
    def _print_Sum(self, expr: Any) -> str:
        body, sums, integrals = integrand(expr)
        if not integrals:
            return str(super()._print_Sum(expr))
        whole = Integral(body, *integrals)
        return str(self._print(Sum(whole, *sums) if sums else whole))


class _Printer(_Integrals):
    def _print(self, expr: Any, **options: Any) -> str:
        if options or not isinstance(expr, Basic) or isinstance(expr, Float):  # a Float alone has all its digits
            return str(super()._print(expr, **options))
        if (found := _KNOWN.get(expr)) is None:
            found = _KNOWN[expr] = super()._print(expr)
        return found


def text(expr: Basic) -> str:
    """Return what ``str`` gives."""
    return str(_Printer({"order": None}).doprint(expr))


class _PlainPrinter(_Integrals):
    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        terms = super()._as_ordered_terms(expr, order=order)
        lead = next((k for k, term in enumerate(terms) if not term.as_coeff_Mul()[0].is_negative), 0)
        return [terms[lead], *terms[:lead], *terms[lead + 1 :]]


def plain(expr: Any) -> str:
    """Return the text as people write it: what is subtracted in a sum comes after what is not."""
    return str(_PlainPrinter().doprint(expr))
