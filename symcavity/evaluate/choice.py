"""Which of the roots is the solution: the first, the stable one, or one that the user has to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import NotConverged, SeveralSolutions, UnstableSolution, UnsupportedLaw
from symcavity.evaluate.admissible import sift
from symcavity.evaluate.eliminated import Eliminated, roots_of
from symcavity.evaluate.finish import finish, warn, where
from symcavity.evaluate.outcomes import Found
from symcavity.evaluate.roots import STARTS
from symcavity.evaluate.solution import Solution
from symcavity.evaluate.tolerances import tolerances


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
    solved, gains = _with_gains(system, admitted, observable)
    if task.linear and _is_unstable(gains[0]):  # linear states are unique, and their root is the stable one
        admitted = sift(system, roots_of(system, None, STARTS, every=True))[0] or admitted
        solved, gains = _with_gains(system, admitted, observable)
        stable = [solution for solution, gain in zip(solved, gains, strict=True) if not _is_unstable(gain)]
        if len(stable) == 1:
            return Found(stable[0])
    if len(solved) > 1:
        raise _several(system, admitted, gains)
    if _is_unstable(gain := gains[0]):
        warn(
            f"The solution at {where(system.given)} is unstable: solution.stability = {gain:.6g} is above one, and the "
            "states of the system do not settle in it.",
            UnstableSolution,
        )
    return Found(solved[0])


def _with_gains(
    system: Eliminated, roots: Sequence[np.ndarray], observable: Callable[[Any], Expr]
) -> tuple[list[Solution], list[float | None]]:
    """The solutions at some roots, and their stabilities."""
    solved = [finish(system, root, observable) for root in roots]
    return solved, [_gain(solution) for solution in solved]


def _gain(solution: Solution) -> float | None:
    """The stability of a solution, where it is known."""
    try:
        return float(solution.stability)
    except (UnsupportedLaw, NotConverged):
        return None


def _is_unstable(gain: float | None) -> bool:
    return gain is not None and gain > 1 + tolerances().marginal


def _several(system: Eliminated, roots: Sequence[np.ndarray], gains: Sequence[float | None]) -> SeveralSolutions:
    units = system.task.units
    pairs = [(system.given.outward(system.complete(root)), gain) for root, gain in zip(roots, gains, strict=True)]
    pairs.sort(key=lambda pair: [pair[0][s] for s in system.order])
    hats = {s for unit in units.values() for s in unit.free_symbols if s.name.endswith("_hat")}
    known = system.given.as_declared.exact
    found = [p | {g: float(unit.xreplace({**known, **p})) for g, unit in units.items()} for p, _ in pairs]
    shown = [*(s for s in system.order if s not in hats), *units]
    lines = [
        "; ".join(f"{s} = {point[s]:.6g}" for s in shown)
        + ("" if gain is None else f"; stability {gain:.4g}" + (" (unstable)" if _is_unstable(gain) else ""))
        for point, (_, gain) in zip(found, pairs, strict=True)
    ]
    return SeveralSolutions(
        f"The equations have {len(found)} admissible solutions at {where(system.given)}:\n  " + "\n  ".join(lines),
        tuple(found),
        "guess=error.solutions[k] for one of them; simulate the system to see which are reached",
    )
