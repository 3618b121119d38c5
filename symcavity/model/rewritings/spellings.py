"""Functions that have several spellings, in one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

from sympy import (
    Abs,
    Add,
    Basic,
    Eq,
    Expr,
    GreaterThan,
    Heaviside,
    KroneckerDelta,
    LessThan,
    Max,
    Min,
    Mul,
    Ne,
    Piecewise,
    Pow,
    Rational,
    S,
    Sum,
    cancel,
    cosh,
    exp,
    expand_mul,
    sign,
    sinh,
)
from sympy.core.relational import Relational

from symcavity.model.kinds import Kind, SiteIndex
from symcavity.model.quantities import Field, Global, Variable, site_quantities
from symcavity.model.ranges import RELATIONS
from symcavity.model.rewriting import Declaration, Rewriting, sides, with_sides
from symcavity.model.site_sums import expand_components, kind_of_sum, outer_sums


class Spellings(Rewriting):
    """``u/Abs(u)`` is ``sign(u)``, ``cosh(u) + sinh(u)`` is ``exp(u)``, ``v + Abs(v)`` the positive part of 2 v.

    The larger of u and -u, also by cases, is the size of u, and so are ``u*sign(u)`` and ``sqrt(u**2)``.

    ``KroneckerDelta(w[i], 0)`` is a case, as is the step of a size, ``Heaviside(Abs(w[i]))``.

    Sums over components in a constraint are written out; a bound on the length of a vector of one site is one on its
    square.  A global variable that bounds a size is never
    negative, ``Abs(w[i]) <= M``: it is declared so.
    """

    key = "spellings"

    def __init__(self, declaration: Declaration) -> None:
        self._sizes = {g: Global(g.name, nonnegative=True) for g in _sizes(declaration.entries)}

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration in one spelling, without bounds that say of a size that it is not negative."""
        spelt = declaration.mapped(
            lambda entry: with_sides(entry, _squared(entry, [self._side(entry, s) for s in sides(entry)]))
            if isinstance(entry, Basic)
            else entry
        )
        said = zip(spelt.entries, declaration.entries, strict=True)
        return replace(spelt, entries=tuple(new for new, old in said if new is not S.true or old is S.true))

    def _side(self, entry: Basic, side: Expr) -> Expr:
        """A side of a constraint with its sums over components written out; of another entry, as it is."""
        if isinstance(entry, Relational):
            own = [s for s in outer_sums(side) if not any(map(kind_of_sum, s.limits))]
            side = side.xreplace({s: expand_components(s, f"the constraint {entry}") for s in own})
        return self.observable(side)

    def observable(self, expr: Expr, _kind: Kind | None = None) -> Expr:
        """Return an observable in the same spelling."""
        return _spelt(expr.xreplace(self._sizes))


def _sizes(entries: Iterable[Any]) -> list[Global]:
    """The global variables that bounds keep from being negative: by one of a size, or by two of both signs.

    These two are of a site, whose law then has one order of branches.  Where two on sums meet, a third bound that they
    imply would leave their multipliers open.
    """
    bounds = [b for e in entries if isinstance(e, LessThan | GreaterThan) for b in _apart(e.gts - e.lts)]
    own = [b for b in bounds if any(isinstance(s, SiteIndex) for s in b.free_symbols)]
    found = []
    for total in (*bounds, *(_without_states(*pair) for pair in combinations(own, 2))):
        for g in sorted(total.atoms(Global), key=str):
            factor = total.coeff(g)
            rest = (total - factor * g).expand()
            if factor.is_positive and rest.is_nonpositive and not rest.has(Global) and g.is_nonnegative is None:
                found.append(g)
    return found


def _apart(bound: Expr) -> list[Expr]:
    """The bounds that one on the largest or the smallest of several is: ``b - Max(u, v) >= 0`` holds for both."""
    for kink in sorted(bound.atoms(Max, Min), key=str):
        factor = bound.coeff(kink)
        if factor.is_negative if isinstance(kink, Max) else factor.is_positive:
            return [b for a in kink.args for b in _apart(bound.xreplace({kink: a}))]
    return [bound]


def _without_states(one: Expr, other: Expr) -> Expr:
    """The sum of two bounds in which states cancel, where they stand in them in proportion and with opposite signs."""
    parts = [_terms(bound) for bound in (one, other)]
    first, second = (part.as_independent(*site_quantities(part, Variable, Field))[1] for part in parts)
    ratio = cancel(second / first) if first != 0 else S.Zero
    return parts[1] - _terms(ratio * parts[0]) if ratio.is_negative else S.Zero


def _terms(bound: Expr) -> Expr:
    """A bound with its products of sums multiplied out, and the sums over sites as they are."""
    return Add(*(expand_mul(t, deep=False) for t in Add.make_args(bound)))


def _squared(entry: Basic, parts: list[Expr]) -> list[Expr]:
    """The sides of a bound on the length of a vector of one site, by what is not negative: as a bound on its square."""
    if not isinstance(entry, LessThan | GreaterThan):
        return parts
    length, bound = parts if isinstance(entry, LessThan) else parts[::-1]
    root = isinstance(length, Pow) and length.exp == Rational(1, 2) and length.base.is_Add
    if not root or not bound.is_nonnegative or bound.has(Sum, Variable) or length.base.has(Sum):
        return parts
    squares = [length.base, bound**2]
    return squares if isinstance(entry, LessThan) else squares[::-1]


def _spelt(expr: Expr) -> Expr:
    for delta in expr.atoms(KroneckerDelta):  # one of states is a case: two real numbers are seldom equal
        if delta.has(Variable):
            expr = expr.xreplace({delta: Piecewise((S.One, Eq(*delta.args)), (S.Zero, True))})
    for step in expr.atoms(Heaviside, sign):  # of what is not negative it tells where this vanishes
        if step.args[0].is_nonnegative and step.has(Variable):
            base, power = step.args[0].as_base_exp()
            size = base if power.is_positive else step.args[0]
            inner = size.args[0] if isinstance(size, Abs) else size
            at_zero = S.Zero if isinstance(step, sign) else step.args[1]
            expr = expr.xreplace({step: Piecewise((S.One, Ne(inner, 0)), (at_zero, True))})
    if expr.has(Max, Min):
        expr = expr.replace(lambda e: isinstance(e, Max | Min) and len(e.args) > 2, _on_the_hull)
    if expr.has(Max, Piecewise, Pow):
        expr = expr.replace(lambda e: isinstance(e, Max | Piecewise | Pow) and _size(e) is not None, _size)
    if expr.has(Abs, sign):
        expr = expr.replace(lambda e: isinstance(e, Mul) and e.has(Abs, sign), _signs)
        expr = expr.replace(lambda e: e.is_Add and e.has(Abs), _positive_parts)
    if expr.has(cosh) and expr.has(sinh):
        expr = expr.replace(lambda e: e.is_Add and _is_hyperbolic(e), _exponentials)
    return expr


def _size(larger: Max | Piecewise | Pow) -> Expr | None:
    """The size of u for the larger of u and -u, also by cases, and for the root of its square; None for others."""
    if isinstance(larger, Pow):
        square = larger.base
        is_size = larger.exp == Rational(1, 2) and isinstance(square, Pow) and square.exp == 2
        return Abs(square.base) if is_size else None
    if isinstance(larger, Max):
        return Abs(larger.args[0]) if len(larger.args) == 2 and larger.args[0] == -larger.args[1] else None
    if len(larger.args) != 2 or larger.args[0][0] != -larger.args[1][0]:
        return None
    value, case = larger.args[0]
    ratio = cancel((case.gts - case.lts) / value) if isinstance(case, RELATIONS) else S.Zero
    return Abs(value) if ratio.is_number and ratio.is_positive else None


def _on_the_hull(kink: Max | Min) -> Expr:
    """The largest or smallest of numbers times one combination of states, without those that no state needs.

    Of ``Max(0, r, 2*r)`` the r is never the largest; a bound for it would have a multiplier that nothing determines.
    """
    way = 1 if isinstance(kink, Max) else -1
    first = kink.args[0]
    gaps = [(a - first).expand(deep=False) for a in kink.args]
    parts = [gap.as_independent(*site_quantities(gap), as_Add=True)[::-1] for gap in gaps]
    unit = next((moving for moving, _ in parts if moving != 0), S.One)
    lines = [(cancel(moving / unit), still) for moving, still in parts]
    if not all(e.is_Rational for line in lines for e in line):
        return kink
    hull: list[tuple[Expr, Expr, Expr]] = []
    for (slope, start), arg in sorted(zip(lines, kink.args, strict=True), key=lambda row: (row[0][0], way * row[0][1])):
        while hull and (hull[-1][0] == slope or (len(hull) > 1 and _is_below(hull[-2], hull[-1], (slope, start), way))):
            hull.pop()
        hull.append((slope, start, arg))
    return kink.func(*(arg for *_, arg in hull))


def _is_below(left: Any, line: Any, right: Any, way: int) -> bool:
    """Whether a line is nowhere beyond two others, of which one is less steep and one steeper."""
    share = (right[0] - line[0]) / (right[0] - left[0])
    return bool(way * (share * left[1] + (1 - share) * right[1] - line[1]) >= 0)


def _signs(product: Mul) -> Expr:
    """A product in which what is divided by its own size is its sign, and what is multiplied by its sign its size."""
    for factor in product.args:
        if isinstance(factor, sign):
            field = factor.args[0]
            for side, same in ((1, field), (-1, -field)):
                if same in product.args:
                    rest = Mul(*(f for f in product.args if f not in (factor, same)))
                    return _signs_of(side * rest * Abs(field))
        base, power = factor.as_base_exp()
        if isinstance(base, Abs) and power.is_Integer and power < 0:
            u = base.args[0]
            own = next((f for f in product.args if f.as_base_exp()[0] in (u, -u) and f.as_base_exp()[1] == 1), None)
            square = next((f for f in product.args if f.as_base_exp() in ((u, 2), (-u, 2))), None)
            if square is not None and power == -1:
                return _signs_of(Mul(*(f for f in product.args if f not in (factor, square)), base))
            if own is not None:
                rest = Mul(*(f for f in product.args if f not in (factor, own)))
                return _signs_of(rest * sign(own) * Pow(base, power + 1))
    return product


def _signs_of(expr: Expr) -> Expr:
    return _signs(expr) if isinstance(expr, Mul) else expr


def _positive_parts(total: Expr) -> Expr:
    """A sum with ``2*Max(0, v)`` for ``v + Abs(v)``, where v has kinks of its own: it is then convex term by term."""
    for term in total.args:
        factor, size = term.as_independent(Abs, as_Add=False)
        if not isinstance(size, Abs) or not size.args[0].has(Abs, Max):
            continue
        for v in (size.args[0], -size.args[0]):
            beside = Add.make_args(expand_mul(factor * v))
            if set(beside) <= set(total.args):
                rest = (t for t in total.args if t != term and t not in beside)
                return _parts_of(Add(*rest, 2 * factor * Max(0, v)))
    return total


def _parts_of(expr: Expr) -> Expr:
    return _positive_parts(expr) if expr.is_Add else expr


def _is_hyperbolic(total: Expr) -> bool:
    """Whether both hyperbolic functions of one argument stand in the terms of a sum."""
    factors = [f for term in total.args for f in Mul.make_args(term)]
    found = ({f.args[0] for f in factors if isinstance(f, kind)} for kind in (cosh, sinh))
    return bool(set.intersection(*found))


def _exponentials(total: Expr) -> Expr:
    found = total.replace(cosh, lambda u: (exp(u) + exp(-u)) / 2)
    return expand_mul(found.replace(sinh, lambda u: (exp(u) - exp(-u)) / 2))
