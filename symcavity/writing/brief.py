"""A derivation in brief, as a paper gives it: what repeats is said to follow likewise, and shows only what differs."""

from __future__ import annotations

from dataclasses import replace

from symcavity.model.quantities import Field
from symcavity.record.derivation import Derivation, Step
from symcavity.record.symbols import OrderParameter

LATER = frozenset((
    *("minimum", "minimum_slopes", "minimum_value", "free_energy_slopes"),
    *("spread", "stability_average", "stability"),
    *("messages", "state_evolution"),
))  # fmt: skip
"""The rules of what comes after the theory: its minimum, how stable it is, and how messages find it."""

ASIDE = frozenset(["proof", "work_identity", "load_identity", "consistency", "euler", "stein_parts"])
"""The rules of a second way to the results, and of the proof that both agree."""

BETWEEN = frozenset(["cavity_equation", "site_average", "joint_slopes", "touching_response"])
"""The rules of what comes once more: with self-couplings at their means, averaged over all sites, or as a trace."""

REPEATED = frozenset(["respond", "substitute", "self_coupling"])
"""The rules of the cavity of a kind that repeat those of the first one."""


def _once_more(step: Step) -> bool:
    """Whether what a step says comes again: the slope of a state before its average, a symmetry that there is not."""
    slopes = step.rule == "response" and not any(isinstance(claim.lhs, OrderParameter) for claim in step.claims)
    unbroken = step.rule == "symmetry" and not step.data.get("found", step.claims)
    return step.rule in BETWEEN or (slopes and not step.data.get("jumps")) or unbroken


def in_brief(derivation: Derivation) -> Derivation:
    """Return what a paper prints of the record.

    Left out are what comes after the theory, what a count of sites says of further responses, eliminations on the way
    to closed forms, a second way to the results, equations that come again in their final form, and what the cavities
    of further kinds repeat of the first.
    """
    unknowns = {symbol for symbol, _ in derivation.parameters}
    results = [claim for step in derivation.steps if step.rule == "result" for claim in step.claims]
    solved = {claim.lhs for claim in results if unknowns.isdisjoint(claim.rhs.free_symbols)}
    ratios = {kind.ratio for step in derivation.steps for kind in step.data.get("kinds", ())}
    first = next((step.data["kind"] for step in derivation.steps if step.rule == "insert"), None)
    steps = []
    for step in derivation.steps:
        again = first is not None and step.data.get("kind", first) != first
        passing = step.rule == "elimination" and solved.issuperset(claim.lhs for claim in step.claims)
        passing |= step.rule == "load" and not solved.isdisjoint(ratios)
        if passing or _once_more(step) or step.rule in LATER | ASIDE or (again and step.rule in REPEATED):
            continue
        if again and step.rule == "insert":
            step = replace(step, rule="insert_again", claims=())
        if step.rule == "interpretation":  # what is counted, without what follows for other responses
            step = replace(step, claims=step.claims[:1])
        if step.rule == "branches":  # the states alone, without the cases, and without the fields at their values
            states = tuple(claim for claim in step.claims if not isinstance(getattr(claim.lhs, "family", None), Field))
            step = replace(step, claims=states or step.claims, data={**step.data, "branches": ()})
        steps.append(step)
    return replace(derivation, steps=tuple(steps), brief=True)
