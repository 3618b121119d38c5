"""Logarithms that keep states from an edge, and whose factor is zero at some sites: the law is another one there."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Expr, S, exp, oo

from symcavity.algebra.implicit import ImplicitAverage


@lru_cache(maxsize=1024)
def loses_an_end(expr: Expr, zero: Any = None) -> bool:
    """Whether the field that a law gives at each of its states is bounded at one end.

    States that a logarithm keeps from an edge are written by exponentials of an unknown, such as ``x`` in
    ``exp(x) - c*n*exp(-x) = z``.  Without the logarithm, at ``n = 0``, no state has the fields below zero.

    Parameters
    ----------
    expr : Expr
        With averages over implicit laws.
    zero : SiteQuantity, optional
        A parameter that is zero at some sites; averages without it are then left out.
    """
    laws = sorted(expr.atoms(ImplicitAverage), key=str)
    if zero is None:
        return any(_is_bounded(a, a.args[2]) for a in laws)
    return any(_is_bounded(a, a.args[2].xreplace({zero: S.Zero})) for a in laws if a.args[2].has(zero))


def _is_bounded(average: ImplicitAverage, psi: Expr) -> bool:
    x, (low, high) = average.x, average.args[3:5]
    if (low, high) != (-oo, oo):
        return False
    for way in (1, -1):  # at which end of the unknown
        fading = {e: S.Zero for e in psi.atoms(exp) if e.args[0].has(x) and (e.args[0].diff(x) * way).is_negative}
        if fading and not psi.expand().xreplace(fading).has(x):
            return True
    return False


def at_an_edge(zero: str) -> tuple[str, str, str]:
    """Return what to say of it."""
    return (
        f"Where {zero} is zero, no logarithm keeps states from the edge of their law: at some fields they stand there.",
        "logarithms with a positive factor at every site",
        "values that are a little more than zero, such as 1/1000 for 0",
    )
