"""A problem at a temperature: its Gibbs measure, as a system of thermal means.

The measure has the weight ``exp(-beta*E)``, with the objective as energy E. What a site sends is a thermal mean: a
feature that of its state, a datum that of the force on its field. Integration by parts gives, exactly and at every
size, the optimality conditions averaged over the measure.
"""

from __future__ import annotations

from itertools import chain, count
from typing import Any

from sympy import Add, Expr, S, Sum, erf, erfc, oo

from symcavity.errors import DeclarationError, UnsupportedLaw
from symcavity.method.kkt import optimality
from symcavity.method.measure import Measure, name_of_mean
from symcavity.model.averages import Expect, Force
from symcavity.model.equations import Equation
from symcavity.model.exact import exact
from symcavity.model.kinds import Kind
from symcavity.model.laws import Collective, Weight
from symcavity.model.problem import Problem
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.thermal.fluctuation import KINKS
from symcavity.sites.thermal.states import is_closed

SUPPORTED = "convex problems without constraints, of one state a feature and one field with states a datum"


def gibbs(problem: Problem, beta: Any) -> System:
    """Return the Gibbs measure of a problem at an inverse temperature, as a system of thermal means.

    Where a problem is convex and free of constraints, averages are taken about the minimum; else they are sums and
    integrals over all states.

    Parameters
    ----------
    problem : Problem
    beta : Symbol or number
        The inverse temperature, positive.

    Raises
    ------
    DeclarationError
        If beta is not positive, or stands in the problem.
    UnsupportedLaw
        For constraints, global variables, and sites with several states or fields.
    """
    beta = exact(beta, "the inverse temperature")
    if not beta.is_positive or site_quantities(beta) or beta.has(Global):
        raise DeclarationError(
            f"The inverse temperature {beta} is not known to be positive.",
            "a positive symbol or number",
            'beta = Symbol("beta", positive=True)',
        )
    shared = problem.conditions or problem.global_objective.has(Global) or any(
        body.has(Global) for body in problem.objective.values()
    )
    convex = problem.asks_convexity and not problem.constraints and not shared
    if convex and not _is_summed(problem, beta):
        (equations, weights), pairs = _about_minimum(problem, beta), []
        collective = Collective(problem.global_objective)
    else:
        found = Measure(problem, beta)
        equations, weights, pairs, collective = found.equations, found.weights, found.pairs, found.collective
    return System(
        equations,
        pairs,
        convex=problem.asks_convexity,
        weights=weights,
        collective=collective,
        **problem.taken_over(),
    )


def _is_summed(problem: Problem, beta: Expr) -> bool:
    """Whether energies have error functions or kinks, and averages over all states are closed: no minimum is needed."""
    if not any(body.has(erf, erfc, *KINKS) for body in problem.objective.values()):
        return False
    try:
        return all(map(is_closed, Measure(problem, beta).weights.values()))
    except UnsupportedLaw:
        return False


def _about_minimum(problem: Problem, beta: Expr) -> tuple[list[Equation], dict[Kind, Weight]]:
    minimum = optimality(problem)
    _refuse(problem, minimum)
    taken = _taken_by_states(minimum)

    def fresh(*given: str) -> str:
        """A name of a variable that the declaration leaves free: those of the optimality conditions give way."""
        every = chain(given, (f"{given[0]}_{k}" for k in count(2)))
        name = next(name for name in every if name not in taken)
        taken.add(name)
        return name

    fields = [f for kind in problem.kinds for f in problem.book.all(kind) if f.states()]
    told: dict[Expr, Expr] = {}
    parts: dict[Kind, tuple[Expr, SiteQuantity, SiteQuantity, bool]] = {}
    equations: list[Equation] = []
    means: dict[Kind, SiteQuantity] = {}
    forces: dict[Kind, Expr] = {}
    thermal: list[Equation] = []
    for f in fields:
        (state,) = f.states()
        if f.sender not in means:
            name = name_of_mean(state, several=len({f.sender for f in fields}) > 1)
            means[f.sender] = Variable(fresh(name), f.sender.index).at_site()
        mean = means[f.sender]
        message = Variable(fresh("lambda", "g"), f.hearer.index).at_site()
        field = Field(fresh("h", "h_2"), index=f.hearer.index).at_site()
        told[f.emission.xreplace({state: mean})] = f.emission
        told[message] = minimum.record.messages[f.symbol]
        local, given = _given(problem, minimum, f.hearer)
        energy = problem.objective.get(f.hearer, S.Zero).xreplace({f.symbol: field, **local})
        parts[f.sender] = problem.objective.get(f.sender, S.Zero), state, mean, False
        parts[f.hearer] = energy, field, message, True
        own = f.emission.diff(state) * Sum(f.coupling * message, f.hearer.range)
        forces[f.sender] = forces.get(f.sender, S.Zero) + own
        mean_field = f.as_sum.xreplace({f.emission: f.emission.xreplace({state: mean})})
        thermal += [
            Equation(Expect(field), mean_field),
            Equation(message, _expected(-energy.diff(field), field)),
            *given,
        ]
    for kind, force in forces.items():
        energy, state, mean, _ = parts[kind]
        equations += [
            Equation(_expected(energy.diff(state), state).xreplace({Expect(state): mean}), force),
            Equation(mean, Expect(state)),
        ]
    equations += thermal
    weights = {kind: Weight(beta, *part, cold=minimum.laws[kind], told=told) for kind, part in parts.items()}
    return equations, weights


def gibbs_steps(system: System, make: StepMaker) -> list[Step]:
    """That the optimality conditions hold on average over the measure: integration by parts; nothing without one."""
    if not system.weights:
        return []
    claims = [claim for law in reversed(list(system.laws.values())) for claim in law.written()]
    sums = (Add(*(Sum(body, kind.range) for kind, body in parts.items())) for parts in system.global_conditions)
    claims += [Equation(total, S.Zero) for total in sums]
    beta = next(iter(system.weights.values())).beta
    if beta == oo:
        every = list(system.weights.values())
        states = [q for w in every for q in (*w.beside, *([] if w.is_field else [w.state]))]
        data = {"states": states, "force": any(c.rhs.has(Force) for c in claims), **_multipliers(system)}
        make = make.within("The lowest minimum")
        return [make("lowest_state", "lowest_state", claims, data=data, rests_on=("problem",))]
    means = [w.mean for w in system.weights.values()]
    rule = "gibbs" if all(w.cold is not None for w in system.weights.values()) else "measure"
    sent = {w.mean: w.state for w in system.weights.values() if not w.is_field}
    named = [c for c in claims if isinstance(c.lhs, Expect) and isinstance(c.lhs.body, SiteQuantity)]
    fields = [Equation(c.lhs.body, c.rhs.xreplace(sent)) for c in named if isinstance(c.lhs.body.family, Field)]
    data = {"beta": beta, "means": means, "force": any(c.rhs.has(Force) for c in claims), **_multipliers(system)}
    data["fields"] = fields
    return [make.within("Thermal means")("gibbs", rule, claims, data=data, rests_on=("problem",))]


def _multipliers(system: System) -> dict[str, Any]:
    """The multipliers of conditions on sums over all sites, each with the sum that it belongs to."""
    fields = {f.symbol: f.as_sum for f in system.fields}
    found = system.collective.multipliers.items()
    rows = [(nu, condition.total.xreplace(fields), condition.equality) for nu, condition in found]
    return {"multipliers": rows} if rows else {}


def _refuse(problem: Problem, minimum: System) -> None:
    """Refuse problems whose sites have no weight of one variable."""
    fields = [f for kind in problem.kinds for f in problem.book.all(kind) if f.states()]
    hearers, senders = [f.hearer for f in fields], {f.sender for f in fields}
    states = [q for body in problem.objective.values() for q in site_quantities(body, Variable, Field)]
    states += [q for f in fields for q in f.states()]
    found = ""
    if problem.constraints or problem.conditions:
        found = "The problem has constraints."
    elif minimum.globals or problem.is_mean or minimum.support_functions:
        found = f"The problem has {'global variables' if minimum.globals else 'no sum over sites to give a weight to'}."
    elif len(set(hearers)) != len(hearers) or any(f.components or f.inner for f in fields):
        found = f"The {hearers[0].sites} hear more than one field of states."
    elif set(hearers) & senders:
        found = "A site hears and sends states."
    elif len(set(states)) != len(senders) or {*hearers, *senders} != set(problem.kinds):
        found = "A site has several states, or none."
    if found:
        raise UnsupportedLaw(f"{found} A Gibbs measure of it is not derived.", SUPPORTED)


def _expected(expr: Expr, state: SiteQuantity) -> Expr:
    """The thermal average of a slope: that of what is linear in the state stands in the mean of the state."""
    slope = expr.diff(state)
    if not slope.has(state) and (rest := (expr - slope * state).expand()).has(state) is False:
        return slope * Expect(state) + rest
    return Expect(expr)


def _given(problem: Problem, minimum: System, kind: Kind) -> tuple[dict[Any, Any], list[Equation]]:
    """The fields of given numbers that a site hears, by their names; and the labels that are drawn on them."""
    local: dict[Any, Any] = dict(minimum.record.labels)
    out = []
    for f in minimum.laws[kind].fields:
        if f.states():
            continue
        carrier = minimum.laws[kind].carrier(f)
        if carrier.rhs != f.symbol or not isinstance(carrier.lhs, SiteQuantity):
            raise UnsupportedLaw(f"The field {f.as_sum} of given numbers stands inside of {carrier}.", SUPPORTED)
        out.append(Equation(carrier.lhs, f.as_sum))
        local |= {g.symbol: carrier.lhs for g in problem.book.all(kind) if g.as_sum == f.as_sum}
    return local, out


def _taken_by_states(minimum: System) -> set[str]:
    """What a variable may not be called: as nothing that was declared, and as no field of given numbers."""
    record = minimum.record
    made = {q.family.name for q, *_ in (*record.multipliers, *record.slacks, *record.duals)}
    declared = {q.name for q in minimum.quenched} | {s.name for s in minimum.parameters}
    declared |= {f.coupling.family.name for f in minimum.fields} | set(minimum.variables)
    still = {law.carrier(f).lhs for law in minimum.laws.values() for f in law.fields if not f.states()}
    moving = {name for name, q in minimum.variables.items() if isinstance(q.family, Field) and q not in still}
    return declared - made - moving

