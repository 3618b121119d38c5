"""Ball arithmetic with derivatives: expressions of the closed equations, enclosed by python-flint.

A jet is a ball and the balls of its derivatives in the unknowns.  Averages over fields are integrals with proved
error bounds; their ends move along with the kinks of the integrand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flint import acb, arb
from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    Symbol,
    cosh,
    erf,
    erfc,
    exp,
    gamma,
    log,
    sign,
    sinh,
    tanh,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanAtom, Or

from symcavity.algebra.phi import phi
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.certificates.enclosed import Undecided
from symcavity.model.quantities import SiteQuantity

KINKS = (Piecewise, Max, Min, Abs, sign, Heaviside)
FUNCTIONS = (*KINKS, phi, exp, log, tanh, sinh, cosh, erf, erfc, gamma)


def unknown(expr: Any) -> UnsupportedLaw:
    """The refusal of a function without a ball."""
    return UnsupportedLaw(
        f"There is no interval arithmetic here for {expr.func.__name__}.",
        "powers, exp, log, tanh, sinh, cosh, erf, truncated moments, kinks",
    )


class Jet:
    """A ball with its derivatives in some directions."""

    __slots__ = ("d", "v")

    def __init__(self, v: Any, d: Sequence[Any] = ()) -> None:
        self.v, self.d = v, tuple(d)

    def __add__(self, other: Jet) -> Jet:
        return Jet(self.v + other.v, _pairs(self.d, other.d, lambda a, b: a + b))

    def __sub__(self, other: Jet) -> Jet:
        return self + other.scaled(-1)

    def __mul__(self, other: Jet) -> Jet:
        return Jet(self.v * other.v, _pairs(self.d, other.d, lambda a, b: a * other.v + self.v * b))

    def scaled(self, factor: Any) -> Jet:
        """The jet times a number."""
        return Jet(self.v * factor, [x * factor for x in self.d])

    def through(self, value: Any, slope: Any) -> Jet:
        """The image under a function of known value and slope here."""
        return Jet(value, [x * slope for x in self.d] if self.d else ())


def _pairs(a: tuple[Any, ...], b: tuple[Any, ...], change: Callable[[Any, Any], Any]) -> Sequence[Any]:
    if not a and not b:
        return ()
    length = max(len(a), len(b))
    return [change(x, y) for x, y in zip((*a, *[0] * (length - len(a))), (*b, *[0] * (length - len(b))), strict=True)]


class Arithmetic:
    """Evaluate expressions without averages in balls.

    Functions that it does not know are refused.
    """

    def number(self, value: Any) -> Any:
        """An exact value as a ball; a float is taken as it is."""
        if isinstance(value, float | int):
            return arb(value)
        if hasattr(value, "_mpf_"):
            negative, man, exponent, _ = value._mpf_
            return arb(-int(man) if negative else int(man)) * arb(2) ** int(exponent)
        return self(S(value), {}).v

    def __call__(self, expr: Any, env: dict[Any, Jet]) -> Jet:
        """The jet of an expression; of complex balls it is analytic, or not finite."""
        if expr in env:
            return env[expr]
        found = self._value(expr, env)
        env[expr] = found
        return found

    def _value(self, expr: Any, env: dict[Any, Jet]) -> Jet:
        if expr.is_Rational:
            return Jet(arb(int(expr.p)) / int(expr.q))
        if expr.is_Float:
            return Jet(self.number(expr))
        if not expr.args:
            constants = {S.Pi: arb.pi, S.Exp1: arb.const_e}
            if expr in constants:
                return Jet(constants[expr]())
            raise UnsupportedLaw(f"{expr} has no value to enclose.", "parameters and unknowns with values")

        def of(part: Any) -> Jet:
            return self(part, env)

        if isinstance(expr, Add):
            return summed([of(a) for a in expr.args])
        if isinstance(expr, Mul):
            out = of(expr.args[0])
            for arg in expr.args[1:]:
                out = out * of(arg)
            return out
        if isinstance(expr, Pow):
            return self._power(expr, of)
        if isinstance(expr, phi):
            return self._phi(int(expr.args[0]), of(expr.args[1]))
        if isinstance(expr, Max | Min):
            parts = [of(a) for a in expr.args]
            best = parts[0]
            for part in parts[1:]:
                upward = self._is_positive((part - best).v)
                best = part if upward == isinstance(expr, Max) else best
            return best
        if isinstance(expr, Abs):
            inner = of(expr.args[0])
            return inner if self._is_positive(inner.v) else inner.scaled(-1)
        if isinstance(expr, sign | Heaviside):
            up = self._is_positive(of(expr.args[0]).v)
            return Jet(arb(1 if up else -1 if isinstance(expr, sign) else 0))
        if isinstance(expr, Piecewise):
            return of(next(v for v, c in expr.args if self._side(c, lambda gap: self._is_positive(of(gap).v))))
        return self._function(expr, of, env)

    # -- functions ---------------------------------------------------------------------------------

    def _power(self, expr: Pow, of: Callable[[Any], Jet]) -> Jet:
        base, power = of(expr.base), expr.exp
        if power.is_Integer:
            n = int(power)
            return base.through(base.v**n, n * base.v ** (n - 1))
        if power.is_Rational and int(power.q) == 2:
            root = self._analytic(base.v, "sqrt")
            n = int(power.p)
            return base.through(root**n, root ** (n - 2) * n / 2)
        logarithm = self._analytic(base.v, "log")
        rate = of(power)
        value = (rate.v * logarithm).exp()
        return base.through(value, rate.v * value / base.v) + rate.through(arb(0), value * logarithm)

    def _analytic(self, v: Any, name: str) -> Any:
        """A function with a cut, across which it is not finite."""
        return getattr(v, name)(analytic=True) if isinstance(v, acb) else getattr(v, name)()

    def _phi(self, order: int, x: Jet) -> Jet:
        root = arb(2).sqrt()
        values = [((-x.v) / root).erfc() / 2]
        density = (-x.v * x.v / 2).exp() / (2 * arb.pi()).sqrt()
        if order:
            values.append(x.v * values[0] + density)
        for k in range(1, order):
            values.append(x.v * values[k] + k * values[k - 1])
        return x.through(values[order], order * values[order - 1] if order else density)

    def _function(self, expr: Any, of: Callable[[Any], Jet], env: dict[Any, Jet]) -> Jet:  # noqa: ARG002
        x = of(expr.args[0])
        v = x.v
        if isinstance(expr, exp):
            return x.through(v.exp(), v.exp())
        if isinstance(expr, log):
            return x.through(self._analytic(v, "log"), 1 / v)
        if isinstance(expr, tanh):
            t = v.tanh()
            return x.through(t, 1 - t * t)
        if isinstance(expr, sinh | cosh):
            both = (v.sinh(), v.cosh())
            return x.through(*(both if isinstance(expr, sinh) else both[::-1]))
        if isinstance(expr, erf | erfc):
            slope = 2 * (-v * v).exp() / arb.pi().sqrt()
            return x.through(v.erf(), slope) if isinstance(expr, erf) else x.through(v.erfc(), -slope)
        if isinstance(expr, gamma) and not x.d:
            return Jet(v.gamma())
        raise unknown(expr)

    def _is_positive(self, v: Any) -> bool:
        """Whether a ball is positive, or negative: of a complex one its real part, where a kink is not crossed."""
        real = v.real if isinstance(v, acb) else v
        if real >= 0:
            return True
        if real <= 0:
            return False
        raise Undecided("A kink lies inside of a ball.", None, float("nan"), "more digits")

    def _side(self, test: Any, up: Callable[[Expr], bool]) -> bool:
        if isinstance(test, BooleanAtom):
            return bool(test)
        if isinstance(test, And | Or):
            found = [self._side(t, up) for t in test.args]
            return all(found) if isinstance(test, And) else any(found)
        if isinstance(test, Relational):
            return up(test.lhs - test.rhs) == (test.rel_op in (">", ">="))
        raise UnsupportedLaw(f"The condition {test} is not decided in interval arithmetic.", "inequalities")


def summed(parts: Sequence[Jet]) -> Jet:
    """Add jets."""
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


def leaves(env: Mapping[Any, Jet]) -> dict[Any, Jet]:
    """The values that do not depend on what else is known."""
    return {k: v for k, v in env.items() if isinstance(k, Symbol | SiteQuantity)}
