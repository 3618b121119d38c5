"""The dimension of the activity of a network without memory, in its stationary state.

At given couplings what two units send is correlated at order ``1/sqrt(N)``, as in the linear network with the same
couplings whose units answer with their mean response ``S(w) = <f'>/(k + iw)`` and are driven by independent noise that
makes the spectrum ``C(w)`` of a single unit right.  Each coupling on the way from a unit to another one is met twice
in the sum over squares of covariances, so that what goes round adds up to

    sum over i, j of C_ij(w) C_ij(v)* = N C(w) C(v) / |1 - g^2 S(w) S(v)*|^2

for the variance ``g^2/N`` of the couplings, the diagonal included (the method of two sites, at two frequencies).  Its
integral over both frequencies is the sum of the squares of covariances at a lag, and the participation ratio of the
eigenvalues over N follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.fft import dct
from scipy.interpolate import CubicSpline

from symcavity.errors import NotConverged

LAGS, FINE, SMALL = 65, 2**11, 1e-5


def dimension(covariance: Callable[[Any], Any], rate: float, gain: float, slowest: float, lag: float) -> float:
    """The participation ratio of the covariances of what the units of a network send, over their number.

    Parameters
    ----------
    covariance : callable
        Of what one unit sends, about its mean, at the lags of an array.
    rate : float
        At which a state forgets.
    gain : float
        The standard deviation of the couplings, in units of ``1/sqrt(N)``, times the mean slope of what is sent.
    slowest : float
        A first guess of the lag after which the covariance has decayed.
    lag : float
        Between the two times of the covariances.

    Raises
    ------
    NotConverged
        If the covariance does not decay, or changes of the activity grow from unit to unit.
    """
    if gain >= rate:
        raise NotConverged(
            f"The mean slopes times the couplings, {gain:.4g}, are no smaller than the rate {rate:.4g}: covariances "
            "of units are larger than order 1/sqrt(N)."
        )
    longest = slowest
    while abs(float(covariance(np.array([longest]))[0])) > SMALL * float(covariance(np.array([0.0]))[0]):
        longest *= 2
        if longest > 1e4 * slowest:
            raise NotConverged("The covariance at two times does not decay.")
    if lag > longest:
        raise NotConverged(f"At the lag {lag:g} the covariances have decayed: {longest:.4g} is beyond them.")
    lags = longest * np.linspace(0, 1, LAGS) ** 2
    values = CubicSpline(lags, covariance(lags))
    found = [_ratio(values, longest, count, rate, gain, lag) for count in (FINE // 2, FINE)]
    return float((4 * found[1] - found[0]) / 3)  # the rule of the sums over lags is of the second order


def _ratio(values: Any, longest: float, count: int, rate: float, gain: float, lag: float) -> float:
    """The ratio with so many steps up to the longest lag."""
    step = longest / count
    spectrum = np.maximum(step * dct(values(step * np.arange(count + 1)), type=1), 0.0)
    w = np.pi / longest * np.arange(count + 1)
    weight = np.full(count + 1, 1 / longest)
    weight[[0, -1]] /= 2  # of cosines on half an axis
    one, other = 1 / (rate + 1j * w), 1 / (rate - 1j * w)
    total = 0.0
    for k, here in enumerate(spectrum):
        if here <= SMALL**2 * spectrum[0]:
            continue
        phase, turned = np.cos(w[k] * lag) * np.cos(w * lag), np.sin(w[k] * lag) * np.sin(w * lag)
        same = abs(1 - gain**2 * one[k] * other) ** -2.0  # both frequencies of one sign
        opposite = abs(1 - gain**2 * one[k] * one) ** -2.0
        body = same * (phase + turned) + opposite * (phase - turned)
        total += weight[k] * here * np.sum(weight * spectrum * body) / 2
    return float(values(lag) ** 2 / total)
