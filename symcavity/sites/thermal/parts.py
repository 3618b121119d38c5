"""The parts of a weight: Gaussians, whole ones, between two ends, or on one side of an end.

An energy that has kinks or jumps, and is a square between any two of them, gives one part for each square. Each is a
truncated Gaussian, whose moments are known, so that nothing is integrated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Gt,
    Lt,
    Max,
    Min,
    Piecewise,
    Poly,
    S,
    Symbol,
    binomial,
    exp,
    factorial,
    log,
    sqrt,
)

from symcavity.algebra.between import between, log_between
from symcavity.algebra.gaussian import gaussian_average
from symcavity.algebra.phi import phi
from symcavity.algebra.piecewise import (
    Builder,
    NotPiecewisePolynomial,
    Undetermined,
    to_piecewise_polynomial,
)
from symcavity.algebra.signs import OpenSlope, Signs
from symcavity.algebra.tails import log_tail
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.errors import UnsupportedLaw
from symcavity.model.quantities import SiteQuantity

ZETA = TexSymbol("zeta", "\\zeta")  # a standard Gaussian, which no parameter is
MOST_OPEN = 3  # slopes of open sign in one expression


@dataclass(frozen=True)
class Part:
    """One part of the weight of a site.

    Attributes
    ----------
    values : mapping
        The discrete states.
    log : Expr
        The logarithm of its total without the factor.
    state : SiteQuantity or None
        The continuous state, which is Gaussian but for the factor.
    centre, width : Expr
        Its mean and variance.
    factor : Expr
        What else its weight is multiplied by.
    ends : tuple of (Expr or None)
        The two ends between which the state is, None where there is no end.
    turn : Expr
        By what the state is turned, 1 or -1: the center and the ends are those of the turned one.
    slope : Expr
        By whose sign it is turned; one where it is not.
    decay : Expr
        Where the energy is a line beyond the end: how fast the weight falls there. Zero where it is a Gaussian.
    """

    values: Mapping[Any, Expr]
    log: Expr
    state: SiteQuantity | None = None
    centre: Expr = S.Zero
    width: Expr = S.Zero
    factor: Expr = S.One
    ends: tuple[Expr | None, Expr | None] = (None, None)
    turn: Expr = S.One
    slope: Expr = S.One
    decay: Expr = S.Zero

    @property
    def is_whole(self) -> bool:
        """Whether the Gaussian has no end."""
        return self.ends == (None, None)

    @property
    def is_held(self) -> bool:
        """Whether the state is between two ends."""
        return None not in self.ends

    @property
    def edge(self) -> tuple[Expr, int]:
        """Where the half of a Gaussian ends, and on which side of that the state is."""
        low, high = self.ends
        return (low, 1) if high is None else (high, -1)

    @property
    def reach(self) -> tuple[Expr, Expr]:
        """Both ends of a state between two, in units of its width from the center of its Gaussian."""
        low, high = ((end - self.centre) / sqrt(self.width) for end in self.ends)
        return low, high

    def mean(self, body: Expr) -> Expr:
        """The average of an expression over this part of the weight."""
        if self.is_held and self.factor == 1:
            x, y = Dummy("x", real=True), Dummy("y", real=True)
            inside = body.xreplace(dict(self.values)).xreplace({self.state: self.turn * x})
            if inside.is_polynomial(x):
                place, scale = self.turned, sqrt(self.width)
                moments = {0: S.One, 1: S.Zero}
                terms = Poly(inside.xreplace({x: place + scale * y}), y).terms()
                return Add(*(c * moments.get(n, between(n, *self.reach)) for (n,), c in terms if n != 1))
        return self.over(body) / self._whole

    @cached_property
    def _whole(self) -> Expr:
        return self.over(S.One)

    @property
    def turned(self) -> Expr:
        """The mean of the turned state over this part of the weight."""
        if self.is_held:
            return self.ends[0] + sqrt(self.width) * between(1, *self.reach)
        if self.is_whole:
            return self.centre
        end, way = self.edge
        return end + way * self._away(1)

    def _away(self, power: int) -> Expr:
        """The mean of a power of the distance of a state from its one end."""
        if self.decay != 0:
            return factorial(power) / self.decay**power
        end, way = self.edge
        reach = way * (self.centre - end) / sqrt(self.width)
        return sqrt(self.width) ** power * phi(power, reach) / phi(0, reach)

    @property
    def variance(self) -> Expr:
        """The variance of the state over this part of the weight, counted from its end."""
        if self.is_held:
            return self.width * between(2, *self.reach)
        return self.width if self.is_whole else self._away(2) - self._away(1) ** 2

    def over(self, body: Expr) -> Expr:
        """The average of an expression times the factor over the Gaussian."""
        if not self.is_whole:
            return self._on_its_range(body.xreplace(dict(self.values)) * self.factor)
        inside = (body.xreplace(dict(self.values)) * self.factor).xreplace(
            {self.state: self.centre + sqrt(self.width) * ZETA} if self.state is not None else {}
        )
        return gaussian_average(inside, ZETA) if inside.has(ZETA) else inside

    def _on_its_range(self, body: Expr) -> Expr:
        """The average of a polynomial by cases where the state may be, zero elsewhere.

        The cases may end within this range or beyond it: an interval that lies beyond is empty.
        """
        x = Dummy("x", real=True)
        low, high = self.ends

        def within(place: Expr) -> Expr:
            place = place if high is None else Min(place, high)
            return place if low is None else Max(place, low)

        total = S.Zero
        turns = (S.One,) if self.turn == 1 else (S.One, S.NegativeOne)
        for turn in turns:
            inside = body.xreplace({ZETA: (self.state - self.centre) / sqrt(self.width)})
            known = () if self.slope == 1 else ((self.slope, int(turn)),)
            whole = self._by_signs(inside.xreplace({self.state: turn * x}), x, known, within)
            total += whole if len(turns) == 1 else (1 + turn * self.turn) / 2 * whole
        return total

    def _by_signs(
        self, body: Expr, x: Symbol, known: tuple[tuple[Expr, int], ...], within: Callable[[Expr], Expr]
    ) -> Expr:
        """The average, by cases of the sign of a slope that is open."""
        try:
            breaks, pieces = to_piecewise_polynomial(body, x, known)
        except NotPiecewisePolynomial as error:
            if isinstance(error, Undetermined) and error.kind == "slope" and len(known) < MOST_OPEN:
                signs = ((1, Gt(error.expr, 0)), (-1, Lt(error.expr, 0)), (0, S.true))
                rows = [(self._by_signs(body, x, (*known, (error.expr, s)), within), test) for s, test in signs]
                return Piecewise(*rows)
            where = "between two bounds" if self.is_held else "whose energy has a kink"
            raise UnsupportedLaw(
                f"{body.xreplace({x: self.state})} is averaged at a temperature over {self.state}, {where}.",
                "polynomials of it there, by cases whose ends have a known order",
            ) from error
        low, high = self.ends
        ends = [low, *map(within, breaks), high]
        return Add(*(self._between(p, x, *pair) for p, pair in zip(pieces, pairwise(ends), strict=True)))

    def _between(self, body: Expr, x: Symbol, low: Expr | None, high: Expr | None) -> Expr:
        """The average of a polynomial on an interval that ends on one side or on both."""
        if body == 0 or low == high:
            return S.Zero
        if low is None or high is None:
            way = 1 if high is None else -1
            return self._beyond(body, x, low if high is None else high, way)
        if self.decay == 0:
            return self._in_box(body, x, low, high)
        way = 1 if self.ends[1] is None else -1
        near, far = (low, high) if way > 0 else (high, low)
        return self._beyond(body, x, near, way) - self._beyond(body, x, far, way)

    def _beyond(self, body: Expr, x: Symbol, end: Expr, way: int) -> Expr:
        """The average of a polynomial on one side of an end, zero on the other: in powers of what is beyond the end."""
        y, scale = Dummy("y", positive=True), sqrt(self.width)
        terms = Poly(body.xreplace({x: end + way * y}), y).terms()
        if self.decay != 0:
            first = next(e for e in self.ends if e is not None)
            later = exp(-self.decay * way * (end - first))
            return later * Add(*(c * factorial(n) / self.decay**n for (n,), c in terms))
        reach = way * (self.centre - end) / scale
        return Add(*(c * scale**n * phi(n, reach) for (n,), c in terms))

    def _in_box(self, body: Expr, x: Symbol, low: Expr, high: Expr) -> Expr:
        """The average of a polynomial between two ends, zero elsewhere.

        The box is turned such that the Gaussian lies on its upper side: what is left of it there is a difference of
        two tails, of which the second is the smaller one by far if both are small.
        """
        middle, half, scale = (low + high) / 2, (high - low) / 2, sqrt(self.width)
        way = Piecewise((S.One, self.centre >= middle), (S.NegativeOne, True))
        away, y = Abs(self.centre - middle), Dummy("y", real=True)

        def below(end: Expr, power: int) -> Expr:
            """E[y**power] where y is below an end, in powers of what is missing to it."""
            lacks = (scale**n * phi(n, (end - away) / scale) for n in range(power + 1))
            return Add(*(binomial(power, n) * end ** (power - n) * (-1) ** n * m for n, m in enumerate(lacks)))

        terms = Poly(body.xreplace({x: middle + way * y}), y).terms()
        return Add(*(c * (below(half, n) - below(-half, n)) for (n,), c in terms))

    @property
    def total(self) -> Expr:
        """The logarithm of its total."""
        if self.decay != 0:
            return self.log
        if self.is_held and self.factor == 1:
            return self.log + log_between(*self.reach)
        if not self.is_whole:
            end, way = self.edge
            return self.log + log_tail(way * (self.centre - end) / sqrt(self.width))
        whole = self.over(S.One)
        return self.log if whole == 1 else self.log + log(whole)


def split(energy: Expr, x: SiteQuantity) -> tuple[Expr, Expr, Expr, Expr]:
    """An energy by its part without a state, its slope and its curvature in the state, and the rest."""
    fixed = slope = curvature = rest = S.Zero
    for term in Add.make_args(energy.expand()):
        if not term.has(x):
            fixed += term
        elif term.is_polynomial(x):
            powers = dict(Poly(term, x).terms())
            fixed += powers.pop((0,), S.Zero)
            slope += powers.pop((1,), S.Zero)
            curvature += 2 * powers.pop((2,), S.Zero)
            rest += Add(*(c * x**n for (n,), c in powers.items()))
        else:
            rest += term
    return fixed, slope, curvature, rest


@dataclass(frozen=True)
class PiecewiseSquares:
    """An energy that is a square between any two of some places, up to constants.

    Attributes
    ----------
    turn, slope : Expr
        By what the state is turned, 1 or -1, and by whose sign.
    places : tuple of Expr
        Where the turned state has its kinks and jumps, sorted.
    pieces : tuple of (Expr, Expr, Expr)
        Below, between and above the places: constant, slope and curvature in the turned state.
    """

    turn: Expr
    slope: Expr
    places: tuple[Expr, ...]
    pieces: tuple[tuple[Expr, Expr, Expr], ...]

    def between_places(self) -> Iterator[tuple[tuple[Expr | None, Expr | None], tuple[Expr, Expr, Expr]]]:
        """Both ends of each piece, with the piece."""
        return zip(pairwise((None, *self.places, None)), self.pieces, strict=True)


def squares(rest: Expr, x: SiteQuantity) -> PiecewiseSquares | None:
    """Where an energy has its kinks and jumps, and the squares beside them, whatever words declare it.

    None of others, of what only jumps, for that is one Gaussian, and where the order of the places is open.
    """
    mark = Dummy("x", real=True)
    body, signs, turn, slope = rest.xreplace({x: mark}), Signs(), S.One, S.One
    try:
        try:
            pieces = Builder(mark, signs).build(body).pruned()
        except OpenSlope as open_:  # on which side is which depends on the sign of a slope: it is turned with that
            slope = open_.coefficient
            signs = Signs(reflect=slope)
            pieces = Builder(mark, signs).build(body).pruned()
            turn = Piecewise((S.One, slope >= 0), (S.NegativeOne, True))
    except (NotPiecewisePolynomial, Undetermined, OpenSlope):
        return None
    if not pieces.breaks or not 1 < max(map(len, pieces.values)) <= 3:
        return None

    def coefficients(found: Any) -> tuple[Expr, Expr, Expr]:
        fixed, tilt, half = (*map(signs.restore, found), *[S.Zero] * (3 - len(found)))
        return fixed, tilt, 2 * half

    places = tuple(signs.restore(place).expand() for place in pieces.breaks)
    return PiecewiseSquares(turn, slope, places, tuple(map(coefficients, pieces.values)))
