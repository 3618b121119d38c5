"""The pieces of prose: strings, mathematics, and a few marks that every writer knows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sympy import sqrt

from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Family
from symcavity.record.derivation import Step
from symcavity.writing.nodes import Row, joined
from symcavity.writing.printing import tree
from symcavity.writing.reader import read

Fragments = list[Any]


@dataclass(frozen=True)
class EarlierSteps:
    """The place of "By equations (3) and (5),": the sentence that follows rests on earlier steps."""

    sentence: str


@dataclass(frozen=True)
class Show:
    """Displayed mathematics: rows, each an object or a tuple of objects and words."""

    rows: tuple[Any, ...]
    numbered: bool = True


@dataclass(frozen=True)
class Cite:
    """A work that is cited; its number is its place in the bibliography, once that is known."""

    work: str
    number: int = 0


@dataclass(frozen=True)
class Emphasis:
    """Words to be stressed."""

    words: str


@dataclass
class Prose:
    """The text before the claims of a step, and the reason after them.

    ``again`` stands before them in place of ``before`` where the step before was of the same rule.
    """

    before: Fragments = field(default_factory=list)
    after: Fragments = field(default_factory=list)
    again: Fragments = field(default_factory=list)


def formula(*parts: Any) -> Row:
    """Join objects, and TeX that is given as strings, to one inline formula."""
    return joined((read(part) if isinstance(part, str) else tree(part) for part in parts), " ")


def listed(objects: Iterable[Any], conjunction: str = " and ") -> Fragments:
    """Return ``a, b and c`` as fragments."""
    items = list(objects)
    out: Fragments = []
    for place, item in enumerate(items):
        if place:
            out.append(conjunction if place == len(items) - 1 else ", ")
        out.append(item)
    return out


def over_sites(kind: Any) -> Fragments:
    """Return ``i = 1, ..., N``."""
    if not isinstance(kind, Kind):
        return []
    return [formula(kind.index, "= 1, \\ldots,", kind.size)]


def quantity(obj: Any) -> Any:
    """Return a family at its canonical site, and anything else as it is."""
    return obj.at_site() if isinstance(obj, Family) and obj.slots else obj


def plural(count: int, one: str, many: str) -> str:
    """Choose the singular or the plural."""
    return one if count == 1 else many


def states_of(step: Step) -> list[Any]:
    """Return the states that a step is about."""
    states = step.data.get("states", step.data.get("state", []))
    return list(states) if isinstance(states, list | tuple) else [states]


def small(order: Any) -> Any:
    """Return the order of a dropped term: 1/sqrt(N) unless the step says otherwise."""
    return 1 / sqrt(N) if order is None else order
