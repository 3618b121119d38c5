"""Averages that are computed in double, for one number of each symbol at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.errors import ValuesError
from symcavity.model.quantities import SiteQuantity

MOST_DIGITS = 60  # on the way to what fewer are asked of


def spread_over(function: Callable[..., float], values: Iterable[Any]) -> Any:
    """A function of numbers at numbers or at arrays, which broadcast."""
    arrays = [np.asarray(v, dtype=float) for v in values]
    if all(v.ndim == 0 for v in arrays):
        return function(*map(float, arrays))
    spread = np.broadcast_arrays(*arrays)
    rows = zip(*(v.ravel().tolist() for v in spread), strict=True)
    return np.array([function(*row) for row in rows]).reshape(spread[0].shape)


class AtLeaves(ABC):
    """A compiled average: call it with the values of its symbols.

    Parameters
    ----------
    node : Expr
    leaves : sequence
        What it depends on; derivatives are asked for by the first ``moving`` of them.
    compiled : callable
        Compiles an average over other sites for a backend.
    backend : str
    moving : int
    """

    def __init__(
        self,
        node: Any,
        leaves: Sequence[Any],
        compiled: Callable[[Expr, str], Any],
        backend: str,
        moving: int,
    ) -> None:
        self.node, self.backend = node, backend
        keys = [leaf.family if isinstance(leaf, SiteQuantity) else leaf for leaf in leaves]
        self.keys = keys[:moving]
        self.readers: list[Callable[[Mapping[Any, Any]], Any]] = [
            itemgetter(key) if leaf.is_Symbol or key is not leaf else compiled(leaf, backend)
            for key, leaf in zip(keys, leaves, strict=True)
        ]

    @abstractmethod
    def average(self, *params: float) -> float:
        """The average at numbers for the leaves."""

    @abstractmethod
    def slopes(self, params: tuple[float, ...], places: set[int]) -> Mapping[int, float] | None:
        """The derivatives by some of the moving leaves, by their places; None where they are not known."""

    def __call__(self, env: Mapping[Any, Any]) -> Any:
        """Return the average at the values of the symbols; arrays broadcast."""
        if self.backend == "mpmath" and mp.dps > MOST_DIGITS:
            raise ValuesError(f"{self.node} has no {mp.dps} digits.", "dps <= 15: it is computed in double precision")
        return spread_over(self.average, [read(env) for read in self.readers])

    def with_slopes(self, env: Mapping[Any, Any], rows: Sequence[Mapping[Any, Any]]) -> tuple[Any, list[Any]] | None:
        """The average, and its derivatives along rows of tangents; None where they are not known."""
        values = [np.asarray(read(env), dtype=float) for read in self.readers[: len(self.keys)]]
        if any(v.ndim for v in values) or any(s not in self.keys for row in rows for s in row):
            return None
        value = self(env)  # before the slopes, which are those of the rule that it is taken with
        places = {self.keys.index(s) for row in rows for s in row}
        if (slopes := self.slopes(tuple(map(float, values)), places)) is None:
            return None
        return value, [sum(slopes[self.keys.index(s)] * t for s, t in row.items()) for row in rows]
