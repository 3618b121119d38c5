"""Gauss-Legendre rules in double and to any number of digits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from mpmath.libmp import from_man_exp


@lru_cache(maxsize=64)
def exact_legendre(count: int, prec: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights of a Gauss-Legendre rule on (-1, 1), by Newton steps from doubles; raw mpf.

    The recurrence is taken in integers, which stand for fixed points.
    """
    bits = prec + 20 + 4 * count.bit_length()  # beside an end weights lose some
    one = 1 << bits
    right = []
    for start in np.polynomial.legendre.leggauss(count)[0][count // 2 :]:
        x = int(float(start) * 2.0**60) << bits - 60 if start > 1e-12 else 0
        for _ in range(3 + prec.bit_length()):
            below, here = one, x
            for k in range(1, count):
                below, here = here, ((2 * k + 1) * (x * here >> bits) - k * below) // (k + 1)
            inside = one - (x * x >> bits)
            slope = (count * (below - (x * here >> bits)) << bits) // inside
            step = (here << bits) // slope
            x -= step
            if abs(step) >> (bits - prec) == 0:
                break
        weight = (2 << 3 * bits) // (inside * (slope * slope >> bits))
        right.append((x, weight))
    left = [(-x, weight) for x, weight in reversed(right) if x]
    found = [*left, *right]
    return [(from_man_exp(x, -bits, prec + 10), from_man_exp(weight, -bits, prec + 10)) for x, weight in found]


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of a Gauss-Legendre rule on (-1, 1)."""
    return np.polynomial.legendre.leggauss(count)
