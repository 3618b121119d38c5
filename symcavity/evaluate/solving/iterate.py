"""A closed map, iterated: the state evolution of a declared convex problem, which leads to its solution from afar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.anderson import LONGEST, accelerated
from symcavity.evaluate.averages.cancelling import NOTHING
from symcavity.evaluate.averages.integrals import Grids
from symcavity.evaluate.closed_map import ClosedMap, Root
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.solving.meeting import where_met
from symcavity.evaluate.solving.newton import forget, newton, newton_many
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick

MEMORY = 4  # iterates that the acceleration looks back upon
MOST, UNDEFINED = 200, 12  # evaluations of the map, and how many of them may find no value
ARRIVED, ROUNDED = 1e-13, 1e-11  # a step of the map itself that ends it; below this it may be rounding
PATIENCE = 60  # so many steps of the map are made before Newton's
ROUNDS = 6  # of the map by itself, from what is shared by all sites
MILD = 0.1  # so short a step may be accelerated where the map takes matrices
MET = 1e-6  # how closely conditions are met on the way
OFTEN = 3  # how many times in a row conditions may be missed before a step leaves them alone


def root_from_afar(
    closed: ClosedMap,
    env: Mapping[Any, Any],
    guess: Mapping[Symbol, Any] | None = None,
    scale: float = 1.0,
    shared: float | None = None,
    units: Mapping[Symbol, float] | None = None,
) -> Root | None:
    """Return the root that the map leads to, or None where it leads nowhere.

    Parameters
    ----------
    env : mapping
        Values of the parameters, and the laws of the quenched ones.
    guess : mapping, optional
        Where to begin.
    scale : float
        How large moments are, and what has no sign, where it begins without one.
    shared : float, optional
        What unknowns without a sign are, where it begins without a guess.
    units : mapping, optional
        What some unknowns are where it begins, in the place of one.
    """
    if not closed.is_square:
        return None
    closed.why = ""
    grids = closed.slopes.grids()
    x = closed.start() * np.where(closed.signs < 0, 1.0, scale) * [(units or {}).get(s, 1.0) for s in closed.unknowns]
    if guess is not None and (root := root_near(closed, env, guess)) is not None:
        return root
    if closed.image(x, env, grids) is None:  # responses of unknown sign may have the other one
        x = np.where(closed.is_unsigned, -x, x)
    if shared is not None:
        x = _led(closed, np.where(closed.signs, x, shared), env, grids)
    return evolve(closed, x, env, grids)


def _led(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray:
    """Where a few rounds of the map lead, by steps of any length: responses may become very small at once."""
    for _ in range(ROUNDS):
        met = _met(closed, x, env, grids)
        image = None if met is None else closed.image(met, env, grids)
        if image is None or not closed.admissible(image):
            break
        x = image
    return x


def root_near(closed: ClosedMap, env: Mapping[Any, Any], guess: Mapping[Symbol, Any]) -> Root | None:
    """Return the root that Newton's method leads to from a point nearby, or None where it leads nowhere."""
    if not (closed.is_square and all(s in guess for s in closed.unknowns)):
        return None
    x = np.array([float(guess[s]) for s in closed.unknowns])
    faded = [p for k in closed.fading if not x[p := closed.places[k]]]
    x[faded] = closed.signs[faded] * NOTHING
    follow = evolve if closed.patient else newton
    return follow(closed, x, env, closed.slopes.grids()) if closed.admissible(x) else None


def evolve(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> Root | None:
    """Iterate with acceleration, and return the root that Newton's method reaches from there; None if it strays."""
    now = tolerances()
    trail: list[tuple[np.ndarray, np.ndarray]] = []
    # what holds for the states at every field is linear in their moments, and exact where these are followed
    plain = closed.patient
    place = (lambda t: t) if plain else closed.place
    t = x if plain else closed.chart(x)
    before, tried, close, undefined = np.inf, np.inf, 0.0 if closed.patient else now.close, 0
    missed = again = 0
    reach = now.far + 4 * max((abs(np.log(abs(v))) for v in env.values() if isinstance(v, float) and v), default=0)
    far = np.where(closed.signs != 0, reach, np.inf)
    far[[closed.places[k] for k in closed.fading]] = np.inf
    for n in range(2 * PATIENCE if closed.patient else MOST):
        tick(f"state evolution, step {n}")
        close = now.close if closed.patient and n == PATIENCE else close
        if n >= again:  # conditions are met at every place of the map, as acceleration would leave them
            met = _met(closed, place(t), env, grids)
            missed = 0 if met is not None else missed + 1
            again = n + max(1, missed - OFTEN)  # what is met nowhere is tried less and less often
            if met is not None:
                t = met if plain else closed.chart(met)
        image = closed.image(place(t), env, grids)
        if image is None:
            undefined += 1
            if not trail or undefined > UNDEFINED:
                return None
            # without acceleration, and then back towards where the map was defined
            t = trail[-1][0] + trail[-1][1] if len(trail) > 2 else (t + trail[-1][0]) / 2
            trail = trail[-1:]
            continue
        step = (image if plain else closed.chart(image)) - t
        faded = (closed.signs != 0) & (np.abs(image) <= NOTHING)
        if not plain and np.max(np.abs(step[~faded]), initial=0.0) < now.close:  # all else has nearly settled
            t, step = np.where(faded, t + step, t), np.where(faded, 0.0, step)
        elif not plain:  # what is so far away is not to shorten the steps of all others
            step = np.where(faded, np.clip(step, -LONGEST, LONGEST), step)
        scale = np.where(closed.signs != 0, np.abs(image), 1.0) if plain else np.ones(len(t))
        size = float(np.max(np.abs(step) / scale, initial=0.0))
        if len(trail) > 2 and size > max(now.strayed * before, now.close):  # accelerated too much: back, and without
            t, trail, before = trail[-1][0] + trail[-1][1], [], np.inf
            continue
        short = size < ARRIVED or before <= size < ROUNDED  # steps that rounding makes do not shorten
        arrived, before = closed.patient and short and not closed.rest, size
        if arrived and closed.refined(place(t), env, grids) is False:
            here = closed.without_rounding(place(t), env, grids)
            return Root(dict(zip(closed.unknowns, here.tolist(), strict=True)), np.array([]), closed.slopes, grids)
        if (size < close or not closed.mapped) and size < tried:
            if (root := newton(closed, place(t), env, grids)) is not None:
                return root
            tried, close = size / 4, close / 4
        if not closed.mapped or np.any(np.abs(closed.chart(place(t))) > far):
            return None
        trail = [*trail[-MEMORY:], (t, step)]
        if plain and size > MILD:
            # states have matrices of covariances; a combination with weights of both signs may be none
            t = (t + image) / 2 if _turns_back(trail, scale) else image
        else:
            t = accelerated(trail, scale)
    return None


def _turns_back(trail: list[tuple[np.ndarray, np.ndarray]], scale: np.ndarray) -> bool:
    """Whether the last step undoes one of the two before it: messages and states move in turns."""
    *_, last = (step / scale for _, step in trail)
    return any(np.dot(last, step / scale) < 0 for _, step in trail[-3:-1])


def _met(closed: ClosedMap, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray | None:
    """The point with the equations of unknowns that are no average solved for them, all else as it is.

    None where they are not solved.
    """
    if not (closed.free and closed.mapped and closed.can_be_met):
        return x
    own, count = [closed.unknowns.index(s) for s in closed.free], len(closed.mapped)
    start = closed.chart(x)

    def conditions(t: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
        here = start.copy()
        here[own] = t
        near = np.max(np.abs(t - start[own])) < tolerances().far
        found = closed.gap(closed.place(here), env, grids) if near else None
        if found is None:
            return np.full(len(own), np.nan), lambda: np.eye(len(own))
        with np.errstate(over="ignore"):
            slopes = (found[1] * closed.scale(closed.place(here)))[count:, own]
        return found[0][count:], lambda: slopes

    start[own], missed = where_met(conditions, start[own], MET)
    return None if missed else closed.place(start)


def roots_at_points(
    closed: ClosedMap,
    env: Mapping[Any, Any],
    count: int,
    begin: Callable[[int], Mapping[Symbol, Any] | None] | None = None,
) -> np.ndarray:
    """Return the roots at many points: one row for each unknown; not a number where none was reached.

    Parameters
    ----------
    env : mapping
        Values of the parameters, some of them arrays of ``count`` points; and the laws.
    count : int
    begin : callable, optional
        The solution at the point of a number, where the map does not lead to it.

    Notes
    -----
    One point is solved by itself.  From there Newton's method goes to all others at once, and again from what
    it has reached to the nearest of what is left.
    """
    found = np.full((len(closed.unknowns), count), np.nan)
    arrays = [k for k, v in env.items() if isinstance(v, np.ndarray)]
    if not closed.is_square or not arrays:
        return found
    places = np.array([env[k] for k in arrays])
    scale = np.std(places, axis=1, keepdims=True) + TINIEST
    middle = int(np.argmin(np.sum(((places - np.median(places, axis=1, keepdims=True)) / scale) ** 2, axis=0)))
    if begin is None:
        root = root_from_afar(closed, {k: float(v[middle]) if k in arrays else v for k, v in env.items()})
        first: Mapping[Symbol, Any] | None = None if root is None else root.point
    else:
        first = begin(middle)
    if first is None:
        return found
    found[:, middle] = [float(first[s]) for s in closed.unknowns]
    grids = closed.slopes.grids()
    while True:
        open_ = np.flatnonzero(np.isnan(found[0]))
        known = np.flatnonzero(~np.isnan(found[0]))
        if not open_.size:
            break
        nearest = known[_nearest(places[:, known] / scale, places[:, open_] / scale)]
        here = {k: v[open_] if k in arrays else v for k, v in env.items()}
        moved = newton_many(closed, found[:, nearest], here, grids)
        if np.isnan(moved[0]).all():
            break
        found[:, open_] = moved
    good = np.flatnonzero(~np.isnan(found[0]))
    here = {k: v[good] if k in arrays else v for k, v in env.items()}
    forget(grids)
    changed = closed.refined(found[:, good], here, grids)
    if changed is None:  # some point needs more than all can have: each is solved by itself
        found[:, good] = np.nan
    elif changed:
        found[:, good] = newton_many(closed, found[:, good], here, grids)
    return found


def _nearest(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each wanted point the number of the nearest known one."""
    if known.shape[1] == 1:
        return np.zeros(wanted.shape[1], dtype=int)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(known.T).query(wanted.T)[1])
