"""How checks are registered, and how their outcome is said."""

from __future__ import annotations

from collections.abc import Callable

from symcavity.record.derivation import NUMERIC, Step, Verdict

Check = Callable[[Step, int], list[Verdict]]


def registering(table: dict[str, Check], name: str) -> Callable[[Check], Check]:
    """Register a check in a table under a name."""

    def register(function: Check) -> Check:
        table[name] = function
        return function

    return register


def numeric(dps: int) -> str:
    """The name of a numerical check."""
    return NUMERIC if dps == 50 else NUMERIC.replace("50", str(dps))


def result(kind: str, ok: bool, good: str, bad: str = "the two sides differ") -> list[Verdict]:
    """One verdict, with the detail that fits it."""
    return [Verdict(kind, ok, good if ok else bad)]
