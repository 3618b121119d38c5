"""Factors of polynomials, found in the same way in every session.

SymPy factors a polynomial in several symbols at points that it draws from one generator of the whole process.  With
unlucky points that takes minutes or does not end, so that the same call is quick in one session and hangs in another.
Polynomials in many symbols hardly ever have factors but those that stand in each of their terms: only these are sought.
What is linear in a symbol needs no search at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, reduce
from typing import Any

import sympy
from sympy import QQ, ZZ, Add, Expr, Mul, Poly, S, default_sort_key, factor_terms, gcd_terms, sympify
from sympy.core.exprtools import decompose_power
from sympy.core.mul import _keep_coeff
from sympy.core.random import rng
from sympy.polys.polyerrors import BasePolynomialError
from sympy.polys.rings import PolyRing

MOST_SYMBOLS = 16


@contextmanager
def _same_draws() -> Iterator[None]:
    """Let SymPy draw what it would draw first of all; the session's own sequence goes on afterwards."""
    state = rng.getstate()
    rng.seed(0)
    try:
        yield
    finally:
        rng.setstate(state)


@lru_cache(maxsize=4096)
def together(expr: Expr) -> Expr:
    """Return what SymPy's ``together`` gives, in a fraction of its time, and remember it."""
    return _together(sympify(expr))


def _together(expr: Any) -> Any:
    if expr.is_Atom or expr.is_Function:
        return expr
    if expr.is_Pow:
        return expr.func(_together(expr.base), expr.exp)
    args = [_together(arg) for arg in expr.args]
    return _over_one_denominator(args) if expr.is_Add else expr.func(*args)


def _over_one_denominator(terms: Sequence[Expr]) -> Expr:
    """What SymPy's ``gcd_terms`` gives of terms: in a dictionary, the powers of each of them."""
    coefficients: list[Expr] = []
    powers: list[dict[Expr, int]] = []
    least: dict[Expr, int] = {}
    for term in filter(None, terms):
        coefficient, factors = term.as_coeff_mul()
        found: dict[Expr, int] = {}
        for part in factors:
            base, power = decompose_power(part)
            if base.is_Add:
                content, base = base.primitive()
                coefficient *= content**power
            found[base] = found.get(base, 0) + power
        if not coefficient.is_Rational or not term.is_commutative or any(b.is_Atom and b.is_number for b in found):
            return gcd_terms(terms)
        for base in found.keys() | least.keys():  # a factor that others do not have has been to the power of zero
            least[base] = min(found.get(base, 0), least.get(base, 0 if powers else found.get(base, 0)))
        coefficients.append(coefficient)
        powers.append(found)
    if not powers:
        return S.Zero
    common = reduce(lambda a, b: a.gcd(b), coefficients)
    over = [
        Mul(c / common, *(base ** (p.get(base, 0) - low) for base, low in least.items()))
        for c, p in zip(coefficients, powers, strict=True)
    ]
    content, top = Add(*over).primitive()
    return _keep_coeff(common * content, Mul(*(base**low for base, low in least.items())) * top)


@lru_cache(maxsize=4096)
def factor_list(expr: Expr, *symbols: Any) -> tuple[Expr, Sequence[tuple[Expr, int]]]:
    """Return the constant and the factors of a polynomial, whatever was drawn before."""
    if len(expr.free_symbols) > MOST_SYMBOLS and not symbols:
        constant, rest = factor_terms(expr).as_coeff_Mul()
        powers = [f.as_base_exp() for f in Mul.make_args(rest)]
        return constant, tuple((base, int(power)) for base, power in powers)
    with _same_draws():
        return (None if symbols else _by_a_linear_symbol(expr)) or sympy.factor_list(expr, *symbols)


def _by_a_linear_symbol(expr: Expr) -> tuple[Expr, list[tuple[Expr, int]]] | None:
    """The factors of ``a*x + b``: those of what divides both, and one that cannot be split; None without an x."""
    if not expr.free_symbols or not expr.is_polynomial(*expr.free_symbols):
        return None
    return _of_poly(Poly(expr, *sorted(expr.free_symbols, key=default_sort_key)))


def _of_poly(poly: Poly) -> tuple[Expr, list[tuple[Expr, int]]] | None:
    if poly.domain not in (ZZ, QQ):
        return None
    below, poly = poly.clear_denoms(convert=True)
    whole = PolyRing(poly.gens, ZZ).from_dict(poly.as_dict(native=True))  # most of its powers are zero
    if not (linear := [k for k, degree in enumerate(whole.degrees()) if degree == 1]):
        return None
    k = min(linear, key=lambda k: (sum(powers[k] for powers in whole.itermonoms()), str(poly.gens[k])))
    a = whole.diff(k)
    common = a.gcd(whole - a * whole.ring.gens[k])
    rest = whole.exquo(common)
    if rest.LC < 0:
        common, rest = -common, -rest
    constant, others = factor_list(common.as_expr())
    return constant / below, [*others, (rest.as_expr(), 1)]


@lru_cache(maxsize=4096)
def factor(expr: Expr) -> Expr:
    """Return an expression as a product of factors, whatever was drawn before."""
    if len(expr.free_symbols) > MOST_SYMBOLS:
        return factor_terms(expr)
    with _same_draws():
        found = _by_a_linear_symbol(expr)
        return Mul(found[0], *(f**n for f, n in found[1])) if found else _of_quotient(expr) or sympy.factor(expr)


def _of_quotient(expr: Expr) -> Expr | None:
    """What SymPy's own ``factor`` gives, where each factor over a common denominator is linear in something."""
    constant, out = S.One, []
    for part in Mul.make_args(together(expr)):
        base, power = part.as_base_exp()
        if part.is_Rational:
            constant *= part
            continue
        try:
            found = _of_poly(Poly(base)) if power.is_Integer else None
        except BasePolynomialError:
            return None
        if found is None:
            return None
        constant *= found[0] ** power
        out += [f ** (n * power) for f, n in found[1]]
    return _keep_coeff(constant, Mul(*out))
