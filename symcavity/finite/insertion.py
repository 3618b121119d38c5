"""One more site: an instance, the same instance with one site of some kind added, and what changed.

The insertion is the step that the cavity method is made of.  Here it is done, not argued: the fields of
the new site in the system without it, the reaction of all others by their exact linear response, and
the new site's own law at that field, against the instance that was solved again with the site in it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.finite.certificate import InstanceContradiction, InstanceDescent, evidence
from symcavity.finite.coupled import tie
from symcavity.finite.draw import stream
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance, State
from symcavity.finite.linearised import LinearSystem
from symcavity.finite.minimum import solve_instance
from symcavity.finite.newton import linearise, slopes
from symcavity.finite.setup import Setup
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched

_PROBE = 7


@dataclass(frozen=True)
class Insertion:
    """What one insertion of a site shows; fields are numbered by m, what the site sends by k.

    Attributes
    ----------
    cavity_field : ndarray
        The fields that the site hears in the system without it (m).
    field : ndarray
        The fields that it hears in the system with it (m).
    self_coupling : ndarray
        ``x0^T R x0``: how each field reacts to what the site sends, by the exact response R (m, k).
    mean_self_coupling : ndarray
        The same averaged over the fresh couplings: the variance times the trace of R (m, k).
    variance : ndarray
        The variance of the cavity fields over the fresh couplings, the system being given (m).
    state : ndarray
        The variables of the site in the system with it.
    quenched : dict
        The site's own parameters.
    shared : ndarray
        The global variables in the system without the site.
    variance_within : ndarray
        The same with the states of the system with the site (m).
    shift, linear_shift : ndarray
        What those whom the site hears send, after minus before (field after field, site after site), and its
        prediction by linear response.
    """

    cavity_field: np.ndarray
    field: np.ndarray
    self_coupling: np.ndarray
    mean_self_coupling: np.ndarray
    variance: np.ndarray
    state: np.ndarray
    quenched: dict[Quenched, float]
    shared: np.ndarray
    shift: np.ndarray
    linear_shift: np.ndarray
    variance_within: np.ndarray


@dataclass(frozen=True)
class Strand:
    """Fresh couplings of a new site at one end of a coupling, to all sites at the other end.

    Attributes
    ----------
    couplings, variance : ndarray
        One for each site at the other end.
    """

    couplings: np.ndarray
    variance: np.ndarray


Strands = dict[tuple[int, int], Strand]


def extended(setup: Setup, instance: Instance, kind: Kind) -> tuple[Instance, Strands]:
    """Return the instance with one site added, and the fresh couplings.

    Parameters
    ----------
    setup : Setup
        The laws that the new site's parameters and couplings are drawn from.
    instance : Instance
        The instance without the site; it is not changed.
    kind : Kind
        The kind of the new site, which becomes the last of its kind.

    Returns
    -------
    tuple
        The larger instance, with the same constants (so that all couplings keep their variance); and for each
        coupling and each of its ends where the site may stand (0 or 1), the fresh couplings.  Of a kind that is
        coupled to itself, the site is not coupled to itself.

    Raises
    ------
    UnsupportedLaw
        If the labels of other sites are drawn on a field that the new site takes part in.
    """
    grown = copy.copy(instance)
    system = instance.system
    for q in (q for q in instance.quenched if q.given is not None):
        law = system.laws[q.slots[0]]
        heard = {f.symbol for f in law.fields if f.sender == kind}
        if any(e.lhs == q.given and e.rhs.free_symbols & heard for e in law.law.equations):
            raise UnsupportedLaw(f"A new {kind} changes the labels {q} of others, drawn on {q.given}.", "other kinds")
    grown.size = {**instance.size, kind: instance.size[kind] + 1}
    grown.memory, grown.idle = {}, instance.idle.copy()
    grown.quenched = dict(instance.quenched)
    which = list(system.laws).index(kind)
    for k, q in enumerate(sorted(instance.quenched, key=lambda q: q.name)):
        if q.slots == (kind,) and q.given is not None:
            grown.quenched[q] = np.append(instance.quenched[q], 0.0)  # drawn below, on its field
        elif q.slots == (kind,):
            rng, source = stream(instance.seed, _PROBE, which, 0, k), setup.values.quenched[q]
            given = isinstance(source, np.ndarray) and source.ndim == 1
            new = rng.choice(source, size=1) if given else draw_quenched(q, source, 1, rng)
            grown.quenched[q] = np.append(instance.quenched[q], new)
    grown.couplings, fresh = [], {}
    lines = _fresh_lines(instance, kind, setup.law, which)
    for k, (x, matrix) in enumerate(zip(system.couplings, instance.couplings, strict=True)):
        ends = x.family.slots
        for end in (e for e in (0, 1) if ends[e] == kind):
            count = instance.size[ends[1 - end]]
            _, variance, quenched = system.variances[k]
            mine = {q: (0 if q.slots == (ends[0],) else 1) == end for q in quenched}
            columns = [grown.quenched[q][-1:] if own else instance.quenched[q] for q, own in mine.items()]
            spread = np.broadcast_to(np.asarray(variance(*columns, *instance.constants), dtype=float), (count,))
            fresh[k, end] = Strand(np.sqrt(spread) * lines[end][k], spread)
            line = np.append(fresh[k, end].couplings, np.zeros(matrix.shape[end - 1] - count))
            matrix = np.concatenate([matrix, line[None, :] if end == 0 else line[:, None]], axis=end)
        grown.couplings.append(matrix)
    grown.source = {s: np.zeros((grown.size[s], each.ke)) for s, each in system.laws.items()}
    for k, q in enumerate(q for q in grown.quenched if q.given is not None and q.slots == (kind,)):
        grown.quenched[q][-1] = grown.drawn(q, stream(instance.seed, _PROBE, which, 3, k))[-1]
    return grown, fresh


def _fresh_lines(instance: Instance, kind: Kind, law: Any, which: int) -> list[list[Any]]:
    """The couplings of a new site over their deviation: at each end (0, 1) one line for each coupling, or None."""
    ends = [x.family.slots for x in instance.system.couplings]
    lines: list[list[Any]] = [[None] * len(ends), [None] * len(ends)]
    for k, slots in enumerate(ends):
        for place, end in enumerate(e for e in (0, 1) if slots[e] == kind):
            rng, count = stream(instance.seed, _PROBE, which, 1 + place, k), instance.size[slots[1 - end]]
            lines[end][k] = np.asarray(law(rng, (count,)), dtype=float)
    return [instance.tied(lines[end], lines[1 - end]) for end in (0, 1)]


INFEASIBLE = "infeasible"


def insert(setup: Setup, task: tuple[Kind, int, int]) -> tuple[Insertion | None, str]:
    """Solve an instance, add one site, solve again, and measure.

    Parameters
    ----------
    setup : Setup
        The declaration and its values.
    task : tuple
        The kind of the new site, the number of features, and the seed.

    Returns
    -------
    tuple
        What was measured; or None, and why there is nothing to measure.
    """
    kind, features, seed = task
    instance = setup.instance(features, seed)
    grown, fresh = extended(setup, instance, kind)
    states = []
    for each in (instance, grown):
        try:
            solved = solve_instance(setup.system, each, setup.method)
        except NotConverged as error:
            return None, error.found
        if solved.state is None:
            return None, INFEASIBLE
        if solved.flat is not None:
            flat = solved.flat.dimension
            return None, f"a minimum that is not unique, but flat in {flat} directions" if flat else "open multipliers"
        if not solved.sharp:
            return None, "a degenerate solution"
        states.append(solved.state)
    return _Probe(instance, grown, fresh, kind, *states).measured(), ""


def obstacle(setup: Setup, task: tuple[Kind, int, int]) -> InstanceContradiction | InstanceDescent:
    """Prove that an instance without a site, or that with it, is infeasible."""
    kind, features, seed = task
    instance = setup.instance(features, seed)
    if solve_instance(setup.system, instance, setup.method).state is not None:
        instance, _ = extended(setup, instance, kind)
    return evidence(setup.system, instance)


class _Probe:
    """An instance without and with a site, and how its other sites answer to the fresh couplings."""

    def __init__(
        self, instance: Instance, grown: Instance, fresh: Strands, kind: Kind, before: State, after: State
    ) -> None:
        self.instance, self.grown, self.kind = instance, grown, kind
        self.before, self.after = before, after
        self.system, self.law = instance.system, instance.system.laws[kind]
        # where the coupling of a field is written with the sender's index first, its hearer is the second end
        self.heard = [fresh[self.system.place(f), int(f.turned)] for f in self.law.fields]
        self.sent = [fresh[self.system.place(g), int(not g.turned)] for g in self.law.heard_in]
        self.linear: LinearSystem = linearise(instance, before)

    def measured(self) -> Insertion:
        """Return what the insertion shows."""
        sent = [self._sent(self.instance, f, self.before) for f in self.law.fields]
        sent_after = [self._sent(self.grown, f, self.after) for f in self.law.fields]
        own = self.grown.emissions(self.kind, self.after)[-1]  # what the new site sends: (k)
        reply = self._replies()
        linear = [r @ own + g for r, g in zip(reply, self._through_globals(), strict=True)]
        return Insertion(
            np.array([x.couplings @ s for x, s in zip(self.heard, sent, strict=True)]),
            np.array([x.couplings @ s for x, s in zip(self.heard, sent_after, strict=True)]),
            np.stack([x.couplings @ r for x, r in zip(self.heard, reply, strict=True)]),
            self._mean_self_coupling(),
            np.array([x.variance @ s**2 for x, s in zip(self.heard, sent, strict=True)]),
            self.after.site[self.kind][-1].copy(),
            {q: float(self.grown.quenched[q][-1]) for q in self.law.quenched},
            self.before.shared.copy(),
            np.concatenate([b - a for a, b in zip(sent, sent_after, strict=True)]),
            np.concatenate(linear),
            np.array([x.variance @ s**2 for x, s in zip(self.heard, sent_after, strict=True)]),
        )

    def _sent(self, instance: Instance, f: RandomField, state: State) -> np.ndarray:
        """What the sites whom the new one hears send."""
        sent = instance.emissions(f.sender, state)[:, self.system.column(f)]
        return sent[: self.instance.size[f.sender]]

    def _emits(self, f: RandomField) -> np.ndarray:
        """The derivative of what a field sums in the variables of its senders: (sites, variables)."""
        return slopes(self.instance, self.before, f.sender).emits[:, self.system.column(f)]

    def _replies(self) -> list[np.ndarray]:
        """Return how what is sent answers to the shift of each field by the new site: for each field (sites, k)."""
        right = self.instance.right(len(self.sent))
        for k, (g, strand) in enumerate(zip(self.law.heard_in, self.sent, strict=True)):
            law = self.system.laws[g.hearer]
            hears = slopes(self.instance, self.before, g.hearer).hears[:, :, law.fields.index(g)]
            right[g.hearer][:, : law.ke, k] = -hears * strand.couplings[:, None]
        moved = self.linear.solve(right)
        return [np.einsum("nk,nkc->nc", self._emits(f), moved.site[f.sender]) for f in self.law.fields]

    def _through_globals(self) -> list[np.ndarray]:
        """Return the shifts that the new site causes through the global conditions that it takes part in."""
        rows, body, _, _ = self.system.conditions[self.kind]
        if not rows:
            return [np.zeros(self.instance.size[f.sender]) for f in self.law.fields]
        args = self.grown.arguments(self.kind, self.after, self.grown.fields(self.kind, self.after))
        rhs = np.zeros((self.system.count, 1))
        rhs[rows, 0] = -body(args, self.grown.size[self.kind])[-1] * ~self.instance.idle[rows]
        moved = self.linear.solve(self.instance.right(1), rhs)
        return [np.einsum("nk,nk->n", self._emits(f), moved.site[f.sender][:, :, 0]) for f in self.law.fields]

    def _mean_self_coupling(self) -> np.ndarray:
        """Return the variance of the fresh couplings times the local responses of those at their ends, summed.

        A field has one through each field that the site shifts by couplings that are correlated with those through
        which it hears: in most systems the same ones.
        """
        out = np.zeros((self.law.m, len(self.sent)))
        for k, g in enumerate(self.law.heard_in):
            numbers = dict(zip(self.system.constants, self.instance.constants, strict=True))
            ties = {m: tie(f, g).subs(numbers) for m, f in enumerate(self.law.fields)}
            echoes = {m: float(value) for m, value in ties.items() if value != 0}
            if not echoes:
                continue
            law, n = self.system.laws[g.hearer], self.instance.size[g.hearer]
            diagonal, right = np.arange(n), self.instance.right(n)
            hears = slopes(self.instance, self.before, g.hearer).hears[:, :, law.fields.index(g)]
            right[g.hearer][diagonal, : law.ke, diagonal] = -hears
            moved = self.linear.solve(right).site[g.hearer]
            for m, tied in echoes.items():
                local = np.einsum("nk,nk->n", self._emits(self.law.fields[m]), moved[diagonal, :, diagonal])
                out[m, k] = tied * np.sqrt(self.heard[m].variance * self.sent[k].variance) @ local
        return out
