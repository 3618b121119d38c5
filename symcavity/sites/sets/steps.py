"""The steps of a site that projects: projection, regimes, responses in each of them, and their average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Eq, Expr, Identity, Max, Piecewise, S, Sum, Symbol, ZeroMatrix, latex, oo
from sympy.printing.latex import LatexPrinter

from symcavity.algebra.matrices import BoldMatrix, NamedTrace, form
from symcavity.model.equations import Equation
from symcavity.model.extrema import Extremum
from symcavity.model.quantities import SiteQuantity
from symcavity.model.support import Anchor, Support, bold
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.shapes.base import INTERIOR, SATURATED, TOUCHING, WHOLE
from symcavity.sites.branching.strategy import sign_relations
from symcavity.sites.sets.averages import PSI, REGIME
from symcavity.sites.sets.response import TouchingResponse, saturated_response, tip_response, touching_response
from symcavity.sites.site import Site


def response_of(site: Site) -> TouchingResponse:
    """The response of the inserted site where the set touches at one point."""
    solution = site.solution
    convex = solution.convex
    zero = {site.kind.index: S.Zero}
    V, Lam = (bold_tex(q.xreplace(zero)) for q in (convex.V, convex.Lam))
    lam = convex.lam.xreplace(zero)
    names = {"V": V, "Lambda": Lam, "lambda": latex(lam), "I": "\\bm{I}^{0}"}
    strength, softness = (e.xreplace(zero) for e in (solution.strength, solution.softness))
    return touching_response(convex.components.size, strength, lam, names, softness)


def bold_tex(q: SiteQuantity) -> str:
    """TeX of a vector of a site, in bold and without its component."""
    return bold(LatexPrinter(), q, q.indices[-1])


def projection_steps(site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
    """The projection that solves the law, its regimes, the responses in each of them, and their average."""
    key, solution = site.kind.key, site.solution
    convex = solution.convex
    zero = {site.kind.index: S.Zero}
    V, Lam, lam = (q.xreplace(zero) for q in (convex.V, convex.Lam, convex.lam))
    node = Support(convex.g, V, convex.components)
    a = convex.components.index
    rests = (f"{key}.effective_law",)
    strength = solution.strength.xreplace(zero)
    base: dict[str, Any] = {"kind": site.kind, "g": node, "V": V, "lam": lam}
    base |= {"bound": solution.bound.xreplace(zero), "cap": solution.cap.xreplace(zero)}
    softness = solution.softness.xreplace(zero)
    base |= {"softness": softness, "tight": base["bound"] - softness * lam}
    heard = site.heard[0]
    base |= {"eta": heard.eta, "source": heard.source.xreplace(zero), "strength": strength}
    base |= {"index": a, "naive": make.is_naive}
    signs = sign_relations(site)
    slack = [Equation(q, solution.expression(q)).xreplace(zero) for q in solution.states if q != convex.lam]
    response = response_of(site)
    evidence: dict[str, Any] = {"response": response}
    size = convex.components.size
    n, stays, at_tip = tip_response(response, strength, softness)
    J, none = response.J, ZeroMatrix(size, size)
    message = response.message.lhs
    cases: list[tuple[Expr, Any]] = [
        (S.Zero, Eq(REGIME, INTERIOR)),
        ((response.trace * strength).expand(), Eq(REGIME, TOUCHING)),
        ((at_tip * strength).expand(), Eq(REGIME, WHOLE)),
    ]
    steps = [
        make(
            f"{key}.minimum",
            "set_minimum",
            [Equation(V, minimiser(site))],
            data=base,
            assumptions=(("convexity", {}),),
            rests_on=rests,
            evidence=evidence,
        ),
        make(
            f"{key}.solution",
            "projection",
            [Equation(Lam, lam * Anchor(convex.g, V, convex.components, a)), *slack],
            data=base,
            assumptions=(("convexity", {}), *((("sign", {"relations": signs}),) if signs else ())),
            rests_on=rests,
            evidence=evidence,
        ),
        make(
            f"{key}.multiplier",
            "set_multiplier",
            multiplier_claims(site, response.s),
            data={**base, "s": response.s},
            rests_on=(f"{key}.effective_law", f"{key}.solution"),
            evidence=evidence,
        ),
        make(
            f"{key}.interior",
            "regime_interior",
            [Equation(J, Identity(size)), Equation(message, none)],
            data=base,
            rests_on=rests,
            evidence=evidence,
        ),
        make(
            f"{key}.differentiate",
            "regime_touching",
            [response.law, response.constraint],
            data={**base, "s": response.s, "H": response.H},
            rests_on=(f"{key}.effective_law", f"{key}.solution"),
            evidence=evidence,
        ),
        make(
            f"{key}.touching",
            "touching_response",
            [response.inverse, response.solved, response.multiplier, response.field],
            data={**base, "P": response.P, "H": response.H, "s": response.s},
            rests_on=(f"{key}.differentiate",),
            evidence=evidence,
        ),
        make(
            f"{key}.touching_trace",
            "touching_trace",
            [response.message, Equation(NamedTrace(message), response.trace)],
            data=base,
            rests_on=(f"{key}.touching",),
            evidence=evidence,
        ),
        make(
            f"{key}.tip",
            "regime_tip",
            [Equation(J, stays), Equation(NamedTrace(message), at_tip)],
            data={**base, "size": size, "n": n},
            rests_on=(f"{key}.effective_law", f"{key}.solution"),
            evidence={**evidence, "n": n},
        ),
    ]
    known = [f"{key}.interior", f"{key}.touching_trace", f"{key}.tip"]
    if solution.cap != oo:
        cap = solution.cap.xreplace(zero)
        saturated = saturated_response(response, strength, cap)
        cases.append(((saturated.trace * strength).expand(), Eq(REGIME, SATURATED)))
        evidence = {**evidence, "saturated": saturated}
        known.append(f"{key}.saturated")
        steps.append(
            make(
                f"{key}.saturated",
                "regime_saturated",
                [
                    Equation(lam, cap),
                    saturated.field,
                    saturated.message,
                    Equation(NamedTrace(message), saturated.trace),
                ],
                data={**base, "N": saturated.N},
                rests_on=(f"{key}.effective_law", f"{key}.solution"),
                evidence=evidence,
            )
        )
    steps.append(
        make(
            f"{key}.regimes",
            "regimes",
            [Equation(PSI, Piecewise(*cases))],
            data={**base, "regime": REGIME, "size": size},
            rests_on=tuple(known),
            evidence={**evidence, "n": n},
        )
    )
    claims = [Equation(DisorderAverage(s.xreplace(zero)), site.ensemble.at_site(s).xreplace(zero)) for s in wanted]
    if claims:
        steps.append(
            make(
                f"{key}.response",
                "vector_response",
                claims,
                data=base,
                rests_on=(f"{key}.regimes",),
                evidence=evidence,
            )
        )
    return steps


def minimiser(site: Site) -> Extremum:
    """The vector of a site as the minimum that its law says it is, at zero source."""
    solution, zero = site.solution, {site.kind.index: S.Zero}
    convex = solution.convex
    V, strength, bound, cap, softness = (
        e.xreplace(zero) for e in (convex.V, solution.strength, solution.bound, solution.cap, solution.softness)
    )
    level, a = Support(convex.g, V, convex.components), convex.components.index
    distance = Sum((V - site.heard[0].eta) ** 2, convex.components.range) / 2
    if softness != 0:
        distance += strength * Max(0, bound - level) ** 2 / (2 * softness)
    elif cap != oo:
        distance += strength * cap * Max(0, bound - level)
    hard = softness == 0 and cap == oo
    return Extremum(distance, Symbol(V.family.name), level >= bound if hard else True, a)


def multiplier_claims(site: Site, s: BoldMatrix) -> list[Equation]:
    """The multiplier by the anchor point: the law times the anchor point, with ``V.s = g(V)`` (Euler)."""
    solution, zero = site.solution, {site.kind.index: S.Zero}
    convex = solution.convex
    T = BoldMatrix(site.heard[0].eta.whole(), convex.components.size, 1)
    lam, strength, bound = (e.xreplace(zero) for e in (convex.lam, solution.strength, solution.bound))
    level = Support(convex.g, convex.V.xreplace(zero), convex.components)
    length, along = form([s.T, s]), form([T.T, s])
    claims = [Equation(lam, (level - along) / (strength * length))]
    if solution.cap == oo:
        softness = solution.softness.xreplace(zero)
        claims.append(Equation(lam, Max(0, bound - along) / (strength * length + softness)))
    return claims
