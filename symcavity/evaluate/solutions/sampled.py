"""Solutions whose averages are sampled: values with standard errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from symcavity.evaluate.solutions.solution import Solution
from symcavity.shapes.sampling import SCRAMBLES

SAID = "some averages are sampled, and known to the digits that .stderr(...) shows only"


class SampledSolution(Solution):
    """A solution whose averages are taken over quasi-random samples, in independent sets.

    Parameters
    ----------
    whole : Solution
        The solution with all samples.
    part : callable
        The solution with one set of samples, by its number.
    """

    def __init__(self, whole: Solution, part: Callable[[int], Solution]) -> None:
        self.__dict__.update(whole.__dict__)
        self._part = part
        self.remarks += (SAID,)

    @cached_property
    def parts(self) -> list[Solution]:
        """The solutions with each independent set of samples."""
        return [self._part(k) for k in range(SCRAMBLES)]

    def stderr(self, key: Any) -> float:
        """Return the standard error of an unknown or observable, from the scatter of the independent sets."""
        values = np.array([float(part[key]) for part in self.parts])
        return float(values.std(ddof=1) / np.sqrt(len(values)))
