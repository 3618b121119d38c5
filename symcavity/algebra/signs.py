"""The sign of an expression, proved from assumptions and from its structure; never from numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations, product
from math import prod
from typing import Any

from sympy import Abs, Add, Dummy, Expr, KroneckerDelta, Mul, Pow, S, cancel, fraction, sympify

from symcavity.algebra.factors import factor, together
from symcavity.algebra.nonzero import differs, takes_both_signs
from symcavity.algebra.quotients import vanishes
from symcavity.errors import SymcavityError

_ANY = frozenset({-1, 0, 1})
_MOST_CASES = 64
_MAX_OPS = 300  # above this size an expression is not factored: an unknown sign is a legitimate answer


class FewValued:
    """A quantity that may be known to take a few values only."""

    @property
    def few(self) -> tuple[Expr, ...]:
        """The values; none where they are open."""
        return ()


class Averaging:
    """A node that averages its first argument: values of few-valued quantities are no cases of what it is."""


def sign_of(expr: Any) -> int | None:
    """Return the sign of a real expression where it can be proved.

    Parameters
    ----------
    expr : Expr
        A real expression.

    Returns
    -------
    int or None
        1, -1 or 0; None where the sign depends on the values of the symbols, or is not found.

    Notes
    -----
    Tried in turn: the assumptions that SymPy keeps; products and powers of things of known sign; sums of
    terms of one sign; the same once more on the factors of the numerator over a common denominator.

    Examples
    --------
    >>> from sympy import Symbol
    >>> kappa = Symbol("kappa", positive=True)
    >>> sign_of(kappa**2 + kappa), sign_of(-1 / kappa), sign_of(kappa - 1)
    (1, -1, None)
    """
    return _sign_of(sympify(expr))


@lru_cache(maxsize=4096)
def _sign_of(expr: Expr) -> int | None:
    if expr.has(Add) and takes_both_signs(expr):  # quicker seen than what SymPy does not find of it
        return None
    found = _signs(expr)
    if len(found) == 1:
        return next(iter(found))
    if (cases := _by_few_values(expr)) is not None:
        return next(iter(cases)) if len(cases) == 1 else None
    if expr.has(Add):
        if expr.count_ops() > _MAX_OPS:
            return None
        top, bottom = fraction(together(expr))
        below = _single(_signs(bottom)) or (_single(_signs(factor(bottom))) if bottom.is_Add else None)
        top = top.expand()
        above = _single(_signs(top))
        if above is None and top.is_Add:
            above = _single(_signs(factor(top)))
        if above == 0:
            return 0
        if above is not None and below:
            return above * below
    return None


def _by_few_values(expr: Expr) -> set[int | None] | None:
    """The signs at all values of the quantities that take few; None if there are none, or too many.

    What is averaged over them stands for one number: it has the sign that all values have.
    """
    if not any(leaf.few for leaf in expr.atoms(FewValued)):
        return None
    averages: list[Any] = [node for node in expr.atoms(Averaging) if node != expr]
    signs = {node: sign_of(node.args[0]) for node in averages}
    stand_ins = {1: {"positive": True}, -1: {"negative": True}, 0: {"zero": True}, None: {"real": True}}
    is_average = isinstance(expr, Averaging)
    whole = expr.args[0] if is_average else expr
    open_ = whole.xreplace({node: Dummy(**stand_ins[s]) for node, s in signs.items()})
    few = [leaf for leaf in open_.atoms(FewValued) if leaf.few]
    if prod(len(leaf.few) for leaf in few) > _MOST_CASES:
        return None
    try:
        return {_sign_of(open_.xreplace(dict(zip(few, c, strict=True)))) for c in product(*(x.few for x in few))}
    except ValueError:  # Max and Min refuse what is not real at some value
        return {None}


def weak_sign_of(expr: Any) -> int | None:
    """Return 1 where an expression is never negative, -1 where it is never positive, None where neither is proved."""
    expr = sympify(expr)
    if expr.is_nonnegative or expr.is_nonpositive:
        return 1 if expr.is_nonnegative else -1
    found = _by_few_values(expr) or {_sign_of(expr)}
    if None in found:
        found = set(_signs(expr))
    return 1 if found <= {0, 1} else -1 if found <= {-1, 0} else None


def sign_given(expr: Any, positive: Sequence[Expr]) -> int | None:
    """Return the sign of a real expression, where it can be proved if some expressions are positive.

    Parameters
    ----------
    expr : Expr
        A real expression.
    positive : sequence of Expr
        What is known to be positive: sought among the factors of the expression.

    Examples
    --------
    >>> from sympy import Symbol
    >>> f = Symbol("f", real=True)
    >>> sign_given(2 / (2 - 2*f), [1 - f]), sign_given(2 / (2 - 2*f), [])
    (1, None)
    """
    known = sign_of(expr)
    return known if known is not None or not positive else _sign_given(expr, tuple(positive))


@lru_cache(maxsize=4096)
def _sign_given(expr: Expr, positive: tuple[Expr, ...]) -> int | None:
    if takes_both_signs(expr, positive) or expr.count_ops() > _MAX_OPS:
        return None
    total = 1
    for part in fraction(together(expr)):
        for factor_ in Mul.make_args(factor(part)):
            base, power = factor_.as_base_exp()
            sign = sign_of(base)
            if sign is None:
                sign = next((r for r in (sign_of(cancel(base / p)) for p in positive) if r), None)
            if sign is None or not power.is_integer:
                return None
            total *= 1 if power.is_even else sign
    return total


def _single(found: frozenset[int]) -> int | None:
    return next(iter(found)) if len(found) == 1 else None


@lru_cache(maxsize=8192)
def _signs(expr: Expr) -> frozenset[int]:
    """Return the set of signs that an expression may have, from assumptions and structure."""
    if expr.is_zero:
        return frozenset({0})
    if expr.is_extended_positive:
        return frozenset({1})
    if expr.is_extended_negative:
        return frozenset({-1})
    found = _ANY
    if expr.is_nonnegative or isinstance(expr, KroneckerDelta):
        return frozenset({0, 1})
    if expr.is_nonpositive:
        return frozenset({-1, 0})
    if isinstance(expr, Mul):
        found = frozenset({1})
        for arg in expr.args:
            found = frozenset(a * b for a, b in product(found, _signs(arg)))
    elif isinstance(expr, Add):
        parts = [_signs(arg) for arg in expr.args]
        union = frozenset().union(*parts)
        if union <= {0, 1} or union <= {-1, 0}:
            found = union if all(0 in part for part in parts) else union - {0}
    elif isinstance(expr, Pow) and expr.exp.is_integer and expr.base.is_extended_real:
        base = _signs(expr.base)
        if expr.exp.is_even:
            found = frozenset(b * b for b in base)
        elif expr.exp.is_odd:
            found = base
        if expr.exp.is_negative:
            found -= {0}
    elif expr is S.NaN:
        return _ANY
    if expr.is_extended_nonnegative:
        found &= {0, 1}
    elif expr.is_extended_nonpositive:
        found &= {-1, 0}
    if expr.is_nonzero or expr.is_extended_nonzero:
        found -= {0}
    return found or _ANY


class NotPiecewisePolynomial(SymcavityError, ValueError):
    """An expression that is not a piecewise polynomial with breaks of a provable order."""


class Undetermined(NotPiecewisePolynomial):
    """A sign that decides the order of the branches, and that the assumptions leave open.

    Attributes
    ----------
    expr : Expr
        The expression whose sign is open.
    kind : str
        'order' (two breaks; equality needs no case of its own), 'slope' or 'constant'.
    """

    def __init__(self, expr: Expr, kind: str) -> None:
        self.expr, self.kind = expr, kind
        super().__init__(
            f"The sign of {expr} decides the order of the branches, and is not known.",
            "breaks that can be sorted by the assumptions of the symbols.",
            "declare the symbols with positive=True or negative=True.",
        )


class Signs:
    """The signs that are known: provable ones, assumed ones, and those after a reflection of z.

    Parameters
    ----------
    assumed : sequence of (Expr, int)
        Signs taken for granted, as inside one case of a case distinction.
    weak : sequence of (Expr, int)
        Signs taken for granted up to equality: enough to sort breaks, not for what jumps at zero.
    reflect : Expr, optional
        A coefficient c of unknown sign: the variable is u = z*sign(c), and ``s`` stands for sign(c).
    """

    def __init__(
        self,
        assumed: Sequence[tuple[Expr, int]] = (),
        reflect: Expr | None = None,
        weak: Sequence[tuple[Expr, int]] = (),
    ) -> None:
        self.assumed, self.weak = tuple(assumed), tuple(weak)
        self.reflect = reflect
        self.s = Dummy("s", real=True, nonzero=True) if reflect is not None else None

    def sign(self, expr: Expr, kind: str) -> int:
        """Return the sign of an expression, or raise Undetermined."""
        target = expr
        if self.s is not None and expr.has(self.s):
            rest, odd = self.split(expr)
            if rest == 0:  # sign(odd*s) = sign(odd/c) = sign(odd*c), and c is not 0
                ratio = sign_of(together(odd / self.reflect))
                if ratio is not None:
                    return ratio
            target = self.reflect * odd if rest == 0 else self.restore(expr)
        found = _resolve(target, self.assumed)
        if found is None and self.assumed:  # lambda*(a - 1), where a > 2
            found = _resolve(bare(target), self.assumed)
        if found is None and self.weak and kind == "order":
            found = _resolve(target, self.assumed + self.weak)
        if found is None:
            raise Undetermined(bare(self.restore(target)), kind)
        return found

    def split(self, expr: Expr) -> tuple[Expr, Expr]:
        """Return e0, e1 with expr = e0 + e1*s."""
        expr = self.tidy(expr).expand()
        rest = expr.xreplace({self.s: S.Zero})
        return rest, (expr - rest).xreplace({self.s: S.One}).expand()

    def tidy(self, expr: Expr) -> Expr:
        """Use s**2 = 1."""
        if self.s is None or not expr.has(self.s):
            return expr
        expr = expr.expand()
        powers = {p: self.s ** (p.exp % 2) for p in expr.atoms(Pow) if p.base == self.s and p.exp.is_Integer}
        return expr.xreplace(powers) if powers else expr

    def restore(self, expr: Expr) -> Expr:
        """Write s = sign(c) by Abs(c)."""
        c = self.reflect
        if c is None or not expr.has(self.s):
            return expr
        rest, odd = self.split(expr)
        if c.is_Add:
            rest, odd = factor(rest), factor(odd)
            forms = [odd * c / Abs(c), odd / c * Abs(c)]
        else:
            forms = [(odd * c).expand() / Abs(c), (odd / c).expand() * Abs(c)]
        return rest + min(forms, key=lambda form: form.count_ops())


def _resolve(expr: Expr, assumed: tuple[tuple[Expr, int], ...]) -> int | None:
    """The sign that follows from others: of a multiple of one of them, or beyond a sum of some of them."""
    found = _direct(expr, assumed)
    steps = [known * its_sign for known, its_sign in assumed if its_sign]
    settled = found is not None or (len(steps) == len(assumed) and takes_both_signs(expr, steps))
    for count in () if settled else range(1, len(steps) + 1):
        for chosen in combinations(steps, count):
            step = Add(*chosen)
            if _direct(expr - step, assumed) in (0, 1):
                return 1
            if _direct(expr + step, assumed) in (0, -1):
                return -1
    return found


def _direct(expr: Expr, assumed: tuple[tuple[Expr, int], ...]) -> int | None:
    found = sign_of(expr)
    for known, its_sign in assumed if found is None else ():
        ratio = None if takes_both_signs(expr * known) else sign_of(cancel(expr / known))
        if ratio is not None and (its_sign or ratio):
            return ratio * its_sign
    return found


def bare(expr: Expr) -> Expr:
    """Drop the factors of known sign: what is left carries the open sign (with its orientation)."""
    top, bottom = fraction(together(expr))
    orientation = S.One
    left = []
    for part in [*Mul.make_args(top), *Mul.make_args(bottom)]:
        known = sign_of(part)
        if known:
            orientation *= known
        else:
            left.append(part)
    if len(left) == 1 and left[0].is_Add:
        return (orientation * left[0]).expand()
    return Mul(orientation, *left)


def is_zero(expr: Expr) -> bool:
    """Whether an expression vanishes identically, as far as its expansion shows."""
    if expr.is_Number:
        return bool(expr == 0)
    if differs(expr):
        return False
    if vanishes(expr):
        return True
    expr = expr.expand()
    if expr == 0:
        return True
    if expr.is_Add and any(p.exp.is_negative and p.base.is_Add for p in expr.atoms(Pow)):
        return bool(fraction(together(expr))[0].expand() == 0)
    return False


@lru_cache(maxsize=8192)
def tidy(expr: Expr) -> Expr:
    """Return 0 for a provable zero, else the shorter of an expression and its expansion."""
    if expr.is_Atom:
        return expr
    if is_zero(expr):
        return S.Zero
    wide = expr.expand()
    return wide if wide.count_ops() <= expr.count_ops() else expr


class OpenSlope(Exception):
    """A leading coefficient of unknown sign, met before any reflection."""

    def __init__(self, coefficient: Expr) -> None:
        self.coefficient = coefficient
        super().__init__(str(coefficient))
