"""Functions of the lag between two times."""

from __future__ import annotations

from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.evaluate.averages.compiler import to_mpf


class Lag:
    """A function of the lag between two times; of an array, the array of its values."""

    def __init__(self, at: Any) -> None:
        self._at = at

    def __call__(self, lag: Any) -> Any:
        """The value at a lag, or at each of several."""
        if np.ndim(lag):
            return np.array([self._at(mp.convert(v)) for v in np.asarray(lag).ravel()]).reshape(np.shape(lag))
        return self._at(to_mpf(lag) if isinstance(lag, Expr) else mp.convert(lag))

    def __repr__(self) -> str:
        return f"<function of the lag: {mp.nstr(mp.mpf(self(0)), 8)} at 0>"
