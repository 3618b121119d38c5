"""Averages over Gaussian vectors of what the projection on a convex set of fields makes of them.

In standard units the field is ``t ~ N(0, 1)`` and the single site is the projection
``v = argmin |v - t|^2 / 2`` subject to ``g(v) >= k``; with a bound ``cap`` on its multiplier it is the
minimum of ``|v - t|^2 / 2 + cap*max(0, k - g(v))``, with a softness that of
``|v - t|^2 / 2 + max(0, k - g(v))^2 / (2*softness)``.  The symbols below stand for what one ``t`` gives.
"""

from __future__ import annotations

from typing import Any

from sympy import Add, Expr, Mul, Piecewise, S, Symbol, fraction, oo

from symcavity.algebra.door import as_sympy
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.node import Node, raised
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.model.support import SupportFunction


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


def projection_average(
    body: Expr, g: SupportFunction, size: Expr, k: Expr, cap: Expr = oo, softness: Expr = S.Zero
) -> Expr:
    """Average an expression: term by term, with what does not depend on the projection moved out.

    Where a hard bound has a multiplier it is met: ``lam*g(v) = k*lam``.
    """
    total = S.Zero
    hard = cap == oo and softness == 0
    for term in Add.make_args(body.expand() if not body.has(Piecewise) else body):
        factors = Mul.make_args(term)
        if hard and any(factor.as_base_exp()[0] == LAM for factor in factors):
            factors = Mul.make_args(term.xreplace({GV: k}))
        outside: list[Expr] = []
        inside: list[Expr] = []
        for factor in factors:
            (inside if factor.has(ProjectionSymbol) else outside).append(factor)
        total += Mul(*outside) * ProjectionAverage(Mul(*inside), g, size, k, cap, softness)
    return total
