"""Continuation: follow a solution along the load, and keep what its end proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.evaluate.bracket import root_between
from symcavity.evaluate.closed_map import ROUNDED
from symcavity.evaluate.given.values import GUARD, Given, Task
from symcavity.evaluate.solving.admissible import inadmissible, sift
from symcavity.evaluate.solving.eliminated import Eliminated, Point, roots_of
from symcavity.evaluate.solving.evidence import BranchEnd, LoadRange
from symcavity.evaluate.solving.iterate import root_from_afar, root_near
from symcavity.evaluate.solving.roots import FEW, STARTS
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.evaluate.watch import tick
from symcavity.model.kinds import N, P, alpha
from symcavity.model.quantities import SiteQuantity

WEAKEST, STRONGEST = 1e-3, 1e3  # shares of the load at which a continuation begins
FINEST, TINY = 1e-6, 1e-9
MOST = 300  # steps on one way
FIRST, SHORTEST = 0.5, 0.02  # factors of e by which a parameter is changed at a given load, at first and at the least
REACH = 40.0  # and how far in all
NEARBY = 2.0  # factors of e from one within which parameters are not followed


# -- a parameter at a given load ------------------------------------------------------------------


def explicit_range(system: Eliminated) -> LoadRange | None:
    """The range of the load, where it is an explicit function of the parameter that is sought."""
    task, given = system.task, system.given
    if len(given.solve_for) != 1 or alpha not in task.with_load.definitions or alpha not in given.exact:
        return None
    expr = task.with_load.explicit(alpha)
    (other,) = given.solve_for
    if expr.free_symbols - set(given.exact) - {other} - {alpha} or expr.has(SiteQuantity):
        return None
    x = np.exp(np.linspace(-20, 4, 400)) if other.is_nonnegative else np.sinh(np.linspace(-6, 6, 400))
    env = {**given.environment("numpy"), other: x}
    with np.errstate(all="ignore"):
        y = np.broadcast_to(np.asarray(task.compiled(expr, "numpy")(env), dtype=float), x.shape)
    y = y[np.isfinite(y)]
    if not y.size:
        return None
    found = LoadRange(other, float(given.exact[alpha]), float(y.min()), float(y.max()), y.size)
    return found if found.excludes else None


def root_by_load(system: Eliminated) -> np.ndarray | None:
    """For a parameter sought at a given load: follow the load as a function of the parameter to the one given."""
    task, given = system.task, system.given
    if len(given.solve_for) != 1 or alpha not in given.exact:
        return None
    (parameter,) = given.solve_for
    if not parameter.is_nonnegative:
        return None
    exact = {k: v for k, v in given.exact.items() if k not in (alpha, N, P)}
    wanted = float(given.exact[alpha])
    states: dict[float, Point] = {}

    def excess(t: float) -> float:
        inner = Eliminated.of(task, replace(given, exact={**exact, parameter: float(np.exp(t))}, solve_for=(alpha,)))
        near = min(states, key=lambda s: abs(s - t), default=None)
        guess = states[near] if near is not None else None
        plain = replace(inner, given=replace(inner.given, double=True))
        admitted, _ = where_defined(lambda: sift(plain, roots_of(inner, guess), first=task.convex)) or ([], [])
        if not admitted or (len(admitted) > 1 and not task.convex):
            return float("nan")
        point = inner.complete(admitted[0])
        if not np.isfinite(point[alpha]):  # an overflow is no load
            return float("nan")
        states[t] = point
        return float(np.log(states[t][alpha] / wanted))

    bracket = _bracket(excess)
    if bracket is None:
        return None
    t = root_between(excess, *bracket, xtol=1e-10)
    point = {**states.get(t, states[min(states, key=lambda s: abs(s - t))]), parameter: float(np.exp(t))}
    polished = root_near(system.frame[0], given.environment("numpy"), point)
    return None if polished is None else system.of_left(polished.point)


def _bracket(f: Callable[[float], float]) -> tuple[float, float] | None:
    """Search a change of sign on a line, outwards from 0.

    Where the function is undefined the step was too long, or the function ends: steps become shorter, and then the
    direction ends.
    """
    centre = f(0.0)
    if not np.isfinite(centre):
        return None
    ends = {1: (0.0, centre, FIRST), -1: (0.0, centre, FIRST)}
    while ends:
        for way in list(ends):
            t, value, step = ends[way]
            if abs(t) > REACH:
                del ends[way]
                continue
            here = f(t + way * step)
            if not np.isfinite(here):
                ends[way] = (t, value, step / 2)
                if step < SHORTEST:
                    del ends[way]
            elif here * value <= 0:
                return min(t, t + way * step), max(t, t + way * step)
            else:
                ends[way] = (t + way * step, here, step * 1.15)
    return None


# -- following a solution ---------------------------------------------------------------------------


def _followed(
    task: Task,
    given: Given,
    at: Callable[[float], Mapping[Symbol, Any]],
    length: float,
    attempt: Callable[[Task, Given, Point | None], Point | None],
) -> list[tuple[float, Point]]:
    """Follow the solution along values that change from t = 0 to t = 1, by a number of factors of e in all.

    Returns where it was found by an ``attempt`` at given values, next to a point if there is one; nothing if there is
    none to begin with.
    """

    def there(t: float, start: Point | None) -> Point | None:
        tick(f"a solution nearby, {t:.0%} of the way to the values given")
        return attempt(task, replace(given, exact=dict(at(t)), double=True), start)

    t, step = 0.0, 1.0 / length
    state = there(t, None)
    if state is None:
        return []
    path = [(t, state)]
    while t < 1 and step * length > FINEST and len(path) < MOST:
        following = min(1.0, t + step)
        found = there(following, _ahead(path, following) if len(path) > 1 else state)
        if found is None:
            step /= 2
            continue
        state, t, step = found, following, step * 1.3
        path.append((t, state))
    return path


def _on_map(task: Task, given: Given, start: Point | None) -> Point | None:
    """The solution at some values next to another one, by the closed equations as they are.

    What doubles cannot follow, because terms cancel, is followed with more digits where nothing is integrated.
    """
    closed, _ = task.closed_map(given)
    env = given.environment("numpy")
    root = root_from_afar(closed, env) if start is None else root_near(closed, env, start)
    if root is None and start is not None and _may_cancel(task, given, start):
        return _exact_step(Eliminated.whole(task, given), start)
    return None if root is None else root.point


def _on_core(task: Task, given: Given, start: Point | None, *, finely: bool) -> Point | None:
    """The same by what elimination leaves of the equations, with more digits if it is wanted ``finely``."""
    here = Eliminated.of(task, given)
    if start is None or not here.left:
        admitted, _ = sift(here, roots_of(here, None, FEW if task.convex else STARTS), first=task.convex)
        return here.complete(admitted[0]) if len(admitted) == 1 or (admitted and task.convex) else None
    root = root_near(here.frame[0], given.environment("numpy"), start)
    found = here.complete(here.of_left(root.point)) if root is not None else None
    if found is not None and not inadmissible(here, found):
        return found
    return _exact_step(here, start) if finely and _may_cancel(task, given, start) else None


def _may_cancel(task: Task, given: Given, start: Point) -> bool:
    """Whether more digits may help: in closed forms, and in averages over continuous laws of what almost vanishes."""
    almost = any(abs(v) < TINY for v in start.values())
    return not task.is_numerical and (almost or not given.is_ruled(task))


def _ahead(path: list[tuple[float, Point]], t: float) -> Point:
    """Where the last two points lead: powers of what changes are straight lines in logarithms."""
    (before, old), (here, new) = path[-2:]
    share = (t - here) / (here - before)
    return {
        s: v * min(max(v / old[s], 1e-9), 1e9) ** share if v * old[s] > 0 else v + share * (v - old[s])
        for s, v in new.items()
    }


def _exact_step(here: Eliminated, start: Point) -> Point | None:
    """The root next to a point, with digits enough for terms that cancel; None if there is none."""
    guard = here.given.guards[0] + GUARD

    def at_root() -> Point:
        root = here.refined([start[s] for s in here.left], guard)
        with mp.workdps(here.given.dps + guard):
            return {s: float(v) for s, v in zip(here.order, here.complete_exactly(root), strict=True)}

    if (found := where_defined(at_root, also=(TypeError, ValueError))) is None:
        return None
    lasting = [s for s in here.left if s not in here.task.responses or abs(start[s]) > ROUNDED]
    far = any(not found[s] * start[s] > 0 or abs(np.log(found[s] / start[s])) > 3.0 for s in lasting)
    return None if far or inadmissible(here, found, solved=True) else found


def along_values(task: Task, given: Given, *, mapped: bool) -> Point | None:
    """Follow the solution from where all positive parameters are one, at the same load; return it.

    By the closed equations as a map, or by what elimination leaves of them.
    """
    sizes = {k: float(v) for k, v in given.exact.items() if k.is_positive and k in task.parameters}
    far = {k: float(np.log(v)) for k, v in sizes.items() if v != 0}
    length = max(map(abs, far.values()), default=0.0)
    if not NEARBY < length < np.inf:
        return None

    def values(t: float) -> dict[Symbol, Any]:
        return {**given.exact, **({k: float(np.exp(t * v)) for k, v in far.items()} if t < 1 else {})}

    path = _followed(task, given, values, length, _on_map if mapped else partial(_on_core, finely=True))
    return path[-1][1] if path and path[-1][0] == 1 else None


def along_load(
    task: Task, given: Given, begin: float, *, mapped: bool
) -> tuple[Point | None, BranchEnd | None]:
    """For a given load: follow the solution from a share of it, such as a weak load.

    Returns it, or where the solution ended: where a norm diverges, or a state vanishes.
    """
    if given.solve_for or alpha not in given.exact:
        return None, None

    def at(t: float) -> dict[Symbol, Any]:
        share = begin ** (1 - t)
        return {k: float(v) * share if k in (alpha, P) else v for k, v in given.exact.items()}

    attempt = _on_map if mapped else partial(_on_core, finely=False)
    places = _followed(task, given, at, abs(float(np.log(begin))), attempt)
    if not places:
        return None, None
    path = [point for _, point in places]
    state, share = path[-1], begin ** (1 - places[-1][0])
    if places[-1][0] == 1:
        return state, None
    sizes = {s: np.array([abs(float(p[s])) for p in path]) for s in task.unknowns if s in state}
    way, even = [t for t, _ in places], np.linspace(0, places[-1][0], MOST)  # steps are short near the end
    if len(places) > 1:
        last = (way[-1] - way[-2]) * abs(float(np.log(begin)))
        with np.errstate(all="ignore"):
            least = tolerances().steep * last
            sizes = {s: v for s, v in sizes.items() if not v[-1] or abs(np.log(v[-1] / v[-2])) > least}
    gone = tuple(s for s, v in sizes.items() if v[-1] < tolerances().vanished * v.max())
    typical = {s: float(np.median(np.interp(even, way, v))) for s, v in sizes.items()}
    grown = tuple(s for s, v in sizes.items() if v[-1] > tolerances().diverged * typical[s] and v[-1] == v.max())
    stuck = not gone and not grown
    if stuck or abs(np.log(share)) < 10 * FINEST:  # got stuck, or too close by to be told from the end
        return None, None
    still = any(s not in task.responses and s.is_positive for s in gone)
    load = float(given.exact[alpha])
    return None, BranchEnd(share * load, load, gone, grown, still, state)
