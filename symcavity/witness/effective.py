"""Witnesses of the law of the new site: its declared equations, with fresh couplings chosen for its fields.

The couplings of the new site enter nothing but its fields.  They can be chosen such that each field is any number:
then the declared equations themselves, with the sums that the user wrote, judge the law and its solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from sympy import Dummy, Expr, Piecewise, S

from symcavity.algebra.precision import mp
from symcavity.method.close import assumed, positive_parts
from symcavity.model.averages import Expect
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity
from symcavity.model.ranges import margins
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.order_parameters import OrderParameter
from symcavity.record.symbols import CavitySymbol
from symcavity.witness.declared import Carrier, DeclaredEquation, declared_of
from symcavity.witness.inserted import InsertedSite
from symcavity.witness.moments import free_points
from symcavity.witness.points import TRIES
from symcavity.witness.registry import largest, one_to_one, result, to_digits, witness
from symcavity.witness.statistics import exact_mean, fresh
from symcavity.witness.verbs import SMALL, claimed, inserted_by
from symcavity.witness.world import Env, Key, same

FIELDS = range(-4, 5)
POINTS = 4


class Tuned:
    """The new site with fresh couplings that are chosen for its fields."""

    def __init__(self, site: InsertedSite) -> None:
        self.site, self.world = site, site.world
        self.slots = [(f, env) for f in site.system.laws[site.kind].fields for env in site.components(f)]
        variances = fresh(site, lambda: [site.heard(f, env) for f, env in self.slots])
        self.keys: list[Key] = list(variances)
        self.inverse = self._inverse()

    def _inverse(self) -> Any:
        """Couplings by fields: the least of those that give them."""
        given = self.world.given
        with mp.workdps(self.world.digits):
            A = mp.zeros(len(self.slots), len(self.keys))
            for k, key in enumerate(self.keys):
                given.update(dict.fromkeys(self.keys, mp.mpf(0)))
                given[key] = mp.mpf(1)
                for r, (f, env) in enumerate(self.slots):
                    A[r, k] = self.site.heard(f, env)
            return A.T * mp.inverse(A * A.T)

    def hear(self, fields: list[Any]) -> None:
        """Choose the couplings such that the site hears these fields."""
        with mp.workdps(self.world.digits):
            found = self.inverse * mp.matrix(fields)
        for key, value in zip(self.keys, found, strict=True):
            self.world.given[key] = value
        self.site.forget()


def eta_of(theory: Any, kind: Kind) -> dict[RandomField, CavitySymbol]:
    """The cavity field of each declared field, by the order of the record's definitions."""
    definitions = claimed(theory, "cavity_field", kind)
    return dict(zip(theory.system.laws[kind].fields, (c.lhs for c in definitions), strict=True))


def is_dropped(theory: Any, kind: Kind) -> bool:
    """Whether the record says that a kind is taken without its echo."""
    return bool(claimed(theory, "naive_drop", kind))


# -- the law -----------------------------------------------------------------------------------------


@witness("effective_law")
def effective_law(step: Step, _dps: int) -> list[Verdict]:
    """The declared equations of the new site, where each field is its cavity field and the mean of its echo."""
    theory = step.evidence["theory"]
    site = inserted_by(step, 9)
    world, kind = site.world, site.kind
    means = mean_self_couplings(site)
    if is_dropped(theory, kind):
        means = dict.fromkeys(means, mp.mpf(0))
    etas = eta_of(theory, kind)
    tuned = Tuned(site)
    rows = site.declared.rows[kind]
    named = {r.field: r for r in rows if isinstance(r, Carrier) and r.named is not None}
    targets = []
    for f, env in tuned.slots:
        value = world.value(etas[f], env)
        for g in (g for h, g in site.ways_back() if h == f):
            for b in site.sent(g):
                back = means[f, g, *env.items(), *b.items()] * site.measure(g)
                value += back * world.value(g.emission, site.at_zero(b))
        if f in named:
            value += world.value(named[f].source, site.at_zero(env))
        targets.append(value)
    tuned.hear(targets)
    world.meanings |= theory.order_parameters
    ok = one_to_one(step.claims, rows, partial(_is_row, site))
    ok = ok and _same_pairs(site, step.data.get("pairs", ()))
    return result(BRUTE_FORCE, ok, f"the declared equation of the new site, with the mean of its echo, {SMALL}")


def mean_self_couplings(site: InsertedSite) -> dict[Any, Any]:
    """The mean over the fresh couplings of each self-coupling, by its fields and the places in them."""
    ways = list(site.ways_back())
    means: dict[Any, Any] = {}
    for g in dict.fromkeys(g for _, g in ways):
        heard = [(f, a) for f, other in ways if other == g for a in site.components(f)]
        for b in site.sent(g):
            column = exact_mean(site, partial(site.self_couplings, heard, g, b))
            means |= {(f, g, *a.items(), *b.items()): v for (f, a), v in zip(heard, column, strict=True)}
    return means


def _is_row(site: InsertedSite, claim: Equation, row: DeclaredEquation) -> bool:
    if row.named is not None and claim.lhs != row.named.xreplace({site.kind.index: S.Zero}):
        return False
    world = site.world
    for env in _inner(site, claim, row):
        zero = site.at_zero(env)
        left, right = (world.value(side, zero) for side in (row.declared.lhs, row.declared.rhs))
        if isinstance(row, Carrier) and row.named is None:
            right += world.value(row.source, zero)
        if not (same(world.value(claim.lhs, env), left) and same(world.value(claim.rhs, env), right)):
            return False
    return True


def _inner(site: InsertedSite, claim: Equation, row: DeclaredEquation) -> Iterator[Env]:
    """The values of the component indices that an equation leaves free."""
    free: dict[tuple[Any, ...], dict[Any, int]] = {}
    for env in free_points(site.world, [claim, row.declared]):
        inner = {k: v for k, v in env.items() if k != site.kind.index}
        free[tuple(sorted(inner.items(), key=str))] = inner
    yield from free.values()


def _same_pairs(site: InsertedSite, shown: Any) -> bool:
    """Whether the pairs that are shown are the declared conditions at the new site."""
    return one_to_one(shown, site.declared.pairs[site.kind], partial(_is_pair, site))


def _is_pair(site: InsertedSite, shown: Complementary, declared: Complementary) -> bool:
    zero = site.at_zero()
    return all(
        same(site.world.value(a), site.world.value(b, zero)) for a, b in zip(shown.pair, declared.pair, strict=True)
    )


# -- its solution ------------------------------------------------------------------------------------


@witness("branches", "implicit")
def solution(step: Step, dps: int) -> list[Verdict]:
    """The claimed states in the declared equations of the new site, at seeded parameters and fields."""
    theory, kind = step.evidence["theory"], step.data["kind"]
    etas = eta_of(theory, kind)
    told = {c.lhs.body if isinstance(c.lhs, Expect) else c.lhs: c.rhs for c in step.claims}  # means of linear laws
    states = {q: value for q, value in told.items() if isinstance(q, SiteQuantity)}
    implicit = next((c.rhs for c in step.claims if c.lhs in etas.values()), None)
    worst, met = mp.mpf(0), set[Expr]()
    ok = {q.family for q in states} >= {q.family for q in theory.system.laws[kind].unknowns}
    with mp.workdps(dps + 12):
        for seed in range(POINTS):
            domains = step.data.get("domains", ())
            residual, seen = _residual(theory, kind, states, implicit, domains, seed, dps + 12)
            worst, met = largest(worst, residual), met | seen
    if implicit is not None and not met >= set(_laws(implicit)):
        return []  # no state that was tried lies on one of its branches
    ok = ok and bool(worst < mp.mpf(10) ** (-dps + 8))
    good = "put into the declared equations at seeded fields"
    return to_digits(ok, dps - 8, dps, good, f"residual {mp.nstr(worst, 3)}")


def _residual(
    theory: Any, kind: Kind, states: dict[Any, Expr], implicit: Expr | None, domains: Any, seed: int, digits: int
) -> tuple[Any, set[Expr]]:
    """The largest residual of the declared law at some fields, and the branches on which those lie."""
    declared = declared_of(theory)
    side, zero = {kind: theory.inserted[kind]}, {kind.index: S.Zero}
    ordered = [c for c in assumed(side) if c.atoms(SiteQuantity) and not c.atoms(Dummy, CavitySymbol)]
    positive = [*positive_parts(side), *margins(theory.system.ranges)]
    positive += [(c.lhs - c.rhs).xreplace(zero) for c in ordered]
    worlds = (declared.world(seed + 20 + 100 * k, digits=digits) for k in range(TRIES))
    world = next((w for w in worlds if all(w.value(e) > 0 for e in positive)), declared.world(seed + 20, digits=digits))
    site = InsertedSite(declared, kind, world)
    site_law = SolvedLaw(theory, site)
    inner, parameters = theory.inserted[kind].problem.inner().eta, {s.name for s in theory.system.parameters}
    worst, met = mp.mpf(0), set[Expr]()
    for k, law in product(FIELDS, _laws(implicit)):
        field = world.given[world.cavity_key(inner, {})] = mp.mpf(7 * k + 1) / 5
        if law is not None:  # what the field is depends on a state that is chosen freely
            for x in sorted(law.free_symbols & _free(states), key=str):
                if x.is_Dummy or not (isinstance(x, OrderParameter | CavitySymbol) or x.name in parameters):
                    free = mp.mpf(3 * k + 1) / 7
                    world.given["symbol", x.name] = abs(free) if x.is_nonnegative or x.is_nonpositive else free
            field = world.given[world.cavity_key(inner, {})] = world.value(law)
            if not same(world.value(implicit), field):
                continue  # this state is on another branch
            if not all(world.value(domain.gts - domain.lts) > 0 for domain in domains):
                continue  # the record does not speak of this root
            met.add(law)
        for q, expr in states.items():
            world.given[world.key(q, {})] = world.value(expr)
        worst = largest(worst, site_law.residual())
    return worst, met


def _laws(implicit: Expr | None) -> list[Any]:
    """What a field is on each branch of an implicit law."""
    return [law for law, _ in implicit.args] if isinstance(implicit, Piecewise) else [implicit]


class SolvedLaw:
    """The declared equations of the new site, for states and cavity fields that are given in its world.

    Parameters
    ----------
    theory : Theory
    site : Inserted
    sourced : bool
        Whether the states are those in the presence of the sources.
    """

    def __init__(self, theory: Any, site: InsertedSite, *, sourced: bool = True) -> None:
        self.sourced = sourced
        self.site, self.world = site, site.world
        self.rows = site.declared.rows[site.kind]
        self.pairs = site.declared.pairs[site.kind]
        for row in self.rows:
            if row.named is not None:
                self.world.defined.pop(row.named.family, None)
        self.named = {r.field: r for r in self.rows if isinstance(r, Carrier) and r.named is not None}
        self.etas = eta_of(theory, site.kind)
        self.means = mean_factors(theory, site)
        self.tuned = Tuned(site)

    def heard(self, f: RandomField, env: dict[Any, int]) -> Any:
        """A field of the new site: its cavity field, and what comes back of the site's own states."""
        back = (
            mean * self.world.value(g.emission, {**self.site.at_zero(), **sent})
            for (h, g, at, sent), mean in self.means
            if h == f and at == env
        )
        return mp.fsum(back) + self.world.value(self.etas[f], env)

    def residual(self) -> Any:
        """The largest residual: of the equations, of the signs and of the slackness of the pairs."""
        world, zero = self.world, self.site.at_zero()
        targets = []
        for f, env in self.tuned.slots:
            value = self.heard(f, env)
            if self.sourced and f in self.named:
                value += world.value(self.named[f].source, {**zero, **env})
            targets.append(value)
        self.tuned.hear(targets)
        worst = mp.mpf(0)
        for row in self.rows:
            for inner in _inner(self.site, row.declared, row):
                left, right = (world.value(side, {**zero, **inner}) for side in (row.declared.lhs, row.declared.rhs))
                if self.sourced and isinstance(row, Carrier) and row.named is None:
                    right += world.value(row.source, {**zero, **inner})
                worst = largest(worst, abs(left - right))
        for pair in self.pairs:
            p, q = (world.value(member, zero) for member in pair.pair)
            worst = largest(worst, -p, -q, abs(p * q))
        return worst


def _free(states: dict[Any, Expr]) -> set[Any]:
    return set().union(*(e.free_symbols for e in states.values()))


Way = tuple[RandomField, RandomField, Env, Env]


def mean_factors(theory: Any, site: InsertedSite) -> list[tuple[Way, Any]]:
    """The mean of each self-coupling by what the record claims of it, for order parameters of any value."""
    kind = site.kind
    none = is_dropped(theory, kind)
    symbols = [c.lhs for c in claimed(theory, "self_coupling", kind)]
    known = {c.lhs.args[0]: c.rhs for c in claimed(theory, "self_coupling_mean", kind)}
    out: list[tuple[Way, Any]] = []
    for (f, g), s in zip(site.ways_back(), symbols, strict=True):
        for at in site.components(f):
            for sent in site.sent(g):
                env = dict(zip(getattr(s, "indices", ()), (*at.values(), *sent.values()), strict=False))
                out.append(((f, g, at, sent), mp.mpf(0) if none else site.world.value(known[s], env)))
    return out
