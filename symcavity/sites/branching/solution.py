"""The states of a site on the branches of its law, as functions of the field: data, and how it reads best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from sympy import (
    And,
    Basic,
    Dummy,
    Expr,
    Float,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    S,
    StrictGreaterThan,
    StrictLessThan,
    Symbol,
    cancel,
    factor_terms,
    fraction,
    zoo,
)
from sympy.core.relational import Relational

from symcavity.algebra.factors import together
from symcavity.algebra.signs import sign_of
from symcavity.model.convexity import seeded
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.draws import DRAWS, sample_value, symbols_in
from symcavity.sites.protocol import without_curvature

_INSIDE = 1e-6
MOST_DRAWS = 200  # to find so many that all is real there: a root of 1 - rho is not at all rho


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

    def where(self, rule: dict[Any, Expr]) -> Region:
        """The region with other expressions in it."""
        low, high = (end if end is None else end.xreplace(rule) for end in (self.low, self.high))
        branch = Branch(self.values, (), self.label, self.implicit).where(rule)
        return Region(low, high, branch.values, branch.implicit, branch.label)


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
    faces : tuple of (tuple, dict)
        Where multipliers of constraints that meet are not unique: what is free there, and all values.
    parts : tuple of SiteSolution
        Of a law that falls into several, each with states and a field of its own.
    well : Expr or None
        Of an implicit region: what has the field as its slope, where the lowest of several minima is meant.
    followed : bool
        Whether the lowest minimum of the well is where a state begins, that goes downhill from there.
    """

    inner: Symbol
    unknowns: tuple[SiteQuantity, ...]
    regions: tuple[Region, ...]
    branches: tuple[Branch, ...]
    reflection: Expr = S.One
    assumed: tuple[Relational, ...] = ()
    sources: tuple[Symbol, ...] = ()
    overlapping: bool = False
    faces: tuple[tuple[tuple[Symbol, ...], dict[Any, Expr]], ...] = ()
    parts: tuple[SiteSolution, ...] = ()
    well: Expr | None = None
    followed: bool = False

    def xreplace(self, rule: dict[Any, Any]) -> SiteSolution:
        """Replace symbols throughout, for instance the self-coupling by its mean."""
        return replace(
            self,
            regions=tuple(region.where(rule) for region in self.regions),
            branches=tuple(branch.where(rule) for branch in self.branches),
            reflection=self.reflection.xreplace(rule),
            assumed=tuple(a.xreplace(rule) for a in self.assumed),
            parts=tuple(part.xreplace(rule) for part in self.parts),
            well=self.well and self.well.xreplace(rule),
        )

    def shifted(self, by: Expr) -> SiteSolution:
        """The same states, where the inner field has a mean: as functions of what it is beside that."""
        moved = {self.inner: self.inner + by}

        def end(e: Expr | None) -> Expr | None:
            return None if e is None else e - self.reflection * by

        regions = tuple(replace(r.where(moved), low=end(r.low), high=end(r.high)) for r in self.regions)
        return replace(self, regions=regions, branches=tuple(b.where(moved) for b in self.branches))

    def at(self, means: Mapping[Any, Expr], covariance: Mapping[Any, Expr]) -> SiteSolution:  # noqa: ARG002
        """The solution at the mean self-couplings; its form does not depend on the covariance of the fields.

        Raises
        ------
        UnsupportedLaw
            If the site has no curvature there: fields at which a branch ends are infinite.
        """
        found = self.xreplace(dict(means))
        ends = [end for r in found.regions for end in (r.low, r.high) if end is not None]
        if any(end.has(zoo) for end in ends or [c for b in found.branches for c in b.conditions]):
            raise without_curvature("its states are")
        return found

    def without_sources(self) -> SiteSolution:
        """The solution at zero sources."""
        return self.xreplace(dict.fromkeys(self.sources, S.Zero))

    @property
    def is_implicit(self) -> bool:
        """Whether some branch is fixed implicitly."""
        return any(b.implicit for b in self.branches)

    @cached_property
    def made_of(self) -> list[Basic]:
        """The expressions that it is made of."""
        parts: list[Branch | Region] = [*self.branches, *self.regions]
        exprs: list[Any] = [e for part in parts for e in (*part.values.values(), *(part.implicit or ()))]
        exprs += [e for b in self.branches for e in b.conditions]
        exprs += [end for r in self.regions for end in (r.low, r.high) if end is not None]
        return [e for e in exprs if isinstance(e, Basic)]

    @cached_property
    def free_symbols(self) -> frozenset[Any]:
        """The symbols that it is made of."""
        return frozenset().union(*(e.free_symbols for e in self.made_of))

    def holds(self, quantity: Any) -> bool:
        """Whether a quantity of the site stands in it, such as a label."""
        return any(e.has(quantity) for e in self.made_of)

    @cached_property
    def jumping(self) -> frozenset[SiteQuantity]:
        """The states that have two values where two regions meet, as at the step of a label that the field decides."""
        found: set[SiteQuantity] = set()
        for low, high in pairwise(self.regions):
            if low.implicit is None and high.implicit is None and high.low is not None:
                at = {self.inner: self.reflection * high.low}
                gaps = {q: (high.values[q] - low.values[q]).xreplace(at) for q in self.unknowns}
                found |= {q for q, gap in gaps.items() if gap != 0 and min(_drawn(gap, 18, 3)) > _INSIDE}
        return frozenset(found)

    def edge(self, region: Region, which: int) -> Expr | None:
        """The lower (0) or upper (1) end of an implicit region in its own unknown; None if it has no such end."""
        if region.implicit is None or (end := (region.low, region.high)[which]) is None:
            return None
        x, psi = region.implicit
        alike = [b for b in self.branches if b.implicit == region.implicit and b.label == region.label]
        slopes = [(c, c.diff(x)) for b in alike for c in b.conditions]
        places = {cancel(-c.xreplace({x: S.Zero}) / slope) for c, slope in slopes if slope != 0 and not slope.has(x)}
        found = [place for place in places if (psi.xreplace({x: place}) * self.reflection - end).expand() == 0]
        return found[0] if len(found) == 1 else None

    @property
    def domains(self) -> list[Relational]:
        """Where an implicit law is solved, as far as it is not known to be one-to-one for all of its unknown."""
        regions = [region for region in self.regions if region.implicit is not None]
        if len(regions) != 1:
            return []
        ((x, psi),) = (region.implicit for region in regions if region.implicit)
        low, high = (self.edge(regions[0], which) for which in (0, 1))
        anywhere = psi.xreplace({x: (free := Dummy(x.name, real=True))})
        has_poles = any(p.exp.is_negative and p.base.has(free) and sign_of(p.base) is None for p in anywhere.atoms(Pow))
        if sign_of(anywhere.diff(free)) is not None and not has_poles:
            return []
        ends = [] if low is None else [StrictGreaterThan(x, low, evaluate=False)]
        return ends if high is None else [*ends, StrictLessThan(x, high, evaluate=False)]

    def fixing(self) -> Expr:
        """What the field is as a function of the implicit unknown: if it is not one function, by cases.

        An implicit case is one of the unknown, as the field has the same value elsewhere too; an explicit one, which
        stands before them, is one of the field.
        """
        laws = [region.implicit[1] if region.implicit else self.inner for region in self.regions]
        if len(different := set(laws) - {self.inner}) == 1:
            return different.pop()
        cases: list[tuple[Expr, Any]] = []
        for region, law in sorted(zip(self.regions, laws, strict=True), key=lambda pair: pair[0].implicit is not None):
            low, high, place = region.low, region.high, self.reflection * self.inner
            if region.implicit is not None:
                low, high, place = self.edge(region, 0), self.edge(region, 1), region.implicit[0]
            bounds = [place > low] if low is not None else []
            cases.append((law, And(*bounds, *([place < high] if high is not None else []))))
        return Piecewise(*cases[:-1], (cases[-1][0], True), evaluate=False)

    def expression(self, state: SiteQuantity) -> Expr:
        """One expression for a state: by ``Max`` where two branches meet at zero, else by cases."""
        if self.parts:
            return next(part for part in self.parts if state in part.unknowns).expression(state)
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
        if short is None:
            return by_cases
        # parameters of either sign may reflect the field
        return short if self.reflection == 1 or self._is(short, merged) else by_cases

    def _is(self, short: Expr, merged: Sequence[tuple[Region, Expr]]) -> bool:
        """Whether one expression has the values of all regions, at seeded fields and parameters."""
        t, values = self.reflection * self.inner, [value for _, value in merged]
        ends = [region.high for region, _ in merged[:-1] if region.high is not None]
        symbols, rng = symbols_in([t, short, *ends, *values], set()), seeded(17)
        seen = 0
        for _ in range(MOST_DRAWS):
            point = {s: Float(sample_value(s, rng)) for s in symbols}
            places = [complex(e.xreplace(point)) for e in (t, *ends)]
            if any(p.imag for p in places):  # parameters have no such values there: a root of 1 - rho
                continue
            seen += 1
            place, *bounds = (p.real for p in places)
            here = values[sum(bound <= place for bound in bounds)]  # of regions in their order
            if not abs(complex(short.xreplace(point)) - complex(here.xreplace(point))) < _INSIDE:
                return False
            if seen == DRAWS:
                return True
        return False


def _drawn(expr: Expr, seed: int, draws: int) -> list[float]:
    """The modulus of an expression at seeded values."""
    symbols, rng = symbols_in([expr], set()), seeded(seed)
    points = [{s: Float(sample_value(s, rng)) for s in symbols} for _ in range(draws)]
    return [abs(complex(expr.xreplace(point))) for point in points]


def _bare(condition: Expr) -> Expr:
    """A condition that something is not negative, without factors that are positive."""
    top, bottom = fraction(together(condition))
    below = _sign(bottom)
    if not below:
        return condition
    return below * Mul(*(f for f in Mul.make_args(factor_terms(top)) if _sign(f) != 1))


def _clipped(values: Sequence[Expr], inner: Symbol) -> Expr | None:
    """Write a continuous function of lines as [.]_+, or as a clip between constants: curves may come back."""
    if len(values) == 2 and S.Zero in values:
        active = values[0] if values[1] == 0 else values[1]
        if not _is_line(active, inner):
            return None
        if _sign(active.diff(inner)) == (-1 if values[0] == 0 else 1):  # negative wherever it is not zero
            positive = _clipped([-v for v in values], inner)
            return None if positive is None else -positive
        top, bottom = fraction(factor_terms(active))
        below = Mul(*(f for f in Mul.make_args(bottom) if _sign(f)))
        top, grows = top / (bottom / below), _sign(below) or 1
        outer, core = (grows * top).expand().as_content_primitive()
        above = Mul(*(f for f in Mul.make_args(factor_terms(core)) if _sign(f) == 1))
        return outer * above * Max(0, cancel(core / above)) / (grows * below)
    if len(values) == 3 and values[0].diff(inner) == 0 and values[2].diff(inner) == 0:
        ends, middle = (values[0], values[2]), values[1]
        if not _is_line(middle, inner):
            return None
        order = sign_of(ends[1] - ends[0])
        if order:
            low, high = ends if order == 1 else ends[::-1]
            return Max(low, Min(high, middle))
    return None


def _is_line(value: Expr, inner: Symbol) -> bool:
    """Whether a value is linear in a field, and not constant."""
    slope = cancel(value.diff(inner))
    return bool(slope != 0 and not slope.has(inner))


def _sign(factor: Expr) -> int | None:
    """The sign of a factor; an even power of a real quantity counts as positive."""
    base, power = factor.as_base_exp()
    return 1 if base.is_real and power.is_even else sign_of(factor)
