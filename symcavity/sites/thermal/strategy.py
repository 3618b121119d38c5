"""The strategy for sites at a temperature: an average over the weight of a site instead of its minimum.

The weight takes in how the others answer: to first order they add ``eta*x + F*x**2/2`` to what a state x gains, and a
field is a Gaussian of mean eta and variance ``F/beta``. Of a convex problem the minimum of what stands in the exponent
is the site at zero temperature, which is solved as it always is; averages are taken about it. Of other problems they
are sums over all states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sympy import Expr, S, Symbol, Tuple, latex, sqrt

from symcavity.algebra.signs import sign_of
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import LawFunction
from symcavity.sites.branching.strategy import Branching, sign_relations
from symcavity.sites.linear import Linear
from symcavity.sites.protocol import LawSolution, SiteProblem, Strategy
from symcavity.sites.site import Site, response_steps
from symcavity.sites.thermal.cold import at_zero_temperature, density
from symcavity.sites.thermal.ensemble import ThermalEnsemble, ThermalSolution
from symcavity.sites.thermal.parts import ZETA
from symcavity.sites.thermal.states import density_of, is_closed
from symcavity.sites.thermal.summed import (
    laid_out,
    mixture,
    moving_fields,
    weight_of,
)

FORMULAS = Branching()
AT_ZERO: tuple[Strategy, ...] = (Linear(), FORMULAS)  # how the minimum is found


def before_others(site: Site, silent: Mapping[Any, Expr]) -> Site:
    """The site before some of the others have spoken: what it hears of them and what comes back is exactly zero.

    Only sums over states are used: a field without feedback has no minimum.

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
    x, F, beta, whole = weight.state, found.feedback, weight.beta, density_of(found)
    finite = not weight.is_field and all(q.family.values for q in weight.states)
    relations = [] if finite else sign_relations(site)  # a finite sum needs no sign
    discrete = [q.xreplace(zero) for q in weight.states if not weight.is_field and q.family.values]
    smooth = [q.xreplace(zero) for q in weight.states if not weight.is_field and not q.family.values]
    data = {
        "kind": kind,
        "state": x.xreplace(zero),
        "mean": weight.mean.xreplace(zero),
        "field": found.field.xreplace(zero),
        "strength": F.xreplace(zero),
        "beta": beta,
        "field_site": weight.is_field,
    }
    several = Tuple(*weight.states) if not weight.is_field and len(weight.states) > 1 else None
    weighed = make(
        f"{key}.weight",
        "weight",
        [Equation(LawFunction(Symbol("P"), several or x, 0).xreplace(zero), whole.xreplace(here))],
        data=data,
        assumptions=(("one_state", {}),),
        rests_on=(f"{key}.effective_law",),
    )
    summed = make(
        f"{key}.solution",
        "thermal_sum",
        [Equation(weight.mean.xreplace(zero), found.mean.xreplace(here))],
        data=data | {"discrete": discrete, "smooth": smooth, "sign_assumptions": relations},
        assumptions=(("sign", {"relations": relations}),) if relations else (),
        rests_on=(f"{key}.weight",),
    )
    return [weighed, summed]


def _star(q: SiteQuantity) -> TexSymbol:
    """The name of a quantity at the minimum of the weight's exponent."""
    return TexSymbol(f"{q}*", f"{latex(q)}^{{*}}" if "^" not in latex(q) else f"\\left({latex(q)}\\right)^{{*}}")
