"""The larger of two curved functions of one line: the place where they meet, and how far it bends there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from sympy import Abs, Add, Dummy, Expr, Function, I, Max, Min, Piecewise, S, limit, oo, simplify, solve, sqrt

from symcavity.algebra.signs import sign_of
from symcavity.model.composition import Rules


def by_places(body: Expr, moving: Sequence[Expr]) -> Expr:
    """Return a body with the larger of two functions by cases and bends: ``Max(exp(-r) - 1, 0)`` bends where r is zero.

    That is done where both are functions of one line, and the places at which they meet have formulas: those of convex
    functions of a line are at most two. What a polynomial decides at places that are known is read elsewhere.

    Parameters
    ----------
    body : Expr
        What is summed over sites.
    moving : sequence of Expr
        All that varies in it.
    """
    for kink in sorted(body.atoms(Max, Min), key=str):
        mark = Dummy("t", real=True)
        if not body.xreplace({kink: mark}).diff(mark).has(mark, *moving):
            body = body.xreplace({kink: _by_places(kink, moving)})
    return body


def _by_places(kink: Expr, moving: Sequence[Expr]) -> Expr:
    """A kink by what is smooth and its bends; itself where the places have no formulas."""
    first, second = kink.args[:2]
    if len(kink.args) == 2 and (line := quadratic_line(first - second, moving)) is not None:
        return kink if line[-1].is_number else _by_squares(kink, *line)
    z = Dummy("z", real=True)
    for line, rate, inner in _lines(kink, moving):
        along = kink.xreplace({inner: (z - (line - rate * inner).expand()) / rate})
        along = along.func(*(a.expand() for a in along.args), evaluate=False)
        if along.free_symbols == {z} and (found := _cut(along, z, -oo, oo)) is not None:
            breaks, pieces = found
            if not any(piece.diff(z).has(z) for piece in pieces):
                return kink  # lines alone: its constraints say as much
            slopes = [(b - a).diff(z) for a, b in pairwise(pieces)]
            bends = [simplify(slope.xreplace({z: t})) for slope, t in zip(slopes, breaks, strict=True)]
            return by_bends([piece.xreplace({z: line}) for piece in pieces], breaks, bends, line)
    return kink


def _cut(expr: Expr, z: Dummy, low: Expr, high: Expr) -> tuple[list[Expr], list[Expr]] | None:
    """Where a function of one variable bends between two places, and what it is there; None where that is open."""
    inner = (k for k in expr.atoms(Abs, Max, Min) if k.has(z) and not any(a.has(Abs, Max, Min) for a in k.args))
    kink = min(inner, key=str, default=None)
    if kink is None:
        return None if expr.has(Piecewise) else ([], [expr])
    above, below, gap = _two_sides(kink)
    if (signs := _beyond(gap, z, low, high) or _signs(gap, z)) is None:
        return None
    zeros, over = signs
    ends = [low, *(t for t in zeros if sign_of(t - low) == 1 and sign_of(high - t) == 1), high]
    if any(sign_of(t - end) is None for t in zeros for end in (low, high)):
        return None
    breaks, pieces = [], []
    for left, right in pairwise(ends):
        side = above if over[sum(sign_of(t - left) in (0, -1) for t in zeros)] == 1 else below
        if (found := _cut(expr.xreplace({kink: side}), z, left, right)) is None:
            return None
        breaks += [*found[0], right]
        pieces += found[1]
    return breaks[:-1], pieces


def _two_sides(kink: Expr) -> tuple[Expr, Expr, Expr]:
    """A kink where something is positive, and where it is negative; and that."""
    if isinstance(kink, Abs):
        return kink.args[0], -kink.args[0], kink.args[0]
    first, second, *others = kink.args
    gap = first - second if isinstance(kink, Max) else second - first
    return kink.func(first, *others), kink.func(second, *others), gap


def _beyond(gap: Expr, z: Dummy, low: Expr, high: Expr) -> tuple[list[Expr], list[int]] | None:
    """The sign of a convex or concave function that leaves zero at one end of a range, if it does: no zero follows."""
    shape = Rules([z])(gap)
    bend = 1 if shape.convex else -1
    for end, way in ((low, 1), (high, -1)) if shape.convex or shape.concave else ():
        slope = bend * way * gap.diff(z).xreplace({z: end})
        if end.is_finite and gap.xreplace({z: end}).is_zero and sign_of(simplify(slope)) in (0, 1):
            return [], [bend]
    return None


def _signs(gap: Expr, z: Dummy) -> tuple[list[Expr], list[int]] | None:
    """The places at which a convex or concave function is zero, and its signs between them; None where that is open."""
    shape = Rules([z])(gap)
    if not (shape.convex or shape.concave):
        return None
    bend = 1 if shape.convex else -1
    if shape.nonnegative or shape.nonpositive:
        return [], [1 if shape.nonnegative else -1]
    try:
        zeros = [r for r in solve(gap, z) if not r.has(I, S.NaN)]
    except NotImplementedError:
        return None
    if len(zeros) == 2 and (order := sign_of(zeros[1] - zeros[0])) in (1, -1):
        return zeros[::order], [bend, -bend, bend]
    if len(zeros) != 1 or not zeros[0].is_real:
        return None
    way = sign_of(simplify(gap.diff(z).xreplace({z: zeros[0]})))
    if way == 0:
        return [], [bend]
    if way not in (1, -1):
        return None
    # on the side to which it may bend back, it stays on its side
    end = limit(gap, z, oo if way != bend else -oo)
    return (zeros, [-way, way]) if (bend * end).is_extended_nonpositive else None


def second_slope(gap: Expr, moving: Sequence[Expr]) -> Expr | None:
    """Half the second slope of what is quadratic, in the first variable of it; None for others."""
    inner = next((m for m in moving if gap.has(m)), None)
    half = gap.diff(inner, 2) / 2 if inner is not None and gap.is_polynomial(*moving) else S.Zero
    return None if half == 0 or half.has(*moving) else half


def quadratic_line(gap: Expr, moving: Sequence[Expr]) -> tuple[Expr, Expr, Expr] | None:
    """Half the second slope, a line and a bound: a quadratic function is ``half*(line**2 - bound**2)``, if it is."""
    half = second_slope(gap, moving)
    if half is None or not (half.is_positive or half.is_negative):
        return None
    slope = gap.diff(next(m for m in moving if gap.has(m)))
    width = (slope**2 - 4 * half * gap).expand()
    if width.has(*moving) or not width.is_nonnegative:
        return None
    return half, (slope / (2 * half)).expand(), sqrt((width / (4 * half**2)).cancel())


def _by_squares(kink: Expr, half: Expr, line: Expr, bound: Expr) -> Expr:
    """The larger of two whose difference is quadratic, by its bends where the size of a line is a bound."""
    beyond = Add(*(Max(0, way * line - bound) ** 2 + 2 * bound * Max(0, way * line - bound) for way in (1, -1)))
    first, second = kink.args if half.is_positive else kink.args[::-1]
    return second + abs(half) * beyond if isinstance(kink, Max) else first - abs(half) * beyond


def by_bends(values: Sequence[Expr], breaks: Sequence[Expr], bends: Sequence[Expr], gap: Expr) -> Expr:
    """Pieces on a line as what is smooth, by cases, and one positive part for each bend."""
    lines = accumulate((bend * (gap - t) for t, bend in zip(breaks, bends, strict=True)), initial=S.Zero)
    smooth = [piece - line for piece, line in zip(values, lines, strict=True)]
    cases = [(piece, gap < t) for piece, t in zip(smooth, breaks, strict=False)]
    kinks = (bend * Max(0, gap - t) for t, bend in zip(breaks, bends, strict=True) if bend != 0)
    return Add(Piecewise(*cases, (smooth[-1], True)), *kinks)


def _lines(kink: Expr, moving: Sequence[Expr]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Arguments of functions that are linear in what varies, with the rate and one of the variables."""
    for node in sorted(kink.atoms(Function) - {kink}, key=str):
        line = node.args[0].expand() if len(node.args) == 1 else S.Zero
        inner = next((m for m in moving if line.has(m)), None)
        if inner is not None and not any(line.diff(m).has(*moving) for m in moving):
            yield line, line.diff(inner), inner
