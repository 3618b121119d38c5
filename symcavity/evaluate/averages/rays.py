"""Gaussian averages along rays from the origin: directions with weights, and nodes between places of switching."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import gamma

import numpy as np

from symcavity.algebra.legendre import legendre
from symcavity.evaluate.averages.grids import REACH
from symcavity.evaluate.constants import NEWTON
from symcavity.shapes.sampling import DEFAULT, gaussian_scrambles

ALONG, PARTS = 14, 4  # of rays: nodes a panel, panels without any switching
TURNS, CLOSE = 6, 2.0  # panels of a turn; lines this close to the origin are met at more radii
AT = (0.02, 0.2, 1.0, 3.0, REACH)
APART = 1e-13  # what ends of panels are at least from each other
AGREED = 1e-9  # of an interval: how long the last step of a search for a change of sign is


def spread(rank: int, numbers: Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions in pairs of opposite ones, with weights: `count` of them of each independent set."""
    if rank == 1:
        return np.array([[1.0, -1.0]]), np.full(2, 0.5)
    points = np.concatenate([scrambled(rank)[n][: count // 2] for n in numbers]).T
    units = points / np.linalg.norm(points, axis=0)
    units = np.concatenate([units, -units], axis=1)
    return units, np.full(units.shape[1], 1 / units.shape[1])


def turned(rows: np.ndarray, held: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Directions in a plane: Gauss-Legendre rules between those at which something changes.

    Parameters
    ----------
    rows : array, shape (faces, lines, 3)
        ``offset + slopes . z`` of the lines at which something switches, face by face.
    held : int
        How many of the lines bound the face: corners are where these hold.
    order : int
        Nodes between two changes.
    """
    cuts = [np.linspace(-np.pi, np.pi, TURNS + 1)]

    def add(z: np.ndarray) -> None:
        tests = rows[:, None, :held, 0] + z @ np.swapaxes(rows[:, :held, 1:], 1, 2)
        there = np.isfinite(z).all(axis=-1) & (tests.min(axis=-1, initial=0) > -1e-9)
        there &= np.hypot(z[..., 0], z[..., 1]) < 1.01 * REACH
        cuts.append(np.arctan2(z[there][:, 1], z[there][:, 0]))

    with np.errstate(all="ignore"):
        unit = rows / np.linalg.norm(rows[..., 1:], axis=-1, keepdims=True)
        away, normal, radius = unit[..., :1], unit[..., 1:], np.array(AT)
        half = np.sqrt(np.where(np.abs(away) < np.minimum(radius, CLOSE), radius**2 - away**2, np.nan))
        foot, way = (-away * normal)[:, :, None], normal[..., ::-1] * [1, -1]
        aside = half[..., None] * way[:, :, None]
        add(np.concatenate([foot + aside, foot - aside], axis=2).reshape(len(rows), -1, 2))
        one, two = np.triu_indices(rows.shape[1], 1)
        cross = np.cross(rows[:, one], rows[:, two])  # homogeneous coordinates (offset, slopes) of where they meet
        add(cross[..., 1:] / cross[..., :1])
    angles = np.sort((np.concatenate(cuts) + np.pi) % (2 * np.pi))
    angles = np.concatenate([[0.0], angles[np.diff(angles, prepend=-1.0) > 1e-11], [2 * np.pi]])
    x, w = legendre(order)
    half, middle = np.diff(angles)[:, None] / 2, (angles[1:] + angles[:-1])[:, None] / 2
    theta = (middle + half * x).ravel() - np.pi
    return np.stack([np.cos(theta), np.sin(theta)]), (half * w).ravel() / (2 * np.pi)


def crossings(rows: np.ndarray, held: int, units: np.ndarray) -> np.ndarray:
    """Where rays enter or leave faces, and cross other lines on them: shape (rays, cuts), infinite if nowhere.

    The rows are those of :func:`turned`, in any number of dimensions.
    """
    offset, slope = rows[..., 0, None], rows[..., 1:] @ units
    with np.errstate(all="ignore"):
        place = -offset / slope
    tests = slice(None, held)
    low = np.where(slope > 0, place, 0.0)[:, tests].max(axis=1, initial=0.0)
    high = np.where(slope < 0, place, np.inf)[:, tests].min(axis=1, initial=np.inf)
    high = np.where(((slope == 0) & (offset < 0))[:, tests].any(axis=1), 0.0, high)
    other = place[:, held:]
    inside = (other > low[:, None]) & (other < high[:, None])
    cuts = [np.where(low < high, low, np.inf), np.where(low < high, high, np.inf)]
    cuts += list(np.moveaxis(np.where(inside, other, np.inf), 1, 0))
    return np.concatenate(cuts).T


def along(
    cuts: np.ndarray,
    units: np.ndarray,
    weights: np.ndarray,
    *,
    cubic: bool = False,
    reach: float = REACH,
    parts: int = PARTS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Nodes between cuts of rays.

    Parameters
    ----------
    cuts : array, shape (rays, n)
    units : array, shape (dimension, rays)
    weights : array, shape (rays,)
    cubic : bool
        Whether what is averaged is a polynomial of at most third degree between two cuts, for which two nodes do.
    reach : float
        How far the rays go.
    parts : int
        Panels of a ray without cuts.

    Returns
    -------
    (points, weights, middles)
        Points of shape (dimension, panels * nodes), panel by panel, and a point inside of each panel.
    """
    rank, count = units.shape
    base = np.broadcast_to(np.linspace(0, reach, parts + 1), (count, parts + 1))
    edges = np.concatenate([base, np.clip(cuts, 0, reach)], axis=1)
    order = np.argsort(edges, axis=1, kind="stable")
    edges = np.take_along_axis(edges, order, axis=1)
    ray, place = np.nonzero(np.diff(edges, axis=1) > APART)
    low, high = edges[ray, place], edges[ray, place + 1]
    y, w = legendre(ALONG)
    half, middle = (high - low)[:, None] / 2, (high + low)[:, None] / 2
    r = middle + half * y
    shares = half * w * r ** (rank - 1) * np.exp(-r * r / 2) / (2 ** (rank / 2 - 1) * gamma(rank / 2))
    if cubic:  # a Gauss rule of two nodes, from the moments of what lies between two cuts
        between = np.cumsum(order > parts, axis=1)[ray, place] + ray * edges.shape[1]
        _, first, group = np.unique(between, return_index=True, return_inverse=True)
        size = np.bincount(group, shares.sum(axis=1))
        mean = np.bincount(group, (shares * r).sum(axis=1)) / size
        off = r - mean[group, None]
        second = shares * off * off
        square, third = (np.bincount(group, e.sum(axis=1)) / size for e in (second, second * off))
        width = np.sqrt(square)
        skew = third / (2 * width * square)
        root = np.sqrt(1 + skew * skew)
        ray, middle = ray[first], mean[:, None]
        r = middle + width[:, None] * np.stack([skew - root, skew + root], axis=1)
        shares = size[:, None] * np.stack([root + skew, root - skew], axis=1) / (2 * root[:, None])
    points = (units[:, ray, None] * r).reshape(rank, -1)
    return points, (weights[ray, None] * shares).ravel(), units[:, ray] * middle[:, 0]


@lru_cache(maxsize=32)
def graded(rank: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in up to three dimensions for what is smooth, and varies close to the origin: directions times panels.

    Panels halve towards the origin, once more for each further pair of directions along an angle: a law such as
    ``w + w**3 = eta`` with a small first term has its scale there, whatever that scale is.
    """
    turn = np.arange(2 * order) * np.pi / order
    if rank == 1:
        units, shares = np.array([[1.0, -1.0]]), np.full(2, 0.5)
    elif rank == 2:
        units, shares = np.stack([np.cos(turn), np.sin(turn)]), np.full(2 * order, 0.5 / order)
    else:
        height, weight = legendre(order)
        flat = np.sqrt(1 - height**2)[:, None]
        parts = (flat * np.cos(turn), flat * np.sin(turn), np.broadcast_to(height[:, None], (order, 2 * order)))
        units = np.stack([part.ravel() for part in parts])
        shares = np.repeat(weight / (4 * order), 2 * order)
    cuts = np.broadcast_to(REACH / PARTS * 0.5 ** np.arange(1, 1 + order // 2), (len(shares), order // 2))
    points, weights, _ = along(cuts, units, shares)
    return points, weights


@lru_cache(maxsize=8)
def scrambled(count: int) -> list[np.ndarray]:
    """Independent sets of quasi-random Gaussian points."""
    return list(gaussian_scrambles(count, DEFAULT, 0))


def sign_changes(
    call: Callable[[np.ndarray, np.ndarray], np.ndarray | None],
    ends: tuple[np.ndarray, np.ndarray],
    values: tuple[np.ndarray, np.ndarray],
    beyond: tuple[np.ndarray, np.ndarray],
    values_beyond: tuple[np.ndarray, np.ndarray],
) -> np.ndarray | None:
    """Find where functions change their sign, each in its interval: by secants on one side of it, else by halving.

    A member of a pair is zero on one side of a switch and leaves it at an angle: a secant across it leads nowhere, one
    on either side does.

    Parameters
    ----------
    call : callable
        Takes places, and the numbers of the functions there; returns their values, or None if there are none.
    ends, values : pair of array
        The ends of the intervals, and the values there: positive on one side only.
    beyond, values_beyond : pair of array
        A place outside of each end, and the value there; not a number where there is none on the same side.
    """
    at = [[end.copy(), value.copy()] for end, value in zip(ends, values, strict=True)]
    outer = [[end.copy(), value.copy()] for end, value in zip(beyond, values_beyond, strict=True)]
    width = ends[1] - ends[0]
    place, todo = (ends[0] + ends[1]) / 2, np.arange(len(ends[0]))
    for k in range(NEWTON):
        low, high = at[0][0][todo], at[1][0][todo]
        best, near = (low + high) / 2, high - low
        if k % 3 < 2:
            for (end, value), (far, far_value) in zip(at, outer, strict=True):
                with np.errstate(all="ignore"):
                    step = value[todo] * (end[todo] - far[todo]) / (far_value[todo] - value[todo])
                lies = (low <= end[todo] + step) & (end[todo] + step <= high) & (np.abs(step) < near)
                best, near = np.where(lies, end[todo] + step, best), np.where(lies, np.abs(step), near)
        place[todo] = best
        going = near > AGREED * width[todo]
        todo, best = todo[going], best[going]
        if not todo.size:
            break
        found = call(best, todo)
        if found is None:
            return None
        like_low = (found > 0) == (at[0][1][todo] > 0)
        for side, mine in ((0, like_low), (1, ~like_low)):
            own = todo[mine]
            outer[side][0][own], outer[side][1][own] = at[side][0][own], at[side][1][own]
            at[side][0][own], at[side][1][own] = best[mine], found[mine]
    return place
