"""Exponentials that would overflow, written so that they do not where the whole has a number.

Every product and power is written as ``exp(E)*rest``, with one exponent.  Of a sum of exponentials the largest exponent
is taken out; logarithms of sums are ``log(exp(a) + exp(b))``, which has a number wherever a and b have one.  What
``tanh(x)**2`` leaves of one is written as a product, which keeps its digits where x is large.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Expr, Function, Mul, Pow, S, cosh, exp, log, sinh, tanh
from sympy.codegen.cfunctions import expm1

from symcavity.algebra.node import holds


class largest(Function):  # noqa: N801 - it is written like the mathematical function it is
    """The largest of some exponents: what is taken out of a sum, and counts as a constant, for it drops out again."""

    def fdiff(self, argindex: int = 1) -> Expr:  # noqa: ARG002 - SymPy's signature
        """Return zero: no value depends on what was taken out."""
        return S.Zero

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(a.is_extended_real for a in self.args) else None


class logistic(Function):  # noqa: N801 - it is written like the mathematical function it is
    """``1/(1 + exp(-x))``."""

    nargs = 1

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the derivative."""
        x = self.args[argindex - 1]
        return logistic(x) * logistic(-x)

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.args[0].is_extended_real else None


class log_sum(Function):  # noqa: N801 - it is written like the mathematical function it is
    """``log(exp(a) + exp(b))``."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return the share of one of the two exponentials."""
        one, other = self.args if argindex == 1 else self.args[::-1]
        return logistic(one - other)

    def _eval_is_extended_real(self) -> bool | None:
        return True if all(a.is_extended_real for a in self.args) else None


def np_largest(*values: Any) -> Any:
    """The largest of some numbers, elementwise; of complex ones that with the largest real part."""
    out = values[0]
    for value in values[1:]:
        out = np.maximum(out, value)
    return out


def np_logistic(x: Any) -> Any:
    """``1/(1 + exp(-x))`` of real or complex numbers."""
    return np.exp(np.minimum(x, 0.0 * x)) / (1.0 + np.exp(np.minimum(x, -x)))


def np_log_sum(a: Any, b: Any) -> Any:
    """``log(exp(a) + exp(b))`` of real or complex numbers."""
    low, high = np.minimum(a, b), np.maximum(a, b)
    return high + np.log1p(np.exp(low - high))


CODE = {"largest": np_largest, "logistic": np_logistic, "log_sum": np_log_sum}
"""The functions of this module in numbers, by the names of their classes."""
_GROWING = (exp, sinh, cosh)
_WRITTEN = (*_GROWING, tanh)


def without_overflow(expr: Any) -> Any:
    """Return an expression whose exponentials overflow only where it does itself.

    Parameters
    ----------
    expr : Expr
        Whatever has no quotients, logarithms or products of sums of exponentials comes back as it is.
    """
    if not isinstance(expr, Expr) or not holds(expr, _WRITTEN) or holds(expr, (largest,)):
        return expr
    return _written(expr)


@lru_cache(maxsize=4096)
def _written(expr: Any) -> Any:
    if not expr.args or not holds(expr, _WRITTEN):
        return expr
    if isinstance(expr, Add) and (product := _complement(expr)) is not None:
        return product
    if isinstance(expr, Mul | Pow) and _asks(expr):
        exponent, rest = _split(expr)
        return _joined(exponent, rest)
    if isinstance(expr, log):
        return _logarithm(expr.args[0])
    args = [_written(a) for a in expr.args]
    return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)


def _complement(total: Expr) -> Expr | None:
    """``c - c*tanh(x)**2`` as a product of two shares; None where a sum is something else."""
    for term in total.args:
        for square in Mul.make_args(term):
            base, power = square.as_base_exp()
            if isinstance(base, tanh) and power == 2 and (left := total - term) == -term / square:
                x = 2 * _written(base.args[0])
                return 4 * _written(left) * logistic(x) * logistic(-x)
    return None


def _asks(expr: Expr) -> bool:
    """Whether a product or a power holds a sum of exponentials that may overflow while the whole does not."""
    factors = Mul.make_args(expr)
    inner = [f for f in factors if _is_sum(f.as_base_exp()[0])]
    below = any(not f.as_base_exp()[1].is_nonnegative for f in inner)
    return below or bool(inner and sum(bool(f.has(exp, sinh, cosh)) for f in factors) > 1)


def _is_sum(expr: Expr) -> bool:
    """Whether this is a sum that holds exponentials, and not inside of other functions."""
    if isinstance(expr, sinh | cosh):
        return True
    terms = expr.args if isinstance(expr, Add) else ()
    return any(_is_exponential(f.as_base_exp()[0]) for t in terms for f in Mul.make_args(t))


def _is_exponential(base: Expr) -> bool:
    return isinstance(base, exp | sinh | cosh) or base is S.Exp1 or _is_sum(base)


def _split(expr: Expr) -> tuple[Expr, Expr]:
    """The exponent and the rest of an expression that is ``exp(exponent)*rest``."""
    if isinstance(expr, exp):
        return _written(expr.args[0]), S.One
    if isinstance(expr, Mul):
        parts = [_split(a) for a in expr.args]
        return Add(*(e for e, _ in parts)), Mul(*(r for _, r in parts))
    if isinstance(expr, Pow) and expr.base is not S.Exp1:
        exponent, rest = _split(expr.base)
        power = _written(expr.exp)
        # what stands inside of functions keeps the form in which it does not overflow
        return (power * exponent).expand(deep=False) if exponent != 0 else S.Zero, rest**power
    if isinstance(expr, sinh | cosh):
        return _scaled(expr)
    if isinstance(expr, Add) and _is_sum(expr):
        return _scaled(expr)
    return S.Zero, _written(expr)


def _exponentials(expr: Expr) -> Expr:
    """A sum with its hyperbolic sines and cosines by exponentials, some of which may cancel."""
    found = expr.atoms(sinh, cosh)
    return expr.xreplace({f: f.rewrite(exp).expand() for f in found}) if found else expr


def _scaled(total: Expr) -> tuple[Expr, Expr]:
    """The largest exponent of a sum, and the sum divided by that exponential."""
    total = _exponentials(total)
    if not isinstance(total, Add):
        return _split(total)
    sums: dict[Expr, Expr] = {}
    for term in total.args:
        exponent, rest = _split(term)
        sums[exponent] = sums.get(exponent, S.Zero) + rest
    if len(sums) == 1:
        return next(iter(sums.items()))
    high = largest(*sorted(sums, key=str))
    numbers = all(rest.is_number for rest in sums.values())
    # factors that add up to zero: the sum vanishes where all exponents are equal
    function = expm1 if numbers and Add(*sums.values()) == 0 else exp
    return high, Add(*(rest * function(exponent - high) for exponent, rest in sums.items()))


def _logarithm(inside: Expr) -> Expr:
    """The logarithm of an expression, of a sum of positive exponentials without the sum."""
    inside = _exponentials(inside) if isinstance(inside, Add | cosh | sinh) else inside
    if not isinstance(inside, Mul | Pow | Add) or not _is_exponential_product(inside):
        return log(_written(inside))
    if isinstance(inside, Add):
        terms = [_split(term) for term in inside.args]
        if all(rest.is_positive and rest.is_number for _, rest in terms):
            exponents = [exponent + log(rest) for exponent, rest in terms]
            out = exponents[0]
            for exponent in exponents[1:]:
                out = log_sum(out, exponent)
            return out
    exponent, rest = _split(inside)
    return exponent + log(rest)


def _is_exponential_product(expr: Expr) -> bool:
    return any(_is_exponential(f.as_base_exp()[0]) for f in Mul.make_args(expr))


def _joined(exponent: Expr, rest: Expr) -> Expr:
    return rest if exponent == 0 else rest * exp(exponent)
