"""What the numerics need to know of a theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from symcavity.errors import FlatMinimum, Infeasible, NotConverged, UnsupportedLaw
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.values import GibbsMeasure, Given, Task
from symcavity.evaluate.solutions.told import SHOWN
from symcavity.evaluate.solving.attempts import solve_given
from symcavity.method.fluctuations import variance_of_minimum
from symcavity.method.mirrors import mirrors
from symcavity.method.moved import moved_of
from symcavity.method.pair import pair_of
from symcavity.method.recession import Side, widest_margin
from symcavity.method.saddle import saddle_of, scales_of
from symcavity.method.theory import Theory
from symcavity.method.thermal_scatter import variance_of_free_energy
from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.model.typed import OBJECTIVE


def task_of(theory: Theory) -> Task:
    """Return what the numerics need to know of a theory; it is made once."""
    if "task" not in theory.memory:
        system = theory.system
        if system.time is not None:
            raise UnsupportedLaw(
                "The states of this theory depend on time: run it forward in time instead of solving it.",
                "theory.evolve(values, until=...)",
            )
        held = {s: m.atoms(SiteQuantity) for s, m in theory.order_parameters.items()}
        states = set() if system.record is None else system.record.states
        theory.memory["task"] = Task(
            theory.equations,
            theory.scaled_unknowns,
            tuple(p for p in system.parameters if p not in theory.binding),
            tuple(q for q in system.quenched if q.given is None or q.low is not None),
            # without a condition that fixes it, no load follows
            lambda with_load: theory.reduced_with_load if with_load and system.fixed else theory.reduced,
            lambda: theory.gains,
            lambda: theory.objective,
            lambda held: (variance_of_free_energy if system.weights else variance_of_minimum)(theory, held),
            lambda: _meant(theory),
            lambda: moved_of(theory),
            lambda observed, over: pair_of(theory, observed, over),
            theory.in_words,
            theory.units,
            theory.assumed(),
            system.name,
            variances=tuple(f.coupling.family.variance for f in system.fields),
            ranges=system.ranges,
            responses=tuple(s for s, m in theory.order_parameters.items() if m.has(SiteResponse)),
            primal=tuple(
                s for s, m in held.items() if {q.family for q in m if not isinstance(q, Quenched)} <= states
            ),
            convex=system.convex,
            linear=all(site.strategy.is_linear for site in theory.inserted.values()),
            kinds=system.kinds,
            jumping=frozenset() if system.convex else _jumping(theory),
            saddle=cache(lambda: saddle_of(theory)),
            has_margin=lambda sides, given: _has_margin(theory, sides, given),
            scales=cache(lambda: scales_of(theory)),
            measure=_measure(theory),
        )
    return theory.memory["task"]


def _meant(theory: Theory) -> tuple[Any, ...]:
    """What a user may call the minimum of a problem, or the free energy of a measure."""
    weights = theory.system.weights.values()
    try:
        formula = theory.free_energy if weights else theory.objective
    except UnsupportedLaw:
        return () if weights else (OBJECTIVE,)
    return (formula,) if any(not w.is_cold for w in weights) else (OBJECTIVE, formula)


def _has_margin(theory: Theory, sides: Sequence[Side], given: Given) -> bool | None:
    """Whether some direction to given sides of fields has a margin; None where that is open."""
    key = "margin", tuple(sides)
    if key not in theory.memory:
        theory.memory[key] = widest_margin(theory.system.record.problem, sides) if theory.system.record else None
    found: Theory | None = theory.memory[key]
    if found is None:
        return None
    task = task_of(found)
    held = {s: v for s, v in given.exact.items() if s in (*task.parameters, *task.ratios, *task.sizes)}
    try:
        at = replace(given, exact=held, solve_for=(), dps=min(given.dps, IN_DOUBLE))
        solution = solve_given(task, at, found.observable)
    except Infeasible:
        return False
    except (FlatMinimum, NotConverged):
        return None
    return True if solution.is_limit or solution.digits >= SHOWN else None  # a rough one proves nothing


def _measure(theory: Theory) -> GibbsMeasure | None:
    """What tells solutions of a Gibbs measure apart; those of a convex problem have no need of it."""
    weights = theory.system.weights.values()
    if not weights or theory.system.convex or theory.is_naive:
        return None
    states = [q for w in weights if not w.is_field for q in w.states]
    discrete = all(getattr(q.family, "values", ()) for q in states)
    found: list[Any] = []
    for word in ("free_energy", "entropy"):
        try:
            found.append(getattr(theory, word))
        except UnsupportedLaw:
            found.append(None)
    cold = any(w.is_cold for w in weights)
    free, entropy = found
    return GibbsMeasure(free, entropy, discrete, cold, _is_bound(theory), cache(lambda: mirrors(theory)))


def _is_bound(theory: Theory) -> bool:
    """Whether Guerra's bound holds: discrete states of one square that meet in pairs, and nothing else shared.

    The variance of the energy of pairs is then a square of the overlap of two configurations, which is convex, and that
    of a configuration with itself does not fluctuate.
    """
    system = theory.system
    fields = [f for f in system.fields if f.states()]
    pairs = all(f.sender == f.hearer and f.coupling.family.reciprocity == 1 for f in fields)
    if not pairs or system.globals or any(w.is_local or w.is_field for w in system.weights.values()):
        return False
    values = [getattr(w.state.family, "values", ()) for w in system.weights.values() if hasattr(w.state, "family")]
    return len(values) == len(system.weights) and all(len({v**2 for v in own}) == 1 for own in values)


def _jumping(theory: Theory) -> frozenset[Any]:
    """The states whose law jumps with a field that a change of them reaches again."""
    found: set[Any] = set()
    for kind, site in theory.inserted.items():
        if site.law.weight is not None:  # its law says which of several states is meant
            continue
        jumping: frozenset[Any] = getattr(site.solution, "jumping", frozenset())
        if jumping and any(f.states() for f in theory.system.laws[kind].fields) and _is_reached_again(theory, kind):
            found |= jumping
    return frozenset(found)


def _is_reached_again(theory: Theory, kind: Kind) -> bool:
    """Whether what a kind of site sends comes back to its fields, through whatever others."""
    try:
        gains = theory.gains
    except UnsupportedLaw:  # not derived
        return True
    own = [k for k, spread in enumerate(gains.spreads) if spread.hearer == kind]
    return any(row[k] != 0 for row in gains.rounds for k in own)
