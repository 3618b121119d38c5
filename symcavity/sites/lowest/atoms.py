"""The candidates for the minimum of an energy of one variable: isolated points, kinks, and pieces that are squares.

An energy ``E(x)`` loses ``s*x`` to a force s. Its lowest state moves up with s, from candidate to candidate in the
order in which they lie in x; between two candidates it switches where both are equally low.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Eq, Expr, Heaviside, Min, Ne, Piecewise, S, Symbol, cancel, false, oo, sign, true

from symcavity.algebra.piecewise import Builder, NotPiecewisePolynomial, Pieces
from symcavity.algebra.signs import OpenSlope, Signs, Undetermined, sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.sites.branching.arranging import IllPosed

LABELS = (
    'labels with their values in the declaration: Quenched("y", mu, law={1: Rational(1, 2), -1: Rational(1, 2)}); in '
    "the place of the sign of a teacher's field u the label that has it, "
    'Quenched("y", mu, law={1: Heaviside(u), -1: Heaviside(-u)}, given=u)'
)
SUPPORTED = "energies that are polynomials of degree two between points; discrete states; inequalities"


class OpenOrder(IllPosed):
    """The order of the candidates depends on a sign that is open.

    Attributes
    ----------
    on : Basic
        What holds the sign, or the test.
    """

    def __init__(self, *said: str, on: Any) -> None:
        super().__init__(*said)
        self.on = on


@dataclass(frozen=True)
class Candidate:
    """A candidate for the minimum: a point, or an interval on which the energy is ``a + b*x + c*x**2/2``.

    Attributes
    ----------
    low, high : Expr
        The ends of the interval; both are the point.
    a, b, c : Expr
        The energy on it; that of a point is ``a``.
    side : int
        Of a point at which the energy jumps: on which side it is the lower one, 1 above and -1 below; 0 of others.
    """

    low: Expr
    high: Expr
    a: Expr
    b: Expr = S.Zero
    c: Expr = S.Zero
    side: int = 0

    @property
    def is_point(self) -> bool:
        """Whether it is one point."""
        return bool(self.low == self.high)

    def state(self, s: Expr) -> Expr:
        """Where its minimum lies at a force."""
        return self.low if self.is_point else (s - self.b) / self.c

    def least(self, s: Expr) -> Expr:
        """Its lowest energy at a force; of an interval that of the whole parabola."""
        return self.a - s * self.low if self.is_point else self.a - (s - self.b) ** 2 / (2 * self.c)

    def energy(self, x: Expr) -> Expr:
        """Its energy at a state."""
        return self.a if self.is_point else self.a + self.b * x + self.c * x**2 / 2

    def force(self, x: Expr) -> Expr:
        """The force that holds it at a state."""
        return self.b + self.c * x

    def where(self, rule: dict[Any, Expr]) -> Candidate:
        """The same candidate with other expressions in it."""
        low, high, a, b, c = (e.xreplace(rule) for e in (self.low, self.high, self.a, self.b, self.c))
        return Candidate(low, high, a, b, c, self.side)

    def steeper(self, curvature: Expr) -> Candidate:
        """The same candidate with ``curvature*x**2/2`` more energy."""
        if self.is_point:
            return replace(self, a=self.a + curvature * self.low**2 / 2)
        return replace(self, c=self.c + curvature)


def discrete(energies: Sequence[tuple[Expr, Expr]]) -> list[Candidate]:
    """The candidates of a variable with a few values, each with its energy: points."""
    order = sorted(energies, key=lambda pair: pair[0])
    return [Candidate(value, value, energy) for value, energy in order]


def atoms_of(energy: Expr, x: Symbol, bounds: Sequence[Expr], positive: Sequence[Expr]) -> list[Candidate]:
    """The candidates of a continuous variable, from low to high.

    Parameters
    ----------
    energy : Expr
    x : Symbol
    bounds : sequence of Expr
        What is not negative where the variable may be; linear in it.
    positive : sequence of Expr
        What is known to be positive.

    Raises
    ------
    UnsupportedLaw
        If the energy is not made of squares, or the order of its points is open.
    """
    signs = Signs(tuple((e, 1) for e in positive))
    try:
        places, values = _pieces(energy, x, bounds, signs)
    except NotPiecewisePolynomial:
        raise UnsupportedLaw(
            f"The minima of the energy {_named(energy, x)} cannot be ordered: between its kinks it is not quadratic.",
            SUPPORTED,
            "problem.gibbs(beta) at large beta, of losses of one field; a penalty of squares such as MCP or SCAD",
        ) from None
    except Undetermined as problem:
        if site_quantities(problem.expr, Quenched):
            raise OpenOrder(*_open_order(energy, x, problem.expr), on=problem.expr) from None
        raise UnsupportedLaw(
            f"The minima of the energy {_named(energy, x)} are not laid out: the sign of {problem.expr} is open.",
            SUPPORTED,
            "signs of parameters, positive=True, and inequalities between them in subject_to",
        ) from None
    except OpenSlope as problem:
        raise OpenOrder(*_open_order(energy, x, problem.coefficient), on=problem.coefficient) from None
    if any(p is not None and len(p) > 3 for p in values):
        raise UnsupportedLaw(f"A piece of the energy {_named(energy, x)} is not quadratic.", SUPPORTED)
    ends, out, before = (-oo, *places, oo), list[Candidate](), None
    for k, p in enumerate(values):
        piece = None
        if p is not None:
            a, b, c = (*p, *[S.Zero] * (3 - len(p)))
            piece = Candidate(ends[k], ends[k + 1], a, cancel(b), cancel(2 * c))
        place = ends[k]
        if sides := [one.energy(place) for one in (before, piece) if one is not None and k]:
            inside = before is not None and piece is not None
            jump = cancel(sides[0] - sides[-1])
            if jump != 0 and sign_of(jump) is None and site_quantities(jump, Quenched):
                raise OpenOrder(*_open_order(energy, x, jump), on=jump)
            # a point of its own may lie lower than what is beside it
            there = _at_place(energy, x, place) if not inside or energy.has(Eq, Ne, sign) else []
            lowest = Min(*(cancel(e) for e in (*sides, *there)))
            out.append(Candidate(place, place, lowest, side=_side(sides, lowest, piece, inside=inside)))
        out += [] if piece is None else [piece]
        before = piece
    return out


def _side(sides: Sequence[Expr], lowest: Expr, piece: Candidate | None, *, inside: bool) -> int:
    """On which side of a place the lowest energy is that of a piece; 0 where it is of none, or of both."""
    if not inside and cancel(sides[0] - lowest) != 0:  # beyond a bound it would be as low
        return 1 if piece is None else -1
    held = inside and any(cancel(side - lowest) == 0 for side in sides)
    return sign_of(cancel(sides[0] - sides[-1])) or 0 if held else 0


def _at_place(energy: Expr, x: Symbol, place: Expr) -> list[Expr]:
    """The energy at a place; of a step on it the value of either side, of which the lower one is the energy."""
    on = [h for h in energy.atoms(Heaviside) if h.args[1] == S.Half and cancel(h.args[0].xreplace({x: place})) == 0]
    return [energy.xreplace({h: S(side) for h in on}).xreplace({x: place}) for side in ((0, 1) if on else (0,))]


def _open_order(energy: Expr, x: Symbol, on: Expr) -> tuple[str, str, str]:
    """What is wrong with an energy whose minima lie in an order that a sign decides."""
    return (
        f"The order of the minima of the energy {_named(energy, x)} depends on the sign of {on}.",
        SUPPORTED,
        LABELS,
    )


def _named(energy: Expr, x: Symbol) -> Expr:
    """An energy for the reader of an error."""
    return energy.xreplace({x: Symbol("x", real=True)})


def _pieces(
    energy: Expr, x: Symbol, bounds: Sequence[Expr], signs: Signs
) -> tuple[list[Expr], list[tuple[Expr, ...] | None]]:
    """All points at which an energy may bend, jump or end, and its coefficients between them; None out of bounds."""

    def elsewhere(e: Expr) -> Expr:
        """A condition off the points at which it alone holds."""
        return false if isinstance(e, Eq) else true

    own = sorted((e for e in energy.atoms(Eq, Ne) if e.has(x)), key=str)
    whole = Builder(x, signs).build(energy.xreplace({e: elsewhere(e) for e in own}))
    gaps = [*(e.lhs - e.rhs for e in own), *sorted((e.args[0] for e in energy.atoms(sign) if e.has(x)), key=str)]
    alone = [Builder(x, signs).build(Piecewise((1, gap > 0), (0, True))) for gap in gaps]
    limits = [Builder(x, signs).build(Piecewise((1, b > 0), (0, True))) for b in bounds]
    places = list(whole.breaks)
    for place in (t for pieces in (*alone, *limits) for t in pieces.breaks):
        if place not in places:
            places.insert(sum(1 for t in places if signs.sign(place - t, "order") > 0), place)

    def on(pieces: Pieces, k: int) -> tuple[Expr, ...]:
        return pieces.values[sum(1 for t in pieces.breaks if t in places[:k])]

    return places, [on(whole, k) if all(on(b, k) for b in limits) else None for k in range(len(places) + 1)]
