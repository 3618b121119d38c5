"""Gauss-Legendre rules in double and to any number of digits."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from symcavity.algebra.precision import context


@lru_cache(maxsize=64)
def exact_legendre(count: int, prec: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights of a Gauss-Legendre rule on (-1, 1), by Newton steps from doubles; raw mpf."""
    at = context(prec + 10)
    out = []
    for start in np.polynomial.legendre.leggauss(count)[0]:
        x = at.mpf(float(start))
        for _ in range(3 + prec.bit_length()):
            below, here = at.one, x
            for k in range(1, count):
                below, here = here, ((2 * k + 1) * x * here - k * below) / (k + 1)
            slope = count * (x * here - below) / (x * x - 1)
            step = here / slope
            x -= step
            if abs(step) < at.eps * 8:
                break
        out.append((x._mpf_, (2 / ((1 - x * x) * slope * slope))._mpf_))
    return out


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of a Gauss-Legendre rule on (-1, 1)."""
    return np.polynomial.legendre.leggauss(count)


__all__ = ["exact_legendre", "legendre"]
