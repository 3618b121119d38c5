"""Solve the law of a single site for every value of its field, and average what it gives.

The branches of the law tile the line of the field.  Which branches occur, and in which order, is found
at seeded values of the parameters that respect their assumptions; the boundaries are then symbolic, and
an order that the assumptions do not prove becomes a condition that is tested at evaluation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import (
    Abs,
    And,
    Dummy,
    Expr,
    Max,
    Min,
    Mul,
    Piecewise,
    S,
    Symbol,
    cancel,
    factor_terms,
    fraction,
    lambdify,
    sign,
    together,
)
from sympy.core.relational import Relational

from symcavity.algebra.signs import sign_of
from symcavity.algebra.tails import with_scaled_tails
from symcavity.errors import UnsupportedLaw
from symcavity.model.convexity import sample_parameter, sample_quenched
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branches import Branch, SitePuzzle

DRAWS = 24
TRIALS = 2000
FAR = 1e12
OVERFLOW = 300.0  # beyond, exponentials overflow, and an undefined value says nothing
_INSIDE = 1e-6
_GRID = np.concatenate([-np.geomspace(1e4, 1e-4, 200), np.geomspace(1e-4, 1e4, 200)])


class IllPosed(UnsupportedLaw):
    """The branches of a law leave a gap or overlap: it does not fix the states for every field."""


@dataclass(frozen=True)
class Region:
    """An interval of the (reflected) field, and the states on it.

    Attributes
    ----------
    low, high : Expr or None
        Its ends in the reflected field ``t = reflection*field``; None at infinity.
    values : dict
        The states as functions of the field (of ``implicit[0]`` on an implicit branch).
    implicit : (Symbol, Expr) or None
        The implicitly fixed unknown x, and the field as a function psi(x).
    label : tuple of Expr
        What vanishes on this branch.
    """

    low: Expr | None
    high: Expr | None
    values: dict[SiteQuantity, Expr]
    implicit: tuple[Symbol, Expr] | None = None
    label: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class SiteSolution:
    """The states of a single site for every value of its inner field.

    Attributes
    ----------
    inner : Symbol
        The field over which the regions are laid out.
    reflection : Expr
        A factor of modulus one: the regions are sorted in ``reflection*inner``.
    regions : tuple of Region
        Sorted; empty if no single order of the branches holds for all parameters.
    branches : tuple of Branch
        All branches, for evaluation without an order.
    assumed : tuple of Relational
        Inequalities between the boundaries that the assumptions leave open.
    overlapping : bool
        Whether several branches, with the same states, hold for the same fields.
    """

    inner: Symbol
    unknowns: tuple[SiteQuantity, ...]
    regions: tuple[Region, ...]
    branches: tuple[Branch, ...]
    reflection: Expr = S.One
    assumed: tuple[Relational, ...] = ()
    sources: tuple[Symbol, ...] = ()
    notes: tuple[str, ...] = field(default=())
    overlapping: bool = False

    def xreplace(self, rule: dict[Any, Any]) -> SiteSolution:
        """Replace symbols throughout, for instance the self-coupling by its mean."""

        def on(expr: Any) -> Any:
            return None if expr is None else expr.xreplace(rule)

        regions = tuple(
            Region(
                on(r.low),
                on(r.high),
                {q: on(v) for q, v in r.values.items()},
                (r.implicit[0], on(r.implicit[1])) if r.implicit else None,
                tuple(on(q) for q in r.label),
            )
            for r in self.regions
        )
        branches = tuple(
            Branch(
                {q: on(v) for q, v in b.values.items()},
                tuple(on(c) for c in b.conditions),
                tuple(on(q) for q in b.label),
                (b.implicit[0], on(b.implicit[1])) if b.implicit else None,
            )
            for b in self.branches
        )
        return SiteSolution(
            self.inner,
            self.unknowns,
            regions,
            branches,
            on(self.reflection),
            tuple(a.xreplace(rule) for a in self.assumed),
            self.sources,
            self.notes,
            self.overlapping,
        )

    def without_sources(self) -> SiteSolution:
        """The solution at zero sources."""
        return self.xreplace(dict.fromkeys(self.sources, S.Zero))

    @property
    def is_implicit(self) -> bool:
        """Whether some branch is fixed implicitly."""
        return any(b.implicit for b in self.branches)

    def expression(self, state: SiteQuantity) -> Expr:
        """One expression for a state: by ``Max`` where two branches meet at zero, else by cases."""
        if not self.regions:
            cases = [(b.values[state], And(*(_bare(c) >= 0 for c in b.conditions))) for b in self.branches]
            return Piecewise(*cases, (S.NaN, True), evaluate=False)  # branches of one value stay apart
        merged: list[tuple[Region, Expr]] = []
        for region in self.regions:
            value = region.values[state]
            if merged and merged[-1][1] == value:
                merged[-1] = (Region(merged[-1][0].low, region.high, region.values, region.implicit), value)
            else:
                merged.append((region, value))
        if len(merged) == 1:
            return merged[0][1]
        t = self.reflection * self.inner
        cases = [(value, t < region.high) for region, value in merged[:-1]]
        by_cases = Piecewise(*cases, (merged[-1][1], True))
        short = None if self.is_implicit else _clipped([v for _, v in merged], self.inner)
        agrees = short is not None and (self.reflection == 1 or _agree(short, by_cases))
        return short if agrees else by_cases


def _bare(condition: Expr) -> Expr:
    """A condition that something is not negative, without factors that are positive."""
    top, bottom = fraction(together(condition))
    below = _sign(bottom)
    if not below:
        return condition
    return below * Mul(*(f for f in Mul.make_args(factor_terms(top)) if _sign(f) != 1))


def _agree(short: Expr, by_cases: Expr) -> bool:
    """Whether a short form holds at seeded values: parameters of either sign may reflect the field."""
    symbols = _symbols_in([short, by_cases], set())
    marks = {s: Dummy(f"s{k}") for k, s in enumerate(symbols)}
    call = lambdify(list(marks.values()), (short - by_cases).xreplace(marks), "math")
    rng = random.Random(17)  # noqa: S311 - seeded sampling, not cryptography
    return all(abs(call(*(sample_value(s, rng) for s in symbols))) < _INSIDE for _ in range(DRAWS))


def _clipped(values: Sequence[Expr], inner: Symbol) -> Expr | None:
    """Write a continuous monotone function as [.]_+, or as a clip between constants."""
    if len(values) == 2 and S.Zero in values:
        active = values[0] if values[1] == 0 else values[1]
        if active.diff(inner) == 0:
            return None
        top, bottom = fraction(factor_terms(active))
        below = Mul(*(f for f in Mul.make_args(bottom) if _sign(f)))
        top, grows = top / (bottom / below), _sign(below) or 1
        outer, core = (grows * top).expand().as_content_primitive()
        above = Mul(*(f for f in Mul.make_args(factor_terms(core)) if _sign(f) == 1))
        return outer * above * Max(0, cancel(core / above)) / (grows * below)
    if len(values) == 3 and values[0].diff(inner) == 0 and values[2].diff(inner) == 0:
        ends, middle = (values[0], values[2]), values[1]
        if middle.diff(inner) == 0:
            return None
        order = sign_of(ends[1] - ends[0])
        if order:
            low, high = ends if order == 1 else ends[::-1]
            return Max(low, Min(high, middle))
    return None


def _sign(factor: Expr) -> int | None:
    """The sign of a factor; an even power of a real quantity counts as positive."""
    base, power = factor.as_base_exp()
    return 1 if base.is_real and power.is_even else sign_of(factor)


def solve_site(
    equations: Sequence[Expr],
    pairs: Sequence[tuple[Expr, Expr]],
    unknowns: Sequence[SiteQuantity],
    inner: Symbol,
    sources: Sequence[Symbol],
    text: str,
) -> SiteSolution:
    """Solve a single-site law for every value of its field.

    Parameters
    ----------
    equations : sequence of Expr
        Expressions that vanish, in the unknowns, the fields, the sources and parameters.
    pairs : sequence of (Expr, Expr)
        Complementary pairs.
    unknowns : sequence of SiteQuantity
        What to solve for.
    inner : Symbol
        The field over which the branches are laid out.
    sources : sequence of Symbol
        The infinitesimal sources.
    text : str
        The law in words, for messages.

    Raises
    ------
    IllPosed
        If the branches leave a gap or overlap.
    UnsupportedLaw
        If a branch cannot be solved, not even implicitly.
    """
    marks = {q: Dummy(q.family.name, real=True) for q in unknowns}
    back = {v: k for k, v in marks.items()}
    puzzle = SitePuzzle(
        [e.xreplace(marks) for e in equations],
        [(p.xreplace(marks), q.xreplace(marks)) for p, q in pairs],
        list(marks.values()),
        inner,
        text,
    )
    branches = puzzle.branches()
    _refuse_loose(puzzle, sources, back)
    if not branches:
        raise IllPosed(f"{text} has no solution on any branch.", "laws that fix every variable of a site")
    layout = _Layout(branches, inner, sources, text)
    found = layout.arrange()
    solution = SiteSolution(
        inner, tuple(unknowns), *found, sources=tuple(sources), overlapping=layout.overlapping
    )
    # implicit unknowns keep their plain symbol: it is a bound variable of the branch
    return _named(solution, back)


def _refuse_loose(puzzle: SitePuzzle, sources: Sequence[Symbol], back: dict[Any, Any]) -> None:
    """Raise IllPosed if, for an interval of fields, the law leaves a variable free."""
    for free, conditions in puzzle.loose:
        variables = [puzzle.inner, *free]
        symbols = _symbols_in(conditions, set(variables))
        marks = {s: Dummy(f"s{k}") for k, s in enumerate([*variables, *symbols])}
        calls = [lambdify(list(marks.values()), c.xreplace(marks), ["scipy", "numpy"]) for c in conditions]
        rng = random.Random(3)  # noqa: S311 - seeded sampling, not cryptography
        generator = np.random.default_rng(3)
        for _ in range(DRAWS):
            point = [0.0 if s in sources else sample_value(s, rng) for s in symbols]
            where = 10 * generator.standard_t(2, size=(len(variables), TRIALS))
            holds = np.ones(TRIALS, dtype=bool)
            for call in calls:
                holds &= np.broadcast_to(call(*where, *point), TRIALS) > _INSIDE
            if holds.any():
                names = " and ".join(str(back.get(u, u)) for u in free)
                raise IllPosed(
                    f"{puzzle.text} leaves {names} undetermined for some values of the field.",
                    "laws that fix every variable of a site",
                    "a penalty on each variable that the constraints leave free, in the direction in which it is "
                    "free; no constraint twice",
                )


def _symbols_in(exprs: Sequence[Expr], bound: set[Symbol]) -> list[Any]:
    """The parameters in expressions, in a fixed order."""
    found = set().union(*(e.atoms(Symbol, SiteQuantity) for e in exprs)) - bound if exprs else set()
    found = {s for s in found if isinstance(s, SiteQuantity) or not _is_index(s, exprs)}
    return sorted(found, key=lambda s: (str(type(s)), str(s)))


def _named(solution: SiteSolution, back: dict[Any, Any]) -> SiteSolution:
    def rename(values: dict[Any, Expr]) -> dict[Any, Expr]:
        return {back[q]: v for q, v in values.items()}

    regions = tuple(
        Region(r.low, r.high, rename(r.values), r.implicit, tuple(q.xreplace(back) for q in r.label))
        for r in solution.regions
    )
    branches = tuple(
        Branch(rename(b.values), b.conditions, tuple(q.xreplace(back) for q in b.label), b.implicit)
        for b in solution.branches
    )
    return replace(solution, regions=regions, branches=branches)


def check_denominators(solution: SiteSolution, couplings: Sequence[Symbol], text: str) -> None:
    """Raise IllPosed if, for the chosen signs of the self-couplings, a response passes through infinity.

    The sign of each denominator at seeded values must be that of weak self-coupling.
    """
    denominators = {fraction(v)[1] for b in solution.branches if not b.implicit for v in b.values.values()}
    denominators = {d for d in denominators if d.has(*couplings)}
    for bottom in sorted(denominators, key=str):
        symbols = sorted(bottom.atoms(Symbol, SiteQuantity), key=lambda s: (str(type(s)), str(s)))
        symbols = [s for s in symbols if isinstance(s, SiteQuantity) or not _is_index(s, [bottom])]
        plain = [Dummy(f"s{k}") for k in range(len(symbols))]
        call = lambdify(plain, bottom.xreplace(dict(zip(symbols, plain, strict=True))), "math")
        rng = random.Random(11)  # noqa: S311 - seeded sampling, not cryptography
        for _ in range(DRAWS):
            point = [sample_value(s, rng) for s in symbols]
            weak = [1e-9 * v if s in couplings else v for s, v in zip(symbols, point, strict=True)]
            strong = [9.0 * v if s in couplings else v for s, v in zip(symbols, point, strict=True)]
            signs = {math.copysign(1.0, call(*p)) for p in (weak, point, strong)}
            if len(signs) > 1:
                raise IllPosed(f"{text}: its response passes through infinity.", "laws with a response of one sign")


def sample_value(symbol: Any, rng: random.Random) -> float:
    """Draw a value of a symbol or of a quenched parameter."""
    if isinstance(symbol, SiteQuantity):
        return sample_quenched(symbol.family, rng)
    if symbol.is_positive is None and symbol.is_negative is None:
        return rng.gauss(0, 1.5)
    return sample_parameter(symbol, rng)


class _Layout:
    """Finds the order of the branches along the field."""

    def __init__(self, branches: list[Branch], inner: Symbol, sources: Sequence[Symbol], text: str) -> None:
        self.branches, self.inner, self.sources, self.text = branches, inner, tuple(sources), text
        self.lines: list[list[tuple[Expr, Expr]]] = [self._lines(b) for b in branches]
        self.reference = self._reference()
        self.overlapping = False

    def _lines(self, branch: Branch) -> list[tuple[Expr, Expr]]:
        """Each condition as (slope, offset) in the branch's own variable: the field, or the implicit unknown."""
        variable = branch.implicit[0] if branch.implicit else self.inner
        out = []
        for condition in branch.conditions:
            expanded = condition.expand()
            slope = expanded.diff(variable)
            if slope.has(variable):
                raise UnsupportedLaw(
                    f"{self.text}: the condition {condition} >= 0 of a branch is not linear.",
                    "pairs and kinks with linear arguments",
                )
            offset = expanded.xreplace({variable: S.Zero})
            out.append((slope, offset))
        return out

    def _reference(self) -> Expr:
        """The reflection: the sign of a slope that the assumptions leave open."""
        for branch, lines in zip(self.branches, self.lines, strict=True):
            if branch.implicit:
                continue
            for slope, _ in lines:
                if slope != 0 and sign_of(slope) is None:
                    top, bottom = fraction(cancel(slope))
                    open_ = [f for f in Mul.make_args(top) + Mul.make_args(bottom) if not sign_of(f)]
                    factor = Mul(*open_)
                    return factor if isinstance(factor, sign) else factor / Abs(factor)
        return S.One

    def _symbols(self) -> list[Any]:
        exprs = [e for lines in self.lines for line in lines for e in line]
        exprs += [v for b in self.branches for v in b.values.values()] + [self.reference]
        exprs += [b.implicit[1] for b in self.branches if b.implicit]
        return _symbols_in(exprs, {self.inner, *(b.implicit[0] for b in self.branches if b.implicit)})

    def arrange(self) -> tuple[tuple[Region, ...], tuple[Branch, ...], Expr, tuple[Relational, ...]]:
        """Return (regions, branches, reflection, inequalities left open)."""
        symbols = self._symbols()
        plain = [Dummy(f"s{k}") for k in range(len(symbols))]
        rule = dict(zip(symbols, plain, strict=True))
        x = Dummy("x")

        def compiled(expr: Expr, *extra: Symbol) -> Any:
            return lambdify([*extra, *plain], with_scaled_tails(expr.xreplace(rule)), ["scipy", "numpy"])

        lines = [[(compiled(a), compiled(b)) for a, b in ls] for ls in self.lines]
        values = [
            [compiled(v.xreplace({b.implicit[0] if b.implicit else self.inner: x}), x) for v in b.values.values()]
            for b in self.branches
        ]
        psis = [compiled(b.implicit[1].xreplace({b.implicit[0]: x}), x) if b.implicit else None for b in self.branches]
        reflection = compiled(self.reference)
        rng = random.Random(7)  # noqa: S311 - seeded sampling, not cryptography
        layouts: list[tuple[tuple[int, ...], list[float]]] = []
        points = []
        for _ in range(DRAWS):
            point = [self._sample(s, rng) for s in symbols]
            intervals = self._intervals(lines, psis, float(reflection(*point)), point)
            layouts.append(self._tile(intervals, values, psis, float(reflection(*point)), point))
            points.append(point)
        orders = {order for order, _ in layouts}
        if len(orders) > 1:
            if any(b.implicit for b in self.branches):
                raise UnsupportedLaw(
                    f"{self.text}: the order of its branches depends on the parameters, and some are implicit.",
                    "implicit laws whose branches come in one order",
                    "declare the signs of the parameters: Symbol('...', positive=True)",
                )
            return (), tuple(self.branches), S.One, ()
        (order,) = orders
        breaks = [self._boundary(order[k], order[k + 1], k, layouts, points, compiled) for k in range(len(order) - 1)]
        ends: list[Expr | None] = [None, *breaks, None]
        regions = tuple(
            Region(ends[k], ends[k + 1], self.branches[b].values, self.branches[b].implicit, self.branches[b].label)
            for k, b in enumerate(order)
        )
        zero = dict.fromkeys(self.sources, S.Zero)
        gaps = [(b - a).xreplace(zero) for a, b in pairwise(breaks)]
        assumed = tuple(gap > 0 for gap in gaps if sign_of(gap) != 1)
        return regions, tuple(self.branches), self.reference, assumed

    def _sample(self, symbol: Any, rng: random.Random) -> float:
        if symbol in self.sources:
            return 0.0
        return sample_value(symbol, rng)

    def _intervals(self, lines: Any, psis: Any, s: float, point: list[float]) -> list[tuple[float, float]]:
        """The interval of the reflected field on which each branch holds."""
        out = []
        for ls, psi in zip(lines, psis, strict=True):
            low, high = -FAR, FAR
            if psi is not None:
                self._check_monotone(ls, psi, point)
            for slope, offset in ls:
                a, b = float(slope(*point)), float(offset(*point))
                if abs(a) < 1e-12:
                    if b < -1e-9:
                        low, high = 1.0, 0.0
                    continue
                edge = -b / a
                if psi is not None:
                    edge = float(psi(edge, *point))
                    if float(psi(-b / a + 1e-4, *point)) < edge:
                        a = -a
                    a *= s
                a, edge = (a, edge * s) if psi is not None else (a * s, edge * s)
                low, high = (max(low, edge), high) if a > 0 else (low, min(high, edge))
            out.append((low, high))
        return out

    def _check_monotone(self, lines: Any, psi: Any, point: list[float]) -> None:
        """Raise if the field is not a monotone function, onto the whole line, of an implicit unknown."""
        inside = np.ones(_GRID.size, dtype=bool)
        for slope, offset in lines:
            inside &= float(slope(*point)) * _GRID + float(offset(*point)) >= 0
        grid = _GRID[inside]
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
                "check the signs; a function that is defined on a part of the line only, such as a logarithm, "
                "is not supported as a penalty",
            )

    def _tile(
        self, intervals: list[tuple[float, float]], values: Any, psis: Any, s: float, point: list[float]
    ) -> tuple[tuple[int, ...], list[float]]:
        """Check that the intervals tile the line; return the order of the branches and the boundaries."""
        alive = sorted((low, high, k) for k, (low, high) in enumerate(intervals) if high - low > 1e-9 * (1 + abs(low)))
        order: list[int] = []
        edges: list[float] = []
        reach = -FAR
        for low, high, k in alive:
            if order and low < reach - 1e-7 * (1 + abs(reach)):
                middle = (low + min(high, reach)) / 2
                explicit = psis[k] is None and psis[order[-1]] is None
                if explicit and _same(values, k, order[-1], s * _inside(middle), point):
                    reach = max(reach, high)
                    self.overlapping = True
                    continue
                raise IllPosed(f"{self.text}: two branches hold for the same field.", "laws with one solution")
            if abs(low - reach) > 1e-7 * (1 + abs(reach)):
                break
            if order:
                edges.append(low)
            order.append(k)
            reach = high
        if reach < FAR:
            raise IllPosed(
                f"{self.text}: no branch holds for some values of the field.",
                "laws that fix the states for every value of the field",
                "check the signs in the constraints, and that the penalties grow in every direction",
            )
        return tuple(order), edges

    def _boundary(self, a: int, b: int, k: int, layouts: Any, points: Any, compiled: Any) -> Expr:
        """The symbolic boundary between two neighbouring branches."""
        zero = dict.fromkeys(self.sources, S.Zero)
        candidates: list[tuple[Expr, Expr]] = []
        for branch, lines in ((self.branches[a], self.lines[a]), (self.branches[b], self.lines[b])):
            for slope, offset in lines:
                if slope == 0:
                    continue
                edge = cancel(-offset / slope)
                if branch.implicit:
                    edge = branch.implicit[1].xreplace({branch.implicit[0]: edge})
                candidates.append((edge, edge.xreplace(zero)))
        for edge, bare in sorted(candidates, key=lambda c: (c[0].count_ops(), str(c[0]))):
            call, s = compiled(bare), compiled(self.reference)
            match = all(
                np.isclose(float(call(*p)) * float(s(*p)), edges[k], rtol=1e-6, atol=1e-9)
                for p, (_, edges) in zip(points, layouts, strict=True)
            )
            if match:
                return cancel(self.reference * edge) if self.reference != 1 else edge
        raise UnsupportedLaw(
            f"{self.text}: the boundary between two branches is not one expression for all parameters.",
            "parameters with declared signs",
        )


def _inside(value: float) -> float:
    return max(min(value, 1e3), -1e3)


def _same(values: Any, a: int, b: int, where: float, point: list[float]) -> bool:
    return all(
        np.isclose(float(f(where, *point)), float(g(where, *point)), rtol=1e-7, atol=1e-9)
        for f, g in zip(values[a], values[b], strict=True)
    )


def _is_index(symbol: Symbol, exprs: Sequence[Expr]) -> bool:
    """Whether a symbol occurs only as an index of site quantities."""
    mask = {q: Dummy() for e in exprs for q in e.atoms(SiteQuantity)}
    return not any(e.xreplace(mask).has(symbol) for e in exprs)
