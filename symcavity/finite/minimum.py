"""Solving one instance: the method is chosen from the structure of the declaration, never from its name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from operator import itemgetter

import numpy as np

from symcavity.errors import MissingDependency, NotConverged, UnsupportedLaw
from symcavity.finite.activeset import solve_active_set
from symcavity.finite.certificate import proof
from symcavity.finite.cuts import cutting_planes
from symcavity.finite.draw import stream
from symcavity.finite.held import by_held, open_conditions
from symcavity.finite.instance import Instance, Residuals, State, largest
from symcavity.finite.interior import TARGETS, follow_path
from symcavity.finite.linearised import Moved
from symcavity.finite.messages import message_passing
from symcavity.finite.newton import (
    REPAIRS,
    Gaps,
    finite_start,
    full_step,
    gaps,
    room_towards,
    scale_of,
    shifted,
    slopes,
    solve_active,
    surroundings,
)
from symcavity.finite.quadratic import Assembled, quadratic_program
from symcavity.model.kinds import Kind
from symcavity.model.system import System

ACCEPTED, _VANISHING, _HOPEFUL = 1e-8, 1e-12, 1e-3
METHODS = ("active set", "interior point", "conic", "newton", "cutting planes")
_SHARPER, _DRIFTING, _FAR, _FEW = 0.1, 1e-4, 1e6, 6
_BESIDE, _NULL, _CRAMPED = 13, 1e-13, 1e-7


@dataclass
class Solved:
    """The outcome of one instance.

    Attributes
    ----------
    state : State or None
        The solution; None if the instance is infeasible.
    residuals : Residuals or None
        How well the equations of the system hold there.
    method : str
        How it was found.
    sharp : bool
        Whether every pair is on a definite branch, so that responses exist.
    flat : tuple or None
        Another solution of the same equations, and the dimension of the plane of all of them; None where
        the solution is the only one.
    failure : str
        Why there is no state, where infeasibility was not established either.
    idle : tuple of bool
        Which of the conditions on all sites hold without their multiplier.
    """

    state: State | None
    residuals: Residuals | None
    method: str
    sharp: bool = True
    flat: tuple[State, int] | None = None
    failure: str = ""
    idle: tuple[bool, ...] = ()


def solve_instance(system: System, instance: Instance, method: str = "") -> Solved:
    """Solve an instance of a system.

    Parameters
    ----------
    system : System
        The system.
    instance : Instance
        Its instance; sources that are set in it are part of the equations.
    method : str, optional
        One of ``'active set'``, ``'interior point'``, ``'conic'``, ``'newton'``; chosen from the
        structure by default.

    Raises
    ------
    NotConverged
        If no solution was found and infeasibility was not established.
    """
    if method not in ("", *METHODS):
        raise UnsupportedLaw(f"The method {method!r} is unknown.", ", ".join(METHODS))
    rows = [row for row, partner in enumerate(instance.system.partners) if partner >= 0]
    failure: NotConverged | None = None
    for idle in product((False, True), repeat=len(rows)):
        instance.idle[rows] = idle
        try:
            return replace(_solve(system, instance, method), idle=tuple(map(bool, instance.idle)))
        except NotConverged as error:
            failure = error
    assert failure is not None  # noqa: S101 - something has been tried
    if not any(np.any(s) for s in instance.source.values()) and proof(system, instance) is not None:
        return Solved(None, None, "linear programming")
    raise failure


def _solve(system: System, instance: Instance, method: str) -> Solved:
    """Solve an instance in which it is decided which of the conditions on all sites idle."""
    compiled = instance.system
    holds_set = any(law.sets is not None for law in compiled.laws.values())
    if holds_set or method == "cutting planes":
        if not holds_set or method not in ("", "cutting planes"):
            raise UnsupportedLaw(
                f"The method {method!r} does not fit: the law holds {'a' if holds_set else 'no'} convex set.",
                "cutting planes for laws with a convex set, and for no others",
                "leave the choice to the package",
            )
        return _by_cuts(system, instance)
    if method == "newton" or (not method and not compiled.pairs):
        return _smooth(instance)
    program = quadratic_program(system)
    quiet = not any(np.any(s) for s in instance.source.values())
    if method == "active set" or (not method and program is not None and program.in_one_state and quiet):
        if program is None or not program.in_one_state or not quiet:
            raise UnsupportedLaw(
                "The active-set method needs a quadratic objective in one state of one kind of site.",
                "another method",
                "leave the choice to the package",
            )
        solved = _by_active_set(system, instance)
        if solved is not None:
            return solved
    start = None if method else message_passing(system, instance)
    if start is not None:
        solved = _finish(instance, start, "message passing", repairs=_FEW)
        if solved is not None and solved.sharp:
            return solved
    if method == "conic":
        if program is None:
            raise UnsupportedLaw("The conic solver needs a quadratic declaration.", "another method")
        guess = program.solve_conic(instance)
        if guess is None:
            return Solved(None, None, "conic")
        return _finish(instance, guess, "conic") or _failed(instance, None)
    if not compiled.pairs:
        raise UnsupportedLaw(
            f"The system has no inequality for the method {method!r}.", "the method 'newton'"
        )
    solved = _by_held(instance)
    for target in TARGETS if solved is None or not solved.sharp else ():
        state, error = follow_path(instance, target)
        found = _finish(instance, state, "interior point") if error < _HOPEFUL else None
        solved = found or solved
        if error >= _HOPEFUL or (found is not None and found.sharp):
            break
    if program is not None and quiet and (solved is None or not solved.sharp):
        for guessed, how in ((program.solve_conic, "conic"), (program.solve_vertex, "simplex")):
            try:
                guess = guessed(instance)
                if guess is None:  # there is no solution
                    break
                found = _finish(instance, guess, how)
            except (ArithmeticError, MissingDependency):
                continue
            if found is not None and (solved is None or found.sharp):
                return found
    return solved or _failed(instance, state)


def _by_held(instance: Instance) -> Solved | None:
    """Solve with the variables of conditions that are not linear in them held, until the conditions are met."""
    rows, found = open_conditions(instance), None
    for state in by_held(instance, rows, _HOPEFUL) if rows else ():
        found = _finish(instance, state, "interior point") or found
        if found is not None and found.sharp:
            break
    return found


def _by_active_set(system: System, instance: Instance) -> Solved | None:
    program = quadratic_program(system)
    assert program is not None  # noqa: S101 - the caller has looked
    try:
        state = solve_active_set(program, instance)
    except (ArithmeticError, MissingDependency):
        return None
    if state is None:
        return Solved(None, None, "active set")
    return _finish(instance, state, "active set")


def _by_cuts(system: System, instance: Instance) -> Solved:
    """Cut until the branches can be told, then solve the equations of these branches to rounding."""
    program = quadratic_program(system)
    if program is None:
        raise UnsupportedLaw(
            "The law holds a convex set, and what is left of the declaration is not a quadratic program.",
            "quadratic objectives, constraints g(V) >= c with or without slack, linear constraints",
        )
    state, target = None, _HOPEFUL
    for found in cutting_planes(program, instance):
        if isinstance(found, Assembled):
            return Solved(None, None, "cutting planes")
        state, violation = found
        if violation < target:
            solved = _finish(instance, state.copy(), "cutting planes")
            if solved is not None and solved.sharp:
                return solved
            target = _SHARPER * violation
    solved = None if state is None else _finish(instance, state, "cutting planes")
    return solved or _failed(instance, state)


def _finish(instance: Instance, state: State, method: str, *, repairs: int = REPAIRS) -> Solved | None:
    """Solve to rounding on the branches found; keep what the path gave where they are degenerate."""
    try:
        polished, _, at = solve_active(instance, state.copy(), repairs=repairs)
        residuals = instance.residuals(polished)
        if _holds(residuals, polished):
            return _settled(instance, polished, residuals, method, _strict(at))
    except np.linalg.LinAlgError:
        pass
    residuals = instance.residuals(state)
    if _holds(residuals, state) and scale_of(state) < _FAR:
        return Solved(state, residuals, method, sharp=False, flat=_beside(instance, state))
    return None


def _beside(instance: Instance, state: State) -> tuple[State, int] | None:
    """Another solution of an affine law whose sites are singular, and the dimension of the plane of those like it.

    What vanishes of a pair stays zero, both members where both do.  None where the solution is the only such one.
    """
    if not instance.system.affine:
        return None
    null = _null_space(_equations(instance, state), _NULL)
    if not null.shape[1]:
        return None
    along, start = null @ stream(instance.seed, _BESIDE).standard_normal(null.shape[1]), 0
    site = {}
    for kind, z in state.site.items():
        site[kind] = along[start : start + z.size].reshape(*z.shape, 1)
        start += z.size
    moved = Moved(site, along[start:, None])
    length = scale_of(state) / largest(*moved.parts)
    ways = [shifted(state, moved, sign * length) for sign in (1, -1)]
    room, best = max(((room_towards(instance, state, way), k) for k, way in enumerate(ways)), key=itemgetter(0))
    if room < _CRAMPED:
        return None
    return shifted(state, moved, room * (length, -length)[best]), null.shape[1]


def _equations(instance: Instance, state: State) -> np.ndarray:
    """The linear equations that hold wherever what is zero of the pairs stays so: one row each, dense."""
    system, near = instance.system, _VANISHING ** (1 / 2) * scale_of(state)
    every = {s: slopes(instance, state, s) for s in system.laws}
    ends = np.cumsum([0, *(z.size for z in state.site.values())])
    first = dict(zip(state.site, ends.tolist(), strict=False))
    rows, total = [], int(ends[-1])
    conditions = np.zeros((system.count, total + len(system.globals)))
    for kind, at in every.items():
        law, n, here = system.laws[kind], instance.size[kind], gaps(instance, state, kind)
        sites, k = np.arange(n), state.site[kind].shape[1]
        own = first[kind] + sites[:, None] * k + np.arange(k)
        block = np.zeros((n, at.slopes.shape[1], total + len(system.globals)))
        for m, f in enumerate(law.fields):
            sends = every[f.sender].emits[:, system.column(f)]
            heard = (instance.matrix(f)[:, :, None] * sends).reshape(n, -1)
            block[..., first[f.sender] : first[f.sender] + sends.size] += at.hears[:, :, m, None] * heard[:, None]
        block[sites[:, None], :, own] += np.swapaxes(at.slopes, 1, 2)
        block[..., total:] += at.shared
        rows.append(block.reshape(-1, block.shape[-1]))
        for member, other, change, shared in (
            (here.p, here.q, at.p_slopes, at.p_shared),
            (here.q, here.p, at.q_slopes, at.q_shared),
        ):
            where, which = np.nonzero((member <= other) | (member < near))
            pinned = np.zeros((len(where), block.shape[-1]))
            pinned[np.arange(len(where))[:, None], own[where]] = change[where, which]
            pinned[:, total:] = shared[where, which]
            rows.append(pinned)
        conditions[:, own.ravel()] += np.moveaxis(at.condition, 1, 0).reshape(system.count, own.size)
        conditions[:, total:] += at.body_shared
    return np.concatenate([*rows, conditions])


def _null_space(matrix: np.ndarray, small: float) -> np.ndarray:
    """A basis of the vectors that some rows annihilate, in columns; what stands alone in a row is zero at once."""
    matrix = matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.finfo(float).tiny)
    free = np.ones(matrix.shape[1], dtype=bool)
    while (alone := np.count_nonzero(np.abs(matrix[:, free]) > small, axis=1) == 1).any():
        free[np.flatnonzero(free)[np.argmax(np.abs(matrix[alone][:, free]), axis=1)]] = False
    out = np.zeros((len(free), 0))
    if free.any():
        _, s, vt = np.linalg.svd(matrix[:, free])
        rest = vt[np.count_nonzero(s > small * len(free) * s[0]) :].T
        out = np.zeros((len(free), rest.shape[1]))
        out[free] = rest
    return out


def _settled(instance: Instance, state: State, residuals: Residuals, method: str, sharp: bool) -> Solved | None:
    """Look whether a solution stays where it is, and whether it is the only one on its branches.

    What runs to infinity meets equations as well, relative to its own size.
    """
    found = surroundings(instance, state)
    if found.step > _DRIFTING if sharp else scale_of(state) > _FAR:
        return None
    return Solved(state, residuals, method, sharp, None if found.another is None else (found.another, found.dimension))


def _holds(residuals: Residuals, state: State) -> bool:
    """Whether the equations hold, relative to the size of the variables where that is large.

    Not where it is as large as that of what runs to infinity: some equation may hold none of what is large.
    """
    return residuals.worst < ACCEPTED * min(scale_of(state), _FAR)


def _strict(at: dict[Kind, Gaps]) -> bool:
    """Whether only one member of every pair vanishes."""
    for here in at.values():
        larger = np.maximum(here.p, here.q)
        if larger.size and np.min(larger) <= _VANISHING * max(1.0, float(np.max(larger))):
            return False
    return True


def _smooth(instance: Instance) -> Solved:
    start = finite_start(instance)
    start.active = {
        s: np.zeros((instance.size[s], law.kp), dtype=bool) for s, law in instance.system.laws.items()
    }
    try:
        state, _, _ = solve_active(instance, start.copy())
        if not _holds(instance.residuals(state), state):
            state, _, _ = solve_active(instance, full_step(instance, start))
    except np.linalg.LinAlgError as error:
        return _failed(instance, None, f": {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}")
    residuals, how = instance.residuals(state), "linear solve" if instance.system.affine else "newton"
    solved = _settled(instance, state, residuals, how, True) if _holds(residuals, state) else _by_held(instance)
    farther = "; they hold the better the farther one goes: it lies at infinity" if _holds(residuals, state) else ""
    return solved or _failed(instance, state, farther)


def _failed(instance: Instance, state: State | None, why: str = "") -> Solved:
    worst = float("nan") if state is None else instance.residuals(state).worst
    raise NotConverged(
        f"No solution was found for the instance with seed {instance.seed}, "
        f"{', '.join(f'{kind.size} = {n}' for kind, n in instance.size.items())}"
        + (f"; the best point violates the equations by {worst:.1e}" if state is not None else "")
        + f"{why}.",
        best=state,
        residual=worst,
        hint="a monotone system (the optimality conditions of a convex problem) whose minimum is not at infinity, "
        "smooth except for Max, Abs and pairs: the norm of a field that vanishes at the solution is not; another "
        "seed or size",
    )
