"""Gaussian averages over a polyhedron of several variables: what one branch of a law contributes.

Where several fields of a site come back to it, its branches hold on polyhedra in the space of the fields, and
on each the states are linear.  The average of a polynomial over one polyhedron has no closed form in general,
but all of its variables are standard Gaussians, so that all but one integral can be carried out exactly, and the
places where that one is not smooth are known: the corners.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

from sympy import (
    Add,
    Basic,
    Dummy,
    Expr,
    Float,
    Heaviside,
    Matrix,
    Mul,
    Poly,
    Pow,
    S,
    Symbol,
    Tuple,
    cancel,
    fraction,
    gcd_list,
    sqrt,
    together,
)
from sympy.polys.polyerrors import PolynomialError

from symcavity.algebra.cells import EXACT_FIELDS, cell_in
from symcavity.algebra.door import as_sympy
from symcavity.algebra.factors import factor
from symcavity.algebra.gaussian import gaussian_average
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.node import raised, replaced_by
from symcavity.algebra.phi import gaussian_moment
from symcavity.algebra.piecewise import NotPiecewisePolynomial
from symcavity.algebra.precision import mp
from symcavity.algebra.signs import sign_of

LARGEST = 60  # a square of a length with more operations is not worth a root
MOST_FIELDS = 3  # so many variables can be evaluated at all


class CellAverage(NumberedAverage):
    """The average ``<body * 1[all conditions >= 0]>`` over independent standard Gaussians.

    Parameters
    ----------
    body : Expr
        A polynomial in the variables.
    zs : sequence of Symbol
        The variables, bound here.
    *conditions : Expr
        Affine in the variables.

    Notes
    -----
    The form is canonical, so that averages over the same cell meet: factors of the body that do not depend on
    the variables stand outside, positive factors of the conditions are dropped, variables that no condition
    restricts are averaged, and one condition on one variable gives the closed form.  Conditions whose normals
    are orthogonal are independent: the variables are rotated to them, and the average is a product.
    """

    def __new__(cls, body: Any, zs: Sequence[Symbol], *conditions: Any) -> Expr:
        """Return the average: a multiple of the canonical node, or what has a closed form."""
        zs = Tuple(*zs)
        kept: set[Expr] = set()
        for condition in conditions:
            normal = _normal_condition(as_sympy(condition), zs)
            if sign_of(normal) in (0, 1) and not normal.has(*zs):
                continue
            if not normal.has(*zs) and sign_of(normal) == -1:
                return S.Zero
            kept.add(normal)
        if any((-c).expand() in kept for c in kept):
            return S.Zero
        ordered = sorted(kept, key=lambda c: c.sort_key())
        outside, body = _primitive(as_sympy(body), zs)
        if body == 0:
            return S.Zero
        free = [z for z in zs if not any(c.has(z) for c in ordered)]
        if free and body.has(*free):
            return outside * _over_free(body, zs, free, ordered)
        bound = [z for z in zs if z not in free]
        if len(bound) == len(ordered) == 1:
            return outside * _half_line(body, bound[0], ordered[0])
        if not bound and not ordered:
            return outside * body
        split = _split(body, tuple(bound), tuple(ordered))
        if split is not None:
            return outside * split
        return outside * Expr.__new__(cls, body, Tuple(*bound), *ordered)

    @property
    def zs(self) -> tuple[Symbol, ...]:
        """The bound variables."""
        return tuple(self.args[1])

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """What must not be negative."""
        return self.args[2:]

    title = "Averages over polyhedra"
    parts = property(lambda self: (self.body, *self.conditions))

    @property
    def has_many_digits(self) -> bool:
        """Whether it can be evaluated beyond double precision."""
        return len(self.zs) <= EXACT_FIELDS

    @property
    def precision(self) -> tuple[str, str]:
        """Which averages are taken in double precision, and the digits of the others."""
        few = "up to two such fields at any dps"
        return f"averages over {len(self.zs)} fields that come back to one site", f"dps <= 15; {few}"

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        return set().union(*(arg.free_symbols for arg in (self.body, *self.conditions))) - set(self.zs)

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The variables of integration."""
        return list(self.zs)

    def terms(self) -> list[tuple[tuple[int, ...], Expr]]:
        """The monomials of the body: exponents of the variables, and the coefficient."""
        return list(Poly(self.body, *self.zs).terms()) if self.zs else [((), self.body)]

    def rows(self) -> list[list[Expr]]:
        """The conditions as ``offset + slopes * variables``: offset first."""
        return [_coefficients(c, self.zs) for c in self.conditions]

    def _eval_subs(self, old: Expr, new: Expr) -> Expr:
        return self.xreplace({old: new}) if isinstance(old, Symbol) else Basic._subs(self, old, new)  # noqa: SLF001

    def _xreplace(self, rule: Mapping[Any, Any]) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        outer = {old: new for old, new in replaced_by(rule).items() if old not in self.zs}
        if not any(self.has(old) for old in outer):
            return self, False
        arriving = set().union(*(getattr(new, "free_symbols", set()) for new in outer.values()))
        names = {z: Dummy(z.name, real=True) for z in self.zs if z in arriving}
        inner = [arg.xreplace(names).xreplace(outer) for arg in (self.body, *self.conditions)]
        return self.func(inner[0], [names.get(z, z) for z in self.zs], *inner[1:]), True

    def _eval_is_extended_nonnegative(self) -> bool | None:
        even = self.body == 1 or (isinstance(self.body, Pow) and self.body.exp.is_even)
        return True if even else None

    def _eval_is_extended_positive(self) -> bool | None:
        # half-spaces with independent normals always meet in a cell of positive measure
        if not self._eval_is_extended_nonnegative():
            return None
        count, normals = len(self.conditions), Matrix([row[1:] for row in self.rows()])
        chosen = combinations(range(len(self.zs)), count) if count <= len(self.zs) else ()
        return True if any(sign_of(normals[:, list(c)].det()) for c in chosen) else None

    def _eval_evalf(self, prec: int) -> Expr | None:
        if self.free_symbols or not self.has_many_digits:
            return None
        with mp.workprec(prec + 20):
            rows = [[mp.convert(c.evalf(mp.dps)) for c in row] for row in self.rows()]
            terms = [(powers, mp.convert(c.evalf(mp.dps))) for powers, c in self.terms()]
            mp.prec = prec
            return Float._new(cell_in(mp, rows, terms)._mpf_, prec)  # noqa: SLF001

    def _mpmathcode(self, printer: Any) -> str:
        name, code = printer._module_format("symcavity.algebra.cells.mp_cell"), printer._print  # noqa: SLF001
        rows = ", ".join(f"[{', '.join(code(c) for c in row)}]" for row in self.rows())
        terms = ", ".join(f"({powers}, {code(c)})" for powers, c in self.terms())
        return f"{name}([{rows}], [{terms}])"

    def _sympystr(self, printer: Any) -> str:
        where = ", ".join(f"{printer.doprint(c)} >= 0" for c in self.conditions)
        return f"<{printer.doprint(self.body)}>({where})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        where = ",\\, ".join(f"{printer.doprint(c)} \\ge 0" for c in self.conditions)
        tex = f"\\left\\langle {printer.doprint(self.body)} \\right\\rangle_{{{where}}}"
        return raised(tex, exp)


# -- the canonical form -----------------------------------------------------------------------------


def _coefficients(expr: Expr, zs: Sequence[Symbol]) -> list[Expr]:
    """The offset and the slopes of an affine expression."""
    wide = expr.expand()
    slopes = [wide.coeff(z, 1) for z in zs]
    offset = wide.xreplace(dict.fromkeys(zs, S.Zero))
    rest = wide - offset - Add(*(a * z for a, z in zip(slopes, zs, strict=True)))
    if rest.expand() != 0 or any(e.has(*zs) for e in (offset, *slopes)):
        raise NotPiecewisePolynomial(f"The condition {expr} >= 0.", f"conditions affine in {', '.join(map(str, zs))}.")
    return [offset, *slopes]


@lru_cache(maxsize=4096)
def _normal_condition(condition: Expr, zs: Sequence[Symbol]) -> Expr:
    """A condition without denominators and without positive common factors."""
    top, bottom = fraction(together(condition))
    if bottom.has(*zs):
        raise NotPiecewisePolynomial(f"The condition {condition} >= 0.", "conditions affine in the fields.")
    below = sign_of(bottom)
    row = _coefficients(top * (below or bottom), zs)
    common = _content(row)
    above = sign_of(common)
    if above:
        row = [(above * c / common).cancel() if c != 0 else c for c in row]
    return Add(row[0], *(a * z for a, z in zip(row[1:], zs, strict=True)))


def _content(coefficients: Sequence[Expr]) -> Expr:
    """The greatest common factor of expressions; 1 where they are not polynomials of anything."""
    some = [c for c in coefficients if c != 0]
    try:
        found = gcd_list(some)
    except PolynomialError:
        return S.One
    return found if found != 0 else S.One


@lru_cache(maxsize=4096)
def _primitive(body: Expr, zs: Sequence[Symbol]) -> tuple[Expr, Expr]:
    """Write a polynomial as (what does not depend on the variables, the rest without common factors)."""
    if not body.has(*zs):
        return body, S.One
    if isinstance(body, Mul):
        parts = [_primitive(part, zs) for part in body.args]
        return Mul(*(a for a, _ in parts)), Mul(*(b for _, b in parts))
    if isinstance(body, Pow) and body.exp.is_Integer and body.exp > 0:
        outside, inside = _primitive(body.base, zs)
        return outside**body.exp, inside**body.exp
    top, bottom = fraction(together(body))
    if top.is_Mul or top.is_Pow:
        outside, inside = _primitive(top, zs)
        return outside / bottom, inside
    try:
        terms = Poly(top.expand(), *zs).terms()
    except PolynomialError:
        terms = []
    if not terms or bottom.has(*zs) or any(c.has(*zs) for _, c in terms):
        raise NotPiecewisePolynomial(f"{body} is not a polynomial in {', '.join(map(str, zs))}.")
    common = _content([c for _, c in terms])
    inside = Add(
        *((c / common).cancel() * Mul(*(z**n for z, n in zip(zs, p, strict=True))) for p, c in terms)
    )
    if inside.could_extract_minus_sign():
        common, inside = -common, -inside
    return common / bottom, inside


def _over_free(body: Expr, zs: Sequence[Symbol], free: Sequence[Symbol], conditions: Sequence[Expr]) -> Expr:
    """Average a polynomial over the variables that no condition restricts."""
    total = S.Zero
    for powers, c in Poly(body.expand(), *free).terms():
        total += c * Mul(*(gaussian_moment(n) for n in powers))
    return CellAverage(total, [z for z in zs if z not in free], *conditions)


def _half_line(body: Expr, z: Symbol, condition: Expr) -> Expr:
    """The closed form where one condition restricts one variable."""
    offset, slope = _coefficients(condition, [z])
    way = sign_of(slope)
    if way:
        condition = way * (z - factor(cancel(-offset / slope)))
    return gaussian_average(body * Heaviside(condition), z)


# -- orthogonal conditions ---------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _split(body: Expr, zs: tuple[Symbol, ...], conditions: tuple[Expr, ...]) -> Expr | None:
    """Write an average as a product over groups of conditions with orthogonal normals; None if there is one.

    A Gaussian vector has the same law in every orthonormal frame; a field that enters through one linear
    combination only is one variable in the right frame.
    """
    found = _frames(zs, conditions)
    if found is None:
        return None
    groups, frames = found
    names = iter(zs)
    owned = [[next(names) for _ in frame] for frame in frames]
    axes = [pair for frame, own in zip(frames, owned, strict=True) for pair in zip(frame, own, strict=True)]
    rule = {z: Add(*(e[k] * u for e, u in axes)) for k, z in enumerate(zs)}
    held = [[_turned(conditions[k], rule) for k in group] for group in groups] + [[]] * (len(frames) - len(groups))
    total = S.Zero
    for term in _terms(_turned(body, rule), owned):
        parts = [
            CellAverage(Mul(*(f for f in term if f.has(*own))), own, *where)
            for own, where in zip(owned, held, strict=True)
        ]
        total += Mul(*(f for f in term if not f.has(*zs)), *parts)
    return total


@lru_cache(maxsize=4096)
def _frames(
    zs: tuple[Symbol, ...], conditions: tuple[Expr, ...]
) -> tuple[list[list[int]], list[list[list[Expr]]]] | None:
    """Groups of conditions with orthogonal normals, and the frames that they span; then that of what is left over."""
    rows = [_coefficients(c, zs) for c in conditions]
    groups = _groups([row[1:] for row in rows])
    frames = []
    for group in groups:
        frame: list[list[Expr]] | None = _frame([rows[k][1:] for k in group], [])
        if frame is None or len(frame) == len(zs):
            return None
        frames.append(frame)
    taken = [e for frame in frames for e in frame]
    if len(taken) < len(zs):
        rest = _frame([[S.One if r == c else S.Zero for c in range(len(zs))] for r in range(len(zs))], taken)
        if rest is None:
            return None
        frames.append(rest)
    return groups, frames


def _groups(normals: Sequence[Sequence[Expr]]) -> list[list[int]]:
    """Sort conditions into groups, each orthogonal to all the others."""
    groups: list[list[int]] = []
    for k, normal in enumerate(normals):
        near = [g for g in groups if any(_dot(normals[other], normal) != 0 for other in g)]
        groups = [g for g in groups if g not in near] + [[n for g in near for n in g] + [k]]
    return groups


def _dot(a: Sequence[Expr], b: Sequence[Expr]) -> Expr:
    return Add(*(p * q for p, q in zip(a, b, strict=True))).expand()


def _frame(vectors: Sequence[Sequence[Expr]], known: Sequence[Sequence[Expr]]) -> list[list[Expr]] | None:
    """The orthonormal frame that vectors add to a known one; None where a length may vanish."""
    frame: list[list[Expr]] = []
    for vector in vectors:
        rest = list(vector)
        for e in (*known, *frame):
            along = _dot(e, vector)
            rest = [cancel(r - along * c) for r, c in zip(rest, e, strict=True)]
        if all(r == 0 for r in rest):
            continue
        square = _dot(rest, rest)
        if sign_of(square) != 1 or square.count_ops() > LARGEST:
            return None
        length = sqrt(factor(square))
        frame.append([(r / length).expand() for r in rest])
    return frame


def _turned(expr: Expr, rule: Mapping[Symbol, Expr]) -> Expr:
    """Put in a rotation; powers stay powers."""
    if isinstance(expr, Mul):
        return Mul(*(_turned(arg, rule) for arg in expr.args))
    if isinstance(expr, Pow):
        return _turned(expr.base, rule) ** expr.exp
    return expr.xreplace(dict(rule)).expand()


def _terms(body: Expr, owned: Sequence[Sequence[Symbol]]) -> list[tuple[Expr, ...]]:
    """The terms of a polynomial by their factors, of which each belongs to one group of variables."""
    factors = Mul.make_args(body)
    if all(sum(f.has(*own) for own in owned) < 2 for f in factors):
        return [factors]
    return [Mul.make_args(term) for term in Add.make_args(body.expand())]
