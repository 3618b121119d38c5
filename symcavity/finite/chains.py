"""Metropolis chains of the states of one instance: sites move one after the other, with the fields that hear them."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcavity.errors import UnsupportedLaw
from symcavity.finite.draw import stream
from symcavity.finite.warm import WarmInstance, discrete

CHAINS = 8
ASKED = 0.45  # the share of moves that is accepted
STREAM = 11  # beside the numbers of the other draws of an instance


class Chains:
    """Several chains of one instance, each with states at all sites.

    Parameters
    ----------
    w : WarmInstance

    Attributes
    ----------
    x : dict
        By state: one row a chain, one column a site.
    shared : bool
        Whether a sum over all sites stands in the energy, or is held: a move of one site moves the energy of all.

    Raises
    ------
    UnsupportedLaw
        If several kinds of sites fluctuate, or a sum over all sites is held exactly.
    """

    def __init__(self, w: WarmInstance) -> None:
        if len(w.sent) > 1:
            raise UnsupportedLaw("Several kinds of sites fluctuate.", "samples of one kind of site with states")
        ((kind, weight),) = w.sent.items()
        states = w.own(weight)
        self.w, self.size, self.few = w, w.size(kind), discrete(states)
        self.rng = stream(w.instance.seed, STREAM)
        self.own, self.core = w.own_energies[kind], w.call(weight.state, states)
        self.x = {q: start_of(q, w, self.rng, self.size) for q in states}
        self.hearers = {k: tuple(w.weighed(k).values()) for k in w.heard}
        every = [f for some in self.hearers.values() for f in some]
        self.shares = {f: w.call(f.emission.diff(weight.mean), [])() * np.ones(self.size) for f in every}
        self.h = {k: [w.fields(f, self.x) for f in some] for k, some in self.hearers.items()}
        self.pair = w.pairs.get(kind, 0.0)
        self.couplings = w.instance.matrix(w.field(kind)) if self.pair else np.zeros((self.size, self.size))
        core = self.core(*self.x.values()) if self.pair else 0.0
        self.local = core @ self.couplings.T if self.pair else np.zeros((CHAINS, self.size))
        self.width = dict.fromkeys(states, np.ones((CHAINS, self.size)))
        self.shared = bool(w.sums.tied or w.sums.held)
        if any(c.equality for c in w.sums.held):
            said = f"{w.sums.held[0].declared} holds exactly: no move of one site keeps it."
            raise UnsupportedLaw(said, "smaller sizes, inequalities")

    def sweep(self, beta: float, settling: float | None = None) -> None:
        """Move each state of each site once; the widths of moves change by less the larger ``settling`` is."""
        for i in range(self.size):
            for q in self.x:
                taken = self._move(q, i, beta)
                if settling is not None and q not in self.few:
                    self.width[q] = self.width[q].copy()
                    self.width[q][:, i : i + 1] *= np.exp((taken - ASKED) / settling)

    def _move(self, q: Any, i: int, beta: float) -> np.ndarray:
        """Try to move one state of one site in each chain; which chains do."""
        at = np.s_[i : i + 1]
        old = {p: v[:, at] for p, v in self.x.items()}
        moved = self._tried(q, at, old[q])
        new = {**old, q: moved}
        one, two = (np.broadcast_to(self.core(*c.values(), at=at), (CHAINS, 1)) for c in (old, new))
        jump = two - one
        cost = self._own_cost(q, at, old, new)
        changed = {}
        for k, some in self.hearers.items():
            turns = [jump * self.shares[f][i] * self.w.instance.matrix(f)[:, i][None] for f in some]
            changed[k] = [v + turn for v, turn in zip(self.h[k], turns, strict=True)]
            risen = self.w.losses[k](*changed[k]) - self.w.losses[k](*self.h[k])
            cost = cost + (risen + np.zeros_like(self.h[k][0])).sum(axis=1)
        if self.pair:
            cost = cost - self.pair * (jump[:, 0] * self.local[:, i] + jump[:, 0] ** 2 * self.couplings[i, i] / 2)
        taken = (np.log(self.rng.random(CHAINS)) < -beta * cost)[:, None]
        self.x[q][:, at] = np.where(taken, moved, old[q])
        for k, after in changed.items():
            self.h[k] = [np.where(taken, new, old) for new, old in zip(after, self.h[k], strict=True)]
        if self.pair:
            self.local = self.local + np.where(taken, jump, 0) * self.couplings[:, i][None]
        return taken

    def _tried(self, q: Any, at: slice, old: np.ndarray) -> np.ndarray:
        if q in self.few:
            return np.asarray(self.rng.choice([float(v) for v in q.family.values], size=(CHAINS, 1)))
        return np.asarray(old + self.width[q][:, at] * self.rng.normal(size=(CHAINS, 1)))

    def _own_cost(self, q: Any, at: slice, old: dict[Any, np.ndarray], new: dict[Any, np.ndarray]) -> np.ndarray:
        """By how much the energy of the site rises, or that of all sites where they share a sum."""
        if self.shared:
            whole = {p: v.copy() for p, v in self.x.items()}
            whole[q][:, at] = new[q]
            return np.asarray(self.w.energy_of_states(whole) - self.w.energy_of_states(self.x))
        before, after = (self.own(*c.values(), at=at) - 0.0 for c in (old, new))
        return np.asarray((after - before + np.zeros((CHAINS, 1)))[:, 0])


def start_of(q: Any, w: WarmInstance, rng: np.random.Generator, size: int) -> np.ndarray:
    """Where chains begin: within the bounds, if a teacher or zero is."""
    if q in discrete([q]):
        return np.asarray(rng.choice([float(v) for v in q.family.values], size=(CHAINS, size)))
    if not any(weight.bounds for weight in w.system.weights.values()):
        return np.asarray(rng.normal(size=(CHAINS, size)))
    rows = [*(v for p, v in w.quenched.items() if p.site == q.site), np.zeros(size)]
    for row in rows:
        x = {q: np.tile(row, (CHAINS, 1))}
        if set(x) == set(w.states) and np.all(w.energy(x) < 1e9):
            return x[q]
    raise UnsupportedLaw(
        "No configuration within the bounds is known, from which samples could begin.",
        "bounds that zero or the quenched parameters of the sites meet, such as those of a teacher",
    )


