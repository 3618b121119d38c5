"""Gaussian averages of quantities that a smooth equation fixes implicitly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from sympy import (
    And,
    Dummy,
    Eq,
    Expr,
    Ge,
    Gt,
    Heaviside,
    Le,
    Lt,
    Max,
    Min,
    Ne,
    Or,
    Piecewise,
    Pow,
    S,
    Symbol,
    exp,
    false,
    log,
    nan,
    oo,
    pi,
    sign,
    sqrt,
    true,
    zoo,
)
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import Node, part, replaced_by, unbound
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

    which = subscript = ""  # of several solutions

    def __new__(cls, expr: Any, x: Symbol, psi: Any, low: Any = -oo, high: Any = oo) -> Expr:
        """Return the expression, read and checked."""
        expr = as_sympy(expr)
        if expr == 0:
            return S.Zero
        return Expr.__new__(cls, expr, x, as_sympy(psi), as_sympy(low), as_sympy(high))

    x: Symbol = part(1, "The bound unknown.")

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        inner = self.args[0].free_symbols | self.args[2].free_symbols
        return (inner - {self.x}) | self.args[3].free_symbols | self.args[4].free_symbols

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The variable of integration."""
        return [self.x]

    @property
    def has_events(self) -> bool:
        """Whether the integrand may jump inside the range: derivatives leave out what a jump that moves adds."""
        return any(event.has(self.x) for event in self.args[0].atoms(Relational, sign, Heaviside))

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
        """Differentiate under the integral, at fixed z: the unknown moves by ``-psi_s/psi_x``, and so do the ends."""
        if s == self.x or s not in self.free_symbols:
            return S.Zero
        expr, x, psi, low, high = self.args
        moved = expr.diff(s) - expr.diff(x) * psi.diff(s) / psi.diff(x)
        inside = ImplicitAverage(moved, x, psi, low, high)
        return inside + _at_end(expr, x, psi, high, s) - _at_end(expr, x, psi, low, s)

    def _sympystr(self, printer: Any) -> str:
        expr, x, psi, low, high = (printer.doprint(a) for a in self.args[:5])
        return f"⟨{expr} |{self.which} {self._between(x, low, high, ', ')}{psi} = ζ⟩_ζ"

    def _between(self, x: str, low: str, high: str, then: str) -> str:
        """The range of the unknown in words of a printer; nothing where it is the whole line."""
        above = f"{low} < " if self.args[3] != -oo else ""
        below = f" < {high}" if self.args[4] != oo else ""
        return f"{above}{x}{below}{then}" if above or below else ""

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        expr, x, psi, low, high = (printer.doprint(a) for a in self.args[:5])
        between = self._between(x, low, high, ",\\; ")
        which = f"_{{{self.subscript}}}" if self.which else ""
        tex = f"\\left\\langle \\left. {expr} \\,\\right|{which}\\, {between}{psi} = \\zeta \\right\\rangle_{{\\zeta}}"
        return f"{tex}^{{{exp}}}" if exp else tex


def _at_end(expr: Expr, x: Symbol, psi: Expr, end: Expr, s: Symbol) -> Expr:
    """What the integral gains where an end moves, in z; an end at infinity does not."""
    z = psi.subs(x, end)
    if z.has(oo, -oo, zoo, nan):
        return S.Zero
    return expr.subs(x, end) * exp(-(z**2) / 2) / sqrt(2 * pi) * z.diff(s)


def implicit_average(
    expr: Expr, x: Symbol, psi: Expr, low: Expr = -oo, high: Expr = oo, made: Any = ImplicitAverage
) -> Expr:
    """Average over an implicit law, in parts where events in the integrand begin and end: ``made`` is what takes each.

    An event is a comparison, or a step, that changes once: affine in the unknown, in one exponential of it, or, on a
    range that ends at zero, in one power of it.  Others stay in the integrand.
    """
    steps = {s: (s.args[0] > 0) for s in unbound(expr, (sign, Heaviside), x)}
    expr = expr.xreplace({s: Piecewise((1, up), (-1 if isinstance(s, sign) else 0, True)) for s, up in steps.items()})
    events = unbound(expr, (Relational,), x)
    found = {event: place for event in events if (place := _place(event, x, low, high)) is not None}
    return _in_parts(expr, partial(made, x=x, psi=psi), (low, high), found)


def _in_parts(expr: Expr, made: Any, ends: tuple[Expr, Expr], events: Mapping[Relational, _Place]) -> Expr:
    """The average over a range, cut at the place of each event; a part that ends before it begins is empty."""
    here = [event for event in events if expr.has(event)]
    if not here:
        return made(expr, low=ends[0], high=ends[1])
    low, high = ends
    cut = events[here[0]].cut
    same = [event for event in here if events[event].cut == cut]
    lower = expr.xreplace({event: events[event].below for event in same})
    upper = expr.xreplace({event: events[event].above for event in same})
    return _in_parts(lower, made, (low, cut if high == oo else Min(cut, high)), events) + _in_parts(
        upper, made, (cut if low == -oo else Max(cut, low), high), events
    )


class _Place(NamedTuple):
    """Where an event changes, and whether it holds above that place and below it."""

    cut: Expr
    above: Any
    below: Any


def _place(event: Relational, x: Symbol, low: Expr, high: Expr) -> _Place | None:
    """Where an event begins or ends, with the sign of its slope open; None where that is not known."""
    if not isinstance(event, Gt | Ge | Lt | Le):
        return None
    if high != oo and sign_of(high) in (0, -1):
        mirrored = _place(event.func(*(side.xreplace({x: -x}) for side in event.args)), x, -high, -low)
        return mirrored and _Place(-mirrored.cut, mirrored.below, mirrored.above)
    gap = event.lhs - event.rhs if isinstance(event, Gt | Ge) else event.rhs - event.lhs
    y, power = Dummy("y", positive=True), S.One
    rate: Expr | None = None
    if powers := [e for e in gap.atoms(exp) if e.has(x)]:
        rate = powers[0].args[0].diff(x)
        if len(powers) > 1 or rate.has(x) or powers[0].args[0] != rate * x:
            return None
        gap = gap.xreplace({powers[0]: y})
    elif low != -oo and sign_of(low) in (0, 1):
        grown = [p for p in gap.atoms(Pow) if p.base == x and p.exp.is_positive]
        if len(grown) > 1:
            return None
        if grown:
            power, gap = grown[0].exp, gap.xreplace({grown[0]: y})
    variable = x if rate is None and power == 1 else y
    slope, still = gap.diff(variable), gap.xreplace({variable: S.Zero})
    if slope.has(x, y) or still.has(x):
        return None
    place, way = -still / slope, sign_of(slope)
    if rate is not None:
        if sign_of(place) != 1:
            return None
        place, way = log(place) / rate, sign_of(slope * rate)
    elif power != 1:
        place = Max(place, 0) ** (1 / power)
    if way in (1, -1):
        return _Place(place, true if way > 0 else false, true if way < 0 else false)
    if rate is not None:
        return None
    always = still >= 0 if isinstance(event, Ge | Le) else still > 0
    flat = And(Eq(slope, 0), always)  # without a slope it holds on both sides, or on none
    return _Place(Piecewise((place, Ne(slope, 0)), (S.Zero, True)), Or(slope > 0, flat), Or(slope < 0, flat))
