"""The strategy for sites of problems that may have several minima: the lowest one, which switches where two are equal.

Between the switches the states are those of a branch. At a switch they jump, so that their slope holds a delta
function; the mean response is the slope of an average: ``<dx/dI> = <x*eta>/<eta**2>``, by parts on the Gaussian field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sympy import Add, DiracDelta, Dummy, Expr, GreaterThan, Heaviside, Piecewise, S, Symbol, cancel, oo, sign, sqrt

from symcavity.algebra.phi import gaussian_density
from symcavity.algebra.piecewise import Builder, NotPiecewisePolynomial
from symcavity.algebra.signs import OpenSlope, Signs, sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import LawFunction
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.simplified import cancelled
from symcavity.sites.branching.strategy import sign_relations
from symcavity.sites.by_parts import weights
from symcavity.sites.lowest.envelope import simple
from symcavity.sites.lowest.site import LowestSolution, StateForce, solve_lowest
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site, response_steps
from symcavity.sites.thermal.summed import as_one, is_pulled_by_sum, moving_fields, weight_of


class LowestEnergy:
    """Laws of states of lowest energy, at zero temperature."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site has a weight of infinite beta."""
        weight = problem.law.weight
        return weight is not None and weight.is_cold and not weight.others

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Lay out the lowest minimum, with as few signs of self-couplings as it needs.

        Raises
        ------
        IllPosed
            If the energy has no minimum, or the order of minima is open.
        UnsupportedLaw
            If the energy is not made of squares.
        """
        weight = weight_of(problem)
        known: dict[Any, int] = {}
        data: dict[Any, int] = {}  # what losses answer with, as where their energies are convex
        for heard in moving_fields(problem):
            moving = [k.symbol for k in heard.feedback if k.emission.has(weight.mean)]
            way = 1 if weight.is_field else sign_of(heard.factor)  # turned where the field pushes away
            if weight.is_field or heard.declared.sender == heard.declared.hearer:
                known |= {k: way for k in moving if way}
            else:
                data |= dict.fromkeys(moving, -1)
        try:
            return LawSolution(solve_lowest(problem.signed(known)), known)
        except IllPosed:
            if not data:
                raise
            return LawSolution(solve_lowest(problem.signed(known | data)), known | data)

    def ensemble(self, site: Site) -> LowestEnsemble:
        """The averages of the site over its Gaussian fields."""
        etas = tuple(h.eta for h in site.problem.ordered())
        known = site.kind, site.solution, etas, dict(site.covariance), site.sources()
        return LowestEnsemble(*known, problem=site.problem)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The energy of the new site, its lowest minimum, where that jumps, and the responses of its states."""
        key, solution = site.kind.key, site.solution
        zero, weight = {site.kind.index: S.Zero}, weight_of(site.problem)
        still = dict.fromkeys(solution.sources, S.Zero)
        x, relations = weight.state, sign_relations(site)
        energy, data = energy_step(site, make, solution.force)
        shown = [q for q in solution.unknowns if q in (x, weight.mean, *weight.beside)]
        lowest = make(
            f"{key}.solution",
            "lowest",
            [Equation(q.xreplace(zero), solution.expression(q).xreplace(still).xreplace(zero)) for q in shown],
            data=data
            | {"several": len(solution.regions) > 1, "jumps": bool(solution.jumping), "local": weight.is_local}
            | {"sign_assumptions": relations, "others": [p.xreplace(zero) for p in self._elsewhere(site)]},
            assumptions=(("sign", {"relations": relations}),) if relations else (),
            rests_on=(f"{key}.energy",),
        )
        steps = [energy, lowest]
        if solution.jumping and wanted:
            nodes = sorted({r for e in wanted for r in e.atoms(SiteResponse) if r.state in solution.jumping}, key=str)
            claims = [Equation(r.xreplace(zero), self._slope(site, r).xreplace(zero)) for r in nodes]
            steps.append(make(f"{key}.jump", "jump", claims, data=data, rests_on=(f"{key}.solution",)))
        return [*steps, *response_steps(site, make, wanted, steps[-1].key)]

    @staticmethod
    def _elsewhere(site: Site) -> list[Expr]:
        """The fields at which the other selection of a minimum would switch; none where both are the same."""
        law, weight = site.law, weight_of(site.problem)
        other = replace(site.problem, law=replace(law, weight=replace(weight, is_local=not weight.is_local)))
        try:
            found = solve_lowest(other)
        except UnsupportedLaw:
            return []
        own: Any = site.solution.without_sources()
        turned: Any = found.at(site.means, site.covariance).without_sources()
        pairs = [(own, turned), *((a, b) for (_, a), (_, b) in zip(own.cases, turned.cases, strict=False))]
        if len(own.cases) == len(turned.cases) and all(_is_same_order(a, b) for a, b in pairs):
            return []
        every = (r.high for _, one in pairs for r in one.regions)
        return [*dict.fromkeys(p for p in every if p is not None)]

    @staticmethod
    def _slope(site: Any, response: SiteResponse) -> Expr:
        """The slope of a state: between the jumps, and delta functions that carry them."""
        solution, ensemble = site.solution, site.at_labels
        if solution.cases:
            return solution.by_cases(
                lambda one: LowestEnergy._slope(_Case(one, replace(ensemble, solution=one)), response)
            )
        source, still = ensemble.source(response), dict.fromkeys(solution.sources, S.Zero)
        t, rows = solution.reflection * solution.inner, []
        for region in solution.regions:
            slope = ensemble.response(region.values, None, response).xreplace(still)
            rows.append((slope, True if region.high is None else t < region.high.xreplace(still)))
        total: Expr = Piecewise(*rows)
        for low, high in pairwise(solution.regions):
            at = {solution.inner: solution.reflection * high.low}
            gap = (high.values[response.state] - low.values[response.state]).xreplace(at).xreplace(still)
            moved = -high.low.diff(source).xreplace(still)
            total += simple(gap * moved) * DiracDelta(t - high.low.xreplace(still))
        return total


def _is_same_order(one: LowestSolution, other: LowestSolution) -> bool:
    """Whether two selections of a minimum switch at the same fields."""
    own, places = (list[Any](r.high for r in s.regions[:-1]) for s in (one, other))
    return len(own) == len(places) and all(simple(a - b) == 0 for a, b in zip(own, places, strict=True))


def energy_step(site: Site, make: StepMaker, force: StateForce) -> tuple[Step, dict[str, Any]]:
    """The energy of the new site, with what the others answer; and what the steps after it say of that."""
    kind, solution, weight = site.kind, site.solution, weight_of(site.problem)
    zero, still = {kind.index: S.Zero}, dict.fromkeys(solution.sources, S.Zero)
    x = weight.state
    slope = (force.shift.xreplace(still) + force.slope * solution.inner) if not weight.is_field else S.Zero
    gained = force.curvature * (x - solution.inner if weight.is_field else x) ** 2 / 2 - slope * x
    data = {
        "kind": kind, "state": x.xreplace(zero), "field": solution.inner.xreplace(zero),
        "force": slope.xreplace(zero),
        "strength": (1 / force.curvature if weight.is_field else -force.curvature).xreplace(zero),
        "field_site": weight.is_field, "discrete": not weight.is_field and bool(getattr(x.family, "values", ())),
    }  # fmt: skip
    step = make(
        f"{kind.key}.energy",
        "site_energy",
        [Equation(LawFunction(Symbol("E"), x, 0).xreplace(zero), (weight.energy + gained).xreplace(zero))],
        data=data | {"bounds": [GreaterThan(b.xreplace(zero), 0, evaluate=False) for b in weight.bounds]},
        assumptions=(("local_minimum" if weight.is_local else "lowest", {}),),
        rests_on=(f"{kind.key}.effective_law",),
    )
    return step, data


@dataclass(frozen=True)
class LowestEnsemble(SiteEnsemble):
    """A site at its lowest minimum whose fields are Gaussian."""

    solution: LowestSolution
    problem: SiteProblem | None = None

    def over_fields(self, body: Expr) -> Expr:
        """Average an expression over the fields, at a state that lies on a step on the side of lower energy."""
        if self.problem is not None and is_pulled_by_sum(self.problem, body):
            one, rule = as_one(self, self.problem)
            return replace(one, problem=None).over_fields(body.xreplace(rule))
        if self.solution.cases:
            return self.solution.by_cases(lambda one: replace(self, solution=one).over_fields(body))
        still = {r: S.Zero for r in body.atoms(SiteResponse) if not self._moves(r)}
        body = self._beside(body.xreplace({**self.solution.labels, **still}))
        return super().over_fields(body)

    def on_piece(self, region: int, bend: Expr) -> Expr:
        """What a modulus of the state, or an expression by cases, is between the ends of the candidate of a region."""
        one, x, mark = self.solution.envelope.atoms[region], self.solution.state, Dummy("x", real=True)
        if site_quantities(bend) != [x]:
            return bend
        if one.is_point:
            return bend.xreplace({x: one.low})
        try:
            found = Builder(mark, Signs()).build(bend.xreplace({x: mark}))
        except (NotPiecewisePolynomial, OpenSlope):
            return bend

        def above(high: Expr, low: Expr) -> int | None:
            return 1 if high == oo or low == -oo else sign_of(cancel(high - low))

        sides = [(above(t, one.low), above(one.high, t)) for t in found.breaks]
        if any(None in pair or pair == (1, 1) for pair in sides):
            return bend
        value = found.values[sum(1 for above_low, _ in sides if above_low != 1)]
        return Add(*(c * x**n for n, c in enumerate(value)))

    def _beside(self, body: Expr) -> Expr:
        """An expression whose steps have at a state that lies on them the value of the side of lower energy."""
        state, atoms = self.solution.state, self.solution.envelope.atoms
        rule = {}
        for step in body.atoms(Heaviside, sign):
            slope = step.args[0].diff(state)
            # a sign is zero on itself, which at a bound may be the lowest value
            among = atoms if isinstance(step, Heaviside) else atoms[1:-1]
            for atom in among if slope != 0 and not slope.has(state) else ():
                if atom.side and cancel(step.args[0].xreplace({state: atom.low})) == 0:
                    above = Heaviside(step.args[0], S.One if sign_of(slope) == atom.side else S.Zero)
                    rule[step] = above if isinstance(step, Heaviside) else 2 * above - 1
        return body.xreplace(rule)

    def _by_parts(self, body: Expr, jumping: list[SiteResponse]) -> Expr:
        """Average a response: the slopes between the jumps, and each jump times the density of the field there."""
        if self.outer:
            return super()._by_parts(body, jumping)
        rest, found = weights(body, jumping, self.solution.unknowns)
        total = self.over_fields(rest) if rest != 0 else S.Zero
        slopes = _WithoutJumps(self.kind, self.solution, self.fields, self.covariance, self.sources)
        for response, weight in found:
            total += slopes.over_fields(weight * response)
            total += weight * self.jump(response.state, self.source(response))
        return cancelled(total)

    def jump(self, state: SiteQuantity, source: Symbol) -> Expr:
        """What the delta functions of a slope contribute to its average."""
        (field,) = self.fields
        width, zero, total = sqrt(self.covariance[field, field]), self._zero(), S.Zero
        turn = {self.solution.inner: self.solution.reflection * Dummy("t", real=True)}
        (t,) = next(iter(turn.values())).free_symbols
        for low, high in pairwise(self.solution.regions):
            place: Any = high.low
            gap = (high.values[state] - low.values[state]).xreplace(turn).xreplace({t: place}).xreplace(zero)
            moved = -place.diff(source).xreplace(zero)
            total += simple(gap * moved / width) * gaussian_density(simple(place.xreplace(zero) / width))
        return total

    def source(self, response: SiteResponse) -> Symbol:
        """The source that a response is to."""
        return self._source(response)[0]

    def _moves(self, response: SiteResponse) -> bool:
        """Whether a state, or where it jumps, depends on the field that a response is to."""
        source = self.source(response)
        parts = (e for r in self.solution.regions for e in (r.values[response.state], r.low, r.high))
        return any(e is not None and e.has(source) for e in parts)

    def _jumps(self, response: SiteResponse) -> bool:
        """Whether the state jumps with any field: the switches move with all of them."""
        return response.state in self.solution.jumping


class _WithoutJumps(SiteEnsemble):
    """The same site without its jumps."""

    def _jumps(self, response: SiteResponse) -> bool:  # noqa: ARG002 - the signature of what it replaces
        return False


@dataclass(frozen=True)
class _Case:
    """A site in one of its cases."""

    solution: Any
    at_labels: LowestEnsemble
