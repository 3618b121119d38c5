"""Distributions of a variable: their atoms, and the density of the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
from sympy import Rational

_LEAST = 0.01  # the smallest share of sites that is an atom; at zero any share is, for solvers set it exactly
_EXTREMA = 8  # a density with more maxima and minima shows the nodes of an average
_PIECES, _ORDER = 6, 4  # of the curve through what is rough


def find_atoms(
    values: np.ndarray, is_end: Callable[[float], bool] = lambda _: False
) -> tuple[dict[float, float], np.ndarray]:
    """Find the values that many sites share, and the share of the sites that have each of them.

    Parameters
    ----------
    values : ndarray
        One number for each site.
    is_end : callable, optional
        Whether the law has an atom at the least or the largest value, which few sites may have.

    Returns
    -------
    dict
        Shares by value.
    ndarray
        Which of the values are at an atom.
    """
    order = np.argsort(values)
    size = max(1.0, float(np.max(np.abs(values), initial=0.0)))
    cuts = np.flatnonzero(np.diff(values[order]) > 1e-8 * size) + 1
    out: dict[float, float] = {}
    at_atom = np.zeros(values.shape, dtype=bool)
    groups = np.split(order, cuts)
    for k, group in enumerate(groups):
        middle = float(np.median(values[group])) if group.size else np.nan
        at_zero = abs(middle) <= 1e-8 * size
        if group.size >= max(3, _LEAST * values.size) or (at_zero and group.size > 1) or (
            group.size and k in (0, len(groups) - 1) and is_end(middle)
        ):
            out[0.0 if at_zero else middle] = group.size / values.size
            at_atom[group] = True
    return out, at_atom


def exact(value: float) -> Rational:
    """Return a number as it is printed, without the last digits that a solver leaves open."""
    return Rational(f"{value:.9g}")


def density_of(tail: Callable[[float], float], edges: np.ndarray, masses: Mapping[float, float]) -> np.ndarray:
    """Return the density between some edges.

    Parameters
    ----------
    tail : callable
        The share above a value.
    edges : ndarray
        Evenly spaced.
    masses : mapping
        Shares by value that do not count: the atoms.

    Notes
    -----
    Where the share is an average over nodes, its differences are rough.  The density is then the slope of a spline
    of few pieces that fits the shares.
    """
    shares = np.array([tail(u) + sum(m for v, m in masses.items() if exact(v) <= exact(u)) for u in edges])
    found = -np.diff(shares) / np.diff(edges)
    if np.count_nonzero(np.diff(np.sign(np.diff(found)))) <= _EXTREMA:
        return found
    from scipy.interpolate import make_lsq_spline

    knots = np.linspace(edges[0], edges[-1], _PIECES + 1)
    smooth = make_lsq_spline(edges, shares, np.r_[[edges[0]] * _ORDER, knots, [edges[-1]] * _ORDER], _ORDER)
    return np.array([max(0.0, (smooth(a) - smooth(b)) / (b - a)) for a, b in pairwise(edges)])
