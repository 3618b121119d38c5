"""Stationary states in continuous time, of networks without memory: particles in a potential.

A state ``dx/dt = m k - k x + fields + noise`` whose fields do not come back is Gaussian.  Its covariance D at the lag
tau obeys ``D'' = k^2 D - K(D)``, with the covariance K(D) of its fields: Newton's equation in the potential
``V(D) = -k^2 D^2/2 + integral of K`` (Sompolinsky, Crisanti and Sommers, Phys. Rev. Lett. 61, 259, 1988), where noise
gives a velocity at the start, ``D'(0) = -variance/2``.  What decays ends at rest on a maximum of V, with its energy.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.legendre import exact_legendre
from symcavity.algebra.precision import exact_function, mp
from symcavity.evaluate.bracket import root_between
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.moving.lyapunov import largest_exponent
from symcavity.evaluate.moving.site_law import LawWithoutMemory, X
from symcavity.evaluate.undefined import where_defined

GRID = np.geomspace(1e-6, 1e4, 101)  # of variances, in units of the state


class Particle:
    """A stationary state without memory, at its variance.

    Attributes
    ----------
    law : Law
    variance : number
    """

    def __init__(self, law: LawWithoutMemory, variance: Any, dps: int) -> None:
        self.law, self.variance, self._path = law, variance, None
        self._potential = potential = None if variance == 0 else Potential(law, variance, dps)
        still = potential is None or (law.velocity == 0 and (potential.end is None or potential.end > 1 - 1e-9))
        if potential is not None and not still:
            self._path = CorrelationPath(potential, dps)

    @property
    def mean(self) -> Any:
        """The mean of the state."""
        return self.law.mean

    @property
    def moves(self) -> bool:
        """Whether the states fluctuate in time."""
        return self._path is not None

    @cached_property
    def lyapunov(self) -> float:
        """The largest Lyapunov exponent, in double."""
        potential = self._potential
        rest = _slope_at_rest(self.law) if potential is None else mp.mpf(0)
        slope = (lambda _rho: rest) if potential is None else potential.slope
        return largest_exponent(self.law.rate, slope, self._path)

    def covariance(self, lag: Any) -> Any:
        """The covariance of the state at two times."""
        return self.variance if self._path is None else self.variance * self._path.correlation(abs(lag))

    def response(self, lag: Any) -> Any:
        """The response of the state to its rate, after a lag."""
        return mp.exp(-self.law.rate * lag)

    def transform(self, z: Any) -> Any:
        """The transform of the response."""
        return 1 / (self.law.rate + z)


def particles(law: LawWithoutMemory, dps: int) -> list[Particle]:
    """All stationary states of a law without memory."""
    return [Particle(law, v, dps) for v in [*_still(law, dps), *_moving(law, dps)]]


class Potential:
    """The potential of the covariance at a variance, in digits.

    Parameters
    ----------
    law : Law
    variance : number
    dps : int
        Digits of the coefficients; beyond 15 all else is computed with more.

    Attributes
    ----------
    end : number or None
        The correlation at which the covariance comes to rest after long times; None if it comes to none below one.
    """

    def __init__(self, law: LawWithoutMemory, variance: Any, dps: int) -> None:
        self.law, self.variance = law, mp.mpf(variance)
        self.series = law.series(self.variance, dps)
        self.end = self._end()

    def _end(self) -> Any:
        """The smallest correlation at which the force vanishes, by Newton's steps from below: the force is convex."""
        size = max(map(abs, self.series), default=mp.mpf(0))
        if size == 0 or abs(self.series[0]) <= size * mp.mpf(10) ** (-13 if mp.dps < 40 else -mp.dps / 2):
            return mp.mpf(0)
        pull, rho = self.law.rate**2 * self.variance, mp.mpf(0)
        for _ in range(200):
            value, slope = mp.polyval(self.series[::-1], rho, derivative=True)
            if slope >= pull:
                return None
            step = (value - pull * rho) / (pull - slope)
            rho += step
            if rho >= 1:
                return None
            if abs(step) <= mp.mpf(10) ** (-mp.dps + 5):
                return rho
        return None

    def at(self, rho: Any) -> Any:
        """The potential at a correlation."""
        up = [c / (k + 1) for k, c in enumerate(self.series)]
        return self.variance * rho * mp.polyval(up[::-1], rho) - (self.law.rate * self.variance * rho) ** 2 / 2

    @property
    def excess(self) -> Any:
        """The energy at the start, less that at the end: it vanishes at the variance of a stationary state."""
        return None if self.end is None else self.law.velocity**2 / 2 + self.at(mp.mpf(1)) - self.at(self.end)

    @property
    def force(self) -> Any:
        """The force at lag zero: it vanishes where the states keep still."""
        return mp.fsum(self.series) - self.law.rate**2 * self.variance

    @property
    def is_stable(self) -> bool:
        """Whether states that keep still do so after a small disturbance."""
        return bool(self.slope(mp.mpf(1)) < self.law.rate**2)

    def slope(self, rho: Any) -> Any:
        """How the covariance of the fields grows with that of the state."""
        return mp.polyval(self.series[::-1], rho, derivative=True)[1] / self.variance


def _rest_is_stable(law: LawWithoutMemory) -> bool | None:
    """Whether rest at the mean is a state, and stable; None where it is not a state."""
    at = {X: law.mean}
    value = mp.fsum(w * _at(f.expr, at) * _at(g.expr, at) for w, f, g in law.pairs)
    if abs(value) > mp.mpf(10) ** (-mp.dps / 2) or law.velocity > 0:
        return None
    return bool(_slope_at_rest(law) < law.rate**2)


def _slope_at_rest(law: LawWithoutMemory) -> Any:
    """How the covariance of the fields grows with that of the state, where all states are at the mean."""
    at = {X: law.mean}
    return mp.fsum(w * _at(f.expr.diff(X), at) * _at(g.expr.diff(X), at) for w, f, g in law.pairs)


def _at(expr: Expr, point: Any) -> Any:
    return exact_function([X], expr)(point[X])


def _brackets(values: list[Any]) -> list[tuple[float, float]]:
    """The neighbours on the grid between which a quantity falls through zero."""
    pairs = zip(GRID, GRID[1:], values, values[1:], strict=False)
    return [(a, b) for a, b, u, v in pairs if u is not None and v is not None and (u > 0) != (v > 0)]


def _refined(law: LawWithoutMemory, low: float, high: float, of: str, dps: int) -> Any:
    """A root between two variances, to all digits."""

    def value(v: Any, digits: int) -> Any:
        return getattr(Potential(law, v, digits), of) / v**2

    root = mp.mpf(root_between(lambda v: float(value(v, 15)), low, high, xtol=1e-15 * low, rtol=1e-14))
    if dps <= IN_DOUBLE:
        return root
    before = root * (1 + mp.mpf(10) ** -8)
    f, g = value(before, dps), value(root, dps)
    while f != g and abs(root - before) > root * mp.mpf(10) ** (-dps - 2):
        before, root = root, root - g * (root - before) / (g - f)
        f, g = g, value(root, dps)
    return root


class CorrelationPath:
    """The covariance over the lag: the correlation by a coordinate in which nothing is singular.

    Without noise the correlation is ``end + (1 - end)/cosh(y)^2``, which is flat at lag zero; with noise
    ``end + (1 - end) exp(-y)``.  The lag is an integral over y, by Gauss' and Legendre's rule on panels.
    """

    WIDTH = 0.5

    def __init__(self, potential: Potential, dps: int) -> None:
        self._p, self._dps = potential, dps
        self._span = 1 - potential.end
        self._noisy = potential.law.velocity > 0
        self._q = self._quotient()
        self._rule = [tuple(map(mp.make_mpf, pair)) for pair in exact_legendre(int(1.1 * dps) + 14, mp.prec)]
        self._lags = [mp.mpf(0)]

    def _quotient(self) -> list[Any]:
        """The kinetic energy over the square of the distance from the end, as a polynomial in that distance."""
        p = self._p
        up = [mp.mpf(0), *(p.variance * c / (k + 1) for k, c in enumerate(p.series))]
        up += [mp.mpf(0)] * max(0, 3 - len(up))
        up[2] -= (p.law.rate * p.variance) ** 2 / 2
        for k in range(len(up)):  # Taylor's shift to the end
            for n in range(len(up) - 2, k - 1, -1):
                up[n] += p.end * up[n + 1]
        return [-c for c in up[2:]][::-1]

    def slope(self, y: Any) -> Any:
        """d(lag)/dy."""
        if self._noisy:
            return self._p.variance / mp.sqrt(2 * mp.polyval(self._q, self._span * mp.exp(-y)))
        return 2 * self._p.variance * mp.tanh(y) / mp.sqrt(2 * mp.polyval(self._q, self._span * mp.sech(y) ** 2))

    def _between(self, low: Any, high: Any) -> Any:
        half, mid = (high - low) / 2, (high + low) / 2
        return half * mp.fsum(w * self.slope(mid + half * z) for z, w in self._rule)

    def correlation(self, lag: Any) -> Any:
        """The correlation of the state at two times."""
        width = mp.mpf(self.WIDTH)
        while self._lags[-1] <= lag:
            k = len(self._lags)
            self._lags.append(self._lags[-1] + self._between(width * (k - 1), width * k))
            if k > 20 * self._dps + 400:
                return self._p.end
        k = next(n for n, known in enumerate(self._lags) if known > lag) - 1
        low, y = width * k, width * k + width * (lag - self._lags[k]) / (self._lags[k + 1] - self._lags[k])
        for _ in range(60):
            step = (self._lags[k] + self._between(low, y) - lag) / self.slope(y) if y > 0 else mp.mpf(0)
            y -= step
            if abs(step) <= mp.mpf(10) ** (-self._dps - 3) * (1 + y):
                break
        return self.shape(y)

    def shape(self, y: Any) -> Any:
        """The correlation at a value of the coordinate."""
        return self._p.end + self._span * (mp.exp(-y) if self._noisy else mp.sech(y) ** 2)

    @property
    def end(self) -> Any:
        """The correlation after long times."""
        return self._p.end

    @property
    def narrow(self) -> Any:
        """The value of the coordinate up to which noise tells how fast the correlation falls, where there is any."""
        if not self._noisy:
            return mp.mpf(1)
        start, later = (mp.exp(-2 * y) * mp.polyval(self._q, self._span * mp.exp(-y)) for y in (0, mp.mpf(10) ** -8))
        return min(mp.mpf(1), start * mp.mpf(10) ** -8 / abs(later - start))

    @property
    def far(self) -> Any:
        """A value of the coordinate beyond which no digit of the correlation changes."""
        return mp.mpf(self._dps + 3) * mp.log(10) / (1 if self._noisy else 2)


def _still(law: LawWithoutMemory, dps: int) -> list[Any]:
    """The variances of stable states that keep still."""
    if law.velocity > 0:
        return []
    out = [mp.mpf(0)] if _rest_is_stable(law) else []
    for low, high in _brackets(_on_grid(law, "force")):
        root = _refined(law, low, high, "force", dps)
        if Potential(law, root, dps).is_stable:
            out.append(root)
    return out


def _moving(law: LawWithoutMemory, dps: int) -> list[Any]:
    """The variances of states that fluctuate."""
    return [_refined(law, low, high, "excess", dps) for low, high in _brackets(_on_grid(law, "excess"))]


def _on_grid(law: LawWithoutMemory, of: str) -> list[Any]:
    """A quantity of the potential at the variances of the grid; None if there is none."""

    def at(variance: float) -> Any:
        return getattr(Potential(law, variance, 15), of)

    out = []
    for v in GRID:
        value = where_defined(at, v)  # a variance may be too large for the expansion
        out.append(None if value is None or abs(value) <= 1e-12 * (law.rate * v) ** 2 else value)
    return out
