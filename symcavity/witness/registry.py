"""The one table of witnesses: by the rule of a step, the functions that judge its claims."""

from __future__ import annotations

from collections.abc import Callable

from symcavity.record.derivation import NUMERIC, Step, Verdict

Witness = Callable[[Step, int], list[Verdict]]

WITNESSES: dict[str, list[Witness]] = {}


def witness(*rules: str) -> Callable[[Witness], Witness]:
    """Make a function a witness of the claims of some rules: it takes a step and a number of digits."""

    def register(function: Witness) -> Witness:
        for rule in rules:
            WITNESSES.setdefault(rule, []).append(function)
        return function

    return register


def numeric(dps: int) -> str:
    """The name of a numerical check."""
    return NUMERIC if dps == 50 else NUMERIC.replace("50", str(dps))


def result(kind: str, ok: bool, good: str, bad: str = "the two sides differ") -> list[Verdict]:
    """One verdict, with the detail that fits it."""
    return [Verdict(kind, ok, good if ok else bad)]


__all__ = ["WITNESSES", "Witness", "numeric", "result", "witness"]
