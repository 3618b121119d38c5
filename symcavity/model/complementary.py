"""Pairs of quantities of which one vanishes and neither is negative."""

from __future__ import annotations

from typing import Any

from sympy import Basic, Expr

from symcavity.algebra.text import plain
from symcavity.model.exact import exact


class Complementary(Basic):
    """The condition ``0 <= p`` ⊥ ``q >= 0``: both non-negative, and one of them zero, at every site.

    Parameters
    ----------
    p, q : Expr
        Expressions in the states, fields and quenched parameters of one site.

    Examples
    --------
    >>> from symcavity import Complementary, Feature, i
    >>> n = Feature('n')
    >>> Complementary(n[i], n[i] - 1)
    0 <= n[i] ⊥ n[i] - 1 >= 0
    """

    def __new__(cls, p: Any, q: Any) -> Complementary:
        """Return the expression, read and checked."""
        return Basic.__new__(cls, exact(p, "a complementarity condition"), exact(q, "a complementarity condition"))

    @property
    def pair(self) -> tuple[Expr, Expr]:
        """The two non-negative expressions."""
        return self.args[0], self.args[1]

    def _sympystr(self, _printer: Any) -> str:
        p, q = map(plain, self.args)
        return f"0 <= {p} ⊥ {q} >= 0"

    def _latex(self, printer: Any) -> str:
        p, q = map(printer.doprint, self.args)
        return f"0 \\le {p} \\perp {q} \\ge 0"
