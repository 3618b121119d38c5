"""The larger of two curved functions of one line: the place where they meet, and how far it bends there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from sympy import Abs, Add, Dummy, Expr, Function, I, Max, Min, Piecewise, S, limit, oo, simplify, solve

from symcavity.algebra.signs import sign_of
from symcavity.model.composition import Rules


def by_places(body: Expr, moving: Sequence[Expr]) -> Expr:
    """Return a body with the larger of two functions by cases and bends: ``Max(exp(-r) - 1, 0)`` bends where r is zero.

    That is done where their difference is a function of one line, bends to one side, and has one zero, with a formula.
    What a polynomial decides is read elsewhere.

    Parameters
    ----------
    body : Expr
        What is summed over sites.
    moving : sequence of Expr
        All that varies in it.
    """
    for kink in sorted((k for k in body.atoms(Max, Min) if len(k.args) == 2), key=str):
        mark = Dummy("t", real=True)
        if not body.xreplace({kink: mark}).diff(mark).has(mark, *moving):
            body = body.xreplace({kink: _by_places(kink, moving)})
    return body


def _by_places(kink: Expr, moving: Sequence[Expr]) -> Expr:
    """A kink by what is smooth and its bends; itself where the places have no formulas."""
    first, second = kink.args
    gap, z, way = first - second, Dummy("z", real=True), 1 if isinstance(kink, Max) else -1
    for line, rate, inner in _lines(gap, moving):
        along = gap.xreplace({inner: (z - (line - rate * inner).expand()) / rate}).expand()
        if along.free_symbols == {z} and (found := _crossing(along, z)) is not None:
            place, below = found
            bend = way * Abs(simplify(along.diff(z).xreplace({z: place})))
            return by_bends([first, second] if below == way else [second, first], [place], [bend], line)
    return kink


def by_bends(values: Sequence[Expr], breaks: Sequence[Expr], bends: Sequence[Expr], gap: Expr) -> Expr:
    """Pieces on a line as what is smooth, by cases, and one positive part for each bend."""
    lines = accumulate((bend * (gap - t) for t, bend in zip(breaks, bends, strict=True)), initial=S.Zero)
    smooth = [piece - line for piece, line in zip(values, lines, strict=True)]
    cases = [(piece, gap < t) for piece, t in zip(smooth, breaks, strict=False)]
    kinks = (bend * Max(0, gap - t) for t, bend in zip(breaks, bends, strict=True))
    return Add(Piecewise(*cases, (smooth[-1], True)), *kinks)


def _lines(gap: Expr, moving: Sequence[Expr]) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Arguments of functions that are linear in what varies, with the rate and one of the variables."""
    for node in sorted(gap.atoms(Function), key=str):
        line = node.args[0].expand() if len(node.args) == 1 else S.Zero
        inner = next((m for m in moving if line.has(m)), None)
        if inner is not None and not any(line.diff(m).has(*moving) for m in moving):
            yield line, line.diff(inner), inner


def _crossing(gap: Expr, z: Expr) -> tuple[Expr, int] | None:
    """The only place at which a function changes its sign, and its sign below that; None where that is open."""
    shape = Rules([z])(gap)
    if not (shape.convex or shape.concave):
        return None
    try:
        zeros = {r for r in solve(gap, z) if r.is_real and not r.has(I, S.NaN)}
    except NotImplementedError:
        return None
    way = sign_of(simplify(gap.diff(z).xreplace({z: next(iter(zeros))}))) if len(zeros) == 1 else None
    if way not in (1, -1):
        return None
    bend = 1 if shape.convex else -1  # beyond, on the side to which it may bend back, it stays on its side
    end = limit(gap, z, oo if way != bend else -oo)
    return (zeros.pop(), -way) if (bend * end).is_extended_nonpositive else None
