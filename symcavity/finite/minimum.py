"""Solving one instance: the method is chosen from the structure of the declaration, never from its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.finite.certificate import contradiction, proof
from symcavity.finite.compiled import CompiledSystem
from symcavity.finite.cuts import cutting_planes
from symcavity.finite.homotopy import follow
from symcavity.finite.instance import Instance, Residuals, State
from symcavity.finite.interior import PACES, TARGETS, follow_path
from symcavity.finite.messages import message_passing
from symcavity.finite.minimisers import Minimisers, minimisers, minimisers_beside
from symcavity.finite.newton import (
    REPAIRS,
    SiteGaps,
    full_step,
    scale_of,
    solve_active,
    surroundings,
)
from symcavity.finite.quadratic import Assembled, quadratic_program
from symcavity.finite.stability import leading_eigenvalue
from symcavity.finite.starts import finite_start
from symcavity.finite.sum_multipliers import by_multipliers, open_conditions
from symcavity.finite.units import InstanceUnits
from symcavity.finite.updates import updated
from symcavity.finite.vertices import decided
from symcavity.model.kinds import Kind
from symcavity.model.system import System

ACCEPTED, _VANISHING, _HOPEFUL = 1e-8, 1e-12, 1e-3
UPDATES = "updates of single sites"
_SHARPER, _DRIFTING, _FAR, _FEW = 0.1, 1e-4, 1e6, 6


@dataclass
class SolvedInstance:
    """The outcome of one instance.

    Attributes
    ----------
    state : State or None
        The solution; None if the instance is infeasible.
    residuals : Residuals or None
        How well the equations of the system hold there, in the instance's own units.
    method : str
        How it was found.
    sharp : bool
        Whether every pair is on a definite branch, so that responses exist.
    flat : Minimisers or None
        The set of all solutions of the same equations; None where the solution is the only one.
    failure : str
        Why there is no state, where infeasibility was not established either.
    idle : tuple of bool
        Which of the conditions on all sites hold without their multiplier.
    leading : float or None
        Of a system that is not declared convex: the largest real part of the eigenvalues of its linearized iteration;
        above one its fixed point repels.  None where this is not known.
    left : float or None
        The same of a fixed point that was found first, repels, and was left for this one.
    """

    state: State | None
    residuals: Residuals | None
    method: str
    sharp: bool = True
    flat: Minimisers | None = None
    failure: str = ""
    idle: tuple[bool, ...] = ()
    leading: float | None = None
    left: float | None = None


def solve_instance(
    system: System, instance: Instance, method: str = "", *, attracts: bool = True
) -> SolvedInstance:
    """Solve an instance of a system.

    Parameters
    ----------
    system : System
        The system.
    instance : Instance
        Its instance; sources that are set in it are part of the equations.
    method : str, optional
        The name of one of :data:`METHODS`; by default those that fit are tried in order.
    attracts : bool
        Whether, where there may be several fixed points, one that repels is left for one that attracts, if sites that
        begin beside it settle there.

    Raises
    ------
    NotConverged
        If no solution was found and infeasibility was not established.
    """
    if method not in ("", *(m.name for m in METHODS)):
        raise UnsupportedLaw(f"The method {method!r} is unknown.", ", ".join(m.name for m in METHODS))
    units = InstanceUnits(instance)
    own = units.instance(instance)
    try:
        solved = _solve_idle(system, own, method)
        several = not system.convex and (own.system.pairs or not own.system.affine)
        if attracts and several and solved.state is not None and solved.sharp:
            solved = _attracting(own, solved, solved.state)
        return _outward(units, solved)
    except NotConverged as error:
        if error.best is not None:
            error.best = units.outward(error.best)
        raise
    finally:
        instance.idle[:] = own.idle


def _attracting(instance: Instance, solved: SolvedInstance, state: State) -> SolvedInstance:
    """The fixed point that was found, with its leading eigenvalue; where it repels, that where its sites settle."""
    solved.leading = leading_eigenvalue(instance, state)
    if solved.leading is None or solved.leading <= 1:
        return solved
    settled = updated(instance, beside=state)
    found = None if settled is None else _finish(instance, settled, UPDATES)
    if found is None or found.state is None or not found.sharp:
        return solved
    leading = leading_eigenvalue(instance, found.state)
    if leading is None or leading > 1:
        return solved
    return replace(found, idle=solved.idle, leading=leading, left=solved.leading)


def _outward(units: InstanceUnits, solved: SolvedInstance) -> SolvedInstance:
    """A solution in the units of the declaration."""
    if solved.state is None or units.trivial:
        return solved
    flat = solved.flat and replace(solved.flat, another=units.outward(solved.flat.another))
    return replace(solved, state=units.outward(solved.state), flat=flat)


def _solve_idle(system: System, instance: Instance, method: str) -> SolvedInstance:
    """Solve an instance, trying which of the conditions on all sites idle."""
    rows = [row for row, partner in enumerate(instance.system.partners) if partner >= 0]
    failure: NotConverged | None = None
    for idle in product((False, True), repeat=len(rows)):
        instance.idle[rows] = idle
        try:
            return replace(_solve(instance, method), idle=tuple(map(bool, instance.idle)))
        except NotConverged as error:
            failure = error
    assert failure is not None  # noqa: S101 - something has been tried
    if not any(np.any(s) for s in instance.source.values()) and proof(system, instance) is not None:
        return SolvedInstance(None, None, "linear programming")
    raise failure


@dataclass(frozen=True)
class Method:
    """One way to solve an instance.

    Attributes
    ----------
    name : str
        Its name.
    applies : callable
        Whether it fits a system, by the compiled system alone.
    run : callable
        Gives solutions, or a word on why there is none; whoever asks stops at the first that is sharp, or that says
        that there is no solution.
    """

    name: str
    applies: Callable[[CompiledSystem], bool]
    run: Callable[[Instance], Iterator[SolvedInstance | Missed]]


@dataclass(frozen=True)
class Missed:
    """The best point of a method that found no solution, and what else there is to say."""

    state: State | None
    why: str = ""


def _solve(instance: Instance, method: str) -> SolvedInstance:
    """Solve an instance in which it is decided which of the conditions on all sites idle."""
    fitting = [m for m in METHODS if m.applies(instance.system)]
    chosen = [m for m in fitting if method in ("", m.name)]
    if not chosen:
        raise UnsupportedLaw(
            f"The method {method!r} does not fit this system.",
            ", ".join(m.name for m in fitting),
            "leave the choice to the package",
        )
    found: SolvedInstance | None = None
    missed = Missed(None)
    for each in chosen:
        for outcome in each.run(instance):
            if isinstance(outcome, Missed):
                missed = Missed(outcome.state or missed.state, missed.why + outcome.why)
            elif outcome.state is None or outcome.sharp:
                return outcome
            else:
                found = outcome
    return found or _failed(instance, missed)


def _by_messages(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    start = message_passing(instance.system.declared, instance)
    solved = None if start is None else _finish(instance, start, "message passing", repairs=_FEW)
    if solved is not None and solved.sharp:
        yield solved


def _by_path(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    """Follow the central path until the branches can be told; where there is no solution it would not end."""
    first = not (instance.idle.any() or any(map(np.any, instance.source.values())))
    if first and instance.system.affine and contradiction(instance.system.declared, instance) is not None:
        yield SolvedInstance(None, None, "linear programming")
        return
    for target in TARGETS:
        for pace in PACES[:1] if instance.system.affine else PACES:
            state, error = follow_path(instance, target, pace)
            solved = _finish(instance, state, "interior point") if error < _HOPEFUL else None
            if solved is not None:
                break
        yield solved or Missed(state)
        if error >= _HOPEFUL:
            return


def _by_multipliers(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    """Solve with the variables of conditions that are not linear in them held, until the conditions are met."""
    rows = open_conditions(instance)
    for state in by_multipliers(instance, rows, _HOPEFUL) if rows else ():
        solved = _finish(instance, state, "interior point")
        if solved is not None:
            yield solved


def _by_cuts(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    """Cut until the branches can be told, then solve the equations of these branches to rounding."""
    program = quadratic_program(instance.system.declared)
    if program is None:
        raise UnsupportedLaw(
            "The law holds a convex set, and the rest of the declaration is not a quadratic program.",
            "quadratic objectives, constraints g(V) >= c with or without slack, linear constraints",
        )
    state, target = None, _HOPEFUL
    for found in cutting_planes(program, instance):
        if isinstance(found, Assembled):
            yield SolvedInstance(None, None, "cutting planes")
            return
        state, violation = found
        if violation < target:
            solved = _finish(instance, state.copy(), "cutting planes")
            if solved is not None and solved.sharp:
                yield solved
            target = _SHARPER * violation
    if state is not None:
        yield _finish(instance, state, "cutting planes") or Missed(state)


def _finish(instance: Instance, state: State, method: str, *, repairs: int = REPAIRS) -> SolvedInstance | None:
    """Solve to rounding on the branches found; keep what the path gave where they are degenerate."""
    for start in (state.copy, lambda: decided(instance, state)):
        try:
            if (begin := start()) is None:
                continue
            polished, _, at = solve_active(instance, begin, repairs=repairs)
            residuals = instance.residuals(polished)
            if _holds(residuals, polished):
                return _settled(instance, polished, residuals, method, _strict(at))
        except np.linalg.LinAlgError:
            pass
    residuals = instance.residuals(state)
    if _holds(residuals, state) and scale_of(state) < _FAR:
        flat = minimisers_beside(instance, state)
        return SolvedInstance(state, residuals, method, sharp=False, flat=flat)
    return None


def _settled(instance: Instance, state: State, residuals: Residuals, method: str, sharp: bool) -> SolvedInstance | None:
    """Look whether a solution stays where it is, and whether it is the only one on its branches.

    What runs to infinity meets equations as well, relative to its own size.
    """
    found = surroundings(instance, state)
    if found.step > _DRIFTING if sharp else scale_of(state) > _FAR:
        return None
    return SolvedInstance(state, residuals, method, sharp, minimisers(instance, state, found.another, sharp=sharp))


def _holds(residuals: Residuals, state: State) -> bool:
    """Whether the equations hold, relative to the size of the variables where that is large.

    Not where it is as large as that of what runs to infinity: some equation may hold none of what is large.
    """
    return residuals.worst < ACCEPTED * min(scale_of(state), _FAR)


def _strict(at: dict[Kind, SiteGaps]) -> bool:
    """Whether only one member of every pair vanishes."""
    for here in at.values():
        larger = np.maximum(here.p, here.q)
        if larger.size and np.min(larger) <= _VANISHING * max(1.0, float(np.max(larger))):
            return False
    return True


def _by_updates(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    state = updated(instance)
    found = None if state is None else _finish(instance, state, UPDATES)
    yield found or Missed(state, "" if state else "; single sites that were updated never came to rest")


def _by_newton(instance: Instance) -> Iterator[SolvedInstance | Missed]:
    start = finite_start(instance)
    start.active = {
        s: np.zeros((instance.size[s], law.kp), dtype=bool) for s, law in instance.system.laws.items()
    }
    try:
        state, _, _ = solve_active(instance, start.copy())
        if not _holds(instance.residuals(state), state):
            state, _, _ = solve_active(instance, full_step(instance, start))
        if instance.system.declared.convex and not _holds(instance.residuals(state), state):
            state = follow(instance, start) or state
    except np.linalg.LinAlgError as error:
        yield Missed(None, f": {str(error)[:1].lower()}{str(error)[1:].rstrip('.')}")
        return
    residuals, how = instance.residuals(state), "linear solve" if instance.system.affine else "newton"
    solved = _settled(instance, state, residuals, how, True) if _holds(residuals, state) else None
    if solved is not None:
        yield solved
        return
    farther = "; they hold the better the farther one goes: it lies at infinity" if _holds(residuals, state) else ""
    yield Missed(state, farther)


def _failed(instance: Instance, missed: Missed) -> SolvedInstance:
    state = missed.state
    worst = float("nan") if state is None else instance.residuals(state).worst
    raise NotConverged(
        f"No solution was found for the instance with seed {instance.seed}, "
        f"{', '.join(f'{kind.size} = {n}' for kind, n in instance.size.items())}"
        + (f"; the best point violates the equations by {worst:.1e}" if state is not None else "")
        + f"{missed.why}.",
        best=state,
        residual=worst,
        hint="a monotone system (the optimality conditions of a convex problem) whose minimum is not at infinity, "
        "smooth except for Max, Abs and pairs: the norm of a field that vanishes at the solution is not; another "
        "seed or size",
    )


def _holds_set(compiled: CompiledSystem) -> bool:
    return any(law.sets is not None for law in compiled.laws.values())


def _moves(compiled: CompiledSystem) -> bool:
    return not compiled.declared.convex and not _holds_set(compiled)


def _smooth(compiled: CompiledSystem) -> bool:
    return not compiled.pairs and not _holds_set(compiled)


def _paired(compiled: CompiledSystem) -> bool:
    return bool(compiled.pairs) and not _holds_set(compiled)


def _bounded(compiled: CompiledSystem) -> bool:
    return bool(compiled.bent) and not _holds_set(compiled)


METHODS = (  # in the order in which they are tried
    Method("cutting planes", _holds_set, _by_cuts),
    Method("newton", _smooth, _by_newton),
    Method("message passing", _paired, _by_messages),
    Method("held multipliers", _bounded, _by_multipliers),
    Method("interior point", _paired, _by_path),
    Method(UPDATES, _moves, _by_updates),
)
