"""The record of two sites at once: insert two, let others answer, average over the couplings, close."""

from __future__ import annotations

from dataclasses import replace

from sympy import Expr, Sum

from symcavity.method.average import message_response
from symcavity.method.naming import at_zero
from symcavity.method.pair import Pair
from symcavity.method.pair_ends import Two, scales, weighed
from symcavity.method.pair_given import GivenFields
from symcavity.method.pair_resolvent import Resolvent
from symcavity.method.respond import ORDER
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, in_units_of_n
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import DisorderAverage

SECTION = "Two sites at given couplings"


def pair_steps(pair: Pair) -> list[Step]:
    """What follows of two sites, after the record of the theory."""
    theory = pair.theory
    make = StepMaker(theory.system.source, theory.is_naive, SECTION)
    evidence = {"theory": theory, "pair": pair}
    return [replace(step, evidence=evidence) for step in _steps(pair, make)]


def _steps(pair: Pair, make: StepMaker) -> list[Step]:
    theory = pair.theory
    kinds = list(theory.inserted)
    over = [q.at_site() for q in pair.over]
    given = [q.at_site() for q in theory.system.quenched if q not in pair.over]
    trained = [f for f in theory.system.fields if pair.reach.may_vary(f)]
    couplings = list(dict.fromkeys(f.coupling for f in trained))
    local = _local(pair) if pair.given is None else []
    sent = list(dict.fromkeys(leg.sent for leg in pair.means)) if pair.given is None else []
    centred = (("zero_mean", {"sent": sent, "over": over}),) if sent else ()
    steps = [
        make(
            "pair.insert",
            "two_sites",
            data={
                "over": over,
                "given": given,
                "couplings": couplings,
                "globals": list(theory.system.globals),
                "scales": [e for e in dict.fromkeys(e for f in trained for e in scales(f)) if e != 1],
            },
            assumptions=(("independence", {}), ("linear_response", {"order": ORDER})),
            rests_on=("disorder", *(f"{kind.key}.cavity_field" for kind in kinds)),
        )
    ]
    if pair.given is not None:
        steps.append(_given_step(pair.given, make))
    if local:
        steps.append(
            make(
                "pair.local",
                "two_sites_local",
                local,
                rests_on=tuple(f"{kind.key}.solution" for kind in kinds),
            )
        )
    rows = [{"symbol": symbol, "what": meaning_of(two)} for two, symbol in pair.symbols.items()]
    observed = pair.observed
    dimension = dimension_symbol(pair)
    steps += [
        make(
            "pair.close",
            "two_sites_closed",
            pair.equations,
            data={"rows": rows, "observed": observed, "kind": pair.kind, "over": over},
            assumptions=(("independence", {}), ("self_averaging", {}), *centred),
            rests_on=("disorder", *(step.key for step in steps)),
        ),
        make(
            "pair.dimension",
            "two_sites_dimension",
            [Equation(dimension, dimension_of(pair))],
            data={"observed": observed, "kind": pair.kind, "dimension": dimension},
            rests_on=("pair.close",),
        ),
        _resolvent_step(Resolvent(pair), make),
    ]
    return steps


def _given_step(given: GivenFields, make: StepMaker) -> Step:
    """What a site has beside the given part of each field, and the overlaps of two draws of what varies."""
    claims = []
    for name, (kind, body, off) in given.meanings.items():
        claims.append(at_zero(Equation(name, DisorderAverage(body) - off), kind))
    claims += [Equation(overlap, value) for overlap, (_, value) in given.overlaps.items()]
    fields, kinds = [], list(given.parts)
    for kind, part in given.parts.items():
        for h, m in part.fields.items():
            f = h.declared
            mean = next((e for a, e in given.means.items() if (a.sent, a.kind) == (weighed(f), f.sender)), weighed(f))
            mean = (mean / scales(f)[1]).xreplace({f.sender.index: f.sender_index})
            total = Sum(f.coupling * mean, *f.limits)
            fields.append({"field": at_zero(m.at_site(), kind), "sum": at_zero(total, kind)})
    parameters = [q.at_site() for part in given.parts.values() for q in part.given]
    return make(
        "pair.given",
        "two_sites_given",
        claims,
        data={
            "over": [q.at_site() for q in given.over],
            "given": parameters,
            "rows": fields,
            "draws": list(given.overlaps),
            "once": [one for one, _ in given.overlaps.values()],
        },
        assumptions=(("independence", {}), ("self_averaging", {})),
        rests_on=("disorder", "pair.insert", *(f"{kind.key}.solution" for kind in kinds)),
    )


def _resolvent_step(found: Resolvent, make: StepMaker) -> Step:
    pair = found.pair
    named: dict[OrderParameter, str] = {}
    for (a, b), symbol in found.symbols.items():
        named.setdefault(symbol, meaning_of((a, b)))
    rows = [{"symbol": symbol, "what": what} for symbol, what in named.items()]
    return make(
        "pair.resolvent",
        "two_sites_resolvent",
        found.equations,
        data={
            "rows": rows,
            "observed": pair.observed,
            "kind": pair.kind,
            "argument": found.argument,
            "value": found.value,
        },
        assumptions=(("independence", {}), ("self_averaging", {})),
        rests_on=("disorder", "pair.insert", "pair.dimension"),
    )


def dimension_of(pair: Pair) -> Expr:
    """The dimension in the number that the equations close."""
    share = in_units_of_n(pair.kind.size / N)
    return share * pair.variance**2 / pair.symbols[pair.target]


def dimension_symbol(pair: Pair) -> OrderParameter:
    """A symbol for the dimension."""
    return OrderParameter(dimension_name(pair), positive=True)


def dimension_name(pair: Pair) -> str:
    """A letter for the dimension that nothing else has."""
    taken = {*pair.theory.system.variables, *(str(s) for s in pair.theory.system.parameters)}
    return next(name for name in ("D", "PR", "D_C") if name not in taken)


def _local(pair: Pair) -> list[Equation]:
    """The mean responses and mean squares in the equations that are not order parameters themselves."""
    theory, found = pair.theory, dict[Expr, Expr]()
    for kind in theory.inserted:
        if any(q not in pair.over for q in pair.reach.parameters(kind)):
            continue
        legs = [leg for leg in pair.legs if leg.kind == kind]
        fields = [leg.field.declared for leg in legs if leg.field is not None]
        emissions = [leg.sent for leg in legs if leg.sent is not None]
        for e in emissions:
            squares = [e * other for other in emissions]
            for body in (*squares, *(message_response(theory.system, e, f) for f in fields)):
                value = theory.observable(Average(body)) if body != 0 else body
                if not isinstance(value, OrderParameter) and value.free_symbols:
                    found.setdefault(Average(body), value)
    return [Equation(node, value) for node, value in found.items()]


def meaning_of(two: Two) -> str:
    """The key of the words for what joins two sites, by the ends of both lines."""
    a, b = (leg.sent is not None for leg in two)
    return "covariances" if a and b else "responses" if not (a or b) else "both"
