"""Respond: sites that hear the new site answer linearly, through their response matrix (verb two)."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Add, Expr, S, Sum, oo, sqrt

from symcavity.algebra.flow import past
from symcavity.algebra.indexed import flatten
from symcavity.method.insert import Inserted, hearers, second_component, second_site
from symcavity.method.sources import source_at
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, N
from symcavity.model.system import System
from symcavity.model.times import Time
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
    steps : tuple of Step
        None where the site hears nobody who could answer; of states that move, a second one leaves out the future.
    """

    kind: Kind
    answers: dict[RandomField, dict[RandomField, Expr]]
    steps: tuple[Step, ...] = ()


def respond(system: System, inserted: Inserted, make: StepMaker) -> Responded:
    """Follow the shifts of the fields to first order (paper, equations 28 and 41).

    The change of an emission is the sum over the sources of ``d(emission)/d(source) * factor * shift``.
    """
    kind = inserted.kind
    answers: dict[RandomField, dict[RandomField, Expr]] = {}
    for f in system.laws[kind].fields:
        reached = {g: shift for g, shift in inserted.shifts.items() if f.states() and g.hearer == f.sender}
        reached = {g: shift for g, shift in reached.items() if f.time is not None or g.time is None}
        answers[f] = {g: _answer(system, f, g, shift) for g, shift in reached.items()}
    claims = [
        Equation(Perturbation(f.emission), opened(Add(*found.values()))) for f, found in answers.items() if found
    ]
    if not claims:
        return Responded(kind, answers)
    data = {"kind": kind, "hearers": hearers(inserted.shifts), "order": ORDER}
    first = make(
        f"{kind.key}.respond",
        "respond",
        dict.fromkeys(Equation(c.lhs, at_all_times(c.rhs)) for c in claims),
        data=data,
        assumptions=(("linear_response", {"order": ORDER}),),
        rests_on=(f"{kind.key}.insert",),
    )
    if system.time is None:
        return Responded(kind, answers, (first,))
    delayed = any(delay(system, f, g) for f, found in answers.items() for g in found if g.time is not None)
    second = make(
        f"{kind.key}.causality",
        "causality",
        dict.fromkeys(claims),
        data={**data, "delayed": delayed},
        assumptions=(("causality", {}),),
        rests_on=(f"{kind.key}.respond",),
    )
    return Responded(kind, answers, (first, second))


def delay(system: System, f: RandomField, g: RandomField) -> int | None:
    """By how many steps what is sent into f is later than what its sender hears through g; None in continuous time."""
    if system.flowing:
        return None
    return 0 if system.motion is None or any(system.motion.is_instant(q, g) for q in f.states()) else 1


def at_all_times(expr: Expr) -> Expr:
    """An expression in which what is summed over the past is summed over the future as well."""

    def longer(total: Sum) -> Sum:
        return Sum(total.function, *((k, low, oo if isinstance(k, Time) else high) for k, low, high in total.limits))

    return expr.xreplace({total: longer(total) for total in expr.atoms(Sum)})


def _answer(system: System, f: RandomField, g: RandomField, shift: Expr) -> Expr:
    """The change of the emission of f at its sender's canonical index, by the shift of the field g there."""
    b = f.sender
    second = second_site(b, *system.laws[b].fields)
    moved = {b.index: second, **(second_component(g) if g.components or g.time else {})}
    inner = [(moved[g.components[0]], *g.components[1:])] if g.components else []
    weight = system.laws[b].coefficient(g)
    body = ResponseElement(f.emission, source_at(system, g, second)) * (weight * shift).xreplace(moved)
    if g.time is not None:
        memory = past(body, moved[g.time], S.Zero, g.time, delay(system, f, g))
        body, inner = memory.function, [*inner, *memory.limits]
    answer = Sum(body, (second, 1, b.size), *inner)
    return flatten(answer) if shift.has(Sum) else answer
