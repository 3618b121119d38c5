"""Averages over the states of a site with a steep weight, counted from where the weight is largest.

The measure ``exp(U(z) - z**2/2)`` of a site at a low temperature lies far from zero, where the Gaussian of a rule has
no nodes, and its total may be too small for a number.  Counted from any place c, ``z = c + t``, the same average is
``exp(U(c) - c**2/2)`` times one over t, with the weight ``exp(U(c + t) - U(c) - c*t)``.  The first factor drops out of
quotients, and no value depends on c: it is the place of the largest weight, as closely as a rule has nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Heaviside, Mul, Piecewise, Pow, S, Symbol, exp, log

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.node import Node, holds, replaced_by
from symcavity.sites.thermal.parts import ZETA

NEAREST, SIDE, ROUNDS, FINER = 0.1, 40, 6, 9  # a grid of growing distances, and finer ones between its points
WIDER = 8  # how often the grid is made wider
FEW_AT_SIDE, FEW_ROUNDS = 12, 4  # where each place costs as much as a node of the integral
LEAST_REACH = 8.0

PLACE = Dummy("z", real=True)  # bound in every peak; none stands in the exponent of another one

Exponent = Callable[[Any], Any]


class Peak(Node):
    """Where ``exponent(z) - z**2/2`` is largest, roughly; a constant for derivatives, for no value depends on it.

    Parameters
    ----------
    exponent : Expr
    z : Symbol
        The variable, bound here.
    """

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the place depends on."""
        return self.args[0].free_symbols - {self.args[1]}

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The variable."""
        return [self.args[1]]

    def _eval_derivative(self, _s: Symbol) -> Expr:
        return S.Zero

    def _xreplace(self, rule: Mapping[Any, Any]) -> tuple[Expr, bool]:
        if self in rule:
            return rule[self], True
        outer = {old: new for old, new in replaced_by(rule).items() if old != self.args[1]}
        args = [a if a == self.args[1] else a.xreplace(outer) for a in self.args]
        return (self.func(*args), True) if tuple(args) != self.args else (self, False)


class Height(Peak):
    """The value of ``exponent(z) - z**2/2`` at a peak, as one piece: its exponential drops out of quotients.

    Parameters
    ----------
    exponent : Expr
    z : Symbol
    within : Expr
        The exponent of which the peak is sought: minus infinity where a bound does not hold.
    """


def from_peaks(expr: Any) -> Any:
    """Return an expression whose averages over steep weights are counted from where the weight is largest."""
    if not isinstance(expr, Expr) or not holds(expr, (GaussianAverage,)):
        return expr
    return _settled(_written(expr), {})


def _settled(expr: Any, known: dict[Any, Any]) -> Any:
    """An expression with the heights that are left in it written out: they are seen from where they stand."""
    if not expr.args or not holds(expr, (Height,)):
        return expr
    if expr not in known:
        if isinstance(expr, Height):
            exponent, z, within = expr.args
            place = Peak(within, z)
            known[expr] = exponent.xreplace({z: place}) - place**2 / 2
        else:
            known[expr] = expr.func(*(_settled(a, known) for a in expr.args))
    return known[expr]


@lru_cache(maxsize=4096)
def _written(expr: Any) -> Any:
    if not expr.args or not holds(expr, (GaussianAverage,)):
        return expr
    args = [_written(a) for a in expr.args]
    if isinstance(expr, log | Add) and (scale := _common_height(args)) != 0:  # it stands before what is left
        rest = expr.func(*(Mul(a, exp(-scale)) for a in args))
        return scale + rest if isinstance(expr, log) else exp(scale) * rest
    new = expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else expr.func(*args)
    if not (isinstance(new, GaussianAverage) and isinstance(new.z, Symbol) and new.z.name == ZETA.name):
        return new  # those over fields are no quotients
    if (steep := _steepness(new.expr, new.z)) is None:
        return new
    z = new.z
    walls = [f for f in Mul.make_args(new.expr) if isinstance(f, Heaviside)]  # beyond which there is no weight
    within = steep + Add(*map(log, walls))
    own = {z: PLACE}
    c = Peak(within.xreplace(own), PLACE)
    there = {z: c + z}
    inside = Mul(*walls).xreplace(there)  # beyond a wall the exponent may be beyond all numbers, and nothing counts
    away = exp(inside * (steep.xreplace(there) - steep.xreplace({z: c}) - c * z))
    body = Add(*(_without_weight(t, z).xreplace(there) for t in Add.make_args(new.expr))) * away
    return exp(Height(steep.xreplace(own), PLACE, within.xreplace(own))) * GaussianAverage(body, z)


def _common_height(terms: Sequence[Expr]) -> Expr:
    """The heights that all terms have as a factor."""
    found = {
        Add(*(f.args[0] for f in Mul.make_args(t) if isinstance(f, exp) and holds(f, (Height,)))) for t in terms
    }
    return found.pop() if len(found) == 1 else S.Zero


def _steepness(integrand: Expr, z: Symbol) -> Expr | None:
    """The exponent that all terms of an integrand have, where it is no square and not counted from its peak already."""
    found = {Add(*(e for f in Mul.make_args(t) for e in _exponent(f, z))) for t in Add.make_args(integrand)}
    if len(found) > 1:
        return None
    (steep,) = found
    if steep.is_polynomial(z) or holds(steep, (GaussianAverage, ImplicitAverage)) or steep.xreplace({z: S.Zero}) == 0:
        return None
    if steep.has(Piecewise):  # which SymPy would take out of a peak that stands in a condition
        return None
    return steep


def _exponent(factor: Expr, z: Symbol) -> list[Expr]:
    """That of a factor of a weight: an exponential, or a power of what is positive."""
    if not factor.has(z):
        return []
    if isinstance(factor, exp):
        return [factor.args[0]]
    steep = isinstance(factor, Pow) and not factor.exp.has(z) and factor.base.is_positive
    return [factor.exp * log(factor.base)] if steep else []


def _without_weight(term: Expr, z: Symbol) -> Expr:
    return Mul(*(f for f in Mul.make_args(term) if not _exponent(f, z)))


def highest(exponent: Exponent, side: int = SIDE, rounds: int = ROUNDS) -> np.ndarray:
    """Where ``exponent(z) - z**2/2`` is largest: on a grid of growing distances, then on finer ones.

    Parameters
    ----------
    exponent : callable
        Of an array, whose last axis runs over places.
    side, rounds : int
        How many places the first grid has on either side, and how often it is made finer.
    """

    def cost(z: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = z**2 / 2 - exponent(z)
        return np.where(np.isfinite(found), found, np.inf)

    with np.errstate(all="ignore"):
        below, here, above = np.moveaxis(cost(np.array([-1.0, 0.0, 1.0])), -1, 0)
        reach = 2 * np.maximum(np.maximum(np.abs(above - below), np.sqrt(2 * np.abs(here))), LEAST_REACH)
    reach = np.where(np.isfinite(reach), reach, LEAST_REACH)[..., None]
    for _ in range(WIDER):
        away = NEAREST * (reach / NEAREST) ** np.linspace(0, 1, side)
        places = np.concatenate([-away[..., ::-1], np.zeros_like(reach), away], axis=-1)
        beyond = ~np.isfinite(cost(places).min(axis=-1, keepdims=True))  # no place is inside of a bound
        if not beyond.any():
            break
        reach = np.where(beyond, 8 * reach, reach)
    for _ in range(rounds):
        best = np.argmin(cost(places), axis=-1)[..., None]
        low, middle, high = (
            np.take_along_axis(places, np.clip(best + way, 0, places.shape[-1] - 1), -1) for way in (-1, 0, 1)
        )
        shares = np.linspace(0, 1, FINER)  # both ends stay: the best place may be next to one of them
        places = np.concatenate([low + (middle - low) * shares, middle + (high - middle) * shares[1:]], axis=-1)
    found: np.ndarray = middle[..., 0]
    return found


def highest_in(at: Any) -> Callable[[Exponent], Any]:
    """The same for numbers of an mpmath context; it is found in double, and needs no more digits."""

    def found(exponent: Exponent) -> Any:
        def rough(z: np.ndarray) -> np.ndarray:
            return np.array([float(exponent(at.mpf(float(v)))) for v in np.ravel(z)]).reshape(np.shape(z))

        prec = at.prec
        try:
            at.prec = 53
            place = float(highest(rough, FEW_AT_SIDE, FEW_ROUNDS))
        finally:
            at.prec = prec
        return at.mpf(place)

    return found
