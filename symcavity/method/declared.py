"""What is given: the declared problem, the disorder, and the equations that couple the sites, with their sources."""

from __future__ import annotations

from typing import Any

from sympy import S

from symcavity.algebra.indexed import fresh_index
from symcavity.method.average import coupling_covariance
from symcavity.method.sources import source_of
from symcavity.model.equations import Equation
from symcavity.model.quantities import Field, SiteQuantity
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import DisorderAverage


def declaration(system: System, make: StepMaker) -> list[Step]:
    """The declaration, and the assumption about the disorder."""
    kkt = system.record
    make = make.within("The problem")
    states = {
        kind: [q for q in law.unknowns if not isinstance(q.family, Field) and (kkt is None or _declared(q, kkt))]
        for kind, law in system.laws.items()
    }
    data: dict[str, Any] = {
        "states": states,
        "quenched": list(system.quenched),
        "globals": list(system.globals),
        "fixed": list(system.fixed),
    }
    if kkt is not None:
        data |= {"minimize": kkt.problem.minimize, "subject_to": list(kkt.problem.subject_to)}
    else:
        data |= {
            "equations": list(system.declared),
            "conditions": [p for law in system.laws.values() for p in law.pairs],
        }
    couplings = list(dict.fromkeys(f.coupling for law in system.laws.values() for f in law.fields))
    claims = []
    for x in couplings:
        second: dict[Any, Any] = {}
        for index in x.indices:
            if index.is_Symbol:
                second[index] = fresh_index(index, {*x.indices, *second.values()})
        y = x.xreplace(second)
        claims += [
            Equation(DisorderAverage(x), S.Zero),
            Equation(DisorderAverage(x * y), coupling_covariance(x, y)),
        ]
    identical = len({x.family.variance for x in couplings}) < 2
    identical = identical and not any(x.family.variance.has(SiteQuantity) for x in couplings)
    premise: list[tuple[str, dict[str, Any]]] = [("iid" if identical else "independent", {})]
    premise.append(("large_size", {"kinds": list(system.kinds)}))
    return [
        make("problem", "problem", data=data | {"kinds": list(system.kinds)}),
        make(
            "disorder",
            "disorder",
            claims,
            data={"couplings": couplings, "identical": identical},
            assumptions=tuple(premise),
        ),
    ]


def sources(system: System, make: StepMaker) -> list[Step]:
    """The equations that couple the kinds of sites, with their sources."""
    make = make.within("Bipartite system" if system.is_bipartite else "Coupled system")
    claims = []
    for law in reversed(list(system.laws.values())):
        rule = {f.symbol: f.as_sum for f in law.fields}
        for f in law.fields:
            carrier = law.carrier(f)
            source = source_of(system, f).at_site()
            claims.append(Equation(carrier.lhs.xreplace(rule), carrier.rhs.xreplace(rule) + source))
    return [
        make(
            "sources",
            "sources",
            claims,
            assumptions=(("uniqueness", {}),),
        )
    ]


def _declared(q: SiteQuantity, kkt: Any) -> bool:
    made = {m for m, _, _ in kkt.multipliers} | {a for a, _ in kkt.auxiliary} | {s for s, _ in kkt.slacks}
    made |= {d for d, _ in kkt.duals}
    return q not in made


__all__ = ["declaration", "sources"]
