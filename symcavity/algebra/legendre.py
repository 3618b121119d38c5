"""Gauss-Legendre rules in double, to any number of digits, and as balls."""

from __future__ import annotations

from functools import lru_cache
from itertools import count as count_from
from typing import Any

import numpy as np
from flint import arb, ctx
from mpmath import libmp


@lru_cache(maxsize=256)
def legendre_balls(count: int, prec: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights of a Gauss-Legendre rule on (-1, 1), from right to left, as balls."""
    with ctx.workprec(prec):
        return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]


@lru_cache(maxsize=64)
def exact_legendre(count: int, prec: int) -> list[tuple[Any, Any]]:
    """Return nodes and weights of a Gauss-Legendre rule on (-1, 1); raw mpf."""
    for spare in count_from(20, 20):  # another thread may have set another precision: balls know theirs
        balls = legendre_balls(count, prec + spare)
        if min(v.rel_accuracy_bits() for pair in balls for v in pair if v != 0) >= prec + 10:
            break
    return [(raw(x, prec + 10), raw(weight, prec + 10)) for x, weight in reversed(balls)]


def raw(ball: Any, prec: int) -> Any:
    """Return the middle of a ball as a raw mpf."""
    mantissa, exponent = ball.mid().man_exp()
    return libmp.from_man_exp(int(mantissa), int(exponent), prec)


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nodes and weights of a Gauss-Legendre rule on (-1, 1)."""
    return np.polynomial.legendre.leggauss(count)
