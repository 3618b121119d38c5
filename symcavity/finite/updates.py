"""Instances without a minimum to descend to: a random quarter of the sites at a time take their law at their fields.

Newton steps fail where states jump, or where kinks turn them around. Sites that all moved at once could turn each other
around for ever, too. Where couplings are symmetric, a few at a time lower
an energy, and come to rest; where they are not, there may be no fixed point.
"""

from __future__ import annotations

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.affine_laws import SiteStates
from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import scale_of, slopes, summed, violation
from symcavity.finite.single_site import SingleSites
from symcavity.finite.starts import finite_start
from symcavity.finite.sums_met import SumsMet
from symcavity.method.messages import conditions_met
from symcavity.model.kinds import Kind

ROUNDS, SHARE, SETTLED = 200, 0.25, 1e-6
_BEGIN, _ORDER = 21, 22
_BESIDE = 0.1  # of the largest state


def updated(instance: Instance, beside: State | None = None) -> State | None:
    """A state in which no site would move; None where some never come to rest.

    Parameters
    ----------
    instance : Instance
        The instance.
    beside : State, optional
        A fixed point that is left: the sites begin a little above it.  By default they begin at random.
    """
    system, laws = instance.system.declared, instance.system.laws
    sites = {k: SingleSites(law, instance.quenched, instance.constants) for k, law in laws.items()}
    met = conditions_met(system)
    sums = {k: SumsMet(system, instance, sites, k, met[k]) for k in laws}
    back = {k: np.zeros((instance.size[k], law.m, law.out)) for k, law in laws.items()}  # nothing is inserted
    state, begin, order = finite_start(instance), stream(instance.seed, _BEGIN), stream(instance.seed, _ORDER)
    state.site = {k: begin.standard_normal(z.shape) for k, z in state.site.items()}
    if beside is not None:
        near = _BESIDE * scale_of(beside)
        state.site = {k: beside.site[k] + near * np.abs(z) for k, z in state.site.items()}
        state.shared = beside.shared.copy()
    last: dict[Kind, SiteStates | None] = dict.fromkeys(laws)
    relaxes = _has_means_only(instance, state)
    for _ in range(ROUNDS):
        moved = 0.0
        for kind in laws:
            try:
                eta = instance.fields(kind, state)
                answer = sums[kind].solved(state, eta, back[kind], last[kind], held=relaxes)
            except NotConverged:
                return None
            if not np.all(answer.found):
                return None
            size = float(np.max(np.abs(answer.z), initial=0.0))
            moved = max(moved, float(np.max(np.abs(answer.z - state.site[kind]), initial=0.0)) / (size or 1.0))
            turn = order.random(len(answer.z)) < SHARE
            state.site[kind][turn] = answer.z[turn]
            last[kind] = answer
            state.active[kind] = answer.active
        if relaxes and state.shared.size:
            change = violation(instance, state)[2] / _own_slopes(instance, state)
            state.shared = state.shared - change
            moved = max(moved, float(np.max(np.abs(change))) / (float(np.max(np.abs(state.shared))) or 1.0))
        if moved < SETTLED:
            return state
    return None


def _has_means_only(instance: Instance, state: State) -> bool:
    """Whether global variables follow from the states, as means do: they are taken as the states are at the time.

    Met together with the states, a mean that excites itself would stay at a value that repels.
    """
    own = _own_slopes(instance, state)
    return own.shape == state.shared.shape and bool(np.all(own != 0))


def _own_slopes(instance: Instance, state: State) -> np.ndarray:
    """The derivative of each condition on a sum in its own global variable, where no state moves."""
    return np.diag(summed(slopes(instance, state, kind).body_shared for kind in instance.system.laws))
