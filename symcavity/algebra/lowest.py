"""Gaussian averages of one of several minima of a smooth energy: the lowest one, or one that is followed."""

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

    which, subscript = "min", "\\min"
    method = "lowest"

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
    def law(self) -> tuple[Expr, ...]:
        """What is to be known at a place: the slope of the well, its curvature, and the well."""
        return self.args[2], self.args[2].diff(self.x), self.well

    @property
    def moving(self) -> tuple[Expr, ...]:
        """What decides how jumps move."""
        return (self.well,)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        return super().free_symbols | (self.well.free_symbols - {self.x})

    def _eval_derivative(self, s: Symbol) -> Expr | None:
        """None: places at which the minimum jumps move, and have no name here."""
        return S.Zero if s == self.x or s not in self.free_symbols else None


class FollowedAverage(LowestAverage):
    """The average of ``expr(x)`` over a standard Gaussian z, where x is the minimum that is reached from a start.

    The slope of the whole is ``psi(x) - z``.  The start is the lowest minimum of ``well(x) - z*x``, with another well.

    Notes
    -----
    The state moves one way, downhill from its start, and stops where ``psi(x) = z`` for the first time.  It jumps at
    each z at which the start does; where a start at rest is one that repels; and where a minimum ends, to the next one.
    """

    which, subscript = "start", "\\mathrm{start}"
    method = "followed"

    @property
    def law(self) -> tuple[Expr, ...]:
        """What is to be known at a place: slope and curvature of the whole; the well, its slope and curvature."""
        _, x, psi, _, _, well, _ = self.args
        return psi, psi.diff(x), well, well.diff(x), well.diff(x, 2)

    @property
    def moving(self) -> tuple[Expr, ...]:
        """What decides how jumps move."""
        return self.well, self.well.diff(self.x), self.args[2]


def at_minimum_in(well: Expr, jumps: Expr = S.Zero, *, followed: bool = False) -> Any:
    """What averages over a minimum in a well, or from one, as a function of the arguments of an implicit average."""
    return partial(_made, FollowedAverage if followed else LowestAverage, well, jumps)


def _made(
    kind: Any, well: Expr, jumps: Expr, expr: Expr, x: Symbol, psi: Expr, low: Expr = -oo, high: Expr = oo
) -> Expr:
    made: Expr = kind(expr, x, psi, low, high, well, jumps)
    return made
