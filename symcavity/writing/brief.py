"""A derivation in brief, as a paper gives it: what repeats is said to follow likewise, and shows only what differs."""

from __future__ import annotations

from dataclasses import replace

from symcavity.record.derivation import Derivation

LATER = frozenset(
    ["minimum_slopes", "minimum_value", "free_energy_slopes", "spread", "stability_average", "stability", "messages",
     "state_evolution"]
)
"""The rules of what comes after the theory: the slopes of its minimum, how stable it is, and how messages find it."""

REPEATED = frozenset(["respond", "substitute", "cavity_equation"])
"""The rules of the cavity of a kind that repeat those of the first one word for word."""


def in_brief(derivation: Derivation) -> Derivation:
    """Return the record without stability and message passing, and with the cavities of further kinds in short."""
    first = next((step.data["kind"] for step in derivation.steps if step.rule == "insert"), None)
    steps = []
    for step in derivation.steps:
        again = first is not None and step.data.get("kind", first) != first
        if step.rule in LATER or (again and step.rule in REPEATED):
            continue
        steps.append(replace(step, rule="insert_again", claims=()) if again and step.rule == "insert" else step)
    return replace(derivation, steps=tuple(steps))
