"""Conditions on sums over all sites, one variable of theirs at a time.

With the multiplier of a bounded norm held at a number, the rest is a convex problem without the bound, which the
central path solves from afar.  The sum grows or falls steadily with the multiplier, so that a line search finds where
the bound holds.  The two solved together have no such path: an equality of squares bounds no convex set.
So it is with a threshold that all sites share and whose root stands in their laws: the rest is convex at each of its
values, and the derivative of the minimum grows with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from symcavity.errors import NotConverged
from symcavity.evaluate.bracket import root_between
from symcavity.finite.instance import Instance, State
from symcavity.finite.interior import follow_path
from symcavity.finite.newton import gaps, scale_of, solve_active, summed
from symcavity.finite.starts import finite_start

SMALLEST, LARGEST, FACTOR = 1e-6, 1e6, 8.0  # values that are looked at, and from one to the next until one is too large
NEAR = (0.3, 0.03, *(1e-3,) * 10, 1e-6, 1e-9)  # how closely logarithms of values are found, round by round


def open_conditions(instance: Instance) -> list[int]:
    """The conditions on all sites that make a pair with a variable, and do not idle, if some are not linear."""
    mine = [r for r, partner in enumerate(instance.system.partners) if partner >= 0 and not instance.idle[r]]
    return mine if any(r in instance.system.bent for r in mine) else []


def by_multipliers(instance: Instance, rows: Sequence[int], hopeful: float) -> Iterator[State]:
    """States that come closer and closer to the solution: the partners of some conditions are found one after another.

    It ends where they are not found, as where one is zero.

    Parameters
    ----------
    instance : Instance
        It is left as it was whenever a state is given.
    rows : sequence of int
        The conditions.
    hopeful : float
        Up to which relative violation a central path counts as one that has arrived.
    """
    held = dict.fromkeys(rows, 1.0)
    known: dict[tuple[float, ...], tuple[np.ndarray, State]] = {}
    for near in NEAR:
        for row in rows:
            before = instance.idle.copy()
            try:
                found = _met(instance, row, held, hopeful, near, known)
            finally:
                instance.idle[:], instance.held = before, {}
            if found is None:
                return
            held[row], state = found
        yield state.copy()


def _met(
    instance: Instance,
    row: int,
    held: dict[int, float],
    hopeful: float,
    near: float,
    known: dict[tuple[float, ...], tuple[np.ndarray, State]],
) -> tuple[float, State] | None:
    """The value of the partner of a condition at which it is met, all others held where they are, and the state."""
    def there(t: float) -> tuple[np.ndarray, State]:
        values = {**held, row: float(np.exp(t))}
        if (key := tuple(values.values())) not in known:
            instance.held = values
            instance.idle[list(values)] = True
            state, error = _solved(instance)
            if not error < hopeful:
                raise NotConverged("The instance was not solved with its multipliers held.")
            instance.idle[list(values)] = False
            known[key] = summed(gaps(instance, state, kind).body for kind in instance.system.laws), state
        return known[key]

    def excess(t: float) -> float:
        return float(there(t)[0][row])

    here = float(np.log(held[row]))
    try:
        way = -1 if excess(here) > 0 else 1
        other = here + way * np.log(FACTOR)
        while excess(other) * way < 0:
            here, other = other, other + way * np.log(FACTOR)
            if not np.log(SMALLEST) < other < np.log(LARGEST):
                return None
        root = root_between(excess, here, other, xtol=near)
        return float(np.exp(root)), there(root)[1]
    except (NotConverged, np.linalg.LinAlgError):
        return None


def _solved(instance: Instance) -> tuple[State, float]:
    """The state with some variables held, and by how much it violates an equation."""
    if instance.system.pairs:
        return follow_path(instance)
    start = finite_start(instance)
    start.active = {s: np.zeros((instance.size[s], 0), dtype=bool) for s in instance.system.laws}
    state, error, _ = solve_active(instance, start)
    return state, error / scale_of(state)
