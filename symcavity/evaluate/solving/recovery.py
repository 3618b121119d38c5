"""The coordinates in which an exact recovery is a limit at rest: what a field leaves of the fields beside it vanishes.

Where data hear ``x.w`` and what a teacher t sends through the same couplings, the minimum may be at ``w = k t``.  No
moment of w vanishes there.  In the coordinates of the saddle the variance ``r^2 = q_w - c.T^-1.c`` does, and so does
``c - T k``, in proportion to r.  Such a multiple k stands at a kink of a law: where its slope jumps, states can rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from sympy import Abs, Dummy, Expr, Matrix, Max, Min, Piecewise, S, Symbol, sqrt
from sympy.core.relational import Relational

from symcavity.algebra.door import as_sympy
from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.given.values import Given, Task
from symcavity.method.saddle import FieldStatistics, Saddle
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity

MANY = 3  # absolute values in one condition whose signs are all tried


@dataclass(frozen=True)
class Recovery:
    """A field that becomes multiples of the quenched fields beside it, and the coordinates in which it does.

    Attributes
    ----------
    group : Group
        The statistics of the field.
    multiples : tuple of Expr
        One for each quenched field.
    """

    group: FieldStatistics
    multiples: tuple[Expr, ...]

    @cached_property
    def left(self) -> Symbol:
        """What the quenched fields leave of the variance, which vanishes."""
        return Symbol(f"left_{self.group.size.symbol}", positive=True)

    @cached_property
    def misses(self) -> tuple[Symbol, ...]:
        """By how much each covariance misses its limit, in units of the root of what is left."""
        return tuple(Symbol(f"miss_{c.symbol}", real=True) for c in self.group.overlaps)

    @cached_property
    def pulls(self) -> tuple[Symbol, ...]:
        """The feedback through each quenched field on the difference of the states."""
        return tuple(Symbol(f"pull_{a.symbol}", real=True) for a in self.group.back_answers)

    @cached_property
    def _gram(self) -> Matrix:
        return Matrix(self.group.gram)

    @cached_property
    def error(self) -> Expr:
        """The mean square of the difference of the field and these multiples."""
        g, k = self.group, Matrix(self.multiples)
        along = sum((a * m.factor * m.symbol for a, m in zip(k, g.overlaps, strict=True)), S.Zero)
        return (g.size.factor * g.size.symbol - 2 * along + (k.T * self._gram * k)[0]).expand()

    @cached_property
    def rule(self) -> dict[Symbol, Expr]:
        """The order parameters in these coordinates."""
        g = self.group
        limit = self._gram * Matrix(self.multiples)
        rows = zip(g.overlaps, limit, self.misses, strict=True)
        covariances = [(end + sqrt(self.left) * miss) / m.factor for m, end, miss in rows]
        out = {m.symbol: c for m, c in zip(g.overlaps, covariances, strict=True)}
        out[g.size.symbol] = ((self.left + g.explained(covariances)) / g.size.factor).expand()
        answer = g.back_answer.factor * g.back_answer.symbol
        for m, pull, multiple in zip(g.back_answers, self.pulls, self.multiples, strict=True):
            out[m.symbol] = (-answer * multiple - pull) / m.factor
        return out

    def limits(self, ends: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
        """All order parameters where nothing is left, in numbers and averages over quenched laws."""
        own = {self.left, *self.misses, *self.pulls}
        out = {s: v for s, v in ends.items() if s not in own}
        answer = self.group.back_answer.symbol
        pulled = {m.symbol: k for m, k in zip(self.group.back_answers, self.multiples, strict=True)}
        for s, e in self.rule.items():
            if s in pulled and pulled[s] and mp.isinf(ends[answer]):
                out[s] = -ends[answer] * mp.sign(float(pulled[s]))
            else:
                out[s] = e.xreplace({self.left: S.Zero, **({answer: S.Zero} if s in pulled and not pulled[s] else {})})
        return out

    def map(self, closed: ClosedMap, responses: tuple[Symbol, ...]) -> ClosedMap:
        """The closed map in these coordinates."""
        g, closures = self.group, dict(zip(closed.mapped, closed.exprs, strict=False))
        size = g.left_of(closures)
        covariances = Matrix([m.factor * closures[m.symbol] for m in g.overlaps])
        missed = covariances - self._gram * Matrix(self.multiples)
        found: dict[Symbol, Expr] = {s: e for s, e in closures.items() if s not in self.rule}
        found[self.left] = size
        found |= {s: m.expand() / sqrt(size) for s, m in zip(self.misses, missed, strict=True)}
        answer = g.back_answer.factor * closures[g.back_answer.symbol]
        for m, pull, multiple in zip(g.back_answers, self.pulls, self.multiples, strict=True):
            found[pull] = -answer * multiple - m.factor * closures[m.symbol]
        equations = [Equation(s, self.told(e)) for s, e in found.items()]
        equations += [Equation(self.told(e.lhs), self.told(e.rhs)) for e in closed.rest]
        return ClosedMap(equations, [*found, *closed.free], responses)

    def told(self, expr: Expr) -> Expr:
        """An expression of order parameters in these coordinates."""
        apart = self.group.apart(expr, self.left)
        return apart.xreplace({s: e for s, e in self.rule.items() if s != self.group.size.symbol})


def closed_map(task: Task, given: Given, recovery: Recovery | None) -> tuple[ClosedMap, ExactPass]:
    """The closed equations as a map, in the coordinates of a recovery where there is one."""
    closed, exact = task.closed_map(given)
    if recovery is None:
        return closed, exact
    key = recovery, tuple(closed.exprs)
    if key not in task.maps:
        moved = recovery.map(closed, task.responses)
        task.maps[key] = moved, ExactPass(moved.exprs)
    return task.maps[key]


def recovery_at(group: FieldStatistics, saddle: Saddle, given: Given, seen: np.ndarray) -> Recovery | None:
    """The recovery whose multiples are closest to those that were seen; None where no law has a kink at any.

    Parameters
    ----------
    group : Group
    saddle : Saddle
    given : Given
    seen : array
        The multiples where steps towards the minimum have led.
    """
    options = {k for body in _conditions(group, saddle, given) for k in _multiples(group, saddle, given, body)}
    if not options:
        return None

    def distance(k: tuple[Expr, ...]) -> float:
        return float(np.linalg.norm(np.array([float(v) for v in k]) - seen))

    return Recovery(group, min(sorted(options, key=str), key=distance))


def _conditions(group: FieldStatistics, saddle: Saddle, given: Given) -> Iterator[Expr]:
    """What is zero where the terms and constraints of the hearers have kinks."""
    problem, hearer = saddle.record.problem, group.field.hearer
    rule = {s: as_sympy(v) for s, v in given.exact.items()}
    body = problem.objective.get(hearer, S.Zero).xreplace(rule)
    told = [c.expr.xreplace(rule) for c in problem.constraints if c.expr.has(*_marks(group, saddle))]
    yield from told
    for e in (body, *told):
        yield from (node.args[0] for node in e.atoms(Abs))
        yield from (a - b for node in e.atoms(Max, Min) for a in node.args for b in node.args if a != b)
        yield from (r.lhs - r.rhs for node in e.atoms(Piecewise) for r in node.atoms(Relational))


def _marks(group: FieldStatistics, saddle: Saddle) -> list[Symbol]:
    """The placeholders of the field and of the quenched fields beside it."""
    by_sum = {f.as_sum: f.symbol for f in saddle.record.fields}
    return [by_sum[f.as_sum] for f in (group.field, *group.quenched) if f.as_sum in by_sum]


def _multiples(group: FieldStatistics, saddle: Saddle, given: Given, condition: Expr) -> Iterator[tuple[Expr, ...]]:
    """The multiples at which a condition is met whatever the quenched fields are."""
    marks = _marks(group, saddle)
    bends = sorted(condition.atoms(Abs), key=str)
    if len(marks) != len(group.quenched) + 1 or len(bends) > MANY:
        return
    law = given.laws[group.field.hearer]
    for signs in product((1, -1), repeat=len(bends)):
        plain = condition.xreplace({node: way * node.args[0] for node, way in zip(bends, signs, strict=True)})
        rows = [plain.diff(mark) for mark in marks]
        families = sorted({q.family for e in rows for q in e.atoms(SiteQuantity)}, key=str)
        if rows[0] == 0 or any(e.has(*marks, Dummy) for e in rows) or not {*families} <= {*law.names}:
            continue
        for point in law.marginal(families):
            known = dict(zip(families, map(as_sympy, point), strict=True))
            here = {q: known[q.family] for e in rows for q in e.atoms(SiteQuantity)}
            own, *others = (e.xreplace(here) for e in rows)
            if own.is_number and own != 0 and all(e.is_number for e in others):
                yield tuple(-e / own for e in others)
