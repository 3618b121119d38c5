"""The root of a function of one number between two places at which its signs differ."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from symcavity.evaluate.constants import BRACKETED

SPACING = float(np.finfo(float).eps)


def root_between(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 0.0, rtol: float = 4 * SPACING
) -> float:
    """Find the root by quadratic steps of the inverse where these are safe, and by halves elsewhere.

    The method is that of T. R. Chandrupatla, Adv. Eng. Softw. 28, 145 (1997).  SciPy's takes longer to load than most
    theories to solve.

    Parameters
    ----------
    function : callable
    low, high : float
        The ends, in either order.
    xtol, rtol : float
        How far the result may be from the root, by itself and as a share of it.

    Raises
    ------
    ValueError
        If the signs at the ends are equal, or the function has no value at a place in between.
    """
    a, b = float(low), float(high)
    at_a, at_b = float(function(a)), float(function(b))
    if not (at_a <= 0 <= at_b or at_b <= 0 <= at_a):
        raise ValueError("the signs at the ends do not differ")
    share = 0.0 if at_a == 0 else 1.0 if at_b == 0 else 0.5
    for _ in range(BRACKETED):
        x = a + share * (b - a)
        at_x = float(function(x))
        if np.isnan(at_x):
            raise ValueError(f"the function has no value at {x}")
        if (at_x < 0) == (at_a < 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = (xtol + rtol * abs(best)) / abs(b - a) if b != a else 1.0
        if at_best == 0 or least > 0.5:
            break
        along, down = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        share = 0.5
        if down * down < along and (1 - down) * (1 - down) < 1 - along:  # the inverse parabola falls throughout
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
            share = min(max(share, least), 1 - least)
    return best
