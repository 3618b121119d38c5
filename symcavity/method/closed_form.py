"""Unknowns as explicit expressions in the parameters, where elimination and roots of quadratic equations give them."""

from __future__ import annotations

from typing import Any

from sympy import Expr, S, Symbol

from symcavity.errors import NoClosedForm, ValuesError
from symcavity.method.closed_root import quadratic_root
from symcavity.method.tidy import simplest, tidy_arguments
from symcavity.model.equations import Equation
from symcavity.model.kinds import alpha


def closed_form(theory: Any, symbol: Any, *, roots: bool) -> Expr:
    """An unknown or an observable of a theory as an explicit expression.

    Parameters
    ----------
    theory : Theory
    symbol : Symbol or observable
    roots : bool
        Whether a root of a quadratic equation counts as explicit.

    Raises
    ------
    NoClosedForm
        If equations are left that only a root finder solves.
    """
    target = theory.named_by(symbol)
    with_load = bool(theory.system.fixed)
    takes = set(theory.system.parameters) | {k.ratio for k in theory.system.kinds if k.ratio != 1}
    if target in takes - ({alpha} if with_load else set()):
        raise ValuesError(
            f"{target} is a parameter of this theory: closed forms are expressions in it.",
            f"unknowns and observables: {', '.join(map(str, theory.unknowns))}",
        )
    closed = theory.reduced_with_load if with_load else theory.reduced
    expr = target if target == alpha else theory.observable(target).xreplace(theory.units)
    for name in closed.definitions:
        if expr.has(name):
            expr = tidy_arguments(expr.xreplace({name: closed.explicit(name)}))
    unknown = set(theory.scaled_unknowns) | ({alpha} if with_load else set())
    if len(open_ := expr.free_symbols & unknown) == 1 and roots:
        (x,) = open_
        alone = [e for e in closed.core if e.has(x) and not e.free_symbols & (unknown - {x})]
        given = {name: closed.explicit(name) for name in closed.definitions}
        signs = [e.xreplace(theory.units).xreplace(given) for e in theory.positive]
        root = quadratic_root(alone[0], x, signs, theory.system.ranges) if len(alone) == 1 else None
        expr, open_ = (expr, open_) if root is None else (expr.xreplace({x: root}), set[Symbol]())
    if open_:
        left = tuple(Equation(e, S.Zero) for e in closed.core)
        raise NoClosedForm(
            f"{symbol} has no closed form: {', '.join(sorted(map(str, open_)))} "
            f"remain{'s' if len(open_) == 1 else ''}, fixed by {len(left)} "
            f"equation{'' if len(left) == 1 else 's'}.",
            left,
            "theory.solve({...}) solves them numerically to any number of digits",
        )
    return simplest(expr)
