"""Where an objective, or a bound, ends: the constraints that its logarithms and roots imply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sympy import (
    Abs,
    Add,
    And,
    Expr,
    GreaterThan,
    Heaviside,
    LessThan,
    Mul,
    Not,
    Piecewise,
    Pow,
    S,
    Sum,
    fraction,
    log,
    sqrt,
)
from sympy.logic.boolalg import Boolean

from symcavity.errors import UnsupportedLaw
from symcavity.model.couplings import Coupling
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.ranges import RELATIONS
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.rewritings.kinks import bounds_on_lines
from symcavity.model.site_sums import kind_of_sum, outer_sums, site_sum

PAIR = SQUARE = 2


class Domains(Rewriting):
    """The constraints of a problem with those that its objective implies, and bounds on roots as bounds on sums.

    Products with states that cannot be negative are solved for one of them: ``z**2 >= 1 + u**2`` is
    ``z >= sqrt(1 + u**2)``, and ``v*w >= 1`` is ``w >= 1/v``, which are convex as they stand.
    """

    key = "domains"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with these constraints."""
        if declaration.objective is None:
            return declaration
        entries = list(map(_squared, _solved_for_states(declaration.entries)))
        return replace(declaration, entries=(*entries, *_implied(declaration.objective, entries)))


def _implied(objective: Expr, constraints: Iterable[Any]) -> tuple[GreaterThan, ...]:
    """The conditions under which logarithms and roots, in an objective or in bounds, are numbers.

    Parameters
    ----------
    objective : Expr
        Sums over sites.
    constraints : iterable
        What is declared: a condition is left out where one of these is as strong. Bounds with logarithms or roots
        imply more.

    Returns
    -------
    tuple of GreaterThan
        ``w[i] >= 0`` for ``-log(w[i])``: of what is linear in the states, at every site.

    Raises
    ------
    UnsupportedLaw
        For one that is read in some cases only, if its end lies among these cases and others go on beyond it.
    """
    relations = [c for c in constraints if isinstance(c, GreaterThan | LessThan)]
    known = [c.gts - c.lts for c in relations]
    found: list[Expr] = []
    for body in (*_summands(objective), *(body for gap in known for body in _told_by(gap))):
        for arg, cases in sorted(set(_lines(_ends(body, ()))), key=str):
            if not _is_linear(arg) or any(_as_strong(e, arg) for e in (*known, *found)):
                continue
            if _is_end(arg, cases):
                found.append(arg)
    return tuple(GreaterThan(arg, 0, evaluate=False) for arg in found)


def _summands(total: Expr) -> Iterator[Expr]:
    """What is summed over the sites of a kind."""
    for part in outer_sums(total):
        if len(part.limits) == 1 and kind_of_sum(part.limits[0]) is not None:
            yield site_sum(part, "the objective")[1]


def _told_by(gap: Expr) -> Iterator[Expr]:
    """What ends in a bound of one site, ``log(w[i]) - u[i] >= 0``, or under a sum in one on all sites."""
    ending = [part for part in outer_sums(gap) if _has_ends(part.function)]
    for part in ending:
        yield from _summands(part)
    if _has_ends(rest := gap.xreplace(dict.fromkeys(ending, S.Zero))):
        yield rest


def _has_ends(expr: Expr) -> bool:
    """Whether logarithms or roots stand in an expression."""
    return expr.has(log) or any(_is_root(p.exp) for p in expr.atoms(Pow))


def _ends(expr: Any, cases: tuple[Boolean, ...]) -> Iterator[tuple[Expr, tuple[Boolean, ...]]]:
    """The arguments of logarithms and roots, each with the conditions of the cases in which it is read."""
    if isinstance(expr, Piecewise):
        for piece, condition in expr.args:
            yield from _ends(piece, (*cases, condition))
            cases = (*cases, Not(condition))
        return
    if isinstance(expr, log):
        yield expr.args[0], cases
    if isinstance(expr, Pow) and _is_root(expr.exp):
        yield expr.base, cases
    if isinstance(expr, Mul):
        steps = [a for a in expr.args if isinstance(a, Heaviside)]  # beyond a step its factors are not read
        cases = (*cases, *(GreaterThan(a.args[0], 0, evaluate=False) for a in steps))
    for arg in expr.args:
        yield from _ends(arg, cases)


def _lines(ends: Iterable[tuple[Expr, tuple[Boolean, ...]]]) -> Iterator[tuple[Expr, tuple[Boolean, ...]]]:
    """The same, by what is linear: a quadratic function of one combination is positive between two ends of it.

    A quotient has the sign of the product of its two sides.
    """
    for arg, cases in ends:
        top, bottom = fraction(arg.together())
        arg = top * bottom if _states(bottom) else arg
        for bound in bounds_on_lines(GreaterThan(arg, 0, evaluate=False)):
            yield bound.gts - bound.lts, cases


def _is_end(arg: Expr, cases: tuple[Boolean, ...]) -> bool:
    """Whether states end where a linear expression that is read in some cases only changes its sign.

    Where the cases imply its sign they do not; where they hold on its other side, all states end there.
    """
    parts = [p for case in cases for p in And.make_args(case)]
    if not parts:
        return True
    sides = [side for part in parts for side in _sides(part)]
    if any(_as_strong(side, arg) for side in sides):
        return False
    orders = all(isinstance(p, RELATIONS) or p is S.true for p in parts)
    if orders and all(_as_strong(-side, arg) for side in sides):
        return True
    raise UnsupportedLaw(
        f"The objective holds a logarithm or a root of {arg} in the case {And(*parts)}, and may go on beyond its "
        "end in other cases.",
        supported="logarithms and roots that are numbers throughout their case, or read in all cases",
        hint=f"declare the bound for all sites, {arg} >= 0, if it is meant; or choose cases that exclude other values",
    )


def _sides(condition: Boolean) -> tuple[Expr, ...]:
    """What is positive or zero where a condition holds, as far as it is linear."""
    if not isinstance(condition, RELATIONS):
        return ()
    gap = condition.gts - condition.lts
    held = [node for node in gap.atoms(Abs) if gap.coeff(node).is_negative]
    if len(held) == 1:
        return tuple(gap.xreplace({held[0]: side}) for side in (held[0].args[0], -held[0].args[0]))
    return (gap,)


def _squared(relation: Any) -> Any:
    """A bound on the root of a sum over sites, ``c*sqrt(total) <= bound``, as one on the sum; others as they are.

    The root is then no variable of its own, which a bound that is not met would leave open.  A bound by a global
    variable, which is minimized over, is a cone as it stands.
    """
    if not isinstance(relation, GreaterThan | LessThan):
        return relation
    terms = Add.make_args(relation.gts - relation.lts)
    held = [t for t in terms if t.has(Sum)]
    if len(held) != 1:
        return relation
    factor, root = (-held[0]).as_independent(Sum, as_Add=False)
    bound = Add(*(t for t in terms if t not in held))
    is_bound = factor.is_positive and bound.is_nonnegative and not bound.has(Global)  # whose square is no cone
    if not (isinstance(root, Pow) and root.exp == S.Half and is_bound):
        return relation
    return LessThan((factor**2 * root.base).expand(deep=False), bound**2, evaluate=False)


def _solved_for_states(entries: Sequence[Any]) -> list[Any]:
    """The entries with bounds on products of states solved for a state, without those that these imply of it."""
    found = list(entries)
    for relation in entries:
        if isinstance(relation, GreaterThan | LessThan) and (solved := _solved(relation, entries)) is not None:
            state, bound = solved
            found = [e for e in found if e is not relation and not _is_implied(e, state, bound)]
            found.append(GreaterThan(state, bound, evaluate=False))
    return found


def _solved(relation: Any, entries: Sequence[Any]) -> tuple[Expr, Expr] | None:
    """A state and its lower bound where ``v*w >= c > 0`` or ``z**2 >= squares``, and v or z cannot be negative."""
    known = [c.gts - c.lts for c in entries if isinstance(c, GreaterThan | LessThan) and c is not relation]
    terms = Add.make_args(relation.gts - relation.lts)
    for term in terms:
        factor, product = term.as_independent(SiteQuantity, as_Add=False)
        states = sorted(site_quantities(product, Variable), key=str)
        bound = Add(*(-t / factor for t in terms if t is not term))
        positive = [q for q in states if any(_as_strong(gap, q) for gap in known)]
        if not (factor.is_positive and positive) or bound.has(*states):
            continue
        if product == states[0] ** 2 and all(map(_is_square, Add.make_args(bound))):
            return states[0], Abs(bound.base) if isinstance(bound, Pow) and bound.exp == SQUARE else sqrt(bound)
        is_given = bound.is_positive and not site_quantities(bound, Variable, Coupling)
        if len(states) == PAIR and product == Mul(*states) and is_given:
            other = next(q for q in states if q != positive[0])  # whose sign the product implies
            return other, bound / positive[0]
    return None


def _is_implied(entry: Any, state: Expr, bound: Expr) -> bool:
    """Whether an entry bounds a state by a number from below, by no more than its bound does."""
    if not isinstance(entry, GreaterThan | LessThan):
        return False
    gap = (entry.gts - entry.lts).expand(deep=False)
    factor = gap.coeff(state)
    low = ((factor * state - gap) / factor).cancel() if factor != 0 else state
    if low.has(SiteQuantity) or not factor.is_positive:
        return False
    left = Add.make_args(bound.base - low**2) if isinstance(bound, Pow) and bound.exp == S.Half else ()
    return bool(low.is_nonpositive or (left and all(map(_is_square, left))))


def _is_square(term: Expr) -> bool:
    """Whether a term is not negative, by its form."""
    factor, rest = term.as_independent(SiteQuantity, Sum, as_Add=False)
    return bool(factor.is_nonnegative and (rest == 1 or (isinstance(rest, Pow) and rest.exp.is_even)))


def _is_root(power: Expr) -> bool:
    return bool(power.is_Rational and not power.is_Integer)


def _is_linear(expr: Expr) -> bool:
    """Whether something is linear in states and in sums of them, and not constant: it takes either sign then."""
    if expr.is_Add:
        states = [a for a in expr.args if site_quantities(a, Variable, Field)]
        return bool(states) and all(map(_is_linear, states))
    factors = [a for a in Mul.make_args(expr) if site_quantities(a, Variable, Field)]
    if len(factors) != 1:
        return False
    return (isinstance(factors[0], Sum) and _is_linear(factors[0].function)) or factors[0] in site_quantities(expr)


def _as_strong(one: Expr, other: Expr) -> bool:
    """Whether ``one >= 0`` implies ``other >= 0``: other is a positive multiple of it, or more by a constant."""
    if (other / one).cancel().is_positive:
        return True
    moving, others = map(_moving, (one, other))
    ratio = (others / moving).cancel() if moving != 0 else S.Zero
    return bool(ratio.is_positive and not _states(ratio) and (other - ratio * one).expand().is_nonnegative)


def _moving(expr: Expr) -> Expr:
    """The terms of a linear expression that hold states."""
    return Add(*(t for t in Add.make_args(expr.expand(deep=False)) if _states(t)))


def _states(expr: Expr) -> bool:
    return bool(site_quantities(expr, Variable, Field))
