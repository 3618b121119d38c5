"""Compile one expression of the engine to a function: NumPy in double, mpmath at any precision."""

from __future__ import annotations

from typing import Any

from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import Environment, Pass
from symcavity.evaluate.averages.names import number_in


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


    def is_ruled(self, env: Environment) -> bool:
        """Whether something is integrated, at any precision."""
        return bool(self._pass.is_ruled(env))


def to_mpf(value: Any) -> Any:
    """Return an exact value as an mpf of the current precision."""
    return number_in(mp, value)
