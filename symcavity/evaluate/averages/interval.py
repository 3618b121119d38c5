"""Standard Gaussians between two ends in double precision: moments by their tails, and narrow ones by a sum."""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

import numpy as np

from symcavity.evaluate.averages.special import np_overhang

NODES = 12  # which sum a density that hardly changes to all digits
NARROW = 2.0  # by how much the logarithm of a density changes at least where its tails differ enough
CHUNK = 1 << 13


def np_between(n: int, u: Any, v: Any) -> Any:
    """Return ``between(n, u, v)``, or the logarithm of the share between u and v for n = 0, elementwise.

    Parameters
    ----------
    n : int
    u, v : array_like
        The lower and the upper end; without a distance between them the share is zero, and so is each moment.
    """
    ends = np.broadcast_arrays(np.asarray(u, dtype=float), np.asarray(v, dtype=float))
    first, last = (np.ascontiguousarray(e).reshape(-1) for e in ends)
    out = np.empty_like(first)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for start in range(0, first.size, CHUNK):
            part = slice(start, start + CHUNK)
            out[part] = _turned(n, first[part], last[part])
    result = out.reshape(ends[0].shape)
    return result if result.ndim else result[()]


def _turned(n: int, u: Any, v: Any) -> Any:
    """The moment, counted from the end that is nearer to zero: the tail beyond the other one is the smaller."""
    turned, wide = u + v < 0, v - u
    low, high = np.where(turned, -v, u), np.where(turned, -u, v)
    narrow = wide * (wide / 2 + np.maximum(low, 0)) < NARROW
    out = np.empty_like(wide)
    inner = narrow | (low < 0)
    for chosen, moment in ((narrow, _summed), (~inner, _beyond), (inner & ~narrow, _about_zero)):
        if chosen.any():
            out[chosen] = moment(n, low[chosen], high[chosen], wide[chosen])
    if n == 1:
        out = np.where(turned, wide - out, out)
    elif n % 2:
        out = np.where(turned, -out, out)
    return np.where(wide > 0, out, np.where(np.isnan(wide), np.nan, 0.0 if n else -np.inf))


def _summed(n: int, low: Any, _high: Any, wide: Any) -> Any:
    nodes, weights = _rule()
    away = wide[:, None] * nodes
    share = np.exp(-away * (away / 2 + low[:, None])) * weights
    total = share.sum(axis=1)
    if n == 0:
        return np.log(total * wide) - low**2 / 2 - np.log(2 * np.pi) / 2
    mean = (share * away).sum(axis=1) / total
    return mean if n == 1 else (share * (away - mean[:, None]) ** n).sum(axis=1) / total


def _beyond(n: int, low: Any, high: Any, wide: Any) -> Any:
    """Above zero: powers of the distance from the lower end, over its tail less that of the upper end."""
    from scipy.special import log_ndtr

    tail = log_ndtr(-low)
    missing = np.exp(log_ndtr(-high) - tail)
    if n == 0:
        return tail + np.log1p(-missing)
    near, far = ([np.ones_like(low), *(np_overhang(k, -e) for k in range(1, n + 1))] for e in (low, high))
    raw = [
        (near[k] - missing * sum(comb(k, j) * wide ** (k - j) * far[j] for j in range(k + 1))) / (1 - missing)
        for k in range(n + 1)
    ]
    return raw[1] if n == 1 else _central(n, raw)


def _about_zero(n: int, low: Any, high: Any, _wide: Any) -> Any:
    """With zero inside: powers of the number itself, by parts."""
    from scipy.special import ndtr

    outside = ndtr(low) + ndtr(-high)
    if n == 0:
        return np.log1p(-outside)
    first, last = (np.exp(-(e**2) / 2) / (np.sqrt(2 * np.pi) * (1 - outside)) for e in (low, high))
    raw = [np.ones_like(low), first - last]
    for k in range(2, n + 1):
        edge = np.where(first > 0, low ** (k - 1) * first, 0.0) - np.where(last > 0, high ** (k - 1) * last, 0.0)
        raw.append((k - 1) * raw[k - 2] + edge)
    return raw[1] - low if n == 1 else _central(n, raw)


def _central(n: int, raw: Any) -> Any:
    """A central moment by those about any place."""
    return sum(comb(n, k) * raw[k] * (-raw[1]) ** (n - k) for k in range(n + 1))


@lru_cache(maxsize=1)
def _rule() -> tuple[Any, Any]:
    """Nodes between zero and one, and their weights."""
    x, weights = np.polynomial.legendre.leggauss(NODES)
    return (x + 1) / 2, weights / 2
