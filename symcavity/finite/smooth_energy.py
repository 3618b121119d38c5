"""A low configuration of an instance whose energies are smooth: downhill from many starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Expr, S

from symcavity.finite.chains import CHAINS
from symcavity.finite.configurations import Configurations, one_configuration
from symcavity.finite.draw import stream
from symcavity.finite.warm import WarmInstance, discrete
from symcavity.sites.lowest.smooth import BENT

_STARTS = 15  # beside the numbers of the other draws of an instance
SOON, MOVED = 10, 3  # sweeps for each place from which it goes downhill again; sites that are put elsewhere there
STEPS, STILL = 5000, 1e-9


def is_smooth(w: WarmInstance) -> bool:
    """Whether all states are continuous and free, and energies have no kinks and are told site by site."""
    weights = [*w.sent.values(), *w.heard.values()]
    if discrete(w.states) or w.sums.held or any(weight.bounds or weight.beside for weight in weights):
        return False
    emitted = [w.emission(f) for kind in w.heard for f in w.weighed(kind).values()]
    told = [body for c in w.sums.tied.values() for body in c.parts.values()]
    return not any(e.has(*BENT) for e in (*(weight.energy for weight in weights), *emitted, *told, *w.cores.values()))


def slid(w: WarmInstance, sweeps: int) -> Configurations:
    """The lowest of the minima that are reached downhill, from random starts and from places near the best."""
    slopes, rng = _EnergySlopes(w), stream(w.instance.seed, _STARTS)
    rows = [slopes.minimum(start) for start in (np.zeros(slopes.size), *rng.normal(size=(CHAINS - 1, slopes.size)))]
    best = min(rows, key=slopes.energy)
    for _ in range(sweeps // SOON):
        other = best.copy()
        at = rng.choice(slopes.size, size=min(MOVED, slopes.size), replace=False)
        other[at] = rng.choice(np.concatenate([best, -best]), size=len(at))
        best = min((best, slopes.minimum(other)), key=slopes.energy)
    return one_configuration("descent", slopes.parted(best[None]), np.array([slopes.energy(best)]))


class _EnergySlopes:
    """The energy of an instance along all of its states, and its slopes."""

    def __init__(self, w: WarmInstance) -> None:
        self.w, self.sizes = w, [w.size(next(iter(q.site))) for q in w.states]
        self.size = sum(self.sizes)
        heard = {k: (weight, [*w.weighed(k)]) for k, weight in w.heard.items()}
        self.tied = _Sums(w)
        self.met = [*w.pairs, *(f for k in heard for f in w.weighed(k).values())]
        own = {k: w.own(weight) for k, weight in w.sent.items()}
        every = {k: [*own[k], *w.sums.tied] for k in own}
        self.costs = {k: w.calls(with_slopes(w.sent[k].energy, every[k]), every[k]) for k in own}
        self.cores = {k: w.calls(with_slopes(w.sent[k].state, own[k]), own[k]) for k in own}
        self.sent = {f: w.calls(with_slopes(w.emission(f), own[f.sender]), own[f.sender]) for f in self.met}
        weighed = {k: (weight.energy, [*names, *w.sums.tied]) for k, (weight, names) in heard.items()}
        self.losses = {k: w.calls(with_slopes(*pair), pair[1]) for k, pair in weighed.items()}
        self.matrices = {f: w.instance.matrix(f) for f in self.met}

    def parted(self, rows: np.ndarray) -> dict[Any, np.ndarray]:
        """Configurations by state."""
        return dict(zip(self.w.states, np.split(rows, np.cumsum(self.sizes)[:-1], axis=1), strict=True))

    def energy(self, row: np.ndarray) -> float:
        """The energy of one configuration."""
        return self.both(row)[0]

    def both(self, row: np.ndarray) -> tuple[float, np.ndarray]:
        """The energy of one configuration, and its slope along each state."""
        w, x = self.w, dict(zip(self.w.states, np.split(row, np.cumsum(self.sizes)[:-1]), strict=True))
        out = {q: np.zeros(len(v)) for q, v in x.items()}
        tied = self.tied.values(x)
        sums = [float(v[0, 0]) for v in tied.values()]
        total, *turned = self.tied.energy(tied)

        def told(calls: Any, kind: Any, more: Sequence[float] = ()) -> list[np.ndarray]:
            own = w.own(w.sent[kind])
            return [np.broadcast_to(v, x[own[0]].shape) for v in calls(*(x[q] for q in own), *more)]

        def push(kind: Any, forces: Any, slopes: list[np.ndarray]) -> None:
            for q, slope in zip(w.own(w.sent[kind]), slopes, strict=True):
                out[q] += forces * slope

        for k in w.sent:
            cost, *slopes = told(self.costs[k], k, sums)
            total += float(cost.sum())
            push(k, 1.0, slopes[: len(w.own(w.sent[k]))])
            turned = [a + v.sum() for a, v in zip(turned, slopes[len(w.own(w.sent[k])) :], strict=True)]
        emitted = {f: told(self.sent[f], f.sender) for f in self.met}
        fields = {f: self.matrices[f] @ value for f, (value, *_) in emitted.items()}
        back = dict.fromkeys(self.met, np.zeros(0))
        for k in w.heard:
            names = [*w.weighed(k).values()]
            found = self.losses[k](*(fields[f] for f in names), *sums)
            cost, *forces = (np.broadcast_to(v, fields[names[0]].shape) for v in found)
            total += float(cost.sum())
            back |= dict(zip(names, forces, strict=False))
            turned = [a + v.sum() for a, v in zip(turned, forces[len(names) :], strict=True)]
        for f, factor in w.pairs.items():
            core, *slopes = told(self.cores[f.hearer], f.hearer)
            total -= factor * float(core @ fields[f]) / 2
            push(f.hearer, -factor * fields[f] / 2, slopes)
            back[f] = -factor * core / 2
        for f, (_, *slopes) in emitted.items():
            push(f.sender, back[f] @ self.matrices[f], slopes)
        for k in w.sent:
            for slope, moved in zip(turned, self.tied.slopes(k, x), strict=True):
                push(k, slope, moved)
        return total, np.concatenate([out[q] for q in w.states])

    def minimum(self, start: np.ndarray) -> np.ndarray:
        """The minimum that is reached downhill from a configuration, by quasi-Newton steps.

        They end where slopes are small beside those at the start, or rounding: in whatever units states and energies
        are given.
        """
        from scipy.optimize import minimize

        still = STILL * float(np.max(np.abs(self.both(start)[1]), initial=0.0))
        options = {"maxiter": STEPS, "maxfun": STEPS, "gtol": still, "ftol": 0.0}
        return np.asarray(minimize(self.both, start, jac=True, method="L-BFGS-B", options=options).x)


class _Sums:
    """The global variables that sums over all sites tell, and how they move with the states of these."""

    def __init__(self, w: WarmInstance) -> None:
        self.w, energy = w, w.system.collective.energy
        self.costs = with_slopes(energy, [*w.sums.tied])
        own = {k: w.own(weight) for k, weight in w.sent.items()}
        bodies = {k: [w.system.own(c.parts.get(k, S.Zero)) for c in w.sums.tied.values()] for k in own}
        self.moved = {k: [w.calls(with_slopes(body, own[k])[1:], own[k]) for body in bodies[k]] for k in own}
        self.scales = [w.sums.scale(g) for g in w.sums.tied]

    def values(self, x: Mapping[Any, np.ndarray]) -> dict[Any, np.ndarray]:
        """Those of one configuration."""
        return self.w.sums.values({q: v[None] for q, v in x.items()})

    def energy(self, tied: Mapping[Any, np.ndarray]) -> list[float]:
        """The energy that belongs to no site, and its slope along each of them."""
        return [float(np.sum(self.w.sums.shared(e, tied))) for e in self.costs]

    def slopes(self, kind: Any, x: Mapping[Any, np.ndarray]) -> list[list[np.ndarray]]:
        """How each of them moves with the states of the sites of a kind."""
        own = [x[q] for q in self.w.own(self.w.sent[kind])]
        pairs = zip(self.moved[kind], self.scales, strict=True)
        return [[np.broadcast_to(v / scale, own[0].shape) for v in calls(*own)] for calls, scale in pairs]


def with_slopes(expr: Expr, states: Sequence[Any]) -> list[Expr]:
    """An expression, and its slope along each of some states."""
    return [expr, *(expr.diff(q) for q in states)]
