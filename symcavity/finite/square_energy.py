"""The energy of an instance whose losses and pairs are squares in the one state of its sites, but for their own.

It is ``slope*x + x*matrix*x/2`` and, of each site, what is no square of its state.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symcavity.finite.warm import WarmInstance, discrete
from symcavity.sites.lowest.smooth import BENT, is_square
from symcavity.sites.thermal.parts import split


def is_square_but_for_sites(w: WarmInstance) -> bool:
    """Whether one continuous state a site meets others by squares alone, and no sum over all sites tells its energy."""
    if len(w.states) != 1 or discrete(w.states) or w.sums.tied:
        return False
    if any(weight.bounds for weight in w.heard.values()) or any(len(w.weighed(k)) > 1 for k in w.heard):
        return False
    ((_, own),) = w.sent.items()
    (q,) = w.states
    if not own.energy.has(*BENT) and not is_square(own.energy, q):
        return False
    parts = [*split(own.state, q)[2:]]
    for hearer, weight in w.heard.items():
        parts += [*split(weight.energy, weight.state)[3:], *split(w.emission(w.field(hearer)).expand(), q)[2:]]
    return all(p == 0 for p in parts)


def square_of(w: WarmInstance) -> tuple[np.ndarray, np.ndarray]:
    """The slope and the matrix of the energy, the squares in the sites' own energies among them."""
    ((kind, own),) = w.sent.items()
    (q,), size = w.states, w.size(kind)

    def at(expr: Any, count: int = size) -> np.ndarray:
        return np.broadcast_to(w.call(expr, [])(), (count,))

    _, first, second, _ = split(own.energy, q)
    slope, matrix = at(first).copy(), np.diag(at(second))
    for f, factor in w.pairs.items():
        still, moving, *_ = split(own.state, q)
        couplings = w.instance.matrix(f)
        couplings = factor * (couplings + couplings.T) / 2
        slope -= at(moving) * (couplings @ at(still))
        matrix = matrix - at(moving)[:, None] * couplings * at(moving)
    for hearer, weight in w.heard.items():
        f = w.field(hearer)
        still, moving, *_ = split(w.emission(f).expand(), q)
        couplings = w.instance.matrix(f)
        h, share = couplings @ at(still), couplings * at(moving)
        _, l1, l2, _ = (at(e, w.size(hearer)) for e in split(weight.energy, weight.state))
        slope += share.T @ (l1 + l2 * h)
        matrix = matrix + share.T @ (l2[:, None] * share)
    return slope, matrix
