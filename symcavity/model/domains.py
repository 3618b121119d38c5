"""Where an objective ends: the constraints that its logarithms and roots imply; and where it steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import (
    Add,
    Dummy,
    Expr,
    GreaterThan,
    Heaviside,
    LessThan,
    Max,
    Mul,
    Piecewise,
    Pow,
    S,
    StrictGreaterThan,
    StrictLessThan,
    Sum,
    cancel,
    log,
    piecewise_fold,
    sign,
    true,
)
from sympy.core.relational import Relational

from symcavity.algebra.signs import sign_of
from symcavity.model.fields import kind_of_sum, outer_sums, site_sum
from symcavity.model.quantities import Field, Global, Variable, site_quantities

ORDERS = (GreaterThan, StrictGreaterThan, LessThan, StrictLessThan)


def implied(objective: Expr, constraints: Iterable[Any]) -> tuple[GreaterThan, ...]:
    """The conditions under which the logarithms and roots in an objective are numbers, unless they are declared.

    Parameters
    ----------
    objective : Expr
        Sums over sites.
    constraints : iterable
        What is declared: a condition is left out where one of these is as strong.

    Returns
    -------
    tuple of GreaterThan
        ``w[i] >= 0`` for ``-log(w[i])``: of what is linear in the states, at every site.
    """
    relations = [c for c in constraints if isinstance(c, GreaterThan | LessThan)]
    known = [c.gts - c.lts for c in relations]
    found: list[Expr] = []
    for total in outer_sums(objective):
        if len(total.limits) != 1 or kind_of_sum(total.limits[0]) is None:
            continue
        _, body = site_sum(total, "the objective")
        nodes = [n.args[0] for n in body.atoms(log)] + [n.base for n in body.atoms(Pow) if _is_root(n.exp)]
        for arg in sorted(nodes, key=str):
            if _is_linear(arg) and not any(_as_strong(e, arg) for e in (*known, *found)):
                found.append(arg)
    return tuple(GreaterThan(arg, 0, evaluate=False) for arg in found)


def with_kinks(objective: Expr) -> Expr:
    """Losses by cases that bend where the cases meet, ``Max(0, r)`` for ``Piecewise((r, r > 0), (0, True))``.

    So are steps of states, ``r*sign(r)``. What is smooth where its cases meet stays as it is written.
    """
    rule = {}
    for total in outer_sums(objective):
        marks = {s: Dummy("h", real=True) for s in outer_sums(total.function) if site_quantities(s, Variable)}
        body = total.function.xreplace(marks)
        varying = [*site_quantities(body, Variable), *body.atoms(Global), *(m for m in marks.values() if body.has(m))]
        written = _bent(body, sorted(varying, key=str)).xreplace({mark: s for s, mark in marks.items()})
        rule[total] = Sum(written, *total.limits) if written != total.function else total
    return objective.xreplace(rule)


def _bent(body: Expr, varying: list[Expr]) -> Expr:
    if not any(node.has(*varying or [S.NaN]) for node in body.atoms(sign, Heaviside, Relational)):
        return body
    steps = [s for s in body.atoms(sign, Heaviside) if s.has(*varying)]
    low = {s: S.NegativeOne if isinstance(s, sign) else S.Zero for s in steps}
    body = body.xreplace({s: Piecewise((1, s.args[0] > 0), (low[s], True)) for s in steps})
    if body.is_Add:
        return Add(*(_bent(term, varying) for term in body.args))
    factor, rest = body.as_independent(*varying, as_Add=False)
    if rest.is_Add:
        return factor * _bent(rest, varying)
    if isinstance(rest, Piecewise) and not any(c.has(*varying) for _, c in rest.args):
        return factor * Piecewise(*((_bent(value, varying), c) for value, c in rest.args))
    folded = piecewise_fold(rest) if steps else rest
    return factor * _with_hinges(folded, varying) if isinstance(folded, Piecewise) else body


def _with_hinges(node: Piecewise, varying: list[Expr]) -> Expr:
    """A continuous function by cases along a line as a smooth one and hinges; as it is where it has no kink."""
    *cases, (found, last) = node.args
    bent, above = False, found
    beyond = None
    if last is not true or not all(isinstance(c, ORDERS) for _, c in cases):
        return node
    for value, condition in reversed(cases):
        gap = (condition.gts - condition.lts).expand()
        x = next((v for v in varying if (slope := gap.diff(v)) != 0 and not slope.has(*varying)), None)
        if x is None or (beyond is not None and sign_of((beyond - gap).expand()) != 1):
            return node
        place, step = {x: x - gap / gap.diff(x)}, value - above
        jump, kink = (cancel(e.subs(place)) for e in (step, step.diff(x) / gap.diff(x)))
        if jump != 0 or kink.has(*varying):
            return node
        rest = (step - kink * gap).expand()
        found += kink * Max(0, gap) + (Piecewise((rest, gap > 0), (0, True)) if rest != 0 else 0)
        bent, above, beyond = bent or kink != 0, value, gap
    return found if bent else node


def squared(relation: Any) -> Any:
    """A bound on the root of a sum over sites, ``c*sqrt(total) <= bound``, as one on the sum; others as they are.

    The root is then no variable of its own, which a bound that is not met would leave open.
    """
    if not isinstance(relation, GreaterThan | LessThan):
        return relation
    terms = Add.make_args(relation.gts - relation.lts)
    held = [t for t in terms if t.has(Sum)]
    if len(held) != 1:
        return relation
    factor, root = (-held[0]).as_independent(Sum, as_Add=False)
    bound = Add(*(t for t in terms if t not in held))
    if not (isinstance(root, Pow) and root.exp == S.Half and factor.is_positive and bound.is_nonnegative):
        return relation
    return LessThan((factor**2 * root.base).expand(deep=False), bound**2, evaluate=False)


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
    """Whether ``one >= 0`` implies ``other >= 0``: a positive multiple of it, or more than it by a constant."""
    ratio = (other / one).cancel()
    return bool(ratio.is_positive or (other - one).expand().is_nonnegative)


__all__ = ["implied", "squared"]
