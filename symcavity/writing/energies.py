"""Energies and forces as people write them: prices beside what they are added to, lowest terms, whole squares."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any

from sympy import Add, Basic, Eq, Expr, Function, Mul, Ne, Piecewise, Pow, S, Sum, cancel, factor_terms, fraction, sqrt

from symcavity.algebra.node import Node, holds
from symcavity.model.averages import Expect
from symcavity.model.quantities import Variable
from symcavity.record.symbols import AtStep

_LONG = 120  # operations in a sum over whose denominators nothing is put
_FEW = 8  # terms of a sum in which a square is looked for


def numerator(total: Expr) -> Expr:
    """The numerator of a rational function, if that has two terms."""
    nodes = {node for node in total.atoms(Function, Node) if not isinstance(node, AtStep)}
    if nodes or not total.is_Add or len(total.args) < 3 or total.count_ops() > _LONG:
        return total
    above = fraction(cancel(total))[0].primitive()[1]
    return above if len(Add.make_args(above)) == 2 else total


def priced(node: Piecewise) -> Expr:
    """What is larger by a price away from one value of a state, as a sum with the bracket of the condition."""
    if len(node.args) != 2 or not isinstance(node.args[0][1], Eq):
        return node
    (low, at), (high, _) = node.args
    if not isinstance(getattr(at.lhs, "family", None), Variable):  # cases of a label are classes
        return node
    price = (high - low).expand()
    if low == 1 or high == 0 or price.count_ops() > high.count_ops():
        return node
    return low + price * Piecewise((S.One, Ne(*at.args)), (S.Zero, True))


def priced_sum(total: Sum) -> Expr:
    """A sum of prices, which SymPy folds, as one over the conditions beside the sum of the rest."""
    priced_body = priced(total.function) if isinstance(total.function, Piecewise) else total.function
    if priced_body == total.function or not isinstance(priced_body, Add | Mul):
        return total
    parts = [term.as_independent(*total.variables, as_Add=False) for term in Add.make_args(priced_body)]
    return Add(*(number * Sum(body, *total.limits) for number, body in parts if body != 1))


def in_lowest_terms(node: Expect) -> Expr:
    """A thermal mean of a quotient without the numbers that both of its sides share."""
    return Expect(factor_terms(node.body))


@lru_cache(maxsize=4096)
def with_squares(node: Any) -> Any:
    """The same with a square for three terms ``a**2 - 2*a*b + b**2`` of a sum, and no number that all divide by."""
    if not isinstance(node, Basic) or not holds(node, (Add,)):
        return node
    args = [with_squares(arg) for arg in node.args]
    node = node.func(*args) if args != list(node.args) else node
    if isinstance(node, Pow) and node.base.is_Add and node.exp.is_Integer:
        number, sum_of = node.base.primitive()
        return number**node.exp * sum_of**node.exp if number.is_Integer else node
    if not isinstance(node, Add) or not 3 <= len(node.args) <= _FEW:
        return node
    for first, mixed, last in permutations(node.args, 3):
        square = _square(first, mixed, last) if mixed**2 == 4 * first * last else None
        if square is not None:
            return with_squares(square + Add(*(t for t in node.args if t not in (first, mixed, last))))
    return node


def _square(first: Expr, mixed: Expr, last: Expr) -> Expr | None:
    """The factor times the square that three terms add up to; None where a root may be of either sign."""
    (c, one), (d, other) = first.as_coeff_Mul(), last.as_coeff_Mul()
    share, ratio = _shared(one, other), sqrt(d / c)
    roots = [_root(part / share) for part in (one, other)]
    if not ratio.is_Rational or None in roots or S.One in roots:
        return None
    a, b = roots
    side = mixed / (2 * c * share * ratio * a * b)
    return c * share * (a + side * ratio * b) ** 2 if side in (1, -1) else None


def _shared(one: Expr, other: Expr) -> Expr:
    """The powers that two products share."""
    mine, its = one.as_powers_dict(), other.as_powers_dict()
    return Mul(*(base ** min(power, its[base]) for base, power in mine.items() if base in its))


def _root(product: Expr) -> Expr | None:
    """The root of a product that is one; None where it may be of either sign."""
    powers = product.as_powers_dict()
    if not all(base.is_positive or (power / 2).is_Integer for base, power in powers.items()):
        return None
    return Mul(*(base ** (power / 2) for base, power in powers.items()))
