"""Averages enclosed by balls: over sites, over laws with densities, over Gaussian fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from flint import acb, arb
from sympy import (
    Abs,
    Dummy,
    Expr,
    Function,
    Max,
    Min,
    Piecewise,
    S,
    Sum,
    Symbol,
    exp,
    gamma,
    sign,
)

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.lowest import LowestAverage
from symcavity.algebra.quadrature import break_points
from symcavity.errors import UnsupportedLaw
from symcavity.evaluate.averages.densities import Counting, formula, location
from symcavity.evaluate.averages.nodes import NODES, own_quantities
from symcavity.evaluate.certificates.enclosed import FARTHEST, STEPS, Piece, Undecided, integrals, tail
from symcavity.evaluate.certificates.jets import FUNCTIONS, KINKS, Arithmetic, Jet, leaves, summed, unknown
from symcavity.model.averages import Average

SLICES = 6  # halvings of a segment, on which the sides of kinks are tested
MOST_SITES = 2000  # points of a law, each of which is a jet
MOST_RULED = 40  # points of a law beside a density, each of which is an integral
OUTER, INNER, OUTWARDS = 2.0, 1 / 3, FARTHEST ** (1 / STEPS)  # panels towards tails and singular ends; steps in tails
PLACES, FURTHEST, BEYOND = 500, 1e12, 1.3  # walked along a tail; of unknowns; of fields, as multiples of their reach


@dataclass
class OnePiece:
    """A piece of a line on which an integrand has one form: ends from the left, and tails beyond the last of them.

    A tail is what it is measured from, where it begins, and the ratio in which it is walked along.
    """

    ends: list[Jet]
    tails: list[tuple[Jet, Jet, float]] = field(default_factory=list)


class Enclosure(Arithmetic):
    """Evaluate expressions with averages in balls.

    Parameters
    ----------
    laws : mapping
        The laws of the quenched parameters, by kind.
    bits : int
        How sharp integrals are to be.
    """

    def __init__(self, laws: Mapping[Any, Any], bits: int) -> None:
        self.laws, self.bits = laws, bits

    def _function(self, expr: Any, of: Callable[[Any], Jet], env: dict[Any, Jet]) -> Jet:
        if isinstance(expr, Average | Sum):
            return self._sites(expr, env)
        if isinstance(expr, GaussianAverage):
            return self._gauss(expr, env)
        if isinstance(expr, ImplicitAverage):
            return self._implicit(expr, env)
        return super()._function(expr, of, env)

    def check(self, expr: Expr) -> None:
        """Refuse what is not enclosed.

        Raises
        ------
        UnsupportedLaw
        """
        parts = [expr]
        for found in sorted({node.title for node in expr.atoms(NumberedAverage)}):
            raise UnsupportedLaw(
                f"{found} are not enclosed.",
                "laws whose fields are numbers, one at a time",
                "solution.residual and theory.derivation.verify(), which take these averages in another way",
            )
        if expr.has(LowestAverage):
            raise UnsupportedLaw(
                "Averages over the lowest of several minima of a smooth energy are not enclosed.",
                "laws whose states do not jump",
                "solution.residual and theory.derivation.verify(), which take these averages in another way",
            )
        for node in expr.atoms(Average, Sum):
            body, law, plain, ruled = self._read(node)
            parts += [_density(variable, Dummy()) for _, variable in ruled if not isinstance(variable, Counting)]
            if len(ruled) > 1 or any(isinstance(variable, Counting) for _, variable in ruled):
                found = "Averages over several densities at once, or over counts whose weights depend on a field,"
                raise UnsupportedLaw(f"{found} are not enclosed: {node}", "one law with a density in each average")
            if ruled and body.has(GaussianAverage, ImplicitAverage):
                raise UnsupportedLaw(
                    f"An average over a field inside of one over the law of {ruled[0][0].family.name} is not enclosed.",
                    "laws with densities whose averages over the field have a closed form; finite laws",
                )
            most = MOST_RULED if ruled else MOST_SITES
            count = law.count if law.arrays and plain else len(law.marginal([q.family for q in plain]))
            if count > most:
                raise UnsupportedLaw(f"The average {node} is not enclosed.", f"laws and arrays of up to {most} values")
        for f in sorted({f for part in parts for f in part.atoms(Function)}, key=str):
            if not isinstance(f, FUNCTIONS):
                raise unknown(f)

    def _read(self, node: Any) -> tuple[Expr, Any, list[Any], list[tuple[Any, Any]]]:
        """What is averaged, the law of its parameters, those with points, and those with densities."""
        body = node.args[0]
        quantities = sorted(own_quantities(body), key=str)
        law = self.laws[quantities[0].family.slots[0]]
        densities = dict(law.continuous)
        ruled = [(q, densities[q.family]) for q in quantities if q.family in densities]
        return body, law, [q for q in quantities if q.family not in densities], ruled

    def _sites(self, node: Any, env: dict[Any, Jet]) -> Jet:
        """The average over points, and inside of it over a density."""
        body, law, plain, ruled = self._read(node)
        families = [q.family for q in plain]
        if law.arrays and plain:
            rows = list(zip(*(law.arrays[q].tolist() for q in families), strict=True))
            points = [(row, arb(1) / len(rows)) for row in rows]
        else:
            points = [(row, self.number(w)) for row, w in law.marginal(families).items()]
        base = {k: v for k, v in env.items() if isinstance(k, Symbol)}
        names = {q: q for q in plain}
        if ruled:  # expressions in symbols; averages inside are of their own sites
            names = {q: Dummy(q.family.name, real=True) for q in plain}
            nested = {part: Dummy(real=True) for part in body.atoms(Average, Sum)}
            base |= {name: self(part, env) for part, name in nested.items()}
            y, ((q, variable),) = Dummy("y", real=True), ruled
            body = body.xreplace(nested).xreplace({**names, q: y}) * _density(variable, y)
        total = []
        for row, weight in points:
            inner = {**base, **{names[q]: Jet(self.number(v)) for q, v in zip(plain, row, strict=True)}}
            if ruled:
                found = self._integral(body, y, self._law_segments(body, y, variable, inner), inner)
            else:
                found = self(body, inner)
            total.append(found.scaled(weight))
        out = summed(total)
        return out * self(node.limits[0][2], env) if isinstance(node, Sum) else out

    def _gauss(self, node: GaussianAverage, env: dict[Any, Jet]) -> Jet:
        integrand = node.expr * exp(-(node.z**2) / 2)
        reach = self._reach()
        cuts = [b for b in (self(b, env) for b in node.breaks) if abs(_middle(b)) < FARTHEST * reach]
        return self._integral(integrand, node.z, self._segments(cuts, -reach, reach), env).scaled(self._norm())

    def _segments(self, cuts: list[Jet], low: float, high: float) -> list[OnePiece]:
        """A line with tails, that ends beyond all cuts."""
        cuts, centre = sorted(cuts, key=_middle), Jet(arb((low + high) / 2))
        low = min([low, *(_middle(c) - 1 for c in cuts[:1])])
        high = max([high, *(_middle(c) + 1 for c in cuts[-1:])])
        ends = [Jet(arb(low)), *cuts, Jet(arb(high))]
        out = [OnePiece([a, b]) for a, b in pairwise(ends)]
        out[0].tails.append((centre, ends[0], OUTWARDS))
        out[-1].tails.append((centre, ends[-1], OUTWARDS))
        return out

    def _implicit(self, node: ImplicitAverage, env: dict[Any, Jet]) -> Jet:
        body, x, psi, low, high = node.args
        integrand = body * psi.diff(x) * exp(-(psi**2) / 2)
        first, last = self._range(psi, x, env)
        ends = [None if abs(e) is S.Infinity else self(e, env) for e in (low, high)]
        segments = self._segments([e for e in ends if e is not None], first, last)
        segments = segments[int(ends[0] is not None) : len(segments) - int(ends[1] is not None)]
        out = self._integral(integrand, x, segments, env).scaled(self._norm())
        middle = self(psi.diff(x), {**leaves(env), x: Jet(arb((first + last) / 2))}).v
        return out if self._is_positive(middle) else out.scaled(-1)

    def _norm(self) -> Any:
        return 1 / (2 * arb.pi()).sqrt()

    def _reach(self) -> float:
        """Where the Gaussian weight is below what is sought."""
        return float(np.ceil(np.sqrt(2 * np.log(2) * (self.bits + 20))))

    def _range(self, psi: Expr, x: Symbol, env: dict[Any, Jet]) -> tuple[float, float]:
        """Where the field is beyond that, on either side of an implicit unknown."""
        reach, base = self._reach(), leaves(env)

        def field(place: float) -> float:
            return _middle(self(psi, {**base, x: Jet(arb(place))})) / reach

        far, ends = 1.0, (field(-1.0), field(1.0))
        while not (min(map(abs, ends)) > 1 and ends[0] * ends[1] < 0):
            far, ends = 2 * far, (field(-2 * far), field(2 * far))
            if far > FURTHEST:
                raise Undecided(f"The field {psi} stays near zero.", None)
        out = []
        for outside, inside, beyond in ((-far, far, ends[0]), (far, -far, ends[1])):
            while abs(beyond) > BEYOND:
                middle = (outside + inside) / 2
                value = field(middle)
                if value * beyond > abs(beyond):
                    outside, beyond = middle, value
                else:
                    inside = middle
            out.append(outside)
        return out[0], out[1]

    def _law_segments(self, integrand: Expr, y: Symbol, variable: Any, env: dict[Any, Jet]) -> list[OnePiece]:
        """Pieces of the support of a law, between its ends and the kinks of what is averaged.

        Towards an end where the integrand is not analytic, and into a tail, the pieces get shorter, and longer.
        """
        base, (centre, spread) = leaves(env), location(variable)
        step = Jet(arb(spread))
        support = variable.pspace.domain.set
        low, high = (None if abs(e) is S.Infinity else self(e, env) for e in (support.inf, support.sup))
        outside = integrand.xreplace({node: Dummy() for node in integrand.atoms(*NODES)})
        marks = [self(b, env) for b in break_points(outside, y)]
        marks = [m for m in marks if not (low and m.v <= low.v) and not (high and m.v >= high.v) and m.v.is_finite()]
        if not marks and low is None and high is None:
            marks = [Jet(arb(centre))]

        out = []
        for a, b in pairwise([low, *sorted(marks, key=_middle), high]):
            known = [e for e in (a, b) if e is not None]
            first, last = known[0] if a else known[0] - step, known[-1] if b else known[-1] + step
            middle = (first + last).scaled(arb(0.5))
            expr = self._smooth(integrand, y, first, last, base)
            part = OnePiece([middle])
            for end, other, way in ((a, last, -1), (b, first, 1)):
                anchor, ratio, onwards = (other, OUTER, OUTWARDS) if end is None else (end, INNER, 1 / OUTWARDS)
                near = abs((middle - anchor).v).upper() / 16
                around = Jet(acb(anchor.v + arb(0, near), arb(0, near)), anchor.d)
                if end is not None and self._size(expr, around, arb(1), y, base) is not None:
                    part.ends = [*part.ends[::way], end]
                else:
                    places = self._walk(expr, anchor, middle, ratio, y, base, variable)
                    part.ends = part.ends[::way] + places[1:]
                    part.tails.append((anchor, places[-1], onwards))
                part.ends = part.ends[::way]
            if len(part.ends) == 3 and not part.tails:
                del part.ends[1]
            out.append(part)
        return out

    def _size(self, expr: Expr, place: Jet, scale: Any, y: Symbol, base: Mapping[Any, Jet]) -> Any:
        """What the largest component contributes near a place; None where it is not finite."""
        try:
            found = self(expr, {**base, y: place})
        except (Undecided, ZeroDivisionError):
            return None
        sizes = [abs(v * scale).upper() for v in (found.v, *found.d)]
        return reduce(arb.max, sizes) if all(v.is_finite() for v in sizes) else None

    def _walk(
        self, expr: Expr, anchor: Jet, start: Jet, ratio: float, y: Symbol, base: Mapping[Any, Jet], variable: Any
    ) -> list[Jet]:
        """Places until nothing is left to integrate beyond the last."""
        gap, places, most, small = start - anchor, [start], arb(0), 0
        while small < 2:
            gap = gap.scaled(ratio)
            places.append(anchor + gap)
            here = self._size(expr, places[-1], gap.v, y, base)
            if len(places) > PLACES:
                raise Undecided(
                    f"The average over {variable} is not enclosed: it does not settle in a tail or at an end.",
                    None,
                    hint="more digits; a law with a bounded density",
                )
            if here is None:
                continue
            most = most.max(here)
            small = small + 1 if here <= most * arb(2) ** (-self.bits - 10) else 0
        return places

    def _integral(self, integrand: Expr, z: Symbol, segments: Sequence[OnePiece], env: dict[Any, Jet]) -> Jet:
        """The integral of an expression over segments, with ends that move along with the unknowns."""
        base = leaves(env)
        count = 1 + max((len(j.d) for j in base.values()), default=0)

        def piece(expr: Expr, known: Mapping[Any, Jet], start: Jet, width: Jet) -> Piece:
            def components(t: Any) -> list[Any]:
                found = self(expr, {**known, z: start + width * Jet(t)}) * width
                return [found.v, *found.d, *[arb(0)] * (count - 1 - len(found.d))]

            return components

        pieces, rest = [], [arb(0)] * count
        for part in segments:
            expr = self._smooth(integrand, z, part.ends[0], part.ends[-1], base)
            known = {**base, **{e: self(e, env) for e in _settled(expr, z)}}
            pieces += [piece(expr, known, a, b - a) for a, b in pairwise(part.ends)]
            for anchor, start, ratio in part.tails:
                found = tail(piece(expr, known, anchor, start - anchor), count, ratio)
                rest = [a + b for a, b in zip(rest, found, strict=True)]
        total = integrals(pieces, count, self.bits)
        out = [v + arb(0, r) for v, r in zip(total, rest, strict=True)]
        return Jet(out[0], out[1:])

    def _smooth(self, expr: Expr, z: Symbol, a: Jet, b: Jet, base: Mapping[Any, Jet]) -> Expr:
        """The integrand between two cuts: there each kink has one side, which is tested throughout."""
        flat = {k: Jet(j.v) for k, j in base.items()}

        def of(gap: Expr, place: Any, *along: Any) -> Jet:
            return self(gap, {**flat, z: Jet((a + (b - a) * Jet(place)).v, along)})

        def up(gap: Expr) -> bool:
            sides, spans = set(), [(arb(0), arb(1), 0)]
            while spans:
                low, high, depth = spans.pop()
                span, end = low.union(high), low if low == 0 else high
                try:
                    sides.add(self._is_positive(of(gap, span).v))
                except Undecided:
                    if low == 0 or high == 1:  # a zero at the end is the only one where the slope is none
                        steep = [x for x in of(gap, span, arb(1)).d if x.is_finite() and not x.contains(0)]
                        if depth > 1 and steep and of(gap, end).v.contains(0):
                            continue
                    elif depth >= SLICES:
                        raise
                    if depth >= 4 * SLICES:
                        raise
                    spans += [(low, (low + high) / 2, depth + 1), ((low + high) / 2, high, depth + 1)]
            if len(sides) != 1:
                raise Undecided("A kink lies inside of a panel.", None)
            return sides.pop()

        def one(node: Any) -> Any:
            if isinstance(node, Piecewise):
                return next(v for v, test in node.args if self._side(test, up))
            if isinstance(node, Max | Min):
                best = node.args[0]
                for arg in node.args[1:]:
                    best = arg if up(arg - best) == isinstance(node, Max) else best
                return best
            side = up(node.args[0])
            if isinstance(node, Abs):
                return node.args[0] if side else -node.args[0]
            return S.One if side else S.NegativeOne if isinstance(node, sign) else S.Zero

        hidden = {node: Dummy() for node in expr.atoms(*NODES)}  # what is inside of averages switches there
        shown = {name: node for node, name in hidden.items()}
        expr = expr.xreplace(hidden)
        return expr.replace(lambda e: isinstance(e, KINKS) and e.has(z), one).xreplace(shown)


def _middle(jet: Jet) -> float:
    """About where a ball is."""
    return float(jet.v.real.mid())


def _density(variable: Any, y: Symbol) -> Expr:
    """The density of a law in functions that have balls."""
    return formula(variable, y).rewrite(gamma)


def _settled(expr: Expr, z: Symbol) -> list[Expr]:
    """The largest parts of an expression that do not depend on a symbol."""
    if not expr.has(z):
        return [expr] if isinstance(expr, Expr) else []
    return [e for a in expr.args for e in _settled(a, z)] if not isinstance(expr, NODES) else []
