"""Stationary states of linear networks whose couplings come back, in closed form.

With ``x' = -k x + fields + noise``, fields of the covariance ``K C + K_0``, and ``a`` times the mean response coming
back, the response and the covariance after a lag have the transforms

    a R^2 - (k + z) R + 1 = 0,    C(z) = variance R(z) R(-z)/(1 - K R(z) R(-z)).

C over the lag is the integral of ``exp(z lag) C(z)`` along a contour that crosses the real axis at zero, and bends into
the left half of the plane, where the first factor dies out (Crisanti and Sompolinsky, Phys. Rev. A 36, 4922, 1987).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, UnsupportedLaw
from symcavity.evaluate.averages.compiler import to_mpf
from symcavity.evaluate.moving.site_law import SAMPLED, SUPPORTED, LawWithoutMemory, X

GUARD = 15  # digits of which the contour makes no use
BENT = mp.mpf(1) / 4  # how steeply the contour bends: the share of its height by which it goes to the left


def _line(expr: Expr) -> tuple[Any, Any]:
    """The slope and the constant of a function that is linear in the state.

    Raises
    ------
    UnsupportedLaw
        If it is not.
    """
    slope = expr.diff(X)
    if slope.has(X):
        raise UnsupportedLaw("No closed form is known where the feedback is not linear.", SUPPORTED, SAMPLED)
    return to_mpf(slope), to_mpf(expr.subs(X, 0))


class LinearMemory:
    """A linear network whose couplings come back.

    Attributes
    ----------
    law : Law
    mean, variance : number
        Of the state.

    Raises
    ------
    NotConverged
        If small changes grow.
    """

    def __init__(self, law: LawWithoutMemory) -> None:
        self.law = law
        echoes = [(weight * _line(answer)[0], *_line(sent)) for weight, answer, sent in law.echoes]
        self.back = mp.fsum(weight * c for weight, c, _ in echoes)
        at_once = self._static(law, self.back)
        sent = mp.fsum(weight * d for weight, _, d in echoes)
        self.mean = (law.rate * law.mean + sent * at_once) * at_once
        lines = [(w, _line(f.expr), _line(g.expr)) for w, f, g in law.pairs]
        self.fed = mp.fsum(w * f[0] * g[0] for w, f, g in lines)
        given = mp.fsum(w * (f[0] * self.mean + f[1]) * (g[0] * self.mean + g[1]) for w, f, g in lines)
        if not self.fed * at_once**2 < 1:
            raise NotConverged(f"No stationary state is reached: small changes of {law.state} grow.")
        self.frozen = at_once**2 * given / (1 - self.fed * at_once**2)
        self._known: dict[Any, Any] = {}

    @staticmethod
    def _static(law: LawWithoutMemory, back: Any) -> Any:
        """The response to a source that stays."""
        if not law.rate**2 > 4 * back:
            raise NotConverged(f"No stationary state is reached: small changes of {law.state} grow.")
        return 2 / (law.rate + mp.sqrt(law.rate**2 - 4 * back))

    @property
    def moves(self) -> bool:
        """Whether the states fluctuate in time."""
        return bool(self.law.velocity > 0)

    @property
    def lyapunov(self) -> float:
        """The rightmost point of the spectrum of the couplings, less the rate."""
        size = mp.sqrt(self.fed)
        return float(size + self.back / size - self.law.rate) if size else -float(self.law.rate)

    def response(self, lag: Any) -> Any:
        """The response of the state to its rate, after a lag: a Bessel function."""
        u = 2 * mp.sqrt(mp.mpc(self.back)) * lag
        return mp.exp(-self.law.rate * lag) * (mp.re(2 * mp.besseli(1, u) / u) if u else 1)

    def transform(self, z: Any) -> Any:
        """The transform of the response: the root that falls as one over z."""
        edge, z = 2 * mp.sqrt(mp.mpc(self.back)), z + self.law.rate
        return 2 / (z + mp.sqrt(z - edge) * mp.sqrt(z + edge))

    @cached_property
    def variance(self) -> Any:
        """The variance of the state."""
        return self.covariance(mp.mpf(0))

    def covariance(self, lag: Any) -> Any:
        """The covariance of the state at two times."""
        if not self.moves:
            return self.frozen
        if lag not in self._known:
            self._known[lag] = self.frozen + self._along_contour(abs(lag))
        return self._known[lag]

    def _along_contour(self, lag: Any) -> Any:
        """The contour ``i d sinh(u) - (cosh(u) - 1) d/4``, by the trapezoidal rule with halved steps."""
        gap, small = self._gap, mp.mpf(10) ** (GUARD - mp.dps)

        def value(u: Any) -> Any:
            z = gap * (mp.mpc(0, 1) * mp.sinh(u) - BENT * (mp.cosh(u) - 1))
            along = gap * (mp.cosh(u) + mp.mpc(0, 1) * BENT * mp.sinh(u))
            there = self.transform(z) * self.transform(-z)
            return mp.re(along * mp.exp(z * lag) * there / (1 - self.fed * there))

        def added(first: Any, step: Any) -> Any:
            total, u, few = mp.mpf(0), first, 0
            while few < 4:  # the integrand falls exponentially, and may pass through zero
                here = value(u)
                total, u = total + here, u + step
                few = few + 1 if u > 1 and abs(here) <= small * abs(start) else 0
            return total

        start = value(mp.mpf(0))
        step = mp.mpf(1) / 4
        total = start / 2 + added(step, step)
        found = step * total
        for _ in range(8):
            total += added(step / 2, step)
            step /= 2
            before, found = found, step * total
            if abs(found - before) <= mp.sqrt(small) * abs(start):  # each halving squares the error
                return 2 * self.law.velocity * found / mp.pi
        raise NotConverged(f"The covariance at the lag {mp.nstr(lag, 5)} is not found to {mp.dps} digits.")

    @cached_property
    def _gap(self) -> Any:
        """How far from zero the covariance stops to be smooth: where ``K R(z) R(-z) = 1``, and where R is a root."""
        edges = [abs(self.law.rate - 2 * mp.sqrt(mp.mpc(self.back)))]
        if self.fed > 0:
            half = self.law.rate / (self.fed + self.back)
            high = half + mp.sqrt(max(half**2 - 1 / self.fed, mp.mpf(0)))
            edges.append(abs(1 / high + self.back * high - self.law.rate))
        return min(e for e in edges if e > 0)
