"""How far equations are from holding, relative to their sides, and values in extended precision to measure it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.integrals import LAWS


def gaps(sides: Sequence[Any]) -> list[Any]:
    """How far each equation is from holding, by its two sides."""
    return [_relative(a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)]


def _relative(a: Any, b: Any) -> Any:
    if a == b:
        return 0 * abs(b) if np.isfinite(float(b)) else mp.mpf(0)
    return abs(a - b) / max(abs(a), abs(b), 1 if a == 0 or b == 0 else 0)


class _Extended:
    """The law of a side in extended precision."""

    def __init__(self, law: Any) -> None:
        self._law = law
        self.finest = law.finest
        self.is_ruled = law.is_ruled

    def table(self, families: Any, level: int = 0) -> Any:
        """Columns of values, and weights."""
        columns, weights = self._law.table(families, level)
        longer = None if weights is None else weights.astype(np.longdouble)
        return tuple(c.astype(np.longdouble) for c in columns), longer


def extended(env: dict[Any, Any]) -> dict[Any, Any]:
    """Return the same values in extended precision (where the platform has it)."""
    out: dict[Any, Any] = {k: np.longdouble(v) for k, v in env.items() if k != LAWS}
    out[LAWS] = {side: _Extended(law) for side, law in env[LAWS].items()}
    return out
