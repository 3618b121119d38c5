"""Conditions on sums that local constraints meet just so: the minimum has a value, and multipliers go to infinity.

``<w> = 1`` with ``w <= 1`` leaves one choice, and no finite multiplier makes it: fields have tails, and at each finite
value some sites would be elsewhere.  They vanish as the tails do, so that a multiplier of a few times the deviation of
the fields is infinite to all digits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.exact_root import exact_root, inverse_without
from symcavity.evaluate.solving.limit_at_rest import Point, Rest
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.evaluate.watch import tick

SPARE = 20  # digits beyond the requested ones that tails leave
FARTHER = 200.0  # a second value, to see what still moves: by more than what observables show
WIDER, DOUBLED = 2.0, 6  # how much farther a multiplier is tried where fields have wider tails, and how often
SHORT = 1e-13  # the last of Newton's steps in double


@dataclass(frozen=True)
class Tight(Rest):
    """A limit in which multipliers go to infinity.

    Attributes
    ----------
    further : dict
        All unknowns at larger multipliers.
    """

    further: Point = field(default_factory=dict)

    def deeper(self, factor: float) -> Point:
        """A point further on the way."""
        return self.point if factor >= 1 else self.further

    def within(self, size: Any) -> Point:  # noqa: ARG002 - what vanishes does so more quickly than any power
        """A point so far on the way that all that vanishes is small."""
        return self.further


def tight_limit(task: Task, given: Given, point: Mapping[Symbol, float], ways: Mapping[Symbol, float]) -> Tight | None:
    """The limit in which multipliers go to infinity; None if the closed equations do not settle on the way.

    Parameters
    ----------
    task : Task
    given : Given
    point : dict
        All unknowns where the multipliers are large.
    ways : dict
        The multipliers, in units of their fields, and by how much steps still move them.
    """
    lead = max(ways, key=lambda s: abs(ways[s]))
    reach = float(np.sqrt(2 * np.log(10) * (given.dps + SPARE)))
    for k in range(DOUBLED):
        goal = abs(point[lead]) + reach * WIDER**k
        ends = [where_defined(_held, task, given, point, ways, lead, goal * by) for by in (1, FARTHER)]
        near, further = ends
        if near is None or further is None:
            continue
        with mp.workdps(given.dps + SPARE):
            gaps = [abs(further[s] - v) / (abs(v) + 1) for s, v in near.items() if s not in ways]
            gap = max(gaps, default=mp.zero)
            if gap < mp.mpf(10) ** -given.dps:
                # a root is known to more digits than requested, and below these it is zero
                least, left = mp.mpf(10) ** (-given.dps - SPARE // 4), tolerances().left
                small = {s: max(left * abs(v), least) for s, v in near.items()}
                gone = [s for s, v in near.items() if s not in ways and v and abs(further[s]) < small[s]]
                drift = {**dict.fromkeys(ways, mp.inf), **dict.fromkeys(gone, mp.ninf)}
                return Tight(near, drift, gap, further={**further, **dict.fromkeys(gone, mp.zero)})
    return None


def _held(
    task: Task, given: Given, point: Mapping[Symbol, float], ways: Mapping[Symbol, float], lead: Symbol, goal: float
) -> Point:
    """All unknowns where one multiplier has a value: one equation is then met by all others.

    Raises
    ------
    NotConverged
        If they are not found.
    """
    tick(f"a multiplier that goes to infinity, at {goal:.3g}")
    closed, exact = task.closed_map(given)
    env, grids = given.environment("numpy"), closed.slopes.grids()
    more = (goal - abs(point[lead])) / abs(ways[lead])
    x = np.array([float(point[s]) + more * ways.get(s, 0.0) for s in closed.unknowns])
    held = closed.unknowns.index(lead)
    for _ in range(NEWTON):
        with np.errstate(all="ignore"):
            closed.refined(x, env, grids)
            found = closed.gap(x, env, grids)
        if found is None:
            break
        step = inverse_without(found[1], held) @ found[0]
        x -= step
        if np.max(np.abs(step) / (np.abs(x) + 1)) < SHORT:
            root = Root(dict(zip(closed.unknowns, x.tolist(), strict=True)), found[1], closed.slopes, grids)
            with mp.workdps(given.dps + SPARE):
                return exact_root(closed, exact, given.environment("mpmath"), root, given.dps + SPARE // 2, held)
    raise NotConverged("The closed equations do not settle where a multiplier is large.")
