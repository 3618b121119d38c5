"""Compile one expression of the engine to a function: NumPy in double, mpmath at any precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
from sympy import Expr

from symcavity.algebra.polyhedral import CellAverage
from symcavity.evaluate.digits import ExactPass
from symcavity.evaluate.integrals import LAWS, Environment, Pass
from symcavity.evaluate.program import number_in


class Compiled:
    """A compiled expression: call it with a mapping from symbols to values.

    Parameters
    ----------
    expr : Expr
    backend : str
        ``'numpy'`` (values broadcast) or ``'mpmath'`` (scalars, at the current precision).

    Notes
    -----
    Under the key ``LAWS`` the mapping holds the :class:`SiteLaw` of each side, where averages over sites
    occur; so one compiled expression serves all values.
    """

    def __init__(self, expr: Expr, backend: str) -> None:
        self.expr, self.backend = expr, backend
        self._pass: Any = Pass([expr]) if backend == "numpy" else ExactPass([expr])

    def __call__(self, env: Environment) -> Any:
        """Evaluate at the values of a mapping."""
        return self._pass(env)[0]


def boxed(node: Expr, backend: str) -> Callable[[Environment], Any]:
    """Return the function of an average that has code of its own."""
    if isinstance(node, CellAverage):
        from symcavity.evaluate.polyhedra import Cell

        return Cell(node, Compiled, backend)
    from symcavity.evaluate.set_averages import Projected

    return Projected(node, Compiled, backend)


def to_mpf(value: Any) -> Any:
    """Return an exact value as an mpf of the current precision."""
    return number_in(mpmath.mp, value)


__all__ = ["LAWS", "Compiled", "boxed", "to_mpf"]
