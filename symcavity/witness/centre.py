"""Witnesses of what is rewritten before the method: the declaration as the user wrote it, sums and means and all."""

from __future__ import annotations

from itertools import product
from typing import Any

from sympy import Eq, Expr, S, sqrt

from symcavity.algebra.precision import mp
from symcavity.model.complementary import Complementary
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import N
from symcavity.model.quantities import SiteQuantity, Variable, site_quantities
from symcavity.model.rewriting import Declaration
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.declared import declared_of
from symcavity.witness.moments import free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.verbs import SMALL
from symcavity.witness.world import STEPS, World, same


def _sides(entry: Any) -> list[Expr]:
    if isinstance(entry, Expr):
        return [entry]
    return [entry.lhs, entry.rhs] if isinstance(entry, Equation | Eq) or hasattr(entry, "lhs") else list(entry.pair)


def _put_in(world: World, centred: dict[Coupling, Coupling]) -> bool:
    """Give the declared couplings the centered ones plus their means."""
    ok = True
    for x, z in centred.items():
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


@witness("emissions", "clock")
def emissions(step: Step, _dps: int) -> list[Verdict]:
    """Each claim, and the whole declaration as it was typed and as it was rewritten, with all sums written out."""
    theory, typed, rewritten = _told(step)
    brought = {q.now for side in rewritten.expressions for q in site_quantities(side, Variable)}
    brought -= {q.now for side in typed.expressions for q in site_quantities(side, Variable)}
    meanings = [entry for entry in rewritten.entries if _sides(entry)[0] in brought]
    ok = bool(meanings or step.claims) and len(brought) >= len(meanings) == len(rewritten.parts) - len(typed.parts)
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        for entry in meanings * len(meanings):  # one may stand in another
            variable, meaning = _sides(entry)
            ((kind, _),) = variable.site.items()
            for at, when in product(world.sites(kind), [0] if variable.time is None else range(-STEPS, 2 * STEPS)):
                place = {kind.index: at, **({} if variable.time is None else {variable.time: when})}
                world.given[world.key(variable, place)] = world.value(meaning, place)
        ok = ok and _same(world, typed.parts, [entry for entry in rewritten.parts if entry not in meanings])
        ok = ok and all(_agree(world, claim.lhs, claim.rhs) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"the declaration as it was typed, {SMALL}", "not what was declared")


@witness("combined")
def combined(step: Step, _dps: int) -> list[Verdict]:
    """The declaration before and after, with all sums written out, and the moments of each combination."""
    theory, before, after = _told(step)
    whole = {claim.lhs.family: claim.rhs for claim in step.claims}
    gone = families([e for claim in step.claims for e in (claim.rhs,)], Coupling)
    left = {*families(after.expressions, Coupling)}
    ok = bool(whole) and not left & ({*gone} - {*whole}) and all(y.slots == x.slots for y in whole for x in gone)
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        for y, meaning in whole.items():  # one may stand in another: in the order of the claims
            first, second = y.slots
            for a, b in product(world.sites(first), world.sites(second)):
                at = {first.index: a, second.index: b}
                world.given[world.key(y[a, b], {})] = world.value(meaning, at)
                parts = {x.family: world.value(meaning.diff(x), at) for x in site_quantities(meaning, Coupling)}
                mean = sum(c * world.value(x.mean, at) for x, c in parts.items())
                square = sum(
                    c * d * (world.value(x.variance, at) if x == z else _together(world, x, z, at))
                    for x, c in parts.items() for z, d in parts.items()
                )  # fmt: skip
                ok = ok and same(world.value(y.mean, at), mean) and same(world.value(y.variance, at), square)
        ok = ok and _same(world, before.parts, after.parts)
        ok = ok and all(_agree(world, claim.lhs, claim.rhs) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"the declaration as it was typed, {SMALL}", "not what was declared")


@witness("coincident")
def coincident(step: Step, _dps: int) -> list[Verdict]:
    """The declaration before and after, with all sums written out, and that nothing is left of what others fix."""
    theory, before, after = _told(step)
    fixed = {claim.lhs: claim.rhs for claim in step.claims}
    ok = bool(fixed) and not {*families(after.expressions, Coupling)} & {x.family for x in fixed}
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        for x, meaning in fixed.items():
            first, second = x.family.slots
            for a, b in product(world.sites(first), world.sites(second)):
                at = {first.index: a, second.index: b} if first != second else {first.index: a}
                ok = ok and _nothing_left(world, x, meaning, at)
                world.given[world.key(x.family[a, b], {})] = world.value(meaning.xreplace(dict(_moved(meaning, a, b))))
        ok = ok and _same(world, before.parts, after.parts)
    return result(BRUTE_FORCE, ok, f"the declaration as it was typed, {SMALL}", "not what was declared")


def _moved(meaning: Expr, a: Any, b: Any) -> list[tuple[Any, Any]]:
    """The couplings of an expression between two sites."""
    return [(z, z.family[a, b]) for z in site_quantities(meaning, Coupling)]


def _nothing_left(world: World, x: SiteQuantity, meaning: Expr, at: dict[Any, Any]) -> bool:
    """Whether a coupling minus what is said of it has the mean and the mean square zero, by declared moments."""
    parts = {z: world.value(-meaning.diff(z), at) for z in site_quantities(meaning, Coupling)} | {x: world.value(S.One)}
    mean = sum(c * world.value(z.family.mean, at) for z, c in parts.items())
    square = sum(
        c * d * (world.value(y.family.variance, at) if y == z else _together(world, y.family, z.family, at))
        for y, c in parts.items() for z, d in parts.items()
    )  # fmt: skip
    return bool(same(1 + mean, world.value(S.One)) and same(1 + square, world.value(S.One)))


def _together(world: World, x: Coupling, z: Coupling, at: dict[Any, Any]) -> Any:
    """The covariance of two different couplings between the same sites."""
    rho = x.correlation.get(z, z.correlation.get(x, S.Zero))
    return world.value(rho * sqrt(x.variance * z.variance), at)


@witness("centre")
def centre(step: Step, _dps: int) -> list[Verdict]:
    """Each claim, and the whole declaration before and after, with all sums written out."""
    theory, before, after = _told(step)
    stage = theory.system.rewritten.stages[step.key]
    added = [said for g, said in after.brought if g not in dict(before.brought)]
    ok = bool(step.claims) and len(added) == len(stage.rewriting.meanings)
    centred = getattr(stage.rewriting, "families", None)
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        ok = ok and _put_in(world, centred or {})
        for g, meaning in stage.rewriting.meanings.items():
            if isinstance(g, SiteQuantity):
                world.defined[g.family] = meaning  # at each time
            else:
                world.meanings[g] = meaning
        ok = ok and all(_agree(world, *_sides(entry)) for entry in added)
        ok = ok and _same(world, before.parts, [entry for entry in after.parts if entry not in added])
        ok = ok and all(_agree(world, claim.lhs, claim.rhs) for claim in step.claims)
    every = families([f.coupling for f in theory.system.fields], Coupling)
    left = [x for x in every if x.mean != 0 and centred is not None]
    return result(BRUTE_FORCE, ok and not left, f"the declaration with its means, {SMALL}", "not what was declared")


@witness("roots")
def roots(step: Step, _dps: int) -> list[Verdict]:
    """The equations as they were typed, and that the second member of each pair has no limit at the bound."""
    theory, before, _ = _told(step)
    pairs = [pair.pair for pair in step.data["pairs"]]
    typed = [entry.difference if isinstance(entry, Equation) else _sides(entry)[-1] for entry in before.entries]
    held = [law.pairs for law in theory.system.laws.values()]
    ok = bool(pairs) and len(pairs) <= sum(map(len, held))
    for seed in (2, 3):
        world = declared_of(theory).world(seed)
        for claim in step.claims:
            rests = [rest for _, rest in pairs if rest in claim.rhs.args or -rest in claim.rhs.args]
            ok = ok and bool(rests) and claim.lhs in typed and _agree(world, claim.lhs, claim.rhs)
        ok = ok and all(_grows(world, gap, rest) for gap, rest in pairs)
    return result(BRUTE_FORCE, ok, f"the equations as they were typed, {SMALL}", "not what was declared")


def _grows(world: World, gap: Expr, rest: Expr) -> bool:
    """Whether an expression grows by more than before in each step by which its state comes nearer to its bound."""
    (state,) = site_quantities(gap, Variable)
    ((kind, index),) = state.site.items()
    at = {index: world.sites(kind)[0]}
    key, start, slope = world.key(state, at), world.value(state, at), world.value(gap.diff(state), at)
    left, seen = world.value(gap, at), []
    for power in (8, 16, 24):
        world.given[key] = start + (mp.mpf(10) ** -power - left) / slope
        seen.append(world.value(rest, at))
    world.given[key] = start
    return bool(2 * abs(seen[2] - seen[1]) > abs(seen[1] - seen[0]) > 0)


def _told(step: Step) -> tuple[Any, Declaration, Declaration]:
    """The theory, and the declaration before and after the rewriting that a step tells of."""
    theory = step.evidence["theory"]
    stage = theory.system.rewritten.stages[step.key]
    return theory, stage.before, stage.after


def _same(world: World, before: list[Any], after: list[Any]) -> bool:
    """Whether two lists of entries say the same, one by one."""
    return len(before) == len(after) and all(_agree(world, a, b) for a, b in zip(before, after, strict=True))


def _agree(world: World, one: Any, two: Any) -> bool:
    """Whether two entries have the same sides, at all values of the indices that they leave free."""
    for a, b in zip(_sides(one), _sides(two), strict=True):
        for env in free_points(world, [a, b]):
            if not same(world.value(a, env), world.value(b, env)):
                return False
    return isinstance(one, Complementary) == isinstance(two, Complementary)
