"""Dense quadratic programs in one state of one kind of site: a quick guess of the active set, then an exact solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import MissingDependency
from symcavity.finite.instance import Instance, State
from symcavity.finite.quadratic import QuadraticProgram, SiteForm

INFINITE, ACTIVE, EQUAL = 1e30, 1, 5
_GUESSES, _SETTLED, _POWER = 80, 4, 8


@dataclass
class _Dense:
    """``minimise w'Dw/2 + c'w`` with ``low <= w <= high`` and ``M w <= d`` (or ``= d``)."""

    curvature: np.ndarray
    slope: np.ndarray
    matrix: np.ndarray
    limit: np.ndarray
    equal: np.ndarray
    bounds: tuple[np.ndarray, np.ndarray] | None


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
    dense = _dense(program, instance)
    n = len(dense.curvature)
    low, high = dense.bounds or (np.zeros(0), np.zeros(0))
    sense = np.where(dense.equal, EQUAL, 0)
    if dense.bounds is None and not np.any(dense.equal):
        sense[_guess(dense)] = ACTIVE
    sense = np.concatenate([np.zeros(len(low)), sense])
    floor = np.concatenate([low, np.where(dense.equal, dense.limit, -INFINITE)])
    ceiling = np.concatenate([high, dense.limit])
    found = dense_solve(dense.curvature, dense.slope, dense.matrix, ceiling, floor, sense)
    if found is None:
        return None
    z, on = found
    return _state(program, instance, z, on[: len(low)], on[len(low) :], n)


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


def _state(
    program: QuadraticProgram,
    instance: Instance,
    z: np.ndarray,
    on_bounds: np.ndarray,
    on_rows: np.ndarray,
    n: int,
) -> State:
    """Translate multipliers into the branches of the system's pairs."""
    state, form = instance.start(), program.own
    laws = program.compiled.laws
    state.active = {s: np.ones((instance.size[s], law.kp), dtype=bool) for s, law in laws.items()}
    position = 0
    for other in _others(program):
        for k in other.pair:
            rows = slice(position, position + instance.size[other.kind])
            if k is not None:
                state.active[other.kind][:, k] = on_rows[rows] == 0
            position = rows.stop
    if len(on_bounds):
        args = program.arguments(instance, form.kind)
        gaps = form.rows(args, n)[:, :, 0] * z[:, None] + form.offset(args, n)
        tight = np.abs(gaps) <= 1e-9 * (1 + np.abs(z))[:, None]
        for c, k in enumerate(form.pair):
            if k is not None:
                state.active[form.kind][:, k] = ~(tight[:, c] & (on_bounds != 0))
    return state


def _others(program: QuadraticProgram) -> list[SiteForm]:
    """The kinds of sites that only bring constraints."""
    return [form for form in program.forms.values() if form is not program.own]


def _dense(program: QuadraticProgram, instance: Instance) -> _Dense:
    own = program.own
    n, at = instance.size[own.kind], program.arguments(instance, own.kind)
    curvature, slope = own.hessian(at, n)[:, 0, 0], own.slope(at, n)[:, 0]
    if not np.all(curvature > 0):
        raise ArithmeticError("The objective is not strictly convex in the states.")
    emission, emits = own.emission(at, n), own.emits(at, n)[:, :, 0]
    blocks, limits, equal = [], [], []
    for other in _others(program):
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
    return _Dense(
        curvature,
        slope,
        blocks[0] if len(blocks) == 1 else np.concatenate([np.zeros((0, n)), *blocks]),
        np.concatenate([np.zeros(0), *limits]),
        np.concatenate([np.zeros(0, dtype=bool), *equal]),
        _bounds(own, at, n),
    )


def _bounds(own: SiteForm, args: list[Any], n: int) -> tuple[np.ndarray, np.ndarray] | None:
    if not own.equality:
        return None
    low, high = np.full(n, -INFINITE), np.full(n, INFINITE)
    rows, offset = own.rows(args, n)[:, :, 0], own.offset(args, n)
    for c, equal in enumerate(own.equality):
        if np.any(rows[:, c] == 0):
            raise ArithmeticError("A constraint of the states does not bound them.")
        bound = -offset[:, c] / rows[:, c]
        up = rows[:, c] > 0
        low = np.where(up | equal, np.maximum(low, bound), low)
        high = np.where(~up | equal, np.minimum(high, bound), high)
    return low, high


def _guess(dense: _Dense) -> np.ndarray:
    """Guess the active rows by accelerated projected gradient steps on the dual.

    The guess only saves work: the active-set solver starts from it and is exact from any start.
    """
    matrix, weight = dense.matrix, 1.0 / dense.curvature
    lift = matrix @ (weight * dense.slope) + dense.limit  # the gradient at zero multipliers
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
        few = np.count_nonzero(active) < len(dense.curvature)
        settled = settled + 1 if few and np.array_equal(active, before) else 0
        before = active
        if settled >= _SETTLED:
            break
    most = min(int(before.sum()), len(dense.curvature))
    return np.argsort(-lam, kind="stable")[:most]
