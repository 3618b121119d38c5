"""A start for instances of piecewise linear laws: message passing, which is the cavity method at work on them.

Each site solves its own law at its cavity field with its self-coupling, as the inserted site of a derivation does.
The law is a broken line in the plane of what the site hears and what it sends, one segment for each choice of
branches; the self-coupling tilts the line on which the two have to meet.  Nothing here needs to be exact: the
branches that it ends on are where an exact method begins.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np

from symcavity.finite.instance import Instance, State
from symcavity.finite.linearised import Plane
from symcavity.finite.newton import gaps, local_system, slopes
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind

_ROUNDS, _SETTLED, _STILL, _MOST_PAIRS, _DAMPED = 80, 2, 1e-2, 4, 0.6
_STARTS = (0.0, -1.0, 1.0)  # the first responses, where zero is none: a law without curvature of its own


class BrokenLine:
    """The law of the sites of a kind: segments ``(u, e) = (u0, e0) + t*(du, de)`` with ``low <= t <= high``.

    Parameters
    ----------
    instance : Instance
        The instance; its law is affine.
    heard, sent : RandomField
        The one field of states that the sites hear, and the one in which they are heard.
    """

    def __init__(self, instance: Instance, heard: RandomField, sent: RandomField) -> None:
        kind, state = heard.hearer, instance.start()
        law, n = instance.system.laws[kind], instance.size[kind]
        at, zero = slopes(instance, state, kind), gaps(instance, state, kind)
        place, column = law.fields.index(heard), instance.system.column(sent)
        emitted = instance.emissions(kind, state)[:, column]
        self.branches, lines = [], []
        for branch in product((False, True), repeat=law.kp):
            on = np.broadcast_to(np.array(branch, dtype=bool), (n, law.kp))
            local = local_system(instance, kind, at, (on.astype(float), (~on).astype(float)), grouped=True)
            try:
                plane = Plane(replace(local, hears=local.hears[:, :, [place]]))
            except np.linalg.LinAlgError:
                continue  # the branch contradicts the equations, at any field
            held, free = np.where(on, zero.p, zero.q), np.where(on, zero.q, zero.p)
            start = plane.load(-np.concatenate([zero.equations, held], axis=1)[:, :, None])
            z0, dz = start.z0[:, :, 0], plane.tz[:, :, 0]
            bends = np.where(on[:, :, None], at.q_slopes, at.p_slopes)
            f0, df = free + np.einsum("npk,nk->np", bends, z0), np.einsum("npk,nk->np", bends, dz)
            with np.errstate(all="ignore"):
                ends = -f0 / df
            low = np.max(np.where(df > 0, ends, -np.inf), axis=1, initial=-np.inf)
            high = np.min(np.where(df < 0, ends, np.inf), axis=1, initial=np.inf)
            high[np.any((df == 0) & (f0 < 0), axis=1)] = -np.inf
            emits = at.emits[:, column]
            sends = [emitted + np.einsum("nk,nk->n", emits, z0), np.einsum("nk,nk->n", emits, dz)]
            self.branches.append(branch)
            lines.append([start.u0[:, 0, 0], sends[0], plane.tu[:, 0, 0], sends[1], low, high])
        self.u0, self.e0, self.du, self.de, self.low, self.high = np.moveaxis(np.array(lines), 1, 0)
        self.sites = np.arange(n)

    def meet(self, cavity: np.ndarray, self_coupling: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Solve every site at ``u = cavity + self_coupling * e``: what it sends, its response, and its segment."""
        with np.errstate(all="ignore"):
            slope = self.du - self_coupling * self.de
            t = (cavity + self_coupling * self.e0 - self.u0) / slope
            gap = np.abs(slope * (t - np.minimum(np.maximum(t, self.low), self.high)))
            at = np.argmin(np.where(np.isfinite(gap), gap, np.inf), axis=0), self.sites
            return self.e0[at] + t[at] * self.de[at], self.de[at] / slope[at], at[0]


def message_passing(instance: Instance) -> State | None:
    """Return a state with likely branches, its variables still zero; None where this does not apply or settle.

    It applies to affine laws of two kinds of sites that hear one field of states each, through one coupling.

    Parameters
    ----------
    instance : Instance
        The instance.
    """
    system = instance.system
    heard, few = [*system.pair.values()], all(law.kp <= _MOST_PAIRS for law in system.laws.values())
    if not (heard and few and system.affine) or system.globals:
        return None
    lines = {f.hearer: BrokenLine(instance, f, g) for f, g in (heard, heard[::-1])}
    for response in _STARTS:
        at = _passed(instance, heard, lines, response) if all(line.branches for line in lines.values()) else {}
        if at is not None:
            active = {kind: np.array(lines[kind].branches, dtype=bool)[segment] for kind, segment in at.items()}
            return replace(instance.start(), active=active) if at else None
    return None


def _passed(
    instance: Instance, heard: list[RandomField], lines: dict[Kind, BrokenLine], response: float
) -> dict[Kind, np.ndarray] | None:
    """Pass messages until no site leaves its segment; nothing where they never settle, None where they run away."""
    spread = instance.spread(instance.system.place(heard[0]))
    ways = [(f.hearer, f.sender, instance.matrix(f), spread.T if f.turned else spread) for f in heard]
    sent = {kind: np.zeros(n) for kind, n in instance.size.items()}
    responses = {kind: np.full(n, response) for kind, n in instance.size.items()}
    at, settled = {kind: np.zeros(0) for kind in sent}, 0
    for k in range(_ROUNDS):
        before, moved, share = dict(at), 0.0, 1.0 if k < _ROUNDS // 2 else _DAMPED
        for hearer, sender, couplings, variances in ways:
            weight = _weighted(variances, responses[sender])
            cavity = couplings @ sent[sender] - weight * sent[hearer]
            now, responses[hearer], at[hearer] = lines[hearer].meet(cavity, weight)
            if not (np.all(np.isfinite(now)) and np.all(np.isfinite(responses[hearer]))):
                return None
            step = now - sent[hearer]
            moved = max(moved, float(np.linalg.norm(step) / (np.linalg.norm(now) or 1.0)))
            sent[hearer] = sent[hearer] + share * step
        still = moved < _STILL and all(np.array_equal(at[kind], before[kind]) for kind in at)
        settled = settled + 1 if still else 0
        if settled == _SETTLED:
            return at
    return {}


def _weighted(spread: np.ndarray, responses: np.ndarray) -> np.ndarray:
    """The mean self-couplings: responses weighted by the variances of the couplings, which often are all the same."""
    return spread @ responses if any(spread.strides) else np.full(len(spread), spread[0, 0] * np.sum(responses))


__all__ = ["message_passing"]
