"""Where solvers begin: the state zero, or one near it at which the law has numbers and pairs have room."""

from __future__ import annotations

import numpy as np

from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import gaps, slopes

_START = 9
_ROOMS, _SWEEPS = 0.5 ** np.arange(0, 24, 2), 20  # how far inside of its bounds a site is put, and in how many steps
_DRAWS = 60  # of global variables, where the law has no values at zero


def finite_start(instance: Instance) -> State:
    """Return the state zero, or one near it where the law is singular there: a norm, a quotient, a logarithm."""
    state = instance.start()
    begin, free = state.shared.copy(), np.array([not g.is_nonnegative for g in instance.system.globals], dtype=bool)
    rng, finite = stream(instance.seed, _START), None
    tries = [(0.0, False), (1e-2, False), (1.0, False), (1.0, True), (1.0, False)]
    for n, (size, above) in enumerate([*tries, *[(0.0, False)] * (_DRAWS if free.any() else 0)]):
        if n >= len(tries):  # globals in another order, such as thresholds between classes
            state = instance.start()
            state.shared = np.where(free, rng.standard_normal(len(free)), begin)
        elif size:
            rng = stream(instance.seed, _START)
            drawn = {s: size * rng.standard_normal(z.shape) for s, z in state.site.items()}
            state.site = {s: 1 + np.abs(z) for s, z in drawn.items()} if above else drawn
            if n == len(tries) - 1:
                _move_inside(instance, state)
        kinds = instance.system.laws
        at = [gaps(instance, state, s) for s in kinds]
        steep = [slopes(instance, state, s) for s in kinds]
        instance.memory.clear()
        if not all(np.all(np.isfinite(v)) for part in (*at, *steep) for v in vars(part).values()):
            continue
        if not size or all(np.all(v >= 0) for part in at for v in (part.p, part.q)):
            return state
        finite = state.copy()
    return finite or state


def _move_inside(instance: Instance, state: State) -> None:
    """Move each site to where its own pairs are positive, in place: projected on one after another, with less room."""
    for kind, z in state.site.items():
        for room in _ROOMS:
            for _ in range(_SWEEPS):
                at, along = gaps(instance, state, kind), slopes(instance, state, kind)
                instance.memory.clear()
                pairs = np.concatenate([at.p, at.q], axis=1)
                ways = np.concatenate([along.p_slopes, along.q_slopes], axis=1)
                if np.all(pairs > 0):
                    break
                lacking = np.argmin(pairs, axis=1)
                each = np.arange(len(z))
                short, way = room - pairs[each, lacking], ways[each, lacking]
                outside = pairs[each, lacking] <= 0
                size = np.maximum(np.sum(way**2, axis=1), np.finfo(float).tiny)
                z += np.where(outside, short / size, 0.0)[:, None] * way
            else:
                continue
            break
