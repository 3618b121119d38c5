"""The record of two sites at once over time: insert two, let others answer at two frequencies, average, close."""

from __future__ import annotations

from dataclasses import replace

from symcavity.method.moving_pair import MovingPair
from symcavity.method.pair_steps import SECTION, dimension_name, meaning_of
from symcavity.method.respond import ORDER
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.order_parameters import MovingParameter


def moving_pair_steps(pair: MovingPair) -> list[Step]:
    """What follows of two sites whose states move, after the record of the theory."""
    theory = pair.theory
    make = StepMaker(theory.system.source, theory.is_naive, SECTION)
    kinds = list(theory.inserted)
    couplings = list(dict.fromkeys(f.coupling for f in theory.system.fields))
    first, second = pair.frequencies
    dimension = MovingParameter(dimension_name(pair), (pair.lag,))
    observed = pair.observed
    times = {"time": pair.time, "first": first, "second": second}
    steps = [
        make(
            "pair.insert",
            "moving_two_sites",
            data={"couplings": couplings, "globals": [q.at_site() for q in theory.system.globals], **times},
            assumptions=(("independence", {}), ("linear_response", {"order": ORDER}), ("stationary", {})),
            rests_on=("disorder", *(f"{kind.key}.cavity_field" for kind in kinds)),
        ),
        make(
            "pair.local",
            "moving_two_sites_local",
            pair.transforms,
            data=times,
            rests_on=tuple(f"{kind.key}.solution" for kind in kinds),
        ),
        make(
            "pair.close",
            "moving_two_sites_closed",
            pair.equations,
            data={
                "rows": [{"symbol": symbol, "what": meaning_of(two)} for two, symbol in pair.symbols.items()],
                "observed": observed,
                "kind": pair.kind,
                **times,
            },
            assumptions=(("independence", {}), ("self_averaging", {})),
            rests_on=("disorder", "pair.insert", "pair.local"),
        ),
        make(
            "pair.dimension",
            "moving_two_sites_dimension",
            [pair.dimension(dimension)],
            data={"observed": observed, "kind": pair.kind, "lag": pair.lag, "flowing": theory.system.flowing},
            rests_on=("pair.close",),
        ),
    ]
    return [replace(step, evidence={"theory": theory, "pair": pair}) for step in steps]
