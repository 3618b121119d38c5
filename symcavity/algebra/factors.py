"""Factors of polynomials, by FLINT: the same in every session, in any number of symbols.

SymPy factors a polynomial in several symbols at points that it draws from one generator of the whole process: with
unlucky points that takes minutes or does not end, and the same call is quick in one session and hangs in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from math import lcm
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx, fmpz_mpoly_ctx
from sympy import Add, Expr, Integer, Mul, Rational, S, default_sort_key, gcd_terms, sympify
from sympy.core.exprtools import decompose_power
from sympy.core.mul import _keep_coeff
from sympy.polys.polyerrors import GeneratorsNeeded, PolynomialError
from sympy.polys.polyutils import dict_from_expr

Powers = list[tuple[Expr, Expr]]


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
def factor_list(expr: Expr) -> tuple[Expr, Sequence[tuple[Expr, Expr]]]:
    """Return the constant of a polynomial, and its factors with their powers.

    Raises
    ------
    PolynomialError
        For a quotient.
    """
    constant, powers = _split(expr)
    if any(power.is_Rational and power < 0 for _, power in powers):
        raise PolynomialError(f"{expr} is not a polynomial.")
    return constant, powers


@lru_cache(maxsize=4096)
def factor(expr: Expr) -> Expr:
    """Return an expression as a product of factors, over one denominator."""
    constant, powers = _split(expr)
    return _keep_coeff(constant, _product(powers))


def _product(powers: Powers) -> Expr:
    return Mul(*(base**power for base, power in powers))


def _split(expr: Expr) -> tuple[Expr, Powers]:
    constant: Expr = S.One
    out: Powers = []
    for part in Mul.make_args(together(sympify(expr))):
        base, power = part.as_base_exp()
        if part.is_Number:
            constant *= part
        elif base.is_number:
            out.append((base, power))
        else:
            content, found = _of_polynomial(base)
            if power.is_integer:
                constant *= content**power if power.is_Integer else 1
                out += [(content, power)] if not power.is_Integer and content != 1 else []
                out += [(f, n * power) for f, n in found]
            else:  # a root is split where its factors are positive
                found = [(content, S.One), *found]
                out += [(f, n * power) for f, n in found if f.is_positive and f != 1]
                rest = [(f, n) for f, n in found if not f.is_positive]
                out += [(_product(rest), power)] if rest else []
    return constant, out


def _multiplied_out(expr: Expr) -> tuple[dict[tuple[int, ...], Expr], list[Expr]] | None:
    """The coefficients of a polynomial in symbols by their powers, and the symbols; None of any other expression."""
    symbols = sorted(expr.free_symbols, key=default_sort_key)
    ring = fmpq_mpoly_ctx.get([f"x{k}" for k in range(len(symbols))], Ordering.lex)
    known = dict(zip(symbols, ring.gens(), strict=True))

    def read(part: Expr) -> Any:
        if part not in known:
            known[part] = made(part)
        return known[part]

    def made(part: Expr) -> Any:
        if part.is_Rational:
            return ring.constant(fmpq(int(part.p), int(part.q)))
        if part.is_Pow and part.exp.is_Integer and part.exp > 0:
            return None if (base := read(part.base)) is None else base ** int(part.exp)
        rows = list(map(read, part.args)) if part.is_Add or part.is_Mul else []
        if not rows or any(row is None for row in rows):
            return None
        return reduce(lambda a, b: a + b if part.is_Add else a * b, rows)

    found = read(expr)
    if found is None or found.is_zero():
        return None
    return {tuple(powers): Rational(int(c.p), int(c.q)) for powers, c in found.to_dict().items()}, symbols


def _of_polynomial(expr: Expr) -> tuple[Expr, Powers]:
    """The content and the irreducible factors of what holds no quotient, with functions and roots for symbols."""
    if not (expr.is_Add or expr.is_Mul):
        return S.One, [(expr, S.One)]
    try:
        terms, symbols = _multiplied_out(expr) or dict_from_expr(expr)
    except GeneratorsNeeded:
        return S.One, [(expr, S.One)]
    if not all(c.is_Rational for c in terms.values()):
        return S.One, [(expr, S.One)]
    order = sorted(range(len(symbols)), key=lambda k: default_sort_key(symbols[k]))
    below = lcm(*(int(c.q) for c in terms.values()))
    ring = fmpz_mpoly_ctx.get([f"x{k}" for k in range(len(symbols))], Ordering.lex)
    whole = {tuple(powers[k] for k in order): int(c * below) for powers, c in terms.items()}
    content, factors = ring.from_dict(whole).factor()

    def read(factor: Any) -> Expr:
        return Add(*(Mul(Integer(int(c)), *(symbols[k] ** int(n) for k, n in zip(order, powers, strict=True)))
                     for powers, c in factor.to_dict().items()))

    return Integer(int(content)) / below, [(read(f), Integer(n)) for f, n in factors]
