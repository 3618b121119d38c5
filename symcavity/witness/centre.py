"""Witnesses of what is rewritten before the method: the declaration as the user wrote it, sums and means and all."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import Eq, Expr, S, Sum, sqrt

from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, SiteCount
from symcavity.model.quantities import Complementary, Variable, families, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.declared import declared_of
from symcavity.witness.registry import result, witness
from symcavity.witness.verbs import SMALL
from symcavity.witness.world import World, free_points, same


def _sides(entry: Any) -> list[Expr]:
    if isinstance(entry, Expr):
        return [entry]
    return [entry.lhs, entry.rhs] if isinstance(entry, Equation | Eq) or hasattr(entry, "lhs") else list(entry.pair)


def _put_in(world: World, system: Any) -> bool:
    """Give the declared couplings the centred ones plus their means, and the new averages what their conditions say."""
    ok = True
    for x, z in system.centring.families.items():
        unit = _unit(world, x, z)
        ok = ok and z.mean == 0 and z.slots == x.slots and unit is not None
        first, second = x.slots
        for a, b in product(world.sites(first), world.sites(second)):
            mean = world.value(x.mean, dict(zip(x.ends, (a, b), strict=True)))
            world.given[world.key(x[a, b], {})] = (unit or 1) * world.value(z[a, b]) + mean
    return ok


def _unit(world: World, x: Coupling, z: Coupling) -> Any:
    """One where two couplings have the same variance at every pair of sites, or sqrt(N); None where it is neither."""
    first, second = x.slots
    places = [{second.index: b} | {first.index: a} for a, b in product(world.sites(first), world.sites(second))]
    units = (world.value(S.One), world.value(sqrt(N)))
    every = [(world.value(x.variance, at), world.value(z.variance, at)) for at in places]
    return next((unit for unit in units if all(same(a, unit**2 * b) for a, b in every)), None)


@witness("emissions")
def emissions(step: Step, _dps: int) -> list[Verdict]:
    """Each claim, and the whole declaration as it was typed and as it was rewritten, with all sums written out."""
    theory = step.evidence["theory"]
    system = theory.system
    source = system if system.record is None else system.record.problem
    typed, rewritten = ([first, *rest] if system.record is not None else [*first, *rest]
                        for first, rest in (source.typed, source.written))  # fmt: skip
    brought = {q for entry in rewritten for side in _sides(entry) for q in site_quantities(side, Variable)}
    brought -= {q for entry in typed for side in _sides(entry) for q in site_quantities(side, Variable)}
    meanings = [entry for entry in rewritten if _sides(entry)[0] in brought]
    ok = bool(meanings) and len(brought) >= len(meanings) == len(rewritten) - len(typed)
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        for entry in meanings:
            variable, meaning = _sides(entry)
            ((kind, _),) = variable.site.items()
            for at in world.sites(kind):
                place = {kind.index: at}
                world.given[world.key(variable, place)] = world.value(meaning, place)
        rest = [entry for entry in rewritten if entry not in meanings]
        ok = ok and len(rest) == len(typed) and all(_agree(world, a, b) for a, b in zip(typed, rest, strict=False))
        ok = ok and all(_agree(world, claim.lhs, claim.rhs) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"the declaration as it was typed, {SMALL}", "not what was declared")


@witness("centre")
def centre(step: Step, _dps: int) -> list[Verdict]:
    """Each claim, and the whole declaration before and after, with all sums written out."""
    theory = step.evidence["theory"]
    system = theory.system
    source = system if system.record is None else system.record.problem
    ok = bool(step.claims)
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        ok = ok and _put_in(world, source)
        is_problem = system.record is not None
        shared = (*source.subject_to, *source.known) if is_problem else (*source.declared, *source.conditions)
        added = [e for e in shared if _brought_in(e, source)]
        world.meanings |= {g: Sum(body, kind.range) / kind.size for g, (kind, body) in source.centring.averages.items()}
        world.meanings |= {
            g: b.total / sqrt(N) - sqrt(N) * b.average for g, b in source.centring.balances.items()
        }
        world.meanings |= {g: sqrt(total / N) for g, total in source.centring.norms.items()}
        ok = ok and len(added) == len(source.centring.globals)
        ok = ok and all(same(world.value(left), world.value(right)) for left, right in map(_sides, added))
        before, after = _declarations(source, added, problem=is_problem)
        ok = ok and len(before) == len(after) and all(_agree(world, a, b) for a, b in zip(before, after, strict=False))
        ok = ok and all(_agree(world, claim.lhs, claim.rhs) for claim in step.claims)
    left = [x for x in families([f.coupling for f in system.fields], Coupling) if x.mean != 0]
    return result(BRUTE_FORCE, ok and not left, f"the declaration with its means, {SMALL}", "not what was declared")


def _brought_in(entry: Any, source: Any) -> bool:
    """Whether an entry is the condition of one of the new averages: its sum, and the number of sites times it."""
    sides = _sides(entry)
    known = any(sides[-1].has(g) and sides[-1].has(SiteCount) for g in source.centring.globals)
    return known and sides[0].has(Sum)


def _declarations(source: Any, added: list[Any], *, problem: bool) -> tuple[list[Any], list[Any]]:
    """Everything declared, as the user wrote it and as it was rewritten."""
    if problem:
        first, rest = source.written
        return [first, *rest], [source.minimize, *(c for c in source.subject_to if c not in added)]
    equations, conditions = source.written
    kept = [e for e in source.declared if e not in added]
    return [*equations, *conditions], [*kept, *source.conditions]


def _agree(world: World, one: Any, two: Any) -> bool:
    """Whether two entries have the same sides, at all values of the indices that they leave free."""
    for a, b in zip(_sides(one), _sides(two), strict=True):
        for env in free_points(world, [a, b]):
            if not same(world.value(a, env), world.value(b, env)):
                return False
    return isinstance(one, Complementary) == isinstance(two, Complementary)
