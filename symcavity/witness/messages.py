"""Witnesses of message passing: the turns of the kinds are taken one by one, own emissions followed there and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Sum

from symcavity.model.kinds import Kind, is_index, kind_of_range
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.symbols import AtStep
from symcavity.witness.declared import declared_of
from symcavity.witness.registry import result, witness

SENDERS, TURNS, NEAR = 3, 4, 1e-9


class Turns:
    """Who has heard what when the sites of each kind take their last turn, by taking all turns one after the other."""

    def __init__(self, order: list[Kind], links: set[tuple[Kind, Kind]]) -> None:
        spoken = dict.fromkeys(order, -1)
        told: dict[tuple[Kind, Kind], int] = {}
        self.last: dict[Kind, dict[Kind, int]] = {}
        self.own: dict[tuple[Kind, Kind], int] = {}
        for turn in range(TURNS):
            for kind in order:
                senders = [s for h, s in links if h == kind]
                self.last[kind] = {k: spoken[k] - turn + 1 for k in order}
                self.own |= {(kind, s): told.get((s, kind), -1) - turn + 1 for s in senders}
                told |= {(kind, s): spoken[s] for s in senders}
                spoken[kind] = turn


def turns_of(theory: Any) -> Turns:
    """The turns of the kinds of a declared system."""
    laws = declared_of(theory).system.laws
    return Turns(list(laws), {(f.hearer, f.sender) for law in laws.values() for f in law.fields})


def steps_in(expr: Expr) -> Iterator[AtStep]:
    """The quantities of an expression that belong to a step."""
    yield from sorted(expr.atoms(AtStep), key=str)


@witness("messages")
def messages(step: Step, _dps: int) -> list[Verdict]:
    """The claimed cavity field does not change with the own emission that the senders have heard: it is followed there.

    Couplings, local responses of the senders and states are numbers that are drawn.
    """
    theory = step.evidence["theory"]
    heard = step.evidence["heard"]
    turns, ok = turns_of(theory), len(heard) == len(step.claims)
    for (kind, h), claim in zip(heard, step.claims, strict=ok):
        ok = ok and claim.lhs == AtStep(h.eta, 1) and _is_cavity_field(claim.rhs, kind, h, turns)
    return result(BRUTE_FORCE, bool(ok), f"own emissions followed through {SENDERS} senders and back")


def _is_cavity_field(rhs: Expr, kind: Kind, h: Any, turns: Turns) -> bool:
    f = h.declared
    sums = [s for s in rhs.atoms(Sum) if any(kind_of_range(lim) for lim in s.limits)]
    if len(sums) != 1 or {a.shift for a in steps_in(sums[0])} != {turns.last[kind][f.sender]}:
        return False
    if sums[0].xreplace({a: a.args[0] for a in steps_in(sums[0])}) != _at_zero(f.as_sum, kind):
        return False
    rng = np.random.default_rng(5)
    out = rng.standard_normal(SENDERS)
    same = {k.through: f.coupling.family == k.through.coupling.family and f.sender != kind for k in h.feedback}
    back = {g: out if alike else rng.standard_normal(SENDERS) for g, alike in same.items()}
    answer = {g: rng.standard_normal(SENDERS) for g in back}
    given = rng.standard_normal(SENDERS)
    numbers: dict[Any, float] = {}
    values = []
    for _ in range(2):
        own = {_at_zero(q, kind) for g in back for q in site_quantities(g.emission)}
        for s in sorted({s for g in back for s in g.emission.free_symbols if not is_index(s)}, key=str):
            numbers[s] = float(rng.standard_normal())
        for q in sorted(own, key=str):
            for shift in range(-2, 2):
                numbers[AtStep(q, shift)] = float(rng.standard_normal())
            numbers.setdefault(q, float(rng.standard_normal()))
        arrived = given.copy()
        for g, couplings in back.items():
            states = {q: AtStep(q, turns.own[kind, f.sender]) for q in (_at_zero(q, kind) for q in g.states())}
            sent = _at_zero(g.emission, kind).xreplace(states)
            arrived = arrived + answer[g] * couplings * float(sent.xreplace(numbers))
        numbers[sums[0]] = float(out @ arrived)
        numbers |= {AtStep(k.symbol, 1): float(np.sum(out * back[k.through] * answer[k.through])) for k in h.feedback}
        values.append(float(rhs.xreplace(numbers)))
    return abs(values[0] - values[1]) < NEAR and abs(values[0] - float(out @ given)) < NEAR


def _at_zero(expr: Any, kind: Kind) -> Any:
    """An expression at the new site; what a sum runs over stays."""
    return expr.xreplace({kind.index: 0 * kind.index})


@witness("state_evolution")
def state_evolution(step: Step, _dps: int) -> list[Verdict]:
    """Every number of the closed equations is the last one that was known when the kind took its turn."""
    theory = step.evidence["theory"]
    turns = turns_of(theory)
    kinds = {s: _kind(meaning) for s, meaning in theory.order_parameters.items()}
    wanted = {AtStep(s, 1): (kinds[s], value) for s, value in theory.closures.items()}
    ok = {c.lhs for c in step.claims} >= set(wanted)
    for claim in (c for c in step.claims if c.lhs in wanted):
        kind, value = wanted[claim.lhs]
        own = [a for a in steps_in(claim.rhs) if a.args[0] in kinds]
        ok = ok and all(a.shift == turns.last[kind][kinds[a.args[0]]] for a in own)
        ok = ok and claim.rhs.xreplace({a: a.args[0] for a in steps_in(claim.rhs)}) == value
        ok = ok and not claim.rhs.xreplace({a: Dummy(positive=True) for a in own}).free_symbols & set(kinds)
    return result(BRUTE_FORCE, bool(ok), "the turns taken one by one, the closed equations at rest")


def _kind(meaning: Expr) -> Kind:
    return next(iter(sorted(meaning.atoms(SiteQuantity), key=str))).family.slots[0]


__all__ = ["messages", "state_evolution"]
