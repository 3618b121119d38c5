"""A root in double becomes a solution: to the requested digits, and a limit where states vanish."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from sympy import Dummy, Expr, GreaterThan, S, Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import FlatMinimum, NotConverged, RoughSolution
from symcavity.evaluate.averages.quenched import MANY_SITES
from symcavity.evaluate.closed_map import Root
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solutions.solution import GUARD, Solution
from symcavity.evaluate.solutions.told import SHOWN
from symcavity.evaluate.solving.eliminated import Eliminated, exactly
from symcavity.evaluate.solving.exact_root import exact_root
from symcavity.evaluate.solving.iterate import root_near
from symcavity.evaluate.solving.limit_at_rest import at_rest
from symcavity.evaluate.solving.outcomes import Found, Lost, Tightening
from symcavity.evaluate.solving.recovery import Recovery
from symcavity.evaluate.solving.solution_at_rest import RestingSolution
from symcavity.evaluate.solving.tight import tight_limit
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.averages import Average
from symcavity.model.kinds import N, P
from symcavity.model.quantities import SiteQuantity

PACKAGE = str(Path(__file__).parents[2])  # that of symcavity, not of this room
MISSED, RUNAWAY = 1e-2, 40  # a residual at which a root is missed; powers of ten beyond all unknowns
FINE = 1e-10  # so short a last step leaves ten digits
UNSEEN = mp.mpf(10) ** -2000  # below this no digits of other unknowns tell a difference from zero


def where(given: Given) -> str:
    """The values that were given, in a line."""
    shown = {k: v for k, v in given.told.items() if k not in (N, P)}
    return ", ".join(f"{k} = {v}" for k, v in shown.items()) or "these values"


def warn(message: str, category: type[Warning]) -> None:
    """Warn the caller of the package, from any depth."""
    frames = [frame.filename for frame in inspect.stack(0)]
    inside = [k for k, name in enumerate(frames) if name.startswith(PACKAGE)]
    warnings.warn(message, category, stacklevel=inside[-1] + 2)


def limit_at_rest(
    task: Task, given: Given, observable: Callable[[Any], Expr], recovery: Recovery | None = None
) -> Solution | None:
    """The limit in which states vanish, as the minimum of a convex problem may; None if there is none."""
    rest = None if given.solve_for else at_rest(task, given, recovery)  # a parameter that is looked for has no limit
    if rest is not None and given.dps > IN_DOUBLE and rest.gap > mp.mpf(10) ** -given.dps:
        raise NotConverged(
            f"At {where(given)} {rest}. It is known to {IN_DOUBLE} digits only.",
            rest.limits,
            hint=f"dps={IN_DOUBLE}",
        )
    found = None if rest is None else RestingSolution(task, given, rest, observable)
    return None if found is None or not _is_on_its_branch(task, found) else found


def limit_where_tight(
    task: Task, given: Given, observable: Callable[[Any], Expr], tightening: Tightening
) -> Solution | None:
    """The limit in which multipliers of conditions that are tight go to infinity; None if there is none."""
    found = tight_limit(task, given, tightening)
    return None if found is None else RestingSolution(task, given, found, observable)


def _is_on_its_branch(task: Task, solution: Solution) -> bool:
    """Whether a condition that idles holds at a limit: what no site has a part in is a number there."""
    gaps = [c.lhs - c.rhs for c in task.conditions if isinstance(c, GreaterThan)]
    for gap in gaps:
        if gap.xreplace(dict.fromkeys(gap.atoms(Average), S.One)).has(SiteQuantity, Dummy):
            continue
        with suppress(NotConverged, FlatMinimum):
            if solution.number(gap) < -tolerances().violated:
                return False
    return True


def finished(task: Task, given: Given, root: Root, observable: Callable[[Any], Expr]) -> Found | Lost:
    """The solution at a root of the closed map: in double where that serves, else to the requested digits."""
    if given.is_quick(task) and root.error < tolerances().rough:
        quick = _tidied(task, given, root.point, observable)
        rough = root.error > FINE and quick.digits < SHOWN
        if not rough and not _has_cancelled(quick, task, given):
            return Found(_confirmed(quick, given))
        if rough and (given.double or not task.closed_map(given)[0].lost(root.point, given.environment("numpy"))):
            return Found(_confirmed(quick, given))
    try:
        return Found(_polished(task, given, root, observable))
    except NotConverged as unpolished:
        limit = limit_at_rest(task, given, observable)
        return Lost.of(unpolished, has_root=True) if limit is None else Found(limit)


def _polished(task: Task, given: Given, root: Root, observable: Callable[[Any], Expr]) -> Solution:
    """The solution to the requested digits, by Newton steps with the Jacobian of its root in double.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision.
    """
    closed, exact = task.closed_map(given)
    guard = GUARD + closed.lost(root.point, given.environment("numpy"))

    def refine(guard: int) -> dict[Symbol, Any]:
        with mp.workdps(given.dps + guard + GUARD):
            found = exact_root(closed, exact, given.environment("mpmath"), root, given.dps + guard)
            return {s: mp.convert(v) for s, v in found.items()}

    return Solution(task, given, refine(guard), observable, refine, guard)


def _tidied(task: Task, given: Given, found: Mapping[Any, float], observable: Callable[[Any], Expr]) -> Solution:
    """The solution in double, with zeros for what rounding alone tells from zero, if that is one.

    A covariance that vanishes by a symmetry comes out as rounding, of which no digit is right.
    """
    values = {s: mp.mpf(v) for s, v in found.items()}
    quick = Solution(task, given, values, observable)
    if quick.digits >= SHOWN:
        return quick
    closed, _ = task.closed_map(given)
    loose = [s for s, sign in zip(closed.unknowns, closed.signs, strict=True) if sign == 0 and s in values]
    noise = {s: mp.zero for s in loose if 0 < abs(values[s]) < tolerances().faint}
    tidy = Solution(task, given, {**values, **noise}, observable) if noise else quick
    return tidy if tidy.digits >= SHOWN else quick


def _confirmed(quick: Solution, given: Given) -> Solution:
    """A solution in double that the finer averages of its residual confirm, with a warning where they leave few digits.

    Raises
    ------
    NotConverged
        If they do not: what solves the equations on coarser ones is then no root of them.
    """
    if quick.is_limit:  # with values at infinity, where the equations have none
        return quick
    if quick.residual >= MISSED:
        raise NotConverged(
            f"The point that was found at {where(given)} violates the equations by a share of "
            f"{mp.nstr(quick.residual, 2)} when their averages are taken with more nodes.",
            quick.values,
            float(quick.residual),
            "values at which the problem has a minimum; simulate(...) of the same values",
        )
    if quick.digits < SHOWN:
        known = f"about {quick.digits} digit{'s' if quick.digits > 1 else ''}"
        warn(f"The solution at {where(given)} is known to {known}.", RoughSolution)
    return quick


def _has_cancelled(quick: Solution, task: Task, given: Given) -> bool:
    """Whether closed forms over continuous laws lose in double what the equations are about: more digits keep it."""
    if given.double or task.is_numerical or given.sites > MANY_SITES or quick.is_limit:
        return False
    return bool(quick.residual > tolerances().rough)


def finish(system: Eliminated, root: np.ndarray, observable: Callable[[Any], Expr]) -> Solution:
    """The solution at a root of what elimination leaves.

    Raises
    ------
    NotConverged
        If it has too few digits, or none.
    """
    task, given = system.task, system.given
    if given.is_quick(task):
        found = system.complete(root)
        quick = _tidied(task, given, {s: found[s] for s in system.order}, observable)
        if not _has_cancelled(quick, task, given):
            return _confirmed(quick, given)
    elif task.is_numerical and not (given.solve_for or task.is_projected):  # averages share their nodes there
        closed, _ = task.closed_map(given)
        if (double := root_near(closed, given.environment("numpy"), system.complete(root))) is not None:
            with suppress(NotConverged):
                return _polished(task, given, double, observable)
    values, exact, guard = exactly(system, root)

    def refine(more: int) -> dict[Symbol, Any]:
        finer = system.refined(exact, more)
        with mp.workdps(given.dps + more):
            return dict(zip(system.order, system.complete_exactly(finer), strict=True))

    solution = Solution(task, given, values, observable, refine, guard)
    if any(_is_unseen(v) for v in values.values()) and solution.residual > tolerances().rough:
        # a difference of other unknowns is as small, and no number of digits tells it from zero

        def without(more: int) -> dict[Symbol, Any]:
            return {s: v * 0 if _is_unseen(v) else v for s, v in refine(more).items()}

        solution = Solution(task, given, without(guard), observable, without, guard)
    far = [str(s) for s, v in values.items() if v and mp.isfinite(v) and abs(mp.log10(abs(v))) > RUNAWAY]
    if far and not (solution.is_limit or solution.residual < MISSED):
        raise NotConverged(
            f"{', '.join(far)} may have no value at {where(given)}: the search diverged, and where it stopped "
            f"the equations are violated by {mp.nstr(solution.residual, 2)} of their size.",
            solution.values,
            float(solution.residual),
            "values at which the problem has a minimum; simulate(...) of the same values",
        )
    return solution


def _is_unseen(value: Any) -> bool:
    """Whether a number is smaller than any digits of the others."""
    return bool(0 < abs(value) < UNSEEN)
