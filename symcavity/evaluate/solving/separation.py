"""Whether the infimum of a convex problem is attained: no direction along which no term rises has a margin.

Such directions are found, or excluded, by the saddle of a problem of their own, :mod:`symcavity.method.recession`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, permutations, product
from typing import Any

import numpy as np
from sympy import Abs, Add, Expr, Integer, Max, Min, Mul, Piecewise, Rational, S, Symbol, sympify

from symcavity.algebra.precision import mp
from symcavity.evaluate.given.values import Given, Task
from symcavity.method.recession import Side, bare_terms
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import Kind
from symcavity.model.problem import Problem
from symcavity.model.quantities import Global, SiteQuantity

FAR, FARTHER, IN_DIGITS = 300, 3000, 30  # fields at which slopes show their signs and limits, and digits to see them
MANY = 16  # values of labels that are looked at, at about the most
MOST_ORDERS = 120  # of global variables: all of five


@dataclass(frozen=True)
class SlopesFarOut:
    """The slopes of a term at both ends of its field, for one class of sites.

    Attributes
    ----------
    labels : dict
        The values of the labels in this class.
    signs : tuple of int
        Of the slopes at the lower and the upper end.
    vanishing : tuple of bool
        Whether they go to zero there.
    """

    labels: Mapping[SiteQuantity, Expr]
    signs: tuple[int, int]
    vanishing: tuple[bool, bool]

    @property
    def falls(self) -> bool:
        """Whether the slope has one sign at every value of the field: that of a convex function grows."""
        return self.signs[0] == self.signs[1] != 0

    @property
    def open_sides(self) -> tuple[bool, bool]:
        """To which sides the term does not rise."""
        return self.signs[0] >= 0, self.signs[1] <= 0

    @property
    def is_bounded(self) -> bool:
        """Whether the term falls for ever to neither side."""
        return all(not is_open or gone for is_open, gone in zip(self.open_sides, self.vanishing, strict=True))


def slopes_far_out(
    body: Expr, mark: Symbol, kind: Kind, given: Given, *, every: bool = False
) -> Iterator[SlopesFarOut]:
    """The slopes of a term at both ends of its field, class by class; nothing where they depend on other fields.

    Labels of many values are looked at in some of them, and nothing is said of these where ``every`` class counts.
    Global variables may have any values at which the term has one: a convex function rises far out alike along all
    parallel lines.
    """
    body = body.xreplace({s: sympify(v) for s, v in given.exact.items()})
    labels = sorted(body.diff(mark).atoms(SiteQuantity), key=str)
    if body.diff(mark).free_symbols - {mark} - {s for q in labels + list(body.atoms(Global)) for s in q.free_symbols}:
        return
    drawn, known = [q for q in labels if q.few], [q for q in labels if not q.few]
    columns, _ = given.laws[kind].table([q.family for q in known]) if known else ((), None)
    rows = np.unique(np.column_stack(columns) if known else np.zeros((1, 0)), axis=0)
    if every and len(rows) > MANY:
        return
    rows = rows[:: max(1, len(rows) // MANY)]
    classes = [
        dict(zip(drawn, few, strict=True)) | dict(zip(known, map(Rational, row), strict=True))
        for row, few in product(rows.tolist(), product(*(q.few for q in drawn)))
    ]
    shared = _values_of_globals(body, mark, classes)
    if shared is None:
        return
    slope = body.diff(mark).xreplace(shared)
    for here in classes:
        with mp.workdps(IN_DIGITS):
            far, farther = (
                [mp.convert(slope.xreplace({**here, mark: Integer(s * x)}).evalf(IN_DIGITS)) for s in (-1, 1)]
                for x in (FAR, FARTHER)
            )
            lower, upper = (int(mp.sign(v)) for v in far)
            gone = tuple(2 * abs(b) <= abs(a) for a, b in zip(far, farther, strict=True))
        yield SlopesFarOut(here, (lower, upper), gone)


def _values_of_globals(body: Expr, mark: Symbol, classes: Sequence[Mapping[Any, Expr]]) -> dict[Any, Expr] | None:
    """Values of global variables at which a term has one: zero, or in some order, as thresholds of classes have."""
    found = sorted(body.atoms(Global), key=str)
    spread = [Rational(2 * k - len(found) + 1, 2) for k in range(len(found))]
    beside = dict.fromkeys(body.atoms(SiteQuantity), S.One)  # of which the slope knows nothing

    def has_value(here: Mapping[Any, Expr]) -> bool:
        fields = (S.Zero, Integer(1), Integer(-1), Integer(FAR), Integer(-FAR))
        at = (body.xreplace({**beside, **here, mark: x}).evalf(IN_DIGITS) for x in fields)
        return any(v.is_extended_real and v.is_finite for v in at)

    for values in ([S.Zero] * len(found), *islice(permutations(spread), MOST_ORDERS)):
        shared = dict(zip(found, values, strict=True))
        if not found or all(has_value({**shared, **here}) for here in classes):
            return shared
    return None


def by_class(values: Sequence[tuple[Mapping[SiteQuantity, Expr], Expr]]) -> Expr | None:
    """A polynomial in labels that has given values at theirs; None where not all values of the labels are there."""
    if len({value for _, value in values}) == 1:
        return values[0][1]
    if len(values) >= MANY:
        return None
    at = {q: {labels[q] for labels, _ in values} for q in values[0][0]}
    terms = []
    for labels, value in values:
        one = [(q - other) / (own - other) for q, own in labels.items() for other in at[q] - {own}]
        terms.append(value * Mul(*one))
    return Add(*terms).expand()


class FarOut:
    """The terms of a convex problem far out: which fall for ever, and whether a direction separates.

    Parameters
    ----------
    problem : Problem
    task : Task
        Its closed equations.
    given : Given
        Values of the parameters.
    """

    def __init__(self, problem: Problem, task: Task, given: Given) -> None:
        self.problem, self.task, self.given = problem, task, given
        self._falls: dict[tuple[Kind, FieldSymbol], bool] = {}

    def falls_for_ever(self, kind: Kind, mark: FieldSymbol) -> bool:
        """Whether some of the terms that hear a field have a slope that is zero at no value of it."""
        if (kind, mark) not in self._falls:
            body = self.problem.objective.get(kind, S.Zero)
            known = body.has(Abs, Max, Min, Piecewise)  # which are constant, or kinked, somewhere
            known = known or any(c.expr.has(mark) for c in self.problem.constraints)
            ends = () if known else slopes_far_out(body, mark, kind, self.given)
            self._falls[kind, mark] = any(one.falls for one in ends)
        return self._falls[kind, mark]

    @cached_property
    def is_separated(self) -> bool | None:
        """Whether some direction along which no term rises has a margin; None where that is open."""
        terms = bare_terms(self.problem)
        sides = [] if terms is None else [self._side(*place, body) for place, body in terms.items()]
        if not sides or None in sides:
            return None
        return self.task.has_margin(tuple(side for side in sides if side is not None), self.given)

    def _side(self, kind: Kind, mark: FieldSymbol, body: Expr) -> Side | None:
        """To which side a field may go without a rise of its terms; None where that is open."""
        ends = list(slopes_far_out(body, mark, kind, self.given, every=True))
        if not ends or not all(e.is_bounded for e in ends):
            return None
        ways = [(e.labels, Integer(e.open_sides[1] - e.open_sides[0])) for e in ends]
        held = [(e.labels, Integer(not any(e.open_sides))) for e in ends]
        inward, neither = by_class(ways), by_class(held)
        return None if inward is None or neither is None else Side(kind, mark, inward, neither)
