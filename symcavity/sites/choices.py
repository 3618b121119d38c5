"""Which members of complementary pairs may vanish together: choices that contradict each other are never made.

Of ``n`` hinges in one field each has three states, and together they have ``2*n + 1``, not ``3**n``: what one pair
says of an unknown is compared with what the others said before the next one is looked at.  Only relations with rational
coefficients are compared; all others may hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sympy import Add, Expr, Rational, S

Form = dict[Any, Fraction]
"""A linear expression: the coefficient of each unknown, and of one."""
ONE = S.One


@dataclass
class _ChoiceFacts:
    """What some choices say: unknowns that they fix by others, bounds, and what holds several unknowns."""

    fixed: dict[Any, Form] = field(default_factory=dict)
    low: dict[Any, Fraction] = field(default_factory=dict)
    high: dict[Any, Fraction] = field(default_factory=dict)
    waiting: list[Form] = field(default_factory=list)

    def copy(self) -> _ChoiceFacts:
        return _ChoiceFacts(dict(self.fixed), dict(self.low), dict(self.high), list(self.waiting))

    def reduced(self, form: Form) -> Form:
        """A form without the unknowns that are fixed."""
        if not any(x in self.fixed for x in form):
            return form
        out: Form = {}
        for x, a in form.items():
            for y, b in self.fixed[x].items() if x in self.fixed else ((x, Fraction(1)),):
                out[y] = out.get(y, Fraction(0)) + a * b
        return {x: a for x, a in out.items() if a or x == ONE}

    def vanishes(self, form: Form) -> bool:
        """Take a form to be zero; whether it may be."""
        form = self.reduced(form)
        x = next((x for x in form if x != ONE), None)
        if x is None:
            return form.get(ONE, 0) == 0
        value = {y: -a / form[x] for y, a in form.items() if y != x}
        one = {x: value}
        for y, other in self.fixed.items():
            if x in other:
                self.fixed[y] = _put(other, one)
        self.fixed[x] = value
        low, high = self.low.pop(x, None), self.high.pop(x, None)
        bounds = ([(value, -low)] if low is not None else []) + (
            [({y: -a for y, a in value.items()}, high)] if high is not None else []
        )
        again = [{**f, ONE: f.get(ONE, Fraction(0)) + b} for f, b in bounds]
        still, self.waiting = self.waiting, []
        return all(self.is_not_negative(f) for f in (*again, *still))

    def is_not_negative(self, form: Form) -> bool:
        """Take a form not to be negative; whether it may be so."""
        form = self.reduced(form)
        unknowns = [x for x in form if x != ONE]
        constant = form.get(ONE, Fraction(0))
        if not unknowns:
            return constant >= 0
        if len(unknowns) > 1:
            self.waiting.append(form)
            return True
        (x,) = unknowns
        bound = -constant / form[x]
        if form[x] > 0:
            self.low[x] = max(bound, self.low.get(x, bound))
        else:
            self.high[x] = min(bound, self.high.get(x, bound))
        return x not in self.low or x not in self.high or self.low[x] <= self.high[x]


def _put(form: Form, rule: dict[Any, Form]) -> Form:
    return _ChoiceFacts(fixed=rule).reduced(form)


def _form(expr: Expr, unknowns: frozenset[Any]) -> Form | None:
    """A linear expression with rational coefficients; None if it is not one."""
    out: Form = {}
    for term in Add.make_args(expr.expand()):
        number, rest = term.as_coeff_Mul()
        if not isinstance(number, Rational) or (rest != ONE and rest not in unknowns):
            return None
        out[rest] = out.get(rest, Fraction(0)) + Fraction(int(number.p), int(number.q))
    return {x: a for x, a in out.items() if a or x == ONE}


class Choices:
    """The choices of members of pairs that do not contradict each other.

    Parameters
    ----------
    equations : sequence of Expr
        What vanishes whatever is chosen.
    pairs : sequence of (Expr, Expr)
        Complementary pairs.
    conditions : sequence of Expr
        What must not be negative whatever is chosen.
    unknowns : sequence
        The unknowns of the law.
    """

    def __init__(
        self,
        equations: Sequence[Expr],
        pairs: Sequence[tuple[Expr, Expr]],
        conditions: Sequence[Expr],
        unknowns: Sequence[Any],
    ) -> None:
        there = frozenset(unknowns)
        self._pairs = [(_form(p, there), _form(q, there)) for p, q in pairs]
        self._start = _ChoiceFacts()
        zero, limits = ([f for e in some if (f := _form(e, there)) is not None] for some in (equations, conditions))
        self._is_possible = all(map(self._start.vanishes, zero)) and all(map(self._start.is_not_negative, limits))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """For each choice the member of each pair that vanishes, in the order of ``itertools.product``."""
        return self._from((), self._start) if self._is_possible else iter(())

    def _from(self, before: tuple[int, ...], said: _ChoiceFacts) -> Iterator[tuple[int, ...]]:
        if len(before) == len(self._pairs):
            yield before
            return
        pair = self._pairs[len(before)]
        for k in (0, 1):
            zero, rest = pair[k], pair[1 - k]
            now = said.copy()
            if (zero is None or now.vanishes(zero)) and (rest is None or now.is_not_negative(rest)):
                yield from self._from((*before, k), now)
