"""The closure of a theory of states that move: the laws of single sites, and averages over their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Expr

from symcavity.algebra.flow import at_once
from symcavity.method.insert import second_component
from symcavity.method.naming import at_zero
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.noise import Noise
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.model.system import System
from symcavity.model.times import other_times
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.site import Site


def laws_of_motion(sites: Mapping[Kind, Site]) -> list[Equation]:
    """The law of the new site of each kind, at zero sources, and the covariances of its cavity fields."""
    out = []
    for kind, site in sites.items():
        out += [at_zero(e, kind) for e in site.solution.equations()]
        seen = []
        for h in site.heard:
            seen.append(h)
            for g in seen:
                eta = h.eta if h.declared.time is None else h.eta.at(*_second(h))
                out.append(Equation(DisorderAverage(g.eta * eta), at_zero(site.covariance[g.eta, h.eta], kind)))
        out += [at_zero(e, kind) for e in noise_statistics(site)]
    return out


def shared_laws(system: System) -> list[Equation]:
    """What gives each variable that all sites share, in averages over the new site."""
    out = []
    for e in system.shared:
        averages = {a: DisorderAverage(at_zero(a.body, kind_of_kernel(a))) for a in e.rhs.atoms(Average)}
        out.append(Equation(e.lhs, e.rhs.xreplace(averages)))
    return out


def noise_statistics(site: Site) -> list[Equation]:
    """The covariance of each noise of a site: at different times its values are independent."""
    exprs = [*(e.difference for e in site.law.equations), *(k.emission for h in site.heard for k in h.feedback)]
    out = []
    for here in sorted({q.now for e in exprs for q in site_quantities(e, Noise)}, key=str):
        t: Any = here.family.over
        s = other_times(t)[0]
        size = here.family.variance * at_once(t, s, flowing=site.problem.flowing)
        out.append(Equation(DisorderAverage(here * here.xreplace({t: s})), size))
    return out


def _second(h: Any) -> tuple[Any, ...]:
    return tuple(second_component(h.declared).values())


def kind_of_kernel(meaning: Expr) -> Kind:
    """The kind of site that an order parameter is an average over."""
    found = {k for q in site_quantities(meaning) for k in q.site}
    found |= {k for r in meaning.atoms(SiteResponse) for k in r.state.site}
    return next(iter(found))


def _at_new_site(entry: Equation) -> Equation:
    for kind in entry.lhs.site:
        entry = at_zero(entry, kind)
    return entry


def moving_steps(theory: Any, make: StepMaker) -> list[Step]:
    """Each order parameter by the average over paths that it stands for, and the closed system."""
    make = make.within("Self-consistent equations")
    steps = []
    for site in theory.inserted.values():
        if found := noise_statistics(site):
            claims = [at_zero(e, site.kind) for e in found]
            steps.append(make(f"{site.kind.key}.noise", "noise", claims, data={"kind": site.kind}))
    place = list(theory.inserted)
    by_site = sorted(theory.closures, key=lambda s: place.index(kind_of_kernel(theory.order_parameters[s])))
    for symbol in by_site:
        kind = kind_of_kernel(theory.order_parameters[symbol])
        response = theory.order_parameters[symbol].has(SiteResponse)
        steps.append(
            make(
                f"closure.{symbol.base}",
                "path_average",
                [Equation(symbol, theory.closures[symbol])],
                data={"symbol": symbol, "meaning": theory.order_parameters[symbol], "kind": kind},
                assumptions=(("self_averaging", {}),),
                rests_on=(f"{kind.key}.{'response' if response else 'solution'}",),
            )
        )
    if found := shared_laws(theory.system):
        data = {"globals": [next(q.now for q in site_quantities(e.lhs)) for e in found]}
        steps.append(make("shared", "shared_motion", found, data=data, assumptions=(("self_averaging", {}),)))
    initial = [_at_new_site(Equation(e.lhs, e.rhs)) for e in theory.system.initial]
    written = [e.difference for e in theory.equations]
    plain = [*theory.system.parameters, *(k.ratio for k in theory.system.kinds if k.ratio.is_Symbol)]
    used = set().union(*(e.free_symbols for e in [*written, *(e.difference for e in initial)]))
    given = [q for q in theory.system.quenched if isinstance(q, Quenched) and q.law is None]
    steps.append(
        make(
            "closed_system",
            "moving_system",
            [*theory.equations, *initial],
            data={
                "unknowns": list(theory.order_parameters),
                "parameters": [*(s for s in plain if s in used), *given],
                "time": theory.system.time,
                "flowing": theory.system.flowing,
            },
            rests_on=tuple(s.key for s in steps),
        )
    )
    return steps
