"""Continuous time in a declaration: the rates of states, and the scheme in steps."""

from __future__ import annotations

from typing import Any

from sympy import Derivative, Dummy, Expr, S, Sum, Symbol

from symcavity.algebra.flow import Rate
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.noise import Noise
from symcavity.model.quantities import (
    Field,
    Quenched,
    SharedState,
    SharedSymbol,
    SiteQuantity,
    Variable,
    site_quantities,
)
from symcavity.model.times import Time


def rates_of(equation: Equation) -> Equation:
    """An equation of motion with the derivative of its state on its left, as a rate.

    Raises
    ------
    UnsupportedLaw
        If it does not hold one derivative, the first one of a state, times what keeps still.
    """
    solved = _for_its_derivative(equation)
    return Equation(Rate(solved.lhs.expr, solved.lhs.expr.time), solved.rhs)


def _for_its_derivative(equation: Equation) -> Equation:
    """An equation solved for the derivative in it: ``tau*dx/dt = y`` is ``dx/dt = y/tau``."""
    found = equation.difference.atoms(Derivative)
    derivative: Any = next(iter(found)) if len(found) == 1 else None
    state: Any = None if derivative is None else derivative.expr
    moving = isinstance(state, SiteQuantity) and isinstance(state.family, Variable | Field | SharedState)
    if derivative is not None and moving and derivative.variables == (state.time,) and isinstance(state.time, Time):
        if equation.lhs == derivative:
            return equation
        mark = Dummy("rate")
        rest = equation.difference.xreplace({derivative: mark})
        factor = rest.diff(mark)
        still = all(isinstance(q.family, Quenched) and q.time is None for q in site_quantities(factor))
        if factor != 0 and still and not factor.has(mark, state.time, Sum, Average, SharedSymbol):
            return Equation(derivative, -rest.xreplace({mark: S.Zero}) / factor)
    raise UnsupportedLaw(
        f"The equation {equation} does not give the first derivative of one state.",
        "equations with one such derivative, times what keeps still, or that give one state at once",
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
        if equation.has(Derivative):
            equation = _for_its_derivative(equation)
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
