"""Differences of exponentials, written as one fraction, so that nothing cancels where they saturate."""

from __future__ import annotations

from sympy import Dummy, Expr, Piecewise, Pow, Rational, S, Symbol, cancel, cosh, exp, igcd, ilcm, sinh, tanh
from sympy.polys.polyerrors import PolynomialError

HIGHEST = 6  # power of an exponential in the fraction


def as_fraction(expr: Expr, x: Symbol) -> Expr:
    """Return an expression as one fraction in ``exp(c*x)``, where it is a rational function of several such powers.

    Parameters
    ----------
    expr : Expr
        Whatever holds x elsewhere, or one exponential only, outside of fractions in fractions, comes back as it is.
    x : Symbol

    Examples
    --------
    >>> x = Symbol("x", real=True)
    >>> as_fraction(1 / (1 + exp(-x)) - 1 / (1 + exp(1 - x)), x).subs(x, 50.0) > 0
    True
    """
    if expr.has(Piecewise):  # each case by itself
        return expr.replace(
            lambda e: isinstance(e, Piecewise),
            lambda cases: Piecewise(*((as_fraction(value, x), condition) for value, condition in cases.args)),
        )
    below = [p.base for p in expr.atoms(Pow) if p.exp.is_negative]
    if any(b.has(tanh) for b in below):  # one that ends at -1 is divided by
        expr = expr.rewrite(tanh, exp)
    if expr.has(sinh) and expr.has(cosh):  # each is a sum of exponentials, of which some may cancel
        expr = expr.rewrite((sinh, cosh), exp)
    found = [e for e in expr.atoms(exp) if e.has(x)]
    rates = [e.args[0].diff(x) for e in found]
    nested = any(p.exp.is_negative and p.has(exp) for b in below for p in b.atoms(Pow))  # 1 - 1/(1 + E) ends at zero
    if len(found) < (1 if nested else 2) or any(rate.has(x) for rate in rates):
        return expr
    ratios = [cancel(rate / rates[0]) for rate in rates]
    if not all(r.is_Rational for r in ratios):
        return expr
    unit = Rational(igcd(*(r.p for r in ratios), 0), ilcm(*(r.q for r in ratios), 1))
    power = Dummy("E", positive=True)
    rule = {
        e: exp(e.args[0].xreplace({x: S.Zero})) * power ** int(r / unit) for e, r in zip(found, ratios, strict=True)
    }
    plain = expr.xreplace(rule)
    if plain.has(x):
        return expr
    try:
        short = cancel(plain)
    except PolynomialError:
        return expr
    top, bottom = short.as_numer_denom()
    if not all(part.is_polynomial(power) and part.as_poly(power).degree() <= HIGHEST for part in (top, bottom)):
        return expr
    return short.xreplace({power: exp(rates[0] * unit * x)})
