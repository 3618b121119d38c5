"""Anderson's acceleration of an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

LONGEST = 2.0  # the longest step, in units of its scale


def accelerated(trail: Sequence[tuple[np.ndarray, np.ndarray]], scale: np.ndarray) -> np.ndarray:
    """Return where to go: the combination of the last iterates, with their steps, whose step would be shortest."""
    t, step = trail[-1]
    if len(trail) > 2:
        places = np.array([b[0] - a[0] for a, b in pairwise(trail)]).T
        steps = np.array([b[1] - a[1] for a, b in pairwise(trail)]).T
        weights = np.linalg.lstsq(steps / scale[:, None], step / scale, rcond=1e-8)[0]
        moved = step - (places + steps) @ weights
        if moved @ step > 0:  # away from where the map leads there is no solution of a convex problem
            step = moved
    longest = float(np.max(np.abs(step) / scale, initial=0.0))
    return t + step * min(1.0, LONGEST / longest) if longest else t
