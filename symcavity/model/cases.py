"""Functions by cases whose slope jumps, written by Max, of which each has a multiplier."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from sympy import Abs, Add, Dummy, Expr, Heaviside, Max, Min, Piecewise, Sum, cancel, sign
from sympy.core.relational import Relational

from symcavity.algebra.piecewise import NotPiecewisePolynomial, to_piecewise_polynomial
from symcavity.model.fields import outer_sums
from symcavity.model.quantities import Field, Global, Variable, site_quantities

CASES = (Piecewise, Heaviside, sign)


def by_kinks(objective: Expr) -> Expr:
    """Write what is summed over sites without cases where the slope jumps between them.

    ``Piecewise((tau*r, r >= 0), ((tau - 1)*r, True))`` and ``r*(tau - Heaviside(-r))`` are ``(tau - 1)*r + Max(0, r)``:
    polynomials on both sides of a break are that on the left, plus powers of the positive part of what lies beyond.

    Parameters
    ----------
    objective : Expr
        Sums over sites; a Piecewise that is smooth, and cases that no state decides, stay as they are.
    """
    cased = [total for total in outer_sums(objective) if total.function.has(*CASES)]
    return objective.xreplace({total: Sum(_rewritten(total.function), *total.limits) for total in cased})


def _rewritten(body: Expr) -> Expr:
    parts = [p for p in (*body.atoms(Sum), *site_quantities(body)) if site_quantities(p, Variable, Field)]
    marks: dict[Expr, Expr] = {p: Dummy(real=True) for p in parts}
    moving = [*marks.values(), *body.atoms(Global)]
    terms = (_term(term, moving) for term in Add.make_args(body.xreplace(marks)))
    return Add(*terms).xreplace({mark: p for p, mark in marks.items()})


def _term(term: Expr, moving: list[Expr]) -> Expr:
    """One term, by the first argument of its cases that leaves a polynomial on each side of every break."""
    for gap in _gaps(term, moving) if any(_is_moved(node, moving) for node in term.atoms(*CASES)) else ():
        z = Dummy("z", real=True)
        inner = next(m for m in moving if gap.has(m))
        rate = gap.diff(inner)
        along = term.xreplace({gap: z}).xreplace({inner: (z - (gap - rate * inner).expand()) / rate})
        try:
            breaks, pieces = to_piecewise_polynomial(along, z)
        except NotPiecewisePolynomial:
            continue
        jumps = []
        for t, left, right in zip(breaks, pieces, pieces[1:], strict=False):
            u = Dummy()
            jumps.append((t, cancel((right - left).xreplace({z: t + u})).as_poly(u).all_coeffs()[::-1]))
        if any(c.has(*moving) for _, row in jumps for c in row) or any(row[0] != 0 for _, row in jumps):
            continue
        if any(row[1:2] != [0] for _, row in jumps) or any(s.has(*moving) for s in term.atoms(Heaviside, sign)):
            beyond = (c * Max(0, gap - t) ** n for t, row in jumps for n, c in enumerate(row) if c != 0)
            return Add(pieces[0].xreplace({z: gap}), *beyond)
    return term


def _is_moved(node: Expr, moving: list[Expr]) -> bool:
    """Whether what varies decides which case holds."""
    return any(test.has(*moving) for _, test in node.args) if isinstance(node, Piecewise) else node.has(*moving)


def _gaps(term: Expr, moving: list[Expr]) -> Iterator[Expr]:
    """What decides the cases of a term, as far as it is linear in what varies."""
    for node in sorted(term.atoms(*CASES, Abs, Max, Min), key=str):
        if isinstance(node, Piecewise):
            sides = [(r.lhs, r.rhs) for _, test in node.args for r in test.atoms(Relational)]
        else:
            sides = list(combinations(node.args, 2)) if isinstance(node, Max | Min) else [(node.args[0], 0)]
        for first, second in sides:
            gap = first - second
            if gap.has(*moving) and not any(gap.diff(m).has(*moving) for m in moving):
                yield gap


__all__ = ["by_kinks"]
