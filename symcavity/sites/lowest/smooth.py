"""Sites whose energy is smooth and no square: the state is where it is stationary, with what the others answer.

Where the energy is not known to be convex, the lowest of its minima is meant.  It switches at the field at which two
are equally low: from one point of contact of a common tangent of the energy to the other.  Or it is the minimum that a
state reaches downhill from the one that it has without feedback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import (
    Abs,
    Add,
    DiracDelta,
    Dummy,
    Expr,
    Heaviside,
    Limit,
    Max,
    Min,
    Piecewise,
    Poly,
    PolynomialError,
    S,
    StrictGreaterThan,
    Symbol,
    factor_terms,
    limit,
    log,
    oo,
    sign,
    zoo,
)
from sympy.core.relational import Relational

from symcavity.algebra.signs import sign_given, sign_of
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.solution import Region, SiteSolution
from symcavity.sites.branching.strategy import Branching
from symcavity.sites.by_parts import infinite_square
from symcavity.sites.lowest.site import StateForce, answered, force_on
from symcavity.sites.lowest.strategy import energy_step
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site, response_steps
from symcavity.sites.thermal.summed import moving_field, moving_fields, weight_of

BENT = (Abs, Heaviside, Max, Min, Piecewise, Relational, sign)


@dataclass(frozen=True)
class SmoothSolution(SiteSolution):
    """A state where its energy is stationary; where it may have several minima, the lowest one.

    Attributes
    ----------
    bend : Expr
        The curvature of a field's energy with the answer of the others, in units of that of the answer.
    """

    bend: Expr = S.One

    def xreplace(self, rule: dict[Any, Any]) -> SiteSolution:
        """Replace symbols throughout, for instance the self-coupling by its mean."""
        found: Any = super().xreplace(rule)
        return replace(found, bend=self.bend.xreplace(rule))

    @cached_property
    def jumping(self) -> frozenset[SiteQuantity]:
        """The states that have two values where two minima are equally low."""
        return frozenset(self.unknowns if self.well is not None else ())

    def freedom(self) -> Expr:
        """The logarithm of how far a field fluctuates about its minimum, in units of that without its energy."""
        return Average(-log(self.bend) / 2)


class SmoothMinimum(Branching):
    """Laws of a state of lowest energy whose energy is smooth and no square."""

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site has a weight of infinite beta, and an energy that has no kinks."""
        weight = problem.law.weight
        if weight is None or not weight.is_cold or weight.others or weight.beside or weight.bounds:
            return False
        if not weight.is_field and any(q.family.values for q in weight.states):
            return False
        return not weight.energy.has(*BENT) and not is_square(weight.energy, weight.state)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Lay out the states by the place of the minimum; raises IllPosed or UnsupportedLaw where that fails."""
        weight, known = weight_of(problem), dict[Any, int]()
        for heard in moving_fields(problem):
            back = [k.symbol for k in heard.feedback if k.emission.has(weight.mean)]
            way = 1 if weight.is_field else sign_of(heard.factor)
            if weight.is_field or heard.declared.sender == heard.declared.hearer:
                known |= {k: way for k in back if way}
        problem = problem.signed(known)
        force, inner = force_on(problem), moving_field(problem)
        if weight.is_local and not weight.is_field:
            _refuse_falling(problem, weight)
        if not (way := sign_of(force.slope)):
            raise IllPosed(f"{problem.text}: the sign of {force.slope} is open.", "fields of one sign")
        x, sources = Dummy(weight.state.family.name, real=True), problem.plain_sources()
        energy = weight.energy.xreplace({weight.state: x})
        well = (energy + force.curvature * x**2 / 2 - force.shift * x) / force.slope
        if weight.is_local:  # where it begins
            own = energy if not weight.is_field else force.curvature * x**2 / 2
            well = (own - force.shift * x) / force.slope
        psi = Add(*(factor_terms(t / force.slope) for t in (energy.diff(x), force.curvature * x, -force.shift)))
        values: dict[SiteQuantity, Expr] = {
            h.carrier: next(e for e in problem.equations() if e.lhs == h.carrier).rhs.xreplace(sources)
            for h in problem.heard
            if not h.declared.states() and h.carrier is not None
        }
        values[weight.state] = x
        if weight.is_field:
            values[weight.mean] = -energy.diff(x)
        for h in moving_fields(problem) if not weight.is_field else ():
            told = (answered(problem, h) + 0).xreplace({weight.mean: x, inner.eta: psi})
            values[problem.law.carrier(h.declared).lhs] = told.expand()
        values = {q: values[q] for q in problem.law.unknowns}
        strength = Add(*(k.symbol for h in moving_fields(problem) for k in h.feedback if k.emission == weight.mean))
        law, curved = (x, psi), sign_given(energy.diff(x, 2) + force.curvature, ()) == 1
        found = SmoothSolution(
            inner.eta,
            tuple(problem.law.unknowns),
            (Region(None, None, values, law),),
            (Branch(values, (), (), law),),
            S(way),
            () if curved else rising(energy, x, force.curvature),
            sources=tuple(sources.values()),
            well=None if curved else well,
            followed=weight.is_local,
            bend=1 + strength * weight.energy.diff(weight.state, 2),
        )
        return LawSolution(found, known)

    def ensemble(self, site: Site) -> SiteEnsemble:
        """The averages of the site over its Gaussian fields."""
        etas = tuple(h.eta for h in site.problem.ordered())
        kind = SiteEnsemble if site.solution.well is None else SmoothEnsemble
        return kind(site.kind, site.solution, etas, dict(site.covariance), site.sources())

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The energy of the new site, where it is lowest, how that jumps, and the responses of its states."""
        force, means = force_on(site.problem), dict(site.means)
        force = StateForce(*(e.xreplace(means) for e in (force.slope, force.shift, force.curvature)))
        energy, data = energy_step(site, make, force)
        solved = replace(self._solution(site, make), rests_on=(energy.key,))
        steps = [energy, solved]
        if site.solution.well is not None and wanted:
            nodes = sorted({r for e in wanted for r in e.atoms(SiteResponse)}, key=str)
            steps.append(self._contact(site, make, nodes, data))
        return [*steps, *response_steps(site, make, wanted, steps[-1].key)]

    @staticmethod
    def _contact(site: Site, make: StepMaker, nodes: Sequence[SiteResponse], data: dict[str, Any]) -> Step:
        """Between which states the lowest one jumps, at which field, and its slope with that."""
        solution, zero = site.solution, {site.kind.index: S.Zero}
        (region,) = solution.regions
        x, psi = region.implicit
        still = dict.fromkeys(solution.sources, S.Zero)
        low, high = (TexSymbol(f"{x.name}_{word}", f"{x.name}_{sign}") for word, sign in (("low", "-"), ("high", "+")))
        switch = TexSymbol("eta_switch", r"\eta_\ast")
        well, field = (e.xreplace(still) for e in (solution.well, psi))
        risen = well.xreplace({x: high}) - well.xreplace({x: low})
        claims = [Equation(switch, field.xreplace({x: end})) for end in (low, high)]
        if solution.followed:
            begun = TexSymbol(f"{x.name}_start", rf"{x.name}_{{\mathrm{{start}}}}")
            claims.insert(0, Equation(solution.inner, well.diff(x).xreplace({x: begun})))
        else:
            claims.append(Equation(switch * (high - low), risen))
        for r in nodes:
            value, source = region.values[r.state].xreplace(still), site.at_labels.source(r)
            gap = value.xreplace({x: high}) - value.xreplace({x: low})
            jump = gap * -psi.diff(source).xreplace(still) * DiracDelta(solution.inner - switch)
            slope = site.at_labels.response(region.values, region.implicit, r).xreplace(still)
            claims.append(Equation(r, slope.xreplace({x: weight_of(site.problem).state}) + jump))
        claims = [Equation(c.lhs.xreplace(zero), c.rhs.xreplace(zero)) for c in claims]
        data = {**data, "ends": (low, high), "switch": switch}
        data |= {"start": begun} if solution.followed else {}
        rule = "followed" if solution.followed else "contact"
        return make(f"{site.kind.key}.jump", rule, claims, data=data, rests_on=(f"{site.kind.key}.solution",))


class SmoothEnsemble(SiteEnsemble):
    """A site at the lowest minimum of a smooth energy, which jumps."""

    def source(self, response: SiteResponse) -> Symbol:
        """The source that a response is to."""
        return self._source(response)[0]

    def _jumps(self, response: SiteResponse) -> bool:
        """Whether the lowest minimum moves with the field that a response is to: it may jump."""
        (region,) = self.solution.regions
        source = self.source(response)
        return any(e.has(source) for e in (*(region.implicit or ()), region.values[response.state]))

    def _infinite(self, body: Expr, jumping: Sequence[SiteResponse], moved: Sequence[SiteQuantity]) -> Expr | None:
        """The average of squares of slopes: infinite where there is a jump, which the energy decides."""
        if infinite_square(body, jumping, moved) is None:
            return None
        return _BetweenJumps(self.kind, self.solution, self.fields, self.covariance, self.sources, oo).over_fields(body)


class _BetweenJumps(SmoothEnsemble):
    """The same site, with its slopes between the jumps."""

    def _jumps(self, response: SiteResponse) -> bool:  # noqa: ARG002 - the signature of what it replaces
        return False


def _refuse_falling(problem: SiteProblem, weight: Weight) -> None:
    """Refuse to begin at a minimum that an energy does not have at all forces: it has to rise faster than any line."""
    x = Dummy(weight.state.family.name, real=True)
    for end in (-oo, oo):
        try:
            slope = limit(weight.energy.xreplace({weight.state: x}).diff(x), x, end)
        except (NotImplementedError, ValueError):  # of an energy whose growth is not known the solution shows it
            continue
        if slope.is_finite:
            raise UnsupportedLaw(
                f"{problem.text}: without feedback {weight.energy} has no minimum where the force is beyond {slope}.",
                "energies that rise faster than any line",
                "select='lowest'; a square of the state beside the energy",
            )


def rising(energy: Expr, x: Symbol, curvature: Expr) -> tuple[Relational, ...]:
    """The conditions under which an energy with an added curvature rises far out, if they are open."""
    marks = {q: Dummy(q.family.name, real=True) for q in site_quantities(energy)}
    plain = energy.xreplace(marks)
    found = []
    for end in (-oo, oo):
        try:
            bend = curvature + limit(plain.diff(x) / x, x, end)
        except (NotImplementedError, ValueError):  # of an energy whose growth is not known the solution shows it
            continue
        is_known = not bend.has(oo, -oo, zoo, S.NaN, Limit, *marks.values())
        if is_known and sign_given(bend, ()) != 1:
            found.append(StrictGreaterThan(bend, 0, evaluate=False))
    return tuple(dict.fromkeys(found))


def is_square(energy: Expr, state: Any) -> bool:
    """Whether an energy is a polynomial of degree two."""
    try:
        return bool(Poly(energy, state).degree() <= 2)
    except PolynomialError:
        return False
