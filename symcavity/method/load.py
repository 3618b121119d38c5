"""The load that a fixed average determines, in responses and in averages over the inserted site.

The closure of the average that is fixed is written with the responses that stand in its denominators, and solved for
the load (paper, equations 14, 40, 77 and 98).  The states of the inserted site are then put into what it averages (52
and 110), and factors that do not depend on its field leave the average: there it shows which of them cancel.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, Sum, fraction

from symcavity.method.eliminate import linear_solution, numerator
from symcavity.method.naming import at_zero
from symcavity.method.theory import Theory
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.kinds import alpha
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import CavitySymbol, DisorderAverage
from symcavity.sites.sets.solution import ProjectionSolution
from symcavity.sites.site import Site


def load_steps(theory: Theory, make: StepMaker) -> list[Step]:
    """The inverse load by each fixed average whose closure is linear in it; nothing where there is none."""
    make, steps = make.within("Self-consistent equations"), []
    for k, (equation, fixed) in enumerate(zip(theory.fixed_equations, theory.system.fixed, strict=True)):
        if equation.lhs not in theory.closures:
            continue
        inverse = inverse_load(with_responses(theory, theory.closures[equation.lhs]), fixed.rhs)
        if inverse is None:
            continue
        known = {s: value for s, value in theory.closures.items() if value.is_number}
        states = {s: average for s in theory.order_parameters if (average := state_average(theory, s)) is not None}
        written = inverse.xreplace(states).xreplace(known)
        forms = dict.fromkeys((inverse, written, taken_out(written)))
        steps.append(
            make(
                f"load.{k + 1}",
                "load",
                [Equation(1 / alpha, form) for form in forms],
                data={"fixed": fixed.lhs, "written": len(forms) > 1},
                rests_on=(f"closure.{equation.lhs}", f"fixed.{k + 1}"),
            )
        )
    return steps


def with_responses(theory: Theory, expr: Expr) -> Expr:
    """An expression in which responses stand for the denominators that they are one over."""
    rule: dict[Expr, Expr] = {}
    for symbol, value in theory.closures.items():
        top, bottom = fraction(value)
        if theory.order_parameters[symbol].has(SiteResponse) and top.is_number and not bottom.is_number:
            rule.setdefault(bottom, top / symbol)
    return expr.xreplace(rule)


def inverse_load(average: Expr, value: Expr) -> Expr | None:
    """One over the load at which an average has a value; None where it is not linear in the load."""
    solved = linear_solution(numerator(average - value, []), alpha)
    return 1 / solved[0] if solved is not None and solved[0] != 0 else None


def state_average(theory: Theory, symbol: Any) -> Expr | None:
    """What an order parameter averages, with the states of the inserted site put in as functions of its field.

    None for responses, for sites that hear several fields or have parameters of their own, and for implicit laws.
    """
    meaning = theory.order_parameters[symbol]
    if not isinstance(meaning, Average) or meaning.has(SiteResponse):
        return None
    body = meaning.body
    if site_quantities(body, Quenched):
        return None
    (kind,) = {kind for q in site_quantities(body) for kind in q.site}
    site = theory.inserted[kind]
    if len(site.heard) > 1 or site.law.quenched() or site.solution.is_implicit:
        return None
    written = body.xreplace({q: _state(site, q) for q in site_quantities(body)})
    return None if written.has(Quenched) else DisorderAverage(at_zero(written, kind))


def _state(site: Site, q: SiteQuantity) -> Expr:
    """A state by its field; the vector of a convex law by its displacement, which no formula gives."""
    solution = site.solution.without_sources()
    if not isinstance(solution, ProjectionSolution):
        return solution.expression(q)
    if q.family != solution.convex.Lam.family:
        return q
    (eta,) = (h.eta for h in site.heard)
    moved = {solution.convex.Lam.indices[-1]: q.indices[-1]}
    return ((solution.convex.V - eta) / solution.strength).xreplace(moved)


def taken_out(expr: Expr) -> Expr:
    """An expression whose averages hold only what depends on the field."""

    def one(node: DisorderAverage) -> Expr:
        around, body = node.args[0].as_independent(CavitySymbol, SiteQuantity, as_Add=False)
        if isinstance(body, Sum):
            factor, kept = body.function.as_independent(CavitySymbol, SiteQuantity, as_Add=False)
            around, body = around * factor, Sum(kept, *body.limits)
        return around * DisorderAverage(body)

    return expr.xreplace({node: one(node) for node in expr.atoms(DisorderAverage)})
