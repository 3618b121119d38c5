"""Constraints that say nothing beyond the others: stated twice, or weaker, or two that are one equality."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sympy import Abs, Eq, Equality, Expr, GreaterThan, LessThan, Pow, cancel

from symcavity.errors import Infeasible
from symcavity.model.quantities import Field, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.site_sums import is_affine


@dataclass(frozen=True)
class _Constraint:
    """One constraint: ``expr >= 0``, or ``expr = 0``."""

    expr: Expr
    equality: bool
    entry: Any


class Redundant(Rewriting):
    """Each constraint once: multipliers of constraints that say the same would not be determined."""

    key = "redundant"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with the constraints that are needed.

        Raises
        ------
        Infeasible
            If two constraints differ by a number only, and cannot hold together.
        """
        if declaration.objective is None:
            return declaration
        kept: list[_Constraint | Any] = []
        for entry in declaration.entries:
            said = _read(entry)
            if said is None:
                kept.append(entry)
                continue
            others = [one for one in kept if isinstance(one, _Constraint)]
            joined = next(((one, both) for one in others if (both := _both(one, said)) is not None), None)
            if joined is None:
                kept.append(said)
            else:
                kept[kept.index(joined[0])] = joined[1]
        return replace(declaration, entries=tuple(k.entry if isinstance(k, _Constraint) else k for k in kept))


def _read(entry: Any) -> _Constraint | None:
    """What a relation says of states."""
    if not isinstance(entry, GreaterThan | LessThan | Equality) or not site_quantities(entry, Variable):
        return None
    if isinstance(entry, Equality):
        return _Constraint(entry.lhs - entry.rhs, True, entry)
    expr = entry.gts - entry.lts
    factor, square = (-expr).as_independent(*site_quantities(expr, Variable), as_Add=False)
    states = site_quantities(square, Variable, Field)
    even = isinstance(square, Abs) or (isinstance(square, Pow) and square.exp.is_even)
    if even and factor.is_positive and is_affine(square.args[0], states):
        return _Constraint(square.args[0], True, Eq(square.args[0], 0))  # a square, or a size, that is not positive
    return _Constraint(expr, False, entry)


def _both(one: _Constraint, other: _Constraint) -> _Constraint | None:
    """The one constraint that two are; None where both are needed."""
    ratio, rest = _proportion(one.expr, other.expr)
    if ratio is None:
        return None
    if one.equality or other.equality:
        equal, more = (one, other) if one.equality else (other, one)
        gap = rest if one.equality else -rest / ratio  # what is left of the other where the equality holds
        holds = gap.is_zero if more.equality else gap.is_nonnegative
        if holds is False or (gap.is_negative and not more.equality):
            raise _contradiction(one, other)
        return replace(equal) if holds else None
    if ratio.is_positive:
        return one if rest.is_nonnegative else other if rest.is_nonpositive else None
    if rest.is_negative:  # other = -|ratio| one + rest
        raise _contradiction(one, other)
    return _Constraint(one.expr, True, Eq(one.expr, 0)) if rest.is_zero else None


def _proportion(one: Expr, other: Expr) -> tuple[Expr | None, Expr]:
    """The number c and the rest, free of sites, for which ``other = c*one + rest``; None without such a number."""
    first, second = one.expand(deep=False), other.expand(deep=False)
    moving, still = first.as_independent(*site_quantities(first), as_Add=True)[::-1]
    turned, fixed = second.as_independent(*site_quantities(second), as_Add=True)[::-1]
    ratio = cancel(turned / moving)
    if ratio.is_positive or ratio.is_negative:
        return ratio, (fixed - ratio * still).expand()
    return None, fixed


def _contradiction(one: _Constraint, other: _Constraint) -> Infeasible:
    entries = one.entry, other.entry
    return Infeasible(
        f"The constraints {entries[0]} and {entries[1]} contradict each other: no values meet both.",
        "constraints that can be met together",
        evidence=entries,
    )
