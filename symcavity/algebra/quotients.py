"""Algebraic expressions as quotients of two polynomials, by FLINT: whether one is zero, and without common factors.

To expand a sum of quotients takes a number of terms that grows exponentially with the number of its denominators. Here
every subexpression is one quotient in lowest terms, with functions and roots for symbols; a root obeys its equation.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from math import lcm
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx
from sympy import Add, Expr, Integer, Mul, Pow, Rational, cancel, default_sort_key

_MOST_TERMS = 20_000
_HIGHEST = 64  # power of a sum

Quotient = tuple[Any, Any]


class _NoQuotient(Exception):
    """The expression is not a quotient of polynomials, or too large a one."""


def vanishes(expr: Expr) -> bool:
    """Whether an expression is proved to be zero for all values of its symbols: False says nothing."""
    try:
        return bool(_Quotients(expr).top_of(expr) == 0)
    except _NoQuotient:
        return False


def cancelled(expr: Expr) -> Expr:
    """Return an expression as a quotient without common factors; as SymPy cancels it where it is too large a one."""
    try:
        return _Quotients(expr).lowest(expr)
    except _NoQuotient:
        return cancel(expr)


class _Quotients:
    """Expressions as quotients of polynomials in one ring: that of the symbols, functions and roots in one of them."""

    def __init__(self, expr: Expr) -> None:
        self._roots: dict[Expr, int] = {}
        self._collect(expr)
        # a root of a sum stands before all that its base holds: it is replaced first
        self._names = sorted(self._roots, key=lambda base: (-base.count_ops(), default_sort_key(base)))
        ring = fmpq_mpoly_ctx.get([f"x{k}" for k in range(len(self._names))], Ordering.lex)
        self._gens = dict(zip(self._names, ring.gens(), strict=True))
        self._one = ring.constant(1)
        self._known: dict[Expr, Quotient] = {}

    def _collect(self, expr: Expr) -> None:
        """Note what stands for a symbol, and of which root."""
        if isinstance(expr, Pow) and expr.exp.is_Rational:
            if not expr.exp.is_Integer:
                self._roots[expr.base] = lcm(self._roots.get(expr.base, 1), int(expr.exp.q))
            self._collect(expr.base)
        elif isinstance(expr, Add | Mul):
            for arg in expr.args:
                self._collect(arg)
        elif not expr.is_Rational:
            self._roots.setdefault(expr, 1)

    def lowest(self, expr: Expr) -> Expr:
        """Return an expression as one quotient."""
        top, bottom = self(expr)
        if bottom == 0:
            raise _NoQuotient
        above, below = self._read(top), self._read(bottom)
        content, above = above.primitive()
        other, below = below.primitive()
        return content / other * above / below

    def _read(self, polynomial: Any) -> Expr:
        names = [(base, Integer(self._roots[base])) for base in self._names]
        return Add(
            *(
                Mul(
                    Rational(int(c.p), int(c.q)),
                    *(base ** (int(n) / root) for (base, root), n in zip(names, powers, strict=True)),
                )
                for powers, c in polynomial.to_dict().items()
            )
        )

    def top_of(self, expr: Expr) -> Any:
        """Return the numerator of an expression, in which each root stands to powers below its own."""
        top, _ = self(expr)
        for k, base in enumerate(self._names):
            if isinstance(base, Add | Mul | Pow) or base.is_Rational:
                top, _ = self._reduced(top, k, base)
        return top

    def _reduced(self, top: Any, place: int, base: Expr) -> Quotient:
        """Put ``base`` for what its root is to its power."""
        by_power: dict[int, dict[tuple[int, ...], Any]] = {}
        for powers, coefficient in top.to_dict().items():
            whole, rest = divmod(int(powers[place]), self._roots[base])
            by_power.setdefault(whole, {})[(*powers[:place], rest, *powers[place + 1 :])] = coefficient
        ring = self._one.context()
        parts = [_product((ring.from_dict(part), self._one), _power(self(base), n)) for n, part in by_power.items()]
        return self._sum(parts)

    def __call__(self, expr: Expr) -> Quotient:
        """Return a quotient in lowest terms."""
        if expr not in self._known:
            self._known[expr] = self._value(expr)
            if max(map(len, self._known[expr])) > _MOST_TERMS:
                raise _NoQuotient
        return self._known[expr]

    def _value(self, expr: Expr) -> Quotient:
        if expr.is_Rational:
            return self._one * fmpq(int(expr.p), int(expr.q)), self._one
        if isinstance(expr, Add):
            return self._sum(map(self, expr.args))
        if isinstance(expr, Mul):
            return reduce(_product, map(self, expr.args))
        if not (isinstance(expr, Pow) and expr.exp.is_Rational):
            return self._gens[expr] ** self._roots[expr], self._one
        if expr.exp.is_Integer:
            return _power(self(expr.base), int(expr.exp))
        root = self._gens[expr.base], self._one
        return _power(root, int(expr.exp * self._roots[expr.base]))

    def _sum(self, terms: Iterable[Quotient]) -> Quotient:
        top, bottom = self._one * 0, self._one
        for a, b in terms:
            common = bottom.gcd(b)
            left, right = b // common, bottom // common
            top, bottom = top * left + a * right, bottom * left
            if len(top) > _MOST_TERMS:
                raise _NoQuotient
        common = top.gcd(bottom)
        return top // common, bottom // common


def _product(left: Quotient, right: Quotient) -> Quotient:
    (a, b), (c, d) = left, right
    if a == 0 or c == 0:
        return a * c, b.context().constant(1)
    one, other = a.gcd(d), c.gcd(b)
    return (a // one) * (c // other), (b // other) * (d // one)


def _power(base: Quotient, power: int) -> Quotient:
    top, bottom = base if power >= 0 else base[::-1]
    if bottom == 0 or (abs(power) > _HIGHEST and max(len(top), len(bottom)) > 1):
        raise _NoQuotient
    return top ** abs(power), bottom ** abs(power)
