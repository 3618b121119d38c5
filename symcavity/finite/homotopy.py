"""A homotopy for smooth convex instances: the violation at the start is taken back bit by bit.

Newton's method with a line search stalls where the law bends at many sites, as Huber's loss does.  The optimality
conditions of a convex problem are a monotone map, so that what solves them up to a share of a given violation moves on
one path, which the steps follow from one bend to the next.
"""

from __future__ import annotations

import numpy as np

from symcavity.finite.instance import Instance, State, largest
from symcavity.finite.newton import newton, scale_of, violation

_LAST = 1e-10  # how well its end is known, before it is solved to rounding
_SHORTEST, _MOST = 1e-5, 4000
_CLOSE = 1e-9  # how well a point of the path is known, as a share of the violation at the start


def follow(instance: Instance, start: State) -> State | None:
    """Return the state at the end of the path from a state; None where the steps become too short."""
    _, value, total = violation(instance, start)
    state, left, step = start, 1.0, 0.5
    first = largest(*value.values(), total)
    for _ in range(_MOST):
        aim = max(left - step, 0.0)
        rest = {kind: aim * v for kind, v in value.items()}, aim * total
        try:
            found, error, _ = newton(instance, state.copy(), rest, enough=_CLOSE * first if aim else 0.0)
        except np.linalg.LinAlgError:
            error = np.inf
        if error <= max(_CLOSE * first, _LAST * scale_of(state)):
            state, left, step = found, aim, 2 * step
            if not left:
                return state
        else:
            step /= 4
        if step < _SHORTEST:
            return None
    return None
