"""Rational functions of symbols and of what stays whole, as averages do: put in order, and shortened."""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Dummy, Expr, Function, Mul, Pow, Sum, cancel, collect, conjugate, exp, fraction

from symcavity.algebra.factors import factor, together
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import phi
from symcavity.algebra.polyhedral import CellAverage
from symcavity.algebra.signs import sign_of
from symcavity.algebra.text import text
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity

OPAQUE = (Average, Sum, GaussianAverage, ImplicitAverage, Function)
LARGEST = 600
LARGE = 300  # operations in the argument of a truncated moment that is left as it is


def tidy_arguments(expr: Expr) -> Expr:
    """Multiply out the arguments of phi, pull constants out of averages over sites."""
    if expr.has(conjugate):  # everything is real; of a root in the place of an unknown SymPy does not know it
        expr = expr.replace(conjugate, lambda u: u)
    rule = {}
    for node in expr.atoms(phi):
        wide = node.args[1].expand() if node.args[1].count_ops() < LARGE else node.args[1]
        if wide != node.args[1]:
            rule[node] = phi(node.args[0], wide)
    expr = expr.xreplace(rule) if rule else expr
    return pull_constants(expr)


def pull_constants(expr: Expr) -> Expr:
    """Move factors that do not vary from site to site out of averages and sums over sites."""
    rule: dict[Expr, Expr] = {}
    for node in expr.atoms(Average, Sum):
        # an average inside is a constant here: its quantities are bound
        inner = {a: Dummy("a", real=True) for a in node.args[0].atoms(Average, Sum)}
        body = _tidy_body(node.args[0]).xreplace(inner)
        parts = []
        for term in Add.make_args(body if body.is_Add else _spread(body)):
            constant, rest = term.as_independent(SiteQuantity, as_Add=False)
            if rest == 1:
                parts.append(constant * (1 if isinstance(node, Average) else node.limits[0][2]))
            elif isinstance(node, Average):
                parts.append(constant * Average(rest))
            else:
                parts.append(constant * Sum(rest, *node.limits))
        new = Add(*parts).xreplace({mark: a for a, mark in inner.items()})
        if new != node:
            rule[node] = new
    return expr.xreplace(rule) if rule else expr


def _tidy_body(body: Expr) -> Expr:
    """Factor what varies from site to site, if it is a rational function of moderate size."""
    if body.count_ops() > LARGEST // 4 or body.has(GaussianAverage, ImplicitAverage):
        return body
    masks = Masks()
    return masks.show(joined(masks.hide(body)))


def _spread(body: Expr) -> Expr:
    """Distribute a numerator that is a sum, so that each term has its own constant.

    Exponentials stay whole: the parts of the exponent of a density may each be beyond all numbers.
    """
    bound = body.has(GaussianAverage, ImplicitAverage)  # of which they may hold the variable
    whole = {} if bound else {e: Dummy("e", positive=True) for e in body.atoms(exp)}
    top, bottom = fraction(body.xreplace(whole))
    if not top.is_Add and not any(f.is_Add for f in Mul.make_args(top)):
        return body
    back = {mark: e for e, mark in whole.items()}
    return Add(*(term / bottom for term in Add.make_args(top.expand()))).xreplace(back)


@lru_cache(maxsize=4096)
def size(expr: Expr) -> int:
    """The number of operations, where an average over a polyhedron counts as one symbol."""
    cells = expr.atoms(CellAverage)
    return (expr.xreplace({node: Dummy() for node in cells}) if cells else expr).count_ops()


def shortest(*found: Expr) -> Expr:
    """The expression of the fewest operations, and of those with as many, the one with the shortest text."""
    least = min(map(size, found))
    few = [e for e in found if size(e) == least]
    return min(few, key=lambda e: len(text(e))) if len(few) > 1 else few[0]


@lru_cache(maxsize=1024)
def _mark(number: int, sign: int | None) -> Dummy:
    """The stand-ins are always the same ones, so that what is found of an expression is found once."""
    return Dummy(f"m{number}", **{{1: "positive", -1: "negative"}.get(sign or 0, "real"): True})


class Masks:
    """Stand-ins for what is not rational: functions, averages, fractional powers."""

    def __init__(self) -> None:
        self._marks: dict[Expr, Dummy] = {}

    def hide(self, node: Expr) -> Expr:
        """Replace every opaque node by a symbol of the same sign."""
        if isinstance(node, OPAQUE) or (isinstance(node, Pow) and not node.exp.is_Integer):
            if node not in self._marks:
                self._marks[node] = _mark(len(self._marks), sign_of(node))
            return self._marks[node]
        hidden = [self.hide(arg) for arg in node.args]
        return node.func(*hidden) if any(a is not b for a, b in zip(hidden, node.args, strict=True)) else node

    def show(self, expr: Expr) -> Expr:
        """Put the opaque nodes back."""
        return expr.xreplace({mark: node for node, mark in self._marks.items()})


def joined(expr: Expr) -> Expr:
    """The shorter of an expression and its factored form over a common denominator."""
    joined = together(expr)
    if size(joined) < LARGEST // 4:
        joined = factor(joined)
    top, bottom = fraction(joined)
    if bottom.as_coeff_Add()[0].is_negative or (bottom.is_Add and bottom.could_extract_minus_sign()):
        joined = -top / (-bottom)
    return shortest(expr, joined)


def simplest(expr: Expr) -> Expr:
    """The shortest of an expression, its quotient of two polynomials, and the factors of these."""
    masks = Masks()
    hidden = masks.hide(expr)
    length, symbols = size(hidden), len(hidden.free_symbols)
    if length > 2 * LARGEST or length * symbols > 6 * LARGEST:
        return expr
    return shortest(expr, *(masks.show(short(hidden)) for short in (cancel, factor, _collected)))


def _collected(expr: Expr) -> Expr:
    """The factors of a quotient, in which sums are ordered by the opaque nodes that they hold, each with one factor."""
    marks = sorted(expr.atoms(Dummy), key=str)
    top, bottom = (
        Mul(*(collect(f, marks, factor) if f.is_Add else f for f in Mul.make_args(part)))
        for part in fraction(factor(expr))
    )
    return -top / -bottom if top.could_extract_minus_sign() else top / bottom
