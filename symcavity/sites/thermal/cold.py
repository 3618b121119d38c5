"""The same site at zero temperature, and what fluctuates about its minimum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Add, Expr, S, exp

from symcavity.errors import UnsupportedLaw
from symcavity.sites.protocol import Heard, SiteProblem
from symcavity.sites.thermal.fluctuation import Fluctuation
from symcavity.sites.thermal.states import density_of
from symcavity.sites.thermal.summed import (
    mixture,
    moving_field,
    moving_fields,
    weight_of,
)


def at_zero_temperature(problem: SiteProblem) -> SiteProblem:
    """The same site at its minimum: the law of zero temperature, with the same fields and self-couplings."""
    weight = weight_of(problem)
    if weight.cold is None:
        return problem
    heard: list[Heard] = []
    proved: dict[Any, int] = {}
    for h in problem.heard:
        was = weight.told.get(h.declared.emission, h.declared.emission)
        known = [f for f in weight.cold.fields if f.coupling == h.declared.coupling and f.emission == was]
        if len(known) != 1:
            raise UnsupportedLaw(
                f"At zero temperature no field corresponds to {h.declared.as_sum}.", "problem.gibbs(beta)"
            )
        own = tuple(
            replace(k, through=replace(k.through, emission=weight.told.get(k.emission, k.emission)))
            for k in h.feedback
        )
        heard.append(replace(h, declared=known[0], factor=weight.cold.coefficient(known[0]), feedback=own))
        moving = (k for k in h.feedback if h.declared.states() and k.emission.has(weight.mean))
        proved |= {k.symbol: 1 if weight.is_field else -1 for k in moving}
    return replace(problem, law=weight.cold, heard=tuple(heard), convex=True, proved=proved)


def fluctuation(problem: SiteProblem) -> Fluctuation:
    """What fluctuates about the minimum, with the self-couplings as symbols."""
    weight, cold = weight_of(problem), at_zero_temperature(problem)
    still, moving = moving_fields(cold), moving_fields(problem)
    given = {h.carrier: h.carrier for h in problem.heard if h not in moving and h.carrier is not None}
    if not weight.is_field:
        own = [(k, h.factor) for warm, h in zip(moving, still, strict=True) for k in warm.feedback]
        strength = Add(*(k.symbol * k.emission.diff(weight.mean) * factor for k, factor in own))
        slope = Add(*(h.factor * h.effective() for h in still))
        return Fluctuation(weight, strength, given, weight.state, slope, S.Zero)
    (inner,), (warm,) = still, moving
    message = weight.told[weight.mean]
    strength = Add(*(k.symbol for k in warm.feedback if k.emission == weight.mean))
    return Fluctuation(weight, strength, given, inner.effective(), -message, message)


def density(problem: SiteProblem) -> Expr:
    """The weight of the inserted site, with the self-couplings as symbols."""
    weight = weight_of(problem)
    if weight.cold is None:
        return density_of(mixture(problem))
    found = fluctuation(problem)
    x, F = weight.state, found.feedback
    if weight.is_field:
        return exp(-weight.beta * (weight.energy + (x - moving_field(problem).eta) ** 2 / (2 * F)))
    force = found.slope.xreplace({weight.state: S.Zero})
    return exp(-weight.beta * (weight.energy - force * x - F * x**2 / 2))
