"""A site whose states are summed over: what the others add to its weight, and the fields that it hears."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sympy import Add, Dummy, Expr, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity
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


def moving_fields(problem: SiteProblem) -> list[Heard]:
    """The fields of states that a site hears. What pulls a state is the sum of them, each with its factor."""
    return [h for h in problem.heard if h.declared.states()]


def moving_field(problem: SiteProblem) -> Heard:
    """The field of states over which averages are laid out."""
    moving, inner = moving_fields(problem), problem.inner()
    return inner if inner in moving else moving[0]


def answer_of(problem: SiteProblem, heard: Heard) -> tuple[Expr, Expr]:
    """What one field adds to the slope of a state's gain: a field, and the factor F of the state."""
    mean = weight_of(problem).mean
    whole = (heard.factor * heard.effective()).expand()
    return whole.xreplace({mean: S.Zero}), whole.diff(mean)


def answer_to_states(problem: SiteProblem) -> tuple[Expr, Expr]:
    """What the others add to the slope of a state's gain, through all fields."""
    rows = [answer_of(problem, h) for h in moving_fields(problem)]
    return Add(*(field for field, _ in rows)), Add(*(strength for _, strength in rows))


def mixture(problem: SiteProblem) -> Mixture:
    """The averages over all states, with the self-couplings as symbols."""
    weight, moving = weight_of(problem), moving_fields(problem)
    given = {h.carrier: h.carrier for h in problem.heard if h not in moving and h.carrier is not None}
    if weight.is_field:
        (heard,) = moving
        strength = Add(*(k.symbol for k in heard.feedback if k.emission == weight.mean))
        return Mixture(weight, strength, given, heard.eta)
    field, strength = answer_to_states(problem)
    carriers = tuple((problem.law.carrier(h.declared).lhs, *answer_of(problem, h)) for h in moving)
    return Mixture(weight, strength, given, field, carriers)


def is_pulled_by_sum(problem: SiteProblem, body: Expr) -> bool:
    """Whether a site hears several fields of states, and an expression depends on nothing of them but their sum."""
    moving = moving_fields(problem)
    if len(moving) < 2 or weight_of(problem).is_field:
        return False
    plain = body.xreplace({r: Dummy() for r in body.atoms(SiteResponse)})  # which name the field that they are to
    carriers = (e.lhs for h in moving if isinstance((e := problem.law.carrier(h.declared)).lhs, SiteQuantity))
    return not plain.has(*carriers, *(h.eta for h in moving))


def as_one(ensemble: Any, problem: SiteProblem) -> tuple[Any, dict[Any, Expr]]:
    """The ensemble of a site whose states are pulled by several fields: their sum is one field.

    Returns
    -------
    ensemble, rule
        The same site, whose inner field is the sum in units of its own; and what has to be put into expressions in the
        sum: zero for the other fields.
    """
    moving, inner = moving_fields(problem), moving_field(problem)
    shares = {h.eta: cancel(h.factor / inner.factor) for h in moving}
    rule = dict.fromkeys((h.eta for h in moving if h is not inner), S.Zero)
    kept = [*(f for f in ensemble.fields if f not in shares), inner.eta]

    def weights(field: Any) -> dict[Any, Expr]:
        return shares if field == inner.eta else {field: S.One}

    covariance = {
        (a, b): Add(
            *(s * t * ensemble.covariance[f, g] for f, s in weights(a).items() for g, t in weights(b).items())
        )
        for a in kept
        for b in kept
    }
    sources = {
        name: (source, inner.eta, inner.factor) if field in shares else (source, field, factor)
        for name, (source, field, factor) in ensemble.sources.items()
    }
    alone = ensemble.solution.xreplace(rule)
    return replace(ensemble, solution=alone, fields=tuple(kept), covariance=covariance, sources=sources), rule


def laid_out(problem: SiteProblem, assumed: Sequence[Any]) -> SiteSolution:
    """The fields of a site whose states are averaged: one branch, of the fields of given numbers that it hears."""
    sources = problem.plain_sources()
    values: dict[Any, Expr] = {}
    for h in problem.heard:
        if not h.declared.states() and h.carrier is not None:
            told = next(e for e in problem.equations() if e.lhs == h.carrier).rhs
            values[h.carrier] = told.xreplace(sources)
    return SiteSolution(
        moving_field(problem).eta,
        tuple(values),
        (Region(None, None, values),),
        (Branch(values, (), (), None),),
        assumed=tuple(assumed),
        sources=tuple(sources.values()),
    )
