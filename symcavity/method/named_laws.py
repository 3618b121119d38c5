"""Laws stay laws: averages over sites whose law is implicit, by the functions that the law defines.

Such a law gives its states as functions of the field, ``lambda(h)``, which solves ``h = eta + F lambda(h)``.
An average over the sites is then an average of these functions and of their derivatives, as in the literature:
``q = <lambda(h)^2>``, ``S = <lambda'(h)/(1 - F lambda'(h))>``.  Integrals over the field are what is evaluated.
At a temperature the message is a function of the cavity field itself, ``S = <lambda'(eta)>``: a thermal mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import Expr, Heaviside, Piecewise, Pow, S, Symbol, cancel, log, sign

from symcavity.algebra.between import between, log_between
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.phi import phi
from symcavity.method.close import averaged_over, conditions
from symcavity.method.naming import at_zero
from symcavity.model.averages import Average, SiteResponse, expect
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, Variable
from symcavity.record.symbols import LabelSlope, LawFunction
from symcavity.sites.site import Site
from symcavity.sites.thermal.states import has_kinks
from symcavity.sites.thermal.strategy import ThermalSolution, density
from symcavity.sites.thermal.summed import weight_of


def field_at(kind: Kind) -> SiteQuantity:
    """The cavity field of a site, at which the functions of its law are written."""
    return Variable("eta", kind.index)[kind.index]


@dataclass(frozen=True)
class NamedLaw:
    """The law of a site by its functions of one state.

    Attributes
    ----------
    site : Site
    argument : SiteQuantity
        The state that solves the implicit equation; the cavity field of a thermal mean.
    functions : dict
        The states that are functions of it, each by its expression; a thermal mean, by itself.
    slopes : dict
        The response of each state, and of the argument, to the source of the field.
    """

    site: Site
    argument: SiteQuantity
    functions: Mapping[SiteQuantity, Expr]
    slopes: Mapping[SiteQuantity, Expr]

    @property
    def ensemble(self) -> NamedLaw:
        """What averages over the site: this law."""
        return self

    def at_site(self, body: Expr) -> Expr:
        """The average over the fields and the labels, which keeps the names of the law."""
        return Average(self.written(body))

    average = at_site

    def written(self, body: Expr) -> Expr:
        """An expression in the states, and their responses, by the functions of the law."""
        rule: dict[Any, Expr] = {r: self._response(r) for r in body.atoms(SiteResponse)}
        named = body.xreplace(rule).xreplace({q: self.at(q) for q in self.functions})
        return named.subs([(value, self.at(q)) for q, value in self.functions.items()])

    def at(self, q: SiteQuantity, order: int = 0) -> Expr:
        """A state, or a derivative of it, as a function of the argument."""
        return _function(q, self.argument, order)

    @property
    def is_thermal(self) -> bool:
        """Whether the functions are thermal means, which are defined by the weight of the site."""
        return isinstance(self.site.solution, ThermalSolution)

    def defined(self, kind: Kind) -> list[Equation]:
        """Each state of the inserted site as the function that it is, and that function written out."""
        if self.is_thermal:
            here = {self.argument: self.site.problem.inner().eta}
            return [at_zero(Equation(q, self.at(q).xreplace(here)), kind) for q in self.functions]
        found = []
        for q, value in self.functions.items():
            found += [Equation(q, self.at(q)), Equation(q, value)]
        return [at_zero(e, kind) for e in found]

    def equations(self) -> list[Equation]:
        """What defines the functions at a cavity field ``eta``.

        That is the equation that the argument solves, and the functions written out; or means over a weight.
        """
        own = self.site.problem.inner()
        eta = field_at(self.site.kind)
        if self.is_thermal:
            weight, strength = weight_of(self.site.problem), self.site.solution.fluctuation.feedback
            mean = (expect(weight.state) - eta) / strength if weight.is_field else expect(weight.state)
            inside = dict(self.site.means) | {own.eta: eta} | dict.fromkeys(self.site.solution.sources, S.Zero)
            weighed = Equation(LawFunction(Symbol("P"), weight.state, 0), density(self.site.problem).xreplace(inside))
            return [*(Equation(self.at(q), mean) for q in self.functions), weighed]
        x, field = self.site.solution.regions[0].implicit
        back = self.argument - field.xreplace({x: self.argument} | dict.fromkeys(self.site.solution.sources, S.Zero))
        functions = [Equation(self.at(q), value) for q, value in self.functions.items()]
        return [Equation(self.argument, eta + self.written(back)), *functions]

    def told(self, kind: Kind) -> dict[str, list[Expr]]:
        """The functions, labels whose probabilities are written as ``P(y | u)``, parameters that are not written."""
        said = {"named": [self.at(q) for q in self.functions], "labels": self.labels, **self.beside}
        return {name: [at_zero(e, kind) for e in some] for name, some in said.items()}

    @property
    def beside(self) -> dict[str, list[Expr]]:
        """The parameters of the site on which functions depend at a given argument, and these functions."""
        own = [q.at_site() for q in self.site.law.quenched() if q.given is None]
        weights = [e.difference for e in self.equations()] if self.is_thermal else []
        values = {q: [*weights, value] for q, value in self.functions.items()}
        found = [p for p in own if any(e.has(p) for some in values.values() for e in some)]
        varying = [self.at(q) for q, some in values.items() if any(e.has(*found) for e in some)] if found else []
        return {"beside": [*found], "varying": varying}

    @property
    def labels(self) -> list[SiteQuantity]:
        """The labels that are drawn on a field of the site."""
        return [q.at_site() for q in self.site.law.quenched() if q.given is not None]

    def _response(self, r: SiteResponse) -> Expr:
        own = self.site.problem.inner()
        if r.field is None or r.field == own.carrier:
            return self.slopes[r.state]
        label = next(q for q in self.site.law.quenched() if q.given == r.field)
        return LabelSlope(label.at_site(), r.field) * self.written(r.state)


def named_law(site: Site) -> NamedLaw | None:
    """The law of a site by its functions.

    None where it is neither one implicit equation for one state nor a thermal mean over the sides of kinks.
    """
    solution = site.solution
    if isinstance(solution, ThermalSolution) and has_kinks(weight_of(site.problem)):
        return _thermal_law(site)
    regions: tuple[Any, ...] = getattr(solution, "regions", ())
    if len(regions) != 1 or regions[0].implicit is None:
        return None
    if isinstance(solution, ThermalSolution):
        return _thermal_law(site)
    if solution.well is not None:  # it may jump
        return None
    (region,) = regions
    x, _ = region.implicit
    zero = dict.fromkeys(solution.sources, S.Zero)
    values = {q: v.xreplace(zero) for q, v in region.values.items()}
    argument = next((q for q, v in values.items() if v == x), None)
    if argument is None:  # the law is solved in a function of the states, such as their logarithm
        return None
    functions = {q: v.xreplace({x: argument}) for q, v in values.items() if v.has(x) and v != x}
    if not functions or not _hears_one(site, functions.values()) or site.law.pairs:
        return None
    slopes = _slopes(site, argument, functions)
    return NamedLaw(site, argument, functions, slopes) if slopes else None


def _thermal_law(site: Site) -> NamedLaw | None:
    """A thermal mean as a function of the cavity field."""
    weight = weight_of(site.problem)
    if not _hears_one(site, [weight.energy, *weight.bounds]):
        return None
    eta = field_at(site.kind)
    return NamedLaw(site, eta, {weight.mean: weight.mean}, {weight.mean: _function(weight.mean, eta, 1)})


def _hears_one(site: Site, exprs: Iterable[Expr]) -> bool:
    """Whether a law is smooth in one field, and hears others through labels that are drawn on them only."""
    own = site.problem.inner()
    others = {h.eta for h in site.heard} - {own.eta} | {h.carrier for h in site.heard if h is not own} - {None}
    drawn = {q.given for q in site.law.quenched() if q.given is not None}
    smooth = not any(v.has(sign, Heaviside, Piecewise, *others) for v in exprs)
    return smooth and all(h.carrier in drawn for h in site.heard if h is not own)


def _slopes(site: Site, argument: SiteQuantity, functions: Mapping[SiteQuantity, Expr]) -> dict[SiteQuantity, Expr]:
    """The responses of the states to the source of the field, from the equation that carries it."""
    own = site.problem.inner()
    whole = next((e.difference for e in site.problem.equations() if e.difference.has(own.eta)), None)
    if whole is None:
        return {}
    whole = whole.xreplace(dict(site.means))
    steps = {q: _function(q, argument, 1) for q in functions}
    slope = whole.diff(argument) + sum((whole.diff(q) * step for q, step in steps.items()), S.Zero)
    moved = cancel(-whole.diff(own.source) / slope)
    if slope == 0 or moved.has(own.eta, own.source):
        return {}
    inside = {q: _function(q, argument, 0) for q in functions}
    return {q: (moved * step).xreplace(inside) for q, step in {**steps, argument: S.One}.items()}


def _function(q: SiteQuantity, argument: Expr, order: int) -> LawFunction:
    return LawFunction(Symbol(q.family.name), argument, order)


@dataclass(frozen=True)
class NamedAverages:
    """All averages of a theory, by the functions of its implicit laws."""

    laws: Mapping[Kind, NamedLaw]
    sites: Mapping[Kind, Any]

    def of(self, expr: Expr) -> Expr:
        """An expression in averages over sites, in single-site averages."""
        return averaged_over(self.sites, expr)

    def conditions(self, system: Any) -> list[Equation]:
        """The conditions on sums over all sites."""
        return conditions(system, self.sites)

    def closed(self, theory: Any) -> dict[Equation, Equation]:
        """Each closed equation of a theory that integrates over an implicit law, by the functions of the law."""
        meanings = theory.order_parameters
        named = {Equation(s, value): Equation(s, self.of(meanings[s])) for s, value in theory.closures.items()}
        named |= dict(zip(theory.global_equations, self.conditions(theory.system), strict=True))
        return {claim: new for claim, new in named.items() if integrates(claim) and new.difference.has(LawFunction)}

    def named_in(self, equations: Iterable[Equation]) -> list[tuple[Kind, NamedLaw]]:
        """The laws whose functions equations name."""
        named = {f.args[:2] for e in equations for f in e.difference.atoms(LawFunction)}
        return [(k, law) for k, law in self.laws.items() if any(law.at(q).args[:2] in named for q in law.functions)]


def with_names(theory: Any, equations: Iterable[Equation]) -> tuple[list[Equation], list[tuple[Kind, NamedLaw]]]:
    """Closed equations of a theory by the functions of its implicit laws, and the laws that they name."""
    averages = named_averages(theory.inserted)
    by_names = averages.closed(theory) if averages else {}
    named = [by_names.get(e, e) for e in equations]
    return named, averages.named_in(named) if averages else []


def integrates(claim: Any) -> bool:
    """Whether an average over an implicit law stands in a claim, or a number of a step of one.

    The mean between two ends of a Gaussian, and the logarithm of what lies there, are written out at such length, too.
    """
    if not isinstance(claim, Equation):
        return False
    averages = claim.difference.atoms(GaussianAverage)
    return claim.difference.has(ImplicitAverage) or any(map(_divides_by_shares, averages))


def _divides_by_shares(average: Expr) -> bool:
    """Whether an average holds moments of a Gaussian between ends: they are divided by the share that lies there."""
    body = average.args[0]
    shares = [node.base for node in body.atoms(Pow) if node.exp.is_negative] + [*body.atoms(log)]
    return body.has(between, log_between) or any(share.has(phi) for share in shares)


def named_averages(sites: Mapping[Kind, Site]) -> NamedAverages | None:
    """The averages of a theory by the functions of its laws; None where no law is implicit."""
    laws = {kind: law for kind, site in sites.items() if (law := named_law(site)) is not None}
    return NamedAverages(laws, {**sites, **laws}) if laws else None
