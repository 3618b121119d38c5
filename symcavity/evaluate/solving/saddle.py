"""Roots of monotone maps by proximal point steps, each by a damped Newton; every ending is a theorem.

A step goes from z' to the one z with ``F(z) + (z - z')/c = 0``, which exists for every monotone F, whatever c.  If F
has a root the steps lead to one, from anywhere.  If it has none they go on for ever, and ``(z' - z)/c`` tends to the
element v of least norm in the closure of the range of F: where v is not zero it separates the range from zero, which
proves that there is no root, and the steps move along -v (R. T. Rockafellar, SIAM J. Control Optim. 14, 877, 1976;
A. Pazy, Israel J. Math. 9, 235, 1971).  Coordinates that range from zero on are kept positive by a barrier, which goes
to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick

WIDEST = 1e12  # the longest step
SMALL = 1e-7  # the barrier at which the steps end, where what is zero and what is not are apart by then
SMALLEST = 1e-12  # and where they are not
OUTER, INNER, HALVED = 40, 80, 40  # proximal steps, Newton steps of each, halvings of these
NEAR, TIGHT = 0.05, 1e-9  # how far a step is carried out, as a share of the barrier, and at the least
ROUNDED, CAUGHT = 1e-6, 0.1  # a step that may be rounding, where only so small a share of it leads on
STAY = 0.95  # the share of the way to zero that a Newton step may take a bounded coordinate

Value = tuple[np.ndarray, np.ndarray] | None


@dataclass(frozen=True)
class Ending:
    """Where the steps have led.

    Attributes
    ----------
    kind : str
        ``'settled'``: they have become short.  ``'gone'``: beyond any bound, along ``-displacement``.  ``'lost'``: some
        step could not be carried out.
    point : array
    value : array
        The map there.
    displacement, before : array
        By how much the last step moved each coordinate, over its length c, backwards; and the step before that.
    last_step : array
        By how much the last step moved each coordinate.
    steps : int
    """

    kind: str
    point: np.ndarray
    value: np.ndarray
    displacement: np.ndarray
    before: np.ndarray
    last_step: np.ndarray
    steps: int

    def is_steady(self, share: float) -> bool:
        """Whether the last two steps agree in their displacement, up to a share of it."""
        gap = np.linalg.norm(self.displacement - self.before)
        return bool(gap <= share * np.linalg.norm(self.displacement))


def root(
    call: Callable[[np.ndarray], Value],
    start: np.ndarray,
    low: np.ndarray,
    refine: Callable[[np.ndarray], object] | None = None,
) -> Ending:
    """Follow proximal point steps of a monotone map.

    Parameters
    ----------
    call : callable
        The map at a point, and its slopes; None where it has no value.
    start : array
    low : array of bool
        The coordinates that range from zero on.
    refine : callable, optional
        Called with the point before each step.
    """
    z, c, barrier, limits = start.astype(float), 1.0, 1.0, tolerances()
    moved = last = value = np.zeros(len(z))
    for n in range(OUTER):
        tick(f"proximal step {n}")
        if refine is not None:
            refine(z)
        before = z

        def step(y: np.ndarray, before: np.ndarray = before, c: float = c, barrier: float = barrier) -> Value:
            at = call(y)
            if at is None:
                return None
            pull = np.where(low, barrier / np.where(low, y, 1.0), 0.0)
            curve = np.where(low, pull / np.where(low, y, 1.0), 0.0)
            return at[0] + (y - before) / c - pull, at[1] + np.diag(1 / c + curve)

        z, done = _newton(step, z, low, max(NEAR * barrier, 1e-15), c)
        found = call(z)
        if found is None or not done:
            return Ending("lost", z, value, moved, last, c * moved, n + 1)
        value = found[0]
        moved, last = (before - z) / c, moved
        far, apart = float(np.linalg.norm(z)), float(np.linalg.norm(moved - last))
        if far > limits.lost_sight or (far > limits.gone and apart < limits.agree * np.linalg.norm(moved)):
            return Ending("gone", z, value, moved, last, c * moved, n + 1)
        left = np.where(low, np.minimum(z, value), value)
        if (barrier <= SMALL and np.max(np.abs(left)) < limits.clear) or (barrier <= SMALLEST and c >= WIDEST):
            return Ending("settled", z, value, moved, last, c * moved, n + 1)
        barrier, c = max(barrier / 10, SMALLEST), min(c * 10, WIDEST)
    return Ending("lost", z, value, moved, last, c * moved, OUTER)


def _newton(
    step: Callable[[np.ndarray], Value], z: np.ndarray, low: np.ndarray, goal: float, c: float
) -> tuple[np.ndarray, bool]:
    """A damped Newton: a step is taken where the map becomes smaller, or the next step at the same slopes does.

    The first holds for short steps of every monotone map; the second depends on no units, and follows curved valleys
    (P. Deuflhard, Newton Methods for Nonlinear Problems, 2004, section 3.3).
    """
    here = step(z)
    if here is None:
        return z, False
    for _ in range(INNER):
        value, slope = here
        size = float(np.linalg.norm(value))
        if size < max(goal, TIGHT * float(np.linalg.norm(z)) / c):
            return z, True
        try:
            d = -np.linalg.solve(slope, value)
        except np.linalg.LinAlgError:
            return z, False
        unit = np.where(low, z, 1.0)
        t = min(1.0, STAY / max(TINIEST, float(np.max(-d[low] / z[low], initial=0.0))))
        for _ in range(HALVED):
            there = step(z + t * d)
            if there is not None and (
                np.linalg.norm(there[0]) <= (1 - 1e-4 * t) * size
                or np.linalg.norm(np.linalg.solve(slope, there[0]) / unit) <= (1 - t / 2) * np.linalg.norm(d / unit)
            ):
                break
            t /= 2
        else:
            return z, size < ROUNDED
        z, here = z + t * d, there
        if t < CAUGHT and size < ROUNDED:  # what is left is rounding, and steps at it lead nowhere
            return z, True
    return z, size < ROUNDED
