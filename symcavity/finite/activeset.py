"""Dense quadratic programs in one state of one kind of site: a quick guess of the active set, then an exact solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from symcavity.errors import MissingDependency
from symcavity.finite.instance import Instance, State
from symcavity.finite.quadratic import QuadraticProgram, SiteForm

INFINITE, ACTIVE, EQUAL = 1e30, 1, 5
_GUESSES, _SETTLED, _POWER = 80, 4, 8


def solve_active_set(program: QuadraticProgram, instance: Instance) -> State | None:
    """Solve a program in one state; None if the instance is infeasible.

    Parameters
    ----------
    program : QuadraticProgram
        A program with ``in_one_state``.
    instance : Instance
        The instance.

    Returns
    -------
    State or None
        A state whose ``active`` is that of the solution; its variables are still zero.

    Raises
    ------
    ArithmeticError
        If the method does not apply or gave up.
    """
    own, n = program.own, instance.size[program.own.kind]
    args = program.arguments(instance, own.kind)
    curvature, slope = own.hessian(args, n)[:, 0, 0], own.slope(args, n)[:, 0]
    if not np.all(curvature > 0):
        raise ArithmeticError("The objective is not strictly convex in the states.")
    others = [form for form in program.forms.values() if form is not own]
    matrix, limit, equal = _rows(program, instance, others)
    low, high = _bounds(own, args, n)
    sense = np.where(equal, EQUAL, 0)
    if not low.size and not np.any(equal):
        sense[_guess(curvature, slope, matrix, limit)] = ACTIVE
    sense = np.concatenate([np.zeros(low.size), sense])
    floor = np.concatenate([low, np.where(equal, limit, -INFINITE)])
    found = dense_solve(curvature, slope, matrix, np.concatenate([high, limit]), floor, sense)
    if found is None:
        return None
    z, on = found
    state, laws = instance.start(), program.compiled.laws
    state.active = {s: np.ones((instance.size[s], law.kp), dtype=bool) for s, law in laws.items()}
    position = low.size
    for other in others:
        for k in other.pair:
            rows = slice(position, position + instance.size[other.kind])
            if k is not None:
                state.active[other.kind][:, k] = on[rows] == 0
            position = rows.stop
    gaps = own.rows(args, n)[:, :, 0] * z[:, None] + own.offset(args, n)
    tight = np.abs(gaps) <= 1e-9 * (1 + np.abs(z))[:, None]
    for c, k in enumerate(own.pair):
        if k is not None:
            state.active[own.kind][:, k] = ~(tight[:, c] & (on[: low.size] != 0))
    return state


def dense_solve(
    curvature: np.ndarray, slope: np.ndarray, matrix: np.ndarray, high: np.ndarray, low: np.ndarray, sense: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Minimise ``z'diag(curvature)z/2 + slope'z`` with ``low <= (z, matrix @ z) <= high``; None if infeasible.

    Parameters
    ----------
    curvature, slope, matrix, high, low : ndarray
        The program; limits beyond those of the rows are bounds on the first variables.
    sense : ndarray
        For each limit 0, or `ACTIVE` (a guess), or `EQUAL`.

    Returns
    -------
    tuple or None
        The variables, and the multipliers of the limits.

    Raises
    ------
    MissingDependency
        If the solver is not installed.
    ArithmeticError
        If it gave up.
    """
    try:
        import daqp
    except ImportError:
        raise MissingDependency(
            "The active-set solver daqp is not installed.",
            "daqp 0.7 or later",
            "pip install daqp",
        ) from None
    z, _, flag, info = daqp.solve(np.diag(curvature), slope, matrix, high, low, sense.astype(np.intc))
    if flag == -1:
        return None
    if flag != 1:
        raise ArithmeticError(f"The active-set method stopped with the flag {flag}.")
    return np.asarray(z), np.asarray(info["lam"])


def _rows(program: QuadraticProgram, instance: Instance, others: list[SiteForm]) -> tuple[np.ndarray, ...]:
    """What the kinds without the state ask of it: ``matrix @ z <= limit``, or equal to it."""
    own, n = program.own, instance.size[program.own.kind]
    at = program.arguments(instance, own.kind)
    emission, emits = own.emission(at, n), own.emits(at, n)[:, :, 0]
    blocks, limits, equal = [], [np.zeros(0)], [np.zeros(0, dtype=bool)]
    for other in others:
        p, there = instance.size[other.kind], program.arguments(instance, other.kind)
        rows, offset = other.rows(there, p), other.offset(there, p)
        for c, equality in enumerate(other.equality):
            block, limit = np.zeros((p, n)), offset[:, c].copy()
            for m, f in enumerate(other.moving):
                x, h = instance.matrix(f), own.heard.index(f)
                factor, gain = rows[:, c, m], emits[:, h]
                if np.any(factor):
                    block -= (x if np.all(gain == 1) else x * gain) * factor[:, None]
                    limit += factor * (x @ emission[:, h]) if np.any(emission[:, h]) else 0.0
            blocks.append(block)
            limits.append(limit)
            equal.append(np.full(p, equality))
    matrix = blocks[0] if len(blocks) == 1 else np.concatenate([np.zeros((0, n)), *blocks])
    return matrix, np.concatenate(limits), np.concatenate(equal)


def _bounds(own: SiteForm, args: list[Any], n: int) -> tuple[np.ndarray, np.ndarray]:
    """What the sites with the state ask of it themselves: the ends of its ranges; nothing where they ask nothing."""
    low, high = np.full(n if own.equality else 0, -INFINITE), np.full(n if own.equality else 0, INFINITE)
    rows, offset = own.rows(args, n)[:, :, 0], own.offset(args, n)
    for c, equal in enumerate(own.equality):
        if np.any(rows[:, c] == 0):
            raise ArithmeticError("A constraint of the states does not bound them.")
        bound = -offset[:, c] / rows[:, c]
        up = rows[:, c] > 0
        low = np.where(up | equal, np.maximum(low, bound), low)
        high = np.where(~up | equal, np.minimum(high, bound), high)
    return low, high


def _guess(curvature: np.ndarray, slope: np.ndarray, matrix: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Guess the active rows by accelerated projected gradient steps on the dual.

    The guess only saves work: the active-set solver starts from it and is exact from any start.
    """
    weight = 1.0 / curvature
    lift = matrix @ (weight * slope) + limit  # the gradient at zero multipliers
    probe = matrix.sum(axis=0)
    norm = 1.0
    for _ in range(_POWER):
        norm = float(np.linalg.norm(probe)) or 1.0
        probe = matrix.T @ (matrix @ (weight * (probe / norm)))
    step = 1.0 / (1.3 * max(norm, 1e-300))
    lam = ahead = np.zeros(len(lift))
    inertia, before, settled = 1.0, np.zeros(len(lift), dtype=bool), 0
    for _ in range(_GUESSES):
        new = np.maximum(ahead - step * (matrix @ (weight * (ahead @ matrix)) + lift), 0.0)
        if (ahead - new) @ (new - lam) > 0:
            inertia = 1.0
        following = (1 + np.sqrt(1 + 4 * inertia * inertia)) / 2
        ahead, lam, inertia = new + (inertia - 1) / following * (new - lam), new, following
        active = lam > 0
        few = np.count_nonzero(active) < len(curvature)
        settled = settled + 1 if few and np.array_equal(active, before) else 0
        before = active
        if settled >= _SETTLED:
            break
    most = min(int(before.sum()), len(curvature))
    return np.argsort(-lam, kind="stable")[:most]
