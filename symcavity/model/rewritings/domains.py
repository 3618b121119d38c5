"""Where an objective ends: the constraints that its logarithms and roots imply."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sympy import Add, Expr, GreaterThan, LessThan, Mul, Pow, S, Sum, log

from symcavity.model.fields import kind_of_sum, outer_sums, site_sum
from symcavity.model.quantities import Field, Global, Variable, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting


class Domains(Rewriting):
    """The constraints of a problem with those that its objective implies, and bounds on roots as bounds on sums."""

    key = "domains"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with these constraints."""
        if declaration.objective is None:
            return declaration
        domain = _implied(declaration.objective, declaration.entries)
        return replace(declaration, entries=(*map(_squared, declaration.entries), *domain))


def _implied(objective: Expr, constraints: Iterable[Any]) -> tuple[GreaterThan, ...]:
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
