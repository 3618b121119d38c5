"""Samples of the Gibbs measure of one instance: Metropolis chains, at one temperature or as it is lowered."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcavity.errors import UnsupportedLaw
from symcavity.finite.configurations import Configurations, equal_shares, one_configuration
from symcavity.finite.draw import stream
from symcavity.finite.warm import WarmInstance, discrete
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind

CHAINS, SWEEPS, FIRST = 8, 400, 4  # of samples; one in FIRST of all sweeps comes before the first that counts
ASKED = 0.45  # the share of moves that is accepted
_CHAINS = 11  # beside the numbers of the other draws of an instance
COOLED = (0.1, 30.0)  # inverse temperatures between which chains are cooled, in units of a site's energy


def annealed(w: WarmInstance, sweeps: int) -> Configurations:
    """The lowest configuration that eight chains find as they are cooled: its energy is an upper bound of the minimum.

    The inverse temperature grows from sweep to sweep, from what moves all states to what moves none, in units of the
    spread of the energy of a site over random configurations.
    """
    rng = stream(w.instance.seed, _CHAINS + 1)
    x = {q: start(q, w, rng) for q in w.states}
    unit = float(np.std(w.energy(x))) / np.sqrt(sum(v.shape[1] for v in x.values())) or 1.0
    first = sweeps // FIRST
    ladder = np.geomspace(*COOLED, sweeps + first) / unit
    found = sampled(w, sweeps, ladder)
    return one_configuration("annealing", found.x, w.energy(found.x))


def sampled(w: WarmInstance, sweeps: int, ladder: np.ndarray | None = None) -> Configurations:
    """Metropolis sweeps of several chains, site by site; widths of moves are settled before the first that counts.

    ``ladder`` has an inverse temperature for each sweep, where that is not the one of the measure.
    """
    if any(c.equality for c in w.sums.held):
        raise UnsupportedLaw(
            f"{w.sums.held[0].declared} holds exactly: no move of one site keeps it.", "smaller sizes, inequalities"
        )
    rng = stream(w.instance.seed, _CHAINS)
    x = {q: start(q, w, rng) for q in w.states}
    chains, kept, first = [_Chains(w, kind, x, rng) for kind in w.sent], [], sweeps // FIRST
    fields = {f: w.fields(f, x) for own in chains for f in (*own.losses, *own.turning)}
    for sweep in range(sweeps + first):
        beta = w.beta if ladder is None else float(ladder[sweep])
        for own in chains:
            own.sweep(beta, fields, settle=1 / np.sqrt(sweep + 1) if sweep < first else 0.0)
        if sweep == first and w.sums.held:
            w.sums.check(w.energy_of_states(x))
        if sweep >= first:
            kept.append({q: v.copy() for q, v in x.items()})
    found = w.sums.turned({q: np.concatenate([one[q] for one in kept]) for q in x})
    chain = np.tile(np.arange(CHAINS), len(kept))
    return Configurations("sampling", found, equal_shares(len(chain)), chain=chain)


class _Chains:
    """Moves of the sites of one kind.

    Attributes
    ----------
    losses : list of RandomField
        The fields that losses weigh and that its states are sent to.
    turning : list of RandomField
        Those of other states, of either kind, that its states are sent to: the sites of both kinds meet in pairs.
    """

    def __init__(self, w: WarmInstance, kind: Kind, x: dict[Any, np.ndarray], rng: np.random.Generator) -> None:
        self.w, self.kind, self.x, self.rng, self.size = w, kind, x, rng, w.size(kind)
        weight = w.sent[kind]
        self.states, self.few = w.own(weight), discrete(w.own(weight))
        self.energy, self.core = w.own_energies[kind], w.core(kind)
        self.hearers = {k: list(w.weighed(k).values()) for k in w.heard}
        told = {k for k in w.heard if w.heard[k].energy.has(*w.sums.tied)}
        moved = {k for k, fs in self.hearers.items() if k in told or any(f.sender == kind for f in fs)}
        self.hearers = {k: fs for k, fs in self.hearers.items() if k in moved}
        self.losses = [f for fs in self.hearers.values() for f in fs]
        self.turning = [f for f in w.pairs if f.sender == kind]
        self.meeting = {f: factor for f, factor in w.pairs.items() if f.hearer == kind}
        sent = {f for f in (*self.losses, *self.turning) if f.sender == kind}
        self.shares = {f: w.call(f.emission.diff(weight.mean), [])() * np.ones(self.size) for f in sent}
        self.couplings = {f: w.instance.matrix(f) for f in sent}
        self.shared = bool(w.sums.tied or w.sums.held)
        self.steps = {q: np.ones((CHAINS, self.size)) for q in self.states}

    def sweep(self, beta: float, fields: dict[RandomField, np.ndarray], settle: float) -> None:
        """One move of every state; ``settle`` is by how much widths of moves are changed."""
        for i in range(self.size):
            for q in self.states:
                taken = self._move(beta, fields, q, i)
                if settle and q not in self.few:
                    self.steps[q][:, i : i + 1] *= np.exp((taken - ASKED) * settle)

    def _move(self, beta: float, fields: dict[RandomField, np.ndarray], q: Any, i: int) -> np.ndarray:
        """Which chains took a move of one state of one site."""
        at, x = np.s_[i : i + 1], self.x
        old = {p: x[p][:, at] for p in self.states}
        if q in self.few:
            moved = self.rng.choice([float(v) for v in q.family.values], size=(CHAINS, 1))
        else:
            moved = old[q] + self.steps[q][:, at] * self.rng.normal(size=(CHAINS, 1))
        new = {**old, q: moved}
        one, two = (np.broadcast_to(self.core(*c.values(), at=at), (CHAINS, 1)) for c in (old, new))
        jump = two - one
        told: list[list[np.ndarray]] = [[], []]  # what sums over all sites tell the losses, before and after
        if self.shared:  # a sum over all sites moves the energy of all
            whole = {p: v.copy() if p == q else v for p, v in x.items()}
            whole[q][:, at] = moved
            cost = self.w.energy_of_states(whole) - self.w.energy_of_states(x)
            told = [[*self.w.sums.values(c).values()] for c in (x, whole)]
        else:
            values = [self.energy(*c.values(), at=at) - 0.0 for c in (old, new)]
            cost = (values[1] - values[0] + np.zeros((CHAINS, 1)))[:, 0]
        after = {f: fields[f] + jump * share[i] * self.couplings[f][:, i][None] for f, share in self.shares.items()}
        for k, heard in self.hearers.items():
            risen = self.w.losses[k](*(after.get(f, fields[f]) for f in heard), *told[1])
            risen = risen - self.w.losses[k](*(fields[f] for f in heard), *told[0])
            cost = cost + (risen + np.zeros_like(fields[heard[0]])).sum(axis=1)
        for f, factor in self.meeting.items():  # half of what is heard after the move is what was heard before
            heard_then = (fields[f][:, i] + after.get(f, fields[f])[:, i]) / 2
            cost = cost - factor * jump[:, 0] * heard_then
        taken = (np.log(self.rng.random(CHAINS)) < -beta * cost)[:, None]
        x[q][:, at] = np.where(taken, moved, old[q])
        for f, value in after.items():
            fields[f] = np.where(taken, value, fields[f])
        return taken


def start(q: Any, w: WarmInstance, rng: np.random.Generator) -> np.ndarray:
    """Where chains begin: within the bounds, if a teacher or zero is."""
    size = w.size(next(iter(q.site)))
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
