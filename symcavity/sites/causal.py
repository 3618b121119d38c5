"""The strategy for sites whose states move: what is known up to one time gives the states at the next.

The law needs no solving: its equations, in their order, give each state by earlier ones, whatever their slopes.
Averages stay averages over the paths of a site; responses follow an equation of motion of their own, the derivative of
the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from sympy import Add, DiracDelta, Expr, S, Symbol

from symcavity.algebra.flow import Rate, at_once, past
from symcavity.algebra.hinges import finite_slope, slope_of
from symcavity.errors import DeclarationError
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.times import other_times
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage
from symcavity.sites.protocol import Heard, LawSolution, SiteProblem, Unbranched
from symcavity.sites.site import Site


class Causal:
    """Laws whose equations give each state by earlier ones."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether states move."""
        return problem.law.time is not None

    def solve(self, problem: SiteProblem) -> LawSolution:
        """The law as it is: the reading has made sure that it can be filled step by step."""
        return LawSolution(CausalSolution(problem, {}), {})

    def ensemble(self, site: Site) -> CausalEnsemble:
        """The averages over the paths of the site."""
        return CausalEnsemble(site.kind)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """That the law is triangular in time; and the equations of motion of the responses that are needed."""
        t: Any = site.law.time
        key, data = site.kind.key, {"kind": site.kind, "time": t, "second": other_times(t)[0]}
        data["flowing"] = site.problem.flowing
        solution = make(f"{key}.solution", "causal", data=data, rests_on=(f"{key}.effective_law",))
        sources = sorted({(r.field, r.time) for body in wanted for r in body.atoms(SiteResponse)}, key=str)
        if not sources:
            return [solution]
        own = (c.xreplace(dict.fromkeys(c.atoms(Average), S.One)) for c in site.covariance.values())
        factors = (h.factor for h in site.heard)
        alike = not any(map(site_quantities, (*own, *factors)))  # as integration by parts needs the covariances
        second, third = other_times(t)
        answering = [body for body in wanted if body.has(SiteResponse)]
        parts: list[Equation] = []
        if alike and site.solution.throws:
            parts = [_by_parts(site, e, h, second, third) for e in answering for h in site.heard]
            sources = []
        elif alike and site.solution.jumps:  # integration by parts needs the responses to all fields that move
            still = [(named, time) for named, time in sources if time is None]
            sources += [(h.carrier, second) for h in site.heard if still and h.declared.time is not None]
            sources = [source for source in dict.fromkeys(sources) if source not in still]
            answering = [body for body in answering if _answers(body) & {named for named, _ in still}]
            parts = [_by_parts(site, e, _heard(site, e), second, second) for e in answering]
        claims = [c for source in sources for c in site.solution.tangents(*source)]
        claims = [Equation(_at_zero(c.lhs, site.kind), _at_zero(c.rhs, site.kind)) for c in claims]
        steps = [solution]
        if claims:
            steps.append(make(f"{key}.response", "tangent", claims, data=data, rests_on=(f"{key}.effective_law",)))
        if parts:
            data = {**data, "all": site.solution.throws}
            rests = (f"{key}.field_statistics", steps[-1].key)
            parts = [c for c in dict.fromkeys(parts) if c.rhs != 0]
            steps.append(make(f"{key}.by_parts", "moving_parts", parts, data=data, rests_on=rests))
        return steps


def _heard(site: Site, body: Expr) -> Heard:
    """The field whose source a body answers to."""
    (node,) = body.atoms(SiteResponse)
    return next(h for h in site.heard if h.carrier == node.field)


def _answers(body: Expr) -> set[Any]:
    """The names of the equations whose sources a body answers to, where these keep still."""
    return {r.field for r in body.atoms(SiteResponse) if r.time is None}


def _by_parts(site: Site, body: Expr, one: Heard, second: Any, inner: Any) -> Equation:
    """The responses of a state to the fields of its site, by Gaussian integration by parts: with them the law may jump.

    The average of what answers times one field is a sum over all fields, of the response to each times its covariance
    with that one.

    Parameters
    ----------
    site : Site
    body : Expr
        A response, with what it is averaged with.
    one : Heard
        The field.
    second, inner : Time
        The time of that field, if it moves, and the one that is summed over.
    """
    (node,) = body.atoms(SiteResponse)
    weight, t = body.xreplace({node: S.One}), node.state.time
    out: Expr = S.Zero
    for h in site.heard:
        cov = h.factor * site.covariance[h.eta, one.eta]
        if h.declared.time is None:
            answer = SiteResponse(node.state, h.carrier)
            out += DisorderAverage(_at_zero(weight * answer, site.kind)) * cov
        elif t is not None:
            answer = SiteResponse(node.state, h.carrier, inner)
            term = DisorderAverage(_at_zero(weight * answer, site.kind)) * cov.xreplace({h.declared.time: inner})
            out += past(term, inner, S.Zero, t, None if site.problem.flowing else 0)
    eta = one.eta if one.declared.time is None else one.eta.at(second)
    return Equation(_at_zero(DisorderAverage(weight * node.state * eta), site.kind), _at_zero(out, site.kind))


def _slope(expr: Expr, state: SiteQuantity) -> Expr:
    supported = "functions without jumps where couplings return and differ from site to site, or multiply states"
    return finite_slope(expr, state, f"{expr} jumps, and the theory needs its response.", supported)


def _state_of(equation: Equation) -> SiteQuantity:
    """The state that an equation gives, at once or by its rate."""
    return equation.lhs.body if isinstance(equation.lhs, Rate) else equation.lhs


def _at_zero(expr: Expr, kind: Kind) -> Expr:
    return expr.xreplace({kind.index: S.Zero})


@dataclass(frozen=True)
class CausalSolution(Unbranched):
    """The law of a site that moves.

    Attributes
    ----------
    problem : SiteProblem
    means : mapping
        The mean of each self-coupling; empty as long as they are symbols.
    """

    problem: SiteProblem
    means: Mapping[Symbol, Expr]

    @property
    def unknowns(self) -> tuple[SiteQuantity, ...]:
        """The states."""
        return self.problem.law.unknowns

    def at(self, means: Mapping[Symbol, Expr], _covariance: Mapping[tuple[Symbol, Symbol], Expr]) -> Self:
        """The same law at the mean self-couplings."""
        return replace(self, means=dict(means))

    def equations(self) -> list[Equation]:
        """The law at the mean self-couplings, without sources."""
        gone = dict.fromkeys((h.source for h in self.problem.heard), S.Zero)
        return [e.xreplace(dict(self.means)).xreplace(gone) for e in self.problem.equations()]

    def expression(self, state: SiteQuantity) -> Expr:
        """What gives a state by earlier ones.

        Raises
        ------
        DeclarationError
            If no equation gives it.
        """
        for equation in self.equations():
            if _state_of(equation).now == state.now:
                return equation.rhs
        known = ", ".join(map(str, self.unknowns))
        raise DeclarationError(f"{state} is not a state of the {self.problem.kind.sites}.", known)

    @property
    def jumps(self) -> bool:
        """Whether a law jumps with something that keeps still, as labels do that are the sign of a teacher's field."""
        still = [q for e in self.equations() for q in site_quantities(e.rhs, Variable, Field) if q.time is None]
        alone = all(not h.feedback for h in self.problem.heard if h.declared.time is None)
        return alone and any(slope_of(e.rhs, q).has(DiracDelta) for e in self.equations() for q in still)

    @property
    def throws(self) -> bool:
        """Whether a law jumps with something that moves."""
        moving = [q for e in self.equations() for q in site_quantities(e.rhs, Variable, Field) if q.time is not None]
        return any(slope_of(e.rhs, q).has(DiracDelta) for e in self.equations() for q in moving)

    def tangents(self, named: SiteQuantity | None, time: Expr | None) -> list[Equation]:
        """The equations of motion of the responses to a source: the derivative of the law.

        Parameters
        ----------
        named : SiteQuantity or None
            What names the equation of the source, where the site hears several fields.
        time : Expr or None
            Its time.
        """
        out = []
        for equation, declared in zip(self.equations(), self.problem.law.equations, strict=True):
            here = [h for h in self.problem.heard if declared.difference.has(h.declared.symbol)]
            rhs = sum((self._memory(h, named, time) for h in here), self._local(declared.rhs, named, time))
            for h in here:
                if h.carrier == named:
                    rhs += S.One if time is None else at_once(h.declared.time, time, flowing=self.problem.flowing)
            state = _state_of(equation)
            lhs = self._response(state, named, time)
            if lhs != 0 and state is not equation.lhs:
                lhs = Rate(lhs, state.time)
            out += [] if lhs == 0 else [Equation(lhs, rhs)]  # what keeps still does not answer to what moves
        return out

    def _response(self, state: SiteQuantity, named: SiteQuantity | None, time: Expr | None) -> Expr:
        return SiteResponse(state, named, time) if state.time is not None or time is None else S.Zero

    def _local(self, expr: Expr, named: SiteQuantity | None, time: Expr | None) -> Expr:
        """The response of an expression in states, by the chain rule; kinks have the slopes of their pieces."""
        states = site_quantities(expr, Variable, Field)
        answers = ((q, self._response(q, named, time)) for q in states)
        return Add(*(_slope(expr, q) * answer for q, answer in answers if answer != 0))

    def _memory(self, h: Heard, named: SiteQuantity | None, time: Expr | None) -> Expr:
        """The feedback of the responses up to now."""
        out: Expr = S.Zero
        for k in h.feedback:
            t = k.through.time
            back = k.symbol.xreplace(dict(self.means))
            if t is None:
                continue  # what is sent and keeps still is given
            s, u = other_times(t)
            body = back.xreplace({s: u}) * self._local(k.emission, named, time).xreplace({t: u})
            if body != 0:
                out += h.factor * past(body, u, S.Zero if time is None else time, t, k.delay)
        return out


@dataclass(frozen=True)
class CausalEnsemble:
    """The paths of a site: averages over them keep their name, since only numbers give them.

    Attributes
    ----------
    kind : Kind
    """

    kind: Kind

    def at_site(self, body: Expr) -> Expr:
        """The average over the paths of one site."""
        return DisorderAverage(_at_zero(body, self.kind))

    average = at_site
