"""Equations of a system in inverse functions, solved for their states."""

from __future__ import annotations

from sympy import Add, Expr, Mul, S, atanh, erf, erfinv, exp, log, tanh

from symcavity.model.equations import Equation
from symcavity.model.rewriting import Declaration, Rewriting
from symcavity.model.site_sums import own_states

INVERSES = {log: exp, atanh: tanh, erfinv: erf}  # each takes its whole domain to the whole line, one to one


class Inverses(Rewriting):
    """``atanh(x) = h`` is ``x = tanh(h)``, and ``log(x) - log(1 - x) = h`` is ``x = 1/(1 + exp(-h))``.

    The state ranges over an interval, which the inverse function says and the equation as it stands does not.
    """

    key = "inverses"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with such equations solved; those of a problem are constraints, and stay."""
        if declaration.objective is not None:
            return declaration
        return declaration.mapped(lambda entry: _solved(entry) if isinstance(entry, Equation) else entry)


def _solved(equation: Equation) -> Equation:
    """An equation whose states stand in one inverse function, or in a difference of two logarithms, solved for them."""
    if not equation.has(*INVERSES):
        return equation
    terms = Add.make_args(equation.difference)
    held = [t for t in terms if own_states(t)]
    rest = Add(*(t for t in terms if t not in held))
    parts = [t.as_independent(*INVERSES, as_Add=False) for t in held]
    if any(type(node) not in INVERSES or own_states(factor) or factor.is_zero is not False for factor, node in parts):
        return equation
    if len(parts) == 1:
        ((factor, node),) = parts
        inverse, (inside,) = INVERSES[type(node)], node.args
        value = -rest / factor
        top, bottom = inside.as_numer_denom()
        state = _ratio(top, bottom, value) if inverse is exp else None
        return state or Equation(inside, inverse(value))
    if len(parts) != 2 or any(type(node) is not log for _, node in parts):
        return equation
    (first, one), (second, other) = parts
    found = _ratio(one.args[0], other.args[0], -rest / first) if first + second == 0 else None
    return found or equation


def _ratio(top: Expr, bottom: Expr, value: Expr) -> Equation | None:
    """The equation ``log(top/bottom) = value``, where both are linear in a state, and positive between two ends."""
    if not len(own_states(top)) == len(own_states(bottom)) == len(own_states(top * bottom)) == 1:
        return None
    (state,) = own_states(top)
    a, b = top.diff(state), top.xreplace({state: S.Zero})
    c, d = bottom.diff(state), bottom.xreplace({state: S.Zero})
    linear = all(e.is_number for e in (a, b, c, d))
    if not (linear and Mul(a, c).is_negative and Mul(a, a * d - b * c).is_positive):
        return None
    inverse = exp(-value)
    return Equation(state, (d - b * inverse) / (a * inverse - c))
