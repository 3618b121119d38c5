"""Respond: those who hear the new site answer linearly, through their response matrix (verb two)."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Add, Expr, Sum, sqrt

from symcavity.algebra.indexed import flatten
from symcavity.method.insert import Inserted, hearers, second_component, second_site
from symcavity.method.sources import source_at
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import Perturbation, ResponseElement, opened

ORDER = 1 / sqrt(N)  # of the next term, relative to the one that is kept


@dataclass(frozen=True)
class Responded:
    """The linear answer of what the new site hears.

    Attributes
    ----------
    kind : Kind
        Of the inserted site.
    answers : dict
        For each random field that the site hears: the change of its sender's emission, by the field that the
        site shifted.  Only shifts of the sender's own fields reach it at this order.
    step : Step or None
        None where the site hears nobody who could answer.
    """

    kind: Kind
    answers: dict[RandomField, dict[RandomField, Expr]]
    step: Step | None


def respond(system: System, inserted: Inserted, make: StepMaker) -> Responded:
    """Follow the shifts of the fields to first order (paper, equations 28 and 41).

    The change of an emission is the sum over the sources of ``d(emission)/d(source) * factor * shift``.
    """
    kind = inserted.kind
    answers: dict[RandomField, dict[RandomField, Expr]] = {}
    for f in system.laws[kind].fields:
        reached = {g: shift for g, shift in inserted.shifts.items() if f.states() and g.hearer == f.sender}
        answers[f] = {g: _answer(system, f, g, shift) for g, shift in reached.items()}
    claims = [
        Equation(Perturbation(f.emission), opened(Add(*found.values()))) for f, found in answers.items() if found
    ]
    if not claims:
        return Responded(kind, answers, None)
    step = make(
        f"{kind.key}.respond",
        "respond",
        dict.fromkeys(claims),
        data={"kind": kind, "hearers": hearers(inserted.shifts), "order": ORDER},
        assumptions=(("linear_response", {"order": ORDER}),),
        rests_on=(f"{kind.key}.insert",),
    )
    return Responded(kind, answers, step)


def _answer(system: System, f: RandomField, g: RandomField, shift: Expr) -> Expr:
    """The change of the emission of f at its sender's canonical index, by the shift of the field g there."""
    b = f.sender
    second = second_site(b, *system.laws[b].fields)
    moved = {b.index: second, **(second_component(g) if g.components else {})}
    inner = [(moved[g.components[0]], *g.components[1:])] if g.components else []
    weight = system.laws[b].coefficient(g)
    element = ResponseElement(f.emission, source_at(system, g, second))
    answer = Sum(element * (weight * shift).xreplace(moved), (second, 1, b.size), *inner)
    return flatten(answer) if shift.has(Sum) else answer
