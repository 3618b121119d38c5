"""Rules for averages over a continuous law: Gauss rules made for its density, wider ones for wide tails."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Dummy, lambdify, oo

from symcavity.errors import ValuesError

GAUSS = (24, 36, 54, 80, 120, 180)
DOUBLE_EXPONENTIAL = (61, 121, 241, 481)
FINEST = 481
LEAST = 1e-19  # weights below do not show in double precision
LEVELS = len(GAUSS) - 1

Rule = tuple[np.ndarray, np.ndarray]


@lru_cache(maxsize=256)
def rule(variable: Any, level: int) -> Rule:
    """Return nodes and weights for averages over a continuous random variable of SymPy.

    Parameters
    ----------
    variable : RandomSymbol
    level : int
        0 for the coarsest rule; beyond :data:`LEVELS` there is none finer.

    Raises
    ------
    ValuesError
        If the density has no norm.
    """
    base = _double_exponential(variable, FINEST)
    count = GAUSS[min(level, LEVELS)]
    found = _gauss(*base, count)
    if np.allclose(_moments(*found), _moments(*base), rtol=1e-13, atol=1e-13):
        return found
    return _double_exponential(variable, DOUBLE_EXPONENTIAL[min(level + 1, len(DOUBLE_EXPONENTIAL) - 1)])


def _moments(nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What two rules must agree in: the norm, the mean, and bounded functions of the scale of the law."""
    mean = weights @ nodes
    spread = np.sqrt(weights @ (nodes - mean) ** 2)
    u = (nodes - mean) / (spread or 1.0)
    return np.array([weights.sum(), *(weights @ f for f in (u * u, np.tanh(u), 1 / np.cosh(u), np.exp(-u * u)))])


def _gauss(nodes: np.ndarray, weights: np.ndarray, count: int) -> Rule:
    """The Gauss rule of a discrete measure: Stieltjes' recurrence, and the eigenvectors of its Jacobi matrix."""
    centre = weights @ nodes
    width = float(np.sqrt(weights @ (nodes - centre) ** 2)) or 1.0
    x = (nodes - centre) / width
    before, here = np.zeros_like(x), np.ones_like(x) / np.sqrt(weights.sum())
    diagonal, beside = np.empty(count), np.empty(count)
    last = 0.0
    for k in range(count):
        diagonal[k] = weights @ (x * here * here)
        following = (x - diagonal[k]) * here - last * before
        last = beside[k] = float(np.sqrt(weights @ following**2))
        before, here = here, following / last
    matrix = np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1)
    values, vectors = np.linalg.eigh(matrix)
    return centre + width * values, vectors[0] ** 2


@lru_cache(maxsize=256)
def _double_exponential(variable: Any, count: int) -> Rule:
    """Nodes and weights of a double-exponential rule for a density."""
    from sympy.stats import density

    x = Dummy("x", real=True)
    pdf = lambdify(x, density(variable)(x), ["scipy", "numpy"])
    place, (first, last) = _places(variable, np)
    t = np.linspace(first, last, count)
    nodes, jacobian = place(t)
    with np.errstate(all="ignore"):
        weights = np.asarray(pdf(nodes) * np.ones_like(nodes), dtype=float) * jacobian * (t[1] - t[0])
    good = np.isfinite(weights) & (weights > LEAST)
    weights, nodes = weights[good], nodes[good]
    total = weights.sum()
    if not abs(total - 1) < 1e-6:
        raise ValuesError(
            f"The density of {variable} integrates to {total:.6g}.", "distributions with an integrable density"
        )
    return nodes, weights / total


def _places(variable: Any, functions: Any) -> tuple[Callable[[Any], tuple[Any, Any]], tuple[float, float]]:
    """A map from the line to the support with its slope, and the part of the line that counts in double."""
    low, high = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    half_pi = functions.pi / 2
    sinh, cosh, exp = functions.sinh, functions.cosh, functions.exp
    if low == -oo and high == oo:
        centre, spread = _location(variable)

        def line(t: Any) -> tuple[Any, Any]:
            inner = half_pi * sinh(t)
            return centre + spread * sinh(inner), spread * cosh(inner) * half_pi * cosh(t)

        return line, (-2.2, 2.2) if _is_narrow(variable) else (-3.3, 3.3)
    if high == oo or low == -oo:
        way, end = (1, low) if high == oo else (-1, high)
        _, spread = _location(variable)
        edge = float(end) if functions is np else functions.mpf(str(end.evalf(functions.dps + 5)))

        def half_line(t: Any) -> tuple[Any, Any]:
            size = spread * exp(half_pi * sinh(t))
            return edge + way * size, size * half_pi * cosh(t)

        return half_line, (-4.8, 3.4)  # a density may grow towards its finite end
    if functions is np:
        a, b = float(low), float(high)
    else:
        a, b = (functions.mpf(str(e.evalf(functions.dps + 5))) for e in (low, high))

    def interval(t: Any) -> tuple[Any, Any]:
        inner = half_pi * sinh(t)
        return a + (b - a) / (1 + exp(-2 * inner)), (b - a) / 2 * half_pi * cosh(t) / cosh(inner) ** 2

    return interval, (-3.6, 3.6)


@lru_cache(maxsize=256)
def _location(variable: Any) -> tuple[float, float]:
    """Where a law is and how wide; one of infinite variance counts as of the width of its declaration."""
    from sympy.stats import E, variance

    try:
        centre, spread = E(variable), variance(variable)
        if centre.is_finite and spread.is_finite and spread.is_positive:
            return float(centre), float(spread) ** 0.5
    except (NotImplementedError, TypeError, ValueError):  # SymPy asks some laws for transforms that they have not
        pass
    return _quartiles(variable)


def _quartiles(variable: Any) -> tuple[float, float]:
    """The median and half the distance of the quartiles, from a wide grid."""
    from sympy.stats import density

    x = Dummy("x", real=True)
    low, high = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    points = np.sinh(np.linspace(-23, 23, 20001))
    points = points[(points > float(low)) & (points < float(high))]
    with np.errstate(all="ignore"):
        pdf = np.nan_to_num(lambdify(x, density(variable)(x), ["scipy", "numpy"])(points) * np.ones_like(points))
    mass = np.concatenate([[0.0], np.cumsum((pdf[1:] + pdf[:-1]) / 2 * np.diff(points))])
    first, middle, last = np.interp([0.25 * mass[-1], 0.5 * mass[-1], 0.75 * mass[-1]], mass, points)
    return float(middle), float(last - first) / 2


@lru_cache(maxsize=256)
def _is_narrow(variable: Any) -> bool:
    """Whether the density has fallen below double precision at twenty standard deviations."""
    from sympy.stats import density

    centre, spread = _location(variable)
    values = [density(variable)(centre + way * 20 * spread) * spread for way in (-1, 1)]
    return all(float(v) < LEAST for v in values)


def exact_rule(variable: Any, context: Any, level: int, compiled: Callable[..., Any]) -> list[tuple[Any, Any]]:
    """Return nodes and weights at the precision of an mpmath context: steps of ``2**-(level + 3)``.

    The steps are halved further until the norm is 1 to the precision.

    Parameters
    ----------
    variable : RandomSymbol
    context : mpmath context
    level : int
    compiled : callable
        Turns an expression in a symbol into a function of the context's numbers.
    """
    from sympy.stats import density

    x = Dummy("x", real=True)
    pdf = compiled(density(variable)(x), x)
    place, _ = _places(variable, context)
    while True:
        step = context.mpf(2) ** -(level + 3)
        found = []
        for way in (1, -1):
            t, small = (context.zero if way == 1 else -step), 0
            while small < 3 and abs(t) < 8:
                node, slope = place(t)
                try:
                    weight = pdf(node) * slope * step
                except (ZeroDivisionError, ValueError, OverflowError):
                    weight = context.zero
                weight = weight if hasattr(weight, "_mpf_") and context.isfinite(weight) else context.zero
                small = small + 1 if abs(weight) < context.eps and abs(t) > 1 else 0
                if weight:
                    found.append((node, weight))
                t += way * step
        norm = context.fsum(w for _, w in found)
        if abs(norm - 1) < context.eps * 1e6 or level > 6:
            return [(node, weight / norm) for node, weight in found]
        level += 1


__all__ = ["LEVELS", "exact_rule", "rule"]
