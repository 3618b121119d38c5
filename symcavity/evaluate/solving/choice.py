"""Which of the roots is the solution: the first, the stable one, or one that the user has to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import (
    JumpingLaw,
    NegativeEntropy,
    NotConverged,
    SeveralSolutions,
    UnstableSolution,
)
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solving.admissible import holds, sift
from symcavity.evaluate.solving.eliminated import Eliminated, roots_of
from symcavity.evaluate.solving.finish import finish, limit_at_rest, warn, where
from symcavity.evaluate.solving.outcomes import Found
from symcavity.evaluate.solving.phases import FREE, dominant, in_double, uncounted, where_known
from symcavity.evaluate.solving.roots import STARTS
from symcavity.evaluate.tolerances import tolerances

SMALL = (1e-8, 1e-14)  # moments of states that are nearly at rest
SETTLED = 1e-10  # responses there
SILENT = (
    "states that are all at rest solve the equations, too; instances begin there, and stay where that repels as well"
)


def chosen(system: Eliminated, admitted: Sequence[np.ndarray], observable: Callable[[Any], Expr]) -> Found:
    """The solution among admissible roots: of a convex problem the first, of a linear system the stable one.

    Raises
    ------
    SeveralSolutions
        If there are several.
    """
    task = system.task
    if task.convex:
        return Found(finish(system, admitted[0], observable))
    admitted, solved, gains = _with_gains(system, admitted, observable)
    if task.linear and _is_unstable(gains[0]):  # linear states are unique, and their root is the stable one
        admitted = sift(system, roots_of(system, None, STARTS, every=True))[0] or admitted
        admitted, solved, gains = _with_gains(system, admitted, observable)
        stable = [solution for solution, gain in zip(solved, gains, strict=True) if not _is_unstable(gain)]
        if len(stable) == 1:
            return Found(stable[0])
    if jumps := sorted(task.jumping, key=str):
        warn(
            f"The law of {', '.join(map(str, jumps))} jumps with fields that contain feedback: an arbitrarily small "
            f"change of them switches some states. At {where(system.given)} the equations describe fixed points with "
            "Gaussian fields; they do not say that such a fixed point is unique, stable, or reached by a dynamics. "
            "Where the equations are the slopes of an objective, Problem(objective).cavity() is the theory of its "
            "lowest minimum, and cavity(select='local') that of the minimum that is followed from zero feedback.",
            JumpingLaw,
        )
    if task.measure is not None and (found := dominant(solved, gains, _resting(system, observable))):
        return Found(_counted(system, found, gains[solved.index(found)]))
    if len(solved) > 1:
        raise _several(system, admitted, solved, gains)
    _warn_unstable(system, gains[0])
    if not task.linear and task.measure is None and can_rest(task, system.given):
        solved[0].remarks += (SILENT,)
    return Found(solved[0])


def _resting(system: Eliminated, observable: Callable[[Any], Expr]) -> Solution | bool:
    """The solution in which thermal means vanish; whether there is one, where it has no value."""
    if not can_rest(system.task, system.given):
        return False
    try:
        return limit_at_rest(system.task, system.given, observable) or False
    except NotConverged:
        return True  # one that digits do not reach


def _counted(system: Eliminated, solution: Solution, gain: float | None) -> Solution:
    """A solution of a Gibbs measure, with a warning where it describes no states."""
    _warn_unstable(system, gain)
    if (remark := uncounted(solution)) is not None:
        solution.remarks += (remark,)
        warn(f"At {where(system.given)} the {remark}.", NegativeEntropy)
    return solution


def _warn_unstable(system: Eliminated, gain: float | None) -> None:
    measure = system.task.measure
    if measure is not None and measure.is_cold and gain is not None and not np.isfinite(gain):
        bound = (
            "is a lower bound of the minimum, as that of discrete states that meet in pairs is (Guerra); other numbers "
            "are approximations"
        )
        energy = bound if measure.is_bound else "is an approximation, and no bound of the minimum is known from it"
        warn(
            f"The lowest states at {where(system.given)} jump: an arbitrarily small change of the fields "
            "switches some of them, and solution.stability is infinite. There are many states nearly as low as the "
            f"lowest one (replica symmetry is broken). The energy of one state {energy}.",
            UnstableSolution,
        )
    elif gain is not None and _is_unstable(gain):
        warn(
            f"The solution at {where(system.given)} is unstable: solution.stability = {gain:.6g} is above one, and the "
            "states of the system do not settle in it.",
            UnstableSolution,
        )


def _with_gains(
    system: Eliminated, roots: Sequence[np.ndarray], observable: Callable[[Any], Expr]
) -> tuple[list[np.ndarray], list[Solution], list[float | None]]:
    """Those of some roots in double that are roots, their solutions, and their stabilities.

    Closed forms have any number of digits: what does not settle with any of them was a change of sign of rounding.
    """
    kept: list[np.ndarray] = []
    solved: list[Solution] = []
    missed: NotConverged | None = None
    for root in roots:
        try:
            solved.append(finish(system, root, observable))
        except NotConverged as problem:
            if system.task.is_numerical:
                raise
            missed = problem
        else:
            kept.append(root)
    if missed is not None and not solved:
        raise missed
    return kept, solved, [_gain(solution) for solution in solved]


def _gain(solution: Solution) -> float | None:
    """The stability of a solution, where it is known."""
    found = where_known(lambda: solution.stability)
    return None if found is None else float(found)


def _is_unstable(gain: float | None) -> bool:
    return gain is not None and gain > 1 + tolerances().marginal


def can_rest(task: Task, given: Given) -> bool:
    """Whether all states may vanish: what is small is sent to what is small, and a measure has weights there.

    Fixed points without a measure need no more: states that are zero solve their equations whatever they respond.
    """
    closed, env = task.closed_map(given)[0], given.environment("numpy")
    grids, ends = closed.values.grids(), []
    moving = np.array([s in task.responses for s in closed.unknowns])
    answers = [k for k, s in enumerate(closed.mapped) if s in task.responses]
    for small in SMALL:
        x, sent = np.where(moving, closed.start(), small * closed.signs), []
        for _ in range(NEWTON):
            found = closed.call(closed.values, x, env, grids)
            if found is None or not np.all(np.isfinite(sent := found[0])):
                return False
            before, x = x, x.copy()
            x[moving] = [sent[k] for k in answers]
            if np.allclose(x, before, rtol=SETTLED, atol=0):
                break
        ends.append(max(abs(float(v)) for k, v in enumerate(sent) if k not in answers))
    if ends[-1] > np.sqrt(SMALL[-1] / SMALL[0]) * ends[0]:
        return False
    here = env | dict(zip(closed.unknowns, x.tolist(), strict=True))
    shown = [c for c in task.conditions if not (c.lhs - c.rhs).xreplace(task.units).free_symbols - set(here)]
    return task.measure is None or all(holds(task, given, c, here) for c in shown)


def _several(
    system: Eliminated, roots: Sequence[np.ndarray], solved: Sequence[Solution], gains: Sequence[float | None]
) -> SeveralSolutions:
    units, is_warm = system.task.units, system.task.measure is not None
    free = [in_double(solution, FREE) for solution in solved]
    rows = zip(roots, gains, free, strict=True)
    pairs = [(system.given.outward(system.complete(root)), (gain, value)) for root, gain, value in rows]
    pairs.sort(key=lambda pair: [pair[0][s] for s in system.order])
    hats = {s for unit in units.values() for s in unit.free_symbols if s.name.endswith("_hat")}
    known = system.given.as_declared.exact
    found = [p | {g: float(unit.xreplace({**known, **p})) for g, unit in units.items()} for p, _ in pairs]
    shown = [*(s for s in system.order if s not in hats), *units]
    lines = [
        "; ".join(f"{s} = {point[s]:.6g}" for s in shown)
        + ("" if gain is None else f"; stability {gain:.4g}" + (" (unstable)" if _is_unstable(gain) else ""))
        + ("" if value is None else f"; free energy {value:.6g}")
        for point, (_, (gain, value)) in zip(found, pairs, strict=True)
    ]
    at_rest = can_rest(system.task, system.given)
    if at_rest:
        at_zero = [s for s in shown if not is_warm or s not in system.task.responses]
        what = "thermal means that all vanish" if is_warm else "states that are all at rest"
        lines.append(f"{', '.join(map(str, at_zero))} = 0: {what}")
    return SeveralSolutions(
        f"The equations have {len(lines)} admissible solutions at {where(system.given)}:\n  " + "\n  ".join(lines),
        tuple(found),
        "guess=error.solutions[k] for one of them; simulate the system to see which are reached"
        + ("; of several states that of the lowest free energy has all of the weight" if is_warm else ""),
    )
