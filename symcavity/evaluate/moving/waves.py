"""Spectra of a Gaussian stationary state, in double: of the messages between sites, and of the responses to them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline
from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged
from symcavity.evaluate.moving.hermite import Profile, common
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.moving.site_law import LawWithoutMemory, X
from symcavity.evaluate.moving.two_sites import TwoSites, check_balanced

KNOTS = 100  # lags at which the correlation is found, closer to each other towards zero
PANELS, NODES = 300, 8  # of the integrals over lags
LEFT = 1e-7  # of the correlation, beyond the longest lag


class Waves:
    """A state at frequencies.

    Parameters
    ----------
    law : Law
    state : Particle or LinearMemory
    """

    def __init__(self, law: LawWithoutMemory, state: Any) -> None:
        self.law, self.state = law, state
        self.mean, self.variance = float(state.mean), float(state.variance)
        self.scale = np.sqrt(float(law.rate) / (self._weights @ self._correlation(self._lags)))

    @cached_property
    def _longest(self) -> float:
        """A lag after which nothing is left of the correlation."""
        lag = 1.0
        while abs(left := float(self.state.covariance(mp.mpf(lag))) / self.variance) > LEFT:
            lag *= 1.5
            if lag > 1e4:
                check_balanced({self.law.state: (left, 0.0)})
                raise NotConverged(
                    f"The correlation does not decay: at the lag {lag:.3g} it is {left:.2g} of the variance.",
                    hint="parameters farther from a transition",
                )
        return lag

    @cached_property
    def _correlation(self) -> CubicSpline:
        knots = self._longest * np.linspace(0, 1, KNOTS) ** 2
        return CubicSpline(knots, [float(self.state.covariance(mp.mpf(k))) / self.variance for k in knots])

    @cached_property
    def _panels(self) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        edges = self._longest * np.linspace(0, 1, PANELS + 1) ** 2
        half = np.diff(edges) / 2
        lags = (edges[:-1] + half)[:, None] + half[:, None] * nodes
        return lags.ravel(), (half[:, None] * weights).ravel()

    @property
    def _lags(self) -> np.ndarray:
        return self._panels[0]

    @property
    def _weights(self) -> np.ndarray:
        return self._panels[1]

    def dimension(self, lines: TwoSites, plan: MovingPlan, lag: float, count: int) -> float:
        """The dimension of what is observed, after a lag, at frequencies ``scale tan(angle)`` with equal distances."""
        angles = ((np.arange(count) + 0.5) / count - 0.5) * np.pi
        frequencies = self.scale * np.tan(angles)
        cosines = 2 * self._weights * np.cos(np.multiply.outer(frequencies, self._lags))
        sent = {leg.sent for leg in lines.legs if leg.sent is not None}
        own = {e: e.xreplace(self.law.known).xreplace({self.law.state: X}) for e in sent}
        rows = {e: self._coefficients(body) for e, body in own.items()}
        check_balanced({e: (row[0] ** 2, 0.0) for e, row in rows.items()})
        moved = np.array([complex(self.state.transform(mp.mpc(0, w))) for w in frequencies])

        def covariance(a: Expr, b: Expr, correlation: Any) -> Any:
            ours, theirs = common(rows[a], rows[b])
            return np.polyval([p * q for p, q in zip(ours, theirs, strict=True)][::-1], correlation)

        def spectrum(a: Expr, b: Expr) -> np.ndarray:
            return cosines @ covariance(a, b, self._correlation(self._lags))

        def answer(e: Expr, heard: Any) -> np.ndarray:
            return self._coefficients(own[e].diff(X))[0] * float(plan.factors[heard.declared]) * moved

        here = self._correlation(lag) if lag < self._longest else 0.0
        waves = self.scale / (2 * count * np.cos(angles) ** 2) * np.exp(1j * frequencies * lag)  # of dw/(2 pi)
        return lines.dimension(spectrum, answer, waves, float(covariance(lines.observed, lines.observed, here)))

    def _coefficients(self, body: Expr) -> list[float]:
        return [float(c) for c in Profile(body, X).coefficients(self.mean, self.variance, 15)]
