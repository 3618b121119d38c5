"""A site whose states are summed over: what the others add to its weight, and the fields that it hears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Expr, S

from symcavity.errors import UnsupportedLaw
from symcavity.model.laws import Weight
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.solution import Region, SiteSolution
from symcavity.sites.protocol import Heard, SiteProblem
from symcavity.sites.thermal.states import Mixture


def weight_of(problem: SiteProblem) -> Weight:
    """The weight of a site at a temperature."""
    weight = problem.law.weight
    if weight is None:
        raise UnsupportedLaw(f"{problem.text} has no weight.", "problem.gibbs(beta)")
    return weight


def answer_to_states(problem: SiteProblem) -> tuple[Expr, Expr]:
    """What the others add to the slope of a state's gain: a field, and the factor F of the state."""
    weight, heard = weight_of(problem), moving_field(problem)
    whole = (heard.factor * heard.effective()).expand()
    return whole.xreplace({weight.mean: S.Zero}), whole.diff(weight.mean)


def moving_field(problem: SiteProblem) -> Heard:
    """The field of states that a site hears."""
    return next(h for h in problem.heard if h.declared.states())


def mixture(problem: SiteProblem) -> Mixture:
    """The averages over all states, with the self-couplings as symbols."""
    weight, heard = weight_of(problem), moving_field(problem)
    given = {h.carrier: h.carrier for h in problem.heard if h is not heard and h.carrier is not None}
    field, strength = answer_to_states(problem)
    if weight.is_field:
        field, strength = heard.eta, Add(*(k.symbol for k in heard.feedback if k.emission == weight.mean))
    carrier = None if weight.is_field else problem.law.carrier(heard.declared).lhs
    return Mixture(weight, strength, given, field, carrier)


def laid_out(problem: SiteProblem, assumed: Sequence[Any]) -> SiteSolution:
    """The fields of a site whose states are averaged: one branch, of the fields of given numbers that it hears."""
    sources = problem.plain_sources()
    values: dict[Any, Expr] = {}
    for h in problem.heard:
        if not h.declared.states() and h.carrier is not None:
            told = next(e for e in problem.equations() if e.lhs == h.carrier).rhs
            values[h.carrier] = told.xreplace(sources)
    return SiteSolution(
        problem.inner().eta,
        tuple(values),
        (Region(None, None, values),),
        (Branch(values, (), (), None),),
        assumed=tuple(assumed),
        sources=tuple(sources.values()),
    )
