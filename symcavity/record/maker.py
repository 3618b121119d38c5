"""How a step is made: its equation number in a source text is found by its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from symcavity.model.equations import Equation
from symcavity.record.derivation import Step

SHARED = (
    *("problem", "roots", "coincident", "combined", "emissions", "norms", "centre", "disorder"),
    *("lagrangian", "stationarity", "dual", "complementarity", "sources", "work_identity"),
)


@dataclass(frozen=True)
class StepMaker:
    """Makes the steps of one part of a derivation.

    Attributes
    ----------
    source : mapping
        Equation numbers of a source text, by the key of the step.
    is_naive : bool
        Whether one feedback is dropped: such steps have equation numbers of their own.
    section : str
        The part of the derivation.
    """

    source: Mapping[str, str] = field(default_factory=dict)
    is_naive: bool = False
    section: str = ""

    def __call__(self, key: str, rule: str, claims: Iterable[Equation] = (), **rest: Any) -> Step:
        """Make a step; its equation number comes from the declaration, if it gives one."""
        return Step(key, rule, tuple(claims), reference=self.reference(key), section=self.section, **rest)

    def within(self, section: str) -> StepMaker:
        """The same maker for another part of the derivation."""
        return replace(self, section=section)

    def reference(self, key: str) -> str:
        """The equation number of a step in the declared source; steps of the naive analysis have their own keys."""
        if self.is_naive and key.split(".", maxsplit=1)[0] not in SHARED:
            return self.source.get(f"naive.{key}", "")
        return self.source.get(key, "")
