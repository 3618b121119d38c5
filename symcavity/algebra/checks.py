"""Numerical checks of identities: both sides at seeded points, to any number of digits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Add, Derivative, Expr, Integer, Rational, S, Symbol, latex
from sympy.core.function import AppliedUndef
from sympy.core.relational import Equality
from sympy.tensor.indexed import Indexed

from symcavity.algebra.door import as_sympy
from symcavity.algebra.precision import alone, mp
from symcavity.errors import ValuesError

TRIALS = 20  # random points, of which one has to be in the domain


@dataclass(frozen=True)
class Check:
    """The outcome of ``check``: true if and only if both sides agree at every point.

    Parameters
    ----------
    lhs, rhs : Expr
        The two sides.
    ok : bool
        Whether the residual is below ten to the minus dps.
    residual : mpf
        The largest relative difference.
    points : list of dict
        Where they were evaluated.
    dps : int
        The number of digits.
    residuals : list of mpf
        One for each point.
    """

    lhs: Expr
    rhs: Expr
    ok: bool
    residual: Any
    points: list[dict[Expr, Expr]]
    dps: int
    residuals: list[Any] = field(default_factory=list)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        verdict = "agree" if self.ok else "DISAGREE"
        lines = [f"{self.lhs} = {self.rhs}"]
        for point, residual in zip(self.points, self.residuals, strict=True):
            where = point_text(point) or "no free symbols"
            lines.append(f"  {where}: relative difference {mp.nstr(residual, 3)}")
        lines.append(f"The two sides {verdict} to {self.dps} digits at {len(self.points)} point(s).")
        return "\n".join(lines)

    def _repr_latex_(self) -> str:
        verdict = "agree" if self.ok else "disagree"
        size = mp.nstr(self.residual, 3)
        text = f"{verdict} to {self.dps} digits at {len(self.points)} points, relative difference {size}"
        return rf"$\displaystyle {latex(self.lhs)} = {latex(self.rhs)}\quad\text{{{text}}}$"


@alone
def check(
    lhs: Any,
    rhs: Any = None,
    dps: int = 50,
    points: int | Iterable[Mapping[Any, Any]] = 5,
    seed: int = 0,
) -> Check:
    """Evaluate both sides of an identity at seeded points, and compare the digits.

    Parameters
    ----------
    lhs, rhs : Expr
        The two sides; an ``Eq`` alone is taken apart.
    dps : int
        The number of decimal digits that have to agree.
    points : int or iterable of dict
        How many random points that respect the assumptions of the symbols, or the points themselves.
    seed : int
        Of the random points.

    Returns
    -------
    Check
        True if and only if the sides agree everywhere. The difference is relative to the larger side,
        or to the largest term where both sides cancel to zero.

    Raises
    ------
    ValuesError
        If dps is below 1, or if a side cannot be evaluated.

    Examples
    --------
    >>> from sympy import Symbol
    >>> from symcavity.algebra.phi import phi
    >>> kappa = Symbol("kappa", real=True)
    >>> bool(check(phi(2, kappa), phi(0, kappa) + kappa*phi(1, kappa)))
    True
    """
    if isinstance(dps, bool) or int(dps) != dps or dps < 1:
        raise ValuesError(f"dps = {dps}.", "a whole number of digits, 1 or more.", "dps=50")
    left, right = both_sides(lhs, rhs)
    digits = int(dps)
    if isinstance(points, int):
        found = _at_random(left, right, digits, points, seed)
    else:
        found = [_at_point(left, right, digits, given) for given in points]
    chosen, residuals = [point for point, _ in found], [residual for _, residual in found]
    worst = max(residuals, default=mp.mpf(0))
    ok = bool(residuals) and worst < mp.mpf(10) ** -digits
    return Check(left, right, ok, worst, chosen, digits, residuals)


def _at_random(left: Expr, right: Expr, digits: int, count: int, seed: int) -> list[tuple[dict[Expr, Expr], Any]]:
    """Random points at which both sides have a value, and by how much they differ there."""
    if count < 1:
        raise ValuesError(f"The number of points is {count}.", "one point or more.")
    names, rng, out = _names(left, right), np.random.default_rng(seed), []
    for _ in range(count if names else 1):
        for _ in range(TRIALS):
            point = {name: _value(name, rng) for name in names}
            if (residual := _residual(left, right, point, digits)) is not None:
                out.append((point, residual))
                break
        else:
            raise ValuesError(
                f"{left} = {right} has no finite value at {TRIALS} random points.",
                hint="points=[{symbol: value, ...}] inside the domain of the identity.",
            )
    return out


def _at_point(left: Expr, right: Expr, digits: int, given: Mapping[Any, Any]) -> tuple[dict[Expr, Expr], Any]:
    """A point as it is given, and by how much the sides differ there."""
    point = {as_sympy(name): as_sympy(value) for name, value in given.items()}
    missing = [str(name) for name in _names(left, right) if name not in point]
    if missing:
        raise ValuesError(f"The point {given} has no value for {', '.join(missing)}.")
    residual = _residual(left, right, point, digits)
    return point, mp.mpf("inf") if residual is None else residual


def _names(*sides: Expr) -> list[Expr]:
    """Return everything that needs a value: free symbols, entries of arrays, values of functions."""
    whole = Add(*sides, evaluate=False)
    free = whole.free_symbols
    entries = {e for e in whole.atoms(Indexed, AppliedUndef) if e.free_symbols <= free}
    inside = set().union(*(e.free_symbols | {e.base.label} for e in entries if isinstance(e, Indexed)))
    names = {s for s in free if isinstance(s, Symbol)} - inside
    return sorted(names | entries, key=lambda s: s.sort_key())


def _value(name: Expr, rng: np.random.Generator) -> Expr:
    """Draw a value that respects the assumptions of a name."""
    draw = int(rng.integers(1, 3000))
    if name.is_integer:
        size: Expr = Integer(1 + draw % 5)
        if name.is_even:
            size = 2 * size
        elif name.is_odd:
            size = 2 * size - 1
        elif name.is_prime:
            size = Integer([2, 3, 5, 7, 11][draw % 5])
    else:
        size = Rational(2 * draw + 1, 2000)
    if name.is_nonpositive:
        return -size
    if name.is_nonnegative or name.is_prime:
        return size
    return size if rng.integers(0, 2) else -size


def _residual(lhs: Expr, rhs: Expr, point: Mapping[Expr, Expr], digits: int) -> Any:
    """Return the relative difference of the two sides at a point, or None where one is not finite."""
    work = 2 * digits + 20
    with mp.workdps(work):
        sums, scale = [], mp.mpf(0)
        for side in (lhs, rhs):
            terms = [_number(term, point, work) for term in Add.make_args(side)]
            if any(term is None for term in terms):
                return None
            sums.append(mp.fsum(terms))
            scale = max([scale, *map(abs, terms)])
        gap, size = abs(sums[0] - sums[1]), max(map(abs, sums))
        if gap == 0:
            return mp.mpf(0)
        if size <= scale * mp.mpf(10) ** -(digits + 5):
            size = scale
        return +(gap / size)


def _number(term: Expr, point: Mapping[Expr, Expr], work: int) -> Any:
    value = term.subs(dict(point), simultaneous=True)
    if value.has(S.NaN, S.ComplexInfinity, S.Infinity, S.NegativeInfinity):
        return None
    value = value.doit() if value.has(Derivative) else value
    value = value.evalf(work, maxn=4 * work)
    parts: Sequence[Expr] = value.as_real_imag()
    if not all(part.is_number for part in parts):
        raise ValuesError(f"{term} has no value at {point_text(point)}.", "expressions that evalf evaluates.")
    if not all(part.is_finite for part in parts):
        return None
    re, im = (mp.convert(part) for part in parts)
    return mp.mpc(re, im) if im else re


def both_sides(lhs: Any, rhs: Any) -> tuple[Expr, Expr]:
    """Return the two sides of an identity, given apart or as one ``Eq``."""
    if rhs is None:
        if not isinstance(lhs, Equality):
            raise ValuesError(f"One side only: {lhs}.", "two expressions, or one unevaluated Eq.")
        lhs, rhs = lhs.lhs, lhs.rhs
    left, right = as_sympy(lhs), as_sympy(rhs)
    for side in (left, right):
        if not isinstance(side, Expr):
            raise ValuesError(f"{side} is not an expression.", "two SymPy expressions.")
    return left, right


def point_text(point: Mapping[Expr, Expr]) -> str:
    """Return a point as text."""
    return ", ".join(f"{name} = {value}" for name, value in point.items())
