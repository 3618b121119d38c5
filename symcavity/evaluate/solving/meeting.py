"""Solve a few conditions at once, such as those on global variables, from their last solution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np

from symcavity.errors import NotConverged
from symcavity.evaluate.bracket import root_between
from symcavity.evaluate.constants import NEWTON

_SHORTEST, _MET, _CLOSE, _FARTHEST = 1e-4, 1e-14, 1e-9, 1e12

Conditions = Callable[[np.ndarray], tuple[np.ndarray, Callable[[], np.ndarray]]]


def meet(conditions: Conditions, start: np.ndarray, near: float = 0.0) -> np.ndarray:
    """Return values at which some functions vanish, as :func:`where_met` does.

    Raises
    ------
    NotConverged
        If they do not vanish anywhere on the way.
    """
    x, missed = where_met(conditions, start, near)
    if missed:
        how = "no site has a law there" if np.isnan(missed) else f"they miss by {missed:.1e}"
        said = f"The conditions on all sites are not met: {how}."
        raise NotConverged(said, best=x, residual=missed)
    return x


def where_met(conditions: Conditions, start: np.ndarray, near: float = 0.0) -> tuple[np.ndarray, float]:
    """Look for values at which some functions vanish, by damped Newton steps; one function also by bisection.

    Parameters
    ----------
    conditions : callable
        Gives the functions, of shape (n), at values of shape (n), and what gives their derivatives, (n, n).
    start : ndarray
        Where the search begins.
    near : float
        How short a step is enough.

    Returns
    -------
    tuple of (ndarray, float)
        The last values, and by how much the functions miss zero there: exactly zero where they are met.
    """
    x = np.array(start, dtype=float)
    value, slope = conditions(x)
    for _ in range(NEWTON):
        if np.max(np.abs(value)) <= _MET:
            return x, 0.0
        try:
            step = -np.linalg.solve(slope(), value)
        except np.linalg.LinAlgError:
            break
        share, size = 1.0, np.linalg.norm(value)
        while share > _SHORTEST:
            there = conditions(x + share * step)
            if np.linalg.norm(there[0]) < size:
                break
            share /= 2
        else:
            if size < _CLOSE:
                return x, 0.0
            break
        x, (value, slope) = x + share * step, there
        if np.max(np.abs(step)) < near:
            return x, 0.0
    if np.max(np.abs(value)) < _CLOSE:
        return x, 0.0
    with np.errstate(all="ignore"):  # close to where nothing is defined sums and slopes overflow
        found = _bisected(lambda g: float(conditions(np.array([g]))[0][0]), float(x[0])) if len(x) == 1 else None
    if found is not None:
        return np.array([found]), 0.0
    return x, float(np.max(np.abs(value)))


def _bisected(function: Callable[[float], float], start: float) -> float | None:
    """A zero of one function, looked for to both sides of a start, or of where it is defined next to it.

    At last it is looked at ever closer to where the function is not defined.
    """
    here, width = np.sign(function(start)), 1e-2
    beyond: list[float] = []  # the closest places where it is not
    while width < _FARTHEST:
        signs = {end: np.sign(function(end)) for end in (start - width, start + width)}
        if np.isnan(here) and (defined := [end for end, sign in signs.items() if not np.isnan(sign)]):
            beyond, start, here = [start], defined[0], signs[defined[0]]
        elif not np.isnan(here):
            beyond += [end for end, sign in signs.items() if np.isnan(sign) and not _is_beyond(end, start, beyond)]
            if np.all(np.isnan([*signs.values()])):  # nor is it defined farther away
                break
        for end, there in signs.items():
            if there * here <= 0 and end != start:
                return _between(function, start, end)
        width *= 4
    for far in beyond:
        end, there = _towards_edge(function, start, here, far)
        if there != here:
            return _between(function, start, end)
    return None


def _is_beyond(place: float, start: float, others: Sequence[float]) -> bool:
    """Whether one of some other places lies on the same side of a start."""
    return any((place - start) * (other - start) > 0 for other in others)


def _between(function: Callable[[float], float], start: float, end: float) -> float | None:
    """A zero between two places at which signs differ."""
    low, high = sorted((start, end))
    with suppress(ValueError):  # where it is not defined throughout
        return root_between(function, low, high, xtol=1e-15, rtol=1e-14)
    return None


def _towards_edge(function: Callable[[float], float], start: float, here: float, beyond: float) -> tuple[float, float]:
    """A place between a start and where a function is not defined, at which its sign is another one.

    If there is none, the last place before that edge is returned.
    """
    low, high, there = start, beyond, here
    while there == here and abs(high - low) > np.spacing(max(abs(low), abs(high))):
        middle = (low + high) / 2
        found = np.sign(function(middle))
        low, high, there = (low, middle, there) if np.isnan(found) else (middle, high, found)
    return low, there
