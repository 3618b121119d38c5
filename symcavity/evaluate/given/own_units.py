"""The units in which closed equations are solved: as large as what is given.

Equations that keep their form when units change are one problem in all of them, and are solved in those in which what
is given is of order one: no absolute size decides, and nothing under- or overflows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Integer, Rational, Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.averages.densities import Counting, location
from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.model.dimensions import Dimensions, fitted
from symcavity.model.quantities import Quenched

COARSE = 20  # units are powers of two to this power: numbers of an ordinary size stay as they are


class SymbolUnits:
    """The units of symbols at some values: powers of two.

    Parameters
    ----------
    dimensions : Dimensions
        The powers of independent units.
    numbers : mapping
        Values of parameters, and
    laws : mapping
        those of quenched parameters by kind of site: they are of order one in these units.
    """

    def __init__(self, dimensions: Dimensions, numbers: Mapping[Symbol, Any], laws: Mapping[Any, SiteLaw]) -> None:
        power = dimensions.of
        data = [(power(q.at_site()), s) for law in laws.values() for q, s in _sizes(law).items()]
        plain = [(power(k), _logarithm(to_mpf(v))) for k, v in numbers.items() if v != 0]
        self.dimensions = dimensions
        self._logarithms = COARSE * np.rint(fitted(dimensions.count, (data, plain)) / COARSE)

    @property
    def trivial(self) -> bool:
        """Whether values stay as they are."""
        return not np.any(self._logarithms)

    def power(self, symbol: Any) -> int:
        """The unit of a symbol, as a power of two."""
        return round(float(self.dimensions.of(symbol) @ self._logarithms))

    def of(self, symbol: Any) -> Rational:
        """The unit of a symbol."""
        return Integer(2) ** self.power(symbol)

    def observable(self, expr: Any) -> int | None:
        """The unit of an expression, as a power of two; None where its parts have different ones."""
        found = self.dimensions.observable(expr)
        return None if found is None else round(float(found @ self._logarithms))

    @cached_property
    def rule(self) -> dict[Any, Any]:
        """The replacement of each symbol of the declared units in these units."""
        return {s: self.of(s) * s for s in self.dimensions.symbols if self.power(s)}

    def law(self, law: SiteLaw) -> SiteLaw:
        """A law of quenched parameters in these units."""
        return law.scaled({q: -self.power(q.at_site()) for q in law.parameters})

    def inward(self, point: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
        """Values of symbols in these units."""
        return {s: _times(v, -self.power(s)) for s, v in point.items()}

    def outward(self, point: Mapping[Symbol, Any]) -> dict[Symbol, Any]:
        """Values of symbols in the declared units."""
        return {s: _times(v, self.power(s)) for s, v in point.items()}


def _sizes(law: SiteLaw) -> dict[Quenched, float]:
    """The logarithms of the sizes of quenched parameters; those that are zero, or counted, have none."""
    found = {q: np.hypot(*location(v)) for q, v in law.continuous if not isinstance(v, Counting)}
    for q in law.names:
        (values,), weights = law.table([q])
        top = float(np.max(np.abs(values), initial=0.0))
        if top > 0:
            found[q] = top * float(np.sqrt(np.average((values / top) ** 2, weights=weights)))
    return {q: float(np.log2(size)) for q, size in found.items() if size > 0}


def _logarithm(value: Any) -> float:
    return float(mp.log(abs(value), 2))


def _times(value: Any, power: int) -> Any:
    """A number times a power of two, which rounds nothing."""
    if not power:
        return value
    if isinstance(value, int | float | np.ndarray):
        return np.ldexp(value, power) if isinstance(value, np.ndarray) else float(np.ldexp(value, power))
    if isinstance(value, Rational):
        return value * Integer(2) ** power
    return mp.ldexp(mp.convert(value), power) if hasattr(value, "_mpf_") else value * Integer(2) ** power
