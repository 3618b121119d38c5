"""Where an integrand switches its branch, and its Gaussian average in numbers, split there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache, partial, reduce
from itertools import combinations, pairwise, product
from typing import Any

import mpmath
from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Float,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    asinh,
    atan,
    erf,
    preorder_traversal,
    sign,
    sinh,
    sqrt,
    tanh,
)
from sympy.core.relational import Relational

from symcavity.algebra.node import unbound
from symcavity.algebra.piecewise import BRANCHING
from symcavity.algebra.precision import GENERATED, exact_function, is_mpf, mp
from symcavity.algebra.signs import sign_of, tidy
from symcavity.errors import ValuesError

ODD = (tanh, erf, sinh, atan, asinh)  # functions that grow, and are zero at zero


def break_points(expr: Expr, z: Symbol) -> list[Expr]:
    """Return the candidate break points in z of the branching functions in an expression.

    Inner branches are followed one by one; switching arguments that are affine or quadratic in z are
    solved, others are left out.
    """
    zeros = _zeros if expr.has(Float) else _known_zeros  # equal floats may have unequal digits
    every = (whole for argument in _switches(expr, z) for whole in _branches(argument, z))
    return list(dict.fromkeys(zero for whole in every for zero in zeros(whole, z)))


def _zeros(whole: Expr, z: Symbol) -> tuple[Expr, ...]:
    """Where a switching argument is zero, if it is affine or quadratic; many integrands switch at the same."""
    if not whole.is_polynomial(z):
        return ()
    marks = _marks(whole, z)
    smooth = whole.xreplace(marks)
    c = [smooth.expand().coeff(z, k) for k in range(3)]
    if (smooth - c[0] - c[1] * z - c[2] * z**2).expand() != 0:
        return ()
    if c[2] != 0:
        gap = c[1] ** 2 - 4 * c[2] * c[0]
        roots = [] if sign_of(gap) == -1 else [tidy((-c[1] + side * sqrt(gap)) / (2 * c[2])) for side in (-1, 1)]
    else:
        roots = [tidy(-c[0] / c[1])] if c[1] != 0 else []
    back = {mark: node for node, mark in marks.items()}
    return tuple(root.xreplace(back) for root in roots)


_known_zeros = lru_cache(maxsize=4096)(_zeros)


def _marks(expr: Expr, z: Symbol) -> dict[Expr, Dummy]:
    """Symbols for functions and averages that do not hold z: an expansion must not reach into them."""
    marks: dict[Expr, Dummy] = {}
    walk = preorder_traversal(expr)
    for node in walk:
        if isinstance(node, Add | Mul | Pow) or not node.args:
            continue
        walk.skip()
        if not node.has(z):
            marks.setdefault(node, Dummy(real=node.is_real, nonnegative=node.is_nonnegative, zero=node.is_zero))
    return marks


def _switches(expr: Expr, z: Symbol) -> list[Expr]:
    """Return the expressions at whose zeros the branches of an expression switch."""
    out: list[Expr] = []
    for node in unbound(expr, (*BRANCHING, Relational), z):
        if isinstance(node, Max | Min):
            out.extend(a - b for a, b in combinations(node.args, 2))
        elif isinstance(node, Relational):
            out.append(node.lhs - node.rhs)
        elif not isinstance(node, Piecewise):
            argument = node.args[0]
            while isinstance(argument, ODD):  # it has the sign of its own argument
                argument = argument.args[0]
            out.append(argument)
    return [argument for argument in out if argument.has(z) and not argument.has(S.Infinity)]


def _branches(expr: Expr, z: Symbol, limit: int = 64) -> Iterable[Expr]:
    """Yield an expression with each choice of its inner branches."""
    inner = unbound(expr, BRANCHING, z)
    outer = [n for n in inner if not any(n != other and other.has(n) for other in inner)]
    if not outer:
        return [expr]
    choices = [_choices(node) for node in outer]
    if reduce(lambda a, b: a * b, map(len, choices), 1) > limit:
        return []
    out: list[Expr] = []
    for choice in product(*choices):
        out.extend(_branches(expr.xreplace(dict(zip(outer, choice, strict=True))), z, limit // 2))
    return out[: 4 * limit]


def _choices(node: Expr) -> list[Expr]:
    if isinstance(node, Max | Min):
        return list(node.args)
    if isinstance(node, Abs):
        return [node.args[0], -node.args[0]]
    if isinstance(node, Piecewise):
        return [value for value, _ in node.args]
    return [S.One, S.NegativeOne] if isinstance(node, sign) else [S.One, S.Zero]


# -- numbers ---------------------------------------------------------------------------------------


def mp_average(expr: Expr, z: Symbol, breaks: Iterable[Expr], prec: int) -> Any:
    """Return the average of an expression in z alone over a standard Gaussian z, to ``prec`` bits.

    Parameters
    ----------
    expr : Expr
        The integrand; it may hold no other symbol than z.
    z : Symbol
        The variable.
    breaks : iterable of Expr
        Where the integrand is not smooth; points that are not real numbers are passed over.
    prec : int
        The precision in bits.
    """
    with mp.workprec(prec + 30):
        points = []
        for t in breaks:
            value = mp.convert(t.evalf(mp.dps + 5))
            if is_mpf(value):
                points.append(value)
        points.extend(_hidden_switches(expr, z))
        f = _callable(expr, z)
        mp.prec = prec
        return gaussian_in(mp, f, points)


def gaussian_in(at: Any, f: Callable[[Any], Any], points: Iterable[Any] = ()) -> Any:
    """Return E[f(z)] of a standard Gaussian z at the precision of an mpmath context, the line split at the points.

    The working precision is raised when the result turns out to be much smaller than the integrand, so
    that the error is relative to the result.
    """
    prec = at.prec
    splits = [t for t in map(at.convert, points) if is_mpf(t) and at.isfinite(t)]
    extra = 20
    while True:
        with at.workprec(prec + extra):
            value, size = _panels(at, f, splits)
        lost = int(at.mag(size) - at.mag(value)) if value and size else 0
        if lost + 15 <= extra or extra > 4 * prec + 200:
            return +value
        extra = lost + 20


def mp_gaussian(f: Callable[[Any], Any], points: Iterable[Any] = ()) -> Any:
    """The same at the precision that the user's mpmath has now."""
    return gaussian_in(mpmath.mp, f, points)


GENERATED["mp_gaussian"] = partial(gaussian_in, mp)


def _panels(at: Any, f: Callable[[Any], Any], points: list[Any]) -> tuple[Any, Any]:
    """Integrate panel by panel; also return the sum of the absolute values."""
    norm = 1 / at.sqrt(2 * at.pi)

    def weighted(x: Any) -> Any:
        return f(x) * at.exp(-x * x / 2) * norm

    reach = at.sqrt(2 * at.prec * at.ln2) + 2
    low, high = -reach, reach
    for _ in range(40):  # a growing integrand moves the peak: go on until the ends do not matter
        samples = [low + (high - low) * at.mpf(k) / 64 for k in range(1, 64)]
        samples.extend(t + at.mpf(s) / 64 for t in points for s in (-1, 1))
        top = max(abs(weighted(x)) for x in samples)
        far_left, far_right = (abs(weighted(x)) > top * at.eps for x in (low, high))
        if not (far_left or far_right):
            break
        low, high = (low * 1.25 if far_left else low), (high * 1.25 if far_right else high)
    if not top:
        return at.zero, at.zero

    def scaled(x: Any) -> Any:  # mpmath's own stopping rule is absolute
        return weighted(x) / top

    grid = sorted({low, high, at.zero, *points, *(t + s * reach for t in points for s in (-1, 1))})
    total = size = at.zero
    for a, b in pairwise(grid):
        count = max(1, int(at.ceil((b - a) / 5)))
        for k in range(count):
            ends = a + (b - a) * k / count, a + (b - a) * (k + 1) / count
            panel = _adaptive(at, scaled, *ends, 8)
            total += panel
            size += abs(panel)
    return total * top, size * top


def _adaptive(at: Any, f: Callable[[Any], Any], a: Any, b: Any, depth: int) -> Any:
    value, error = at.quad(f, [a, b], error=True)
    if depth == 0 or error <= at.eps * 1024 * (abs(value) + 1):
        return value
    middle = (a + b) / 2
    return _adaptive(at, f, a, middle, depth - 1) + _adaptive(at, f, middle, b, depth - 1)


def _callable(expr: Expr, z: Symbol) -> Callable[[Any], Any]:
    """Return the integrand as a function of an mpf, of mpmath's functions or else by evalf."""

    def slow(x: Any) -> Any:
        value = expr.subs(z, Float._new(mp.mpf(x)._mpf_, mp.prec)).evalf(mp.dps + 5)  # noqa: SLF001
        re, im = value.as_real_imag()
        if im != 0:
            raise ValuesError(f"{expr} is not real at {z} = {mp.nstr(x, 5)}.", "a real integrand.")
        return mp.convert(re._to_mpmath(mp.prec))  # noqa: SLF001 - SymPy's own door from Expr to mpmath

    try:
        fast = exact_function(z, expr)
        fast(mp.mpf("0.3141"))
    except (NameError, TypeError, AttributeError, KeyError, NotImplementedError, SyntaxError):
        return slow
    return fast


def _hidden_switches(expr: Expr, z: Symbol) -> list[Any]:
    """Find numerically the switching points that no formula is at hand for."""
    out = []
    for argument in _switches(expr, z):
        if all(branch.is_polynomial(z) for branch in _branches(argument, z)):
            continue
        f = _callable(argument, z)
        grid = [mp.mpf(k) / 8 - 16 for k in range(257)]
        try:
            values = [mp.re(f(x)) for x in grid]
        except (ZeroDivisionError, ValueError, OverflowError):
            continue
        for a, b, fa, fb in zip(grid, grid[1:], values, values[1:], strict=False):
            if fa * fb < 0:
                out.append(mp.findroot(f, (a, b), solver="anderson", verify=False))
    return out
