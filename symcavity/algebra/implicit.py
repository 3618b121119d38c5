"""Gaussian averages of quantities that a smooth equation fixes implicitly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr, S, Symbol, oo

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, replaced_by


class ImplicitAverage(Node):
    """The average of ``expr(x)`` over a standard Gaussian z, where x solves ``psi(x) = z``.

    Parameters
    ----------
    expr : Expr
        The integrand, in x.
    x : Symbol
        The implicit unknown, bound here.
    psi : Expr
        The Gaussian variable as a monotone function of x.
    low, high : Expr
        The range of x on which the branch holds; infinite by default.

    Notes
    -----
    Changing variables, the average is the integral of ``expr(x) psi'(x)`` against the Gaussian density at
    ``psi(x)``; only psi and its derivative are needed, and never a closed inverse.
    """

    def __new__(cls, expr: Any, x: Symbol, psi: Any, low: Any = -oo, high: Any = oo) -> Expr:
        """Return the expression, read and checked."""
        expr = as_sympy(expr)
        if expr == 0:
            return S.Zero
        return Expr.__new__(cls, expr, x, as_sympy(psi), as_sympy(low), as_sympy(high))

    @property
    def x(self) -> Symbol:
        """The bound unknown."""
        return self.args[1]

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        inner = self.args[0].free_symbols | self.args[2].free_symbols
        return (inner - {self.x}) | self.args[3].free_symbols | self.args[4].free_symbols

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The variable of integration."""
        return [self.x]

    def _eval_subs(self, old: Expr, new: Expr) -> Expr | None:  # noqa: ARG002 - SymPy's signature
        return self if old == self.x else None

    def _xreplace(self, rule: Mapping[Any, Any]) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        outer = {old: new for old, new in replaced_by(rule).items() if old != self.x}
        args, changed = [], False
        for arg in self.args:
            if arg == self.x:
                args.append(arg)
                continue
            new, did = arg._xreplace(outer)  # noqa: SLF001 - the hook that xreplace itself calls
            args.append(new)
            changed = changed or did
        return (self.func(*args), True) if changed else (self, False)

    def _eval_derivative(self, s: Symbol) -> Expr:
        """Differentiate under the integral: at fixed z the unknown moves by ``-psi_s/psi_x``."""
        if s == self.x or s not in self.free_symbols:
            return S.Zero
        expr, x, psi, low, high = self.args
        if low.has(s) or high.has(s):
            from sympy import Derivative

            return Derivative(self, s, evaluate=False)
        moved = expr.diff(s) - expr.diff(x) * psi.diff(s) / psi.diff(x)
        return ImplicitAverage(moved, x, psi, low, high)

    def _sympystr(self, printer: Any) -> str:
        expr, x, psi = (printer.doprint(a) for a in self.args[:3])
        return f"⟨{expr} | {psi} = z⟩_{x}"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        expr, x, psi, low, high = (printer.doprint(a) for a in self.args)
        above = f"{low} < " if self.args[3] != -oo else ""
        below = f" < {high}" if self.args[4] != oo else ""
        between = f"{above}{x}{below},\\; " if above or below else ""
        tex = f"\\left\\langle \\left. {expr} \\,\\right|\\, {between}{psi} = \\zeta \\right\\rangle_{{\\zeta}}"
        return f"{tex}^{{{exp}}}" if exp else tex
