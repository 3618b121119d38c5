"""Single-site averages in a simple form: what cancels, and signs that are known."""

from __future__ import annotations

from typing import Any

from sympy import (
    Abs,
    And,
    Dummy,
    Expr,
    Piecewise,
    Pow,
    S,
    Symbol,
    cancel,
    fraction,
    sign,
    sqrt,
    together,
)
from sympy.core.relational import Relational

from symcavity.algebra.gaussian import GaussianAverage, gaussian_average
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.signs import sign_of
from symcavity.sites.branching.branches import tidy_fraction

LONGEST = 400  # operations, above which a sum is left as it is


def cancelled(expr: Expr) -> Expr:
    """Cancel what a sum has in common with its denominator, square roots of quantities included.

    The determinant of the covariances often drops out; where fields coincide at the root, it would be 0/0.
    """
    if expr.count_ops() > LONGEST or expr.has(GaussianAverage, ImplicitAverage):
        return expr
    halves = {p.base for p in expr.atoms(Pow) if p.exp.is_Rational and p.exp.q == 2 and not p.base.is_number}
    rule = {b: Dummy(f"r{k}", positive=True) for k, b in enumerate(sorted(halves, key=str)) if not b.is_Add}
    plain = expr.xreplace({b: r**2 for b, r in rule.items()})
    found = cancel(together(plain)).xreplace({r: sqrt(b) for b, r in rule.items()})
    return min((expr, found), key=lambda e: len(str(e)))


def settled(body: Expr) -> Expr:
    """What is compared on one branch, as one difference: states at an edge of the law differ by a constant there."""
    rule = {}
    for test in body.atoms(Relational):
        gap = tidy_fraction(test.lhs - test.rhs)
        if gap.free_symbols < test.free_symbols:
            rule[test] = test.func(gap, S.Zero)
    return body.xreplace(rule)


def cleared(body: Expr, positive: list[Expr]) -> Expr:
    """Events without the denominators that were taken as positive."""
    rule = {}
    for test in body.atoms(Relational):
        top, bottom = fraction(cancel(test.lhs - test.rhs))
        side = next((s for g in positive if (s := sign_of(cancel(bottom / g))) in (1, -1)), None)
        if side is not None:
            rule[test] = test.func(side * top, S.Zero)
    return body.xreplace(rule)


def without_order(cells: list[tuple[Expr, list[Expr]]], z: Symbol) -> Expr:
    """Average over branches that come in no single order: by cases, and in general numerically."""
    cases = [(body, And(*(_side(c, z) for c in conditions))) for body, conditions in cells]
    return gaussian_average(Piecewise(*cases[:-1], (cases[-1][0], True)), z)


def _side(condition: Expr, z: Symbol) -> Any:
    """On which side of a place a condition holds: where two branches meet, both name one place, and leave no gap."""
    wide = condition.expand()
    slope = wide.diff(z)
    way = None if slope.has(z) else sign_of(slope)
    if not way:
        return condition >= 0
    place = tidy_fraction(-wide.xreplace({z: S.Zero}) / slope)
    return z >= place if way > 0 else z <= place


def odd_signs(expr: Expr, z: Symbol) -> Expr:
    """Reduce even powers of signs to one, and their absolute values too; of a positive multiple to that of ``z``."""
    multiples = {s: s.args[0].as_independent(z, as_Add=False) for s in expr.atoms(sign)}
    expr = expr.xreplace({s: sign(z) for s, (c, rest) in multiples.items() if rest == z and c.is_nonnegative})
    rule: dict[Any, Any] = {Abs(s): S.One for s in expr.atoms(sign)}
    for power in expr.atoms(Abs):
        if isinstance(power.args[0], sign):
            rule[power] = S.One
    expr = expr.xreplace(rule)
    return expr.replace(
        lambda e: e.is_Pow and isinstance(e.base, sign) and e.exp.is_Integer, lambda e: e.base ** (e.exp % 2)
    )
