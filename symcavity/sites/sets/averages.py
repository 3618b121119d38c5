"""Averages over Gaussian vectors of what the projection on a convex set of fields makes of them.

In standard units the field is ``t ~ N(0, 1)`` and the single site is the projection
``v = argmin |v - t|^2 / 2`` subject to ``g(v) >= k``; with a bound ``cap`` on its multiplier it is the
minimum of ``|v - t|^2 / 2 + cap*max(0, k - g(v))``, with a softness that of
``|v - t|^2 / 2 + max(0, k - g(v))^2 / (2*softness)``.  The symbols below stand for what one ``t`` gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from sympy import Add, Dummy, Eq, Expr, Mul, Piecewise, S, Symbol, fraction, oo

from symcavity.algebra.door import as_sympy
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.node import Node, raised
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.model.averages import condition_of
from symcavity.model.support import SupportFunction
from symcavity.shapes.base import INTERIOR, PARTIAL, SATURATED, TOUCHING, WHOLE


class ProjectionSymbol(TexSymbol):
    """A quantity of one projection: its multiplier, its distance, the divergence of its displacement, and more."""

    __slots__ = ()


LAM = ProjectionSymbol("lam", "\\ell", nonnegative=True)
GAP2 = ProjectionSymbol("gap2", "\\lVert \\bm{v} - \\bm{t} \\rVert^{2}", nonnegative=True)
V2 = ProjectionSymbol("v2", "\\lVert \\bm{v} \\rVert^{2}", nonnegative=True)
GV = ProjectionSymbol("gv", "g\\left(\\bm{v}\\right)")
TD = ProjectionSymbol("td", "\\bm{t} \\cdot \\left(\\bm{v} - \\bm{t}\\right)")
PSI = ProjectionSymbol("psi", "\\psi", nonpositive=True)
_SLOPE = "d \\left(\\bm{v} - \\bm{t}\\right) / d \\bm{t}"
SLOPE2 = ProjectionSymbol("slope2", f"\\lVert {_SLOPE} \\rVert^{{2}}", nonnegative=True)
REGIME = ProjectionSymbol("regime", "r", nonnegative=True)

T2 = ProjectionSymbol("t2", "\\lVert \\bm{t} \\rVert^{2}", nonnegative=True)
DENSITY = ProjectionSymbol("f", "f\\left(\\bm{t}\\right)", nonnegative=True)
SLOPE = ProjectionSymbol("slope", "\\nabla f \\cdot \\left(\\bm{v} - \\bm{t}\\right)")
DIVERGENCE = ProjectionSymbol("div", "\\nabla \\cdot \\left(\\bm{v} - \\bm{t}\\right)")


MOMENTS = {GAP2: "norm", LAM: "lam", LAM**2: "lam2", PSI: "psi", SLOPE2: "slope2"}
REGIMES = {TOUCHING: "touching", PARTIAL: "partial", WHOLE: "whole", SATURATED: "saturated"}


def _supporting(averages: Mapping[str, Any]) -> Any:
    """The probability that the set touches."""
    return sum(averages[name] for name in REGIMES.values())


class SpaceIntegral(Node):
    """The integral of an expression in the symbols of the projection over all fields ``t``, without a density."""

    def _sympystr(self, printer: Any) -> str:
        return f"Integral(dt {printer.doprint(self.args[0])})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        tex = f"\\int d\\bm{{t}}\\, {printer.doprint(self.args[0])}"
        return raised(tex, exp)


def component(name: str, k: Any) -> ProjectionSymbol:
    """Component k of the projection ``v`` or of the displacement ``d = v - t``."""
    tex = f"v_{{{k}}}" if name == "v" else f"\\left(\\bm{{v}} - \\bm{{t}}\\right)_{{{k}}}"
    return ProjectionSymbol(f"{name}_{k}", tex)


class ProjectionAverage(NumberedAverage):
    """The average over ``t`` of an expression in the symbols of the projection.

    Parameters
    ----------
    body : Expr
        In the symbols of this module and parameters.
    g : SupportFunction
    size : Expr
        The number of components of ``t``.
    k : Expr
        The bound: ``g(v) >= k``.
    cap : Expr
        The largest multiplier; infinite for a hard constraint.
    softness : Expr
        By how much the bound is missed, per multiplier: ``g(v) >= k - softness*lam``; zero for a hard constraint.
    """

    def __new__(cls, body: Any, g: SupportFunction, size: Any, k: Any, cap: Any = oo, softness: Any = 0) -> Expr:
        """Return the average; what does not depend on the projection is its own average."""
        body = as_sympy(body)
        if not body.has(ProjectionSymbol):
            return body
        return Expr.__new__(cls, body, g, as_sympy(size), *(_short(as_sympy(x)) for x in (k, cap, softness)))

    g = property(lambda self: self.args[1])
    k = property(lambda self: self.args[3])
    cap = property(lambda self: self.args[4])
    softness = property(lambda self: self.args[5])

    @property
    def is_slack(self) -> bool:
        """Whether the constraint may be broken, at a cost."""
        return self.cap != oo or self.softness != 0

    @property
    def indices(self) -> list[Expr]:
        """What tells averages of one set apart: the bound, and the slack if there is any."""
        return [self.k, *([self.cap] if self.cap != oo else []), *([self.softness] if self.softness != 0 else [])]

    @property
    def is_known(self) -> bool:
        """Whether balls have this average to any number of digits."""
        return not self.is_slack and self.body in (LAM, LAM**2, GAP2, PSI, SLOPE2)

    title = "Averages over convex sets"
    parts = property(lambda self: (self.body, self.k, self.cap, self.softness))

    def binds(self, leaf: Any) -> bool:
        """Whether it is a quantity of a projection."""
        return isinstance(leaf, ProjectionSymbol)

    @property
    def has_many_digits(self) -> bool:
        """Whether it can be evaluated beyond double precision, over the set that is given or over balls."""
        return self.is_known and (self.g.shape is None or self.g.shape.has_many_digits)

    @property
    def precision(self) -> tuple[str, str]:
        """Which averages are taken in double precision, and the digits of the others."""
        exact = "balls, segments and pairs of points with a hard margin, of exact sizes, at any dps"
        return f"averages over {self.g.shape!r}", f"dps <= 15; {exact}"

    @property
    def moment(self) -> Callable[[Mapping[str, Any]], Any] | None:
        """How it follows from the averages that shapes have, if it does."""
        if self.body in MOMENTS:
            return lambda a: a.get(MOMENTS[self.body])
        if (test := condition_of(self.body)) is not None:
            supporting = test.atoms(Symbol) == {LAM} and getattr(test, "gts", None) is not None and test.lts == 0
            if supporting and "=" not in test.rel_op:
                return _supporting
            if isinstance(test, Eq) and REGIME in test.args:
                value = next((int(x) for x in test.args if x.is_Integer), None)
                if value in REGIMES:
                    return itemgetter(REGIMES[value])
                if value == INTERIOR:
                    return lambda a: 1 - _supporting(a)
        return None

    @property
    def is_sampled(self) -> bool:
        """Whether the value is the average over all samples: its shape has no integrals for it."""
        shape, (samples, _, scramble) = self.g.shape, self.g.sampling
        if shape is None or scramble is not None:
            return False
        if samples is not None:
            return True
        if self.cap != oo and shape.has_nodes:
            return False
        kind = 1.0 if self.cap != oo else math.inf, 1.0 if self.softness != 0 else 0.0  # some, of the kind that it has
        found, moment = shape.averages(1.0, *kind), self.moment
        return found is None or moment is None or moment(found) is None

    def scramble(self, number: int) -> dict[Any, Any]:
        """What to replace for the average over one of the independent sets of samples only."""
        return {self.g: self.g.scramble(number)}

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        own = {s for s in self.body.free_symbols if not isinstance(s, ProjectionSymbol)}
        return own.union(*(arg.free_symbols for arg in self.args[2:]))

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The quantities of one projection."""
        return sorted(self.body.atoms(ProjectionSymbol), key=str)

    def _eval_is_polynomial(self, syms: set[Any]) -> bool:
        return not (self.free_symbols & set(syms))

    _eval_is_rational_function = _eval_is_algebraic_expr = _eval_is_polynomial

    def _eval_is_extended_positive(self) -> bool | None:
        return True if self.body in (LAM, GAP2, LAM**2, V2, SLOPE2) else None

    def _eval_is_extended_negative(self) -> bool | None:
        return True if self.body == PSI else None

    def _sympystr(self, printer: Any) -> str:
        inner = ", ".join(map(printer.doprint, self.indices))
        return f"<{printer.doprint(self.body)}>({self.g}; {inner})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        below = ",\\ ".join(_inline(arg, printer) for arg in self.indices)
        tex = f"\\left\\langle {printer.doprint(self.body)} \\right\\rangle_{{{below}}}"
        return raised(tex, exp)


def _short(expr: Expr) -> Expr:
    """The shorter of an expression and its expanded form."""
    wide = expr.expand() if expr.has(Add) else expr
    return wide if wide.count_ops() < expr.count_ops() else expr


def _inline(expr: Expr, printer: Any) -> str:
    """An expression on one line: a fraction with a slash, as an index needs it."""
    top, bottom = fraction(expr)
    if bottom == 1:
        return printer.doprint(expr)
    above, below = printer.doprint(top), printer.doprint(bottom)
    above = f"\\left({above}\\right)" if top.is_Add else above
    return f"{above} / \\left({below}\\right)" if bottom.is_Add or bottom.is_Mul else f"{above} / {below}"


def _held(expr: Expr, names: dict[Expr, Expr]) -> Expr:
    """An expression with a name for each sum that the projection does not enter: it is not multiplied out."""
    if not expr.args or expr.has(Piecewise):
        return expr
    if expr.has(ProjectionSymbol):
        return expr.func(*(_held(arg, names) for arg in expr.args))
    sums = expr if expr.is_Add else expr.base if expr.is_Pow and expr.base.is_Add else None
    if sums is not None:
        return expr.xreplace({sums: names.setdefault(sums, Dummy(positive=sums.is_positive))})
    return expr.func(*(_held(arg, names) for arg in expr.args)) if expr.is_Mul else expr


def projection_average(
    body: Expr, g: SupportFunction, size: Expr, k: Expr, cap: Expr = oo, softness: Expr = S.Zero
) -> Expr:
    """Average an expression: term by term, with what does not depend on the projection moved out.

    Where a hard bound has a multiplier it is met: ``lam*g(v) = k*lam``.
    """
    total = S.Zero
    hard = cap == oo and softness == 0
    held: dict[Expr, Expr] = {}
    body = _held(body, held)
    back = {name: expr for expr, name in held.items()}
    for term in Add.make_args(body.expand() if not body.has(Piecewise) else body):
        term = term.xreplace(back)
        factors = Mul.make_args(term)
        if hard and any(factor.as_base_exp()[0] == LAM for factor in factors):
            factors = Mul.make_args(term.xreplace({GV: k}))
        outside: list[Expr] = []
        inside: list[Expr] = []
        for factor in factors:
            (inside if factor.has(ProjectionSymbol) else outside).append(factor)
        total += Mul(*outside) * ProjectionAverage(Mul(*inside), g, size, k, cap, softness)
    return total
