"""The single site whose law is given by a convex set: a projection, and its Gaussian averages.

The law is ``V = T + F*Lambda + I`` with ``Lambda = lambda * grad g(V)`` and a scalar law between the
multiplier ``lambda`` and ``g(V)``.  The scalar law is solved like any other, with ``g(V)`` in place of its
field; what comes out must be the graph of a bound, ``g(V) >= r`` with ``0 <= lambda <= C``, or of
a soft bound, ``g(V) >= r - sigma*lambda``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Add, Dummy, Eq, Expr, Max, Mul, Ne, Piecewise, S, Sum, Symbol, cancel, oo, sqrt
from sympy.core.relational import Relational, StrictGreaterThan

from symcavity.algebra.indexed import diagonal
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.convex_law import ConvexLaw
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.shapes.base import INTERIOR, SATURATED
from symcavity.sites.branching.branches import tidy_fraction
from symcavity.sites.protocol import Unbranched
from symcavity.sites.quenched_laws import quenched_average
from symcavity.sites.sets.averages import GAP2, GV, LAM, PSI, REGIME, SLOPE2, V2, component, projection_average


@dataclass(frozen=True)
class ProjectionSolution(Unbranched):
    """The states of the site as the projection of its field.

    Attributes
    ----------
    bound, cap, softness : Expr
        ``g(V) >= bound - softness*lambda`` and ``lambda <= cap``; one of cap and softness is trivial.
    states : dict
        Every scalar state by the multiplier and g(V), on each of the branches ``lambda = 0``,
        ``g = bound`` and ``lambda = cap``.
    strength : Expr
        The self-coupling; of several fields the combination that V hears.
    variance : Expr
        Of one component of the field.
    etas : dict
        The cavity fields, with their factors in the field that V hears.
    """

    convex: ConvexLaw
    bound: Expr
    cap: Expr
    states: dict[SiteQuantity, tuple[Expr, ...]]
    strength: Expr
    variance: Expr
    regime: SiteQuantity
    etas: dict[Symbol, Expr]
    softness: Expr = S.Zero

    @property
    def unknowns(self) -> tuple[SiteQuantity, ...]:
        """All variables of the site."""
        return (self.convex.V, self.convex.Lam, *self.states)

    def xreplace(self, rule: dict[Any, Any]) -> ProjectionSolution:
        """Replace symbols throughout."""
        names = ("bound", "cap", "strength", "variance", "softness")
        states = {q: tuple(v.xreplace(rule) for v in values) for q, values in self.states.items()}
        return replace(self, states=states, **{name: getattr(self, name).xreplace(rule) for name in names})

    def at(self, means: Mapping[Any, Expr], covariance: Mapping[Any, Expr]) -> ProjectionSolution:
        """The solution at the mean self-coupling, for the variance of a component of the field."""
        variance = Add(
            *(a * b * diagonal(covariance[one, two]) for one, a in self.etas.items() for two, b in self.etas.items())
        )
        return replace(self.xreplace({F: diagonal(mean) for F, mean in means.items()}), variance=variance)

    @property
    def assumed(self) -> tuple[Any, ...]:
        """What is positive by convexity: the combination of several self-couplings has no sign of its own."""
        return (StrictGreaterThan(self.strength, 0, evaluate=False),) if len(self.etas) > 1 else ()

    def expression(self, state: SiteQuantity) -> Expr:
        """A state in terms of the others: the vectors by the law, scalars by the multiplier and g(V)."""
        convex = self.convex
        if state == convex.Lam:
            a = convex.components.index
            return convex.lam * Anchor(convex.g, convex.V, convex.components, a)
        if state in (convex.V, convex.lam):
            return state
        return self.value(state).xreplace({convex.level: Support(convex.g, convex.V, convex.components)})

    def value(self, state: SiteQuantity) -> Expr:
        """A scalar state by the multiplier and g(V), one formula for all branches.

        The state is continuous.  Beyond the bound it moves with g(V) alone, and on the bound with the multiplier.
        """
        low, middle, *high = self.states[state]
        level, bound = self.convex.level, self.bound
        above, below = bound + Max(0, level - bound), bound - Max(0, bound - level)
        if not high and self.softness == 0:
            above = level  # a hard bound is never missed
        out = middle + low.xreplace({level: above}) - low.xreplace({level: bound})
        if high:
            out += high[0].xreplace({level: below}) - high[0].xreplace({level: bound})
        return tidy_fraction(out) if not out.has(Max) else out.expand()

    # -- in standard units -----------------------------------------------------------------------

    @property
    def standard_bound(self) -> Expr:
        """The bound on g(v), where v is V in units of the standard deviation of the field."""
        return self.bound / sqrt(self.variance)

    @property
    def standard_cap(self) -> Expr:
        """The bound on the multiplier in standard units."""
        return oo if self.cap == oo else self.cap * self.strength / sqrt(self.variance)

    @property
    def standard_softness(self) -> Expr:
        """The softness in standard units."""
        return self.softness / self.strength


@dataclass(frozen=True)
class VectorEnsemble:
    """A site that projects a Gaussian vector: averages of its states and responses."""

    kind: Kind
    solution: ProjectionSolution

    def average(self, body: Expr) -> Expr:
        """Average an expression in this site's quantities over its field and its quenched parameters."""
        return quenched_average(self.at_site(body))

    def at_site(self, body: Expr) -> Expr:
        """Average over the field only: a function of the site's quenched parameters."""
        solution = self.solution
        convex = solution.convex
        q, S_ = solution.variance, solution.strength
        body = body.xreplace({node: convex.level for node in body.atoms(Support) if node.body == convex.V})
        inner = body.xreplace({s: self._sum(s) for s in body.atoms(Sum)})
        rule: dict[Any, Expr] = {convex.lam: sqrt(q) / S_ * LAM, solution.regime: REGIME}
        for state in site_quantities(inner):
            if state.family == convex.V.family:
                rule[state] = sqrt(q) * component("v", self._which(state))
            elif state.family == convex.Lam.family:
                rule[state] = sqrt(q) / S_ * component("d", self._which(state))
        inner = self._by_branches(inner).xreplace({convex.level: sqrt(q) * GV})
        left = [*inner.atoms(SiteResponse)] + [
            x for x in site_quantities(inner) if x not in rule and not isinstance(x.family, Quenched)
        ]
        if left:
            raise UnsupportedLaw(
                f"{left[0]} in {body} has no average at a site of this law.",
                f"{', '.join(map(str, solution.unknowns))}, and traces of responses",
                f"Sum(response({convex.Lam}), ({convex.components.index}, ...))",
            )
        return projection_average(
            inner.xreplace(rule),
            convex.g,
            convex.components.size,
            solution.standard_bound,
            solution.standard_cap,
            solution.standard_softness,
        )

    def _by_branches(self, body: Expr) -> Expr:
        """Put the scalar states in; where the body holds conditions, they are decided on each branch apart.

        A state at the end of its range is there on a whole branch, and the branch is known: no computed number
        is compared with the end.
        """
        solution = self.solution
        if not body.has(Relational):
            return body.xreplace({s: solution.value(s) for s in solution.states if s != solution.convex.lam})
        values = [self._on_branch(body, k) for k in range(len(solution.states[solution.convex.lam]))]
        low, middle, *high = values
        if all(v == low for v in values):
            return low
        if (low, *values[1:]) == (S.Zero, *(S.One for _ in values[1:])):
            return Piecewise((1, solution.convex.lam > 0), (0, True)).xreplace({solution.convex.lam: LAM})
        edges = [(low, INTERIOR), *((v, SATURATED) for v in high)]
        if not any(v.has(*solution.unknowns, solution.convex.level) for v in values):
            return middle + Add(*((v - middle) * Piecewise((1, Eq(REGIME, r)), (0, True)) for v, r in edges))
        tests = [Eq(REGIME, INTERIOR), *(Ne(REGIME, SATURATED) for _ in high), S.true]
        cases = list(zip(values, tests, strict=True))
        while cases[-2][0] == cases[-1][0]:
            del cases[-2]
        return Piecewise(*cases[:-1], (cases[-1][0], True))

    def _on_branch(self, body: Expr, branch: int) -> Expr:
        """A body with conditions, on one branch: the states that it names, and which of the conditions hold."""
        solution, (lam, level) = self.solution, (self.solution.convex.lam, self.solution.convex.level)
        there = {s: v[branch] for s, v in solution.states.items() if s != lam}
        inside = Dummy("lambda", positive=True)  # between its ends, on the middle branch
        known = {lam: (S.Zero, inside, solution.cap)[branch]}
        if branch == 1:
            known[level] = solution.bound - solution.softness * inside
        decided = {}
        for test in body.atoms(Relational):
            here = test.xreplace(there).xreplace(known)
            if isinstance(here, Eq | Ne) and here.has(inside, level):
                here = S(isinstance(here, Ne))  # what varies with the field has no value with a probability
            decided[test] = here.xreplace({inside: lam})
        return body.xreplace(decided).xreplace(there)

    @staticmethod
    def _which(state: SiteQuantity) -> Expr:
        k = state.indices[-1]
        if not k.is_Integer:
            raise UnsupportedLaw(
                f"{state} stands alone in an average.", "sums over the components, or a component by its number"
            )
        return k

    def _sum(self, total: Sum) -> Expr:
        """A sum over the components, by invariants of the projection."""
        solution, convex = self.solution, self.solution.convex
        q, S_ = solution.variance, solution.strength
        (a, *_), *others = total.limits
        if any((low, high) != tuple(convex.components.range)[1:] for _, low, high in total.limits):
            raise UnsupportedLaw(f"{total} does not run over all components.", str(convex.components.range))
        if others:
            one, other = (convex.Lam.xreplace({convex.components.index: k}) for k in (a, others[0][0]))
            share = cancel(total.function / SiteResponse(one, other) ** 2)
            if share.has(SiteResponse, SiteQuantity):
                what = f"The sum {total} over components has no average here."
                raise UnsupportedLaw(what, f"{SiteResponse(one, other)}**2")
            return share * SLOPE2 / S_**2
        V, Lam = (x.xreplace({x.indices[-1]: a}) for x in (convex.V, convex.Lam))
        v, d, r, j = (Dummy(n) for n in "vdrj")
        marked = total.function.xreplace({V: v, Lam: d, SiteResponse(Lam): r, SiteResponse(V): j}).expand()
        values = {
            v**2: q * V2,
            d**2: q / S_**2 * GAP2,
            v * d: q / S_ * LAM * GV,
            r: PSI / S_,
            j: PSI + convex.components.size,
            S.One: convex.components.size,
        }
        out = S.Zero
        for term in Add.make_args(marked):
            factors = [f for f in Mul.make_args(term) if f.has(v, d, r, j)]
            monomial = Mul(*factors)
            if monomial not in values:
                raise UnsupportedLaw(
                    f"The sum {total} over components has no average here.",
                    f"sums of {V}**2, {Lam}**2, {V}*{Lam}, {SiteResponse(Lam)}",
                )
            out += cancel(term / monomial) * values[monomial]
        return out
