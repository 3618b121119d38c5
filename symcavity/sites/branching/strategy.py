"""The strategy for laws with pairs, kinks and smooth functions: enumerate branches, lay them out, average."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import And, Expr, Piecewise, S, StrictGreaterThan, StrictLessThan
from sympy.core.relational import Relational

from symcavity.algebra.indexed import diagonal
from symcavity.model.equations import Equation
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.feedback import solve_with_feedback
from symcavity.sites.branching.solution import Region
from symcavity.sites.loose import open_multipliers
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site, response_steps


class Branching:
    """Any law whose pairs and kinks have linear arguments; what is smooth and not linear stays implicit."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:  # noqa: ARG002 - the protocol's signature
        """It is the general case."""
        return True

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve the law for every value of the inner field; raises IllPosed or UnsupportedLaw where that fails."""
        return solve_with_feedback(problem)

    def ensemble(self, site: Site) -> SiteEnsemble:
        """The averages of the site over its Gaussian fields."""
        etas = tuple(h.eta for h in site.problem.ordered())
        return SiteEnsemble(site.kind, site.solution, etas, dict(site.covariance), site.sources())

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The states as functions of the fields, branch by branch, and their averaged responses."""
        after = f"{site.kind.key}.solution"
        return [self._solution(site, make), *response_steps(site, make, wanted, after)]

    def _solution(self, site: Site, make: StepMaker) -> Step:
        key, zero = site.kind.key, {site.kind.index: S.Zero}
        eta = site.problem.inner().eta
        solution = site.solution
        here = {plain: source.xreplace(zero) for source, plain in site.problem.plain_sources().items()} | zero
        relations = sign_relations(site)
        branches: list[Any] = []
        t = solution.reflection * eta
        for alike in _merged(solution.regions):
            low, high, values = alike[0].low, alike[-1].high, alike[0].values
            bounds = [t > low] if low is not None else []
            bounds += [t < high] if high is not None else []
            condition = And(*bounds).xreplace(here) if bounds else None
            branches.append(([], condition, {q.xreplace(zero): v.xreplace(here) for q, v in values.items()}))
        claims = [Equation(q.xreplace(zero), _named(solution.expression(q), here)) for q in solution.unknowns]
        implicit = solution.is_implicit
        if implicit:
            claims.insert(0, Equation(eta, _named(solution.fixing(), here)))
        several = len(branches) > 1
        return make(
            f"{key}.solution",
            "implicit" if implicit else "branches",
            claims,
            data={
                "kind": site.kind,
                "branches": branches if several and not implicit else [],
                "field": eta,
                "paired": bool(site.law.pairs),
                "convex": site.problem.convex,
                "switches": solution.well is not None,
                **({"followed": True} if solution.followed else {}),
                "domains": [r.xreplace(here) for r in solution.domains],
                "loose": [m.xreplace(zero) for m in open_multipliers(site.law.pairs, site.law.unknowns)]
                if solution.faces
                else [],
                "sign_assumptions": relations,
            },
            assumptions=(("sign", {"relations": relations}),) if relations else (),
            rests_on=(f"{key}.effective_law",),
        )


def _merged(regions: Sequence[Region]) -> list[list[Region]]:
    """Regions in their order, in runs that have the same states: a kink that no state shows parts nothing."""
    runs: list[list[Region]] = []
    for region in regions:
        if runs and region.low == runs[-1][-1].high and region.values == runs[-1][-1].values:
            runs[-1].append(region)
        else:
            runs.append([region])
    return runs


def _named(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """A state with other names in it; cases of one value stay apart, each under the conditions of its own."""
    if not isinstance(expr, Piecewise):
        return expr.xreplace(rule)
    return Piecewise(*((value.xreplace(rule), test.xreplace(rule)) for value, test in expr.args), evaluate=False)


def sign_relations(site: Site) -> list[Any]:
    """The signs that the solution takes: of mean self-couplings, of quenched parameters, and of denominators."""
    out = [
        (StrictGreaterThan if s > 0 else StrictLessThan)(diagonal(site.means[f]), 0, evaluate=False)
        for f, s in site.signs.items()
        if site.means.get(f, 0) != 0
    ]
    if S.true in site.solution.assumed:  # a denominator is positive by the signs that means have
        known = [m for f in site.means if f not in site.signs and (m := diagonal(site.means[f])).is_zero is False]
        out += [StrictLessThan(m, 0, evaluate=False) for m in known if m.is_negative]
        out += [StrictGreaterThan(m, 0, evaluate=False) for m in known if m.is_positive]
    out += [
        StrictGreaterThan(q.at_site(), 0, evaluate=False)
        for q in site.law.quenched()
        if q.positive and q.law is None
    ]
    out += [c for c in site.solution.assumed if isinstance(c, Relational)]
    zero = {site.kind.index: S.Zero}
    at_zero = (c.func(*(side.xreplace(zero) for side in c.args), evaluate=False) for c in out)
    return list(dict.fromkeys(at_zero))
