"""Averages over the field that a count was drawn on, counted from where the weight of the count is largest.

The weight of a count is an exponential of the field that has one maximum, and is the narrower the larger the count is:
a rule with the nodes of a Gaussian would need thousands.  With ``z = c + s*t`` the average of ``f(z)`` over a Gaussian
is that of ``s*f(c + s*t)*exp((t**2 - z**2)/2)``, for any c and s: from the maximum, in units of its width, all counts
share the nodes of a rule.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Mul, Symbol, exp

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.node import holds
from symcavity.algebra.tails import log_gamma
from symcavity.evaluate.averages.inversion import invert
from symcavity.evaluate.averages.peaks import Peak

CLOSE = 0.1  # of a width, or nearer

_PLACE = Dummy("z", real=True)  # bound in every summit
Law = Callable[[np.ndarray], tuple[Any, Any]]


class SmoothAverage(GaussianAverage):
    """An average over a standard Gaussian of what is smooth, and falls off on both sides about as a Gaussian does."""


class Summit(Peak):
    """Where ``exponent(z) - z**2/2`` is largest, by the zero of its slope."""


class Breadth(Peak):
    """One over the root of the curvature there, at most one: the width of the weight in units of a Gaussian's."""


def from_summits(expr: Any) -> Any:
    """Return an expression whose averages over weights of counts are counted from their maxima."""
    if not isinstance(expr, Expr) or not holds(expr, (log_gamma,)) or not holds(expr, (GaussianAverage,)):
        return expr
    return _written(expr)


@lru_cache(maxsize=4096)
def _written(expr: Any) -> Any:
    if not expr.args or not holds(expr, (GaussianAverage,)):
        return expr
    args = [_written(a) for a in expr.args]
    new = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
    if not isinstance(new, GaussianAverage) or not isinstance(z := new.z, Symbol):
        return new
    if (steep := _weight(new.expr, z)) is None:
        return new
    own = steep.xreplace({z: _PLACE})
    c, s = Summit(own, _PLACE), Breadth(own, _PLACE)
    there = {z: c + s * z}
    away = exp(steep.xreplace(there) + (z**2 - (c + s * z) ** 2) / 2)
    rest = Add(*(Mul(*(f for f in Mul.make_args(t) if not _counts(f, z))) for t in Add.make_args(new.expr)))
    return s * SmoothAverage(rest.xreplace(there) * away, z)


def _weight(integrand: Expr, z: Symbol) -> Expr | None:
    """The exponent of the weight of a count that all terms of an integrand have."""
    found = {Add(*(f.args[0] for f in Mul.make_args(t) if _counts(f, z))) for t in Add.make_args(integrand)}
    return found.pop() if len(found) == 1 and 0 not in found else None


def _counts(factor: Expr, z: Symbol) -> bool:
    return isinstance(factor, exp) and factor.has(z) and holds(factor, (log_gamma,))


def summit(law: Law) -> Any:
    """Where a function is largest less the parabola of a Gaussian, by its slope and its curvature."""
    return invert(lambda z: _less_parabola(law, z), np.zeros(1), near=CLOSE, each=True)[..., 0]


def breadth(law: Law, place: Any) -> Any:
    """The width of the maximum at a place."""
    with np.errstate(all="ignore"):
        return 1 / np.sqrt(np.maximum(1.0, 1.0 - law(np.asarray(place)[..., None])[1][..., 0]))


def _less_parabola(law: Law, z: np.ndarray) -> tuple[Any, Any]:
    slope, curvature = law(z)
    return slope - z, curvature - 1
