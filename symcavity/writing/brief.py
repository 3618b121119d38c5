"""A derivation in brief, as a paper gives it: what repeats is said to follow likewise, and shows only what differs."""

from __future__ import annotations

from dataclasses import replace

from symcavity.record.derivation import Derivation

LATER = frozenset((
    *("minimum", "minimum_slopes", "minimum_value", "free_energy_slopes"),
    *("spread", "stability_average", "stability"),
    *("messages", "state_evolution"),
))  # fmt: skip
"""The rules of what comes after the theory: its minimum, how stable it is, and how messages find it."""

ASIDE = frozenset(["proof", "work_identity", "load_identity", "consistency", "euler", "stein_parts"])
"""The rules of a second way to the results, and of the proof that both agree."""

REPEATED = frozenset(["respond", "substitute", "cavity_equation"])
"""The rules of the cavity of a kind that repeat those of the first one word for word."""


def in_brief(derivation: Derivation) -> Derivation:
    """Return what a paper prints of the record.

    Left out are what comes after the theory, eliminations on the way to closed forms, a second way to the
    results, and what the cavities of further kinds repeat of the first one.
    """
    unknowns = {symbol for symbol, _ in derivation.parameters}
    results = [claim for step in derivation.steps if step.rule == "result" for claim in step.claims]
    solved = {claim.lhs for claim in results if unknowns.isdisjoint(claim.rhs.free_symbols)}
    first = next((step.data["kind"] for step in derivation.steps if step.rule == "insert"), None)
    steps = []
    for step in derivation.steps:
        again = first is not None and step.data.get("kind", first) != first
        passing = step.rule == "elimination" and solved.issuperset(claim.lhs for claim in step.claims)
        if passing or step.rule in LATER | ASIDE or (again and step.rule in REPEATED):
            continue
        steps.append(replace(step, rule="insert_again", claims=()) if again and step.rule == "insert" else step)
    return replace(derivation, steps=tuple(steps), brief=True)
