"""Where rays in a plane meet, and between which points along them something switches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symcavity.evaluate.averages.grids import REACH

SCAN = 41  # points along a ray, between which it is looked for what switches
LOOKS, GRID, FEW = 48, 61, 16  # directions, points along an edge, and places with which a center is looked for


def bracketed(
    ray: np.ndarray, r: np.ndarray, sides: np.ndarray, hits: np.ndarray, rows: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """The ends of the intervals in which rows change their sign, with the neighbors of these on the same ray."""
    ends, values, beyond, values_beyond = [], [], [], []
    for end, way in ((hits, -1), (hits + 1, 1)):
        next_one = np.clip(end + way, 0, len(r) - 1)
        there = (ray[next_one] == ray[end]) & (next_one != end)
        there &= (sides[rows, next_one] > 0) == (sides[rows, end] > 0)
        ends.append(r[end])
        values.append(sides[rows, end])
        beyond.append(np.where(there, r[next_one], np.nan))
        values_beyond.append(sides[rows, next_one])
    return tuple((low, high) for low, high in (ends, values, beyond, values_beyond))


def all_round(count: int) -> np.ndarray:
    """Directions all around."""
    angles = (np.arange(count) + 0.3) * 2 * np.pi / count
    return np.stack([np.cos(angles), np.sin(angles)])


def even_centre(marks: Callable[[np.ndarray], Any]) -> np.ndarray:
    """From where in a plane most rays switch equally often: the origin, or the middle of where nothing switches."""
    rays, grid = all_round(LOOKS), np.linspace(-REACH, REACH, GRID)

    def uneven(place: np.ndarray) -> float:
        r = np.linspace(0, REACH + np.linalg.norm(place), SCAN)
        found = marks((place[:, None, None] + rays[:, :, None] * r).reshape(2, -1))
        if found is None:
            return np.inf
        found = found.reshape(-1, LOOKS, SCAN)
        times = (found[..., 1:] != found[..., :-1]).any(axis=0).sum(axis=1)
        return float(np.sum(times != np.roll(times, 1)))

    best, least = np.zeros(2), uneven(np.zeros(2))
    every = np.stack(np.meshgrid(grid, grid)).reshape(2, -1)
    if not 0 < least < np.inf or (found := marks(every)) is None:
        return best
    weights = np.exp(-(every**2).sum(axis=0) / 4)
    _, own = np.unique(found, axis=1, return_inverse=True)
    for k in range(min(int(own.max()) + 1, FEW)):
        middle = (every * weights)[:, own.ravel() == k].sum(axis=1) / weights[own.ravel() == k].sum()
        if (here := uneven(middle)) < least:
            best, least = middle, here
    return best
