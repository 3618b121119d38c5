"""The resolvent of a matrix of covariances: one matrix equation for each kind of sites, in complex doubles.

At given couplings sites are joined by ``G = L + L x L + L x G x L``, with the local covariances and responses ``L`` of
each site and the couplings ``x`` of two.  The resolvent of the covariances ``C`` of what is observed is that of ``G``
with a source, ``(1 - C/z)^(-1) = 1 + Q/z`` at what is observed, where to leading order

    Q_u = L_u (1 - B L_u)^(-1),    B = E/z + W[mean Q - mean L],

with one at what is observed in ``E``, and the covariances ``W`` of the couplings.  Its solution with a negative
imaginary part is unique in the upper half plane (J. W. Helton, R. Rashidi Far, R. Speicher, Int. Math. Res. Not. 2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symcavity.errors import NotConverged

SHORTEST = 2.0**-40  # of a path: below it a step is given up
MET = 1e-9  # to what share of Q its equation is met
NEWTON = 12
FASTEST = 1.05  # by how much a real argument changes in a step, so that no band of eigenvalues is stepped over


@dataclass(frozen=True)
class Local:
    """The sites of a kind: the values of ``L`` with their weights, and where its ends stand among all of them."""

    place: slice
    values: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Dyson:
    """The matrix equation of a resolvent.

    Attributes
    ----------
    kinds : sequence of Local
    couplings : ndarray
        ``W`` as a matrix over pairs of ends, with the numbers of sites of the sender over N.
    target : int
        The end that is observed.
    sent : ndarray
        Which ends are sent, and not heard.
    """

    kinds: Sequence[Local]
    couplings: np.ndarray
    target: int
    sent: np.ndarray

    @property
    def size(self) -> int:
        """The number of ends."""
        return self.kinds[-1].place.stop

    @cached_property
    def local(self) -> np.ndarray:
        """The mean of ``L``."""
        return self._means([kind.values for kind in self.kinds])

    def _means(self, values: Sequence[np.ndarray]) -> np.ndarray:
        out = np.zeros((self.size, self.size), dtype=values[0].dtype)
        for kind, each in zip(self.kinds, values, strict=True):
            out[kind.place, kind.place] = each[0] if len(each) == 1 else np.tensordot(kind.weights, each, 1)
        return out

    def heard(self, mean: np.ndarray) -> np.ndarray:
        """``W`` of a matrix of means."""
        return (self.couplings @ mean.ravel()).reshape(mean.shape)

    def _sites(self, mean: np.ndarray, inverse: complex) -> list[np.ndarray]:
        """``Q`` of each site, at means and at ``1/z``."""
        b = self.heard(mean - self.local)
        b[self.target, self.target] += inverse
        out = []
        for kind in self.kinds:
            own = b[kind.place, kind.place]
            out.append(kind.values @ np.linalg.inv(np.eye(len(own)) - own @ kind.values))
        return out

    def _spread(self, sites: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """The map from a change of means to ``mean of other W[change] site``, as a matrix."""
        n = self.size
        out = np.zeros((n, n, n, n), dtype=complex)
        for kind, one, two in zip(self.kinds, others, sites, strict=True):
            p = kind.place
            out[p, p, p, p] = np.einsum("u,uae,ufb->abef", kind.weights, one, two)
        return out.reshape(n * n, n * n) @ self.couplings

    def newton(self, start: np.ndarray, inverse: complex) -> np.ndarray | None:
        """The means of ``Q`` near a start, or None."""
        mean = start
        for _ in range(NEWTON):
            try:
                sites = self._sites(mean, inverse)
                gap = self._means(sites) - mean
                slope = np.eye(gap.size) - self._spread(sites, sites)
                step = np.linalg.solve(slope, gap.ravel()).reshape(gap.shape)
            except np.linalg.LinAlgError:
                return None
            mean = mean + step
            if not np.all(np.isfinite(mean)):
                return None
            if self._is_met(gap, mean) and self._is_met(step, mean, np.sqrt(MET)):
                return mean
        return None

    def _is_met(self, gap: np.ndarray, mean: np.ndarray, share: float = MET) -> bool:
        size, units = np.abs(mean), self._units(mean)
        return bool(np.all(np.abs(gap) <= share * np.maximum(size, np.outer(units, units))))

    def _units(self, mean: np.ndarray) -> np.ndarray:
        """The size of each end: of what is sent, and of what is heard by its products with what is sent."""
        size = np.abs(mean)
        units = np.sqrt(np.diag(size))
        sent = self.sent & (units > 0)
        across = (size[:, sent] / units[sent]).max(axis=1, initial=0.0)
        return np.where(self.sent, units, np.maximum(units, across))

    def spread(self, mean: np.ndarray, inverse: complex) -> float:
        """By how much a small random change grows from site to site: below one outside of the eigenvalues."""
        sites = self._sites(mean, inverse)
        return float(max(abs(np.linalg.eigvals(self._spread(sites, [q.conj() for q in sites])))))

    def _is_resolvent(self, mean: np.ndarray, inverse: complex) -> bool:
        """Whether the imaginary part is negative and small changes do not grow, as for the one resolvent."""
        units = np.where((units := self._units(mean)) > 0, units, 1.0)
        scaled = mean.imag / np.outer(units, units)
        below = np.linalg.eigvalsh((scaled + scaled.T) / 2).max() <= np.sqrt(MET)
        return bool(below and self.spread(mean, inverse) <= 1 + np.sqrt(MET))

    def at(self, z: complex, near: np.ndarray | None = None) -> np.ndarray:
        """The means of ``Q`` at a complex argument of the upper half plane, or from above at a real one.

        Parameters
        ----------
        z : complex
        near : ndarray, optional
            The means at an argument nearby, from which they are tried first.

        Raises
        ------
        NotConverged
            If the path from infinity breaks off.
        """
        found = None if near is None else self.newton(near, 1 / z)
        if found is not None and self._is_resolvent(found, 1 / z):
            return found
        far = max(abs(z), float(abs(self.local[self.target, self.target])))
        start = z if z.real < 0 else complex(z.real, max(z.imag, far))
        first = min(far / abs(start), 1.0)  # on a ray from infinity, by factors beyond the size of the eigenvalues
        mean = self._followed(self.local.astype(complex), lambda t: t * first / start)
        if first < 1:
            mean = self._followed(mean, lambda t: first ** (1 - t) / start)
        if start.imag > z.imag:  # and down, at last by a factor so small that it is no step
            fall = np.log(max(z.imag / start.imag, np.finfo(float).eps))
            height = start.imag
            mean = self._followed(mean, lambda t: 1 / (complex(z.real, height * np.exp(t * fall)) if t < 1 else z))
        return mean

    def _followed(self, mean: np.ndarray, inverse: Callable[[float], complex]) -> np.ndarray:
        """Go along a path of ``1/z``, with parameters from 0 to 1."""
        here, step = 0.0, 1.0
        while here < 1:
            there = min(here + step, 1.0)
            found = self.newton(mean, inverse(there))
            if found is not None and self._is_resolvent(found, inverse(there)):
                here, mean, step = there, found, 3 * step
            elif (step := min(step, 1.0 - here) / 4) < SHORTEST:
                raise self._lost(1 / inverse(there))
        return mean

    def _lost(self, z: complex) -> NotConverged:
        return NotConverged(
            f"The resolvent of the covariances was not followed to {z:.6g}.", hint="other arguments, off the real axis"
        )

    def moments(self, count: int) -> tuple[float, ...]:
        """The means of powers of the eigenvalues: the series of ``Q`` in ``1/z``, whose orders are linear equations."""
        series = [kind.values for kind in self.kinds]
        orders, heard = [[each] for each in series], list[np.ndarray]()
        found = [self.local[self.target, self.target]]
        slope = np.eye(self.size**2) - self._spread(series, series).real
        for n in range(1, count):
            fed = np.zeros((self.size, self.size))
            fed[self.target, self.target] = float(n == 1)
            known = self._order(orders, [*heard, fed])
            mean = np.linalg.solve(slope, self._means(known).ravel()).reshape(fed.shape)
            heard.append(fed + self.heard(mean))
            for before, now in zip(orders, self._order(orders, heard), strict=True):
                before.append(now)
            found.append(mean[self.target, self.target])
        return tuple(map(float, found))

    def _order(self, orders: Sequence[list[np.ndarray]], heard: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The next order of ``Q`` of each site, ``sum of L B_m Q_(n - m)``."""
        out = []
        for kind, own in zip(self.kinds, orders, strict=True):
            p = kind.place
            terms = [kind.values @ b[p, p] @ q for b, q in zip(heard, reversed(own), strict=True)]
            out.append(np.sum(terms, axis=0))
        return out

    def upper(self) -> float:
        """The largest eigenvalue: the first one that is met on the way from infinity."""
        return 1 / self._met(0.0, self.local, 1)

    def lower(self, start: float) -> float:
        """The smallest eigenvalue above a positive start, or zero if there are eigenvalues around the start."""
        mean = self.at(complex(start))
        here = mean[self.target, self.target]
        if abs(here.imag) > (1 - self.spread(mean, 1 / start)) * abs(here):
            return 0.0
        return 1 / self._met(1 / start, mean.real, -1)

    def _met(self, place: float, mean: np.ndarray, way: int) -> float:
        """``1/z`` where real arguments meet the first eigenvalue."""
        step = 1 / float(self.local[self.target, self.target]) / 64
        while True:
            step = min(step, place * (FASTEST - 1)) if place else step
            if step <= 4 * np.finfo(float).eps * place:
                return place
            there = place + way * step
            found = self.newton(mean, there)
            if found is not None and self.spread(found, there) < 1:
                place, mean, step = there, found, 2 * step
            else:
                step /= 4
