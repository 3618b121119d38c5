"""Convexity by rules of composition: what is proved of an expression by how it is put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

from sympy import (
    Abs,
    Add,
    Dummy,
    Eq,
    Expr,
    Max,
    Min,
    Mul,
    Ne,
    Piecewise,
    Poly,
    PolynomialError,
    Pow,
    S,
    Symbol,
    cancel,
    cosh,
    exp,
    hessian,
    log,
)
from sympy.core.relational import Relational

from symcavity.algebra.piecewise import NotPiecewisePolynomial, to_piecewise_polynomial
from symcavity.algebra.quadrature import break_points
from symcavity.algebra.signs import bare, sign_given, weak_sign_of
from symcavity.model.quantities import site_quantities

_MOST_STATES = 6  # in one quadratic form, whose principal minors are looked at one by one


class ProvedShape(NamedTuple):
    """What is proved of an expression, as a function of the states in it; what is not proved is False."""

    convex: bool = False
    concave: bool = False
    nonnegative: bool = False
    nonpositive: bool = False

    @property
    def affine(self) -> bool:
        """Whether it is both."""
        return self.convex and self.concave

    @property
    def turned(self) -> ProvedShape:
        """The form of the negative."""
        return ProvedShape(self.concave, self.convex, self.nonpositive, self.nonnegative)

    @property
    def rising(self) -> bool:
        """Whether an increasing convex function that is even or flat below zero stays convex of it."""
        return self.convex and self.nonnegative


class Rules:
    """The form of expressions in some states.

    Parameters
    ----------
    states : iterable
        What varies; everything else is a constant.
    known : sequence of Expr
        What is not negative beside what the assumptions say.
    held : sequence of Expr
        Affine functions of the states that are not negative where the expressions count.

    Attributes
    ----------
    open : dict
        What decides the signs of constants that were asked for and are not known, where it holds parameters alone.
    """

    def __init__(self, states: Iterable[Any], known: Sequence[Expr] = (), held: Sequence[Expr] = ()) -> None:
        self._states, self._margins, self._held = set(states), tuple(known), tuple(held)
        self._forms: dict[Expr, ProvedShape] = {}
        self.open: dict[Expr, None] = {}

    def __call__(self, expr: Expr) -> ProvedShape:
        """Return what is proved of an expression."""
        if expr not in self._forms:
            self._forms[expr] = self._read(expr)
        return self._forms[expr]

    def _read(self, expr: Expr) -> ProvedShape:
        if not expr.has(*self._states):
            sign = self._sign(expr)
            return ProvedShape(True, True, sign in (0, 1), sign in (0, -1))
        if expr in self._states:
            found = ProvedShape(True, True, bool(expr.is_nonnegative), bool(expr.is_nonpositive))
        else:
            rule = next((rule for kind, rule in self._rules.items() if isinstance(expr, kind)), None)
            found = ProvedShape() if rule is None else rule(self, expr)
        return self._where_held(expr, found) if found.affine and self._held else found

    def _where_held(self, expr: Expr, found: ProvedShape) -> ProvedShape:
        """What is linear, with the sign that it has where the constraints hold: it is one of them, or beyond one."""
        signs = [found.nonnegative, found.nonpositive]
        for held in self._held:
            state = next(s for s in sorted(self._states, key=str) if held.has(s))
            ratio = cancel(expr.diff(state) / held.diff(state))
            rest = (expr - ratio * held).expand()
            sign = None if rest.has(*self._states) else self._sign(ratio)
            if sign in (1, -1) and self._sign(rest) in (0, sign):
                signs[sign == -1] = True
        return ProvedShape(True, True, *signs)

    def _sign(self, constant: Expr) -> int | None:
        """The sign of a constant, zero included; None where it is open."""
        if constant == 0:
            return 0
        sign = weak_sign_of(constant) or sign_given(constant, self._margins)
        if sign is None and not site_quantities(left := bare(constant)):
            self.open[left] = None
        return sign

    def _sum(self, expr: Expr) -> ProvedShape:
        out = self._terms(expr.args)
        if out.convex or out.concave:
            return out
        for kink in (t for term in expr.args for t in Mul.make_args(term) if isinstance(t, Abs)):
            hinge = 2 * Max(0, kink.args[0]) - kink.args[0]  # the rest may cancel what is not convex in |u|
            apart = expr.xreplace({kink: hinge}).expand(deep=False)
            found = self._terms(Add.make_args(apart)) if apart != expr else ProvedShape()
            if found.convex or found.concave:
                return found
        for form in (self._quadratic(expr), self._on_lines(expr)):
            if form is not None and (form.convex or form.concave):
                return form
        return out

    def _on_lines(self, expr: Expr) -> ProvedShape | None:
        """A sum that bends at several places along one line, by its pieces between them."""
        kinks = sorted(expr.atoms(Abs, Max, Min, Piecewise), key=str)
        sides = ((a, b) for k in kinks if isinstance(k, Max | Min) for a, b in combinations(k.args, 2))
        tests = ((r.lhs, r.rhs) for k in kinks if isinstance(k, Piecewise) for r in _tests(k))
        sizes = ((k.args[0], S.Zero) for k in kinks if isinstance(k, Abs))
        lines = dict.fromkeys(a - b for a, b in (*sides, *tests, *sizes))
        for way in (1, -1):
            forms = (self._along(way * expr, gap) for gap in lines)
            if any(form is not None and form.convex for form in forms):
                return ProvedShape(convex=way == 1, concave=way == -1)
        return None

    def _terms(self, terms: Iterable[Expr]) -> ProvedShape:
        return ProvedShape(*(all(every) for every in zip(*map(self, terms), strict=True)))

    def _quadratic(self, expr: Expr) -> ProvedShape | None:
        """A sum by its quadratic form and what else stands in it; the form by its principal minors."""
        states = [s for s in sorted(self._states, key=str) if expr.has(s)]
        squares = [t for t in expr.args if t.is_polynomial(*states) and len([s for s in states if t.has(s)]) > 0]
        rest = [t for t in expr.args if t not in squares]
        try:
            degree = Poly(Add(*squares), *states).total_degree()
        except PolynomialError:
            return None
        if degree > 2 or len(states) > _MOST_STATES:
            return None
        bends = hessian(Add(*squares), states)
        other = self._terms(rest) if rest else ProvedShape(True, True, True, True)
        signs = []
        for count in range(1, len(states) + 1):
            for chosen in combinations(range(len(states)), count):
                minor = bends.extract(list(chosen), list(chosen)).det()
                signs.append((count, self._sign(minor.factor())))
        convex = all(sign in (0, 1) for _, sign in signs)
        concave = all(sign == 0 or sign == (-1) ** count for count, sign in signs)
        return ProvedShape(convex and other.convex, concave and other.concave) if convex or concave else None

    def _product(self, expr: Expr) -> ProvedShape:
        constant, rest = expr.as_independent(*self._states, as_Add=False)
        form = self._over(rest) if rest.is_Mul else self(rest)
        sign = self._sign(constant)
        if sign == 1 or (sign == 0 and not form.affine):
            return form
        return form.turned if sign == -1 else ProvedShape(form.affine, form.affine)

    def _over(self, product: Expr) -> ProvedShape:
        """Powers over powers: ``s**p/r**q`` is convex for ``p >= q + 1`` where s and r are not negative, r concave."""
        parts = [f.as_base_exp() for f in product.args]
        sign = all(self(f).nonnegative for f in product.args)
        lengths = {base.args[0] if isinstance(base, Abs) else base for base, _ in parts}
        if len(lengths) == 1 and any(isinstance(base, Abs) for base, _ in parts):  # u**2*|u| is |u|**3
            form, power = self(Abs(*lengths)), Add(*(power for _, power in parts))
            return ProvedShape(form.rising and bool((power - 1).is_nonnegative), False, True)
        below = [(base, -power) for base, power in parts if power.is_negative]
        above = [(base, power) for base, power in parts if not power.is_negative]
        if len(below) == len(above) == 1:
            (s, p), (r, q) = above[0], below[0]
            even = self(s).affine and p.is_even
            below_one = self(r)
            if below_one.concave and below_one.nonnegative and (p - q - 1).is_nonnegative:
                return ProvedShape(convex=even or self(s).rising, nonnegative=bool(even) or sign)
        return ProvedShape(nonnegative=sign)

    def _power(self, expr: Expr) -> ProvedShape:
        base, power = expr.args
        if power.has(*self._states):
            return ProvedShape()
        form = self(base)
        if power.is_even and power.is_positive:
            return ProvedShape(form.affine or form.rising or form.turned.rising, False, True)
        if self._sign(power - 1) in (0, 1):
            return ProvedShape(form.rising, False, form.nonnegative)
        if power.is_positive and (1 - power).is_positive:
            return ProvedShape(self._is_norm(base, 1 / power), form.concave, True)
        if power.is_negative:
            return ProvedShape(form.concave and form.nonnegative, False, form.nonnegative)
        return ProvedShape()

    def _is_norm(self, total: Expr, power: Expr) -> bool:
        """Whether a root is the length of a vector: of powers of what is linear, or convex and not negative."""
        for term in Add.make_args(total):
            constant, rest = term.as_independent(*self._states, as_Add=False)
            base, own = rest.as_base_exp()
            length = rest == 1 or (own == power and ((own.is_even and self(base).affine) or self(base).rising))
            if not length or self._sign(constant) not in (0, 1):
                return False
        return True

    def _exponential(self, expr: Expr) -> ProvedShape:
        return ProvedShape(self(expr.args[0]).convex, False, True)

    def _logarithm(self, expr: Expr) -> ProvedShape:
        (arg,) = expr.args
        above_one = self((arg - 1).expand(deep=False)).nonnegative
        return ProvedShape(self._is_log_convex(arg), self(arg).concave, above_one)

    def _is_log_convex(self, expr: Expr) -> bool:
        """Whether the logarithm of a positive function is convex: sums and products of such functions are."""
        if not expr.has(*self._states):
            return self._sign(expr) == 1
        if expr.is_Add or expr.is_Mul:
            return all(map(self._is_log_convex, expr.args))
        if isinstance(expr, exp):
            return self(expr.args[0]).convex
        if isinstance(expr, cosh):
            return self(expr).convex
        if isinstance(expr, Pow) and not expr.exp.has(*self._states):
            return bool(expr.exp.is_positive) and self._is_log_convex(expr.base)
        return False

    def _even(self, expr: Expr) -> ProvedShape:
        form = self(expr.args[0])
        return ProvedShape(form.affine or form.rising or form.turned.rising, False, True)

    def _largest(self, expr: Expr) -> ProvedShape:
        forms = [self(a) for a in expr.args]
        nonnegative = any(f.nonnegative for f in forms)
        return ProvedShape(all(f.convex for f in forms), False, nonnegative, all(f.nonpositive for f in forms))

    def _smallest(self, expr: Expr) -> ProvedShape:
        return self._largest(Max(*(-a for a in expr.args), evaluate=False)).turned

    def _cases(self, expr: Expr) -> ProvedShape:
        if not any(test.has(*self._states) for _, test in expr.args):
            return self._terms(value for value, _ in expr.args)
        tests = _tests(expr)
        sizes = (a.args[0] for r in tests for a in sorted(r.atoms(Abs), key=str))
        lines = dict.fromkeys([*sizes, *(r.lhs - r.rhs for r in tests)])
        return next((form for gap in lines if (form := self._along(expr, gap)) is not None), ProvedShape())

    def _along(self, expr: Expr, gap: Expr) -> ProvedShape | None:
        """Cases of functions of one line: they meet, slopes do not fall where they do, and pieces are convex."""
        inner = next((s for s in sorted(self._states, key=str) if gap.has(s)), None)
        if inner is None or not self(gap).affine:
            return None
        z, rate = Dummy("z", real=True), gap.diff(inner)
        along = expr.xreplace({gap: z}).xreplace({inner: (z - (gap - rate * inner).expand()) / rate})
        if along.has(*self._states):
            return None
        try:
            breaks, pieces = to_piecewise_polynomial(along, z)
            bends = [piece.diff(z, 2) for piece in pieces]
        except NotPiecewisePolynomial:
            breaks, pieces = _cases_along(along, z)
            if not pieces or not all(Rules([z], self._margins)(piece).convex for piece in pieces):
                return None
            bends = []
        for t, left, right in zip(breaks, pieces, pieces[1:], strict=False):
            jump, bend = ((right - left).diff(z, order).xreplace({z: t}).simplify() for order in (0, 1))
            bends += [bend, *([] if jump == 0 else [S.NegativeOne])]
        for t in break_points(along, z) if along.has(Eq, Ne) else ():
            alone = along.xreplace({z: t})  # where a case holds at one point: it has to go on from there
            bends += [S.NegativeOne] if all((alone - p.xreplace({z: t})).simplify() != 0 for p in pieces) else []
        return ProvedShape(convex=all(not b.has(z) and self._sign(b) in (0, 1) for b in bends))

    _rules: ClassVar[dict[type, Any]] = {
        Add: _sum,
        Mul: _product,
        exp: _exponential,
        Pow: _power,
        log: _logarithm,
        cosh: _even,
        Abs: _even,
        Max: _largest,
        Min: _smallest,
        Piecewise: _cases,
    }


def _tests(cases: Piecewise) -> list[Relational]:
    """The comparisons that decide cases."""
    return [r for _, test in cases.args for r in sorted(test.atoms(Relational), key=str)]


def _cases_along(along: Expr, z: Symbol) -> tuple[list[Expr], list[Expr]]:
    """Where the cases of a function of one variable end, and what it is between; nothing where that is not known."""
    if not isinstance(along, Piecewise) or along.has(Eq, Ne):
        return [], []
    values = {Dummy(real=True): value for value, _ in along.args}
    which = Piecewise(*((name, test) for name, (_, test) in zip(values, along.args, strict=True)))
    try:
        breaks, names = to_piecewise_polynomial(which, z)
    except NotPiecewisePolynomial:
        return [], []
    return breaks, [values[name] for name in names]
