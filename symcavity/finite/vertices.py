"""Auxiliary variables that the branches of their site leave free: another complementary pair fixes them.

A kink whose factor is zero at a site, as that of the case of another label, has a bound that nothing holds: both of its
multipliers are zero, and any bound above the kink will do. It is put on the kink, where the branches have one solution.
"""

from __future__ import annotations

import numpy as np

from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import active_weights, gaps, slopes

_SINGULAR = 1e-12  # of the largest singular value: what is less is rounding


def decided(instance: Instance, state: State) -> State | None:
    """Return a state in which such variables are zero members of pairs; None where no site has one.

    Declared states that are free are another matter: there the minimum is flat.

    Parameters
    ----------
    instance, state : Instance, State
        The state has its likely branches.
    """
    active, changed = dict(state.active), False
    for kind, law in instance.system.laws.items():
        if not law.kp:
            continue
        at, values = slopes(instance, state, kind), gaps(instance, state, kind).q
        on = active[kind].copy()
        mine = np.eye(law.k)[instance.system.own[0][kind]]
        states = np.broadcast_to(mine, (len(on), *mine.shape))
        for _ in range(law.kp):
            wp, wq = active_weights(on)
            rows = wp[:, :, None] * at.p_slopes + wq[:, :, None] * at.q_slopes
            # what leaves the equations of a site and its declared states as they are, and is heard by no other site
            _, sizes, ways = np.linalg.svd(np.concatenate([at.slopes, rows, at.emits, at.condition, states], axis=1))
            free, way = sizes[:, -1] <= _SINGULAR * sizes[:, 0], ways[:, -1]
            pairs = _first_met(values[free], np.einsum("npk,nk->np", at.q_slopes[free], way[free]), on[free])
            met = pairs >= 0
            if not met.any():
                break
            on[np.flatnonzero(free)[met], pairs[met]] = False
            changed = True
        active[kind] = on
    return State(state.site, state.shared, active) if changed else None


def _first_met(values: np.ndarray, moves: np.ndarray, on: np.ndarray) -> np.ndarray:
    """Of each site, the pair whose other member becomes zero first along a direction, or against it; -1 for none."""
    found = np.full(len(values), -1)
    nearest = np.full(len(values), np.inf)
    for moved in (moves, -moves):
        falling = on & (moved < -_SINGULAR)
        ways = np.where(falling, np.maximum(values, 0.0) / np.where(falling, -moved, 1.0), np.inf)
        if ways.shape[1]:
            best = ways.argmin(axis=1)
            reach = ways[np.arange(len(ways)), best]
            closer = reach < nearest
            found, nearest = np.where(closer, best, found), np.where(closer, reach, nearest)
    return found
