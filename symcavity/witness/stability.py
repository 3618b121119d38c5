"""Witnesses of the stability: changes of the fields followed through the declared sums, site by site."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from sympy import Expr, S

from symcavity.algebra.precision import mp
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.model.fields import RandomField
from symcavity.model.quantities import Field, Variable, site_quantities
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.symbols import AtStep
from symcavity.witness.declared import Carrier, declared_of
from symcavity.witness.moments import coupling_variance
from symcavity.witness.points import solved_point
from symcavity.witness.registry import numeric, result, to_digits, witness
from symcavity.witness.statistics import coupling_variances, mean_over
from symcavity.witness.verbs import SMALL
from symcavity.witness.world import World, same

Env = dict[Any, int]


class Changes:
    """Small random changes of all fields, in a small world: their covariances at each site, and what comes of them."""

    def __init__(self, theory: Any, step: Step, seed: int) -> None:
        self.declared = declared_of(theory)
        self.world: World = self.declared.world(seed)
        self.spreads, self.symbols = step.evidence["spreads"], step.evidence["symbols"]
        self.rows = {
            kind: [row for row in self.declared.carriers(kind) if row.field.states()] for kind in theory.inserted
        }

    def covariance(self, f: RandomField, g: RandomField, at: int, sizes: Mapping[Any, Any], *both: Env) -> Any:
        """The claimed covariance of the changes of two fields at a site: of vectors, component by component."""
        total = mp.mpf(0)
        if both and both[0] != both[1]:
            return total
        for spread, symbol in zip(self.spreads, self.symbols, strict=True):
            if {spread.first.declared, spread.second.declared} == {f, g}:
                total += self.world.value(spread.profile, {f.hearer.index: at}) * sizes[symbol]
        return total

    def next(self, f: RandomField, g: RandomField, at: int, sizes: Mapping[Any, Any], own: Env, other: Env) -> Any:
        """The covariance of two fields at a site after the senders have answered: exact over their couplings."""
        if f.sender != g.sender:
            return mp.mpf(0)
        total = mp.mpf(0)
        rows = self.rows[f.sender]
        sums = self.points(f.inner), self.points(g.inner)
        for j, one, two in product(self.world.sites(f.sender), *sums):
            env = {f.hearer.index: at, f.sender_index: j}

            def both(first: Env = {**env, **own, **one}, second: Env = {**env, **other, **two}) -> Any:  # noqa: B006
                return self.world.value(f.coupling, first) * self.world.value(g.coupling, second)

            variances = {key: coupling_variance(self.world, key) for key in coupling_variances(self.world, both)}
            moment = mean_over(self.world, variances, both) * self.apart(f, g, at, j)
            for a, b in product(rows, rows) if moment != 0 else ():
                for k, m in product(self.points(a.field.components), self.points(b.field.components)):
                    answers = self.answer(f, a, j, one, k) * self.answer(g, b, j, two, m)
                    total += moment * answers * self.covariance(a.field, b.field, j, sizes, k, m)
        return total

    def apart(self, f: RandomField, g: RandomField, at: int, j: int) -> Any:
        """What a product of couplings is multiplied by where a site hears itself, as one of many sites would.

        A coupling there and the one back are two variables; of a site with itself they are one.
        """
        if f.hearer != f.sender or at != j:
            return mp.mpf(1)
        ends = [self.world.key(h.coupling, {h.hearer.index: 1, h.sender_index: 2})[3][:2] for h in (f, g)]
        if ends[0] == ends[1]:
            return mp.mpf(1)
        one, other = f.coupling.family, g.coupling.family
        return self.world.value(one.reciprocity) if one == other else mp.mpf(0)

    def points(self, limits: Any) -> list[Env]:
        """The components of a vector."""
        return list(self.world.points([limits])) if limits else [{}]

    def answer(self, f: RandomField, row: Carrier, at: int, sent: Env, heard: Env) -> Any:
        """How the emission of a site into a field answers to a unit change of a field that the site hears."""
        world, kind = self.world, row.kind
        env = {kind.index: at, **sent}
        part = dict(zip(row.source.indices[1:], heard.values(), strict=True))
        source = world.key(row.source, {**env, **part})
        slope = mp.fsum(
            world.value(f.emission.diff(q), env) * world.response(world.key(q, env), source)
            for q in site_quantities(f.emission, Variable, Field)
        )
        return slope * self.weight(row, at, heard)

    def weight(self, row: Carrier, at: int, heard: Env) -> Any:
        """How much the declared equation of a site changes with the field in it: by one coupling that grows."""
        world, f = self.world, row.field
        env = {row.kind.index: at, **heard, **self.points(f.inner)[0]}
        other = next(j for j in world.sites(f.sender) if f.sender != f.hearer or j != at)
        key = world.key(f.coupling, {**env, f.sender_index: other})
        base = world.number(key, state=True)
        values = []
        for value in (base, base + 1):
            world.given[key] = value
            values.append(world.value(row.declared.rhs, env))
        del world.given[key]
        return (values[1] - values[0]) / world.value(f.emission, {**env, f.sender.index: other})


def _next(world: World, step: Step) -> dict[Any, Any]:
    """The sizes after a step, by what the claims say of those before it."""
    now = {AtStep(s, 0): s for s in step.evidence["symbols"]}
    return {c.lhs.args[0]: world.value(c.rhs.xreplace(now)) for c in step.claims}


def _growth(step: Step, number: Callable[[Expr], Any]) -> Any:
    """The largest eigenvalue, in modulus, of the map that the claims make of the sizes: what one step makes of each."""
    now = [AtStep(s, 0) for s in step.evidence["symbols"]]
    one = [{other: S.One if other == size else S.Zero for other in now} for size in now]
    numbers = mp.matrix([[number(c.rhs.xreplace(rule)) for rule in one] for c in step.claims])
    if _rounds_through(numbers):
        return mp.inf
    sizes, _ = mp.eig(numbers.apply(lambda e: mp.zero if mp.isinf(e) else e))
    return max(map(abs, sizes))


def _rounds_through(numbers: Any) -> bool:
    """Whether a round goes through what grows without bound, as where states jump."""
    count = range(numbers.rows)
    reached = {(a, b) for a in count for b in count if numbers[a, b] != 0}
    for _ in count:
        reached |= {(a, c) for a, b in reached for other, c in reached if other == b}
    return any(mp.isinf(numbers[a, b]) and (b, a) in reached | {(a, a)} for a in count for b in count)


def _has_odd_round(spreads: Iterable[Any]) -> bool:
    """Whether a way from a kind to itself, against the sums that it hears, has an odd number of steps."""
    links = {(s.hearer, s.sender) for s in spreads}
    ways = {(hearer, sender, True) for hearer, sender in links}
    while longer := {(start, on, not odd) for start, at, odd in ways for end, on in links if end == at} - ways:
        ways |= longer
    return any(start == end and odd for start, end, odd in ways)


@witness("spread")
def spread(step: Step, _dps: int) -> list[Verdict]:
    """The covariance of every pair of fields at every site, after the changes have gone through all senders."""
    theory = step.evidence["theory"]
    symbols = list(step.evidence["symbols"])
    ok = [c.lhs for c in step.claims] == [AtStep(s, 1) for s in symbols]
    for seed in (4, 9):
        changes = Changes(theory, step, seed)
        world = changes.world
        before = {s: world.value(s) for s in changes.symbols}
        after = _next(world, step)
        for kind, rows in changes.rows.items():
            for f, g in product([row.field for row in rows], repeat=2):
                for at, *own in product(world.sites(kind), changes.points(f.components), changes.points(g.components)):
                    true = changes.next(f, g, at, before, *own)
                    ok = ok and same(true, changes.covariance(f, g, at, after, *own))
    return result(BRUTE_FORCE, ok, f"variances added over the declared couplings, {SMALL}")


@witness("stability")
def stability(step: Step, dps: int) -> list[Verdict]:
    """The largest growth of a spread by the map that was followed site by site: the claimed factor, and the number."""
    theory = step.evidence["theory"]
    first = next(s for s in step.evidence["record"] if s.rule == "spread")
    rounds = 2 if step.data["round"] else 1
    ok = rounds == 1 or not _has_odd_round(first.evidence["spreads"])
    for seed in (4, 9):
        world = declared_of(theory).world(seed)
        for claim in step.claims:
            ok = ok and same(world.value(claim.rhs), _growth(first, world.value) ** rounds)
    told = "the largest growth of a spread from kind to kind", "a spread grows by another factor"
    out = result(BRUTE_FORCE, ok, *told) if step.claims or rounds > 1 else []
    solution, digits, where = solved_point(theory, dps)
    if solution is None or isinstance(solution, SampledSolution):
        return [*out, Verdict(numeric(dps), None, where)] if solution is None and not step.claims else out
    with mp.workdps(dps):
        grown = _growth(first, solution.number) ** rounds
        told = mp.convert(solution.stability)
        gap = mp.zero if told == grown else abs(told - grown) / max(1, grown)
    ok = bool(gap < mp.mpf(10) ** -digits)
    differs = f"the number differs by {mp.nstr(gap, 3)} at {where}"
    return out + to_digits(ok, digits, dps, f"the number at {where}", differs)
