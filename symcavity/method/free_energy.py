"""The free energy of a Gibbs measure per feature, as an observable: logarithms of weights, and what links sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, S

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average, LogWeight, SiteResponse
from symcavity.model.kinds import Kind, N, in_units_of_n, to_leading_order
from symcavity.model.system import System
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
    total = shared_over_n(system)
    for kind, weight in system.weights.items():
        total -= kind.ratio * Average(LogWeight(weight.mean)) / weight.beta
        if not weight.is_field:
            total += kind.ratio * Add(*map(Average, _links(sites[kind], weight)))
    return total


def energy_of(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """The thermal mean of the declared objective over N: of sites, and half of what those that meet in pairs gain."""
    if not system.weights:
        raise UnsupportedLaw("States that do not fluctuate have no thermal energy.", "problem.gibbs(beta).cavity()")
    total = shared_over_n(system)
    for kind, weight in system.weights.items():
        total += kind.ratio * Average(weight.energy)
        (heard,) = [h for h in sites[kind].heard if h.declared.states()]
        if heard.declared.sender != kind:
            continue
        core, mean, strength = weight.state, weight.mean, sites[kind].solution.fluctuation.feedback
        carrier = system.laws[kind].carrier(heard.declared).lhs
        gained = (core * carrier, strength * core**2, -strength * mean**2)
        total -= kind.ratio * Add(*map(Average, gained)) / 2
    return total


def entropy_of(system: System, sites: Mapping[Kind, Site]) -> Expr:
    """The entropy of a Gibbs measure over N: beta times what the energy exceeds the free energy by."""
    free = free_energy_of(system, sites)
    return next(iter(system.weights.values())).beta * (energy_of(system, sites) - free)


def shared_over_n(system: System) -> Expr:
    """The energy that belongs to no site, over N."""
    return to_leading_order((in_units_of_n(system.collective.energy.expand()) / N).cancel())


def links_of(site: Site, weight: Any) -> list[tuple[Expr, Expr, int]]:
    """What a site with states and its neighbours gain of each other: a share, a factor, and of what it is.

    Two stands for the square of what the site sends, one for what it sends, zero for its response.
    """
    (heard,) = [h for h in site.heard if h.declared.states()]
    whole = (heard.factor * heard.effective()).xreplace(dict(site.means)).expand()
    strength = whole.diff(weight.mean)
    shift = whole.xreplace({weight.mean: S.Zero, heard.eta: S.Zero})
    variance = heard.factor**2 * site.covariance[heard.eta, heard.eta]
    once = S.Half if heard.declared.sender == site.kind else S.One
    terms = ((once, strength / 2, 2), (once, shift, 1), (once, variance / 2, 0))
    return [term for term in terms if term[1] != 0]


def _links(site: Site, weight: Any) -> list[Expr]:
    """The same in terms that are averaged."""
    of = {2: weight.state**2, 1: weight.state, 0: SiteResponse(weight.mean)}
    return [once * factor * of[power] for once, factor, power in links_of(site, weight)]
