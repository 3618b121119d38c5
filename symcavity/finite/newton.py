"""Solving the equations of an instance on the branches of its pairs, by Newton steps.

The unknowns are those of the system itself, so that multipliers and slacks come out with the states.  Which member
of each pair is zero is given; the equations that are left are solved to rounding, and the choice is repaired where
a sign came out wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State, largest
from symcavity.finite.linearised import LinearResponse, LinearSystem, LocalSystem, Plane
from symcavity.model.kinds import Kind

REPAIRS, _NEWTON, _ANOTHER = 40, 60, 11
_SHORTEST, _ROUNDING, _CRAMPED = 1e-6, 1e-14, 1e-7
_FLAT, _CURVED = 1e-11, 1e-2  # what rounding leaves of an equation, by a way along it; a shorter one shows no curvature


@dataclass
class SiteGaps:
    """What the equations and pairs of a kind, and its part of the global conditions, amount to at a state."""

    equations: np.ndarray
    p: np.ndarray
    q: np.ndarray
    body: np.ndarray


Violation = tuple[dict[Kind, np.ndarray], np.ndarray]  # of equations and pairs by kind, and of global conditions


@dataclass
class Slopes:
    """The derivatives of the law of a kind at a state."""

    slopes: np.ndarray
    hears: np.ndarray
    shared: np.ndarray
    p_slopes: np.ndarray
    q_slopes: np.ndarray
    p_shared: np.ndarray
    q_shared: np.ndarray
    emits: np.ndarray
    condition: np.ndarray
    body_shared: np.ndarray


def gaps(instance: Instance, state: State, kind: Kind) -> SiteGaps:
    """Evaluate the law of one kind at a state."""
    system, law, n = instance.system, instance.system.laws[kind], instance.size[kind]
    args = instance.arguments(kind, state, instance.fields(kind, state))
    rows, body, _, _ = system.conditions[kind]
    total = np.zeros(system.count)
    if rows:
        total[rows] = body(args, n).sum(axis=0)
    for row, first in _idle(instance, kind):
        total[row] = state.shared[system.partners[row]] - instance.held.get(row, 0.0) if first else 0.0
    return SiteGaps(law.residual(args, n) - instance.source[kind], law.p(args, n), law.q(args, n), total)


def _idle(instance: Instance, kind: Kind) -> list[tuple[int, bool]]:
    """The conditions on sums over a kind that idle, and whether it is the first kind that they sum over.

    There the variable that makes a pair with the condition is zero, in place of the sum.
    """
    every = instance.system.conditions
    first = {row: s for s in reversed(every) for row in every[s][0]}
    return [(row, first[row] == kind) for row in every[kind][0] if instance.idle[row]]


def slopes(instance: Instance, state: State, kind: Kind) -> Slopes:
    """Evaluate the derivatives of the law of one kind."""
    found, idle = _slopes(instance, state, kind), _idle(instance, kind)
    if not idle:
        return found
    condition, shared = found.condition.copy(), found.body_shared.copy()
    for row, first in idle:
        condition[:, row] = shared[row] = 0.0
        shared[row, instance.system.partners[row]] = float(first)
    return replace(found, condition=condition, body_shared=shared)


def _slopes(instance: Instance, state: State, kind: Kind) -> Slopes:
    """The derivatives while no condition idles; an affine law has them once and for all."""
    system, law, n = instance.system, instance.system.laws[kind], instance.size[kind]
    if system.affine and kind in instance.memory:
        return instance.memory[kind]
    fields = np.zeros((n, law.m)) if system.affine else instance.fields(kind, state)  # what they are does not matter
    args = instance.arguments(kind, state, fields)
    rows, _, body_slopes, body_shared = system.conditions[kind]
    condition = np.zeros((n, system.count, law.k))
    shared = np.zeros((system.count, len(system.globals)))
    if rows:
        condition[:, rows] = body_slopes(args, n)
        shared[rows] = body_shared(args, n).sum(axis=0)
    tables = (law.slopes, law.hears, law.shared, law.p_slopes, law.q_slopes, law.p_shared, law.q_shared, law.emits)
    every = [*(table(args, n) for table in tables), condition, shared]
    instance.memory[kind] = found = Slopes(*every)
    return found


def local_system(
    instance: Instance, kind: Kind, at: Slopes, weights: tuple[np.ndarray, np.ndarray], *, grouped: bool
) -> LocalSystem:
    """Return the linearized law, with each pair's row as ``weight_p dp + weight_q dq``."""
    system, law, (wp, wq) = instance.system, instance.system.laws[kind], weights
    rows = wp[:, :, None] * at.p_slopes + wq[:, :, None] * at.q_slopes
    shared = wp[:, :, None] * at.p_shared + wq[:, :, None] * at.q_shared
    n = instance.size[kind]
    groups = None
    tables = (law.slopes, law.hears, law.p_slopes, law.q_slopes)
    if grouped and all(t.constant for t in tables) and law.kp < 30:
        codes = (wp > 0) @ (1 << np.arange(law.kp)) if law.kp else np.zeros(n, dtype=int)
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        groups = first, inverse
    return LocalSystem(
        np.concatenate([at.slopes, rows], axis=1),
        np.concatenate([at.hears, np.zeros((n, law.kp, law.m))], axis=1),
        np.concatenate([at.shared, shared], axis=1),
        at.emits,
        at.condition,
        [(instance.matrix(f), f.sender, system.column(f)) for f in law.fields],
        groups,
    )


def active_weights(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The weights of both members in the row of each pair: one for that which is zero."""
    return active.astype(float), (~active).astype(float)


def linearise(instance: Instance, state: State) -> LinearSystem:
    """Return the linearized equations at a solved state, each pair on its own branch, singular or not.

    Those of an affine law depend on branches, and on conditions that idle, alone: the last ones are kept.
    """
    last, idle, system = instance.memory.get("branches", ({}, None, None))
    same = np.array_equal(idle, instance.idle) and all(np.array_equal(on, last[s]) for s, on in state.active.items())
    if same:
        return system
    system = _linear(instance, state, {s: active_weights(on) for s, on in state.active.items()}, grouped=True)
    if instance.system.affine:
        instance.memory["branches"] = dict(state.active), instance.idle.copy(), system
    return system


def relaxed(instance: Instance, state: State) -> LinearSystem:
    """Return the linearized equations with both members of every pair free to give way alike."""
    even = {s: np.ones_like(on, dtype=float) for s, on in state.active.items()}
    return _linear(instance, state, {s: (one, one) for s, one in even.items()}, grouped=False)


def _linear(
    instance: Instance, state: State, weights: dict[Kind, tuple[np.ndarray, np.ndarray]], *, grouped: bool
) -> LinearSystem:
    at = {s: slopes(instance, state, s) for s in instance.system.laws}
    kinds = {s: local_system(instance, s, here, weights[s], grouped=grouped) for s, here in at.items()}
    return LinearSystem(kinds, summed(here.body_shared for here in at.values()), flat=True)


@dataclass(frozen=True)
class Surroundings:
    """What the linearized equations say about the place where a solution was found.

    Attributes
    ----------
    step : float
        The next Newton step, relative to the size of the solution: not small where a minimum lies at
        infinity, and every equation holds better the farther one goes.
    another : State or None
        Another solution, where all of them make up a part of a plane: as far away as this one is large, or half
        as far as the signs of the pairs allow, in a direction that no symmetry prefers.
    """

    step: float
    another: State | None


def surroundings(instance: Instance, state: State) -> Surroundings:
    """Look around a solution, on its own branches."""
    system = linearise(instance, state)
    step = 0.0
    if not instance.system.affine:
        step = largest(*_step(system, *violation(instance, state)[1:]).parts) / scale_of(state)
    if not (system.nullity or system.loose):
        return Surroundings(step, None)
    rng = stream(instance.seed, _ANOTHER)
    every = system.null_space()
    along = every.mixed(rng.standard_normal((every.shared.shape[1], 1)))
    length = scale_of(state) / largest(*along.parts)
    rooms = {sign * length: room_towards(instance, state, shifted(state, along, sign * length)) for sign in (1, -1)}
    best = max(rooms, key=lambda k: rooms[k])
    room = rooms[best]
    while room >= (_CRAMPED if instance.system.affine else _CURVED):
        there = shifted(state, along, room * best)
        _, value, total = violation(instance, there)
        if instance.system.affine or largest(*value.values(), total) < _FLAT * room * length:
            return Surroundings(step, there)
        room /= 2  # a law that bends may be flat nearby only, or have no curvature at one point
    return Surroundings(step, None)


def room_towards(instance: Instance, state: State, there: State) -> float:
    """Return how much of the way to another state the signs of the pairs allow: all of it, or half of what is free."""
    room = 1.0
    for kind, on in state.active.items():
        free = [np.where(on, at.q, at.p) for at in (gaps(instance, s, kind) for s in (state, there))]
        falling = free[1] < 0
        if np.any(falling):
            start = np.maximum(free[0][falling], 0.0)
            room = min(room, 0.5 * float(np.min(start / (start - free[1][falling]))))
    return room


def violation(
    instance: Instance, state: State
) -> tuple[dict[Kind, SiteGaps], dict[Kind, np.ndarray], np.ndarray]:
    """Return the law at a state, the equations of its branches, and the global conditions."""
    at = {s: gaps(instance, state, s) for s in instance.system.laws}
    value = {
        s: np.concatenate([here.equations, np.where(state.active[s], here.p, here.q)], axis=1)
        for s, here in at.items()
    }
    return at, value, summed(here.body for here in at.values())


def _step(system: LinearSystem, value: dict[Kind, np.ndarray], total: np.ndarray) -> LinearResponse:
    """The Newton step that makes up for a violation."""
    return system.solve({s: -v[:, :, None] for s, v in value.items()}, -total[:, None])


def summed(parts: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of what the kinds of sites contribute."""
    return np.sum(list(parts), axis=0)


def pinned(instance: Instance, state: State, kind: Kind) -> np.ndarray:
    """Tell which variables of a kind its own equations hold fixed, whatever its fields: (sites, variables)."""
    weights = active_weights(state.active[kind])
    return Plane(local_system(instance, kind, slopes(instance, state, kind), weights, grouped=True)).pinned


def solve_active(
    instance: Instance, state: State, *, repairs: int = REPAIRS
) -> tuple[State, float, dict[Kind, SiteGaps]]:
    """Solve with each pair on a branch, moving sites to the other branch until all signs are right.

    Parameters
    ----------
    instance : Instance
        The instance.
    state : State
        The start; ``state.active`` says which member of each pair is zero.
    repairs : int
        How often the choice of branches may change.

    Returns
    -------
    tuple
        The state, the largest violation of an equation or of a sign, and the law evaluated there.
    """
    for _ in range(repairs):
        state, error, at = newton(instance, state)
        changed, scale = False, 1.0
        worst = error
        for kind, here in at.items():
            free = np.where(state.active[kind], here.q, here.p)
            if not free.size:
                continue
            scale = max(scale, float(np.max(np.abs(free))))
            wrong = free < -1e-10 * scale
            worst = max(worst, float(-min(free.min(), 0.0)))
            if np.any(wrong):
                state.active = {**state.active, kind: state.active[kind] ^ wrong}
                changed = True
        if not changed:
            break
    return state, worst, at


def newton(
    instance: Instance, state: State, rest: Violation | None = None, enough: float = 0.0
) -> tuple[State, float, dict[Kind, SiteGaps]]:
    """Solve the equations of fixed branches by damped Newton steps, to rounding.

    Parameters
    ----------
    instance, state : Instance, State
        The instance, and where to begin.
    rest : tuple, optional
        By how much equations and conditions are to be violated, in the place of not at all.
    enough : float
        How far from that they may be.
    """
    best: tuple[State, float, dict[Kind, SiteGaps]] | None = None
    lowest, damping = np.inf, 1.0
    moved: LinearResponse | None = None
    for _ in range(_NEWTON):
        at, value, total = violation(instance, state)
        if rest is not None:
            value, total = {s: v - rest[0][s] for s, v in value.items()}, total - rest[1]
        error = largest(*value.values(), total)
        merit = float(np.sqrt(sum(np.sum(v**2) for v in (*value.values(), total))))
        if best is not None and not merit < (1 - 1e-4 * damping) * lowest:
            if instance.system.affine or best[1] < 1e-11 * scale_of(best[0]) or damping < _SHORTEST:
                return best
            assert moved is not None  # noqa: S101 - there is a best point: a step has been taken
            damping *= 0.5
            state = shifted(best[0], moved, damping)
            continue
        best, lowest, damping = (state, error, at), merit, 1.0
        if error <= max(_ROUNDING * scale_of(state), enough):
            break
        system = linearise(instance, state)
        moved = _step(system, value, total)
        state = shifted(state, moved, damping)
        _snap(state, system.pinned)
    assert best is not None  # noqa: S101 - the loop ran
    return best


def full_step(instance: Instance, state: State) -> State:
    """Return the state after one Newton step, whatever it does to the equations.

    What hears given numbers only is exact after it, such as the field of a teacher in whose sign the law jumps.
    """
    return shifted(state, _step(linearise(instance, state), *violation(instance, state)[1:]), 1.0)


def _snap(state: State, pinned: dict[Kind, np.ndarray]) -> None:
    """Put to exact zero what the local equations alone hold at zero."""
    scale = 1e-12 * scale_of(state)
    for kind, z in state.site.items():
        z[pinned[kind] & (np.abs(z) < scale)] = 0.0


def shifted(state: State, moved: LinearResponse, step: float) -> State:
    """Return a state moved by so much of a step, on the same branches."""
    site = {s: z + step * moved.site[s][:, :, 0] for s, z in state.site.items()}
    return State(site, state.shared + step * moved.shared[:, 0], state.active)


def scale_of(state: State) -> float:
    """Return one plus the largest variable of a state: what an error is small against."""
    return 1.0 + largest(*state.site.values(), state.shared)
