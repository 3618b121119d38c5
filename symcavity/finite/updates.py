"""Instances without a minimum to descend to: a random quarter of the sites at a time take their law at their fields.

Newton steps fail where states jump, or where kinks turn them around. Sites that all moved at once could turn each other
around for ever, too. Where couplings are symmetric, a few at a time lower
an energy, and come to rest; where they are not, there may be no fixed point.
"""

from __future__ import annotations

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.broken import SiteStates
from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.newton import finite_start
from symcavity.finite.single_site import SingleSites
from symcavity.finite.sums_met import SumsMet
from symcavity.method.messages import conditions_met
from symcavity.model.kinds import Kind

ROUNDS, SHARE, SETTLED = 200, 0.25, 1e-6
_BEGIN, _ORDER = 21, 22


def updated(instance: Instance) -> State | None:
    """A state in which no site would move, reached from random ones; None where some never come to rest."""
    system, laws = instance.system.declared, instance.system.laws
    sites = {k: SingleSites(law, instance.quenched, instance.constants) for k, law in laws.items()}
    met = conditions_met(system)
    sums = {k: SumsMet(system, instance, sites, k, met[k]) for k in laws}
    back = {k: np.zeros((instance.size[k], law.m, law.out)) for k, law in laws.items()}  # nothing is inserted
    state, begin, order = finite_start(instance), stream(instance.seed, _BEGIN), stream(instance.seed, _ORDER)
    state.site = {k: begin.standard_normal(z.shape) for k, z in state.site.items()}
    last: dict[Kind, SiteStates | None] = dict.fromkeys(laws)
    for _ in range(ROUNDS):
        moved = 0.0
        for kind in laws:
            try:
                answer = sums[kind].solved(state, instance.fields(kind, state), back[kind], last[kind])
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
        if moved < SETTLED:
            return state
    return None
