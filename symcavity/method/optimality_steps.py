"""The record of optimality: the Lagrangian of a problem, and its stationarity in each variable."""

from __future__ import annotations

from sympy import Symbol

from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker


def optimality_steps(system: System, make: StepMaker) -> list[Step]:
    """The Lagrangian and its optimality conditions."""
    kkt, make = system.record, make.within("Optimality conditions")
    rule = {f.symbol: f.as_sum for f in kkt.fields}
    multipliers = [(m, expr.xreplace(rule), equality) for m, expr, equality in kkt.multipliers]
    multipliers += [(nu, c.total.xreplace(rule), c.equality) for nu, c in kkt.conditions]
    steps = [
        make(
            "lagrangian",
            "lagrangian",
            [Equation(Symbol("L"), kkt.total)],
            data={
                "multipliers": multipliers,
                "auxiliary": [(bound, kink.xreplace(rule)) for bound, kink in kkt.auxiliary],
                "mean": kkt.problem.is_mean,
                "norms": [(n.node.xreplace(rule), n.product.xreplace(rule), n.slack, n.s) for n in kkt.norms],
            },
            assumptions=(("convexity", {}),),
            rests_on=("problem",),
        )
    ]
    for dual, _ in kkt.duals:
        equation = next(e for law in system.laws.values() for e in law.equations if e.lhs == dual)
        steps.append(
            make(
                f"dual.{dual.family.name}",
                "dual",
                [equation],
                data={"dual": dual, "fields": system.fields_in(equation)},
                rests_on=("lagrangian",),
            )
        )
    for state, equation in kkt.stationarity:
        name = state.family.name if isinstance(state, SiteQuantity) else str(state)
        steps.append(
            make(
                f"stationarity.{name}",
                "stationarity",
                [equation.xreplace(rule)],
                data={"state": state},
                rests_on=("lagrangian",),
            )
        )
    pairs = [*(p for law in system.laws.values() for p in law.pairs), *system.shared_pairs]
    if pairs:
        slacks = [Equation(q, expr.xreplace(rule)) for q, expr in kkt.slacks]
        fields = [row for pair in pairs for row in system.fields_in(Equation(*pair.pair))]
        fields = [row for row in dict.fromkeys(fields) if row.lhs not in {q for q, _ in kkt.slacks}]
        steps.append(
            make(
                "complementarity",
                "complementarity",
                slacks,
                data={"pairs": pairs, "fields": fields},
                rests_on=("lagrangian",),
            )
        )
    return steps
