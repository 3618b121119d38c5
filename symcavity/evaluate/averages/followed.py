"""The minimum that a state reaches downhill from a start, as a function of a force: where it jumps.

The start is the lowest minimum of ``well(x) - z*x``; the slope of the whole is ``psi(x) - z``.  A state moves against
that slope at its start, and stops where it vanishes for the first time.  As the force grows the state only moves up.
It jumps where the start does; where a start is at rest, and repels; and where a minimum ends, to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from symcavity.evaluate.averages.wells import Hull, Turning, ends_of, hull_around, hull_of, in_rows, scanned, touching

FollowedLaw = Callable[[Any], tuple[Any, ...]]  # slope and curvature of the whole; the well, its slope and curvature

STEPS, BESIDE = 200, 2.0**-20
START, REST, FOLD = range(3)  # why a state jumps: its start does; it repels; a minimum ends


@dataclass(frozen=True)
class Jump:
    """A jump of the state of one row, by the points between which things lie.

    Attributes
    ----------
    why : int
        ``START``, ``REST`` or ``FOLD``.
    places : (int, int)
        Which jump of the start; or the points around the place of rest, or around the end of a minimum.
    left, right : int or None
        The first of the two points between which an end lies; None of the end of a minimum.
    """

    why: int
    places: tuple[int, int]
    left: int | None
    right: int | None


def followed_of(law: FollowedLaw, reach: float, shape: Sequence[int], *, each: bool = False) -> Hull:
    """The minima that are reached, over all points at which the slopes of the well and of the whole are within reach.

    Raises
    ------
    NotConverged
        If one of these slopes does not rise so far.
    """
    rows, at = int(np.prod(shape)), in_rows(law, shape)

    def begun(x: np.ndarray) -> list[np.ndarray]:
        _, _, well, still, stiff = at(x)
        return [still, stiff, well]

    with np.errstate(all="ignore"):
        starts = hull_of(lambda x: _start(law(x)), reach, shape, each=each)
        both = np.array([ends_of(f, reach, rows, each=each) for f in (at, begun)])
        x = scanned(at, both[:, 0].min(axis=0), both[:, 1].max(axis=0))
        x = np.sort(np.concatenate([x, starts.left, starts.right], axis=-1))
        psi, bend, _, still, _ = at(x)
        every = [
            list(_jumps(x[row], psi[row], bend[row], still[row], _gaps_of(starts, row)))
            if np.isfinite(psi[row]).all() else []
            for row in range(rows)
        ]  # fmt: skip
        return hull_around(x, psi, *_polished(at, x, every, starts))


def _start(found: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """The slope of the well, its curvature, and the well."""
    return found[3], found[4], found[2]


def _gaps_of(starts: Hull, row: int) -> list[tuple[int, float, float, float]]:
    """The jumps of the start: which one, from where to where, and at which force."""
    rows = zip(starts.left[row], starts.right[row], starts.slope[row], strict=True)
    return sorted(((k, a, b, z) for k, (a, b, z) in enumerate(rows) if b > a), key=lambda gap: gap[1])


# -- on points ---------------------------------------------------------------------------------------


def _jumps(
    x: np.ndarray, psi: np.ndarray, bend: np.ndarray, still: np.ndarray, gaps: Sequence[tuple[int, float, float, float]]
) -> Iterator[Jump]:
    """The jumps of one row, from low forces to high ones."""
    pulled = psi - still  # what is added to the slope of the well: a state moves against it
    first = 0
    parts: list[tuple[int, int, float, float, Any]] = []  # points that are starts, their forces, what ends them
    for k, a, b, z in gaps:
        parts.append((first, int(np.searchsorted(x, a)), still[first], z, (START, (k, k))))
        first = int(np.searchsorted(x, b))
    parts.append((first, len(x) - 1, still[first], still[-1], None))
    split: list[tuple[int, int, float, float, Any]] = []
    for begin, end, low, high, why in parts:
        sign = np.sign(pulled[begin : end + 1])
        moving = begin + np.flatnonzero(sign)
        before, force = begin, low
        for j, k in pairwise(moving.tolist()):
            if pulled[j] * pulled[k] > 0:
                continue
            share = pulled[j] / (pulled[j] - pulled[k])
            rest = still[j] + share * (still[k] - still[j])
            split.append((before, j, force, rest, (REST, (j, k)) if pulled[j] > 0 else None))
            before, force = k, rest
        split.append((before, end, force, high, why))
    reached: tuple[Any, ...] | None = None
    for begin, end, low, high, why in split:
        way = -1 if np.sum(pulled[begin : end + 1]) > 0 else 1
        inner, entered, left = _one_way(psi, bend, (begin, end), (low, high), way)
        if reached is not None and reached[1] is not None and entered is not None and entered > reached[0]:
            why_there, places = reached[1]
            yield Jump(why_there, places, reached[0], entered)
        yield from inner
        reached = None if left is None else (left, why)


def _one_way(
    psi: np.ndarray, bend: np.ndarray, ends: tuple[int, int], forces: tuple[float, float], way: int
) -> tuple[list[Jump], int | None, int | None]:
    """Where minima end as states move one way from starts, and after which points the first and last of them are."""
    begin, end = ends
    if way < 0:  # the mirror image
        inner, entered, left = _one_way(
            -psi[::-1], bend[::-1], (len(psi) - 1 - end, len(psi) - 1 - begin), (-forces[1], -forces[0]), 1
        )
        last = len(psi) - 2
        turned = [
            Jump(FOLD, (last - j.places[0], last - j.places[0] + 1), None if j.right is None else last - j.right, None)
            for j in reversed(inner)
        ]
        return turned, None if left is None else last - left, None if entered is None else last - entered
    inner, record, place, first = list[Jump](), forces[0], begin, -1
    for j in range(begin, len(psi)):
        if psi[j] < record or (psi[j] == record and j > begin):
            continue
        if first < 0:
            first = max(j - 1, 0)
        elif j > place + 1:  # in between it falls
            top = place if bend[place] > 0 else max(place - 1, 0)
            inner.append(Jump(FOLD, (top, top + 1), None, j - 1))
        if psi[j] >= forces[1]:
            return inner, first, max(j - 1, 0)
        place, record = j, psi[j]
    return inner, first if first >= 0 else None, len(psi) - 2


# -- to all digits -----------------------------------------------------------------------------------


def _polished(
    at: Callable[[np.ndarray], Sequence[np.ndarray]], x: np.ndarray, every: Sequence[Sequence[Jump]], starts: Hull
) -> tuple[tuple[Any, Any, Any], Turning]:
    """The ends of all jumps and their forces, and what decides these; those that fill up have no width."""
    shape = len(every), max(map(len, every))
    rows = [(row, n, jump) for row, jumps in enumerate(every) for n, jump in enumerate(jumps)]
    why = np.full(shape, FOLD)
    around, ends = np.empty((2, *shape)), np.empty((2, 2, *shape))
    around[:], ends[:] = x[:, -1:], x[:, -1:]
    for row, n, jump in rows:
        why[row, n] = jump.why
        j, k = jump.places
        around[:, row, n] = (starts.left[row, j], starts.right[row, j]) if jump.why == START else x[row, [j, k]]
        for side, first in enumerate((jump.left, jump.right)):
            if first is not None:
                ends[side, :, row, n] = x[row, [first, first + 1]]

    def standing(y: np.ndarray) -> np.ndarray:
        found = at(y)
        return np.where(why == REST, found[0] - found[3], found[1])

    held = np.where(why == START, around[:1], around)  # a start is where it is
    middle = _root(standing, held[0], held[1])
    places = (np.where(why == START, around[0], middle), np.where(why == START, around[1], middle))
    there = [at(place) for place in places]
    force, weights = np.empty(shape), np.zeros((4, *shape))
    force[:] = there[0][0]
    for row, n, jump in rows:
        told = [[float(v[row, n]) for v in one] for one in there]
        own = float(places[0][row, n]), float(places[1][row, n])
        force[row, n], weights[:, row, n] = decided(jump.why, own, told)
    sides, flat = [], np.zeros((2, *shape), dtype=bool)
    for row, n, jump in rows:
        flat[:, row, n] = jump.left is None, jump.right is None
    for side in range(2):
        found = _root(lambda y: at(y)[0] - force, ends[side, 0], ends[side, 1])
        sides.append(np.where(flat[side], middle, found))
    beside = (sides[1] - sides[0]) * BESIDE  # where a minimum ends slopes are infinite: what is there is a mean
    around_flat = np.where(why == FOLD, beside, 0.0)
    places = places[0] - around_flat, places[1] + around_flat
    rise, fall, still, whole = weights
    return (sides[0], sides[1], force), Turning(places, (rise, fall), still, whole, why, flat)


def decided(why: int, places: Sequence[Any], there: Sequence[Sequence[Any]]) -> tuple[Any, tuple[Any, ...]]:
    """The force at which a state jumps, and how it moves with the well, its slope, and that of the whole."""
    psi, bend, well, still, stiff = there[0]
    if why == START:
        across = places[1] - places[0]
        return (there[1][2] - well) / across, (-1 / across, 1 / across, 0, 0)
    if why == FOLD:
        return psi, (0, 0, 0, 1)
    share = stiff / (bend - stiff)  # the place of rest moves by what is added there
    return still, (0, 0, 1 + share, -share)


def _root(f: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Roots between points, by secants that keep them (Illinois); the nearer end where there is no change of sign."""
    at_low, at_high = f(low), f(high)
    side = np.zeros(low.shape)
    for _ in range(STEPS):
        x = (low * at_high - high * at_low) / (at_high - at_low)
        todo = (np.sign(at_low) * np.sign(at_high) < 0) & (np.minimum(low, high) < x) & (x < np.maximum(low, high))
        if not todo.any():
            break
        x = np.where(todo, x, low)
        value = f(x)
        above = todo & (np.sign(value) == np.sign(at_high))
        below = todo & ~above
        at_low = np.where(above & (side == 1), at_low / 2, at_low)
        at_high = np.where(below & (side == -1), at_high / 2, at_high)
        high, at_high = np.where(above, x, high), np.where(above, value, at_high)
        low, at_low = np.where(below, x, low), np.where(below, value, at_low)
        side = np.where(above, 1, np.where(below, -1, side))
    return np.where(np.abs(f(low)) <= np.abs(f(high)), low, high)


def exact_jump(law: FollowedLaw, why: int, places: tuple[Any, Any], ends: tuple[Any, Any]) -> tuple[Any, Any]:
    """The ends of a jump in numbers of any precision."""
    if why == START:
        places = touching(lambda x: _start(law(x)), *places)
    else:
        gap = (lambda v: v[0] - v[3]) if why == REST else (lambda v: v[1])
        places = (_secant(lambda x: gap(law(x)), sum(places) / 2),) * 2
    force, _ = decided(why, places, [law(place) for place in places])
    flat = min(ends, key=lambda end: abs(end - places[0])) if why == FOLD else None
    left, right = (places[0] if end == flat else _secant(lambda x: law(x)[0] - force, end) for end in ends)
    return left, right


def _secant(f: Callable[[Any], Any], x: Any) -> Any:
    """A simple root near a place."""
    before, value = x * (1 + BESIDE) + BESIDE**2, f(x)
    at_before, moved = f(before), None
    while value != at_before:
        step = value * (x - before) / (value - at_before)
        if moved is not None and abs(step) >= moved / 2:  # what does not shrink is rounding
            break
        before, at_before, x, moved = x, value, x - step, abs(step)
        value = f(x)
    return x
