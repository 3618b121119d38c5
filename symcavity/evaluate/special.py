"""Special functions in numbers: phi(n, x) in double precision over arrays, and in mpmath."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from symcavity.algebra.phi import checked_order, mp_phi
from symcavity.errors import ValuesError

__all__ = ["LAMBDIFY_MODULES", "mp_phi", "np_phi"]

_SQRT_2PI = 2.5066282746310005
_CHUNK = 1 << 15
_FAR = 60.0  # exp(-60**2/2) is 0 in double precision


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
    For x >= 0 the upward recurrence has positive terms only. For x < 0 phi is the minimal solution of
    the recurrence: the ratios r_k = phi_k/phi_(k-1) = k/(|x| + r_(k+1)) are a continued fraction that
    is stable downward; it starts where what is left of the starting error is below rounding. Close to 0,
    where it converges slowly, upward is still harmless.
    """
    order = checked_order(n)
    values = np.asarray(x)
    if values.dtype.kind == "O":
        values = values.astype(float)
    if values.dtype.kind not in "fiub":
        raise ValuesError(f"phi at an array of type {values.dtype}.", "real numbers.", 'backend="mpmath".')
    flat = np.ascontiguousarray(values, dtype=float).reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, flat.size, _CHUNK):
            _fill(order, flat[start : start + _CHUNK], out[start : start + _CHUNK])
    result = out.reshape(values.shape)
    return result if result.ndim else result[()]


LAMBDIFY_MODULES: dict[str, dict[str, Any]] = {"numpy": {"phi": np_phi}, "mpmath": {"phi": mp_phi}}
"""Name -> function for each backend, for code that calls ``phi`` by its bare name."""


def _fill(n: int, x: Any, out: Any) -> None:
    left = x < 0
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
    """Fill phi(n, x) for x >= 0 (or nan)."""
    from scipy.special import ndtr

    if n == 0:
        ndtr(x, out=out)
        return
    lower = ndtr(x)
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


def _left(n: int, size: Any) -> Any:
    """Return phi(n, -size) for size > 0."""
    from scipy.special import erfcx

    size = np.minimum(size, _FAR)
    # exp(-size**2/2) with the square split exactly, so that its rounding is not magnified
    coarse = np.floor(size * 16) / 16
    density = np.exp(-0.5 * coarse * coarse) * np.exp(-0.5 * (size - coarse) * (size + coarse)) / _SQRT_2PI
    mills = (0.5 * _SQRT_2PI) * erfcx(size / np.sqrt(2.0))
    if n == 0:
        return density * mills
    scaled = np.empty_like(size)
    edge = min(1.0, 3.0 / np.sqrt(n))
    low = 0.0
    high = edge
    while True:
        last = high >= _FAR
        mask = (size >= low) & (size < high) if not last else size >= low
        if mask.any():
            part, mill = size[mask], mills[mask]
            scaled[mask] = _upward(n, part, mill) if low == 0.0 else _downward(n, part, mill, low)
        if last:
            break
        low, high = high, 2 * high
    scaled[np.isnan(size)] = np.nan
    return density * scaled


def _upward(n: int, size: Any, mills: Any) -> Any:
    lower, upper = mills, 1 - size * mills
    for k in range(1, n):
        lower, upper = upper, k * lower - size * upper
    return upper


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
