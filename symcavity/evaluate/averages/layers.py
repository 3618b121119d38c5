"""Two fields of almost one value: an average over one of them has a layer wherever the other one switches a law.

At a given field ``z`` the average over another field holds ``phi(n, (a - b*z)/s)``, where ``s**2`` is the variance that
``z`` leaves, the difference of two products of variances.  It rises around ``a/b`` within a width ``s/b``.  Panels end
in the middle of each layer and at its two sides, and move with it.  Where both fields are equal, ``s**2`` vanishes, and
what is computed is rounding: then the smallest difference takes its place that these digits tell from zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sympy import Abs, Add, Expr, Function, Mul, Pow, S, Symbol, factor_terms

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.node import holds, unbound
from symcavity.algebra.phi import phi
from symcavity.algebra.tails import log_tail, overhang

WIDTH = 6  # from the middle of a layer to its sides, in units of s/b
ROUNDED = 4  # units of rounding that a difference of two products may be off by
NOISE = 2e-12  # of its terms, which are averages themselves


class remainder(Function):  # noqa: N801 - it is written like the mathematical function it is
    """A difference, and the sum of the moduli of its terms: what rounding leaves of zero is replaced."""

    nargs = 2

    def fdiff(self, argindex: int = 1) -> Expr:
        """Return one for the difference, and zero for its size."""
        return S.One if argindex == 1 else S.Zero

    def _eval_is_extended_real(self) -> bool | None:
        return self.args[0].is_extended_real


def np_remainder(value: Any, size: Any) -> Any:
    """A difference in double, elementwise; what is negative beyond the noise of averages stays so."""
    least = ROUNDED * np.finfo(float).eps * size
    return np.where((value < least) & (value > -NOISE * size), least, value)


def remainder_in(context: Any) -> Any:
    """The same for numbers of an mpmath context."""

    def found(value: Any, size: Any) -> Any:
        least = context.ldexp(ROUNDED * size, -context.prec)
        return least if -NOISE * size < value < least else value

    return found


def with_remainders(expr: Any) -> Any:
    """An expression in whose Gaussian averages roots of differences have numbers where the difference vanishes."""
    if not holds(expr, (GaussianAverage,)):
        return expr
    rule = {}
    for node in expr.atoms(GaussianAverage):
        roots = {e: factor_terms(e.base) for e in node.expr.atoms(Pow) if _is_root(e)}
        found = {e: _with_remainder(base) ** e.exp for e, base in roots.items() if base.has(Add)}
        rule[node] = node.xreplace(found)
    return expr.xreplace(rule)


def _with_remainder(base: Expr) -> Expr:
    """A product with its difference as a remainder: the same for all multiples, for their rounding has to cancel."""
    parts = Mul.make_args(base)
    return Mul(*(remainder(e, Add(*map(Abs, e.args))) if _is_difference(e) else e for e in parts))


def layers(members: Iterable[Any], z: Symbol) -> list[Expr]:
    """The middles of the layers in some averages over one variable, and their sides."""
    found: dict[Expr, None] = {}
    for node in (node for member in members for node in unbound(member.expr, (phi, log_tail, overhang), z)):
        argument = node.args[-1]
        slope = argument.diff(z)
        narrow = Mul(*(1 / a for a in Mul.make_args(slope) if _is_root(a) and isinstance(a.base, remainder)))
        if narrow == 1 or slope.has(z):
            continue
        there = Add(*(term * narrow for term in Add.make_args(argument.xreplace({z: S.Zero}))))
        found |= dict.fromkeys((c * narrow - there) / (slope * narrow) for c in (-WIDTH, 0, WIDTH))
    return list(found)


def _is_root(factor: Expr) -> bool:
    return isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp.q == 2


def _is_difference(expr: Expr) -> bool:
    """Whether an expression is a sum of terms of both signs."""
    return isinstance(expr, Add) and len({term.could_extract_minus_sign() for term in expr.args}) == 2
