"""Continuous time in a declaration: the rates of states, and the scheme in steps."""

from __future__ import annotations

from typing import Any

from sympy import Derivative, Expr, Symbol

from symcavity.algebra.flow import Rate
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.equations import Equation
from symcavity.model.noise import Noise
from symcavity.model.quantities import Field, SharedState, SiteQuantity, Variable, site_quantities
from symcavity.model.times import Time


def rates_of(equation: Equation) -> Equation:
    """An equation of motion with the derivative on its left as a rate.

    Raises
    ------
    UnsupportedLaw
        If a derivative stands elsewhere, or is not the first one of a state.
    """
    found = equation.lhs
    if isinstance(found, Derivative) and not equation.rhs.has(Derivative):
        state = found.expr
        moving = isinstance(state, SiteQuantity) and isinstance(state.family, Variable | Field | SharedState)
        if moving and found.variables == (state.time,) and isinstance(state.time, Time):
            return Equation(Rate(state, state.time), equation.rhs)
    raise UnsupportedLaw(
        f"The equation {equation} holds a derivative that is not the first one of a state on its left.",
        "equations that give the rate of one state, or one state at once",
        "Eq(Derivative(x[i, t], t), v[i, t]) and Eq(Derivative(v[i, t], t), ...) in place of a second derivative",
    )


def in_steps(equations: Any, step: Expr) -> list[Equation]:
    """The equations by Euler's rule (Euler and Maruyama's, with noise): rates become differences over a step.

    Parameters
    ----------
    equations : sequence of Equation
        As they were declared.
    step : Expr
        An exact number.
    """
    out = []
    for equation in equations:
        noises = site_quantities(equation.difference, Noise)
        rule = {q: q.func(q.family.with_variance(q.family.variance / step), *q.args[1:]) for q in noises}
        rhs = equation.rhs.xreplace(rule)
        if isinstance(equation.lhs, Derivative):
            state = equation.lhs.expr
            later = state.func(*state.args[:-1], state.time + 1)
            out.append(Equation(later, state + step * rhs))
        else:
            out.append(Equation(equation.lhs.xreplace(rule), rhs))
    return out


def check_no_steps(equation: Equation, time: Symbol) -> None:
    """Refuse states at other times than the one, in continuous time.

    Raises
    ------
    DeclarationError
        If there is one.
    """
    for q in site_quantities(equation.difference):
        if q.time is not None and q.time != time:
            raise DeclarationError(
                f"{q} is the state of a step, and other states have rates, in the equation {equation}.",
                f"states at the time {time}, in continuous time",
                "steps alone, Eq(x[i, t + 1], ...), or rates alone, Eq(Derivative(x[i, t], t), ...)",
            )
