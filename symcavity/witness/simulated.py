"""Simulations that judge the claims of a derivation."""

from __future__ import annotations

from functools import cache
from typing import Any

from symcavity.record.derivation import Step as StepData
from symcavity.record.derivation import Verdict
from symcavity.record.verbs import with_verbs
from symcavity.witness.instances import witness


class _Witness:
    """Instances as a witness of a derivation."""

    def witness(self, step: StepData) -> list[Verdict]:
        """Judge the claims of a derivation step; see :func:`symcavity.witness.instances.witness`."""
        return witness(self, step)


@cache
def simulation_class(name: str) -> Any:
    """Make a class of simulations that has the verb, when it is first used: what it extends loads slowly."""
    from symcavity.finite import simulation

    data = getattr(simulation, name)
    return type(name, (_Witness, data), {"__doc__": data.__doc__, "__module__": "symcavity.face"})


def with_witness(found: Any) -> Any:
    """Simulations with the verb."""
    from symcavity.finite.simulation import Simulation

    one = simulation_class("Simulation")
    if isinstance(found, Simulation):
        return with_verbs(one, found)
    return simulation_class("Simulations")({size: with_verbs(one, each) for size, each in found.by_size.items()})
