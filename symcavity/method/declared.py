"""The first steps of the record: the declared problem, the disorder, the equations that couple the sites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from sympy import Basic, IndexedBase, S, Sum, Symbol, oo

from symcavity.algebra.choice import Choice
from symcavity.algebra.indexed import fresh_index
from symcavity.method.average import coupling_covariance
from symcavity.method.sources import carrier_state, source_of
from symcavity.model.couplings import correlation_of
from symcavity.model.equations import Equation
from symcavity.model.extrema import Extremum
from symcavity.model.families import families
from symcavity.model.laws import Law
from symcavity.model.quantities import Field, Global, Quenched, SiteQuantity, site_quantities
from symcavity.model.support import Anchor, Support
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage


def _moving_globals(typed: Iterable[Basic]) -> list[SiteQuantity]:
    """The variables of declared equations that all sites share, and that move."""
    moving = [q for e in typed for q in site_quantities(e) if not q.site and q.time is not None]
    return sorted({q.now for q in moving}, key=str)


def declaration(system: System, make: StepMaker) -> list[Step]:
    """The declaration, and the assumption about the disorder."""
    make = make.within("The problem")
    couplings = list(dict.fromkeys(f.coupling for law in system.laws.values() for f in law.fields))
    identical = len({x.family.variance for x in couplings}) < 2
    identical = identical and not any(x.family.variance.has(SiteQuantity) for x in couplings)
    tied = any(e != 0 for x in couplings for e in x.family.moments[1:])
    premise: list[tuple[str, dict[str, Any]]] = [("correlated" if tied else "iid" if identical else "independent", {})]
    premise.append(("large_size", {"kinds": list(system.kinds)}))
    disorder = {"couplings": couplings, "identical": identical, "correlated": tied}
    return [
        make("problem", "problem", data=_declared_data(system) | {"kinds": list(system.kinds)}),
        make(
            "disorder",
            "disorder",
            _moments(couplings),
            data=disorder | {"independent": _independent(couplings)},
            assumptions=tuple(premise),
        ),
    ]


def _declared_data(system: System) -> dict[str, Any]:
    """What was declared: states, parameters, and what was typed."""
    kkt = system.record
    sent = {**system.rewritten["clock"].meanings, **system.rewritten["emissions"].meanings}
    states = {
        kind: [q for q in law.unknowns if not isinstance(q.family, Field) and q not in sent and _declared(q, kkt, law)]
        for kind, law in system.laws.items()
    }
    typed = system.rewritten.typed.expressions
    shared = set().union(*(e.atoms(Global) for e in typed))
    moments = [e for f in system.fields for e in f.coupling.family.moments]
    data: dict[str, Any] = {
        "states": states,
        "quenched": [q for q in system.quenched if q.over is None],
        "anew": list(system.drawn_anew),
        "choices": sorted(set().union(*(e.atoms(Choice) for e in (*typed, *moments))), key=str),
        "globals": [*(g for g in system.globals if g in shared), *_moving_globals(typed)],
        "fixed": list(system.fixed),
        "ranges": list(system.ranges),
    }
    if system.time is not None:
        data["initial"] = [Equation(e.lhs, e.rhs) for e in system.initial]
    if kkt is not None:
        minimize, subject_to = kkt.problem.typed
        data |= {"minimize": minimize, "subject_to": list(subject_to)}
    elif system.weights:
        minimize = system.rewritten.typed.objective
        beta = next(iter(system.weights.values())).beta
        data |= {"minimize": minimize, "subject_to": list(system.rewritten.typed.entries)}
        data |= {"lowest": True} if beta == oo else {"beta": beta}
    else:
        equations, conditions = system.typed
        data |= {"equations": list(equations), "conditions": list(conditions)}
    given = {q.name: q.given for q in families([*data.get("subject_to", ()), data.get("minimize", S.Zero)], Quenched)}
    named = [Equation(q.given, given[q.name]) for q in system.quenched if q.given is not None and q.name in given]
    data["heard"] = [claim for claim in named if claim.lhs != claim.rhs]
    return data


def _moments(couplings: Sequence[SiteQuantity]) -> list[Equation]:
    """The means and the covariances of couplings."""
    claims = []
    for number, x in enumerate(couplings):
        second: dict[Any, Any] = {}
        for index in x.indices:
            if index.is_Symbol:
                second[index] = fresh_index(index, {*x.indices, *second.values()})
        y = x.xreplace(second)
        partners = [z.xreplace(second) for z in couplings[:number] if correlation_of(x.family, z.family) != 0]
        claims += [Equation(DisorderAverage(x), S.Zero)]
        claims += [Equation(DisorderAverage(x * z), coupling_covariance(x, z)) for z in (y, *partners)]
    return claims


def _independent(couplings: Sequence[SiteQuantity]) -> list[tuple[SiteQuantity, SiteQuantity]]:
    """Pairs of couplings that are independent of each other."""
    pairs = combinations(couplings, 2)
    return [(x, z) for x, z in pairs if x.family != z.family and correlation_of(x.family, z.family) == 0]


def definitions(system: System, make: StepMaker) -> list[Step]:
    """The support functions that the laws use, and their anchor points, by the sets that they belong to."""
    make, steps = make.within("The problem"), []
    nodes = {node.g: node for law in system.laws.values() for e in law.equations for node in _supports(e)}
    for g, node in nodes.items():
        a = node.components.index
        name = Symbol(g.name.partition("_")[2] or "S")
        product = Sum(node.body * IndexedBase("s")[a], node.components.range)
        claims = [
            Equation(node, Extremum(product, Symbol("s"), name)),
            Equation(Anchor(g, node.body, node.components, a), Extremum(product, Symbol("s"), name, a)),
        ]
        data = {"node": node, "set": name, "fields": system.fields_in(claims[0])}
        steps.append(make(f"support.{g.name}", "support_function", claims, data=data, rests_on=("problem",)))
    return steps


def _supports(equation: Equation) -> list[Support]:
    return sorted(equation.difference.atoms(Support), key=str, reverse=True)


def sources(system: System, make: StepMaker) -> list[Step]:
    """The equations that couple the kinds of sites, with their sources."""
    make = make.within("Bipartite system" if system.is_bipartite else "Coupled system")
    claims, carriers, named = [], [], []
    for law in reversed(list(system.laws.values())):
        rule = {f.symbol: f.as_sum for f in law.fields}
        for f in law.fields:
            carrier = law.carrier(f)
            source = source_of(system, f)
            carriers.append((carrier_state(system, f), source))
            if isinstance(getattr(carrier.lhs, "family", None), Field) and carrier.rhs == f.symbol:
                named.append(Equation(carrier.lhs, f.as_sum))
            claims.append(Equation(carrier.lhs.xreplace(rule), carrier.rhs.xreplace(rule) + source.at_site()))
    return [
        make(
            "sources",
            "sources",
            claims,
            data={"carriers": carriers, "fields": named},
            assumptions=(("uniqueness", {}),),
        )
    ]


def _declared(q: SiteQuantity, kkt: Any, law: Law) -> bool:
    if law.weight is not None:
        return q != law.weight.mean
    if kkt is None:
        return True
    made = {m for m, _, _ in kkt.multipliers} | kkt.auxiliary_states | {s for s, _ in kkt.slacks}
    made |= {d for d, _ in kkt.duals}
    return q not in made
