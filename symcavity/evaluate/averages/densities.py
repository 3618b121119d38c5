"""Rules for averages over a continuous law: Gauss rules on pieces of its support, mapped so that tails fall off."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Float, Rational, S, Symbol, oo, sqrt

from symcavity.algebra.compiled import compiled
from symcavity.algebra.legendre import exact_legendre, legendre
from symcavity.errors import ValuesError

POINTS = (40, 64, 100, 160, 256, 256, 360, 540)  # of each piece, at each level
FINEST, DEEPEST = 4, len(POINTS) - 1  # the last levels for what counts at all, and for what only tails contribute to
SINGLE, DOUBLINGS, BLOCKS = 16, 16, (12, 24, 48, 96, 192)  # values summed one by one; blocks; nodes of each, by level
LONGEST = 2**53  # integers that a double holds; of longer ones NumPy makes objects
LEAST = 1e-19  # weights below do not show in double precision, times fourth powers either
OUTSIDE = 1e6  # spreads, where no exponential tail is left
FAINTEST = 1e-290  # nor do these, where all that there is lies in a tail
ENDLESS, HEAVY = 1e9, 0.05  # spreads, and second moments there, beyond which doubles have nothing to add
FAR = 12.0  # spreads from the center, beyond which zero is no place to break at
LONG = 6.0  # where the line is cut off that stands for a half-line or for the way to an end
STEP = 0.025  # in which it is walked along, to see what counts
PER_DIGIT, GROWTH = 5.0, 1.25  # points of each piece beyond double, and their growth from level to level
FARTHER_OUT = 1.5  # as many points for rules that go far out

Rule = tuple[np.ndarray, np.ndarray]
Place = Callable[[Any], tuple[Any, Any]]


@dataclass(frozen=True)
class Counting:
    """The measure that counts the integers from the smallest value of a label upwards: its weights stand in averages.

    The first ones are summed as they are, and each time those up to twice as many by Gauss rules for sums, exact where
    a block has no more values than the rule has nodes.
    """

    name: str
    low: int
    doublings: int = DOUBLINGS
    single: int = SINGLE

    def seen(self, weights: Callable[[np.ndarray], np.ndarray]) -> Counting:
        """The same as far as these weights show in averages of squares."""
        values, _ = self.rule(FINEST)
        shown = values[weights(values) * (1 + (values - self.low) ** 2) > LEAST]
        last = max(shown.max(initial=0) - self.low, 1)
        return replace(self, doublings=min(self.doublings, max(0, int(np.ceil(np.log2((last + 1) / self.single))))))

    def rule(self, level: int) -> Rule:
        """Return nodes and weights."""
        nodes, weights = [np.arange(self.single, dtype=float)], [np.ones(self.single)]
        for k in range(self.doublings):
            start = self.single << k
            x, w = _summed(start, min(BLOCKS[min(level, FINEST)], start))
            nodes.append(start + x)
            weights.append(w)
        return self.low + np.concatenate(nodes), np.concatenate(weights)


@lru_cache(maxsize=256)
def _summed(size: int, count: int) -> Rule:
    """A Gauss rule for sums over 0, 1, ..., size - 1, from the recurrence of the discrete Chebyshev polynomials."""
    from scipy.linalg import eigh_tridiagonal

    if count == size:
        return np.arange(size, dtype=float), np.ones(size)
    k = np.arange(1.0, count)
    side = k / 2 * np.sqrt((size**2 - k**2) / (4 * k**2 - 1))
    nodes, frame = eigh_tridiagonal(np.full(count, (size - 1) / 2), side)
    return nodes, size * frame[0] ** 2


@lru_cache(maxsize=256)
def rule(variable: Any, level: int, kinks: tuple[Expr, ...] = ()) -> Rule:
    """Return nodes and weights for averages over a continuous random variable of SymPy.

    Parameters
    ----------
    variable : RandomSymbol or Counting
    level : int
        0 for the coarsest rule, :data:`FINEST` for the finest, :data:`DEEPEST` for the finest that goes far out.
    kinks : tuple of Expr
        Numbers at which what is averaged is not smooth.

    Raises
    ------
    ValuesError
        If the density has no norm.
    """
    if isinstance(variable, Counting):
        return variable.rule(level)

    def gauss(length: float) -> Iterable[tuple[float, float]]:
        return zip(*legendre(int(POINTS[level] * length)), strict=True)

    least = LEAST if level <= FINEST else FAINTEST
    found = np.array(_weighed(variable, np, density_of(variable), gauss, least, kinks)).reshape(-1, 2)
    total = found[:, 1].sum()
    if not abs(total - 1) < (1e-6 if level >= FINEST else 0.5):
        raise ValuesError(
            f"The density of {variable} integrates to {total:.6g}.", "distributions with an integrable density"
        )
    return found[:, 0], found[:, 1] / total


@lru_cache(maxsize=256)
def finest(variable: Any) -> int:
    """The finest level of the rules for a law: those that go far out are for tails that fall off like exponentials."""
    if isinstance(variable, Counting):
        return FINEST
    centre, spread = location(variable)
    low, high = (float(e) for e in (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup))
    ends = [x for x in (centre - OUTSIDE * spread, centre + OUTSIDE * spread) if low < x < high]
    with np.errstate(all="ignore"):
        left = [density_of(variable)(np.float64(x)) * spread * OUTSIDE**6 for x in ends]
    return DEEPEST if all(w < LEAST for w in left) else FINEST


def exact_rule(
    variable: Any, context: Any, level: int, compiled: Callable[..., Any], kinks: tuple[Expr, ...] = ()
) -> list[tuple[Any, Any]]:
    """Return nodes and weights at the precision of an mpmath context, more of them at each level.

    Their number is raised further until the norm is 1 to the precision.

    Parameters
    ----------
    variable : RandomSymbol
    context : mpmath context
    level : int
    compiled : callable
        Turns an expression in a symbol into a function of the context's numbers.
    kinks : tuple of Expr
        Numbers at which what is averaged is not smooth.
    """
    if isinstance(variable, Counting):
        raise ValuesError(
            f"{context.dps} digits are requested, and the values of {variable.name} are summed in double precision.",
            "dps <= 15",
        )
    x = Dummy("x", real=True)
    pdf = compiled(formula(variable, x), x)
    far = finest(variable) == DEEPEST  # an average may be as small as the precision, and come from there
    least, dense = (context.eps**2, FARTHER_OUT) if far else (context.eps, 1.0)
    while True:
        count = int(PER_DIGIT * dense * context.dps * GROWTH**level) + 8
        found = _weighed(variable, context, pdf, partial(_exact_gauss, context, count), least, kinks)
        norm = context.fsum(w for _, w in found)
        if abs(norm - 1) < context.eps * 1e6 or level > 6:
            return [(node, weight / norm) for node, weight in found]
        level += 1


def _exact_gauss(context: Any, count: int, length: float) -> list[tuple[Any, Any]]:
    nodes = exact_legendre(int(count * length), context.prec)
    return [(context.make_mpf(t), context.make_mpf(w)) for t, w in nodes]


def formula(variable: Any, x: Symbol) -> Expr:
    """Return the density of a continuous random variable as an expression."""
    from sympy.stats import density

    return density(variable)(x)


@lru_cache(maxsize=256)
def density_of(variable: Any) -> Callable[[Any], Any]:
    """Return the density of a continuous random variable as a function of doubles."""
    x = Dummy("x", real=True)
    found = formula(variable, x)
    long = {r: Float(r) for r in found.atoms(Rational) if max(abs(r.p), r.q) > LONGEST}
    return compiled([x], found.xreplace(long))


def _weighed(
    variable: Any,
    functions: Any,
    pdf: Callable[[Any], Any],
    gauss: Callable[[float], Iterable[tuple[Any, Any]]],
    least: Any,
    kinks: tuple[Expr, ...],
) -> list[tuple[Any, Any]]:
    """Nodes of Gauss rules on all pieces of the support, and their weights, as far as these count.

    ``gauss`` makes a rule for (-1, 1), by how much longer a piece is than one that begins inside of the support.
    """
    centre, spread = location(variable)
    found = []
    with np.errstate(all="ignore"):
        for place, first, last in _pieces(variable, functions, kinks):
            points = [(t, *_at(place, pdf, t)) for t in functions.arange(first, last + STEP / 2, STEP)]
            shares = [(t, w, (x - centre) / spread) for t, x, w in points]
            counting = [t for t, w, x in shares if _counts(w, x, least) and not (functions is np and _is_wild(w, x))]
            if not counting:
                continue
            low, high = max(first, counting[0] - STEP), min(last, counting[-1] + STEP)
            for t, w in gauss(1.0 if first == 0 or last == 1 else 1.5):
                x, weight = _at(place, pdf, low + (high - low) * (t + 1) / 2)
                if _counts(weight, 1, 0):
                    found.append((x, weight * w * (high - low) / 2))
    return found


def _at(place: Place, pdf: Callable[[Any], Any], t: Any) -> tuple[Any, Any]:
    """A value of the variable, and its density along the line."""
    x, slope = place(t)
    try:
        return x, pdf(x) * slope
    except (ZeroDivisionError, ValueError, OverflowError):
        return x, 0


def _counts(weight: Any, away: Any, least: Any) -> bool:
    """Whether a weight is a number that shows in averages of fourth powers."""
    return bool(abs(weight) < np.inf and weight * (1 + away**4) > least)


def _is_wild(weight: Any, away: Any) -> bool:
    """Whether the law has no variance, and is so far out that what is bounded cancels from what is not."""
    return bool(abs(away) > ENDLESS and weight * away**2 > HEAVY)


def _pieces(variable: Any, functions: Any, kinks: tuple[Expr, ...]) -> list[tuple[Place, Any, Any]]:
    """Maps from a part of the line to parts of the support, with their slopes.

    Laws break at kinks and at zero, where a parameter changes its sign or a law divides by it, and densities on the
    whole line at their center: no piece goes across, and nodes come no nearer than those of a Gauss rule do.  Towards
    an end or a tail, weights fall off like an exponential of an exponential.
    """
    ends = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    centre, spread = location(variable)
    low, high = (float(e) for e in ends)
    places = {p: _edge(e, functions) for e in (S.Zero, *kinks) if abs(centre - (p := float(e))) < FAR * spread}
    number = float if functions is np else functions.mpf
    if ends == (-oo, oo) and all(abs(centre - p) > 1e-3 * spread for p in places):
        places[centre] = number(centre)
    within = [places[p] for p in sorted(places) if low < p < high]
    edges: list[Any] = [_edge(ends[0], functions), *within, _edge(ends[1], functions)]
    out: list[tuple[Place, Any, Any]] = []
    for a, b in pairwise(edges):
        if a in within and b in within:
            out.append((_straight(a, b), -number(1), number(1)))
        elif a in within or b in within:
            start, end, way = (a, b, 1) if a in within else (b, a, -1)
            out.append((_outwards(start, end, way * number(spread), functions), number(0), number(LONG)))
        else:
            out.append((_between(a, b, number(spread), functions), -number(LONG), number(LONG)))
    return out


def _edge(end: Any, functions: Any) -> Any:
    """The end of a support as a number; None where it has none."""
    if end in (oo, -oo):
        return None
    return float(end) if functions is np else functions.mpf(str(end.evalf(functions.dps + 5)))


def _straight(a: Any, b: Any) -> Place:
    return lambda t: ((a + b) / 2 + (b - a) / 2 * t, (b - a) / 2)


def _outwards(start: Any, end: Any, reach: Any, functions: Any) -> Place:
    """From a place inside, smoothly, to an end or into a tail."""
    half_pi, sinh, cosh, tanh = functions.pi / 2, functions.sinh, functions.cosh, functions.tanh

    def place(t: Any) -> tuple[Any, Any]:
        inner, slope = half_pi * sinh(t), half_pi * cosh(t)
        if end is None:
            return start + reach * sinh(inner), abs(reach) * cosh(inner) * slope
        return start + (end - start) * tanh(inner), abs(end - start) * slope / cosh(inner) ** 2

    return place


def _between(a: Any, b: Any, spread: Any, functions: Any) -> Place:
    """From one end to the other, or from an end into a tail: a density may grow towards its ends."""
    half_pi, sinh, cosh, exp = functions.pi / 2, functions.sinh, functions.cosh, functions.exp

    def place(t: Any) -> tuple[Any, Any]:
        inner, slope = half_pi * sinh(t), half_pi * cosh(t)
        if a is None or b is None:
            size = spread * exp(inner)
            return (a + size if b is None else b - size), size * slope
        return a + (b - a) / (1 + exp(-2 * inner)), (b - a) / 2 * slope / cosh(inner) ** 2

    return place


@lru_cache(maxsize=256)
def location(variable: Any) -> tuple[float, float]:
    """Where a law is and how wide; one of infinite variance counts as of the width of its declaration."""
    from sympy.stats import E, variance
    from sympy.stats.crv_types import NormalDistribution

    law = variable.pspace.distribution
    if isinstance(law, NormalDistribution):  # whose variance SymPy integrates
        return float(law.mean), float(law.std)
    try:
        centre, spread = E(variable), variance(variable)
        if centre.is_finite and spread.is_finite and spread.is_positive:
            return float(centre), float(sqrt(spread))
    except (NotImplementedError, TypeError, ValueError):  # SymPy asks some laws for transforms that they have not
        pass
    return _quartiles(variable)


def _quartiles(variable: Any) -> tuple[float, float]:
    """The median and half the distance of the quartiles, from a wide grid."""
    x = Dummy("x", real=True)
    low, high = (variable.pspace.domain.set.inf, variable.pspace.domain.set.sup)
    points = np.sinh(np.linspace(-23, 23, 20001))
    points = points[(points > float(low)) & (points < float(high))]
    with np.errstate(all="ignore"):
        pdf = np.nan_to_num(compiled([x], formula(variable, x))(points) * np.ones_like(points))
    mass = np.concatenate([[0.0], np.cumsum((pdf[1:] + pdf[:-1]) / 2 * np.diff(points))])
    first, middle, last = np.interp([0.25 * mass[-1], 0.5 * mass[-1], 0.75 * mass[-1]], mass, points)
    return float(middle), float(last - first) / 2
