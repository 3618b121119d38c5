"""Events in a limit: whether a state that goes to a threshold has reached it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sympy import And, Dummy, Eq, Expr, Ge, Gt, Heaviside, Le, Lt, Ne, Or, Piecewise, Symbol, sign
from sympy.core.relational import Relational

from symcavity.model.averages import Average
from symcavity.model.quantities import Field, Variable, site_quantities

_SIDES = {
    Gt: lambda gap, near: gap > near,
    Ge: lambda gap, near: gap >= -near,
    Lt: lambda gap, near: gap < -near,
    Le: lambda gap, near: gap <= near,
    Ne: lambda gap, near: Or(gap > near, gap < -near),
    Eq: lambda gap, near: And(gap <= near, gap >= -near),
}


def beside_thresholds(expr: Expr, near: Symbol, steps: Collection[Expr] = ()) -> Expr:
    """An observable with all that is closer to a threshold than ``near`` counted as at the threshold.

    In the limit a state is at zero, and on the way to it is not: the share of states above zero has another limit
    than its value there.  What is counted with a margin that vanishes more slowly than the states do has the value.

    Parameters
    ----------
    expr : Expr
        In the words of a declaration.
    near : Symbol
        Positive.
    steps : collection of Expr
        Those of the energy of a lowest minimum: a state on one of them is on its lower side, on the way too.
    """
    averages = {a: a.func(_moved(a.args[0], near, steps), *a.args[1:]) for a in expr.atoms(Average)}
    return expr.xreplace({a: b for a, b in averages.items() if a != b})


def _moved(body: Any, near: Symbol, kept: Collection[Expr]) -> Any:
    names = {step: Dummy("step", real=True) for step in kept}
    body = body.xreplace(names)
    signs = {a: Piecewise((-1, a.args[0] < 0), (1, a.args[0] > 0), (0, True)) for a in body.atoms(sign) if _is_ours(a)}
    steps = {
        a: Piecewise((0, a.args[0] < 0), (1, a.args[0] > 0), (a.args[1], True))
        for a in body.atoms(Heaviside) if _is_ours(a)
    }  # fmt: skip
    body = body.xreplace(signs | steps)
    moved = body.xreplace({r: _SIDES[r.func](r.lhs - r.rhs, near) for r in body.atoms(Relational) if _is_ours(r)})
    return moved.xreplace({name: step for step, name in names.items()})


def _is_ours(node: Any) -> bool:
    """Whether a condition is about states, or fields, which may go to a threshold."""
    return bool(site_quantities(node, Variable, Field))
