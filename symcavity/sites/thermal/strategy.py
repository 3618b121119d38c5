"""The strategy for sites at a temperature: an average over the weight of a site instead of its minimum.

The weight takes in how the others answer: to first order they add ``eta*x + F*x**2/2`` to what a state x gains, and a
field is a Gaussian of mean eta and variance ``F/beta``. Of a convex problem the minimum of what stands in the exponent
is the site at zero temperature, which is solved as it always is; averages are taken about it. Of other problems they
are sums over all states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Add, Expr, Heaviside, Mul, Piecewise, S, Symbol, exp, latex, sign, sqrt, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.signs import sign_of
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import LawFunction
from symcavity.sites.branching.strategy import Branching, sign_relations
from symcavity.sites.by_parts import by_parts, weights
from symcavity.sites.linear import Linear
from symcavity.sites.protocol import Heard, LawSolution, SiteProblem, Strategy, without_curvature
from symcavity.sites.quenched_laws import quenched_average
from symcavity.sites.site import Site, response_steps
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.fluctuation import Fluctuation
from symcavity.sites.thermal.parts import ZETA
from symcavity.sites.thermal.states import is_closed
from symcavity.sites.thermal.summed import (
    as_one,
    is_pulled_by_sum,
    laid_out,
    mixture,
    moving_field,
    moving_fields,
    weight_of,
)
from symcavity.sites.thermal.unanswered import unanswered

FORMULAS = Branching()
AT_ZERO: tuple[Strategy, ...] = (Linear(), FORMULAS)  # how the minimum is found


def at_zero_temperature(problem: SiteProblem) -> SiteProblem:
    """The same site at its minimum: the law of zero temperature, with the same fields and self-couplings."""
    weight = weight_of(problem)
    if weight.cold is None:
        return problem
    heard: list[Heard] = []
    proved: dict[Any, int] = {}
    for h in problem.heard:
        was = weight.told.get(h.declared.emission, h.declared.emission)
        known = [f for f in weight.cold.fields if f.coupling == h.declared.coupling and f.emission == was]
        if len(known) != 1:
            raise UnsupportedLaw(
                f"At zero temperature no field corresponds to {h.declared.as_sum}.", "problem.gibbs(beta)"
            )
        own = tuple(
            replace(k, through=replace(k.through, emission=weight.told.get(k.emission, k.emission)))
            for k in h.feedback
        )
        heard.append(replace(h, declared=known[0], factor=weight.cold.coefficient(known[0]), feedback=own))
        moving = (k for k in h.feedback if h.declared.states() and k.emission.has(weight.mean))
        proved |= {k.symbol: 1 if weight.is_field else -1 for k in moving}
    return replace(problem, law=weight.cold, heard=tuple(heard), convex=True, proved=proved)


def fluctuation(problem: SiteProblem) -> Fluctuation:
    """What fluctuates about the minimum, with the self-couplings as symbols."""
    weight, cold = weight_of(problem), at_zero_temperature(problem)
    still, moving = moving_fields(cold), moving_fields(problem)
    given = {h.carrier: h.carrier for h in problem.heard if h not in moving and h.carrier is not None}
    if not weight.is_field:
        own = [(k, h.factor) for warm, h in zip(moving, still, strict=True) for k in warm.feedback]
        strength = Add(*(k.symbol * k.emission.diff(weight.mean) * factor for k, factor in own))
        slope = Add(*(h.factor * h.effective() for h in still))
        return Fluctuation(weight, strength, given, weight.state, slope, S.Zero)
    (inner,), (warm,) = still, moving
    message = weight.told[weight.mean]
    strength = Add(*(k.symbol for k in warm.feedback if k.emission == weight.mean))
    return Fluctuation(weight, strength, given, inner.effective(), -message, message)


def before_others(site: Site, silent: Mapping[Any, Expr]) -> Site:
    """The site before some of the others have spoken: what it hears of them and what comes back is exactly zero.

    Nothing is looked for but sums over states: a minimum is none of a field that nobody answers.

    Parameters
    ----------
    site : Site
    silent : mapping
        The order parameters that are zero as long as they have not.
    """
    weight = weight_of(site.problem)
    if weight.cold is not None and (weight.is_field or is_closed(weight)):
        problem = replace(site.problem, law=replace(site.problem.law, weight=replace(weight, cold=None)))
        site = replace(site, problem=problem, generic=site.strategy.solve(problem).solved)
    means, covariance = ({k: v.xreplace(dict(silent)) for k, v in own.items()} for own in (site.means, site.covariance))
    return replace(site, means=means, covariance=covariance)


class Thermal:
    """Laws of thermal means."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site has a weight."""
        weight = problem.law.weight
        return weight is not None and not weight.others

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve the law at zero temperature; thermal averages are taken about that.

        Raises
        ------
        UnsupportedLaw
            If the site hears no answer: its weight has no bound of its own.
        """
        cold = at_zero_temperature(problem)
        if cold is problem:
            # a state answers upwards to what pulls it, at any temperature; so does what hears itself in pairs
            signs: dict[Any, int] = {}
            for heard in moving_fields(problem):
                moving = [k for k in heard.feedback if k.emission.has(weight_of(problem).mean)]
                own = [k for k in moving if weight_of(problem).is_field or k.through.sender == k.through.hearer]
                way = 1 if weight_of(problem).is_field else sign_of(heard.factor)  # turned where it pushes away
                signs |= {k.symbol: way for k in own if way}
            still = problem.signed(signs)
            laid = laid_out(still, mixture(still).positive)
            return LawSolution(ThermalSolution(still, still, FORMULAS, laid), signs)
        strategy = next(s for s in AT_ZERO if s.applies(cold))
        found = strategy.solve(cold)
        signed, still = problem.signed(found.signs), cold.signed(found.signs)
        return LawSolution(ThermalSolution(signed, still, strategy, found.solved), found.signs)

    def ensemble(self, site: Site) -> ThermalEnsemble:
        """The averages of the site over its weight and its Gaussian fields."""
        return ThermalEnsemble.of(site)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The weight of the new site, the minimum about which it fluctuates, and the responses of its means."""
        if weight_of(site.problem).cold is None:
            return [*state_steps(site, make), *response_steps(site, make, wanted, f"{site.kind.key}.solution")]
        key, kind = site.kind.key, site.kind
        zero = {kind.index: S.Zero}
        weight, solution = weight_of(site.problem), site.solution
        means, F = dict(site.means), solution.fluctuation.feedback
        here = {source.xreplace(zero): S.Zero for source in site.problem.plain_sources()}
        claim = Equation(LawFunction(Symbol("P"), weight.state, 0), density(site.problem))
        claim = Equation(*(side.xreplace(means).xreplace(zero).xreplace(here) for side in (claim.lhs, claim.rhs)))
        relations = sign_relations(site)
        weighed = make(
            f"{key}.weight",
            "weight",
            [claim],
            data={
                "kind": kind,
                "state": weight.state.xreplace(zero),
                "mean": weight.mean.xreplace(zero),
                "field": site.problem.inner().eta,
                "strength": F.xreplace(means).xreplace(zero),
                "beta": weight.beta,
                "field_site": weight.is_field,
            },
            assumptions=(("one_state", {}),),
            rests_on=(f"{key}.effective_law",),
        )
        lowest, found, still = site.solution.minimum, solution.fluctuation, dict.fromkeys(site.solution.sources, S.Zero)
        stars = {q.xreplace(zero): _star(q.xreplace(zero)) for q in lowest.unknowns}
        named = [*(q for q in lowest.unknowns if found.mean.has(q) or found.minimum.has(q))]
        claims = [Equation(q, lowest.expression(q).xreplace(still)) for q in named]
        if lowest.is_implicit:
            claims.insert(0, Equation(lowest.inner, lowest.fixing().xreplace(still)))
        claims.append(Equation(x_star := _star(weight.state.xreplace(zero)), found.minimum))
        claims = [Equation(*(e.xreplace(zero).xreplace(stars) for e in (c.lhs, c.rhs))) for c in claims]
        claims = [c for c in claims if c.difference != 0]
        bound = [b.implicit[0] for b in lowest.branches if b.implicit]
        free = {b: TexSymbol(f"{b.name}*", f"{latex(b)}^{{*}}") for b in bound}
        claims = [Equation(c.lhs, c.rhs.xreplace(free)) for c in claims]
        told = found.mean.xreplace(zero).xreplace(stars)
        claims.append(Equation(weight.mean.xreplace(zero), told))
        solved = make(
            f"{key}.solution",
            "fluctuation",
            claims,
            data={
                "kind": kind,
                "state": weight.state.xreplace(zero),
                "minimum": x_star,
                "scale": sqrt(found.width).xreplace(zero),
                "zeta": ZETA,
                "square": found.excess == 0,
                "sign_assumptions": relations,
            },
            assumptions=(("sign", {"relations": relations}),) if relations else (),
            rests_on=(f"{key}.weight",),
        )
        return [weighed, solved, *response_steps(site, make, wanted, f"{key}.solution")]


def state_steps(site: Site, make: StepMaker) -> list[Step]:
    """The weight of the new site, and its mean as a sum over all states."""
    key, kind, zero = site.kind.key, site.kind, {site.kind.index: S.Zero}
    weight, found = weight_of(site.problem), site.solution.fluctuation
    here = zero | {q: h.xreplace(zero) for q, h in found.given.items()}
    x, F, beta = weight.state, found.feedback, weight.beta
    gain = -((x - found.field) ** 2) / (2 * F) if weight.is_field else found.field * x + F * x**2 / 2
    whole = exp(-beta * (weight.energy - gain)) * Mul(*(Heaviside(b) for b in weight.bounds))
    relations = sign_relations(site)
    data = {
        "kind": kind,
        "state": x.xreplace(zero),
        "mean": weight.mean.xreplace(zero),
        "field": found.field.xreplace(zero),
        "strength": F.xreplace(zero),
        "beta": beta,
        "field_site": weight.is_field,
    }
    weighed = make(
        f"{key}.weight",
        "weight",
        [Equation(LawFunction(Symbol("P"), x, 0).xreplace(zero), whole.xreplace(here))],
        data=data,
        assumptions=(("one_state", {}),),
        rests_on=(f"{key}.effective_law",),
    )
    summed = make(
        f"{key}.solution",
        "thermal_sum",
        [Equation(weight.mean.xreplace(zero), found.mean.xreplace(here))],
        data=data | {"discrete": [q.xreplace(zero) for q in weight.states if not weight.is_field and q.family.values],
                     "sign_assumptions": relations},
        assumptions=(("sign", {"relations": relations}),) if relations else (),
        rests_on=(f"{key}.weight",),
    )  # fmt: skip
    return [weighed, summed]


def _star(q: SiteQuantity) -> TexSymbol:
    """The name of a quantity at the minimum of the weight's exponent."""
    return TexSymbol(f"{q}*", f"{latex(q)}^{{*}}" if "^" not in latex(q) else f"\\left({latex(q)}\\right)^{{*}}")


def density(problem: SiteProblem) -> Expr:
    """The weight of the inserted site, with the self-couplings as symbols."""
    weight, found = weight_of(problem), fluctuation(problem)
    x, F = weight.state, found.feedback
    if weight.is_field:
        return exp(-weight.beta * (weight.energy + (x - moving_field(problem).eta) ** 2 / (2 * F)))
    force = found.slope.xreplace({weight.state: S.Zero})
    return exp(-weight.beta * (weight.energy - force * x - F * x**2 / 2))


@dataclass(frozen=True)
class ThermalSolution:
    """A site at a temperature: its solution at zero temperature, and what fluctuates about that.

    Attributes
    ----------
    problem : SiteProblem
    cold : SiteProblem
    strategy : Strategy
        How the law was solved at zero temperature.
    minimum : SiteSolution
    means : mapping
        The mean of each self-coupling; empty as long as they are symbols.
    """

    problem: SiteProblem
    cold: SiteProblem
    strategy: Any
    minimum: Any
    means: Any = None

    @property
    def unknowns(self) -> tuple[SiteQuantity, ...]:
        """The means of the site, and the fields of given numbers that it hears."""
        given = (h.carrier for h in self.problem.heard if not h.declared.states() and h.carrier is not None)
        return (weight_of(self.problem).mean, *given)

    @property
    def assumed(self) -> tuple[Any, ...]:
        """The inequalities that the solution at zero temperature assumes."""
        return tuple(self.minimum.assumed)

    @property
    def is_implicit(self) -> bool:
        """Whether the message is not a function by cases: a sum over states, or about an implicit minimum."""
        return weight_of(self.problem).cold is None or bool(self.minimum.is_implicit)

    @property
    def inner(self) -> Symbol:
        """The field over which the minimum is laid out."""
        return self.minimum.inner

    @property
    def regions(self) -> tuple[Any, ...]:
        """The intervals of the field on which the minimum has one form."""
        return tuple(self.minimum.regions)

    @property
    def branches(self) -> tuple[Any, ...]:
        """The branches of the minimum."""
        return tuple(self.minimum.branches)

    @property
    def sources(self) -> tuple[Symbol, ...]:
        """The sources."""
        return tuple(self.minimum.sources)

    @cached_property
    def fluctuation(self) -> ThermalAverages:
        """Thermal averages, at the mean self-couplings where they are known."""
        rule = dict(self.means or {})
        if weight_of(self.problem).cold is None:
            summed = mixture(self.problem).xreplace(rule)
            return unanswered(summed) if summed.feedback == 0 else summed
        found = fluctuation(self.problem)
        changed = {name: getattr(found, name).xreplace(rule) for name in ("minimum", "slope", "feedback", "message")}
        return replace(found, **changed)

    def at(self, means: Any, covariance: Any) -> ThermalSolution:
        """The solution at the mean self-couplings.

        Raises
        ------
        UnsupportedLaw
            If nothing but what the energy has beyond a square holds the state: its feedback was dropped.
        """
        found = replace(self, minimum=self.minimum.at(means, covariance), means=dict(means))
        if any(width.has(zoo) or width == 0 for width in found.fluctuation.widths):
            raise without_curvature("its fluctuations are")
        return found

    def expression(self, state: SiteQuantity) -> Expr:
        """A mean as a function of the fields, and of the state at zero temperature."""
        mean = weight_of(self.problem).mean
        return self.fluctuation.mean if state == mean else self.minimum.expression(state)

    def without_sources(self) -> ThermalSolution:
        """The solution at zero sources."""
        return replace(self, minimum=self.minimum.without_sources())


@dataclass(frozen=True)
class ThermalEnsemble:
    """A site whose state fluctuates and whose fields are Gaussian.

    Attributes
    ----------
    kind : Kind
    solution : ThermalSolution
    minimum : SiteEnsemble
        The same site at zero temperature, over the same fields.
    sources : dict
        As of :class:`symcavity.sites.branching.averages.SiteEnsemble`.
    """

    kind: Kind
    solution: ThermalSolution
    minimum: Any
    sources: dict[Any, Any]

    @classmethod
    def of(cls, site: Site) -> ThermalEnsemble:
        """The ensemble of a site."""
        generic = site.generic
        cold = Site(generic.cold, generic.strategy, generic.minimum, site.signs, site.covariance, site.means)
        return cls(site.kind, site.solution, generic.strategy.ensemble(cold), site.sources())

    @property
    def fields(self) -> tuple[Symbol, ...]:
        """The cavity fields."""
        return tuple(self.minimum.fields)

    @property
    def covariance(self) -> dict[tuple[Symbol, Symbol], Expr]:
        """Of the cavity fields."""
        return dict(self.minimum.covariance)

    def average(self, body: Expr) -> Expr:
        """Average an expression thermally, over the fields, and over quenched parameters."""
        return quenched_average(self.at_site(body))

    def at_site(self, body: Expr) -> Expr:
        """Average an expression thermally and over the fields."""
        known = {*self.solution.unknowns, *weight_of(self.solution.problem).states, *self.solution.fluctuation.heard}
        # a response is to a field, which need not have a thermal mean
        asked = body.xreplace({r: r.state for r in body.atoms(SiteResponse)})
        for q in site_quantities(asked):
            if set(q.site) != {self.kind} or not (isinstance(q.family, Quenched) or q in known):
                raise DeclarationError(
                    f"{q} is not a quantity of the {self.kind.sites}.", ", ".join(sorted(map(str, known)))
                )
        return self.over_fields(body)

    def over_fields(self, body: Expr) -> Expr:
        """Average an expression in the site's quantities and fields, thermally and over its fields.

        A response to a field of given numbers with which the energy jumps, as labels are the sign of a teacher's field,
        or a bound moves, is averaged by Gaussian integration by parts.
        """
        jumping = [r for r in body.atoms(SiteResponse) if self._jumps(r)]
        if jumping:
            rest, found = weights(body, jumping, self.solution.unknowns)
            total = self.over_fields(rest) if rest != 0 else S.Zero
            for r, weight in found:
                _, field, factor = self.sources[r.field]
                total += by_parts(self, field, weight / factor * r.state, self.over_fields)
            return total
        written, site = self.solution.fluctuation.written(body), self.minimum
        if is_pulled_by_sum(self.solution.problem, body):
            site, rule = as_one(site, self.solution.cold)
            written = written.xreplace(rule)
        minimum = site.solution
        if written.has(GaussianAverage) and len(minimum.regions) > 1 and not minimum.is_implicit:
            # one expression at all fields: those of one branch grow without bound on the others
            zero = dict.fromkeys(minimum.sources, S.Zero)
            states = {q: minimum.expression(q).xreplace(zero) for q in minimum.unknowns if written.has(q)}
            written = written.xreplace(states)
        quiet = {f: S.Zero for f in site.fields if site.covariance[f, f] == 0}
        return site.at_zero(quiet).over_fields(written.xreplace(quiet)) if quiet else site.over_fields(written)

    def _jumps(self, r: SiteResponse) -> bool:
        found = self.solution.fluctuation
        if r.field not in found.given:
            return False
        given = found.given[r.field]
        bounds = found.weight.bounds  # the weight ends at a bound, which moves with the field
        return any(e.has(given) for e in (*found.weight.energy.atoms(sign, Heaviside, Piecewise), *bounds))

    def without(self, field: Symbol) -> ThermalEnsemble:
        """The same site with all fields but one."""
        return replace(self, minimum=self.minimum.without(field))

    def response(self, _values: Any, _implicit: Any, response: SiteResponse) -> Expr:
        """A response moves with the fields: it stands for the mean that answers."""
        return response.state
