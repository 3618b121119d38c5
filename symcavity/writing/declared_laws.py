"""Sentences of a declared problem on its discrete states, and on the laws of its quenched parameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy.stats.crv_types import NormalDistribution
from sympy.stats.rv import RandomSymbol

from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched
from symcavity.writing.display_form import is_sign
from symcavity.writing.fragments import Fragments, formula, listed, quantity
from symcavity.writing.words import Said, say


def discrete(states: dict[Kind, list[Any]]) -> Iterable[dict[str, Any]]:
    """The states that take some values only, each with these."""
    for state in (q for some in states.values() for q in some if getattr(q.family, "values", ())):
        yield {"state": state, "points": Said(listed(state.family.values, " or "))}


def laws(quenched: Iterable[Any], heard: Iterable[Any]) -> Fragments:
    """The laws that quenched parameters have in the declaration, with the fields that they are drawn on."""
    out: Fragments = []
    for family in quenched:
        law = family.law if isinstance(family, Quenched) else None
        if isinstance(law, RandomSymbol):
            out += [*(["; "] if out else []), *_distribution(quantity(family), law.pspace.distribution)]
            continue
        if law is None or not getattr(law, "args", ()) or not isinstance(law.args[0], type(law)):
            continue
        values = [{"value": value, "weight": weight} for value, weight in law.args]
        on = [claim for claim in heard if claim.lhs == family.given]
        said = say("problem.law", parameter=quantity(family), values=values, on=on, sign=is_sign(family))
        out += [*(["; "] if out else []), *said]
    return out


def _distribution(parameter: Any, law: Any) -> Fragments:
    """The continuous law of a quenched parameter: a Gaussian by its moments, any other one by its name."""
    if isinstance(law, NormalDistribution):
        return say("problem.gaussian", parameter=parameter, mean=law.mean, variance=law.std**2)
    known = type(law).__name__.removesuffix("Distribution")
    return say("problem.distribution", parameter=parameter, law=known, arguments=Said(listed(law.args, ", ")))


def choices_of(choices: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """The values that parameters with one label take together, for each value of the label."""
    every = list(choices)
    for label in dict.fromkeys(c.args[0] for c in every):
        mine = [c for c in every if c.args[0] == label]
        points = zip(*(c.args[1] for c in mine), strict=True)
        rows = [formula("(", *[part for v in point for part in (",", v)][1:], ")") for point in points]
        yield {"label": label, "count": len(rows), "mine": mine, "points": rows}
