"""A low configuration of an instance whose sites meet by squares, and whose own energies are squares by cases.

One site at a time takes the lowest minimum of its energy at the states of the others, until none moves. From there some
sites are put elsewhere, and what comes to rest at less energy is kept: an upper bound of the minimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Dummy, Rational, oo

from symcavity.errors import NotConverged
from symcavity.finite.chains import CHAINS
from symcavity.finite.configurations import Configurations, one_configuration
from symcavity.finite.draw import stream
from symcavity.finite.square_energy import square_of
from symcavity.finite.warm import WarmInstance
from symcavity.sites.lowest.atoms import atoms_of
from symcavity.sites.thermal.parts import split

_STARTS = 14  # beside the numbers of the other draws of an instance
MOVED, SOON, AT_REST = 3, 8, 2000  # sites that are put elsewhere; sweeps before that is judged, and until rest
STILL = 1e-14


def descended(w: WarmInstance, sweeps: int) -> Configurations:
    """The lowest of the configurations at rest that are found from random ones."""
    (q,) = w.states
    sites, rng = _Sites.of(w), stream(w.instance.seed, _STARTS)
    if sites.unbounded:
        raise NotConverged(
            f"The energy falls without end along {q.family} of one site.", hint="an energy that is bounded from below"
        )
    size = len(sites.slope)
    x = sites.at_rest(np.concatenate([np.zeros((1, size)), rng.normal(size=(CHAINS - 1, size))]), AT_REST)
    lowest = w.energy({q: x})
    for _ in range(sweeps // SOON):
        other = x.copy()
        for row in other:
            at = rng.choice(size, size=min(MOVED, size), replace=False)
            row[at] = rng.normal(size=len(at)) * np.std(row)
        other = sites.at_rest(other, SOON)
        energy = w.energy({q: other})
        better = energy < lowest
        x[better], lowest[better] = other[better], energy[better]
    x = sites.at_rest(x, AT_REST)
    return one_configuration("descent", {q: x}, w.energy({q: x}))


@dataclass(frozen=True)
class _Sites:
    """Sites whose energies are ``slope*x + x*matrix*x/2`` and a square on each of some pieces.

    Attributes
    ----------
    slope, matrix : ndarray
    low, high, a, b, c : ndarray
        The candidates for a minimum, one row each, one column a site: where one begins and ends, and
        ``a + b*x + c*x**2/2`` there.
    """

    slope: np.ndarray
    matrix: np.ndarray
    low: np.ndarray
    high: np.ndarray
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @classmethod
    def of(cls, w: WarmInstance) -> _Sites:
        """Those of an instance."""
        ((kind, own),) = w.sent.items()
        (q,), x = w.states, Dummy("x", real=True)
        numbers = {s: Rational(float(v)) for s, v in w.numbers.items()}
        rest = split(own.energy, q)[3].xreplace(numbers).xreplace({q: x})
        bounds = [b.xreplace(numbers).xreplace({q: x}) for b in own.bounds]
        found = atoms_of(rest, x, bounds, ())

        def at(expr: Any) -> np.ndarray:
            value = np.inf * (1 if expr == oo else -1) if expr in (oo, -oo) else w.call(expr, [])()
            return np.broadcast_to(np.asarray(value, dtype=float), (w.size(kind),))

        rows = zip(*([at(e) for e in (f.low, f.high, f.a, f.b, f.c)] for f in found), strict=True)
        return cls(*square_of(w), *(np.array(row) for row in rows))

    @property
    def unbounded(self) -> bool:
        """Whether the energy of a site falls without end where the others stay."""
        endless = ~(np.isfinite(self.low) & np.isfinite(self.high))
        return bool(np.any(endless & (self.c + np.diag(self.matrix) < 0)))

    def at_rest(self, x: np.ndarray, sweeps: int) -> np.ndarray:
        """Configurations, one row each, after their sites have taken their lowest minima one by one."""
        pulled = -(x @ self.matrix + self.slope)
        for _ in range(sweeps):
            moved = 0.0
            for k in range(x.shape[1]):
                own = self.matrix[k, k]
                new = self._lowest(k, pulled[:, k] + own * x[:, k], own)
                step = new - x[:, k]
                pulled -= step[:, None] * self.matrix[k]
                x[:, k] = new
                moved = max(moved, float(np.max(np.abs(step))))
            if moved <= STILL * (float(np.max(np.abs(x))) or 1.0):
                break
        return x

    def _lowest(self, k: int, force: np.ndarray, own: float) -> np.ndarray:
        """The lowest minimum of one site, by row, at a force and with the curvature that others give to it."""
        low, high, c = self.low[:, k, None], self.high[:, k, None], self.c[:, k, None] + own
        inside = np.where(c > 0, (force - self.b[:, k, None]) / np.where(c > 0, c, 1.0), np.nan)
        place = np.where(low == high, low, np.where((inside > low) & (inside < high), inside, np.nan))
        square = np.where(low == high, own, c) * place**2 / 2
        energy = self.a[:, k, None] + (self.b[:, k, None] - force) * place + square
        best = np.nanargmin(np.where(np.isnan(place), np.inf, energy), axis=0)
        return place[best, np.arange(len(force))]
