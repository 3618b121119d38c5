"""The lowest configuration of an instance whose energy is a square, on a sphere or in a ball of its states.

In the eigenvectors of the energy one multiplier of the sum of squares is left, and the one equation that fixes it has
one root beyond all eigenvalues; where the energy has no slope along the lowest eigenvector the rest of the length lies
in it (J. J. More, D. C. Sorensen, SIAM J. Sci. Stat. Comput. 4, 553, 1983). It is the minimum, and no bound of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from symcavity.errors import ValuesError
from symcavity.evaluate.bracket import root_between
from symcavity.finite.square_energy import is_square_but_for_sites, square_of
from symcavity.finite.warm import WarmInstance
from symcavity.sites.thermal.parts import split

FARTHER = 1e-15  # of the multiplier beyond the lowest eigenvalue, in units of the largest one


@dataclass(frozen=True)
class SphereEnergy:
    """An energy ``slope*x + x*matrix*x/2`` of the states of all sites, and ``sum weights*x**2 = size``, or at most."""

    matrix: np.ndarray
    slope: np.ndarray
    weights: np.ndarray
    size: float
    equality: bool


def is_on_sphere(w: WarmInstance) -> bool:
    """Whether one continuous state a site has a quadratic energy, and one condition on the sum of its squares."""
    if not is_square_but_for_sites(w) or len(w.sums.held) != 1 or any(own.bounds for own in w.sent.values()):
        return False
    ((kind, own),) = w.sent.items()
    (q,), (condition,) = w.states, w.sums.held
    if set(condition.parts) != {kind}:
        return False
    _, first, second, rest = split(w.system.own(condition.parts[kind]), q)
    if first != 0 or rest != 0 or second == 0 or split(own.energy, q)[3] != 0:
        return False
    turned = np.broadcast_to(w.call(second, [])(), (w.size(kind),)) * (1 if condition.equality else -1)
    return bool(np.all(turned > 0) or (condition.equality and np.all(turned < 0)))


def form_of(w: WarmInstance) -> SphereEnergy:
    """The numbers of the energy and of the condition."""
    ((kind, _),) = w.sent.items()
    (q,), (condition,), size = w.states, w.sums.held, w.size(kind)

    def at(expr: Any) -> np.ndarray:
        return np.broadcast_to(w.call(expr, [])(), (size,))

    slope, matrix = square_of(w)
    level, _, bent, _ = split(w.system.own(condition.parts[kind]), q)
    value = float(w.sums.constant(condition) + np.sum(at(level)))
    weights = at(bent) / 2
    turned = -1.0 if np.all(weights < 0) else 1.0
    return SphereEnergy(matrix, slope, turned * weights, -turned * value, condition.equality)


def lowest_on_sphere(form: SphereEnergy) -> np.ndarray:
    """The states of lowest energy; of two mirror images one.

    Raises
    ------
    ValuesError
        If no states meet the condition.
    """
    if form.size < 0:
        raise ValuesError(f"A sum of squares would be {form.size:.6g}.", "values at which it is not negative")
    scale = np.sqrt(form.weights)
    values, turn = np.linalg.eigh(form.matrix / np.outer(scale, scale))
    b = turn.T @ (form.slope / scale)
    if not form.size:
        return np.zeros(len(b))
    unit = float(np.max(np.abs(values))) + float(np.linalg.norm(b)) / np.sqrt(form.size)
    if not unit:  # no states have less energy than others
        return turn[:, 0] * np.sqrt(form.size) / scale
    if not form.equality and values[0] > 0 and np.sum((b / values) ** 2) <= form.size:
        return turn @ (-b / values) / scale  # the minimum lies inside

    def length(beyond: float) -> float:
        return float(np.sum((b / (values - values[0] + beyond)) ** 2))

    def excess(t: float) -> float:
        return float(np.log(length(np.exp(t)) / form.size))

    low, high = FARTHER * unit, 2 * float(np.linalg.norm(b)) / np.sqrt(form.size) + FARTHER * unit
    if length(low) > form.size:
        beyond = np.exp(root_between(excess, np.log(low), np.log(high)))
        y = -b / (values - values[0] + beyond)
    else:
        y = -b / (values - values[0] + low)
        y[0] = 0.0
        y[0] = np.sqrt(max(form.size - float(y @ y), 0.0)) * (-1.0 if b[0] > 0 else 1.0)
    return (turn @ y) * np.sqrt(form.size / float(y @ y)) / scale
