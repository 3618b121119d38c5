"""One side of the system whose law is given by a convex set: its sites are projections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Expr, KroneckerDelta, S, Symbol, cancel, oo

from symcavity.errors import UnsupportedLaw
from symcavity.method.inserted import Side
from symcavity.model.convex_law import ConvexLaw, read_law, regime_of
from symcavity.model.quantities import Field, SiteQuantity
from symcavity.record.symbols import ComponentSymbol
from symcavity.sites.branches import tidy_fraction
from symcavity.sites.scalar import solve_site
from symcavity.sites.sets import ProjectionSolution, VectorEnsemble


@dataclass
class VectorSide(Side):
    """The theory of a side whose sites are projections."""

    convex: ConvexLaw | None = None

    def solve(self) -> None:
        """Solve the scalar law between the multiplier and g(V), and recognise the projection."""
        convex = self.convex = read_law(self.law)
        text = f"The law of a {self.side} site"
        (heard,) = self.heard
        (emission,) = heard.couplings or (None,)
        if emission != convex.Lam:
            raise UnsupportedLaw(f"{text} does not answer by its vector multiplier.", "constraints on one vector field")
        F, mean = heard.couplings[emission]
        eta, strength = Symbol("x", real=True), Symbol("F", positive=True)
        level = Field("G", index=self.law.index).at_site()
        rest = [q for q in self.law.unknowns if q not in (convex.V, convex.Lam)]
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
        regime = regime_of(self.side)
        signed = ComponentSymbol(F.base, F.side, F.indices, positive=True)
        heard.couplings = {emission: (signed, mean)}
        self.signs = ((signed, 1),)
        self.generic = ProjectionSolution(  # type: ignore[assignment]
            convex, bound, cap, states, signed, S.One, regime, softness=softness
        )

    def strength(self) -> Expr:
        """The mean self-coupling: the factor in front of the identity matrix."""
        (mean,) = self.means().values()
        return without_deltas(mean)

    def solution(self) -> Any:
        """The solution at the mean self-coupling, for the variance of the field."""
        (heard,) = self.heard
        generic: Any = self.generic
        parts = (generic.bound, generic.cap, generic.states)
        variance = self.covariance[heard.eta, heard.eta]
        return ProjectionSolution(
            self.convex,  # type: ignore[arg-type]
            *parts,
            self.strength(),
            variance,
            generic.regime,
            softness=generic.softness,
        )

    def ensemble(self) -> Any:
        """The Gaussian ensemble of the site."""
        return VectorEnsemble(self.side, self.solution())


def as_hearing(side: Side) -> Side:
    """Return the side as one of projections, if what its sites hear is a vector."""
    if not any(f.components for f in side.law.fields):
        return side
    covariance = {pair: without_deltas(value) for pair, value in side.covariance.items()}
    return VectorSide(side.law, side.heard, covariance, side.covariance_sums, side.naive)


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


def without_deltas(expr: Expr) -> Expr:
    """The factor in front of the identity matrix."""
    return expr.xreplace(dict.fromkeys(expr.atoms(KroneckerDelta), S.One))


__all__ = ["VectorSide", "as_hearing"]
