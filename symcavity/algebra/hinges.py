"""Hinges and their steps: what differentiation of a hinge leaves twice is written once."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Abs, DiracDelta, Dummy, Expr, Heaviside, Max, Mul, Piecewise, Pow, S, sign

from symcavity.errors import UnsupportedLaw


def without_steps(expr: Expr) -> Expr:
    """Return an expression in which no hinge is multiplied by its own step: both are zero at the same arguments.

    Examples
    --------
    >>> from sympy import Symbol
    >>> x = Symbol("x", real=True)
    >>> without_steps(2 * Max(0, x) * Heaviside(x))
    2*Max(0, x)
    """

    def plain(*factors: Expr) -> Expr:
        bases = {f.base if isinstance(f, Pow) and f.exp.is_positive else f for f in factors}
        return Mul(*(f for f in factors if not (isinstance(f, Heaviside) and Max(0, f.args[0]) in bases)))

    return expr.replace(Mul, plain)


def without_signs(expr: Expr) -> Expr:
    """Return an expression in which no real variable is multiplied by its own sign: that is its modulus.

    Examples
    --------
    >>> from sympy import Abs, Symbol
    >>> x = Symbol("x", real=True)
    >>> without_signs((Abs(x)**3).diff(x))
    3*x*Abs(x)
    """

    def plain(*factors: Expr) -> Expr:
        out = Mul(*factors)
        for f in factors:
            if isinstance(f, sign) and f.args[0].is_extended_real and any(_is_power(g, f.args[0]) for g in factors):
                out = Abs(f.args[0]) * (out / f / f.args[0])
        return out

    return expr.replace(Mul, plain) if expr.has(sign) else expr


def _is_power(factor: Expr, base: Expr) -> bool:
    return factor == base or (isinstance(factor, Pow) and factor.base == base and bool(factor.exp.is_positive))


def slope_of(expr: Expr, variable: Any) -> Expr:
    """The derivative of a function, without jumps that it does not have.

    A jump outside of its own case is not a jump, nor is a sign times a factor that vanishes with its argument.

    Examples
    --------
    >>> from sympy import Abs, Max, Piecewise, Symbol, sign
    >>> x = Symbol("x", real=True)
    >>> slope_of(Piecewise((x, Abs(x) <= 1), (sign(x), True)), x)
    Piecewise((1, Abs(x) <= 1), (0, True))
    >>> slope_of(sign(x) * Max(0, Abs(x) - 1), x)
    Heaviside(Abs(x) - 1)*sign(x)**2
    """
    return _slope_of(expr, variable)


@lru_cache(maxsize=1024)
def _slope_of(expr: Expr, variable: Any) -> Expr:
    """Looked up once: each run of a theory asks the same of its laws."""

    def within(*cases: Any) -> Expr:
        held: list[Any] = []
        before: list[Any] = []
        for value, test in cases:
            rule = {d: S.Zero for d in value.atoms(DiracDelta) if _elsewhere(d.args[0], variable, test, before)}
            held.append((value.xreplace(rule), test))
            before.append(test)
        return Piecewise(*held)

    found = expr.diff(variable)
    if not found.has(DiracDelta):
        return found
    found = found.replace(Piecewise, within)
    return found.xreplace({d: S.Zero for d in found.atoms(DiracDelta) if _is_stilled(found, d, variable)})


def finite_slope(expr: Expr, variable: Any, said: str, supported: str) -> Expr:
    """The derivative of a function that does not jump.

    Raises
    ------
    UnsupportedLaw
        If it jumps, with what is said of that and what is supported.
    """
    found = slope_of(expr, variable)
    if found.has(DiracDelta):
        raise UnsupportedLaw(said, supported, "a steep function, tanh(k*x)")
    return found


def _is_stilled(slope: Expr, jump: Expr, variable: Any) -> bool:
    """Whether what stands before a delta function vanishes where the delta function does not."""
    rule = _where_it_vanishes(jump.args[0], variable)
    mark = Dummy()
    factor = slope.xreplace({jump: mark}).diff(mark)
    return rule is not None and not factor.has(mark) and factor.subs(rule) == 0


def _elsewhere(place: Expr, variable: Any, test: Any, before: list[Any]) -> bool:
    """Whether a case does not hold where an expression, linear in a variable, vanishes."""
    rule = _where_it_vanishes(place, variable)
    if rule is None:
        return False
    return any(t.subs(rule) == S.true for t in before) or test.subs(rule) == S.false


def _where_it_vanishes(place: Expr, variable: Any) -> dict[Any, Expr] | None:
    """The value of a variable at which an expression that is linear in it vanishes."""
    rate = place.diff(variable)
    if rate == 0 or rate.has(variable):
        return None
    return {variable: (variable - place / rate).expand()}
