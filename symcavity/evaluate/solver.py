"""Solve the closed equations of a theory for whatever was not given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Expr, Mul, Symbol, factor_terms

from symcavity.algebra.precision import alone, mp
from symcavity.algebra.signs import sign_given
from symcavity.errors import Infeasible, NotConverged, RoughSolution, SeveralSolutions, UnstableSolution, UnsupportedLaw
from symcavity.evaluate.evolution import Root
from symcavity.evaluate.exact_root import exact_root
from symcavity.evaluate.following import (
    NEAR,
    STRONGEST,
    WEAKEST,
    BranchEnd,
    NothingButZero,
    OnlyRoot,
    along_load,
    along_values,
    by_load,
    explicit_range,
    is_mapped,
)
from symcavity.evaluate.quenched import MANY_SITES
from symcavity.evaluate.reduced import Reduced, exactly, inadmissible, roots_of, sift
from symcavity.evaluate.roots import FEW, STARTS, nearest_miss
from symcavity.evaluate.solution import GUARD, SHOWN, Solution
from symcavity.evaluate.values import Given, Task, read_values
from symcavity.model.kinds import N, P

ROUNDED = 1e-9  # by which a marginal solution may miss one
MOST_AT_REST = 15  # digits of a limit with integrals
MISSED, RUNAWAY = 1e-2, 40  # a residual that is none; powers of ten that no unknown has
FINE = 1e-10  # so short a last step leaves ten digits
ROUGHEST = 1e-6  # what rounding may leave of Newton's last step where all is in double: the residual shows it
UNSEEN = mp.mpf(10) ** -2000  # below this no digits of other unknowns tell a difference from zero


@alone
def solve(
    task: Task,
    values: Mapping[Any, Any],
    dps: int,
    observable: Callable[[Any], Expr],
    guess: Mapping[Symbol, Any] | None = None,
    *,
    double: bool = False,
) -> Solution:
    """Solve the closed equations.

    Parameters
    ----------
    task : Task
    values : mapping
        Values of the parameters, of the load or the sizes, and of the quenched parameters.
    dps : int
        Digits.
    observable : callable
        Turns an observable into order parameters (the theory's own).
    guess : mapping, optional
        A solution nearby, for continuation.
    double : bool
        Whether to stay in double precision throughout.

    Raises
    ------
    ValuesError
        If the values do not fit the theory.
    Infeasible
        If it is proved that the equations have no solution there; the proof is in ``.evidence``.
    SeveralSolutions
        If there are several, and the problem is not declared convex.
    NotConverged
        If no root was found, or it could not be polished; the best point is in ``.best``.
    """
    given = read_values(task, values, dps)
    return solve_given(task, replace(given, double=True) if double else given, observable, guess)


@alone
def resting(
    task: Task, values: Mapping[Any, Any], dps: int, observable: Callable[[Any], Expr]
) -> Solution | None:
    """Return the limit in which states of a convex problem vanish, as they do at its minimum; None if there is none."""
    given = read_values(task, values, dps)
    return _resting(task, given, observable) if is_mapped(task, given) else None


def solve_given(
    task: Task, given: Given, observable: Callable[[Any], Expr], guess: Mapping[Symbol, Any] | None = None
) -> Solution:
    """Solve the closed equations at values that have been read."""
    end = unpolished = None
    if is_mapped(task, given):
        found, end, unpolished = _evolved(task, given, observable, guess)
        if found is not None:
            return found
    system = Reduced.of(task, given)
    try:
        admitted = _search(system, guess, every=not (task.convex or task.linear), end=end)
    except (Infeasible, NotConverged) as none:
        may_rest = none.evidence.is_at_rest if isinstance(none, Infeasible) else not task.convex
        if may_rest and (found := _resting(task, given, observable)) is not None:
            return found
        if unpolished is not None:  # there is a solution, to some digits
            raise unpolished from none
        if not (task.convex and may_rest):
            raise
        raise NotConverged(f"{none.found} The limit was not found.", hint="simulate(...) of the same values") from none
    if task.convex:
        return _finish(system, admitted[0], observable)
    solved, gains = _with_gains(system, admitted, observable)
    if task.linear and _is_unstable(gains[0]):  # linear states are unique, and their root is the stable one
        admitted = _search(system, guess, every=True)
        solved, gains = _with_gains(system, admitted, observable)
        stable = [solution for solution, gain in zip(solved, gains, strict=True) if not _is_unstable(gain)]
        if len(stable) == 1:
            return stable[0]
    if len(solved) > 1:
        raise _several(system, admitted, gains)
    if _is_unstable(gain := gains[0]):
        warnings.warn(
            f"The solution at {_where(given)} is unstable: solution.stability = {gain:.6g} is above one, and the "
            "states of the system do not settle in it.",
            UnstableSolution,
            stacklevel=6,
        )
    return solved[0]


def _evolved(
    task: Task, given: Given, observable: Callable[[Any], Expr], guess: Mapping[Symbol, Any] | None
) -> tuple[Solution | None, BranchEnd | None, NotConverged | None]:
    """Follow the state evolution of a convex problem to its one solution.

    Where it does not lead there: where a continuation ended, or why the root that was found has too few digits.
    """
    env = given.environment("numpy")
    evolution, _ = task.evolution(given.laws)
    root, end = evolution.solve(env, guess), None
    if root is None and evolution.patient:
        raise NotConverged(
            f"The closed equations at {_where(given)} did not settle when they were iterated. {evolution.why}".rstrip(),
            hint="guess=, the values of a solution nearby; weaker fields, as with stronger penalties",
        )
    if root is None:
        point, end = _followed_to(task, given, mapped=True)
        if end is not None and end.diverging and not end.still:
            raise _infeasible(given, (), end)
        if point is None and (found := _resting(task, given, observable)) is not None:
            return found, None, None
        root = None if point is None else evolution.near(env, point)
        if root is None and point is not None:
            start = np.array([point[s] for s in task.unknowns])
            return _finish(Reduced.whole(task, given), start, observable), None, None
    if root is None:
        return None, end, None
    whole = Reduced.whole(task, given)
    if inadmissible(whole, root.point, solved=True):
        return None, None, None
    lost = evolution.lost(root.point, env)
    if given.is_quick(task) and root.error < ROUGHEST:
        quick = Solution(task, given, {s: mp.mpf(v) for s, v in root.point.items()}, observable)
        rough = root.error > FINE and quick.digits < SHOWN
        if not rough and not _has_cancelled(quick, task, given):
            return quick, None, None
        if rough and (given.double or not lost):
            known = f"about {quick.digits} digit{'s' if quick.digits > 1 else ''}"
            warnings.warn(f"The solution at {_where(given)} is known to {known}.", RoughSolution, stacklevel=6)
            return quick, None, None

    try:
        return _polished(task, given, root, observable), None, None
    except NotConverged as unpolished:
        return _resting(task, given, observable), None, unpolished


def _polished(task: Task, given: Given, root: Root, observable: Callable[[Any], Expr]) -> Solution:
    """The solution to the digits that are asked for, by Newton steps with the Jacobian of its root in double.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision.
    """
    evolution, exact = task.evolution(given.laws)
    guard = GUARD + evolution.lost(root.point, given.environment("numpy"))

    def refine(guard: int) -> dict[Symbol, Any]:
        with mp.workdps(given.dps + guard + GUARD):
            found = exact_root(evolution, exact, given.environment("mpmath"), root, given.dps + guard)
            return {s: mp.convert(v) for s, v in found.items()}

    return Solution(task, given, refine(guard), observable, refine, guard)


def _followed_to(
    task: Task, given: Given, *, mapped: bool, near: bool = False
) -> tuple[Mapping[Symbol, Any] | None, BranchEnd | None]:
    """The solution that continuation leads to; or where one ended.

    It begins at milder values, and at weak or large loads, or at loads that are ``near``.
    """
    if not near and (point := along_values(task, given, mapped=mapped)) is not None:
        return point, None
    for begin in NEAR if near else (WEAKEST, STRONGEST):
        point, end = along_load(task, given, begin, mapped=mapped)
        if point is not None or end is not None:
            return point, end
    return None, None


def _resting(task: Task, given: Given, observable: Callable[[Any], Expr]) -> Solution | None:
    """The limit in which states vanish, as the minimum of a convex problem may; None if there is none."""
    from symcavity.evaluate.rest import at_rest
    from symcavity.evaluate.resting import RestingSolution

    rest = None if given.solve_for else at_rest(task, given)  # a parameter that is looked for has no limit
    if rest is not None and given.dps > MOST_AT_REST and rest.gap > mp.mpf(10) ** -given.dps:
        raise NotConverged(
            f"At {_where(given)} {rest}. It is known to {MOST_AT_REST} digits only.",
            rest.limits,
            hint=f"dps={MOST_AT_REST}",
        )
    return None if rest is None else RestingSolution(task, given, rest, observable)


# -- searching -----------------------------------------------------------------------------------


def _search(
    system: Reduced, guess: Mapping[Symbol, Any] | None, *, every: bool, end: BranchEnd | None = None
) -> list[np.ndarray]:
    """Find the admissible roots: every one that there is, or the first; a continuation may have ended already.

    Raises
    ------
    Infeasible
        If there is evidence that there are none.
    NotConverged
        If none was found.
    """
    if guess is not None:
        admitted, _ = sift(system, roots_of(system, guess), first=True)
        if admitted:
            return admitted
    roots = roots_of(system, None, STARTS if every else FEW, every=every)
    admitted, rejected = sift(system, roots, first=not every)
    if not admitted and not every and len(system.left) == 1:  # the first root is not always the admissible one
        admitted, rejected = sift(system, roots_of(system, None, every=True))
    if admitted:
        return admitted
    evidence: Any = _nothing_but_zero(system) or explicit_range(system)
    if evidence is None:
        root, evidence = by_load(system)
        if root is None and evidence is None:
            point, evidence = _followed_to(system.task, system.given, mapped=False)
            if point is None and evidence is None and end is not None and end.diverging:
                evidence = end
            root = None if point is None else _of_left(system, point)
        if root is not None:
            admitted, more = sift(system, [root])
            rejected += more
            if admitted:
                return admitted
    if evidence is None and not system.left and rejected:
        evidence = OnlyRoot(system.complete([]), rejected[0])
    if evidence is None and not every and len(system.left) > 1:
        admitted, rejected = sift(system, roots_of(system, None), first=True)
        if admitted:
            return admitted
    if evidence is None and is_mapped(system.task, system.given):  # at large loads the states may be at rest
        point, evidence = _followed_to(system.task, system.given, mapped=True, near=True)
        admitted, more = sift(system, [] if point is None else [_of_left(system, point)])
        rejected += more
        if admitted:
            return admitted
    if evidence is None or (not system.left and any("not a number" in r for r in rejected)):
        raise _not_found(system, rejected)
    raise _infeasible(system.given, rejected, evidence)


def _of_left(system: Reduced, point: Mapping[Symbol, Any]) -> np.ndarray:
    """What of a point belongs to the unknowns that are left."""
    return np.array([point[s] for s in system.left])


def _nothing_but_zero(system: Reduced) -> NothingButZero | None:
    """An equation that is a product of factors that do not vanish."""
    closed = system.task.eliminated
    for expr in system.core:
        factors = Mul.make_args(factor_terms(expr))
        if all(sign_given(f, closed.positive) in (1, -1) for f in factors):
            return NothingButZero(expr)
    return None


def _where(given: Given) -> str:
    shown = {k: v for k, v in given.exact.items() if k not in (N, P)}
    return ", ".join(f"{k} = {v}" for k, v in shown.items()) or "these values"


def _edge(given: Given) -> str:
    """What to try where a parameter that is positive in the theory is zero."""
    zero = [s for s, v in given.exact.items() if v == 0 and s.is_positive]
    return f"{zero[0]} = '1e-6': the equations are singular at 0, its edge" if zero else ""


def _infeasible(given: Given, rejected: Sequence[str], evidence: Any) -> Infeasible:
    reasons = "; ".join(dict.fromkeys(rejected))
    way = f"a {evidence.way} alpha" if evidence.way else "other values of the parameters"
    return Infeasible(
        f"There is no solution at {_where(given)}" + (f": {reasons}." if reasons else ".") + f" {evidence}",
        "values at which the problem has a solution that fixes its states",
        _edge(given) or way,
        evidence,
    )


def _not_found(system: Reduced, rejected: Sequence[str]) -> NotConverged:
    reasons = "; ".join(dict.fromkeys(rejected))
    best: dict[Symbol, float] = {}
    gap = float("nan")
    if system.left and len(system.core) == len(system.left):
        point, gap = nearest_miss(system.residual(), system.unknowns)
        best = system.complete(point)
    elif not system.left:
        best = system.complete([])
    return NotConverged(
        f"No solution was found at {_where(system.given)}"
        + (f" that is admissible: {reasons}." if reasons else ".")
        + " That there is none is not proved.",
        best,
        gap,
        _edge(system.given) or "guess=, the values of a solution nearby; other values of the parameters",
    )


def _with_gains(
    system: Reduced, roots: Sequence[np.ndarray], observable: Callable[[Any], Expr]
) -> tuple[list[Solution], list[float | None]]:
    """The solutions at some roots, and their stabilities."""
    solved = [_finish(system, root, observable) for root in roots]
    return solved, [_gain(solution) for solution in solved]


def _gain(solution: Solution) -> float | None:
    """The stability of a solution, where it is known."""
    try:
        return float(solution.stability)
    except (UnsupportedLaw, NotConverged):
        return None


def _is_unstable(gain: float | None) -> bool:
    return gain is not None and gain > 1 + ROUNDED


def _several(system: Reduced, roots: Sequence[np.ndarray], gains: Sequence[float | None]) -> SeveralSolutions:
    units = system.task.units
    pairs = [(system.complete(root), gain) for root, gain in zip(roots, gains, strict=True)]
    pairs.sort(key=lambda pair: [pair[0][s] for s in system.order])
    hats = {s for unit in units.values() for s in unit.free_symbols if s.name.endswith("_hat")}
    known = system.given.exact
    found = [p | {g: float(unit.xreplace({**known, **p})) for g, unit in units.items()} for p, _ in pairs]
    shown = [*(s for s in system.order if s not in hats), *units]
    lines = [
        "; ".join(f"{s} = {point[s]:.6g}" for s in shown)
        + ("" if gain is None else f"; stability {gain:.4g}" + (" (unstable)" if _is_unstable(gain) else ""))
        for point, (_, gain) in zip(found, pairs, strict=True)
    ]
    return SeveralSolutions(
        f"The equations have {len(found)} admissible solutions at {_where(system.given)}:\n  "
        + "\n  ".join(lines),
        tuple(found),
        "guess=error.solutions[k] for one of them; simulate the system to see which are reached",
    )


# -- finishing -----------------------------------------------------------------------------------


def _has_cancelled(quick: Solution, task: Task, given: Given) -> bool:
    """Whether closed forms over continuous laws lose in double what the equations are about: more digits keep it."""
    if given.double or task.is_numerical or given.sites > MANY_SITES or quick.is_limit:
        return False
    return bool(quick.residual > ROUGHEST)


def _finish(system: Reduced, root: np.ndarray, observable: Callable[[Any], Expr]) -> Solution:
    task, given = system.task, system.given
    if given.is_quick(task):
        found = system.complete(root)
        quick = Solution(task, given, {s: mp.mpf(found[s]) for s in system.order}, observable)
        if not _has_cancelled(quick, task, given):
            return quick
    elif task.is_numerical and not (given.solve_for or task.is_projected):  # averages share their nodes there
        evolution, _ = task.evolution(given.laws)
        if (double := evolution.near(given.environment("numpy"), system.complete(root))) is not None:
            with suppress(NotConverged):
                return _polished(task, given, double, observable)
    values, exact, guard = exactly(system, root)

    def refine(more: int) -> dict[Symbol, Any]:
        finer = system.refined(exact, more)
        with mp.workdps(given.dps + more):
            return dict(zip(system.order, system.complete_exactly(finer), strict=True))

    solution = Solution(task, given, values, observable, refine, guard)
    if any(_is_unseen(v) for v in values.values()) and solution.residual > ROUGHEST:
        # a difference of other unknowns is as small, and no number of digits tells it from zero

        def without(more: int) -> dict[Symbol, Any]:
            return {s: v * 0 if _is_unseen(v) else v for s, v in refine(more).items()}

        solution = Solution(task, given, without(guard), observable, without, guard)
    far = [str(s) for s, v in values.items() if v and mp.isfinite(v) and abs(mp.log10(abs(v))) > RUNAWAY]
    if far and not (solution.is_limit or solution.residual < MISSED):
        raise NotConverged(
            f"{', '.join(far)} may have no value at {_where(given)}: the search went on for ever, to where "
            f"the equations miss by a share of {mp.nstr(solution.residual, 2)}.",
            solution.values,
            float(solution.residual),
            "values at which the problem has a minimum; simulate(...) of the same values",
        )
    return solution


def _is_unseen(value: Any) -> bool:
    """Whether a number is smaller than any digits of the others."""
    return bool(0 < abs(value) < UNSEEN)
