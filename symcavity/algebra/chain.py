"""Expressions taken apart into steps, with derivatives by the chain rule: their code is short, and quickly written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sympy import Add, DiracDelta, Dummy, Expr, S

from symcavity.algebra.compiled import function_of, marks_of, written


@lru_cache(maxsize=1024)
def _step(number: int) -> Dummy:
    """The names of steps: the same in all chains, so that equal code is made once."""
    return Dummy(f"s{number}", real=True)


class Chain:
    """Some expressions, their derivatives, and the steps by which both are computed.

    Parameters
    ----------
    arguments : sequence
        What the code takes: symbols, or any other nodes of the expressions.
    exprs : sequence of Expr
    wrt : sequence
        Those of the arguments by which derivatives are taken.

    Attributes
    ----------
    values : list of Expr
        The expressions, in arguments and steps.
    slopes : list of list of Expr
        Their derivatives by each of ``wrt``, almost everywhere.
    """

    def __init__(self, arguments: Sequence[Any], exprs: Sequence[Expr], wrt: Sequence[Any]) -> None:
        self.marks = dict(zip(arguments, marks_of(len(arguments)), strict=True))
        self.steps: dict[Dummy, Expr] = {}
        self._names: dict[Expr, Dummy] = {}
        self._wrt = [self.marks[s] for s in wrt]
        self._rates: dict[Any, dict[Any, Expr]] = {
            m: {v: S.One if v is m else S.Zero for v in self._wrt} for m in self.marks.values()
        }
        whole = [written(e, self.marks) for e in exprs]
        self._times = _times(whole)
        self._taken: dict[Any, Any] = {}
        self.values = [self._apart(e) for e in whole]
        self.slopes = [[self._slope(e, v) for v in self._wrt] for e in self.values]

    def code(
        self, exprs: Sequence[Expr], arguments: Sequence[Any] | None = None, zero: Sequence[Any] = ()
    ) -> Callable[..., Any]:
        """Return the function of some of the values and slopes; what is named in ``zero`` is zero in them."""
        rule = {self.marks[s]: S.Zero for s in zero}
        marks = tuple(self.marks[a] for a in (self.marks if arguments is None else arguments))
        needed = self._needed(exprs)
        steps = tuple((s, e.xreplace(rule)) for s, e in self.steps.items() if s in needed)
        return function_of(marks, tuple(e.xreplace(rule) for e in exprs), steps=steps)

    def holds(self, expr: Expr, some: Sequence[Any]) -> bool:
        """Whether a value or a slope depends on some of the arguments."""
        return not self._needed([expr]).isdisjoint(self.marks[s] for s in some)

    def _needed(self, exprs: Sequence[Expr]) -> set[Any]:
        """The arguments and steps on which expressions depend, through whatever steps."""
        found: set[Any] = set()
        todo = list(exprs)
        while todo:
            fresh = todo.pop().free_symbols - found
            found |= fresh
            todo += [self.steps[s] for s in fresh if s in self.steps]
        return found

    def _apart(self, expr: Any) -> Any:
        """An expression with a step for every part that stands in several places."""
        if not expr.args:
            return expr
        if expr not in self._taken:
            new = expr.func(*map(self._apart, expr.args))
            shared = self._times[expr] > 1 and isinstance(new, Expr) and not new.is_number
            self._taken[expr] = self._named(new) if shared else new
        return self._taken[expr]

    def _named(self, expr: Expr, *, moving: bool = True) -> Expr:
        """The step that an expression is, with its derivatives where they are requested; itself, where it is short."""
        if not expr.args:
            return expr
        if expr not in self._names:
            step = self._names[expr] = _step(len(self.steps))
            self.steps[step] = expr
        step = self._names[expr]
        if moving and step not in self._rates:
            rates = {v: self._slope(expr, v) for v in self._wrt}
            self._rates[step] = {v: self._named(d, moving=False) if len(d.args) > 1 else d for v, d in rates.items()}
        return step

    def _slope(self, expr: Expr, v: Any) -> Expr:
        """The derivative by the chain rule; what comes back of steps in it is written by their names."""
        moving = sorted(expr.free_symbols & self._rates.keys(), key=str)
        terms = (_partial(expr, s) * rate for s in moving if (rate := self._rates[s][v]) != 0)
        return Add(*terms).xreplace(self._names)


@lru_cache(maxsize=4096)
def _partial(expr: Expr, symbol: Any) -> Expr:
    """The derivative almost everywhere: a sign of what is far from zero in its case has none."""
    return expr.diff(symbol).replace(DiracDelta, lambda *_: S.Zero)


def _times(exprs: Sequence[Any]) -> Mapping[Any, int]:
    """In how many places every part of some expressions stands, equal parents counted once."""
    times: Counter[Any] = Counter(exprs)
    todo = list(times)
    while todo:
        for part in todo.pop().args:
            times[part] += 1
            if times[part] == 1:
                todo.append(part)
    return times
