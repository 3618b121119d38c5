"""Piecewise polynomials of one real variable with symbolic breaks: the normal form of a branched law."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

from sympy import (
    Abs,
    Add,
    And,
    Dummy,
    Expr,
    Heaviside,
    Integer,
    Max,
    Min,
    Mul,
    Not,
    Or,
    Piecewise,
    Poly,
    Pow,
    S,
    Symbol,
    fraction,
    sign,
    sqrt,
    sympify,
)
from sympy.core.relational import Eq, Ge, Gt, Le, Lt, Ne, Relational
from sympy.logic.boolalg import ITE, Boolean, BooleanFalse, BooleanTrue

from symcavity.algebra.coefficients import Coefficients, add, as_expression, stripped, times, to_power
from symcavity.algebra.factors import factor, factor_list, together
from symcavity.algebra.real_names import RealNames
from symcavity.algebra.signs import NotPiecewisePolynomial, OpenSlope, Signs, Undetermined, bare, sign_of, tidy

"""A polynomial by its coefficients, lowest first, none of them a provable zero at the top."""

BRANCHING = (Max, Min, Abs, sign, Heaviside, Piecewise)


# -- polynomials by their coefficients --------------------------------------------------------------


# -- functions that are constant in shape between breaks ---------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """Any values on the intervals between sorted breaks: polynomials, signs or truth values."""

    breaks: tuple[Expr, ...]
    values: tuple[Any, ...]

    def intervals(self) -> list[tuple[Expr | None, Expr | None, Any]]:
        """Both ends of each interval, None where it is unbounded, with its value."""
        ends: tuple[Expr | None, ...] = (None, *self.breaks, None)
        return [(ends[k], ends[k + 1], value) for k, value in enumerate(self.values)]

    def pruned(self) -> Pieces:
        """Without the breaks at which nothing changes."""
        breaks, values = [], [self.values[0]]
        for t, value in zip(self.breaks, self.values[1:], strict=True):
            if value != values[-1]:
                breaks.append(t)
                values.append(value)
        return Pieces(tuple(breaks), tuple(values))


def _merge(signs: Signs, function: Callable[..., Any], *parts: Pieces) -> Pieces:
    """Apply a function region by region, on the common refinement of all breaks."""
    breaks: list[Expr] = []
    rows: list[tuple[Any, ...]] = [()]
    for part in parts:
        left, right = breaks, list(part.breaks)
        i = j = 0
        merged: list[Expr] = []
        fresh = [(*rows[0], part.values[0])]
        while i < len(left) or j < len(right):
            if i == len(left):
                order = 1
            elif j == len(right) or left[i] == right[j]:
                order = -1 if j == len(right) else 0
            else:
                order = signs.sign(left[i] - right[j], "order")
            merged.append(left[i] if order <= 0 else right[j])
            i += order <= 0
            j += order >= 0
            fresh.append((*rows[i], part.values[j]))
        breaks, rows = merged, fresh
    return Pieces(tuple(breaks), tuple(function(*row) for row in rows)).pruned()


def _sign_pieces(d: Pieces, signs: Signs) -> Pieces:
    """Return the sign of a piecewise polynomial, region by region (single points are left out)."""
    breaks: list[Expr] = []
    values: list[int] = []
    for low, high, polynomial in d.intervals():
        inner, inner_values = _polynomial_signs(polynomial, low, high, signs)
        if low is not None:
            breaks.append(low)
        breaks.extend(inner)
        values.extend(inner_values)
    return Pieces(tuple(breaks), tuple(values)).pruned()


def _polynomial_signs(
    p: Coefficients, low: Expr | None, high: Expr | None, signs: Signs
) -> tuple[list[Expr], list[int]]:
    """Return the sign changes of a polynomial inside an open interval, and the signs between them."""
    while p:  # inside a case that assumes it, a coefficient may be zero
        try:
            lead = signs.sign(p[-1], "constant" if len(p) == 1 else "slope")
        except Undetermined:
            if len(p) == 1 or signs.reflect is not None or len(p) % 2:
                raise
            raise OpenSlope(p[-1]) from None
        if lead:
            break
        p = p[:-1]
    if not p:
        return [], [0]
    if len(p) == 1:
        return [], [lead]
    roots = _real_roots(p, lead, signs)
    inside: list[Expr] = []
    below = 0  # the number of roots at or left of the interval
    for root in roots:
        if low is not None and (root == low or signs.sign(root - low, "order") <= 0):
            below += 1
        elif high is None or (root != high and signs.sign(root - high, "order") < 0):
            inside.append(root)
    start = lead * (-1) ** (len(roots) - below)
    return inside, [start * (-1) ** k for k in range(len(inside) + 1)]


def _real_roots(p: Coefficients, lead: int, signs: Signs) -> list[Expr]:
    """Return the places where a polynomial changes its sign, sorted."""
    inverse = 1 / p[-1] if signs.s is None else signs.tidy(_inverse(p[-1], signs))
    if len(p) == 2:
        return [tidy(signs.tidy(-p[0] * inverse))]
    if len(p) == 3:
        c, b, a = p
        gap = tidy(signs.tidy(b * b - 4 * a * c))
        if gap == 0 or signs.sign(gap, "constant") <= 0:
            return []
        if signs.s is not None:
            gap = signs.restore(gap)
        root = sqrt(factor(gap)) if gap.has(Add) else sqrt(gap)
        return [tidy(signs.tidy((-b + side * lead * root) * inverse / 2)) for side in (-1, 1)]
    z = Dummy("z", real=True)
    _, factors = factor_list(fraction(together(as_expression(p, z)))[0])
    found: list[Expr] = []
    for one, multiplicity in factors:
        coefficients = tuple(reversed(Poly(one, z).all_coeffs()))
        if multiplicity % 2 == 0 or len(coefficients) < 2:
            continue
        if len(coefficients) > 3:
            raise NotPiecewisePolynomial(
                f"A branch that switches at the roots of a polynomial of degree {len(coefficients) - 1}.",
                "switching points that are roots of factors of degree one or two.",
            )
        steps = Pieces((), (0,))
        for root in _real_roots(coefficients, signs.sign(coefficients[-1], "slope"), signs):
            steps = _merge(signs, operator.add, steps, Pieces((root,), (0, 1)))
        merged = Pieces(tuple(found), tuple(range(len(found) + 1)))
        found = list(_merge(signs, lambda a, b: (a, b), merged, steps).breaks)
    return found


def _inverse(expr: Expr, signs: Signs) -> Expr:
    rest, odd = signs.split(expr)
    if rest == 0:
        return signs.s / odd
    if odd == 0:
        return 1 / rest
    return (rest - odd * signs.s) / (rest**2 - odd**2)


# -- from expressions --------------------------------------------------------------------------------


class Builder:
    """Bring an expression to the normal form, with the signs that are known."""

    def __init__(self, z: Symbol, signs: Signs) -> None:
        self.z, self.signs = z, signs

    def build(self, expr: Expr) -> Pieces:
        """The pieces of an expression."""
        if not expr.has(self.z):
            return Pieces((), (stripped([expr], self.signs),))
        if expr == self.z:
            return Pieces((), ((S.Zero, S.One if self.signs.s is None else self.signs.s),))
        signs = self.signs
        if isinstance(expr, Add):
            terms = self._all(expr.args)
            return _merge(signs, lambda *ps: reduce(lambda p, q: add(p, q, signs), ps), *terms)
        if isinstance(expr, Mul):
            fixed, moving = expr.as_independent(self.z, as_Add=False)
            parts = self._all(Mul.make_args(moving))
            scale = stripped([fixed], signs)
            return _merge(signs, lambda *ps: reduce(lambda p, q: times(p, q, signs), ps, scale), *parts)
        if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp > 0:
            count = int(expr.exp)
            return _merge(signs, lambda p: to_power(p, count, signs), self.build(expr.base))
        if isinstance(expr, Max | Min):
            return self._extreme(expr)
        if isinstance(expr, Abs):
            return self._by_sign(expr.args[0], lambda p, s: times((Integer(s),), p, signs) if s else ())
        if isinstance(expr, sign):
            return self._by_sign(expr.args[0], lambda _, s: (Integer(s),) if s else ())
        if isinstance(expr, Heaviside):
            middle = expr.args[1]
            values = {1: (S.One,), -1: (), 0: stripped([middle], signs)}
            return self._by_sign(expr.args[0], lambda _, s: values[s])
        if isinstance(expr, Piecewise):
            return self._piecewise(expr)
        return self._of_constants(expr)

    def _all(self, args: Iterable[Expr]) -> list[Pieces]:
        return [self.build(arg) for arg in args]

    def _by_sign(self, argument: Expr, function: Callable[[Coefficients, int], Coefficients]) -> Pieces:
        d = self.build(argument)
        return _merge(self.signs, function, d, _sign_pieces(d, self.signs))

    def _extreme(self, expr: Expr) -> Pieces:
        wanted = 1 if isinstance(expr, Max) else -1
        signs = self.signs
        # the arguments that do not move are one constant: Max(a, b, z) = Max(Max(a, b), z)
        fixed = [arg for arg in expr.args if not arg.has(self.z)]
        moving = [arg for arg in expr.args if arg.has(self.z)]
        parts = self._all(([expr.func(*fixed)] if fixed else []) + moving)
        best = parts[0]
        for other in parts[1:]:
            d = _merge(signs, lambda p, q: add(p, times((S.NegativeOne,), q, signs), signs), other, best)
            switch = _sign_pieces(d, signs)
            best = _merge(signs, lambda p, q, s: q if s == wanted else p, best, other, switch)
        return best

    def _piecewise(self, expr: Expr) -> Pieces:
        conditions = [self.condition(c) for _, c in expr.args]
        choice = _merge(self.signs, lambda *flags: flags.index(True) if True in flags else None, *conditions)
        if None in choice.values:
            raise NotPiecewisePolynomial(f"{expr} has a gap.", "a last branch (expr, True).")
        used = sorted(set(choice.values))
        parts = self._all([expr.args[k][0] for k in used])
        return _merge(self.signs, lambda k, *ps: ps[used.index(k)], choice, *parts)

    def condition(self, test: Boolean) -> Pieces:
        """Return where a condition holds."""
        if isinstance(test, BooleanTrue | BooleanFalse):
            return Pieces((), (bool(test),))
        if isinstance(test, And | Or):
            parts = [self.condition(arg) for arg in test.args]
            together_ = all if isinstance(test, And) else any
            return _merge(self.signs, lambda *flags: together_(flags), *parts)
        if isinstance(test, Not):
            return _merge(self.signs, operator.not_, self.condition(test.args[0]))
        if isinstance(test, ITE):
            test, yes, no = test.args
            return self.condition(Or(And(test, yes), And(Not(test), no)))
        holds = {Gt: (1,), Ge: (0, 1), Lt: (-1,), Le: (-1, 0), Eq: (0,), Ne: (-1, 1)}
        for kind, allowed in holds.items():
            if isinstance(test, kind):
                d = self.build(test.lhs - test.rhs)
                return _merge(self.signs, lambda s, ok=allowed: s in ok, _sign_pieces(d, self.signs))
        raise NotPiecewisePolynomial(f"The condition {test}.", "comparisons, And, Or and Not of them.")

    def _of_constants(self, expr: Expr) -> Pieces:
        """Apply any function to arguments that are constant between the breaks."""
        if expr.args and not isinstance(expr, Relational) and expr.has(*BRANCHING):
            parts = self._all(expr.args)
            if all(len(value) < 2 for part in parts for value in part.values):

                def function(*values: Coefficients) -> Coefficients:
                    out = expr.func(*[value[0] if value else S.Zero for value in values])
                    if out.has(S.ComplexInfinity, S.Infinity, S.NegativeInfinity, S.NaN):
                        raise NotPiecewisePolynomial(f"{expr} is infinite on an interval of {self.z}.")
                    return stripped([out], self.signs)

                return _merge(self.signs, function, *parts)
        raise NotPiecewisePolynomial(
            f"{expr} is not a polynomial in {self.z} between breaks.",
            "sums, products and powers of Max, Min, Abs, sign, Heaviside and Piecewise of polynomials.",
        )


def compose(
    breaks: Sequence[Expr],
    branches: Sequence[Mapping[Symbol, Expr]],
    expr: Expr,
    z: Symbol,
    signs: Signs,
    real: RealNames,
) -> Pieces:
    """Return the pieces of ``expr`` with the branches put in, refined where ``expr`` itself switches."""
    if len(branches) != len(breaks) + 1:
        found = f"{len(breaks)} breaks and {len(branches)} branches."
        raise NotPiecewisePolynomial(found, "one branch more than breaks.")
    ends = [real.forward(sympify(t)) for t in breaks]
    sorted_ends = [(b - a, 1) for a, b in pairwise(ends) if sign_of(b - a) is None]
    known = Signs((*signs.assumed, *sorted_ends), None, signs.weak)
    builder = Builder(real.forward(z), known)
    out_breaks: list[Expr] = []
    values: list[Coefficients] = []
    for k, branch in enumerate(branches):
        low = ends[k - 1] if k else None
        high = ends[k] if k < len(ends) else None
        body = real.forward(sympify(expr).xreplace(dict(branch)))
        try:
            part = builder.build(body)
        except OpenSlope as problem:
            raise Undetermined(bare(problem.coefficient), "slope") from None
        if low is not None:
            out_breaks.append(low)
        start = 0
        inside: list[Expr] = []
        for t in part.breaks:
            if low is not None and (t == low or known.sign(t - low, "order") <= 0):
                start += 1
            elif high is None or (t != high and known.sign(t - high, "order") < 0):
                inside.append(t)
        out_breaks.extend(inside)
        values.extend(part.values[start : start + len(inside) + 1])
    return Pieces(tuple(out_breaks), tuple(values)).pruned()


def to_piecewise_polynomial(
    expr: Expr, z: Symbol, assumed: Sequence[tuple[Expr, int]] = ()
) -> tuple[list[Expr], list[Expr]]:
    """Bring an expression to its normal form as a piecewise polynomial of z.

    Parameters
    ----------
    expr : Expr
        Polynomials in z with Max, Min, Abs, sign, Heaviside and Piecewise, nested in any way.
    z : Symbol
        A real variable.
    assumed : sequence of (Expr, int)
        Signs taken for granted.

    Returns
    -------
    (breaks, pieces)
        Sorted breaks t_1 < ... < t_m, and the m + 1 polynomials from the left. Single points do not count: a value at
        a break is not kept.

    Raises
    ------
    NotPiecewisePolynomial
        If it is not one; Undetermined, its subclass, if the order of two breaks is not known.
    """
    expr = sympify(expr)
    real = RealNames(expr, z, *(known for known, _ in assumed))
    u = real.forward(z)
    signs = Signs([(real.forward(known), its_sign) for known, its_sign in assumed])
    try:
        pieces = Builder(u, signs).build(real.forward(expr))
    except OpenSlope as problem:
        raise Undetermined(real.back(bare(problem.coefficient)), "slope") from None
    except Undetermined as problem:
        raise Undetermined(real.back(problem.expr), problem.kind) from None
    return [real.back(t) for t in pieces.breaks], [real.back(as_expression(p, u)) for p in pieces.values]
