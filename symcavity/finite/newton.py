"""Solving the equations of an instance: an interior point for the pairs, then Newton on the active set.

The unknowns are those of the system itself, so that multipliers and slacks come out with the states.
The first stage follows the central path ``p q = mu`` of every complementary pair; the second fixes
which member of each pair is zero, solves the equations that are left to rounding, and repairs the
choice where a sign came out wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symcavity.finite.draw import stream
from symcavity.finite.instance import Instance, State
from symcavity.finite.linearised import LinearSystem, Plane, SideSystem
from symcavity.model.kinds import DATUM, FEATURE

SIDES = (FEATURE, DATUM)
_PATH_STEPS, _REPAIRS, _NEWTON, _START, _ANOTHER = 120, 40, 60, 9, 11
TARGETS = (1e-9, 1e-14)
_SHORTEST, _FAR, _ROUNDING, _CRAMPED = 1e-6, 1e13, 1e-14, 1e-7


@dataclass
class Gaps:
    """What a side's equations, pairs and its part of the global conditions amount to at a state."""

    equations: np.ndarray
    p: np.ndarray
    q: np.ndarray
    body: np.ndarray


@dataclass
class Slopes:
    """The derivatives of a side's law at a state."""

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


def gaps(instance: Instance, state: State, side: str) -> Gaps:
    """Evaluate the law of one side at a state."""
    system, law, n = instance.system, instance.system.laws[side], instance.size[side]
    args = instance.arguments(side, state, instance.fields(side, state))
    rows, body, _, _ = system.conditions[side]
    total = np.zeros(system.count)
    if rows:
        total[rows] = body(args, n).sum(axis=0)
    return Gaps(law.residual(args, n) - instance.source[side], law.p(args, n), law.q(args, n), total)


def slopes(instance: Instance, state: State, side: str) -> Slopes:
    """Evaluate the derivatives of the law of one side; an affine law has them once and for all."""
    system, law, n = instance.system, instance.system.laws[side], instance.size[side]
    if system.affine and side in instance.memory:
        return instance.memory[side]
    args = instance.arguments(side, state, instance.fields(side, state))
    rows, _, body_slopes, body_shared = system.conditions[side]
    condition = np.zeros((n, system.count, law.k))
    shared = np.zeros((system.count, len(system.globals)))
    if rows:
        condition[:, rows] = body_slopes(args, n)
        shared[rows] = body_shared(args, n).sum(axis=0)
    found = Slopes(
        law.slopes(args, n),
        law.hears(args, n),
        law.shared(args, n),
        law.p_slopes(args, n),
        law.q_slopes(args, n),
        law.p_shared(args, n),
        law.q_shared(args, n),
        law.emits(args, n),
        condition,
        shared,
    )
    instance.memory[side] = found
    return found


def _side(
    instance: Instance, side: str, at: Slopes, weights: tuple[np.ndarray, np.ndarray], *, grouped: bool
) -> SideSystem:
    """Return the linearised law, with each pair's row as ``weight_p dp + weight_q dq``."""
    law, (wp, wq) = instance.system.laws[side], weights
    rows = wp[:, :, None] * at.p_slopes + wq[:, :, None] * at.q_slopes
    shared = wp[:, :, None] * at.p_shared + wq[:, :, None] * at.q_shared
    n = instance.size[side]
    groups = None
    tables = (law.slopes, law.hears, law.p_slopes, law.q_slopes)
    if grouped and all(t.constant for t in tables) and law.kp < 30:
        codes = (wp > 0) @ (1 << np.arange(law.kp)) if law.kp else np.zeros(n, dtype=int)
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        groups = first, inverse
    return SideSystem(
        np.concatenate([at.slopes, rows], axis=1),
        np.concatenate([at.hears, np.zeros((n, law.kp, law.m))], axis=1),
        np.concatenate([at.shared, shared], axis=1),
        at.emits,
        at.condition,
        [instance.coupling(side, m) for m in range(law.m)],
        groups,
    )


def _active_weights(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return active.astype(float), (~active).astype(float)


def linearise(instance: Instance, state: State) -> LinearSystem:
    """Return the linearised equations at a solved state, each pair on its own branch, singular or not."""
    at = {s: slopes(instance, state, s) for s in SIDES}
    sides = [_side(instance, s, at[s], _active_weights(state.active[s]), grouped=True) for s in SIDES]
    return LinearSystem(sides[0], sides[1], at[FEATURE].body_shared + at[DATUM].body_shared, flat=True)


def relaxed(instance: Instance, state: State) -> LinearSystem:
    """Return the linearised equations with both members of every pair free to give way alike."""
    at = {s: slopes(instance, state, s) for s in SIDES}
    even = {s: np.ones_like(state.active[s], dtype=float) for s in SIDES}
    sides = [_side(instance, s, at[s], (even[s], even[s]), grouped=False) for s in SIDES]
    return LinearSystem(sides[0], sides[1], at[FEATURE].body_shared + at[DATUM].body_shared, flat=True)


@dataclass(frozen=True)
class Surroundings:
    """What the linearised equations say about the place where a solution was found.

    Attributes
    ----------
    step : float
        The next Newton step, relative to the size of the solution: not small where a minimum lies at
        infinity, and every equation holds better the farther one goes.
    another : State or None
        Another solution, where all of them make up a part of a plane: as far away as this one is large, or half
        as far as the signs of the pairs allow, in a direction that no symmetry prefers.
    dimension : int
        The dimension of that plane; zero where the solution is the only one.
    """

    step: float
    another: State | None
    dimension: int


def surroundings(instance: Instance, state: State) -> Surroundings:
    """Look around a solution, on its own branches."""
    system = linearise(instance, state)
    step = 0.0
    if not instance.system.affine:
        value, total = _violation(instance, state)[1:]
        moved = system.solve(-value[FEATURE][:, :, None], -value[DATUM][:, :, None], -total[:, None])
        step = _size(list(moved)) / _scale(state)
    if not system.nullity:
        return Surroundings(step, None, 0)
    rng = stream(instance.seed, _ANOTHER)
    mixed = rng.standard_normal((system.nullity, 1))
    along = tuple(part @ mixed for part in system.null_space())
    length = _scale(state) / _size(list(along))
    rooms = {sign * length: _room(instance, state, _shift(state, along, sign * length)) for sign in (1, -1)}
    best = max(rooms, key=lambda k: rooms[k])
    if rooms[best] < _CRAMPED:
        return Surroundings(step, None, 0)
    return Surroundings(step, _shift(state, along, rooms[best] * best), system.nullity)


def _room(instance: Instance, state: State, there: State) -> float:
    """Return how much of the way to another state the signs of the pairs allow: all of it, or half of what is free."""
    room = 1.0
    for side in SIDES:
        free = [np.where(state.active[side], at.q, at.p) for at in (gaps(instance, s, side) for s in (state, there))]
        falling = free[1] < 0
        if np.any(falling):
            start = np.maximum(free[0][falling], 0.0)
            room = min(room, 0.5 * float(np.min(start / (start - free[1][falling]))))
    return room


def _violation(
    instance: Instance, state: State
) -> tuple[dict[str, Gaps], dict[str, np.ndarray], np.ndarray]:
    """Return the law at a state, the equations of its branches, and the global conditions."""
    at = {s: gaps(instance, state, s) for s in SIDES}
    value = {
        s: np.concatenate([at[s].equations, np.where(state.active[s], at[s].p, at[s].q)], axis=1) for s in SIDES
    }
    return at, value, at[FEATURE].body + at[DATUM].body


def pinned(instance: Instance, state: State, side: str) -> np.ndarray:
    """Tell which variables of a side its own equations hold fixed, whatever its fields: (sites, variables)."""
    weights = _active_weights(state.active[side])
    return Plane(_side(instance, side, slopes(instance, state, side), weights, grouped=True)).pinned


def solve_active(
    instance: Instance, state: State, *, repairs: int = _REPAIRS
) -> tuple[State, float, dict[str, Gaps]]:
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
        state, error, at = _newton(instance, state)
        changed, scale = False, 1.0
        worst = error
        for side in SIDES:
            free = np.where(state.active[side], at[side].q, at[side].p)
            if not free.size:
                continue
            scale = max(scale, float(np.max(np.abs(free))))
            wrong = free < -1e-10 * scale
            worst = max(worst, float(-min(free.min(), 0.0)))
            if np.any(wrong):
                state.active = {**state.active, side: state.active[side] ^ wrong}
                changed = True
        if not changed:
            break
    return state, worst, at


def _newton(instance: Instance, state: State) -> tuple[State, float, dict[str, Gaps]]:
    """Solve the equations of fixed branches by damped Newton steps, to rounding."""
    best: tuple[State, float, dict[str, Gaps]] | None = None
    lowest, damping = np.inf, 1.0
    moved: tuple[np.ndarray, ...] = ()
    for _ in range(_NEWTON):
        at, value, total = _violation(instance, state)
        error = _size([*value.values(), total])
        merit = float(np.sqrt(sum(np.sum(v**2) for v in (*value.values(), total))))
        if best is not None and not merit < (1 - 1e-4 * damping) * lowest:
            if instance.system.affine or best[1] < 1e-11 * _scale(best[0]) or damping < _SHORTEST:
                return best
            damping *= 0.5
            state = _shift(best[0], moved, damping)
            continue
        best, lowest, damping = (state, error, at), merit, 1.0
        if error <= _ROUNDING * _scale(state):
            break
        system = linearise(instance, state)
        moved = system.solve(-value[FEATURE][:, :, None], -value[DATUM][:, :, None], -total[:, None])
        state = _shift(state, moved, damping)
        _snap(state, dict(zip(SIDES, system.pinned, strict=True)))
    assert best is not None  # noqa: S101 - the loop ran
    return best


def full_step(instance: Instance, state: State) -> State:
    """Return the state after one Newton step, whatever it does to the equations.

    What hears given numbers only is exact after it, such as the field of a teacher in whose sign the law jumps.
    """
    at = {s: gaps(instance, state, s) for s in SIDES}
    value = {
        s: np.concatenate([at[s].equations, np.where(state.active[s], at[s].p, at[s].q)], axis=1) for s in SIDES
    }
    total = at[FEATURE].body + at[DATUM].body
    system = linearise(instance, state)
    moved = system.solve(-value[FEATURE][:, :, None], -value[DATUM][:, :, None], -total[:, None])
    return _shift(state, moved, 1.0)


def _snap(state: State, pinned: dict[str, np.ndarray]) -> None:
    """Put to exact zero what the local equations alone hold at zero."""
    scale = 1e-12 * _scale(state)
    for side, z in state.site.items():
        z[pinned[side] & (np.abs(z) < scale)] = 0.0


def _shift(state: State, moved: tuple[np.ndarray, ...], step: float) -> State:
    site = {s: state.site[s] + step * moved[k][:, :, 0] for k, s in enumerate(SIDES)}
    return State(site, state.shared + step * moved[2][:, 0], state.active)


def _size(parts: list[np.ndarray]) -> float:
    largest = max((float(np.max(np.abs(x))) for x in parts if x.size), default=0.0)
    return largest if np.isfinite(largest) else np.inf


def _scale(state: State) -> float:
    return 1.0 + _size([*state.site.values(), state.shared])


def finite_start(instance: Instance) -> State:
    """Return the state zero, or one near it where the law is singular there (a norm, a quotient)."""
    state = instance.start()
    for size in (0.0, 1e-2, 1.0):
        if size:
            rng = stream(instance.seed, _START)
            state.site = {s: size * rng.standard_normal(z.shape) for s, z in state.site.items()}
        at = [gaps(instance, state, s) for s in SIDES] + [slopes(instance, state, s) for s in SIDES]
        instance.memory.clear()
        if all(np.all(np.isfinite(v)) for part in at for v in vars(part).values()):
            break
    return state


class _Path:
    """The central path of an instance: where it stands, and its next step."""

    def __init__(self, instance: Instance) -> None:
        self.instance, self.state = instance, finite_start(instance)
        self.at = {s: gaps(instance, self.state, s) for s in SIDES}
        self.slack = {s: (np.maximum(self.at[s].p, 1.0), np.maximum(self.at[s].q, 1.0)) for s in SIDES}
        self.count = sum(p.size for p, _ in self.slack.values())
        self._measure()

    def _measure(self) -> None:
        at, slack = self.at, self.slack
        self.mean = sum(float(np.sum(p * q)) for p, q in slack.values()) / self.count
        self.gaps = {s: (at[s].p - slack[s][0], at[s].q - slack[s][1]) for s in SIDES}
        self.total = at[FEATURE].body + at[DATUM].body
        self.error = _size(
            [*(at[s].equations for s in SIDES), *(g for s in SIDES for g in self.gaps[s]), self.total]
        )
        self.scale = _scale(self.state)
        self.state.active = {s: slack[s][0] < slack[s][1] for s in SIDES}

    @property
    def lost(self) -> bool:
        """Whether the path has run to infinity."""
        return not np.isfinite(self.error) or self.scale > _FAR

    def arrived(self, target: float) -> bool:
        """Whether the equations hold and the products are small."""
        return self.error < target * self.scale and self.mean < target * min(self.scale, 10.0)

    def _direction(
        self, system: LinearSystem, along: dict[str, Slopes], target: dict[str, np.ndarray]
    ) -> tuple[tuple[np.ndarray, ...], dict[str, tuple[np.ndarray, ...]]]:
        """Return the step towards products with given values: of the variables, and of the pairs."""
        right = []
        for s in SIDES:
            (p, q), (gap_p, gap_q) = self.slack[s], self.gaps[s]
            row = target[s] - p * q - q * gap_p - p * gap_q
            right.append(np.concatenate([-self.at[s].equations, row], axis=1)[:, :, None])
        moved = system.solve(right[0], right[1], -self.total[:, None])
        ds: dict[str, tuple[np.ndarray, ...]] = {}
        for k, s in enumerate(SIDES):
            dz, dg, at = moved[k][:, :, 0], moved[2][:, 0], along[s]
            ds[s] = (
                np.einsum("npk,nk->np", at.p_slopes, dz) + at.p_shared @ dg + self.gaps[s][0],
                np.einsum("npk,nk->np", at.q_slopes, dz) + at.q_shared @ dg + self.gaps[s][1],
            )
        return moved, ds

    def advance(self) -> None:
        """Predict the end of the path, then step towards its centre (Mehrotra)."""
        slack = self.slack
        weights = {s: (slack[s][1], slack[s][0]) for s in SIDES}
        along = {s: slopes(self.instance, self.state, s) for s in SIDES}
        sides = [_side(self.instance, s, along[s], weights[s], grouped=False) for s in SIDES]
        shared = along[FEATURE].body_shared + along[DATUM].body_shared
        try:
            system = LinearSystem(sides[0], sides[1], shared)
        except np.linalg.LinAlgError:  # what nothing determines need not move
            system = LinearSystem(sides[0], sides[1], shared, flat=True)
        _, ds = self._direction(system, along, {s: np.zeros_like(slack[s][0]) for s in SIDES})
        reach = _reach(slack, ds, 1.0)
        ahead = sum(
            float(np.sum((slack[s][0] + reach * ds[s][0]) * (slack[s][1] + reach * ds[s][1]))) for s in SIDES
        )
        centre = self.mean * min(1.0, (ahead / self.count / self.mean) ** 3)
        limit = 10 * self.mean
        moved, ds = self._direction(
            system, along, {s: centre - np.clip(ds[s][0] * ds[s][1], -limit, limit) for s in SIDES}
        )
        self._step(moved, ds, min(1.0, _reach(slack, ds, 0.995)))

    def _step(
        self, moved: tuple[np.ndarray, ...], ds: dict[str, tuple[np.ndarray, ...]], step: float
    ) -> None:
        """Step as far as the equations, where they are not linear, allow."""
        start, slack, error = self.state, self.slack, self.error
        allowed = max(2.0 * error, 10 * self.mean, 1e-8)
        for _ in range(30):
            self.state = _shift(start, moved, step)
            self.at = {s: gaps(self.instance, self.state, s) for s in SIDES}
            self.slack = {s: (slack[s][0] + step * ds[s][0], slack[s][1] + step * ds[s][1]) for s in SIDES}
            self._measure()
            if self.instance.system.affine or self.error <= allowed:
                return
            step *= 0.5


def follow_path(instance: Instance, target: float = TARGETS[0]) -> tuple[State, float]:
    """Follow the central path from far away towards the solution of the complementarity problem.

    Parameters
    ----------
    instance : Instance
        The instance.
    target : float
        How far to go; the branches of nearly degenerate pairs show late.

    Returns
    -------
    tuple
        A state with its likely branches, and the largest relative violation (which stays large if there
        is no solution).
    """
    path = _Path(instance)
    best, worst, stuck = path.state, np.inf, 0
    for _ in range(_PATH_STEPS):
        if path.lost:
            break
        now = max(path.error, path.mean) / path.scale
        if now < worst:
            best, worst, stuck = path.state, now, 0
        elif (stuck := stuck + 1) > 15:
            break
        if path.arrived(target):
            break
        try:
            path.advance()
        except np.linalg.LinAlgError:
            break
    return best, worst


def _reach(
    slack: dict[str, tuple[np.ndarray, np.ndarray]], ds: dict[str, tuple[np.ndarray, ...]], fraction: float
) -> float:
    """Return the longest step, up to one, that keeps every member of a pair positive."""
    reach = 1.0
    for side, values in slack.items():
        for x, d in zip(values, ds[side], strict=True):
            falling = d < 0
            if np.any(falling):
                reach = min(reach, fraction * float(np.min(-x[falling] / d[falling])))
    return reach


__all__ = [
    "SIDES",
    "TARGETS",
    "finite_start",
    "follow_path",
    "full_step",
    "linearise",
    "pinned",
    "relaxed",
    "solve_active",
    "surroundings",
]
