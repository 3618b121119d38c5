"""Witnesses of message passing: the turns of the kinds are taken one by one, own emissions followed there and back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Float, Integer, Sum

from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind, is_index, kind_of_range
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.symbols import AtStep, ComponentSymbol
from symcavity.witness.declared import declared_of
from symcavity.witness.registry import one_to_one, result, witness

SENDERS, TURNS, NEAR, SIZE, STATES = 3, 4, 1e-9, Integer(2), (Variable, Field)


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
    turns = turns_of(theory)
    every = {f for law in declared_of(theory).system.laws.values() for f in law.fields if f.states()}
    ok = len(heard) == len(step.claims) and {h.declared for _, h in heard} == every
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
    out = rng.standard_normal((SENDERS, _count(f.components), _count(f.inner)))  # by component heard, and sent
    through = {k.through: k for k in h.feedback}
    back, answer = {}, {}
    for g in through:
        same = f.coupling.family == g.coupling.family and f.sender != kind
        back[g] = out.swapaxes(1, 2) if same else rng.standard_normal((SENDERS, _count(g.components), _count(g.inner)))
        answer[g] = rng.standard_normal((SENDERS, out.shape[2], back[g].shape[1]))
    given = rng.standard_normal((SENDERS, out.shape[2]))
    numbers: dict[Any, float] = {}
    for g, k in through.items():
        loops = np.einsum("sae,sec,scb->ab", out, answer[g], back[g])
        for place, loop in np.ndenumerate(loops):
            own = k.symbol.at(*(p + 1 for p in place)) if isinstance(k.symbol, ComponentSymbol) else k.symbol
            numbers[AtStep(own, 1)] = numbers.get(AtStep(own, 1), 0.0) + float(loop)
    total = Dummy()
    claims = _written(rhs.xreplace({sums[0]: total}), f.components)
    values = []
    for _ in range(2):
        sent = {g: _written(_at_zero(g.emission, kind), g.inner) for g in back}
        for q in sorted({q for rows in sent.values() for e in rows for q in site_quantities(e)}, key=str):
            for shift in range(-2, 2):
                numbers[AtStep(q, shift)] = float(rng.standard_normal())
            numbers.setdefault(q, float(rng.standard_normal()))
        for s in sorted({s for g in back for s in g.emission.free_symbols if not is_index(s)}, key=str):
            numbers[s] = float(rng.standard_normal())
        arrived = given.copy()
        for g, couplings in back.items():
            states = {q: AtStep(q, turns.own[kind, f.sender]) for e in sent[g] for q in site_quantities(e, *STATES)}
            said = [float(e.xreplace(states).xreplace(numbers)) for e in sent[g]]
            arrived = arrived + np.einsum("sec,scb,b->se", answer[g], couplings, said)
        heard = map(Float, np.einsum("sae,se->a", out, arrived))
        values.append([float(c.xreplace({total: n}).xreplace(numbers)) for c, n in zip(claims, heard, strict=True)])
    without = np.einsum("sae,se->a", out, given)
    return bool(np.allclose(values, [without, without], rtol=0, atol=NEAR))


def _count(limits: Any) -> int:
    """How many components a range has, where sizes without a number are two; one without a range."""
    return int(limits[2].xreplace(dict.fromkeys(limits[2].free_symbols, SIZE))) if limits else 1


def _written(expr: Expr, limits: Any) -> list[Expr]:
    """An expression at each component of a range, its sums over components written out."""
    for total in sorted(expr.atoms(Sum), key=str):
        (inner,) = total.limits
        expr = expr.xreplace({total: Add(*_written(total.function, inner))})
    return [expr.xreplace({limits[0]: Integer(k + 1)}) for k in range(_count(limits))] if limits else [expr]


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
    ok = ok and _conditions_are_met(step, turns, {lhs: kind for lhs, (kind, _) in wanted.items()})
    return result(BRUTE_FORCE, bool(ok), "the turns taken one by one, the closed equations at rest")


def _conditions_are_met(step: Step, turns: Turns, turn: dict[Expr, Kind]) -> bool:
    """Whether every condition is met at the turn of the kind whose states it sums, by a global variable of its own.

    A global variable is known from that turn on: each claim has it as it is then.
    """
    theory, order = step.evidence["theory"], list(turns.last)
    owners = {s: _kind(meaning) for s, meaning in theory.order_parameters.items()}
    rows = []
    for parts, equation in zip(theory.system.global_conditions, theory.global_equations, strict=True):
        moving = [kind for kind, body in parts.items() if site_quantities(body, *STATES)]
        rows.append((next(iter(moving or parts)), equation.lhs))
    met = [claim for claim in step.claims if claim.lhs not in turn]

    def is_row(claim: Equation, row: tuple[Kind, Expr]) -> bool:
        kind, body = row
        last = all(a.shift == turns.last[kind][owners[a.args[0]]] for a in steps_in(claim.lhs) if a.args[0] in owners)
        return last and claim.rhs == 0 and claim.lhs.xreplace({a: a.args[0] for a in steps_in(claim.lhs)}) == body

    if not one_to_one(met, rows, is_row):
        return False
    turn = turn | {claim.lhs: next(kind for kind, body in rows if is_row(claim, (kind, body))) for claim in met}
    shared = theory.system.globals
    known = ((a, c) for c in step.claims for a in steps_in(c.difference) if a.args[0] in shared)
    used = {(a.args[0], turn[c.lhs], a.shift) for a, c in known}
    return any(
        all(shift == int(order.index(by[g]) <= order.index(kind)) for g, kind, shift in used if g in by)
        and {g for g, _, _ in used} <= set(by)
        for chosen in permutations(shared, len(rows))
        for by in [dict(zip(chosen, (kind for kind, _ in rows), strict=True))]
    )


def _kind(meaning: Expr) -> Kind:
    return next(iter(sorted(meaning.atoms(SiteQuantity), key=str))).family.slots[0]
