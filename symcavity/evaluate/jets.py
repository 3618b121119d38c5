"""Ball arithmetic with derivatives: expressions of the closed equations, enclosed by python-flint.

A jet is a ball and the balls of its derivatives in the unknowns.  Averages over fields are integrals with proved
error bounds; their ends move along with the kinks of the integrand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
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
    Sum,
    Symbol,
    cosh,
    erf,
    erfc,
    exp,
    log,
    sign,
    sinh,
    tanh,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanAtom, Or

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import phi
from symcavity.errors import MissingDependency, NotConverged, UnsupportedLaw
from symcavity.evaluate.nodes import own_quantities
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity

KINKS = (Piecewise, Max, Min, Abs, sign, Heaviside)
SLICES = 64  # of a panel, on which the sides of kinks are tested
MOST_SITES = 2000  # points of a law, each of which is a jet
FARTHEST, SHORT = 4, 32  # how far a tail is followed, in units of where it begins; and steps to such a unit


def flint() -> Any:
    """The library of balls.

    Raises
    ------
    MissingDependency
        If it is not installed.
    """
    try:
        import flint as library
    except ImportError:
        raise MissingDependency(
            "Certificates are made by python-flint, which is not installed.", hint="pip install 'symcavity[certify]'"
        ) from None
    return library


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
        return Jet(value, [x * slope for x in self.d])


def _pairs(a: tuple[Any, ...], b: tuple[Any, ...], change: Callable[[Any, Any], Any]) -> list[Any]:
    length = max(len(a), len(b))
    return [change(x, y) for x, y in zip((*a, *[0] * (length - len(a))), (*b, *[0] * (length - len(b))), strict=True)]


class Undecided(NotConverged):
    """Balls that are too wide to tell which case holds."""


class Enclosure:
    """Evaluate expressions in balls.

    Parameters
    ----------
    laws : mapping
        The laws of the quenched parameters, by kind.
    """

    def __init__(self, laws: Mapping[Any, Any]) -> None:
        self.laws = laws
        self.lib = flint()

    def number(self, value: Any) -> Any:
        """An exact value as a ball; a float stands for itself."""
        arb = self.lib.arb
        if isinstance(value, float | int):
            return arb(value)
        if hasattr(value, "_mpf_"):
            negative, man, exponent, _ = value._mpf_
            return arb(-int(man) if negative else int(man)) * arb(2) ** int(exponent)
        return self(S(value), {}).v

    def __call__(self, expr: Any, env: dict[Any, Jet], *, analytic: bool = False) -> Jet:
        """The jet of an expression; ``analytic`` as in ``acb.integral``."""
        if expr in env:
            return env[expr]
        found = self._value(expr, env, analytic)
        env[expr] = found
        return found

    def _value(self, expr: Any, env: dict[Any, Jet], analytic: bool) -> Jet:
        arb = self.lib.arb
        if expr.is_Rational:
            return Jet(arb(int(expr.p)) / int(expr.q))
        if not expr.args:
            constants = {S.Pi: arb.pi, S.Exp1: arb.const_e}
            if expr in constants:
                return Jet(constants[expr]())
            raise UnsupportedLaw(f"{expr} has no ball.", "parameters and unknowns with values")

        def of(part: Any) -> Jet:
            return self(part, env, analytic=analytic)

        if isinstance(expr, Add):
            return _total([of(a) for a in expr.args])
        if isinstance(expr, Mul):
            out = of(expr.args[0])
            for arg in expr.args[1:]:
                out = out * of(arg)
            return out
        if isinstance(expr, Pow):
            return self._power(expr, of, analytic)
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
        if isinstance(expr, Average | Sum):
            return self._sites(expr, env)
        if isinstance(expr, GaussianAverage):
            return self._gauss(expr, env)
        if isinstance(expr, ImplicitAverage):
            return self._implicit(expr, env)
        return self._function(expr, of, analytic)

    # -- functions ---------------------------------------------------------------------------------

    def _power(self, expr: Pow, of: Callable[[Any], Jet], analytic: bool) -> Jet:
        base, power = of(expr.base), expr.exp
        if power.is_Integer:
            n = int(power)
            return base.through(base.v**n, n * base.v ** (n - 1))
        if power.is_Rational and int(power.q) == 2:
            root = base.v.sqrt(analytic=analytic) if isinstance(base.v, self.lib.acb) else base.v.sqrt()
            n = int(power.p)
            return base.through(root**n, root ** (n - 2) * n / 2)
        logarithm = base.v.log(analytic=analytic) if isinstance(base.v, self.lib.acb) else base.v.log()
        rate = of(power)
        value = (rate.v * logarithm).exp()
        return base.through(value, rate.v * value / base.v) + rate.through(self.lib.arb(0), value * logarithm)

    def _phi(self, order: int, x: Jet) -> Jet:
        arb = self.lib.arb
        root = arb(2).sqrt()
        values = [((-x.v) / root).erfc() / 2]
        density = (-x.v * x.v / 2).exp() / (2 * arb.pi()).sqrt()
        if order:
            values.append(x.v * values[0] + density)
        for k in range(1, order):
            values.append(x.v * values[k] + k * values[k - 1])
        return x.through(values[order], order * values[order - 1] if order else density)

    def _function(self, expr: Any, of: Callable[[Any], Jet], analytic: bool) -> Jet:
        x = of(expr.args[0])
        v, arb = x.v, self.lib.arb
        if isinstance(expr, exp):
            return x.through(v.exp(), v.exp())
        if isinstance(expr, log):
            return x.through(v.log(analytic=analytic) if isinstance(v, self.lib.acb) else v.log(), 1 / v)
        if isinstance(expr, tanh):
            t = v.tanh()
            return x.through(t, 1 - t * t)
        if isinstance(expr, sinh | cosh):
            both = (v.sinh(), v.cosh())
            return x.through(*(both if isinstance(expr, sinh) else both[::-1]))
        if isinstance(expr, erf | erfc):
            slope = 2 * (-v * v).exp() / arb.pi().sqrt()
            return x.through(v.erf(), slope) if isinstance(expr, erf) else x.through(v.erfc(), -slope)
        raise UnsupportedLaw(
            f"There is no ball arithmetic here for {expr.func.__name__}.",
            "powers, exp, log, tanh, sinh, cosh, erf, truncated moments, kinks; finite laws",
        )

    def _is_positive(self, v: Any) -> bool:
        """Whether a ball is positive, or negative: of a complex one its real part, where a kink is not crossed."""
        real = v.real if isinstance(v, self.lib.acb) else v
        if real >= 0:
            return True
        if real <= 0:
            return False
        raise Undecided("A kink lies inside of a ball.", None, float("nan"), "more digits")

    # -- averages ----------------------------------------------------------------------------------

    def _sites(self, node: Any, env: dict[Any, Jet]) -> Jet:
        quantities = sorted(own_quantities(node.args[0]), key=str)
        families = [q.family for q in quantities]
        law = self.laws[families[0].slots[0]]
        if law.is_ruled(families) or law.count > MOST_SITES:
            raise UnsupportedLaw(
                f"The average {node} is not enclosed.", f"finite laws, and arrays of up to {MOST_SITES} sites"
            )
        if law.arrays:
            rows = list(zip(*(law.arrays[q].tolist() for q in families), strict=True))
            points = [(row, self.lib.arb(1) / len(rows)) for row in rows]
        else:
            points = [(row, self.number(w)) for row, w in law.marginal(families).items()]
        base = {k: v for k, v in env.items() if isinstance(k, Symbol)}
        total = []
        for row, weight in points:
            inner = {**base, **{q: Jet(self.number(v)) for q, v in zip(quantities, row, strict=True)}}
            total.append(self(node.args[0], inner).scaled(weight))
        out = _total(total)
        return out * self(node.limits[0][2], env) if isinstance(node, Sum) else out

    def _gauss(self, node: GaussianAverage, env: dict[Any, Jet]) -> Jet:
        scale = 1 / (2 * self.lib.arb.pi()).sqrt()
        density = exp(-(node.z**2) / 2)
        reach = self._reach()
        breaks = [self(b, env) for b in node.breaks]
        cuts = sorted((b for b in breaks if abs(float(b.v.mid())) < reach), key=lambda b: float(b.v.mid()))
        return self._integral(node.expr * density, node.z, cuts, -reach, reach, env).scaled(scale)

    def _implicit(self, node: ImplicitAverage, env: dict[Any, Jet]) -> Jet:
        body, x, psi, low, high = node.args
        scale = 1 / (2 * self.lib.arb.pi()).sqrt()
        integrand = body * psi.diff(x) * exp(-(psi**2) / 2)
        ends = [None if abs(e) is S.Infinity else self(e, env) for e in (low, high)]
        first, last = self._range(psi, x, env)
        cuts = [e for e in ends if e is not None]
        left = first if ends[0] is None else None
        right = last if ends[1] is None else None
        out = self._integral(integrand, x, cuts, left, right, env).scaled(scale)
        middle = self(psi.diff(x), {**_leaves(env), x: Jet(self.lib.arb((first + last) / 2))}).v
        return out if self._is_positive(middle) else out.scaled(-1)

    def _reach(self) -> float:
        """Where the Gaussian weight is below the precision."""
        return float(np.ceil(np.sqrt(2 * np.log(2) * (self.lib.ctx.prec + 20))))

    def _range(self, psi: Expr, x: Symbol, env: dict[Any, Jet]) -> tuple[float, float]:
        """Where the field is beyond that, on either side of an implicit unknown."""
        reach = self._reach()
        out = []
        for way in (-1.0, 1.0):
            end = way
            for _ in range(200):
                value = self(psi, {**_leaves(env), x: Jet(self.lib.arb(end))}).v
                if abs(float(value.mid())) > reach:
                    break
                end *= 1.3
            out.append(end)
        return out[0], out[1]

    def _integral(
        self, integrand: Expr, z: Symbol, cuts: list[Jet], low: float | None, high: float | None, env: dict[Any, Jet]
    ) -> Jet:
        """The integral of an expression over a line, with cuts that move and ends that do not; None ends at a cut."""
        arb, acb = self.lib.arb, self.lib.acb
        ends = [*([Jet(arb(low))] if low is not None else []), *cuts, *([Jet(arb(high))] if high is not None else [])]
        base = _leaves(env)
        count = max((len(j.d) for j in base.values()), default=0)
        total = [arb(0)] * (count + 1)

        def at(smooth: Expr, place: Jet, analytic: bool) -> Jet:
            return self(smooth, {**base, z: place}, analytic=analytic)

        smooth = [self._smooth(integrand, z, a, b, base) for a, b in pairwise(ends)]
        for (a, b), inside in zip(pairwise(ends), smooth, strict=True):
            width = b - a

            def panel(t: Any, analytic: bool, a: Jet = a, width: Jet = width, inside: Expr = inside) -> Jet:
                tick()
                return at(inside, a + width * Jet(t), analytic) * width

            for k in range(count + 1):

                def component(t: Any, analytic: bool, k: int = k, panel: Any = panel) -> Any:
                    try:
                        return _component(panel(t, analytic), k, acb)
                    except (Undecided, ZeroDivisionError):
                        return acb("nan")

                total[k] = total[k] + acb.integral(component, acb(0), acb(1)).real
        for end, inside in ((low, smooth[:1]), (high, smooth[-1:])):
            if end is not None and inside:
                for k, bound in enumerate(self._tail(partial(at, *inside), end, count)):
                    total[k] = total[k] + arb(0, bound)
        return Jet(total[0], total[1:])

    def _smooth(self, expr: Expr, z: Symbol, a: Jet, b: Jet, base: Mapping[Any, Jet]) -> Expr:
        """The integrand between two cuts: there each kink has one side, which is tested throughout."""
        arb = self.lib.arb
        inside = [arb(k + arb(0.5), 0.5) / SLICES for k in range(1, SLICES - 1)]

        def up(gap: Expr) -> bool:
            places = [Jet((a + (b - a) * Jet(t)).v) for t in inside]
            sides = {self._is_positive(self(gap, {**base, z: place}).v) for place in places}
            if len(sides) != 1:
                raise Undecided("A kink lies inside of a panel.", None)
            return sides.pop()

        def one(node: Any) -> Any:
            if isinstance(node, Piecewise):
                return next(v for v, test in node.args if self._side(test, up))
            if isinstance(node, Max | Min):
                best = node.args[0]
                for arg in node.args[1:]:
                    best = arg if up(arg - best) == isinstance(node, Max) else best
                return best
            side = up(node.args[0])
            if isinstance(node, Abs):
                return node.args[0] if side else -node.args[0]
            return S.One if side else S.NegativeOne if isinstance(node, sign) else S.Zero

        return expr.replace(lambda e: isinstance(e, KINKS) and e.has(z), one)

    def _side(self, test: Any, up: Callable[[Expr], bool]) -> bool:
        if isinstance(test, BooleanAtom):
            return bool(test)
        if isinstance(test, And | Or):
            found = [self._side(t, up) for t in test.args]
            return all(found) if isinstance(test, And) else any(found)
        if isinstance(test, Relational):
            return up(test.lhs - test.rhs) == (test.rel_op in (">", ">="))
        raise UnsupportedLaw(f"The condition {test} is not decided in balls.", "inequalities")

    def _tail(self, at: Callable[[Jet, bool], Jet], end: float, count: int) -> list[Any]:
        """Bounds on what lies beyond an end: on short intervals, up to a multiple of it.

        Beyond that, integrands are taken to grow more slowly than the square root of the Gaussian weight falls.
        """
        arb = self.lib.arb
        bounds = [(-arb(FARTHEST * self._reach()) ** 2 / 4).exp()] * (count + 1)
        step = end / SHORT
        for n in range((FARTHEST - 1) * SHORT):
            near = arb(end) + n * arb(step)
            found = at(Jet(near.union(near + step)), False)
            for k in range(count + 1):
                value = found.v if k == 0 else found.d[k - 1] if k <= len(found.d) else arb(0)
                bounds[k] = bounds[k] + abs(value) * abs(step)
        return [bound.upper() for bound in bounds]


def _component(jet: Jet, k: int, kind: Any) -> Any:
    return kind(jet.v) if k == 0 else kind(jet.d[k - 1]) if k <= len(jet.d) else kind(0)


def _total(parts: Sequence[Jet]) -> Jet:
    out = parts[0]
    for part in parts[1:]:
        out = out + part
    return out


def _leaves(env: Mapping[Any, Jet]) -> dict[Any, Jet]:
    """The values that do not depend on what else is known."""
    return {k: v for k, v in env.items() if isinstance(k, Symbol | SiteQuantity)}


__all__ = ["Enclosure", "Jet", "Undecided", "flint"]
