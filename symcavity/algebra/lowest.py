"""Gaussian averages of the lowest minimum of a smooth energy that may have several: it switches where two are equal."""

from __future__ import annotations

from functools import partial
from typing import Any

from sympy import Expr, S, Symbol, oo

from symcavity.algebra.door import as_sympy
from symcavity.algebra.implicit import ImplicitAverage


class LowestAverage(ImplicitAverage):
    """The average of ``expr(x)`` over a standard Gaussian z, where x is the lowest minimum of ``well(x) - z*x``.

    Parameters
    ----------
    expr : Expr
        The integrand, in x.
    x : Symbol
        The place of the minimum, bound here.
    psi : Expr
        The slope of the well, which rises far out.
    low, high : Expr
        The range of x; infinite by default.
    well : Expr
    jumps : Expr
        The weight of each place at which the minimum jumps, in units of the density: zero, or infinity where the
        integrand holds the square of a delta function.

    Notes
    -----
    Where psi rises for all x this is :class:`ImplicitAverage`.  Elsewhere the minimum leaves out what lies above a
    common tangent of the well: from one point of contact it jumps to the other, at the z that is the tangent's slope.
    """

    which = "min"

    def __new__(
        cls, expr: Any, x: Symbol, psi: Any, low: Any = -oo, high: Any = oo, well: Any = None, jumps: Any = S.Zero
    ) -> Expr:
        """Return the expression, read and checked."""
        expr = as_sympy(expr)
        if expr == 0:
            return S.Zero
        return Expr.__new__(cls, expr, x, *map(as_sympy, (psi, low, high, well, jumps)))

    @property
    def well(self) -> Expr:
        """The energy whose slope the Gaussian variable is."""
        return self.args[5]

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        return super().free_symbols | (self.well.free_symbols - {self.x})

    def _eval_derivative(self, s: Symbol) -> Expr | None:
        """None: places at which the minimum jumps move, and have no name here."""
        return S.Zero if s == self.x or s not in self.free_symbols else None


def lowest_in(well: Expr, jumps: Expr = S.Zero) -> Any:
    """What averages over the lowest minimum in a well, as a function of the arguments of an implicit average."""
    return partial(_made, well, jumps)


def _made(well: Expr, jumps: Expr, expr: Expr, x: Symbol, psi: Expr, low: Expr = -oo, high: Expr = oo) -> Expr:
    return LowestAverage(expr, x, psi, low, high, well, jumps)
