"""The lowest minimum of a tilted well: the tilts at which it jumps, and the gain of its average as jumps move.

The minimum of ``well(x) - z*x`` lies where the well touches its convex hull.  Between the two points of contact of a
common tangent it does not touch; there the minimum jumps, at the z that is the slope of the tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import NotConverged
from symcavity.evaluate.constants import BRACKETED

Law = Callable[[np.ndarray], tuple[Any, Any, Any]]  # the slope of the well, its curvature, and the well

EVEN, LEVELLED, CLOSER, OUTWARDS = 129, 128, 17, 40  # points: at equal distances or changes; at a turn; outwards
ZOOMS, POLISHED = 2, 40
SIZES, STRIDE = 320, 8  # powers of two at which places are looked for
DONE, ROUNDING = 4e-15, 1e-14


@dataclass(frozen=True)
class Turning:
    """How the slopes at gaps move with what a well and slopes are at two places.

    Attributes
    ----------
    places : (ndarray, ndarray)
    rise : (ndarray, ndarray)
        The weights of what the well gains there.
    still, whole : ndarray
        The weights of what its slope gains at the first place, and of the mean of what that of the whole gains at both.
    why : ndarray of int or None
        What is at the places of each gap, where it is not points of contact.
    flat : ndarray of bool, or None
        Whether the left end of each gap is the end of a minimum, and whether the right one is: it moves along.
    """

    places: tuple[np.ndarray, np.ndarray]
    rise: tuple[np.ndarray, np.ndarray]
    still: np.ndarray
    whole: np.ndarray
    why: np.ndarray | None = None
    flat: np.ndarray | None = None

    def reshaped(self, shape: Sequence[int]) -> Turning:
        """The same, one row for each joint value."""
        one = [v.reshape(*shape, v.shape[-1]) for v in (*self.places, *self.rise, self.still, self.whole)]
        flat = None if self.flat is None else self.flat.reshape(2, *shape, self.flat.shape[-1])
        return Turning((one[0], one[1]), (one[2], one[3]), one[4], one[5], flat=flat)


@dataclass(frozen=True)
class Hull:
    """The convex hulls of some wells, one row each.

    Attributes
    ----------
    x, z : list of ndarray
        Points of each hull, and its slope there.
    left, right, slope : ndarray
        The common tangents: points of contact and slopes, one row for each well; those without width fill up.
    turning : Turning or None
        By what the slopes move, where it is not by the points of contact.
    """

    x: list[np.ndarray]
    z: list[np.ndarray]
    left: np.ndarray
    right: np.ndarray
    slope: np.ndarray
    turning: Turning | None = None

    @property
    def turns(self) -> Turning:
        """By what the slopes at gaps move: of common tangents by the rise of the well between points of contact."""
        if self.turning is not None:
            return self.turning
        across = self.right - self.left
        rise = 1 / np.where(across == 0, 1.0, across)
        none = np.zeros_like(rise)
        return Turning((self.left, self.right), (-rise, rise), none, none)

    @property
    def has_gaps(self) -> bool:
        """Whether any well is above its hull anywhere."""
        return bool(np.any(self.right > self.left))

    def edges(self, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the hulls have some slopes, about, and the ends of all gaps; with the slope at each, in their order."""
        inner = np.array([np.interp(targets, z, x) for x, z in zip(self.x, self.z, strict=True)])
        for k in range(self.left.shape[1]):
            a, b = self.left[:, k, None], self.right[:, k, None]
            inner = np.where((inner > a) & (inner < b), a, inner)
        x = np.concatenate([inner, self.left, self.right], axis=-1)
        z = np.concatenate([np.broadcast_to(targets, inner.shape), self.slope, self.slope], axis=-1)
        order = np.argsort(x, axis=-1, kind="stable")
        return np.take_along_axis(x, order, axis=-1), np.take_along_axis(z, order, axis=-1)


@dataclass(frozen=True)
class Gaps:
    """Which nodes of an average stand at the ends of gaps, and at the places that decide where jumps move.

    Attributes
    ----------
    inside : ndarray of bool
    ends : ndarray
        Where they stand: of those in a gap a quarter each at its ends and at two places.
    mark : ndarray
        Shares of one at the lower ends of gaps, and of minus one at the upper ones; zero elsewhere.
    gap : ndarray of int
        In which gap they are.
    seen : (ndarray of int, ndarray of int)
        The nodes at the two places of each gap.
    turns : Turning or None
    """

    inside: Any
    ends: Any
    mark: Any
    gap: Any
    seen: Any
    turns: Turning | None

    @classmethod
    def of(
        cls, y: np.ndarray, left: np.ndarray, right: np.ndarray, turns: Turning, bounds: tuple[Any, Any]
    ) -> Gaps:
        """Those of nodes in panels that end where gaps do."""
        shape = np.broadcast_shapes(y.shape[:-1], left.shape[:-1])
        y = np.broadcast_to(y, (*shape, y.shape[-1]))
        inside, ends = np.zeros(y.shape, dtype=bool), y.copy()
        mark, gap = np.zeros(y.shape), np.zeros(y.shape, dtype=int)
        seen = tuple(np.zeros((*shape, left.shape[-1]), dtype=int) for _ in range(2))
        for k in range(left.shape[-1]):
            a, b, *places = (v[..., k, None] for v in (left, right, *turns.places))
            own, flat = (y > a) & (y < b), [False, False] if turns.flat is None else turns.flat[..., k, None]
            inside |= own
            count = np.maximum(np.sum(own, axis=-1, keepdims=True), 4)
            part = 4 * (np.cumsum(own, axis=-1) - 1) // count  # which quarter of those in the gap
            shares = [np.where(still, 0.0, share) for still, share in zip(flat, (1.0, -1.0), strict=True)]
            stands = np.where(flat[0], b, a), np.where(flat[1], a, b)
            for n, (end, share) in enumerate(zip((*stands, *places), (*shares, 0.0, 0.0), strict=True)):
                here = own & (part == n)
                ends = np.where(here, end, ends)
                mark = np.where(here, share / np.maximum(np.sum(here, axis=-1, keepdims=True), 1), mark)
                if n > 1:
                    seen[n - 2][..., k] = np.argmax(here, axis=-1)
            gap = np.where(own, k, gap)
        for bound, beyond in zip(bounds, (np.less, np.greater), strict=True):
            if bound is not None:
                mark = np.where(beyond(ends, np.asarray(bound, dtype=float)[..., None]), 0.0, mark)
        return cls(inside, ends, mark, gap, seen, turns)

    def tilt(self, well: Any, still: Any = 0.0, whole: Any = 0.0) -> Any:
        """How the slope at each gap moves, as a well and slopes do by some values at the nodes."""
        if self.turns is None:
            return 0.0

        def at(values: Any, n: int) -> Any:
            values = np.broadcast_to(np.asarray(values, dtype=float), self.ends.shape)
            return np.take_along_axis(values, self.seen[n], axis=-1)

        moved = self.turns.still * at(still, 0) + self.turns.whole * (at(whole, 0) + at(whole, 1)) / 2
        moved = moved + sum(weight * at(well, n) for n, weight in enumerate(self.turns.rise))
        found = np.take_along_axis(np.broadcast_to(moved, self.seen[0].shape), self.gap, axis=-1)
        return np.where(self.mark == 0, 0.0, found)

    def moved(self, tilt: Any, psi: Any) -> Any:
        """What averages gain at the ends of gaps, by the density there: tangents turn, and so does the slope."""
        return 0.0 if self.mark is None else self.mark * (tilt - psi)

    def weight(self, jumps: Any) -> Any:
        """The weight of each jump, at its ends."""
        return 0.0 if self.mark is None else np.where(self.mark == 0, 0.0, jumps)


NO_GAPS = Gaps(None, None, None, None, None, None)


def hull_of(law: Law, reach: float, shape: Sequence[int], *, each: bool = False) -> Hull:
    """The convex hulls of wells, over all points at which their slopes are within reach.

    Raises
    ------
    NotConverged
        If a slope does not rise so far, or an average of it diverges.
    """
    rows, at = int(np.prod(shape)), in_rows(law, shape)
    with np.errstate(all="ignore"):
        ends = ends_of(at, reach, rows, each=each)
        x = scanned(at, ends[0], ends[1])
        psi, bend, well = at(x)
        gaps = [_gaps(*row) if row[2].min() < 0 else [] for row in zip(x, psi, bend, well, strict=True)]
        most = max(map(len, gaps), default=0)
        left, right = (np.repeat(x[:, -1:], most, axis=1) for _ in range(2))
        for row, found in enumerate(gaps):
            for k, (a, b) in enumerate(found):
                left[row, k], right[row, k] = x[row, a], x[row, b]
        if most:
            left, right = contacts(at, left, right)
        slope = at(left)[0] if most else left
    return hull_around(x, psi, (left, right, slope))


def in_rows(law: Callable[..., Sequence[Any]], shape: Sequence[int]) -> Callable[[np.ndarray], list[np.ndarray]]:
    """A law at points in rows, one for each place of what it also depends on."""

    def at(x: np.ndarray) -> list[np.ndarray]:
        found = law(x.reshape(*shape, x.shape[-1]))
        return [np.broadcast_to(np.asarray(v, dtype=float), (*shape, x.shape[-1])).reshape(x.shape) for v in found]

    return at


def scanned(at: Callable[[np.ndarray], Sequence[np.ndarray]], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Points between two ends, closer to each other where a slope is steep, or turns."""
    x = np.linspace(low, high, EVEN, axis=-1)
    x = levelled(x, at(x)[0])
    for _ in range(ZOOMS):
        x = closer(x, at(x)[1])
    return x


def hull_around(x: np.ndarray, psi: np.ndarray, gaps: tuple[Any, Any, Any], turning: Turning | None = None) -> Hull:
    """The points outside of gaps, with the slope there, and the gaps."""
    (left, right, slope), xs, zs = gaps, [], []
    for row in range(len(x)):
        inside = np.any((x[row, :, None] > left[row]) & (x[row, :, None] < right[row]), axis=-1)
        keep = ~inside
        place = np.concatenate([x[row, keep], left[row], right[row]])
        value = np.concatenate([psi[row, keep], slope[row], slope[row]])
        order = np.argsort(place, kind="stable")
        xs.append(place[order])
        zs.append(np.maximum.accumulate(value[order]))
    return Hull(xs, zs, left, right, slope, turning)


def ends_of(at: Any, reach: float, rows: int, *, each: bool) -> np.ndarray:
    """Between which places the slope of a well lies within reach: beyond the last point at which it does."""
    out = []
    size = _size(at, reach, rows)
    for way in (-1.0, 1.0):
        far = size
        for _ in range(BRACKETED):
            steps = np.geomspace(1.0, 2.0**12, 25)
            beyond = way * at(way * far[:, None] * steps)[0]
            todo = ~np.all(beyond > reach, axis=-1)
            if not todo.any():
                break
            far = np.where(todo, far * 2, far)
            if not np.all(far < 1e100):
                if each:
                    far = np.where(far < 1e100, far, np.nan)
                    break
                found = "The energy of a site falls without end, or has no slope far out."
                raise NotConverged(found, None, float("nan"), "a penalty that rises far out")
        line = np.geomspace(1e-12, 1.0, OUTWARDS)
        places = far[:, None] * np.concatenate([-line[::-1], [0.0], line])
        inside = way * at(way * places)[0] <= reach
        last = places.shape[-1] - 1 - np.argmax(inside[:, ::-1], axis=-1)
        out.append(way * places[np.arange(rows), np.minimum(last + 1, places.shape[-1] - 1)])
    return np.array(out)


def _size(at: Any, reach: float, rows: int) -> np.ndarray:
    """How far out the slope of each well lies within reach, in powers of two: in whatever units places are given."""
    places = 2.0 ** np.arange(-SIZES, SIZES + 1, STRIDE)
    each = np.broadcast_to(places, (rows, places.size))
    psi = np.stack([-at(-each)[0], at(each)[0]])
    within = np.any(psi <= reach, axis=0)  # where it is no number it overflows
    last = within.shape[-1] - 1 - np.argmax(within[:, ::-1], axis=-1)
    return np.where(np.any(within, axis=-1), places[np.minimum(last + 1, places.size - 1)], places[0])


def levelled(x: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """Points at equal distances, and at equal changes of the slope of the well."""
    out = []
    for place, value in zip(x, psi, strict=True):
        change = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(value)))])
        levels = np.interp(np.linspace(0, change[-1], LEVELLED), change, place)
        out.append(np.sort(np.concatenate([np.linspace(place[0], place[-1], EVEN), levels])))
    return np.array(out)


def closer(x: np.ndarray, bend: np.ndarray) -> np.ndarray:
    """More points around the smallest curvature of each well: it turns where this is negative."""
    least = np.argmin(np.where(np.isfinite(bend), bend, np.inf), axis=-1)
    ends = [np.clip(least + way, 0, x.shape[-1] - 1)[:, None] for way in (-1, 1)]
    a, b = (np.take_along_axis(x, end, axis=-1) for end in ends)
    return np.sort(np.concatenate([x, a + (b - a) * np.linspace(0, 1, CLOSER)], axis=-1), axis=-1)


def _gaps(x: np.ndarray, psi: np.ndarray, bend: np.ndarray, well: np.ndarray) -> list[tuple[int, int]]:
    """Which points of a well bound a part above its hull that bends downwards somewhere.

    A point is above the hull where the tangent there has another point of the well below it; its slope is then one
    that the well has where it bends downwards.
    """
    turns = np.flatnonzero(bend < 0)
    (near,) = np.nonzero((psi >= psi[turns].min()) & (psi <= psi[turns].max()))
    first, last = max(near[0] - 1, 0), min(near[-1] + 2, len(x))
    x, psi, well = (v[first:last] for v in (x, psi, well))
    own, least = well - psi * x, np.min(well - psi[:, None] * x, axis=1)
    above = least < own - ROUNDING * (np.max(np.abs(well)) + np.max(np.abs(psi * x)))
    above[[0, -1]] = False
    edges = np.flatnonzero(np.diff(above.astype(int)))
    found = [(int(a) + first, int(b) + 1 + first) for a, b in edges.reshape(-1, 2)]
    return [(a, b) for a, b in found if np.any((turns >= a) & (turns <= b))]


def contacts(at: Any, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points of contact of common tangents, by Newton's method from points near them."""
    count, real = left.shape[1], right > left
    for _ in range(POLISHED):
        psi, bend, well = at(np.concatenate([left, right], axis=-1))
        a, b = psi[:, :count], psi[:, count:]
        width = right - left
        level = (well[:, count:] - well[:, :count]) / width  # the slope of the chord
        # a move of one end by s turns the chord by (a - level)*s/width: to first order it stays
        up, down = (level - a) / bend[:, :count], (level - b) / bend[:, count:]
        limit = width / 4
        up, down = (np.where(real, np.clip(np.nan_to_num(s), -limit, limit), 0.0) for s in (up, down))
        left, right = left + up, right + down
        if np.all(np.maximum(np.abs(up), np.abs(down)) <= DONE * np.maximum(np.abs(left), np.abs(right))):
            break
    return left, right


def touching(law: Callable[[Any], tuple[Any, Any, Any]], left: Any, right: Any) -> tuple[Any, Any]:
    """The same for one tangent, in numbers of any precision; points that are one stay so."""
    before = None
    while right > left:
        (a, bend, low), (b, other, high) = law(left), law(right)
        level = (high - low) / (right - left)
        up, down = (level - a) / bend, (level - b) / other
        left, right, moved = left + up, right + down, max(abs(up), abs(down))
        if not moved or (before is not None and moved >= before / 2):  # what does not shrink is rounding
            break
        before = moved
    return left, right
