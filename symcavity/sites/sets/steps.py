"""The steps of a site that projects: projection, regimes, responses in each of them, and their average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Dummy, Eq, Expr, Identity, Max, Piecewise, S, Sum, Symbol, ZeroMatrix, latex, oo

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
    return latex(bold(q, q.indices[-1]))


def projection_steps(site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
    """The projection that solves the law, its regimes, the responses in each of them, and their average."""
    key, solution = site.kind.key, site.solution
    convex = solution.convex
    zero = {site.kind.index: S.Zero}
    V, Lam, lam = (q.xreplace(zero) for q in (convex.V, convex.Lam, convex.lam))
    a = convex.components.index
    strength, softness = (e.xreplace(zero) for e in (solution.strength, solution.softness))
    base = _data_of(site) | {"naive": make.is_naive}
    signs = sign_relations(site)
    slack = [Equation(q, solution.expression(q)).xreplace(zero) for q in solution.states if q != convex.lam]
    response = response_of(site)
    size = convex.components.size
    n, stays, at_tip = tip_response(response, strength, softness)
    evidence: dict[str, Any] = {"response": response}
    J, none = response.J, ZeroMatrix(size, size)
    message = response.message.lhs
    cases: list[tuple[Expr, Any]] = [
        (S.Zero, Eq(REGIME, INTERIOR)),
        (_displaced(response.trace, strength), Eq(REGIME, TOUCHING)),
        (_displaced(at_tip, strength), Eq(REGIME, WHOLE)),
    ]
    signed = (("sign", {"relations": signs}),) if signs else ()

    def step(name: str, rule: str, claims: list[Any], *on: str, assumed: tuple[Any, ...] = (), **data: Any) -> Step:
        rests = tuple(f"{key}.{other}" for other in on)
        return make(
            f"{key}.{name}", rule, claims, data={**base, **data}, assumptions=assumed, rests_on=rests, evidence=evidence
        )

    s, law = response.s, "effective_law"
    convexity: tuple[str, dict[str, Any]] = ("convexity", {})
    claims = [Equation(Lam, lam * Anchor(convex.g, V, convex.components, a)), *slack]
    slopes = [response.law, response.constraint]
    whole = [response.inverse, response.solved, response.multiplier, response.field]
    trace = [response.message, Equation(NamedTrace(message), response.trace)]
    steps = [
        step("minimum", "set_minimum", [Equation(V, minimiser(site))], law, assumed=(convexity,)),
        step("solution", "projection", claims, law, assumed=(convexity, *signed)),
        step("multiplier", "set_multiplier", multiplier_claims(site, s), law, "solution", s=s),
        step("interior", "regime_interior", [Equation(J, Identity(size)), Equation(message, none)], law),
        step("differentiate", "regime_touching", slopes, law, "solution", s=s, H=response.H),
        step("touching", "touching_response", whole, "differentiate", P=response.P, H=response.H, s=s),
        step("touching_trace", "touching_trace", trace, "touching"),
    ]
    evidence = {**evidence, "n": n}
    tip = [Equation(J, stays), Equation(NamedTrace(message), at_tip)]
    steps.append(step("tip", "regime_tip", tip, law, "solution", size=size, n=n, edges=True))
    known = ["interior", "touching_trace", "tip"]
    if solution.cap != oo:
        cap = solution.cap.xreplace(zero)
        saturated = saturated_response(response, strength, cap)
        cases.append((_displaced(saturated.trace, strength), Eq(REGIME, SATURATED)))
        evidence = {**evidence, "saturated": saturated}
        trace = [Equation(lam, cap), saturated.field, saturated.message, Equation(NamedTrace(message), saturated.trace)]
        steps.append(step("saturated", "regime_saturated", trace, law, "solution", N=saturated.N))
        known.append("saturated")
    psi = [Equation(PSI, Piecewise(*cases))]
    steps.append(step("regimes", "regimes", psi, *known, regime=REGIME, size=size))
    claims = [Equation(DisorderAverage(s.xreplace(zero)), site.ensemble.at_site(s).xreplace(zero)) for s in wanted]
    return [*steps, step("response", "vector_response", claims, "regimes")] if claims else steps


def _data_of(site: Site) -> dict[str, Any]:
    """What all steps about a projection hold: the set, what is projected, and with which strength."""
    solution = site.solution
    convex, zero = solution.convex, {site.kind.index: S.Zero}
    V, lam, bound, cap, strength, softness = (
        e.xreplace(zero)
        for e in (convex.V, convex.lam, solution.bound, solution.cap, solution.strength, solution.softness)
    )
    sourced = [(solution.etas[h.eta], h.eta, h.source.xreplace(zero)) for h in site.heard]
    return {
        "kind": site.kind, "g": Support(convex.g, V, convex.components), "V": V, "lam": lam, "bound": bound, "cap": cap,
        "softness": softness, "tight": bound - softness * lam, "sourced": sourced, "strength": strength,
        "index": convex.components.index,
    }  # fmt: skip


def _displaced(trace: Expr, strength: Expr) -> Expr:
    """The divergence of the displacement: the self-coupling, with its terms together, times the trace of a response."""
    whole = Dummy("strength")
    return (trace.xreplace({strength: whole}) * whole).expand().xreplace({whole: strength})


def field_of(site: Site) -> Expr:
    """The cavity field that the vector of a site hears: a combination, where it hears several."""
    return Add(*(c * eta for eta, c in site.solution.etas.items()))


def minimiser(site: Site) -> Extremum:
    """The vector of a site as the minimum that its law says it is, at zero source."""
    solution, zero = site.solution, {site.kind.index: S.Zero}
    convex = solution.convex
    V, strength, bound, cap, softness = (
        e.xreplace(zero) for e in (convex.V, solution.strength, solution.bound, solution.cap, solution.softness)
    )
    level, a = Support(convex.g, V, convex.components), convex.components.index
    distance = Sum((V - field_of(site)) ** 2, convex.components.range) / 2
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
    lam, strength, bound = (e.xreplace(zero) for e in (convex.lam, solution.strength, solution.bound))
    level = Support(convex.g, convex.V.xreplace(zero), convex.components)
    length = form([s.T, s])
    fields = ((c, BoldMatrix(eta.whole(), convex.components.size, 1)) for eta, c in solution.etas.items())
    along = Add(*(c * form([T.T, s]) for c, T in fields))
    claims = [Equation(lam, (level - along) / (strength * length))]
    if solution.cap == oo:
        softness = solution.softness.xreplace(zero)
        claims.append(Equation(lam, Max(0, bound - along) / (strength * length + softness)))
    return claims
