"""The witness of gradient descent: the declared objective, whose slopes are difference quotients."""

from __future__ import annotations

from typing import Any

from sympy import Derivative

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.kinds import DATUM, N
from symcavity.model.quantities import Global, SiteQuantity, Variable, site_quantities
from symcavity.model.site_sums import kind_of_sum, outer_sums
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.declared import declared_of
from symcavity.witness.moments import free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.world import World, same

NUDGE = mp.mpf(10) ** -20
PRECISION = 70


@witness("descent")
def descent(step: Step, _dps: int) -> list[Verdict]:
    """The claimed objective is the declared one, and each state moves against its slope, at seeded states."""
    theory = step.evidence["theory"]
    system, origin = theory.system, theory.system.origin
    (objective,) = step.claims
    motion = [e for e in system.typed[0] if _state(e).now in origin.states]
    minimize, equalities = origin.problem.typed
    over = {q.family.name: q.family for q in system.motion.updates if q.time is not None}
    named = [q for e in (minimize, *equalities) for q in site_quantities(e, Variable) if q.family.name in over]
    rule = {q: over[q.family.name][(*q.indices, system.time)] for q in named}
    rule |= {g: over[g.name][system.time] for g in minimize.atoms(Global) if g.name in over}
    held = {e.lhs.family.name for e in equalities}
    moved = {q.family.name for q in origin.states}
    ok = {q.family.name for q in rule.values()} - held == moved == {_state(e).family.name for e in motion}
    for seed in (3, 4):
        world = declared_of(theory).world(seed, digits=PRECISION)
        for e in system.typed[0]:
            if _state(e).now not in origin.states:
                world.defined[e.lhs.family] = e.rhs
        whole = minimize.xreplace(rule)
        ok = ok and same(world.value(whole, {system.time: 1}), world.value(objective.rhs, {system.time: 1}))
        for e in equalities:
            gap = (e.lhs - e.rhs).xreplace(rule)
            ok = ok and all(same(world.value(gap, env), 0) for env in free_points(world, [gap]))
        if origin.mask is not None:
            masked = {s: s.func(s.function * origin.mask / origin.batch, *s.limits) for s in outer_sums(whole)}
            whole = whole.xreplace({s: new for s, new in masked.items() if kind_of_sum(s.limits[0]) == DATUM})
        for e in motion:
            q = _state(e).now
            for env in ({**at, system.time: 1} for at in free_points(world, [q]) if at[system.time] == 1):
                ok = ok and same(world.value(e.rhs, env), _next(world, origin, whole, q, env))
    return result(BRUTE_FORCE, ok, "slopes of the declared objective, by moving each state")


def _state(e: Equation) -> Any:
    """What an equation gives, or the rate of."""
    return e.lhs.expr if isinstance(e.lhs, Derivative) else e.lhs


def _next(world: World, origin: Any, objective: Any, q: SiteQuantity, env: dict[Any, int]) -> Any:
    """Where a state goes, by the words of the user."""
    time = q.family.over
    now, before = (world.value(q, {**env, time: env[time] - lag}) for lag in (0, 1))
    key, values = world.key(q, env), []
    for sign in (1, -1):
        world.given[key] = now + sign * NUDGE
        values.append(world.value(objective, {time: env[time]}))
    del world.given[key]
    slope = (values[0] - values[1]) / (2 * NUDGE)
    if origin.rate is None:
        return -slope / (1 if q.site else world.value(N))
    rate = world.value(origin.rate) / (1 if q.site else world.value(N))  # what all share moves by the slope per site
    return now + world.value(origin.momentum) * (now - before) - rate * slope
