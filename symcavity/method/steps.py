"""How a step is made: its equation number in a source text is found by its key."""

from __future__ import annotations

from typing import Any

from symcavity.method.theory import Theory
from symcavity.model.system import System
from symcavity.record.derivation import Step

SHARED = ("problem", "disorder", "lagrangian", "stationarity", "dual", "complementarity", "sources", "work_identity")


def reference_of(theory: Theory, key: str) -> str:
    """The equation number of a step in the declared source; steps of the naive analysis have their own keys."""
    source = theory.system.source
    if theory.is_naive and key.split(".", maxsplit=1)[0] not in SHARED:
        return source.get(f"naive.{key}", "")
    return source.get(key, "")


class StepWriter:
    """Makes the steps of one theory."""

    def __init__(self, theory: Theory) -> None:
        self.theory = theory
        self.system: System = theory.system

    def step(self, key: str, rule: str, claims: Any = (), **rest: Any) -> Step:
        """Make a step; its equation number comes from the declaration, if it gives one."""
        return Step(key, rule, tuple(claims), reference=reference_of(self.theory, key), **rest)


__all__ = ["StepWriter", "reference_of"]
