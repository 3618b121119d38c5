"""The resolvent of a matrix of covariances: one matrix equation for each kind of sites, in complex doubles.

At given couplings sites are joined by ``G = L + L x L + L x G x L``, with the local covariances and responses ``L`` of
each site and the couplings ``x`` of two.  The resolvent of the covariances ``C`` of what is observed is that of ``G``
with a source, ``(1 - C/z)^(-1) = 1 + Q/z`` at what is observed, where to leading order

    Q_u = L_u (1 - B L_u)^(-1),    B = E/z + W[mean Q - mean L],

with one at what is observed in ``E``, and the covariances ``W`` of the couplings.  Its solution with a negative
imaginary part is unique in the upper half plane (J. W. Helton, R. Rashidi Far, R. Speicher, Int. Math. Res. Not. 2007).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from symcavity.errors import NotConverged
from symcavity.evaluate.solutions.contraction import newton, root_of
from symcavity.evaluate.tolerances import tolerances

NEARER = 8  # by what factor arguments come nearer to the real axis


@dataclass(frozen=True)
class LocalSpectrum:
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

    kinds: Sequence[LocalSpectrum]
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
        return self.means([kind.values for kind in self.kinds])

    def means(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """The means over the sites of each kind."""
        out = np.zeros((self.size, self.size), dtype=values[0].dtype)
        for kind, each in zip(self.kinds, values, strict=True):
            out[kind.place, kind.place] = each[0] if len(each) == 1 else np.tensordot(kind.weights, each, 1)
        return out

    def heard(self, mean: np.ndarray) -> np.ndarray:
        """``W`` of a matrix of means."""
        return (self.couplings @ mean.ravel()).reshape(mean.shape)

    def sites(self, mean: np.ndarray, inverse: complex) -> list[np.ndarray]:
        """``Q`` of each site, at means and at ``1/z``."""
        b = self.heard(mean - self.local)
        b[self.target, self.target] += inverse
        out = []
        for kind in self.kinds:
            own = b[kind.place, kind.place]
            out.append(kind.values @ np.linalg.inv(np.eye(len(own)) - own @ kind.values))
        return out

    def returned(self, sites: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """The map from a change of means to ``mean of other W[change] site``, as a matrix."""
        n = self.size
        out = np.zeros((n, n, n, n), dtype=complex)
        for kind, one, two in zip(self.kinds, others, sites, strict=True):
            p = kind.place
            out[p, p, p, p] = np.einsum("u,uae,ufb->abef", kind.weights, one, two)
        return out.reshape(n * n, n * n) @ self.couplings

    def near(self, start: np.ndarray, inverse: complex) -> np.ndarray | None:
        """The resolvent near a start, if its means are there."""
        found, _ = newton(_AtArgument(self, inverse), start.ravel())
        return None if found is None else found.reshape(start.shape)

    def units(self, mean: np.ndarray) -> np.ndarray:
        """The size of each end: of what is sent, and of what is heard by its products with what is sent."""
        size = np.abs(mean)
        units = np.sqrt(np.diag(size))
        sent = self.sent & (units > 0)
        across = (size[:, sent] / units[sent]).max(axis=1, initial=0.0)
        return np.where(self.sent, units, np.maximum(units, across))

    def spread(self, mean: np.ndarray, inverse: complex) -> float:
        """By how much a small random change grows from site to site: below one outside of the eigenvalues."""
        sites = self.sites(mean, inverse)
        return float(max(abs(np.linalg.eigvals(self.returned(sites, [q.conj() for q in sites])))))

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
            If it is not found.
        """
        far = max(abs(z), float(abs(self.local[self.target, self.target])))

        def raised(k: int) -> _AtArgument:  # at real arguments the means need not contract, but above them they do
            return _AtArgument(self, 1 / (z + 1j * far / NEARER**k) if z.real > 0 else 1 / z)

        equations = _AtArgument(self, 1 / z)
        starts = (equations.begin(),) if near is None else (near.ravel(), equations.begin())
        found, _ = root_of(equations, starts, raised)
        if found is not None:
            return found.reshape(self.local.shape)
        raise NotConverged(
            f"The resolvent of the covariances was not found at {z:.6g}.", hint="other arguments, off the real axis"
        )

    def moments(self, count: int) -> tuple[float, ...]:
        """The means of powers of the eigenvalues: the series of ``Q`` in ``1/z``, whose orders are linear equations."""
        series = [kind.values for kind in self.kinds]
        orders, heard = [[each] for each in series], list[np.ndarray]()
        found = [self.local[self.target, self.target]]
        slope = np.eye(self.size**2) - self.returned(series, series).real
        for n in range(1, count):
            fed = np.zeros((self.size, self.size))
            fed[self.target, self.target] = float(n == 1)
            known = self._order(orders, [*heard, fed])
            mean = np.linalg.solve(slope, self.means(known).ravel()).reshape(fed.shape)
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
            step = min(step, place * tolerances().band) if place else step
            if step <= 4 * np.finfo(float).eps * place:
                return place
            there = place + way * step
            found = self.near(mean, there)
            if found is not None and self.spread(found, there) < 1:
                place, mean, step = there, found, 2 * step
            else:
                step /= 4


@dataclass(frozen=True)
class _AtArgument:
    """The matrix equation at one argument, of the means as a vector."""

    dyson: Dyson
    inverse: complex

    def _sites(self, x: np.ndarray) -> list[np.ndarray]:
        return self.dyson.sites(x.reshape(self.dyson.local.shape), self.inverse)

    def begin(self) -> np.ndarray:
        """A point with a negative imaginary part, as the resolvent has."""
        own = self.dyson.sites(self.dyson.local.astype(complex), -1j * abs(self.inverse))
        return self.dyson.means(own).ravel()

    def image(self, x: np.ndarray) -> np.ndarray:
        """The means of what sites answer at means."""
        return self.dyson.means(self._sites(x)).ravel()

    def gap(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """By how much the means miss it, and its slopes."""
        sites = self._sites(x)
        return x - self.dyson.means(sites).ravel(), np.eye(len(x)) - self.dyson.returned(sites, sites)

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """The size of each mean, and of those that vanish that of their ends."""
        mean = x.reshape(self.dyson.local.shape)
        units = self.dyson.units(mean)
        return np.maximum(np.abs(mean), np.outer(units, units)).ravel()

    def counts(self, x: np.ndarray) -> bool:
        """Whether the imaginary part is negative and small changes do not grow, as for the one resolvent."""
        mean = x.reshape(self.dyson.local.shape)
        units = np.where((units := self.dyson.units(mean)) > 0, units, 1.0)
        scaled = mean.imag / np.outer(units, units)
        below = np.linalg.eigvalsh((scaled + scaled.T) / 2).max() <= tolerances().rough
        return bool(below and self.dyson.spread(mean, self.inverse) <= 1 + tolerances().rough)
