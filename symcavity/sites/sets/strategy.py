"""The strategy for laws that are given by a convex set: a site projects the vector that it hears."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Expr, S, Symbol, cancel, oo

from symcavity.errors import UnsupportedLaw
from symcavity.model.convex_law import read_law, regime_of
from symcavity.model.quantities import Field, SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.branches import tidy_fraction
from symcavity.sites.branching.layout import solve_site
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.sets.solution import ProjectionSolution, VectorEnsemble
from symcavity.sites.sets.steps import projection_steps
from symcavity.sites.site import Site


class Projecting:
    """Laws with a support function of a vector field: bounds on it, hard or with slack."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site hears a vector that is kept whole."""
        return any(h.declared.components for h in problem.heard)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve the scalar law between the multiplier and g(V), and recognize the projection.

        Raises
        ------
        UnsupportedLaw
            If the site hears more than one vector, or its law is not a bound on g(V).
        """
        convex = read_law(problem.law)
        text = problem.text
        backs = [(k, convex.parts[h.carrier or convex.V]) for h in problem.heard for k in h.feedback]
        if not backs or any(k.emission != convex.Lam for k, _ in backs):
            raise UnsupportedLaw(f"{text} does not give its vector multiplier.", "constraints on one vector field")
        couplings = {k.symbol: k.symbol.signed(1) for k, _ in backs} if len(backs) == 1 else {}
        total = Add(*(c * couplings.get(k.symbol, k.symbol) for k, c in backs))
        eta, strength = Symbol("x", real=True), Symbol("F", positive=True)
        level = Field("G", index=problem.law.index).at_site()
        rest = [q for q in problem.law.unknowns if q not in (convex.V, convex.Lam, *convex.parts)]
        put = {convex.level: level}
        solution = solve_site(
            [level - eta - strength * convex.lam, *(e.xreplace(put) for e in convex.scalar)],
            [(p.xreplace(put), q.xreplace(put)) for p, q in convex.pairs],
            [*rest, level],
            eta,
            [],
            text,
        )
        order = list(solution.regions)[::-1]  # a large field first: there the multiplier vanishes
        tight = None if len(order) not in (2, 3) else _soft_bound(order[1].values, convex.lam, level, eta, strength)
        if tight is None or order[0].values[convex.lam] != 0 or (tight[1] != 0 and len(order) == 3):
            raise UnsupportedLaw(
                f"{text} is not a bound on {convex.g}.",
                f"constraints {convex.g}(V) >= c, hard or with slack xi[mu] at a linear cost C*Sum(xi[mu], (mu, 1, P)) "
                "or a quadratic cost C/2*Sum(xi[mu]**2, (mu, 1, P))",
            )
        bound, softness = tight
        cap = order[2].values[convex.lam] if len(order) == 3 else oo
        if cap != oo and cap.has(eta):
            raise UnsupportedLaw(f"{text} is not a bound on {convex.g}.", "slack with a linear cost")
        tight_field = bound - (softness + strength) * convex.lam
        back = [{eta: convex.level}, {eta: tight_field}, {eta: convex.level - strength * cap}]
        states = {
            q: tuple(tidy_fraction(r.values[q].xreplace(b)) for r, b in zip(order, back, strict=False)) for q in rest
        }
        states[convex.lam] = (S.Zero, convex.lam, cap)[: len(order)]
        regime = regime_of(problem.kind)
        etas = {h.eta: convex.parts[h.carrier or convex.V] for h in problem.heard}
        found = ProjectionSolution(convex, bound, cap, states, total, S.One, regime, etas, softness=softness)
        return LawSolution(found, dict.fromkeys(couplings, 1))

    def ensemble(self, site: Site) -> VectorEnsemble:
        """The averages of the site over its Gaussian vector."""
        return VectorEnsemble(site.kind, site.solution)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The projection, its regimes, and the responses in each of them."""
        return projection_steps(site, make, wanted)

def _soft_bound(
    values: dict[SiteQuantity, Expr], lam: SiteQuantity, level: SiteQuantity, eta: Symbol, strength: Symbol
) -> tuple[Expr, Expr] | None:
    """Return (r, sigma) of a branch on which ``g(V) = r - sigma*lambda``, else None."""
    slope = values[lam].diff(eta)
    if slope == 0 or slope.has(eta) or values[level].diff(eta, 2) != 0:
        return None
    softness = cancel(-values[level].diff(eta) / slope)
    bound = cancel(values[level] + softness * values[lam])
    return None if softness.has(strength, eta) or bound.has(strength, eta) else (bound, softness)
