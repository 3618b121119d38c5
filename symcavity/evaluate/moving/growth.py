"""The largest Lyapunov exponent of what is sampled: how a small change of all states grows, in a theory of its own.

A small change is a second state of each site, heard through the same couplings; the cavity theory of both together is
derived as any other, and filled forward over paths. In the limit of many sites the mean square of the change grows as
``exp(2 l t)`` (Sompolinsky, Crisanti and Sommers, Phys. Rev. Lett. 61, 259, 1988, in closed form where states are
Gaussian). A mean response tells nothing of it: it averages over changes of either sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Rational

from symcavity.errors import NotConverged
from symcavity.evaluate.moving.paths import PathRun
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.values import read_run_values
from symcavity.method.theory import Theory
from symcavity.model.nearby import nearby

MORE = 10  # times as many paths where nothing comes back: the mean square of what grows has long tails
BEGIN = {0: Rational(1, 2), 2: Rational(1, 2)}  # changes of all sites alike, and of each by itself


class _Silent(PathRun):
    """A run without responses."""

    follows = False


def growth(theory: Any, values: Mapping[Any, Any], steps: int, paths: int, seed: int) -> tuple[float, float]:
    """The rate per step at which a small change grows, and its error.

    Parameters
    ----------
    theory : Theory
        In steps.
    values : mapping
    steps : int
        So many pass before the rate is taken, and twice as many while it is.
    paths, seed : int

    Raises
    ------
    NotConverged
        If nothing is left of the change, or it is no finite number.
    UnsupportedLaw
        If a law jumps.
    """
    both = nearby(theory.system)
    inner = Theory(both.system)
    plan = MovingPlan(inner, read_run_values(inner.system, {**values, **dict.fromkeys(both.beginnings, BEGIN)}, 15))
    many = paths if any(plan.echoes.values()) else MORE * paths
    run = _Silent(plan, 3 * steps, many, seed)

    def size(step: int) -> np.ndarray:
        return np.sum([(run.states[q][step] ** 2).mean(axis=1) for q in both.changes], axis=0)

    sizes = np.array([size(step) for step in (steps, 2 * steps, 3 * steps)])
    if not np.all(np.isfinite(sizes)) or not np.all(sizes > 0):
        raise NotConverged(
            f"A small change has no measurable size after {3 * steps} steps, so that its rate is unknown.",
            hint="a shorter until=",
        )
    rate, error = _over_batches(sizes[0], sizes[2])
    early, late = (_over_batches(*pair)[0] for pair in (sizes[:2], sizes[1:]))
    return rate / (4 * steps), float(np.hypot(error / (4 * steps), (late - early) / (4 * steps)))


def _over_batches(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """The logarithm of a ratio of means over batches, without its bias of first order, and its error: a jackknife."""
    count = len(before)
    others = np.log((after.sum() - after) / (before.sum() - before))
    value = count * np.log(after.sum() / before.sum()) - (count - 1) * others.mean()
    return float(value), float(np.sqrt((count - 1) * others.var()))
