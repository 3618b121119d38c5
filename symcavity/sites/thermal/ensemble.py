"""A site at a temperature as it is solved, and its averages over fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sympy import Expr, Heaviside, Piecewise, S, Symbol, sign, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.errors import DeclarationError
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.sites.by_parts import by_parts, weights
from symcavity.sites.protocol import SiteProblem, without_curvature
from symcavity.sites.quenched_laws import quenched_average
from symcavity.sites.site import Site
from symcavity.sites.thermal.averages import ThermalAverages
from symcavity.sites.thermal.cold import fluctuation
from symcavity.sites.thermal.summed import (
    as_one,
    is_pulled_by_sum,
    mixture,
    weight_of,
)
from symcavity.sites.thermal.unanswered import unanswered


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
