"""The largest Lyapunov exponent of a network without memory, in its stationary state.

A small change of all states grows as ``exp(l T)``.  What the changes at two times have in common is damped by
``k`` at either one, and fed by the mean squared slope ``K'(D)`` of the fields at the covariance D of the lag tau:

    ((d/dT)/2 + d/dtau + k) ((d/dT)/2 - d/dtau + k) G = K'(D(tau)) G.

It grows as the lowest state of a particle allows (Sompolinsky, Crisanti and Sommers, Phys. Rev. Lett. 61, 259, 1988),

    -G'' + (k^2 - K'(D)) G = E G,    (k + l)^2 = k^2 - E,

which is even in the lag.  It is found in polynomials of the coordinate of the path, on panels that become shorter
towards lag zero, with the decay that follows beyond the last one; the energy of a state that is nearly right is wrong
by the square of its error only.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.polynomial.legendre import legder, legvander
from scipy.linalg import eigh

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.bracket import root_between

SIZES = ((0, 12), (1, 16), (2, 20))  # how many more panels than needed, and numbers of polynomials on each
MORE = 12  # points of a panel beyond its polynomials
ALIKE = 3e-8  # of the energies with two sizes, in squares of rates


def largest_exponent(rate: Any, slope: Any, path: Any) -> float:
    """The exponent of a network whose states forget at a rate, to eight digits of the rate.

    Parameters
    ----------
    rate : number
    slope : callable
        ``K'`` at a correlation of the state.
    path : Path or None
        None where the states keep still, and the slope is one number.

    Raises
    ------
    NotConverged
        If two sizes of the problem do not agree.
    """
    if path is None:
        return float(mp.sqrt(slope(mp.mpf(1))) - rate)
    before = None
    needed = 1 + max(0, int(np.ceil(np.log2(float(path.far / path.narrow)))))
    for more, size in SIZES:
        energy = _lowest(rate, slope, path, needed + more, size)
        if before is not None and abs(energy - before) <= ALIKE * float(rate) ** 2:
            return float(mp.sqrt(rate**2 - energy) - rate)
        last, before = before, energy
    raise NotConverged(
        f"The Lyapunov exponent did not converge: the energies on the last two grids are {last:.12g} and {before:.12g}."
    )


def _lowest(rate: Any, slope: Any, path: Any, panels: int, size: int) -> float:
    """The lowest energy of an even state."""
    level = slope(path.end)  # beyond the last panel the state decays as exp(-tau*sqrt(level - E))
    ends = [0.0, *(float(path.far) * 0.5**k for k in range(panels - 1, -1, -1))]
    z, w = np.polynomial.legendre.leggauss(size + MORE)
    values, slopes = _basis(z, size)
    count = panels * size + 1
    form, weight = np.zeros((count, count)), np.zeros((count, count))
    for k, (low, high) in enumerate(pairwise(ends)):
        half, at = (high - low) / 2, [mp.mpf((high + low) / 2 + (high - low) / 2 * v) for v in z]
        stretch = np.array([float(path.slope(y)) for y in at])
        well = np.array([float(level - slope(path.shape(y))) for y in at])
        here = slice(k * size, (k + 1) * size + 1)
        norm = w * stretch * half
        form[here, here] += (slopes.T * (w / (half * stretch))) @ slopes + (values.T * (norm * well)) @ values
        weight[here, here] += (values.T * norm) @ values

    def found(decay: float) -> float:
        edge = form.copy()
        edge[-1, -1] += decay
        return float(eigh(edge, weight, eigvals_only=True, subset_by_index=[0, 0])[0])

    return float(rate**2 - level) + _own_decay(found)


def _basis(z: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Polynomials on a panel and their slopes: one at its start, those that vanish at both ends, one at its end."""
    rows = np.zeros((size + 1, size + 1))
    rows[0, :2], rows[size, :2] = (0.5, -0.5), (0.5, 0.5)
    for k in range(1, size):
        rows[k, k + 1], rows[k, k - 1] = 1, -1
    return legvander(z, size) @ rows.T, legvander(z, size - 1) @ np.array([legder(row) for row in rows]).T


def _own_decay(found: Any) -> float:
    """The energy that comes out where the decay is the one that it implies; zero where it is no lower than far out."""
    low = found(0.0)
    if low >= 0:
        return 0.0

    def gap(energy: float) -> float:
        return float(found(np.sqrt(-energy)) - energy)

    return low if gap(low) <= 0 else root_between(gap, low, 0.0, xtol=1e-15, rtol=1e-13)
