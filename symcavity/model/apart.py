"""Functions of a sum over two sites as products of functions of one site: ``sin(x[j] - x[i])`` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Expr, Pow, cos, cosh, exp, sin, sinh

from symcavity.model.quantities import site_quantities

# the addition theorems: a function of a + b by functions of a and of b
_THEOREMS: dict[Any, Callable[[Expr, Expr], Expr]] = {
    exp: lambda a, b: exp(a) * exp(b),
    sin: lambda a, b: sin(a) * cos(b) + cos(a) * sin(b),
    cos: lambda a, b: cos(a) * cos(b) - sin(a) * sin(b),
    sinh: lambda a, b: sinh(a) * cosh(b) + cosh(a) * sinh(b),
    cosh: lambda a, b: cosh(a) * cosh(b) + sinh(a) * sinh(b),
}


def taken_apart(expr: Expr, at: Any) -> Expr:
    """An expression of two sites, in which functions of a sum of both are written by functions of one site.

    Parameters
    ----------
    expr : Expr
    at : Symbol
        The index of one of the sites. A function without an addition theorem stays.
    """
    rule = {f: _THEOREMS[f.func](*_halves(f.args[0], at)) for f in expr.atoms(*_THEOREMS) if _is_mixed(f, at)}
    for power in expr.atoms(Pow):
        if power.base.is_number and power.base.is_positive and _is_mixed(power.exp, at):
            a, b = _halves(power.exp, at)
            rule[power] = power.base**a * power.base**b
    return expr.xreplace(rule) if rule else expr


def _is_mixed(expr: Expr, at: Any) -> bool:
    return {at in q.site.values() for q in site_quantities(expr)} == {True, False}


def _halves(expr: Expr, at: Any) -> tuple[Expr, Expr]:
    """The terms of a sum that do not hold a site, and those that do."""
    terms = Add.make_args(expr.expand())
    held = [term for term in terms if any(at in q.site.values() for q in site_quantities(term))]
    return Add(*(term for term in terms if term not in held)), Add(*held)
