"""How many directions a stationary activity explores: the lines that join two sites, in numbers.

The mean square of a covariance after a lag is a sum over the two frequencies of :mod:`symcavity.method.moving_pair`,

    sum over j of C_ij(lag)^2 = sum over two frequencies of exp(i (w + v) lag) T(w, v),    T = P + P W T.

At one frequency it would be the formula of states at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.moving.plan import MovingPlan
from symcavity.evaluate.tolerances import tolerances
from symcavity.method.moving_pair import MovingPair
from symcavity.method.pair_ends import Leg
from symcavity.model.kinds import N

Spectrum = Callable[[Expr, Expr], np.ndarray]


class TwoSites:
    """The lines that join sites, as a linear system for each two frequencies.

    Parameters
    ----------
    pair : MovingPair
    plan : Plan
    """

    def __init__(self, pair: MovingPair, plan: MovingPlan) -> None:
        self.pair, self.plan, self.legs, self.observed = pair, plan, pair.legs, pair.observed
        self.rows = list(pair.twos)
        self.target = self.rows.index(pair.target)
        put = plan.values.put_into
        self.share = np.array([float(put((a.kind.size / N).subs(a.kind.size, a.kind.ratio * N))) for a, _ in self.rows])
        self.between = np.array([[float(put(pair.between(r, c))) for c in self.rows] for r in self.rows])

    def dimension(self, spectrum: Spectrum, answer: Any, waves: np.ndarray, own: float) -> float:
        """``(sum C_ii)^2/(n sum C_ij^2)`` of n sites after a lag, in the limit.

        Parameters
        ----------
        spectrum : callable
            The spectrum of what is sent: at each frequency the sum over lags of ``exp(-i w lag) <a(t + lag) b(t)>``.
        answer : callable
            The same of the mean response of what is sent to a field.
        waves : ndarray
            ``exp(i w lag)`` at the lag, times the weight of each frequency in the sum over frequencies.
        own : float
            The covariance of a site with itself after the lag.
        """
        every = [(two, self._line(*two, spectrum, answer)) for two in self.rows]
        lines = {pair: line for pair, line in every if line is not None}
        size, total = len(self.rows), 0.0
        for w, wave in enumerate(waves):
            one = np.zeros((len(waves), size, size), dtype=complex)
            for r, (a, b) in enumerate(self.rows):
                for c, (p, q) in enumerate(self.rows):
                    if (a, p) in lines and (b, q) in lines:
                        one[:, r, c] = self.share[r] * lines[a, p][w] * lines[b, q]
            first = one[:, :, self.target, None]
            found = np.linalg.solve(np.eye(size) - one @ self.between, first) - first
            total += float((found[:, self.target, 0] * waves * wave).sum().real)
        return own**2 / (own**2 + total / self.share[self.target])

    @staticmethod
    def _line(a: Leg, b: Leg, spectrum: Spectrum, answer: Any) -> np.ndarray | None:
        if a.sent is not None and b.sent is not None:
            return spectrum(a.sent, b.sent)
        if a.sent is not None:
            return answer(a.sent, b.field)
        return None if b.sent is None else answer(b.sent, a.field).conj()


def check_balanced(sizes: Mapping[Expr, tuple[float, float]]) -> None:
    """Refuse what is sent with a part that stays: its share of the mean square, and the error of this share.

    Raises
    ------
    UnsupportedLaw
        If there is one.
    """
    for sent, (part, error) in sizes.items():
        if abs(part) > max(4 * error, tolerances().stayed):
            raise UnsupportedLaw(
                f"At given couplings the average of {sent} over time differs from site to site: its square is "
                f"{part:.3g} of the mean square. One mean response does not hold for all sites then.",
                "states whose correlations decay to zero",
                "a longer until=, if they have not decayed yet",
            )
