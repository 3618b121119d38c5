"""The naive mean field: the same fold with one feedback dropped."""

from __future__ import annotations

from sympy import S

from symcavity.errors import DeclarationError
from symcavity.method.identify import Identified
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker


def dropped_kind(system: System) -> Kind:
    """The kind whose feedback the naive analysis leaves out: the features.

    Putting the equation of the data into that of the features, and averaging as if couplings and messages were
    independent, keeps the answer of a datum to itself and loses that of a feature.

    Raises
    ------
    DeclarationError
        If the system has no features.
    """
    if FEATURE not in system.laws:
        raise DeclarationError(
            "The naive mean field is defined for systems with features; this one has none.",
            f"systems with sites {FEATURE.index} = 1..{FEATURE.size}",
        )
    return FEATURE


def drop(identified: Identified, make: StepMaker) -> Step:
    """Leave out the echo of the new site, as if the couplings and what they multiply were independent."""
    kind = identified.kind
    return make(
        f"{kind.key}.naive_drop",
        "naive_drop",
        [Equation(k.symbol, S.Zero) for h in identified.problem.heard for k in h.feedback],
        data={"kind": kind},
        assumptions=(("naive_independence", {}),),
        rests_on=(f"{kind.key}.cavity_equation",),
    )


__all__ = ["drop", "dropped_kind"]
