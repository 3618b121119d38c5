"""Witnesses of averages over the fresh couplings: exact means of the written-out fields, by the declared moments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

from sympy import Expr

from symcavity.algebra.precision import mp
from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.record.derivation import BRUTE_FORCE, SYMBOLIC, Step, Verdict
from symcavity.record.symbols import ComponentSymbol, DisorderAverage
from symcavity.witness.inserted import InsertedSite
from symcavity.witness.moments import coupling_moment, free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.verbs import SMALL, claimed, inserted_by
from symcavity.witness.world import DIGITS, Key, World, same


def coupling_variances(world: World, call: Callable[[], Any]) -> dict[Key, Any]:
    """The couplings that something contains, with their declared variances."""
    world.seen = set()
    try:
        call()
        keys = world.seen
    finally:
        world.seen = None
    return {key: coupling_moment(world, key, key) for key in sorted(keys, key=str) if key[0] == Coupling.__name__}


def fresh(site: InsertedSite, call: Callable[[], Any]) -> dict[Key, Any]:
    """The couplings of the new site that something contains, with their declared variances."""
    return {key: v for key, v in coupling_variances(site.world, call).items() if 0 in key[3][:2]}


def mean_over(world: World, variances: dict[Key, Any], call: Callable[[], Any]) -> Any:
    """The mean over some couplings of a number, or of a vector, that is at most of the third degree in them.

    They have mean zero, the declared variances, and the declared means of products of two.
    """
    tied = {pair: coupling_moment(world, *pair) for pair in combinations(variances, 2)}
    tied = {pair: c for pair, c in tied.items() if c != 0}
    given = world.given
    before = {key: given[key] for key in variances if key in given}

    def at(*moved: tuple[Key, int]) -> Any:
        given.update(dict.fromkeys(variances, mp.mpf(0)))
        given.update({key: mp.mpf(value) for key, value in moved})
        return call()

    try:
        with mp.workdps(DIGITS):
            none = out = at()
            for key, v in variances.items():
                out = out + v * ((at((key, 1)) + at((key, -1))) / 2 - none)
            for (x, y), c in tied.items():
                even = at((x, 1), (y, 1)) + at((x, -1), (y, -1))
                out = out + c * (even - at((x, 1), (y, -1)) - at((x, -1), (y, 1))) / 4
            return out
    finally:
        for key in variances:
            del given[key]
        given.update(before)


def exact_mean(site: InsertedSite, call: Callable[[], Any]) -> Any:
    """The mean over the fresh couplings."""

    def again() -> Any:
        site.forget()
        return call()

    try:
        return mean_over(site.world, fresh(site, call), again)
    finally:
        site.forget()


def define(site: InsertedSite, claims: list[Equation], exprs: list[Expr]) -> None:
    """Give cavity fields and self-couplings the meaning that the record says, at any component."""
    rules = {c.lhs: c.rhs for c in claims}
    for symbol in {s for e in exprs for s in e.atoms(ComponentSymbol)}:
        for known, value in list(rules.items()):
            if isinstance(known, ComponentSymbol) and known != symbol and _one_family(known, symbol):
                moved = dict(zip(known.indices, symbol.indices, strict=True))
                rules[symbol] = value.xreplace({a: b for a, b in moved.items() if a != b})
    site.world.meanings |= rules


def _one_family(a: ComponentSymbol, b: ComponentSymbol) -> bool:
    tags = [s.tag.rpartition("_")[0] for s in (a, b)]
    return (a.base, a.kind, tags[0]) == (b.base, b.kind, tags[1])


@witness("field_statistics", "self_coupling_mean")
def means(step: Step, _dps: int) -> list[Verdict]:
    """Both sides of each claim: the mean of the written-out sums, and order parameters by what they stand for."""
    theory = step.evidence["theory"]
    site = inserted_by(step, 7)
    rule = "cavity_field" if step.rule == "field_statistics" else "self_coupling"
    definitions = claimed(theory, rule, site.kind)
    bodies = [c.lhs.args[0] for c in step.claims if isinstance(c.lhs, DisorderAverage)]
    define(site, definitions, bodies)
    site.world.meanings |= theory.order_parameters
    ok = len(bodies) == len(step.claims) and _complete(step, definitions, bodies)
    for claim, body in zip(step.claims, bodies, strict=False):
        for env in free_points(site.world, [claim]):
            true = exact_mean(site, partial(site.world.value, body, env))
            ok = ok and same(true, site.world.value(claim.rhs, env))
    return result(BRUTE_FORCE, ok, f"exact means over the fresh couplings, {SMALL}")


def _complete(step: Step, definitions: list[Equation], bodies: list[Expr]) -> bool:
    """Whether every mean is claimed that a law needs: of each self-coupling, or of each field and pair of fields."""
    count = len(definitions)
    expected = count + count * (count + 1) // 2 if step.rule == "field_statistics" else count
    known = {(_plain(c.lhs)) for c in definitions}
    return len(set(bodies)) == expected and all({_plain(s) for s in b.free_symbols} & known for b in bodies)


def _plain(symbol: Any) -> Any:
    return (symbol.base, symbol.kind, symbol.tag.rpartition("_")[0]) if isinstance(symbol, ComponentSymbol) else symbol


@witness("naive_drop")
def dropped(step: Step, _dps: int) -> list[Verdict]:
    """The law that the record goes on with has no echo: every self-coupling of the kind is zero in it."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    used = theory.inserted[kind].means.values()
    ok = all(c.rhs == 0 for c in step.claims) and all(v == 0 for v in used)
    ok = ok and {c.lhs for c in step.claims} == {c.lhs for c in claimed(theory, "self_coupling", kind)}
    return result(SYMBOLIC, ok, "the law of the kind is used without its echo", "the law is used with an echo")
