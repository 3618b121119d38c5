"""A derivation in brief, as a paper gives it: what repeats is said to follow likewise, and shows only what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sympy import S, Symbol, count_ops, oo

from symcavity.algebra.quotients import vanishes
from symcavity.method.eliminate import multiples
from symcavity.model.equations import Equation
from symcavity.model.quantities import Field
from symcavity.record.derivation import Derivation, Step
from symcavity.record.order_parameters import OrderParameter

LATER = frozenset((
    *("minimum", "minimum_slopes", "minimum_value", "free_energy_slopes"),
    *("spread", "stability_average", "stability"),
    *("messages", "state_evolution"),
))  # fmt: skip
"""The rules of what comes after the theory: its minimum, how stable it is, and how messages find it."""

ASIDE = frozenset(["proof", "work_identity", "load_identity", "consistency", "euler", "stein_parts"])
"""The rules of a second way to the results, and of the proof that both agree."""

BETWEEN = frozenset(["cavity_equation", "site_average", "joint_slopes", "set_multiplier"])
"""The rules of what comes once more: with self-couplings at their means, averaged over all sites; and of the
multiplier of a set, on which nothing rests."""

REPEATED = frozenset(["respond", "substitute", "self_coupling"])
"""The rules of the cavity of a kind that repeat those of the first one."""


def _once_more(step: Step) -> bool:
    """Whether what a step says comes again: the slope of a state before its average, a symmetry that there is not."""
    slopes = step.rule == "response" and not any(isinstance(claim.lhs, OrderParameter) for claim in step.claims)
    unbroken = step.rule == "symmetry" and not step.data.get("found", step.claims)
    return step.rule in BETWEEN or (slopes and not step.data.get("jumps")) or unbroken


REDUCTION = ("units", "elimination", "load", "result")
"""The rules of what elimination makes of the closed equations."""


def _is_no_gain(derivation: Derivation, solved: set[Any]) -> bool:
    """Whether a reduction helps the numbers only, and no reader.

    It gives no closed form, and an unknown that is eliminated is more than twice as long as its closed equation. It
    stays where later steps need its units.
    """
    found: dict[str, list[Any]] = {}
    for step in derivation.steps:
        found.setdefault(step.rule, []).extend(step.claims)
    way, closed = found.get("elimination", []), found.get("closure", [])
    if any(getattr(lhs, "is_Symbol", False) for lhs in solved):
        return False
    units = set().union(*map(_symbols, found.get("units", []))).difference(*map(_symbols, closed))
    later = [c for step in derivation.steps if step.rule not in {*REDUCTION, *LATER, *ASIDE} for c in step.claims]
    if any(units & _symbols(c) for c in later):
        return False
    before = {claim.lhs: count_ops(claim.rhs) for claim in closed}
    return any(count_ops(claim.rhs) > 2 * before.get(claim.lhs, oo) for claim in way)


def _symbols(claim: Any) -> set[Any]:
    return set(getattr(claim, "difference", S.Zero).free_symbols)


def _as_closed(claim: Equation, closed: dict[Any, Any]) -> Equation:
    """A claim in the form of the closed equation that says the same."""
    rhs = closed.get(claim.lhs)
    return Equation(claim.lhs, rhs) if rhs is not None and vanishes(claim.rhs - rhs) else claim


def _offsets(claim: Equation, others: Iterable[Equation]) -> Iterator[Any]:
    """What parts an equation from others, written in either direction."""
    for other in others:
        yield from (claim.difference - other.difference, claim.difference + other.difference)


def _centered(step: Step) -> Step:
    """The statistics of fields without what vanishes, which words say: means, and covariances of different fields."""
    vanish = [claim for claim in step.claims if claim.rhs == 0]
    kept = tuple(claim for claim in step.claims if claim.rhs != 0)
    if not kept or not vanish:
        return step
    pairs = any(claim.lhs.args[0].is_Mul for claim in vanish)
    return replace(step, claims=kept, data={**step.data, "centered": True, "uncorrelated": pairs})


def in_brief(derivation: Derivation) -> Derivation:
    """Return what a paper prints of the record.

    Left out are what comes after the theory, what a count of sites says of further responses, eliminations on the way
    to closed forms, a reduction without closed forms in which a formula is twice as long as the equation that it
    replaces, a second way to the results, equations that come again in their final form, and what the cavities of
    further kinds repeat of the first.
    """
    unknowns = {symbol for symbol, _ in derivation.parameters}
    results = [claim for step in derivation.steps if step.rule == "result" for claim in step.claims]
    solved = {claim.lhs for claim in results if unknowns.isdisjoint(claim.rhs.free_symbols)}
    ratios = {kind.ratio for step in derivation.steps for kind in step.data.get("kinds", ())}
    kept_whole = _is_no_gain(derivation, solved)
    first = next((step.data["kind"] for step in derivation.steps if step.rule == "insert"), None)
    closed_rows = {claim.lhs: claim.rhs for step in derivation.steps if step.rule == "closure" for claim in step.claims}
    given = {s for rhs in closed_rows.values() for s in rhs.free_symbols if type(s) is Symbol}
    same = multiples(closed_rows, given)
    laws = {claim for step in derivation.steps if step.rule == "effective_law" for claim in step.claims}
    steps = []
    for step in derivation.steps:
        again = first is not None and step.data.get("kind", first) != first
        passing = step.rule == "elimination" and solved.issuperset(claim.lhs for claim in step.claims)
        passing |= kept_whole and step.rule in REDUCTION
        if step.rule == "projection" and not laws.isdisjoint(step.claims):  # the law says it
            left = tuple(c for c in step.claims if not any(map(vanishes, _offsets(c, laws))))
            passing |= not left
            step = replace(step, claims=left, data={**step.data, "rest": True})
        passing |= step.rule == "load" and not solved.isdisjoint(ratios)
        if passing or _once_more(step) or step.rule in LATER | ASIDE or (again and step.rule in REPEATED):
            continue
        if again and step.rule == "insert":
            step = replace(step, rule="insert_again", claims=())
        if step.rule in ("closure", "closed_system"):
            step = replace(step, claims=tuple(Equation(c.lhs, same.get(c.lhs, c.rhs)) for c in step.claims))
        if step.rule == "elimination":  # what an equation says already keeps its form
            step = replace(step, claims=tuple(_as_closed(claim, {**closed_rows, **same}) for claim in step.claims))
        if step.rule == "field_statistics":
            step = _centered(step)
        if step.rule == "vector_response":  # by the order parameter that it is, which need not be closed once more
            names = {rhs: lhs for lhs, rhs in closed_rows.items()}
            step = replace(step, claims=tuple(Equation(names.get(c.rhs, c.lhs), c.rhs) for c in step.claims))
        if step.rule == "regime_tip":  # sets with edges are spoken of where the regimes come together
            step = replace(step, data={**step.data, "edges": False})
        if step.rule == "touching_response":  # the matrix alone, in which the trace is written
            step = replace(step, claims=step.claims[:1])
        if step.rule == "touching_trace":
            step = replace(step, claims=step.claims[-1:])
        if step.rule == "interpretation":  # what is counted, without what follows for other responses
            step = replace(step, claims=step.claims[:1])
        if step.rule == "branches":  # the states alone, without the cases, and without the fields at their values
            states = tuple(claim for claim in step.claims if not isinstance(getattr(claim.lhs, "family", None), Field))
            step = replace(step, claims=states or step.claims, data={**step.data, "branches": ()})
        steps.append(step)
    closed = () if kept_whole else derivation.results
    return replace(derivation, steps=tuple(steps), results=closed, brief=True)
