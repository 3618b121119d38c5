"""Conditions on sums that can be met just so: the minimum has a value, and multipliers go to infinity.

``<w> = 1`` with ``w <= 1`` leaves one choice, and no finite multiplier makes it: fields have tails, and at each finite
value some sites would be elsewhere.  They vanish as the tails do, so that a multiplier of a few times the deviation of
the fields is infinite to all digits.

``<(h - y)^2> <= d`` with the least d that there is leaves one choice, too: the fit by least squares, whatever else is
minimized.  Its multiplier goes to infinity as the inverse root of what is left of d, and messages and responses go
along as powers of it.  Where a share ``e^2`` of d is left, the minimum is away by e.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.digits import panel_ends
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.exact_root import exact_root, gaps
from symcavity.evaluate.solving.limit_at_rest import Point, Rest
from symcavity.evaluate.solving.outcomes import Tightening
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.evaluate.watch import tick

SPARE = 20  # digits beyond the requested ones that tails leave
FARTHER = 200.0  # a second value, to see what still moves: by more than what observables show
WIDER, DOUBLED = 2.0, 6  # how much farther a multiplier is tried where fields have wider tails, and how often
DIGITS, LARGEST = 4, 250  # of the fastest unknown, for each of the digits that are asked for; of numbers in double
SHORT, MET = 1e-13, 1e-12  # the last of Newton's steps in double; what rounding leaves of an equation, as a share


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


def tight_limit(task: Task, given: Given, tightening: Tightening) -> Tight | None:
    """The limit in which multipliers go to infinity; None if the closed equations do not settle on the way."""
    point, ways, powers = tightening.point, tightening.ways, tightening.powers
    going = powers or dict.fromkeys(ways, 1)
    lead = max(going, key=lambda s: abs(powers.get(s, ways.get(s, 0.0))))
    held = _Held(task, given, lead, bool(powers))
    for ends in _along_powers(point, powers, given.dps) if powers else _along_ways(point, ways, lead, given.dps):
        near, further = (where_defined(held.at, start) for start in ends)
        if near is None or further is None:
            continue
        with mp.workdps(given.dps + SPARE):
            gaps = [abs(further[s] - v) / (abs(v) + 1) for s, v in near.items() if s not in going]
            gap = max(gaps, default=mp.zero)
            if gap < mp.mpf(10) ** -given.dps:
                # a root is known to more digits than requested, and below these it is zero
                least, left = mp.mpf(10) ** (-given.dps - SPARE // 4), tolerances().left
                small = {s: max(left * abs(v), least) for s, v in near.items()}
                gone = [s for s, v in near.items() if s not in going and v and abs(further[s]) < small[s]]
                drift = {**{s: mp.inf * p for s, p in going.items()}, **dict.fromkeys(gone, mp.ninf)}
                return Tight(near, drift, gap, further={**further, **dict.fromkeys(gone, mp.zero)})
    return None


def _along_ways(
    point: Mapping[Symbol, float], ways: Mapping[Symbol, float], lead: Symbol, dps: int
) -> Iterator[list[dict[Symbol, float]]]:
    """Pairs of points at which multipliers are larger than the tails of their fields reach."""
    reach = float(np.sqrt(2 * np.log(10) * (dps + SPARE)))
    for k in range(DOUBLED):
        goal = abs(point[lead]) + reach * WIDER**k
        more = [(goal * by - abs(point[lead])) / abs(ways[lead]) for by in (1, FARTHER)]
        yield [{s: v + far * ways.get(s, 0.0) for s, v in point.items()} for far in more]


def _along_powers(
    point: Mapping[Symbol, float], powers: Mapping[Symbol, float], dps: int
) -> Iterator[list[dict[Symbol, float]]]:
    """A pair of points at which multipliers are so large that their inverse is zero to all digits."""
    ends = 10.0 ** min(DIGITS * dps, LARGEST) * np.array([1.0, FARTHER**4])
    yield [{s: v * float(far) ** powers.get(s, 0.0) for s, v in point.items()} for far in ends]


class _Held:
    """The closed equations with the value of one multiplier given: one equation is then met by all other unknowns.

    Where unknowns go as powers of it, they do so in units of their own, and whether that equation is met is looked at.
    """

    def __init__(self, task: Task, given: Given, lead: Symbol, scaled: bool) -> None:
        self.given, self.lead, self.scaled = given, lead, scaled
        self.closed, self.exact = task.closed_map(given)
        self.open = np.array([s != lead for s in self.closed.unknowns])

    def at(self, start: Mapping[Symbol, float]) -> Point:
        """All unknowns, from where they are about.

        Raises
        ------
        NotConverged
            If they are not found.
        """
        tick(f"a multiplier that goes to infinity, at {start[self.lead]:.3g}")
        closed = self.closed
        env, grids = self.given.environment("numpy"), closed.slopes.grids()
        x = np.array([float(start[s]) for s in closed.unknowns])
        for _ in range(NEWTON):
            with np.errstate(all="ignore"):
                closed.refined(x, env, grids)
                found = closed.gap(x, env, grids)
            if found is None:
                break
            sizes = np.abs(closed.scale(x)) if self.scaled else np.ones(len(x))
            inverse, rows = self._inverse(found[1], sizes)
            step = inverse @ found[0]
            x -= step
            if np.max(np.abs(step) / (sizes if self.scaled else np.abs(x) + 1)) < SHORT:
                if self.scaled and np.max(np.abs(found[0] / rows)) > MET:
                    break  # and more digits would not meet it
                point = dict(zip(closed.unknowns, x.tolist(), strict=True))
                root = Root(point, found[1], closed.slopes, grids)
                digits = self.given.dps * (2 if self.scaled else 1) + SPARE
                with mp.workdps(digits):
                    known = self.given.environment("mpmath")
                    out = exact_root(closed, self.exact, known, root, digits - SPARE // 2, inverse)
                    if self.scaled and not self._is_met(out, known, root, rows, digits):
                        break
                    return out
        raise NotConverged("The closed equations do not settle where a multiplier is large.")

    def _is_met(self, point: Point, env: Mapping[Any, Any], root: Root, rows: np.ndarray, digits: int) -> bool:
        """Whether all equations are met up to what the inverse square of the multiplier leaves of them.

        A condition that is missed by a share e has a multiplier as large as the root of 1/e.
        """
        x, guide = [mp.convert(point[s]) for s in self.closed.unknowns], panel_ends(root.averages, root.grids)
        missed = gaps(self.closed, self.exact, env, x, guide, digits, 0, mp)
        return bool(max(abs(g) / r for g, r in zip(missed, rows, strict=True)) < mp.mpf(10) ** (-2 * self.given.dps))

    def _inverse(self, slope: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What takes gaps to steps that leave one unknown where it is; and the largest terms of each gap."""
        scaled = slope * sizes
        rows = np.max(np.abs(scaled), axis=1)
        rows = rows if self.scaled else np.maximum(1.0, rows)  # what has faded has slopes beyond all others
        out = np.zeros(slope.T.shape)
        out[self.open] = np.linalg.pinv(scaled[:, self.open] / rows[:, None]) / rows
        return sizes[:, None] * out, rows
