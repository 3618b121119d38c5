"""How much instances scatter, against what a theory says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import SymcavityError
from symcavity.finite.estimates import Estimate
from symcavity.finite.tables import with_error


@dataclass(frozen=True)
class Scatter:
    """The variance of an observable between instances, times the number of features.

    Attributes
    ----------
    theory : float
        ``solution.variance(observable)``; nan where it is not derived.
    measured, stderr : float
        That of the instances, and its standard error, by their fourth moment.
    note : str
        Why there is no theoretical value, if there is none.
    """

    theory: float
    measured: float
    stderr: float
    note: str = ""

    @property
    def z(self) -> float:
        """The distance of the instances from the theory, in standard errors."""
        return (self.measured - self.theory) / self.stderr if self.stderr > 0 else float("nan")

    @property
    def cells(self) -> tuple[str, str, str]:
        """Theory, instances with the standard error in the last digits, z."""
        told = ("-", "-") if np.isnan(self.theory) else (f"{self.theory:.4g}", f"{self.z:+.2f}")
        return told[0], with_error(self.measured, self.stderr), told[1]


def scatter(solution: Any, observable: Any, measured: Estimate, features: int) -> Scatter:
    """Hold the scatter of instances of one size against that of a solution."""
    values = np.asarray(measured.samples, dtype=float)
    apart = values - values.mean()
    count, second = len(values), float(np.sum(apart**2)) / max(len(values) - 1, 1)
    fourth = float(np.mean(apart**4))
    error = np.sqrt(max(fourth - second**2, 0.0) / count) if count > 1 else float("nan")
    try:
        value, note = float(solution.variance(observable)), ""
    except SymcavityError as problem:
        value, note = float("nan"), problem.found
    return Scatter(value, features * second, float(features * error), note)
