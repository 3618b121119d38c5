"""The order of the branches of a site along its field, and the places where one goes over into the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Abs, Dummy, Expr, Mul, S, Symbol, cancel, factor_terms, fraction, sign, sympify
from sympy.core.relational import Relational

from symcavity.algebra.compiled import compiled
from symcavity.algebra.signs import sign_given, sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.convexity import seeded
from symcavity.model.quantities import Global, Quenched, SiteQuantity, site_quantities
from symcavity.record.symbols import CavitySymbol
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.compared import InDigits, clipped, is_below, is_nan, is_near
from symcavity.sites.branching.draws import DRAWS, Cases, Draws, symbols_in
from symcavity.sites.branching.solution import Region
from symcavity.sites.branching.unknowns import GRID, straightened, turned

Arranged = tuple[tuple[Region, ...], tuple[Branch, ...], Expr, tuple[Relational, ...]]

TRIALS = 2000
OVERFLOW = 300.0  # beyond, exponentials overflow, and an undefined value says nothing
_JUMPS = "where a jump meets its own feedback: Problem(objective), of whose states the lowest is meant"
INSIDE = 1e-6  # by how much a branch has to hold for some field


class IllPosed(UnsupportedLaw):
    """The branches of a law leave a gap or overlap: it does not fix the states for every field.

    Attributes
    ----------
    shared : bool
        Whether only parameters that all sites share decide it, whatever the signs of others.
    """

    shared = False


@dataclass
class _Drawn:
    """What was seen at draws: orders of branches and their ends, the points, the reflection and the lines there.

    ``needed`` are the conditions on labels without which there are gaps.
    """

    layouts: list[tuple[tuple[int, ...], list[float]]] = field(default_factory=list)
    points: list[list[float]] = field(default_factory=list)
    seen: list[tuple[float, Any]] = field(default_factory=list)
    needed: tuple[Any, ...] = ()

    def at(self, draws: Sequence[int]) -> _Drawn:
        """Some of the draws."""
        layouts, points = [self.layouts[k] for k in draws], [self.points[k] for k in draws]
        return _Drawn(layouts, points, [self.seen[k] for k in draws], self.needed)


class Layout:
    """Finds the order of the branches along the field."""

    def __init__(
        self,
        branches: list[Branch],
        inner: Symbol,
        sources: Sequence[Symbol],
        text: str,
        draws: Draws,
        matter: Sequence[Expr],
    ) -> None:
        self.branches = straightened(branches, inner, draws, text)
        self.inner, self.sources, self.text, self.draws = inner, tuple(sources), text, draws
        self.lines: list[list[tuple[Expr, Expr]]] = [self._lines(b) for b in self.branches]
        self.reference = self._reference()
        self.matter, self.overlapping = tuple(matter), False

    def _lines(self, branch: Branch) -> list[tuple[Expr, Expr]]:
        """Each condition as (slope, offset) in the branch's own variable: the field, or the implicit unknown."""
        variable = branch.implicit[0] if branch.implicit else self.inner
        out = []
        for condition in branch.conditions:
            expanded = condition.expand()
            out.append((expanded.diff(variable), expanded.xreplace({variable: S.Zero})))
        return out

    def _reference(self, *, implicit: bool = False) -> Expr:
        """The reflection: the sign of a slope that the assumptions leave open, of branches of one sort."""
        for branch, lines in zip(self.branches, self.lines, strict=True):
            if bool(branch.implicit) != implicit:
                continue
            x = branch.implicit[0] if branch.implicit else self.inner
            slopes = [slope for slope, _ in lines] + [v.diff(x) for v in branch.values.values() if implicit]
            for slope in slopes:
                if slope != 0 and sign_of(slope) is None:
                    top, bottom = fraction(cancel(slope))
                    factors = Mul.make_args(factor_terms(top)) + Mul.make_args(factor_terms(bottom))
                    open_ = [f for f in factors if not sign_given(f, self.draws.positive)]
                    if not open_ or any(f.has(x) for f in open_):
                        continue
                    factor = Mul(*open_)
                    return factor if isinstance(factor, sign) else factor / Abs(factor)
        return S.One

    def _exprs(self) -> list[Expr]:
        exprs = [e for lines in self.lines for line in lines for e in line]
        exprs += [v for b in self.branches for v in b.values.values()] + [self.reference]
        return exprs + [b.implicit[1] for b in self.branches if b.implicit]

    def _moving(self) -> set[Symbol]:
        return {self.inner, *(b.implicit[0] for b in self.branches if b.implicit)}

    def arrange(self) -> Arranged:
        """Return (regions, branches, reflection, inequalities left open).

        Where an order that was seen at all draws is left open by labels, they are drawn on both sides of it, too.
        """
        found = self._arranged(())
        known = self.overlapping, self.reference
        if not (asked := [c for c in found[-1] if site_quantities(c, Quenched)]):
            return found
        try:
            return self._arranged(asked)
        except UnsupportedLaw:  # in no one order there is no formula: the order is a condition on the labels
            self.overlapping, self.reference = known
            return found

    def _arranged(self, asked: Sequence[Relational]) -> Arranged:
        """The same, with labels on both sides of some inequalities."""
        exprs = [*self._exprs(), *asked]
        symbols, cases = symbols_in(exprs, self._moving()), Cases(exprs, list(self._moving()))
        self._turn_falling(symbols)

        def call(expr: Expr, *first: Symbol) -> Any:
            return compiled([*first, *symbols], expr)

        numbers = InDigits(symbols, [self.reference, *(e for ls in self.lines for line in ls for e in line)])
        psis = [InDigits([b.implicit[0], *symbols], [b.implicit[1]]) if b.implicit else None for b in self.branches]
        drawn = self._drawn(symbols, cases, call, numbers, psis)
        layouts, points, seen, needed = drawn.layouts, drawn.points, drawn.seen, drawn.needed
        orders = {order for order, _ in layouts}
        if len(orders) > 1 and self.overlapping:
            raise IllPosed(
                f"{self.text} leaves multipliers undetermined where labels make constraints meet, in no one order of "
                "branches.",
                "constraints and kinks that meet at one place of a single variable",
                "one constraint in place of several; kinks written as one Max(...)",
            )
        if len(orders) > 1:
            if any(b.implicit for b in self.branches):
                if self.reference == 1 and (other := self._reference(implicit=True)) != 1:
                    self.reference = other
                    return self._arranged(asked)
                raise UnsupportedLaw(
                    f"{self.text}: the order of its branches depends on the parameters, and some are implicit.",
                    "implicit laws whose branches come in one order",
                    "declare the signs of the parameters: Symbol('...', positive=True)",
                )
            return (), tuple(self.branches), S.One, needed
        (order,) = orders
        breaks = [
            self._boundary(order[k], order[k + 1], k, layouts, points, call, seen[0]) for k in range(len(order) - 1)
        ]
        return self._in_order(order, breaks, needed)

    def _drawn(self, symbols: list[Any], cases: Cases, call: Any, numbers: Any, psis: Sequence[Any]) -> _Drawn:
        """What is seen at draws of parameters and labels."""
        rng = seeded(7)
        out = _Drawn()
        between = self._between_labels()
        kept, broken, gap = set(between), set(between), None  # conditions at all layouts, and at no gap
        met, loose = [], self.overlapping
        for draw in range(cases.number):
            drawn = cases.decide(draw, symbols, self.draws.sample(symbols, rng), rng)
            point = [0.0 if s in self.sources else v for s, v in zip(symbols, drawn, strict=True)]
            s, *flat = numbers(*point)
            found = iter(flat)
            lines = [[(next(found), next(found)) for _ in ls] for ls in self.lines]
            violated = {c for c in between if not float(call(c)(*point)) >= 0}
            try:
                layout, meets = self._tile(self._intervals(lines, psis, s, point), symbols, s, point)
            except IllPosed as none:
                if not violated:
                    raise
                broken, gap = broken & violated, gap or none
                continue
            kept -= violated
            out.layouts.append(layout)
            out.points.append(point)
            out.seen.append((s, lines))
            met.append(meets)
        out.needed = tuple(c >= 0 for c in between if gap and c in kept & broken)
        if gap and not (out.layouts and out.needed):
            raise gap
        if any(met) and not (loose or all(met)):  # where kinks meet for some labels only, the others say more
            out = out.at([k for k, meets in enumerate(met) if not meets])
            self.overlapping = False
        return out

    def _in_order(self, order: Sequence[int], breaks: Sequence[Expr], needed: tuple[Any, ...]) -> Arranged:
        """The regions of branches in one order, with what this order assumes of their ends."""
        ends: list[Expr | None] = [None, *breaks, None]
        regions = tuple(
            Region(ends[k], ends[k + 1], self.branches[b].values, self.branches[b].implicit, self.branches[b].label)
            for k, b in enumerate(order)
        )
        zero = dict.fromkeys(self.sources, S.Zero)
        gaps = [(b - a).xreplace(zero) for a, b in pairwise(breaks)]
        known = [c.lhs for c in needed]
        assumed = tuple(c for gap in gaps if sign_given(gap, known) not in (0, 1) and (c := gap >= 0) != S.true)
        return regions, tuple(self.branches), self.reference, (*needed, *assumed)

    def _between_labels(self) -> list[Expr]:
        """What decides by the labels of a site alone which branches hold: of two bounds, which is the lower."""
        fixed = {offset for lines in self.lines for slope, offset in lines if slope == 0}
        return [c for c in sorted(fixed, key=str) if site_quantities(c, Quenched) and not c.atoms(Dummy, CavitySymbol)]

    def _orders(self) -> list[Any]:
        """In what order parameters that all sites share have to be where branches hold between two of them."""
        fixed = {offset.expand() for lines in self.lines for slope, offset in lines if slope == 0}
        plain = [c for c in sorted(fixed, key=str) if c.free_symbols and c.is_Add and not c.atoms(Dummy, CavitySymbol)]
        return [c >= 0 for c in plain if not c.has(SiteQuantity, Global) and c.is_nonnegative is None]

    def _turn_falling(self, symbols: list[Any]) -> None:
        """Write implicit branches in an unknown that grows with the reflected field: their ends stay in order."""
        implicit = [(k, b) for k, b in enumerate(self.branches) if b.implicit is not None and len(self.branches) > 1]
        if not implicit:
            return
        rng = seeded(7)
        points = [self.draws.sample(symbols, rng) for _ in range(DRAWS)]
        reflected = compiled(symbols, self.reference)
        for k, branch in implicit:
            ways = {(int(np.sign(reflected(*p))), self._way(branch, symbols, p)) for p in points}
            ways = {(s, way) for s, way in ways if way}
            turns = {s * way for s, way in ways}  # of the field that is reflected; or that of the field itself
            turn = turns.pop() if len(turns) == 1 else self.reference * max((way for _, way in ways), default=1)
            if turn != 1:
                self.branches[k] = turned(branch, sympify(turn))
                self.lines[k] = self._lines(self.branches[k])

    def _way(self, branch: Branch, symbols: list[Any], point: list[float]) -> int:
        """Whether the field grows (1) or falls (-1) with an implicit unknown at a point; 0 where it is not met."""
        x, psi = branch.implicit or (S.Zero, S.Zero)
        inside = np.ones(GRID.size, dtype=bool)
        with np.errstate(all="ignore"):
            for condition in branch.conditions:
                inside &= np.broadcast_to(compiled([x, *symbols], condition)(GRID, *point), GRID.shape) >= 0
            values = np.broadcast_to(compiled([x, *symbols], psi)(GRID[inside], *point), GRID[inside].shape)
        values = values[np.isfinite(values)]
        return 0 if values.size < 2 else 1 if values[-1] >= values[0] else -1

    def _intervals(self, lines: Any, psis: Any, s: float, point: list[float]) -> list[tuple[float, float]]:
        """The interval of the reflected field on which each branch holds."""
        out = []
        for ls, psi in zip(lines, psis, strict=True):
            low, high = -np.inf, np.inf
            if psi is not None:
                self._check_monotone(ls, psi.double, point)
            for a, b in ls:
                if abs(a) < 1e-12:
                    if b < -1e-9:
                        low, high = 1.0, 0.0
                    continue
                edge = -b / a
                if psi is not None:
                    # at its very end a root may not be a number by rounding
                    near = (edge + np.copysign(step, a) for step in (0, 1e-15 * abs(edge)))
                    edge = next((v for x in near if not is_nan(v := psi(x, *point)[0])), np.nan)
                    (inside,) = psi(-b / a + np.copysign(max(1e-4, 1e-8 * abs(b / a)), a), *point)
                    a = (1.0 if inside >= edge else -1.0) * s
                a, edge = (a, edge * s) if psi is not None else (a * s, edge * s)
                low, high = (max(low, edge), high) if a > 0 else (low, min(high, edge))
            out.append((low, high))
        return out

    def _check_monotone(self, lines: Any, psi: Any, point: list[float]) -> None:
        """Raise if the field is not a monotone function, onto the whole line, of an implicit unknown."""
        inside = np.ones(GRID.size, dtype=bool)
        for slope, offset in lines:
            inside &= slope * GRID + offset >= 0
        grid = GRID[inside]
        if not grid.size:
            return
        with np.errstate(all="ignore"):
            field_values = np.broadcast_to(np.asarray(psi(grid, *point)), grid.shape)
        undefined = np.isnan(field_values) & (np.abs(grid) < OVERFLOW)
        finite = field_values[np.isfinite(field_values)]
        steps, size = np.diff(finite), 1e-9 * (1 + np.abs(finite[:-1]))
        if undefined.any() or not (np.all(steps >= -size) or np.all(steps <= size)):
            raise IllPosed(
                f"{self.text} is not one-to-one: the field does not grow steadily with the state that it fixes.",
                "smooth laws that have one solution for every value of the field",
                "check the signs, and declare those of parameters: Symbol('K', positive=True); where a logarithm or "
                "1/R ends is a bound of the problem: h >= 0 beside -log(h), or the condition R[i] >= 0 beside K/R[i]",
            )

    def _tile(
        self, intervals: list[tuple[float, float]], symbols: list[Any], s: float, point: list[float]
    ) -> tuple[tuple[tuple[int, ...], list[float]], bool]:
        """Check that the intervals tile the line.

        Returns the order of the branches and the boundaries, and whether branches with the same states overlap.
        """
        alive = sorted((low, high, k) for k, (low, high) in enumerate(intervals) if is_below(low, high, 1e-9))
        order: list[int] = []
        edges: list[float] = []
        reach, meets = -np.inf, False
        if self.overlapping:
            # the longest of those that begin together first, up to rounding
            alive.sort(key=lambda row: (float(f"{float(row[0]):.7g}"), -float(f"{float(row[1]):.7g}"), row[2]))
        for low, high, k in alive:
            if order and is_below(low, reach):
                middle = (low + min(high, reach)) / 2
                if self._agree(k, order[-1], [self.inner, *symbols], [s * clipped(middle), *point]):
                    reach = max(reach, high)
                    self.overlapping = meets = True
                    continue
                raise IllPosed(f"{self.text}: two branches hold for the same field.", "laws with one solution", _JUMPS)
            if is_below(reach, low):
                break
            if order:
                edges.append(low)
            order.append(k)
            reach = high
        if reach < np.inf:
            shared = [s for s in symbols if isinstance(s, Global) and not s.is_nonnegative]
            bounded = "".join(f'if {s} is never negative: Global("{s}", positive=True); ' for s in shared)
            bounded += "".join(f"if parameters are ordered, {c}: declare that in subject_to; " for c in self._orders())
            raise IllPosed(
                f"{self.text}: no branch holds for some values of the field.",
                "laws that fix the states for every value of the field",
                f"{bounded}check the signs, and that the penalties grow in every direction; {_JUMPS}",
            )
        return (tuple(order), edges), meets

    def _agree(self, a: int, b: int, symbols: list[Any], point: list[float]) -> bool:
        """Whether two explicit branches have the same states at a point: where kinks meet, multipliers may differ."""
        if self.branches[a].implicit or self.branches[b].implicit:
            return False
        states = ([e.xreplace(self.branches[k].values) for e in self.matter] for k in (a, b))
        here, there = (compiled(symbols, each)(*point) for each in states)
        return np.allclose(np.array(here, dtype=float), np.array(there, dtype=float), rtol=1e-7, atol=1e-9)

    def _boundary(
        self, a: int, b: int, k: int, layouts: Any, points: Any, compile_: Any, first: tuple[float, Any]
    ) -> Expr:
        """The symbolic boundary between two neighbouring branches."""
        zero = dict.fromkeys(self.sources, S.Zero)
        candidates: list[tuple[Expr, Expr]] = []
        reflected, at_first = first
        there = float(layouts[0][1][k])
        for branch, lines, numbers in ((self.branches[n], self.lines[n], at_first[n]) for n in (a, b)):
            for (slope, offset), (rate, start) in zip(lines, numbers, strict=True):
                if slope == 0:
                    continue
                if not branch.implicit and rate and not is_near(float(-start / rate) * float(reflected), there):
                    continue
                edge = cancel(-offset / slope)
                if branch.implicit:
                    edge = branch.implicit[1].xreplace({branch.implicit[0]: edge})
                candidates.append((edge, edge.xreplace(zero)))
        for edge, bare in sorted(candidates, key=lambda c: (c[0].count_ops(), str(c[0]))):
            call, s = compile_(bare), compile_(self.reference)
            with np.errstate(over="ignore"):
                match = all(
                    is_near(float(call(*p)) * float(s(*p)), float(edges[k]))
                    for p, (_, edges) in zip(points, layouts, strict=True)
                )
            if match:
                return cancel(self.reference * edge) if self.reference != 1 else edge
        raise UnsupportedLaw(
            f"{self.text}: the boundary between two branches is not one expression for all parameters.",
            "parameters with declared signs",
        )
