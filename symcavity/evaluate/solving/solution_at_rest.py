"""Solutions at rest: some unknowns are zero, and observables are limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sympy import Expr, Heaviside, S, Symbol, sign

from symcavity.algebra.precision import given_out, mp
from symcavity.errors import FlatMinimum
from symcavity.evaluate.averages.twice import limited
from symcavity.evaluate.closed_map import INTEGRALS
from symcavity.evaluate.given.values import GUARD, Given, Task
from symcavity.evaluate.solutions.events import beside_thresholds
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solving.limit_at_rest import Point, Rest
from symcavity.evaluate.solving.map_at_rest import DEEPER, FLOOR, LOOSE, PREC, kept
from symcavity.evaluate.solving.weak_fields import is_rounding
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.quantities import SiteQuantity

MARGIN = Symbol("margin", positive=True)  # of events, and vanishes more slowly than the states do


class RestingSolution(Solution):
    """A minimum at rest: some unknowns are zero, and observables are limits.

    Attributes
    ----------
    at_rest : tuple of Expr
        The unknowns that vanish, or what vanishes of them.
    loose : tuple of Symbol
        What the minimum does not fix: global variables, and overlaps of dual variables.
    """

    def __init__(self, task: Task, given: Given, rest: Rest, observable: Callable[[Any], Expr]) -> None:
        super().__init__(task, given, _in_numbers(task, given, rest), observable)
        self._rest = rest
        self.at_rest = rest.at_rest
        self._multipliers = _open_multipliers(task, rest)
        free = tuple(g for g, e in task.units.items() if e.free_symbols & {*rest.loose})
        self.loose = (*free, *self._multipliers)

    @property
    def stability(self) -> Any:
        """The factor by which the moments that vanish shrink in one round: there they are the spread themselves.

        Where no moment vanishes, but for those that parameters of zero leave out, and where averages are smooth
        functions of weak fields, it is the limit of what it is elsewhere.
        """
        if self._rest.weak is not None:
            return super().stability
        zero = {s: S.Zero for s, value in self._given.exact.items() if value == 0}
        own = {e.lhs for e in self._task.equations if e.rhs.xreplace(zero) != 0} - {*self._task.responses}
        own |= {self._rest.recovery.left} if self._rest.recovery is not None else set()
        moments = [step for s, step in self._rest.drift.items() if step < 0 and s in own]
        if not moments:
            return super().stability
        with mp.workdps(self.dps):
            return given_out(mp.exp(max(moments) * (2 if self._task.gains().there_and_back else 1)))

    @property
    def is_limit(self) -> bool:
        """It is one."""
        return True

    def number(self, key: Any) -> Any:
        """The value of an observable; one of a global or dual variable that the minimum does not fix is refused."""
        if self._task.words(key).has(*self.loose):
            raise self._not_fixed()
        if self._multipliers and self.expression(key) in self._multipliers:
            raise self._not_fixed()
        return super().number(key)

    def _expression(self, key: Any) -> Expr:
        """The observable, with a margin around the thresholds of events, where it has events and nothing fluctuates."""
        if self._rest.weak is not None:
            return super()._expression(key)
        words, measure = self._task.words(key), self._task.measure
        lowest = measure.free_energy if measure is not None and measure.is_cold else None
        steps = set() if lowest is None else self._task.words(lowest).atoms(Heaviside, sign)
        counted = beside_thresholds(words, MARGIN, steps)
        return super()._expression(key if counted == words else counted)

    def _check_known(self, expr: Expr, key: Any) -> None:
        super()._check_known(expr.xreplace({MARGIN: S.One}), key)

    def _not_fixed(self) -> FlatMinimum:
        if len(self.loose) == len(self._multipliers):
            return FlatMinimum(
                f"The minimum does not determine its dual variables, nor {', '.join(map(str, self.loose))}: "
                "their response is infinite, an infinitesimal change of the fields moves them, and the requested "
                "quantity differs from one choice of them to another.",
                len(self.loose),
                "what is the same for all of them, such as the weights and the objective; a loss with curvature",
            )
        return FlatMinimum(
            "The minimum is not unique, and the quantity that was requested differs from one minimum to another.",
            len(self.loose),
            "a penalty that fixes it; what is the same for all minima, such as the weights",
        )

    def _evaluate(self, expr: Expr) -> Any:
        expr = self._rest.told(expr)
        value = self._limit(expr, {}, {})
        scaled = {s: LOOSE for pair in self._multipliers.items() for s in pair}
        for ways, scales in ((self._rest.loose, {}), ({}, scaled)):
            if any(expr.has(s) for s in (*ways, *scales)):
                other = self._limit(expr, ways, scales)
                if max(abs(other), abs(value)) <= mp.exp(FLOOR):
                    return mp.zero  # as what vanishes: it does more quickly than any power, wherever the loose ones are
                if other != value and not abs(other - value) <= tolerances().fixed * abs(value):
                    raise self._not_fixed()
        return value

    def _limit(self, expr: Expr, ways: Mapping[Symbol, float], scales: Mapping[Symbol, float]) -> Any:
        """The limit of an expression, with some unknowns moved in their coordinates, and others in logarithms."""
        points = self._points(expr)
        with mp.workprec(max(map(self._prec, points))):
            moved = [{**p, **{s: mp.sinh(mp.asinh(p[s]) + way) for s, way in ways.items()}} for p in points]
            moved = [{**p, **{s: p[s] * mp.exp(way) for s, way in scales.items()}} for p in moved]
        near, nearer = (kept(self._near(expr, point)) for point in moved)
        goes = tolerances().goes
        if abs(nearer) < goes * abs(near):
            return mp.zero
        if abs(nearer) * goes > abs(near):
            return mp.sign(nearer) * mp.inf
        with mp.workdps(self.dps):
            return +nearer

    def _points(self, expr: Expr) -> list[dict[Symbol, Any]]:
        """Two points on the way to the limit; far enough for events, so that a margin has no share of the digits."""
        if not expr.has(MARGIN):
            factors = (1.0, DEEPER)
            if self._rest.recovery is not None:  # whose differences are known however small
                factors = (DEEPER, DEEPER**2 if self._is_ruled(expr) else mp.mpf(10) ** (-2 * self.dps))
            with mp.workprec(self._prec(self._rest.point) + 16 * self.dps):
                return [self._rest.deeper(factor) for factor in factors]
        margins = [mp.mpf(10) ** (-self.dps - more) for more in (2, 4)]
        with mp.workprec(self._prec({MARGIN: margins[-1] ** 4, **self._rest.point})):
            return [{**self._rest.within(margin**4), MARGIN: margin} for margin in margins]

    def _near(self, expr: Expr, point: dict[Symbol, Any]) -> Any:
        """The value close to the limit."""
        if self._task.is_projected or self._is_ruled(expr):
            with np.errstate(all="ignore"):
                env = {**self._given.environment("numpy"), **{s: float(v) for s, v in point.items()}}
                return mp.mpf(float(self._task.compiled(expr, "numpy")(env)))
        value, other = (self._exactly(expr, point, prec) for prec in (PREC + 4 * self.dps, self._prec(point)))
        if value and abs(value - other) <= abs(value) * mp.mpf(10) ** -self.dps:
            return value
        if self._rest.weak is not None and is_rounding(value, other):
            return mp.zero
        return other  # terms cancel, up to what is as small as the unknowns are

    def _is_ruled(self, expr: Expr) -> bool:
        """Whether an expression is taken in double; of a recovery differences of closed forms are exact."""
        if self._rest.weak is not None:
            return self._task.compiled(expr, "mpmath").is_ruled(self._given.environment("mpmath"))
        if self._rest.recovery is None:
            return self._given.is_ruled(self._task) and (expr.has(*INTEGRALS) or bool(expr.atoms(SiteQuantity)))
        return expr.has(*INTEGRALS) or any(law.continuous for law in self._given.laws.values())

    def _prec(self, point: Mapping[Symbol, Any]) -> int:
        """Bits for terms that cancel up to what is as small as the unknowns are."""
        return PREC + 4 * self.dps + int(4 * max(abs(mp.log(abs(v), 2)) for v in point.values() if v))

    def _exactly(self, expr: Expr, point: dict[Symbol, Any], prec: int) -> Any:
        with mp.workprec(prec):
            env = {**self._given.environment("mpmath"), **{s: mp.mpf(v) for s, v in point.items()}}
            return limited(self._task.compiled(expr, "mpmath"), env)

    def _measure(self) -> Any:
        return mp.mpf(self._rest.gap)

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"  at rest            : {', '.join(map(str, self.at_rest))}"] if self.at_rest else []
        if self.loose:
            what = "its dual variables are" if len(self.loose) == len(self._multipliers) else "the minimum is"
            lines.append(f"  not fixed          : {', '.join(map(str, self.loose))}, for {what} not unique")
        return "\n".join(lines)

    __repr__ = __str__


def _open_multipliers(task: Task, rest: Rest) -> dict[Symbol, Symbol]:
    """The overlaps of dual variables that the minimum leaves open, each with the variance of their field.

    Where the mean response of multipliers is infinite, an infinitesimal change of their fields moves them by a
    finite amount: several sets of them belong to one minimum, as dual certificates of an exact recovery do.  What the
    limit has for their overlap is that of the last states before it.
    """
    saddle = task.saddle() if task.convex else None
    if saddle is None:
        return {}
    found = {}
    for g in saddle.groups:
        overlap = g.back_size.symbol
        if rest.drift.get(g.back_answer.symbol, 0) > 0 and overlap not in rest.drift:
            own = rest.recovery
            found[overlap] = own.left if own is not None and own.group == g else g.size.symbol
    return found


def _in_numbers(task: Task, given: Given, rest: Rest) -> Point:
    """The unknowns in the limit."""
    env = given.environment("mpmath")
    ends = {s: v for s, v in rest.limits.items() if not isinstance(v, Expr)}
    with mp.workdps(given.dps + GUARD):
        told = {s: v for s, v in rest.limits.items() if isinstance(v, Expr)}
        return {s: mp.convert(v) for s, v in ends.items()} | {
            s: mp.convert(task.compiled(e, "mpmath")({**env, **rest.point})) for s, e in told.items()
        }
