"""The free energy of a Gibbs measure per feature, as an observable: logarithms of weights, and what links sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, S

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average, LogWeight, SiteResponse
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N, in_units_of_n, to_leading_order
from symcavity.model.system import System
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


def free_energy_of(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """Minus the logarithm of the sum of all weights, over beta and N: stationary in all order parameters.

    Each site has the logarithm of its weight. What a site and those that hear it gain of each other is in the weights
    of both, and is taken off once: ``F*<x**2>/2 + Var(eta)*S/2`` at each site with states, half of it for pairs.

    Raises
    ------
    UnsupportedLaw
        For a system that is no Gibbs measure.
    """
    if not system.weights:
        raise UnsupportedLaw("States that do not fluctuate have no free energy.", "problem.gibbs(beta).cavity()")
    if any(w.is_cold for w in system.weights.values()):
        return energy_of(system, sites)
    total = shared_over_n(system)
    for kind, weight in system.weights.items():
        total -= kind.ratio * Average(LogWeight(weight.mean)) / weight.beta
        if not weight.is_field:
            total += kind.ratio * Add(*map(Average, _links(system, sites[kind], weight)))
    return total


def energy_of(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """The thermal mean of the declared objective over N: of sites, and half of what those that meet in pairs gain."""
    if not system.weights:
        raise UnsupportedLaw("States that do not fluctuate have no thermal energy.", "problem.gibbs(beta).cavity()")
    total = shared_over_n(system)
    for kind, weight in system.weights.items():
        total += kind.ratio * Average(weight.energy)
        if weight.is_field:
            continue
        for heard in (h for h in sites[kind].heard if h.declared.states() and meets(system, h.declared)):
            carrier = system.laws[kind].carrier(heard.declared).lhs
            gained = [weight.state * carrier]
            if not weight.is_cold:
                answer = (heard.factor * heard.effective()).xreplace(dict(sites[kind].means)).expand()
                strength = answer.diff(weight.mean)
                gained += [strength * weight.state**2, -strength * weight.mean**2]
            total -= kind.ratio * Add(*map(Average, gained)) / 2
    return total


def entropy_of(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """The entropy of a Gibbs measure over N: beta times what the energy exceeds the free energy by."""
    if any(w.is_cold for w in system.weights.values()):
        return _cold_entropy(system, sites)
    free = free_energy_of(system, sites)
    return next(iter(system.weights.values())).beta * (energy_of(system, sites) - free)


def _cold_entropy(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """The limit of the entropy at zero temperature: minus the explicit slope of the free energy in the temperature.

    States that are discrete have none of their own. A field fluctuates about its minimum by what its energy is curved
    there, against the variance that it has without: ``-log(1 + c*F)/2``; where it is held at a kink or an edge, its
    logarithm has no limit. What a state and those that hear it gain of each other is ``F*<x**2>/2``, and the
    fluctuations of x have a share of ``F*S*T/2`` in it.
    """
    total = S.Zero
    for kind, weight in system.weights.items():
        site = sites[kind]
        if weight.is_field:
            total += kind.ratio * site.solution.freedom()
            continue
        if not getattr(weight.state.family, "values", ()):
            raise UnsupportedLaw(
                f"{weight.state} is continuous, and its entropy at zero temperature counts nothing.",
                "entropies of discrete states",
            )
        for heard in (h for h in site.heard if h.declared.states()):
            once = S.Half if meets(system, heard.declared) else S.One
            answer = (heard.factor * heard.effective()).xreplace(dict(site.means)).expand()
            response = _response(site, heard, weight.state)
            total -= kind.ratio * once * Average(answer.diff(weight.state) * response) / 2
    return total


def meets(system: System, heard: RandomField) -> bool:
    """Whether sites that hear a field meet those that send it in pairs: both have states of their own."""
    return not any(system.weights[kind].is_field for kind in (heard.hearer, heard.sender))


def shared_over_n(system: System) -> Expr:
    """The energy that belongs to no site, over N."""
    return to_leading_order((in_units_of_n(system.collective.energy.expand()) / N).cancel())


def links_of(system: System, site: Site, weight: Any) -> list[tuple[Expr, Expr, int, SiteResponse]]:
    """What a site with states and its neighbors gain of each other: a share, a factor, and of what it is.

    Two stands for the square of what the site sends, one for what it sends, zero for its response, which is the last
    entry: to the field that they hear each other through.
    """
    moving, terms = [h for h in site.heard if h.declared.states()], []
    for heard in moving:
        whole = (heard.factor * heard.effective()).xreplace(dict(site.means)).expand()
        strength = whole.diff(weight.mean)
        shift = whole.xreplace({weight.mean: S.Zero, heard.eta: S.Zero})
        pulls = (other.factor * site.covariance[heard.eta, other.eta] for other in moving)
        variance = heard.factor * Add(*pulls)
        once = S.Half if meets(system, heard.declared) else S.One
        own = _response(site, heard, weight.mean)
        terms += [(once, strength / 2, 2, own), (once, shift, 1, own), (once, variance / 2, 0, own)]
    return [term for term in terms if term[1] != 0]


def _response(site: Site, heard: Heard, mean: Any) -> SiteResponse:
    """The response of what a site sends to a field, which has no name where there is one of states only."""
    several = sum(bool(h.declared.states()) for h in site.heard) > 1
    return SiteResponse(mean, heard.carrier if several else None)


def _links(system: System, site: Site, weight: Any) -> list[Expr]:
    """The same in terms that are averaged."""
    of = {2: weight.state**2, 1: weight.state}
    return [once * factor * of.get(power, own) for once, factor, power, own in links_of(system, site, weight)]
