"""Equations in complex numbers, one of whose roots counts: the one at which small changes of the fields die out.

The mean of a point and of what the equations make of it contracts, in the hyperbolic metric of half planes, to this
root: Helton, Rashidi Far, Speicher, Int. Math. Res. Not. 2007, rnm086.  Close to the eigenvalues it does so slowly, and
Newton's method is tried after 1, 2, 4, ... steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import numpy as np

from symcavity.errors import NotConverged
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.evaluate.watch import tick

ROUNDS = 14  # of means, each of twice as many
STEPS = 20


class Contraction(Protocol):
    """Equations ``x = image(x)`` for complex numbers."""

    def image(self, x: np.ndarray) -> np.ndarray:
        """What the equations make of a point."""

    def gap(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far a point is from solving the equations, and the derivatives of that."""

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """What a change of each number is compared with."""

    def counts(self, x: np.ndarray) -> bool:
        """Whether a root is the one that counts."""


def root_of(
    equations: Contraction,
    starts: Iterable[np.ndarray],
    level: Callable[[int], Contraction],
) -> tuple[np.ndarray | None, float]:
    """The root that counts, and the last step to it, relative; None where it was not found.

    Parameters
    ----------
    equations : Contraction
    starts : iterable of array
        Points to begin at; from the last one the means go on.
    level : callable
        The equations of the means of each round: these, or others whose root is close and more easily found.
    """
    x = np.zeros(0)
    for x in starts:
        found, step = newton(equations, x)
        if found is not None and equations.counts(found):
            return found, step
    for k in range(ROUNDS):
        easier = level(k)
        found, _ = newton(easier, x)
        x = found if found is not None and easier.counts(found) else _nearer(easier, x, 2**k)
        if not np.all(np.isfinite(x)):
            break
        found, step = newton(equations, x)
        if found is not None and equations.counts(found):
            return found, step
    return None, np.inf


def _nearer(equations: Contraction, x: np.ndarray, steps: int) -> np.ndarray:
    """The point to which the means of points and images lead."""
    for _ in range(steps):
        tick("a resolvent off the real line")
        with suppress(NotConverged, np.linalg.LinAlgError), np.errstate(all="ignore"):
            x = (x + equations.image(x)) / 2
    return x


def _move(equations: Contraction, x: np.ndarray) -> np.ndarray:
    value, slope = equations.gap(x)
    return np.linalg.solve(slope, value)


def newton(equations: Contraction, start: np.ndarray) -> tuple[np.ndarray | None, float]:
    """The root close to a point, and the last step, relative; None if there is none."""
    x, last = start, np.inf
    for _ in range(STEPS):
        if (move := where_defined(_move, equations, x, also=(np.linalg.LinAlgError,))) is None:
            break
        x = x - move
        if not np.all(np.isfinite(x)):
            break
        step = float(np.max(np.abs(move) / equations.sizes(x)))
        if step < tolerances().rough and step >= last / 2:  # it shrinks no further
            return x, step
        last = step
    return None, np.inf
