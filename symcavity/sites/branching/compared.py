"""Numbers at seeded points, compared as far as their digits go; those too large for double are taken exactly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Dummy, Expr

from symcavity.algebra.compiled import compiled
from symcavity.algebra.precision import exact_function, mp


class InDigits:
    """Expressions as a function of numbers; what is too large for double precision is a number of mpmath.

    An idle bound may lie at a field of ``exp(10**4)``: it has its place in the order of branches like any other.
    """

    def __init__(self, symbols: Sequence[Any], exprs: Sequence[Expr]) -> None:
        self.symbols, self.exprs = symbols, exprs
        self._double = compiled(symbols, list(exprs))

    def double(self, *point: Any) -> Any:
        """The first expression in double precision."""
        return self._double(*point)[0]

    def __call__(self, *point: Any) -> list[Any]:
        """All expressions at a point."""
        with np.errstate(all="ignore"):
            values = [float(v) for v in self._double(*point)]
        return [v if np.isfinite(v) else self._exact(k, point) for k, v in enumerate(values)]

    def _exact(self, k: int, point: Sequence[Any]) -> Any:
        marks = {s: Dummy(real=True) for s in self.symbols}
        call = exact_function(list(marks.values()), self.exprs[k].xreplace(marks))
        try:
            value = call(*map(mp.convert, point))
        except (ZeroDivisionError, ValueError):
            return np.nan
        return np.nan if mp.im(value) else mp.re(value)


def is_near(one: float, two: float) -> bool:
    """Whether two numbers are equal but for rounding."""
    return bool(np.isclose(one, two, rtol=1e-6, atol=1e-9))


def is_nan(value: Any) -> bool:
    """Whether this is not a number, of whatever type."""
    return bool(value != value)


def is_below(one: Any, two: Any, part: float = 1e-7) -> bool:
    """Whether a place of the line, whose ends are infinite, is below another by more than rounding."""
    return bool(one < two and (np.inf in (-one, two) or two - one > part * (1 + abs(one))))


def clipped(value: float) -> float:
    """A number, no farther out than a thousand."""
    return max(min(value, 1e3), -1e3)
