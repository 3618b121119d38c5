"""Identify: in the fields of the new site, the part of order zero and the echo of the site itself (verb three)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Add, Expr, S, Sum

from symcavity.algebra.flow import Element
from symcavity.algebra.indexed import flatten
from symcavity.method.insert import second_component
from symcavity.method.naming import at_zero
from symcavity.method.respond import Responded, delay
from symcavity.method.sources import carrier_state, source_of
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import CavitySymbol, ComponentSymbol, Emission, Perturbation, opened
from symcavity.sites.protocol import Feedback, Heard, SiteProblem


@dataclass(frozen=True)
class Identified:
    """The law of the new site, with its cavity fields and all its self-couplings.

    Attributes
    ----------
    problem : SiteProblem
        Self-couplings that will turn out to vanish are still in it.
    steps : tuple of Step
    """

    problem: SiteProblem
    steps: tuple[Step, ...]

    @property
    def kind(self) -> Kind:
        """The kind of the inserted site."""
        return self.problem.kind


def identify(system: System, responded: Responded, make: StepMaker) -> Identified:
    """Split what the new site hears (paper, equations 29 to 33 and 42 to 46).

    The sum over unperturbed emissions is the cavity field.  What the site's own shift sends back is linear in
    its emission; the factor is the self-coupling.
    """
    kind = responded.kind
    law = system.laws[kind]
    heard, echoes = [], {}
    for k, f in enumerate(law.fields):
        one, echoes[f] = _heard(system, f, k, responded.answers[f])
        heard.append(one)
    problem = SiteProblem(law, tuple(heard), convex=system.convex, auxiliary=_auxiliary(system), ranges=system.ranges,
                          flowing=system.flowing)
    return Identified(problem, tuple(_steps(problem, echoes, make)))


def _auxiliary(system: System) -> frozenset[Any]:
    record = system.record
    return frozenset() if record is None else record.auxiliary_states | {m for m, _, _ in record.multipliers}


def field_of_site(f: RandomField, body: Expr) -> Expr:
    """The sum over the sender's sites of fresh coupling times something, as the inserted site hears it."""
    coupling = fresh_coupling(f)
    inner = [tuple(f.inner)] if f.inner else []
    return Sum(coupling * body, f.sender.range, *inner)


def fresh_coupling(f: RandomField) -> SiteQuantity:
    """The coupling of the inserted site to a sender, at the sender's canonical index."""
    return f.coupling.xreplace({f.hearer.index: S.Zero}).xreplace({f.sender_index: f.sender.index})


def _heard(
    system: System, f: RandomField, place: int, answers: dict[RandomField, Expr]
) -> tuple[Heard, dict[RandomField, Expr]]:
    """One field of the inserted site, and the echo through each field that the site has shifted."""
    law, senders = system.laws[f.hearer], system.laws[f.sender].fields
    several = len(law.fields) > 1
    pair = next(iter(second_component(f).items())) if f.components else ()
    tag = str(place + 1) if several else ""
    eta = ComponentSymbol("T", f.hearer, pair[:1], tag) if pair else CavitySymbol("eta", f.hearer, tag)
    if f.time is not None:
        eta = ComponentSymbol("eta", f.hearer, (f.time,), tag)
    feedback, echoes = [], {}
    for g, answer in answers.items():
        number = f"{place + 1}{senders.index(g) + 1}" if several or len(senders) > 1 else ""
        indices = pair if f.time is None else (f.time, *(() if g.time is None else second_component(g).values()))
        symbol = ComponentSymbol("F", f.hearer, indices, number) if indices else CavitySymbol("F", f.hearer, number)
        echoes[g] = flatten(field_of_site(f, answer))
        factor = Add(*(_factor(term) for term in Add.make_args(echoes[g])))
        feedback.append(Feedback(symbol, g, factor, delay(system, f, g)))
    definition = field_of_site(f, f.emission)
    source, carrier = source_of(system, f).at_site(), carrier_state(system, f)
    return Heard(f, eta, definition, source, carrier, law.coefficient(f), tuple(feedback)), echoes


def _factor(term: Expr) -> Expr:
    """What multiplies the site's own emission in its echo: the emission and its component range are taken out."""
    (emission,) = term.atoms(Emission)
    bare = term.xreplace({emission: S.One} | dict.fromkeys(term.atoms(Element), S.One))
    (total,) = bare.atoms(Sum)
    limits = [lim for lim in total.limits if lim[0] not in emission.free_symbols]
    return bare / total * Sum(total.function, *limits)


def _steps(
    problem: SiteProblem,
    echoes: dict[RandomField, dict[RandomField, Expr]],
    make: StepMaker,
) -> list[Step]:
    kind = problem.kind
    key = kind.key
    chain, expanded, closed = [], [], []
    for equation, effective in zip(problem.law.equations, problem.equations(), strict=True):
        here = [h for h in problem.heard if equation.difference.has(h.declared.symbol)]
        if not here:
            continue
        sources = Add(*(h.source for h in here))
        before = {h.declared.symbol: _perturbed(h) for h in here}
        after = {h.declared.symbol: h.definition + opened(Add(*echoes[h.declared].values())) for h in here}
        lhs = at_zero(equation.lhs, kind)
        rows = [Equation(lhs, at_zero(equation.rhs.xreplace(rule) + sources, kind)) for rule in (before, after)]
        chain += rows
        expanded.append((lhs, rows[-1].rhs))
        closed.append(at_zero(effective, kind))
    fields = [Equation(h.eta, h.definition) for h in problem.heard]
    couplings = [Equation(k.symbol, at_zero(k.definition, kind)) for h in problem.heard for k in h.feedback]
    data = {"kind": kind}
    steps = [
        make(
            f"{key}.substitute",
            "substitute",
            chain,
            data=data,
            rests_on=("sources", f"{key}.{'respond' if problem.law.time is None else 'causality'}"),
        ),
        make(
            f"{key}.cavity_field",
            "cavity_field",
            fields,
            data=data,
            rests_on=(f"{key}.substitute",),
        ),
    ]
    if couplings:
        steps.append(
            make(
                f"{key}.self_coupling",
                "self_coupling",
                couplings,
                data=data,
                rests_on=(f"{key}.substitute",),
            )
        )
    steps.append(
        make(
            f"{key}.cavity_equation",
            "cavity_equation",
            closed,
            data=data,
            rests_on=(f"{key}.cavity_field", *([f"{key}.self_coupling"] if couplings else [])),
        )
    )
    return steps


def _perturbed(h: Heard) -> Expr:
    """The field as a sum over emissions and their changes."""
    emission = h.declared.emission
    return field_of_site(h.declared, emission + Perturbation(emission) if h.feedback else emission)
