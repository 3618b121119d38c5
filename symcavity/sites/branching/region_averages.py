"""The average over the fields of a site, region by region of its inner field, or branch by branch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from sympy import Abs, Dummy, Expr, Ge, Gt, Max, Min, Piecewise, S, Symbol, cancel, oo
from sympy.core.relational import Relational

from symcavity.algebra.gaussian import GaussianAverage, average_branches, gaussian_average
from symcavity.algebra.implicit import ImplicitAverage, implicit_average
from symcavity.algebra.lowest import at_minimum_in
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.sites.branching.kinks import KINKS, decided
from symcavity.sites.branching.polyhedra import over_cells
from symcavity.sites.branching.simplified import cleared, odd_signs, settled, without_order


class RegionAverage:
    """An expression in the quantities and fields of a site, written in standard Gaussians.

    Parameters
    ----------
    ensemble : SiteEnsemble
    body : Expr

    Attributes
    ----------
    zs : list of Symbol
        Independent standard Gaussians; the inner field is ``mean + scale*zs[-1]``.
    outer : dict
        The other fields in them.
    inner : dict
        The inner field of the law in them.
    marks, quantities : dict
        The symbols that stand for the responses and for the states in ``expr``.
    """

    def __init__(self, ensemble: Any, body: Expr) -> None:
        self.ensemble, self.solution = ensemble, ensemble.solution
        self.outer, self.zs, self.mean, self.scale = ensemble.standardised(body)
        self.marks: dict[Any, Any] = {r: Dummy("R", real=True) for r in body.atoms(SiteResponse)}
        self.quantities = {q: Dummy(q.family.name, real=True) for q in self.solution.unknowns if body.has(q)}
        self.expr = body.xreplace(self.marks).xreplace(self.quantities)
        self.no_sources = dict.fromkeys(self.solution.sources, S.Zero)
        self.reflection = self.solution.reflection.xreplace(self.no_sources)
        self.inner = {self.solution.inner: self.mean + self.reflection * self.scale * self.zs[-1]}

    def value(self) -> Expr:
        """The average over all fields."""
        solution, zs = self.solution, self.zs
        if not solution.regions:
            cells = self._cells()
            if len(zs) > 1 and not solution.overlapping:
                averaged = over_cells(cells, zs)
                if averaged is not None:
                    return averaged
            out = without_order(cells, zs[-1])
        else:
            out = self._implicit() if solution.is_implicit else self._explicit()
        for outer in reversed(zs[:-1]):
            out = gaussian_average(odd_signs(out, outer), outer)
        return out

    def in_gaussians(self, expr: Any) -> Any:
        """An expression in the fields, by the standard Gaussians."""
        return expr.xreplace(self.inner).xreplace(self.outer)

    def _states(self, values: Mapping[Any, Expr], implicit: Any = None) -> dict[Any, Any]:
        """What the symbols for states and responses are in one region or on one branch."""
        row = {m: values[q].xreplace(self.no_sources) for q, m in self.quantities.items()}
        answer = self.ensemble.response
        return row | {m: answer(values, implicit, r).xreplace(self.no_sources) for r, m in self.marks.items()}

    def _cells(self) -> list[tuple[Expr, list[Expr]]]:
        """The expression on each branch, and the conditions of the branch."""
        out = []
        for branch in self.solution.branches:
            parts = [self.expr.xreplace(self._states(branch.values))]
            parts += [c.xreplace(self.no_sources) for c in branch.conditions]
            body, *conditions = map(self.in_gaussians, parts)
            out.append((settled(body), conditions))
        return out

    @cached_property
    def _breaks(self) -> list[Expr]:
        """Where one region of the inner field ends and the next begins."""
        highs = [r.high.xreplace(self.no_sources) for r in self.solution.regions[:-1] if r.high is not None]
        return [cancel((high - self.reflection * self.mean) / self.scale).xreplace(self.outer) for high in highs]

    def _explicit(self) -> Expr:
        """The average over the inner field, by formulas in each region; events are decided there."""
        values = []
        inner = {s for g in self.expr.atoms(GaussianAverage) for s in g.bound_symbols}  # of what is integrated as it is
        told = [e for e in self.expr.atoms(Piecewise) if e.atoms(Relational) and e.has(*self.quantities.values())]
        told = [e for e in told if not e.has(*inner)] if inner else told
        events = {e: Dummy("event") for e in told}
        positive = [a.lhs - a.rhs for a in self.solution.assumed if isinstance(a, Gt | Ge)]
        positive = [e.xreplace(self.no_sources).xreplace(self.outer) for e in positive]
        expr, names = self.expr.xreplace(events), {m: q for q, m in self.quantities.items()}
        bends = {e: Dummy("bend", real=True) for e in expr.atoms(Abs, Max, Min) if not (inner and e.has(*inner))}
        for k, region in enumerate(self.solution.regions):
            row = {m: self.in_gaussians(v) for m, v in self._states(region.values).items()}
            lying = {e: self.ensemble.on_piece(k, e.xreplace(names)) for e in events}
            inside = {m: lying[e] for e, m in events.items()}  # an event may stand in a bend
            lying |= {e: self.ensemble.on_piece(k, e.xreplace(inside).xreplace(names)) for e in bends}
            here = {e: self.in_gaussians(there.xreplace(self.quantities).xreplace(row)) for e, there in lying.items()}
            row |= {m: here[e] for e, m in bends.items()}
            values.append(row | {m: cleared(here[e], positive) for e, m in events.items()})
        return average_branches(self._breaks, values, self.in_gaussians(expr.xreplace(bends)), self.zs[-1])

    def _implicit(self) -> Expr:
        """The sum over the regions: implicit ones change variables, explicit ones are Gaussian averages."""
        total = S.Zero
        regions = self.solution.regions
        for k, region in enumerate(regions):
            body = self.expr.xreplace(self._states(region.values, region.implicit))
            if region.implicit is None:
                total += self._explicit_region(k, body)
                continue
            x, psi = region.implicit
            field = psi.xreplace(self.no_sources)
            standard = (self.reflection * (field - self.mean) / self.scale).xreplace(self.outer)
            body = body.xreplace({self.solution.inner: field}).xreplace(self.outer)
            low = self._edge(region, 0).xreplace(self.outer) if k else -oo
            high = self._edge(region, 1).xreplace(self.outer) if k < len(regions) - 1 else oo
            if (low, high) == (-oo, oo):  # what is the same everywhere is no average: nothing cancels inside of one
                fixed, body = body.as_independent(x, as_Add=True)
                total += fixed
            made = ImplicitAverage
            if self.solution.well is not None:
                tilted = self.solution.well.xreplace(self.no_sources) - self.mean * x
                standing = (self.reflection * tilted / self.scale).xreplace(self.outer)
                made = at_minimum_in(standing, self.ensemble.at_jumps, followed=self.solution.followed)
            total += implicit_average(body, x, standard, low, high, made)
        return total

    def _explicit_region(self, k: int, body: Expr) -> Expr:
        """The average over one region in which the states have formulas, with the kinks that its ends decide."""
        regions = self.solution.regions
        region, t = regions[k], self.reflection * self.solution.inner
        ends = [] if region.low is None else [t - region.low]
        ends += [] if region.high is None else [region.high - t]
        ends = [e.xreplace(self.no_sources) for e in ends]
        kinks = {k: decided(k, ends) for k in body.atoms(*KINKS)}
        inside = self.in_gaussians(body.xreplace({k: v for k, v in kinks.items() if v is not None}))
        mark = Dummy("piece", real=True)
        pieces: list[dict[Symbol, Expr]] = [{mark: inside if n == k else S.Zero} for n in range(len(regions))]
        return average_branches(self._breaks, pieces, mark, self.zs[-1])

    def _edge(self, region: Any, which: int) -> Expr:
        """The end of an implicit region in its own unknown."""
        found: Expr | None = self.solution.edge(region, which)
        if found is None:
            raise UnsupportedLaw(
                f"The end {(region.low, region.high)[which]} of an implicit branch of the {self.ensemble.kind} law is "
                "not an end of its unknown.",
                "branches that end where a pair or a kink switches",
            )
        return found.xreplace(self.no_sources)
