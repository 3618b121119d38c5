"""Zeros and signs of expressions, tested at random points: evidence where no proof is found, never a proof of a sign.

Zeros are looked for in arithmetic modulo a prime, which is exact and takes no time; signs in double, with a margin.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Abs, Add, Expr, Piecewise, S, exp, log, sign

PRIME = 2305843009213682039  # of which 2, 3, 5, ... are squares, and -1 is none: one root of a square is a square
_PARTS = 60  # an exponential is a power of as many: so its own roots are powers, too
_TRIES, _POINTS = 4, 8


class _Open(Exception):
    """What has no value here that respects all that SymPy makes of it."""


class _Point:
    """Values of expressions: some square for a symbol, or a function that is not looked into; the first case of all."""

    def __init__(self, seed: int, given: Mapping[Expr, int] | None = None) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - a point, no secret
        self._known: dict[Expr, int] = dict(given or {})
        self._drawn: dict[Expr, int] = {}

    def __call__(self, expr: Expr) -> int:
        """Return the value of an expression."""
        if expr not in self._known:
            self._known[expr] = self._value(expr) % PRIME
        return self._known[expr]

    def _value(self, expr: Any) -> int:
        if expr.is_Rational:
            return int(expr.p) * pow(int(expr.q), -1, PRIME)
        if expr.is_Add:
            return sum(map(self, expr.args))
        if expr.is_Mul:
            product = 1
            for arg in expr.args:
                product = product * self(arg) % PRIME
            return product
        if isinstance(expr, exp) or expr is S.Exp1:
            return self._exponential(expr.as_base_exp()[1].expand())
        if expr.is_Pow and expr.exp.is_Rational and expr.exp.q <= 2:
            value = self(expr.base)
            return _power(_root(value) if expr.exp.q == 2 else value, int(expr.exp.p))
        if isinstance(expr, Piecewise):
            return self(expr.args[0].expr)
        if isinstance(expr, Abs | sign) and expr.args[0].is_Symbol:  # symbols are positive here
            return self(expr.args[0]) if isinstance(expr, Abs) else 1
        wide = expr.expand() if expr.args else expr
        if type(wide) is not type(expr):
            return self(wide)
        if type(expr)._eval_power is not Expr._eval_power:  # noqa: SLF001 - of which powers are something else
            raise _Open
        return self._some(wide) ** 2

    def _exponential(self, power: Expr) -> int:
        product = 1
        for number, rest in (term.as_coeff_Mul() for term in Add.make_args(power)):
            parts = number * _PARTS
            if not parts.is_Integer or rest.has(log):
                raise _Open
            product = product * _power(self._some(exp(rest, evaluate=False)), int(parts)) % PRIME
        return product

    def _some(self, node: Expr) -> int:
        return self._drawn.setdefault(node, self._draw.randrange(2, PRIME))


class _Signed:
    """Values of expressions in double, where all but sums, products, powers and the like has some value of its sign."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - a point, no secret
        self._known: dict[Expr, float] = {}

    def __call__(self, expr: Expr) -> float:
        """Return the value of an expression."""
        if expr not in self._known:
            self._known[expr] = self._value(expr)
        return self._known[expr]

    def _value(self, expr: Any) -> float:
        if expr.is_Rational:
            return float(expr)
        if expr.is_Add:
            terms = [self(arg) for arg in expr.args]
            total = sum(terms)
            if not abs(total) > 1e-9 * sum(map(abs, terms)):
                raise _Open
            return total
        if expr.is_Mul:
            return math.prod(map(self, expr.args))
        if expr.is_Pow and expr.exp.is_Rational:
            if not (value := self(expr.base)) > 0 and not expr.exp.is_Integer:
                raise _Open
            return value ** float(expr.exp)
        if isinstance(expr, Abs | exp):  # what SymPy puts together with its argument, or takes apart
            return (abs if isinstance(expr, Abs) else math.exp)(self(expr.args[0]))
        if expr.is_zero or expr.is_even is not None or not expr.is_commutative:
            raise _Open
        if few := getattr(expr, "few", ()):
            return self(self._draw.choice(few))
        size = float(self._draw.randint(1, 9)) if expr.is_integer else math.exp(self._draw.gauss(0, 1.5))
        if expr.is_extended_nonnegative:
            return size
        return -size if expr.is_extended_nonpositive else size * self._draw.choice((1, -1))


def _power(base: int, power: int) -> int:
    if power < 0 and base == 0:
        raise _Open
    return pow(base, power, PRIME)


def _root(value: int) -> int:
    root = pow(value, (PRIME + 1) // 4, PRIME)
    if root * root % PRIME != value:
        raise _Open
    return root


@lru_cache(maxsize=8192)
def differs(expr: Expr) -> bool:
    """Whether an expression is seen not to be zero: False says nothing."""
    for seed in range(_TRIES):
        try:
            return _Point(seed)(expr) != 0
        except _Open:
            continue
    return False


def bends(expr: Expr, symbol: Expr) -> bool:
    """Whether a rational expression is seen not to be linear in a symbol: False says nothing."""
    for seed in range(_TRIES):
        try:
            low, middle, high = (_Point(seed, {symbol: value})(expr) for value in (2, 3, 4))
        except _Open:
            continue
        return (low + high - 2 * middle) % PRIME != 0
    return False


def takes_both_signs(expr: Expr, positive: Sequence[Expr] = ()) -> bool:
    """Whether an expression is seen to be positive and negative, where some others are positive: False says nothing."""
    seen = set()
    for seed in range(_POINTS):
        point = _Signed(seed)
        try:
            if all(point(p) > 0 for p in positive):
                seen.add(math.copysign(1, point(expr)) if point(expr) else 0)
        except (_Open, ArithmeticError):
            continue
        if {1, -1} <= seen:
            return True
    return False
