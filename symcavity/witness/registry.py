"""The one table of witnesses: by the rule of a step, the functions that judge its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from symcavity.algebra.precision import mp
from symcavity.record.derivation import FEW, NUMERIC, Step, Verdict

A = TypeVar("A")
B = TypeVar("B")

Witness = Callable[[Step, int], list[Verdict]]

WITNESSES: dict[str, list[Witness]] = {}

EASY = 12  # digits below the requested ones that a check may lose without another name


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


def fewer(digits: int, dps: int) -> int | None:
    """The digits that a check reached, where it has to say so: far fewer than requested, or fewer than ten."""
    return None if digits >= min(dps, max(dps - EASY, FEW)) else digits


def to_digits(ok: bool, digits: int, dps: int, good: str, bad: str = "the two sides differ") -> list[Verdict]:
    """A verdict at seeded points, named by the digits that were reached."""
    few = fewer(digits, dps)
    return result(numeric(dps if few is None else digits), ok, good, bad, few)


def result(
    kind: str, ok: bool, good: str, bad: str = "the two sides differ", digits: int | None = None
) -> list[Verdict]:
    """One verdict, with the detail that fits it, and the digits where they are fewer than requested."""
    return [Verdict(kind, ok, good if ok else bad, digits)]


def largest(*gaps: Any) -> Any:
    """The largest of some gaps; infinite where one of them is not a number, which no comparison would notice."""
    return math.inf if any(mp.isnan(gap) for gap in gaps) else max(gaps)


def one_to_one(claims: Iterable[A], rows: Iterable[B], fits: Callable[[A, B], bool]) -> bool:
    """Whether each claim is a row of its own, and no row is left over."""
    left = list(rows)
    for claim in claims:
        place = next((k for k, row in enumerate(left) if fits(claim, row)), None)
        if place is None:
            return False
        del left[place]
    return not left
