"""The naive mean field: the same fold with one feedback dropped."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import S

from symcavity.errors import DeclarationError
from symcavity.method.identify import Identified
from symcavity.model.equations import Equation
from symcavity.model.kinds import FEATURE, Kind
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.protocol import SiteProblem


def dropped_kind(system: System) -> Kind:
    """The kind whose feedback the naive analysis leaves out: the features.

    Putting the equation of the features into that of the data, and averaging as if couplings and messages were
    independent, keeps the echo of a datum and loses that of a feature.

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


def drop(identified: Identified, others: Iterable[SiteProblem], make: StepMaker) -> Step:
    """Leave out the echo of the new site, as if the couplings and what they multiply were independent.

    The echoes of sites of other kinds are kept: they are answers of this kind to a site's own message, which follow
    from its equation with the messages given.
    """
    kind, heard = identified.kind, identified.problem.heard
    words = {
        "messages": list(dict.fromkeys(h.declared.emission for h in heard)),
        "couplings": list(dict.fromkeys(h.declared.coupling for h in heard)),
    }
    kept = [(p.kind, p.self_couplings) for p in others if p.kind != kind and p.self_couplings]
    return make(
        f"{kind.key}.naive_drop",
        "naive_drop",
        [Equation(k.symbol, S.Zero) for h in heard for k in h.feedback],
        data={"kind": kind, "kept": kept, **words},
        assumptions=(("naive_independence", words),),
        rests_on=(f"{kind.key}.cavity_equation",),
    )
