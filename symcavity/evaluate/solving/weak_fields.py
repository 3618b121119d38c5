"""The closed equations of a Gibbs measure where thermal means vanish, to the first order in their second moments.

At a temperature a thermal average is a smooth function of the cavity field.  Over a weak field it is its value at zero,
and half of its curvature times the variance: nothing is integrated, and nothing is the difference of two averages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sympy import Add, DiracDelta, Expr, S, Symbol, nan, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.undefined import where_defined
from symcavity.model.equations import Equation

PRECS = 150, 250  # bits, of two tries that tell zero from a small number
SHRINKS = 1e-10  # the share of a rounding error that is left with more bits


@dataclass(frozen=True)
class WeakFields:
    """Averages over fields whose variances vanish.

    Attributes
    ----------
    moments : tuple of Symbol
        The second moments that vanish, each of them an average that is zero where all of them are.
    """

    moments: tuple[Symbol, ...]

    @cached_property
    def zero(self) -> Mapping[Any, Any]:
        """All of them at zero."""
        return dict.fromkeys(self.moments, S.Zero)

    def limit(self, expr: Expr) -> Expr:
        """An expression at moments of zero."""
        return expr.xreplace(self.zero)

    def told(self, expr: Expr) -> Expr:
        """An expression in the limit, and in small moments where it has none without them, as their ratios."""
        limit = self.limit(expr)
        return self.expanded(expr) if limit.has(nan, zoo) else limit

    def expanded(self, expr: Expr) -> Expr:
        """An expression with averages over fields that vanish expanded to the first order of the moments."""
        weak: set[Any] = set()
        wide: set[Any] = set()
        for node in expr.atoms(GaussianAverage):
            body, z = node.args
            (wide if self.limit(body).has(z) or not body.has(*self.moments) else weak).add(z)
        return self._expanded(expr, weak - wide)

    def _expanded(self, expr: Expr, weak: set[Any]) -> Expr:
        rule = {}
        for node in sorted((n for n in expr.atoms(GaussianAverage) if n.z in weak), key=str):
            body, z = node.args
            parts = body.xreplace({z: S.Zero}), body.diff(z).diff(z).xreplace({z: S.Zero}) / 2
            rule[node] = self._expanded(Add(*parts), weak)
        return expr.xreplace(rule)


def weak_fields(task: Task, given: Given) -> WeakFields | None:
    """The moments that vanish together; None where there are none, or their limit is no average at a field of zero."""
    if task.measure is None or task.measure.is_cold or task.convex:
        return None
    closed, _ = task.closed_map(given)
    bodies = dict(zip(closed.mapped, closed.exprs, strict=False))
    moments = [s for s, sign in zip(closed.unknowns, closed.signs, strict=True) if sign and s in bodies]
    moments = [s for s in moments if s not in task.responses]
    begin = dict(zip(closed.unknowns, closed.start().tolist(), strict=True))
    while moments:
        weak = WeakFields(tuple(moments))
        limits = [weak.limit(bodies[s]) for s in moments]
        if any(e.has(nan, zoo) for e in limits):
            return None
        staying = [s for s, e in zip(moments, limits, strict=True) if _vanishes(e, given, begin)]
        if len(staying) == len(moments):
            told = [*(weak.limit(e) for e in closed.exprs), *(weak.expanded(bodies[s]) for s in moments)]
            return None if any(e.has(nan, zoo, DiracDelta) for e in told) else weak  # a jump has no expansion
        moments = staying
    return None


def weak_map(weak: WeakFields, closed: ClosedMap, responses: tuple[Symbol, ...]) -> ClosedMap:
    """The closed map to the first order of moments, and all else at fields of zero."""
    pairs = zip(closed.mapped, closed.exprs, strict=False)
    told = [Equation(s, weak.expanded(e) - weak.limit(e) if s in weak.moments else weak.limit(e)) for s, e in pairs]
    rest = [Equation(weak.limit(e), S.Zero) for e in closed.exprs[len(closed.mapped) :]]
    return ClosedMap([*told, *rest], closed.unknowns, responses)


def _vanishes(expr: Expr, given: Given, point: Mapping[Any, Any]) -> bool:
    """Whether an expression is zero up to rounding, with many digits."""
    if expr == 0:
        return True
    one, values = ExactPass([expr]), []
    for prec in PRECS:
        with mp.workprec(prec):
            env = {**given.environment("mpmath"), **{s: mp.mpf(v) for s, v in point.items()}}
            values.append(where_defined(lambda env=env: one(env)[0]))
    return None not in values and is_rounding(*values)


def is_rounding(value: Any, finer: Any) -> bool:
    """Whether a number shrinks when it has more digits, as what cancels does."""
    return bool(abs(finer) <= SHRINKS * abs(value))
