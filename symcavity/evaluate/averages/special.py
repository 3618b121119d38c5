"""Special functions in numbers: phi(n, x) in double precision over arrays, and in mpmath."""

from __future__ import annotations

from functools import lru_cache
from math import erfc
from typing import Any

import numpy as np

from symcavity.algebra.phi_values import checked_order
from symcavity.errors import ValuesError

_SQRT_2PI = 2.5066282746310005
_CHUNK = 1 << 15
_FAR = 60.0  # exp(-60**2/2) is 0 in double precision
_SERIES = 8  # up to this order the continued fraction is tabulated
_BOTH = 4.0  # so far to the left both moments of a quotient are taken over the density
_FEW = 16  # points
_PLAIN = 1.0  # up to where the normal distribution function needs no care
_LOST = 4.6  # the logarithm of the rounding error that the upward recurrence may magnify


def np_phi(n: Any, x: Any) -> Any:
    """Return phi(n, x) in double precision, elementwise.

    Parameters
    ----------
    n : int
        A nonnegative integer.
    x : array_like of real numbers
        The arguments.

    Returns
    -------
    numpy.ndarray or numpy.float64
        With a relative error below 1e-13 for n <= 8 and -37 < x < 200; below about -38 the value
        underflows to 0.

    Raises
    ------
    ValuesError
        If ``n`` is not a nonnegative integer, or if ``x`` is not real.

    Notes
    -----
    For x >= 0 the upward recurrence has positive terms only, and close to 0 it is still harmless. Far to the left
    phi is the minimal solution of the recurrence: the ratios r_k = phi_k/phi_(k-1) = k/(|x| + r_(k+1)) are a
    continued fraction that is stable downward, and of its values a Chebyshev series is made for each of the lower
    orders.
    """
    order = checked_order(n)
    values = np.asarray(x)
    if values.dtype.kind == "O":
        values = values.astype(float)
    if values.dtype.kind not in "fiub":
        raise ValuesError(f"phi is called with an array of type {values.dtype}.", "real numbers.", 'backend="mpmath".')
    flat = np.ascontiguousarray(values, dtype=float).reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, flat.size, _CHUNK):
            _fill(order, flat[start : start + _CHUNK], out[start : start + _CHUNK])
    result = out.reshape(values.shape)
    return result if result.ndim else result[()]


def np_overhang(n: int, x: Any) -> Any:
    """Return phi(n, x)/phi(0, x) in double precision, elementwise: to the left of where both have a number too."""
    from scipy.special import erfcx

    flat = np.atleast_1d(np.asarray(x, dtype=float))
    edge, far = _edge(n), flat < -_BOTH
    out = np_phi(n, flat) / np_phi(0, np.maximum(flat, -_BOTH))
    if far.any():
        size = -flat[far]
        own = (_beyond if n <= _SERIES else _continued)(n, size, edge)
        out[far] = own / ((0.5 * _SQRT_2PI) * erfcx(size / np.sqrt(2.0)))
    return out.reshape(np.shape(x)) if np.ndim(x) else out[0]


def np_log_phi(x: Any) -> Any:
    """Return log(phi(0, x)) in double precision, elementwise: also where phi underflows."""
    from scipy.special import log_ndtr

    return log_ndtr(np.asarray(x, dtype=float))


def _fill(n: int, x: Any, out: Any) -> None:
    edge = _edge(n) if n else _PLAIN
    left = x < -edge
    if not left.any():
        _right(n, x, out)
        return
    right = ~left
    if right.any():
        part = x[right]
        filled = np.empty_like(part)
        _right(n, part, filled)
        out[right] = filled
    out[left] = _left(n, -x[left])


def _right(n: int, x: Any, out: Any) -> None:
    """Fill phi(n, x) above the edge (or nan), by the upward recurrence."""
    lower = _normal(x)
    if n == 0:
        out[...] = lower
        return
    upper = x * x
    upper *= -0.5
    np.exp(upper, out=upper)
    upper *= 1 / _SQRT_2PI
    step = x * lower
    upper += step
    for k in range(1, n):
        np.multiply(x, upper, out=step)
        if k > 1:
            lower *= k
        lower += step
        lower, upper = upper, lower
    out[...] = upper


def _normal(x: Any) -> Any:
    """The normal distribution function; of few points without SciPy, which takes longer to load than to solve."""
    if x.size <= _FEW:
        return np.array([0.5 * erfc(v) for v in (x * -(0.5**0.5)).tolist()])
    from scipy.special import ndtr

    return ndtr(x)


def _left(n: int, size: Any) -> Any:
    """Return phi(n, -size) beyond the edge."""
    from scipy.special import erfcx

    size = np.minimum(size, _FAR)
    # exp(-size**2/2) with the square split exactly, so that its rounding is not magnified
    coarse = np.floor(size * 16) / 16
    density = np.exp(-0.5 * coarse * coarse) * np.exp(-0.5 * (size - coarse) * (size + coarse)) / _SQRT_2PI
    if n == 0:
        return density * ((0.5 * _SQRT_2PI) * erfcx(size / np.sqrt(2.0)))
    return density * (_beyond if n <= _SERIES else _continued)(n, size, _edge(n))


@lru_cache(maxsize=256)
def _edge(n: int) -> float:
    """Up to which size the upward recurrence loses less than two digits.

    An error grows by the ratio of the two solutions, at most ``u**2/k`` a step, ``u = (s + sqrt(s*s + 4*k + 4))/2``.
    """
    k = np.arange(1, n + 1)
    for size in np.arange(3.0, 0.05, -0.05):
        u = 0.5 * (size + np.sqrt(size * size + 4 * k + 4))
        if np.sum(np.log(u * u / k)) < _LOST:
            return float(size)
    return 0.05


def _beyond(n: int, size: Any, edge: float) -> Any:
    """Return phi(n, -size)/density beyond the edge: a Chebyshev series in 1/(1 + size)."""
    series = _series(n, edge)
    inverse = 1 / (1 + size)
    t = 2 * (1 + edge) * inverse
    t -= 1
    if t.size <= _FEW:  # numbers one by one are ten times as quick as short arrays
        value = np.array([_summed(series, v) for v in t.tolist()])
    else:
        here, before = np.zeros_like(t), np.zeros_like(t)
        twice = 2 * t
        for c in series:  # Clenshaw's recurrence
            before *= -1
            before += twice * here
            before += c
            here, before = before, here
        value = here - t * before  # the last step counts half of twice the argument
    value *= inverse
    for _ in range(n):
        value *= inverse
    return value


def _summed(series: tuple[float, ...], t: float) -> float:
    """Clenshaw's recurrence at one point, in the order of the one for arrays."""
    here = before = 0.0
    for c in series:
        here, before = 2 * t * here - before + c, here
    return here - t * before


@lru_cache(maxsize=256)
def _series(n: int, edge: float) -> tuple[float, ...]:
    """Return the Chebyshev coefficients of ``phi(n, -s)/density*(1 + s)**(n + 1)``, the highest order first."""
    count = 48
    angles = np.pi * (np.arange(count) + 0.5) / count
    size = 2 * (1 + edge) / (1 + np.cos(angles)) - 1
    far = np.minimum(size, 1e8)
    values = _continued(n, far, edge) * (1 + far) ** (n + 1)
    found = 2 / count * np.cos(np.outer(np.arange(count), angles)) @ values
    found[0] /= 2
    small = np.abs(found) < 5e-15 * np.abs(found).max()
    last = next((k for k in range(count - 3) if small[k : k + 4].all()), count)  # from here on it is rounding
    return tuple(float(c) for c in found[:last][::-1])


def _continued(n: int, size: Any, edge: float) -> Any:
    """Return phi(n, -size)/density beyond the edge by the continued fraction, in bands of equal depth."""
    from scipy.special import erfcx

    mills = (0.5 * _SQRT_2PI) * erfcx(size / np.sqrt(2.0))
    scaled = np.full_like(size, np.nan)
    low = edge
    while low < _FAR:
        mask = (size >= low) & ((size < 2 * low) | (2 * low >= _FAR))
        if mask.any():
            scaled[mask] = _downward(n, size[mask], mills[mask], low)
        low *= 2
    return scaled


def _downward(n: int, size: Any, mills: Any, low: float) -> Any:
    start = _depth(n, low)
    root = np.sqrt(size * size + 4.0 * (start + 1))
    linear = size + 1 / root
    ratio = 0.5 * (np.sqrt(linear * linear + 4.0 * (start + 1)) - linear)
    product = mills.copy()
    for k in range(start, 0, -1):
        ratio += size
        np.divide(k, ratio, out=ratio)
        if k <= n:
            product *= ratio
    return product


@lru_cache(maxsize=1024)
def _depth(n: int, low: float) -> int:
    """Return where the continued fraction is started for arguments above ``low``.

    Each step downward shrinks a relative error by r_k/(size + r_(k+1)), that is by
    exp(-2*asinh(size/(2*sqrt(k)))); the starting value is good to 1/k.
    """
    k = n + 1
    gained = 0.0
    while gained < 37.0 - np.log(k):
        gained += 2 * float(np.arcsinh(low / (2 * np.sqrt(k))))
        k += 1
    return k
