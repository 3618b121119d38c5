"""Message passing: the closed equations with a step for each kind of site, and the record of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from sympy import Add, Expr, Pow, S, Sum, Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.method.close import kind_of_body, over_sites
from symcavity.method.naming import at_zero
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Field, Variable, site_quantities
from symcavity.model.system import System
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.record.symbols import AtStep
from symcavity.sites.site import jumping

_FORBIDDEN = 1e6
FIRST = (1.0, -1.0)


def first_responses(kinds: list[Kind]) -> list[dict[Kind, float]]:
    """Return the ways to begin, in the order in which they are tried: the kinds that keep still, few ones first.

    All others solve their laws in the first step, each by what those before it have sent.  A kind that keeps still
    sends nothing, and its states respond to their sources by the given number.
    """
    every = product((0.0, *FIRST), repeat=len(kinds))
    ordered = sorted(every, key=lambda row: (sum(map(bool, row)), [(*FIRST, 0.0).index(v) for v in row]))
    return [{kind: v for kind, v in zip(kinds, row, strict=True) if v} for row in ordered if not all(row)]


def conditions_met(system: System) -> dict[Kind, list[tuple[int, Symbol]]]:
    """Return which conditions on all sites are met at the step of each kind, each by which global variable.

    A condition is a sum over the sites of a kind, and is met when these sites are solved: by a variable that stands
    in the sum itself, or one that they feel.

    Raises
    ------
    UnsupportedLaw
        If a condition sums the states of several kinds, or is left to a variable that its sites do not feel.
    """
    def price(row: int, g: Symbol) -> float:
        law, partner = system.laws[kinds[row]], system.partners[row]
        felt = any(e.difference.has(g) for e in law.equations) or any(q.has(g) for p in law.pairs for q in p.pair)
        felt = felt or (law.weight is not None and any(e.has(g) for e in (law.weight.energy, *law.weight.bounds)))
        if partner is not None:
            return 0.0 if g == partner else _FORBIDDEN
        stands = any(term.has(g) for body in system.global_conditions[row].values() for term in _large(body))
        return 0.0 if stands else 1.0 if felt else _FORBIDDEN

    out: dict[Kind, list[tuple[int, Symbol]]] = {kind: [] for kind in system.laws}
    kinds = [_summed(parts) for parts in system.global_conditions]
    prices = [[price(row, g) for g in system.globals] for row in range(len(kinds))]
    if not prices:
        return out
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(prices)
    for row, column in zip(rows, columns, strict=True):
        if prices[row][column] >= _FORBIDDEN or len(rows) < len(prices):
            raise UnsupportedLaw(
                f"No global variable meets the condition on the sum of {system.global_conditions[row][kinds[row]]} "
                f"over the {kinds[row]} sites while these are solved: message passing has no step for it.",
                "conditions on sums over sites that feel a global variable, or that define one",
            )
        out[kinds[row]].append((int(row), system.globals[column]))
    return out


def _large(body: Expr) -> list[Expr]:
    """The terms of a condition that do not vanish as N grows."""
    terms = Add.make_args(body.expand())
    return [e for e in terms if not any(p.base == N and p.exp.is_negative for p in e.atoms(Pow))]


def _summed(parts: Mapping[Kind, Expr]) -> Kind:
    """The kind whose states a condition sums; other kinds may add given numbers and global variables."""
    moving = [kind for kind, body in parts.items() if site_quantities(body, Variable, Field)]
    if len(moving) > 1:
        raise UnsupportedLaw(
            f"A condition sums states of the {' and of the '.join(map(str, moving))} sites: {[*parts.values()]}. "
            "Message passing solves one kind at a time.",
            "conditions on sums over one kind of site",
            "simulate(...)",
        )
    return next(iter(moving or parts))


def stepped(expr: Expr, shift: int) -> Expr:
    """The states in an expression as they are after some step; parameters stay."""
    return expr.xreplace({q: AtStep(q, shift) for q in site_quantities(expr, Variable, Field)})


def message_steps(theory: Any, make: StepMaker) -> list[Step]:
    """The theory as an algorithm, and what the closed equations say of each of its steps.

    Nothing for naive theories, where a condition on all sites is met at no step, and where the lowest states jump:
    local responses do not contain what a jump does to the average, and the messages do not settle.
    """
    system = theory.system
    cold = [kind for kind, law in system.laws.items() if law.weight is not None and law.weight.is_cold]
    if theory.is_naive or any(theory.inserted[kind].solution.jumping for kind in cold):
        return []
    try:
        met = conditions_met(system)
    except UnsupportedLaw:
        return []
    make = make.within("Message passing")
    order = list(system.laws)
    fields, evidence = [], []
    for kind in order:
        for h in theory.inserted[kind].problem.heard:
            f = h.declared
            if not f.states():
                continue
            now = 1 if order.index(f.sender) < order.index(kind) else 0
            told = -1 if f.sender == kind else 0
            heard = at_zero(Sum(f.coupling * stepped(f.sent, now), *f.limits), kind)
            marks = {k.symbol: AtStep(k.symbol, 1) for k in h.feedback}
            echo = stepped(at_zero(h.effective() - h.eta, kind), told).xreplace(marks)
            fields.append(Equation(AtStep(h.eta, 1), Add(heard, -echo)))
            evidence.append((kind, h))
    if not fields:
        return []
    echoes, hearing = sum(len(h.feedback) for _, h in evidence), {kind for kind, _ in evidence}
    return [
        make(
            "messages",
            "messages",
            fields,
            data={
                "order": order,
                "echo": echoes > 0,
                "several": max(echoes, len(evidence)) > len(hearing),
                **_beside_responses(theory),
            },
            assumptions=(("independence", {}),),
            rests_on=tuple(f"{kind.key}.{part}" for kind in order for part in ("cavity_equation", "solution")),
            evidence={"heard": evidence},
        ),
        make(
            "messages.evolution",
            "state_evolution",
            _evolution(theory, met, order),
            data={"order": order, "globals": list(system.globals)},
            rests_on=("messages",),
        ),
    ]


def _beside_responses(theory: Any) -> dict[str, bool]:
    """What local responses do not contain: the steps of a sign, and the change of the probability of a label."""
    jumps = [(h, site) for site in theory.inserted.values() for h in jumping(site)]
    on = {q.given for site in theory.inserted.values() for q in site.law.quenched() if q.given is not None}
    drawn = [h for h, _ in jumps if h.declared.symbol in on or (h.carrier is not None and h.carrier in on)]
    return {"drawn": bool(drawn), "jumps": len(drawn) < len(jumps)}


def _evolution(theory: Any, met: dict[Kind, list[tuple[int, Symbol]]], order: list[Kind]) -> list[Equation]:
    """The closed equations, where every number is the last that was known."""
    owner = {s: kind_of_body(next(iter(over_sites(m))).args[0]) for s, m in theory.order_parameters.items()}
    giver = {g: kind for kind, rows in met.items() for _, g in rows}

    def known(expr: Expr, kind: Kind) -> Expr:
        rule = {s: AtStep(s, int(order.index(k) < order.index(kind))) for s, k in owner.items()}
        rule |= {g: AtStep(g, int(order.index(k) <= order.index(kind))) for g, k in giver.items()}
        return expr.xreplace(rule)

    out = [
        Equation(known(theory.global_equations[row].lhs, kind), S.Zero) for kind, rows in met.items() for row, _ in rows
    ]
    return out + [Equation(AtStep(s, 1), known(value, owner[s])) for s, value in theory.closures.items()]
