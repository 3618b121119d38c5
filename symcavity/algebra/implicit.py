"""Gaussian averages of quantities that a smooth equation fixes implicitly."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from sympy import Dummy, Expr, Ge, Gt, Le, Lt, S, Symbol, default_sort_key, exp, false, log, oo, true
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, replaced_by
from symcavity.algebra.signs import sign_of


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


def implicit_average(expr: Expr, x: Symbol, psi: Expr, low: Expr = -oo, high: Expr = oo) -> Expr:
    """Average over an implicit law, in parts where events in the integrand begin and end.

    An event is a comparison that is monotone in the unknown: affine in it, or in one exponential of it.  Others stay in
    the integrand, as do those whose place in a range with ends of its own is not known.
    """
    if (low, high) != (-oo, oo):
        return ImplicitAverage(expr, x, psi, low, high)
    cuts: dict[Expr, dict[Relational, int]] = {}
    for event in sorted(expr.atoms(Relational), key=default_sort_key):
        if event.has(x) and (found := _place(event, x)) is not None:
            cuts.setdefault(found[0], {})[event] = found[1]
    if not cuts or (not all(place.is_comparable for place in cuts) and len(cuts) > 1):
        return ImplicitAverage(expr, x, psi, low, high)
    places = sorted(cuts, key=float) if len(cuts) > 1 else list(cuts)
    total: Expr = S.Zero
    for k, (start, end) in enumerate(pairwise([low, *places, high])):
        known = {
            event: true if (way > 0) == (k > n) else false
            for n, place in enumerate(places)
            for event, way in cuts[place].items()
        }
        total += ImplicitAverage(expr.xreplace(known), x, psi, start, end)
    return total


def _place(event: Relational, x: Symbol) -> tuple[Expr, int] | None:
    """Where an event begins, and 1 if it holds above that place, -1 if it holds below; None where that is not known."""
    if not isinstance(event, Gt | Ge | Lt | Le):
        return None
    gap = event.lhs - event.rhs if isinstance(event, Gt | Ge) else event.rhs - event.lhs
    powers = [e for e in gap.atoms(exp) if e.has(x)]
    if len(powers) > 1:
        return None
    y, rate = Dummy("y", positive=True), S.One
    if powers:
        rate = powers[0].args[0].diff(x)
        if rate.has(x) or powers[0].args[0] != rate * x:
            return None
        gap = gap.xreplace({powers[0]: y})
    variable = y if powers else x
    slope = gap.diff(variable)
    way = None if slope.has(x, y) or gap.has(x if powers else y) else sign_of(slope * rate)
    if way not in (1, -1):
        return None
    place = -gap.xreplace({variable: S.Zero}) / slope
    if not powers:
        return place, way
    return (log(place) / rate, way) if sign_of(place) == 1 else None
