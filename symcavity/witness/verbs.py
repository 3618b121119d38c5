"""Witnesses of the verbs: the declared sums written out, with and without a site 0, and explicit response matrices."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from sympy import Expr, S

from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.times import Time
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.record.symbols import DisorderAverage, Perturbation
from symcavity.witness.declared import Carrier, declared_of
from symcavity.witness.inserted import InsertedSite
from symcavity.witness.moments import coupling_moment, free_points
from symcavity.witness.registry import one_to_one, result, witness
from symcavity.witness.world import Env, World, same

SMALL = "at two or three sites of each kind"


def inserted_by(step: Step, seed: int = 3) -> InsertedSite:
    """The inserted site that a step is about, in a small world."""
    declared = declared_of(step.evidence["theory"])
    found = InsertedSite(declared, step.data["kind"], declared.world(seed))
    found.world.disturbance = found.disturbance
    return found


def claimed(theory: Any, rule: str, kind: Kind) -> list[Equation]:
    """What the record claims by a rule of a kind: the definitions that later steps rest on."""
    return [c for s in theory.steps if s.rule == rule and s.data.get("kind") == kind for c in s.claims]


# -- what is given -----------------------------------------------------------------------------------


@witness("disorder")
def moments(step: Step, _dps: int) -> list[Verdict]:
    """The first two moments of every declared coupling, entry by entry."""
    declared = declared_of(step.evidence["theory"])
    world = declared.world(2)
    families = {q.family for e in declared.system.declared for q in site_quantities(e.difference, Coupling)}
    first: set[Any] = set()
    second: set[Any] = set()
    told: set[Any] = set()
    ok = True
    for claim in step.claims:
        body = claim.lhs.args[0] if isinstance(claim.lhs, DisorderAverage) else None
        factors = [] if body is None else list(body.args) if body.is_Mul else [body]
        if not factors or not all(isinstance(x, SiteQuantity) and isinstance(x.family, Coupling) for x in factors):
            ok = False
            continue
        (first if len(factors) == 1 else second).add(factors[0].family)
        told |= {frozenset(x.family for x in factors)}
        for env in free_points(world, factors):
            x, y = world.key(factors[0], env), world.key(factors[-1], env)
            true = coupling_moment(world, x, y) if len(factors) == 2 else 0
            ok = ok and same(world.value(claim.rhs, env), true)
    tied = {frozenset((x, z)) for x in families for z in x.correlation if z in families}
    ok = ok and first >= families and second >= families and told >= tied
    return result(BRUTE_FORCE, ok, "the declared moments of every pair of couplings", "not the declared moments")


@witness("sources")
def sources(step: Step, _dps: int) -> list[Verdict]:
    """Each claim is a declared equation, with one source of its own added to the right-hand side."""
    declared = declared_of(step.evidence["theory"])
    world = declared.world(2)
    rows = [row for kind in declared.system.kinds for row in declared.carriers(kind)]
    ok = one_to_one(step.claims, rows, partial(_is_row, world))
    return result(BRUTE_FORCE, ok, "the declared equations, written out, with a source in each")


def _is_row(world: World, claim: Equation, row: Carrier) -> bool:
    for env in _at_sites(world, row):
        source = world.value(row.source, env)
        left, right = (world.value(side, env) for side in (row.declared.lhs, row.declared.rhs))
        try:
            if not (same(world.value(claim.lhs, env), left) and same(world.value(claim.rhs, env), right + source)):
                return False
        except ValueError:  # an index of another kind
            return False
    return True


def _at_sites(world: World, row: Carrier) -> Iterator[dict[Any, int]]:
    yield from free_points(world, [row.declared, row.source])


# -- insert and respond ------------------------------------------------------------------------------


@witness("insert")
def insert(step: Step, _dps: int) -> list[Verdict]:
    """The left side by the declared sums, one site longer and without it; the right side as it stands."""
    site = inserted_by(step)
    ok, told = True, []
    for claim in step.claims:
        body = claim.lhs.args[0] if isinstance(claim.lhs, Perturbation) else None
        expr = _declared_value(site, body)
        points = free_points(site.world, [claim])
        if expr is None or not points:
            ok = False
            continue
        changes = [site.world.change(expr, site.kind, env) for env in points]
        told.append((expr, changes))
        ok = ok and all(same(c, site.world.value(claim.rhs, env)) for c, env in zip(changes, points, strict=True))
    for g in (g for g in site.system.fields if g.sender == site.kind):
        points = free_points(site.world, [g.as_sum])
        changes = [site.world.change(g.as_sum, site.kind, env) for env in points]
        found = any(len(changes) == len(c) and all(map(same, changes, c)) for _, c in told)
        ok = ok and found
    return result(BRUTE_FORCE, ok, f"the declared sums with and without the new site, {SMALL}")


def _declared_value(site: InsertedSite, body: Any) -> Expr | None:
    """What the declaration says that a disturbed quantity is: a sum itself, or what its equation says."""
    if not isinstance(body, SiteQuantity):
        return body
    for rows in site.declared.rows.values():
        for row in rows:
            if row.declared.lhs == body and isinstance(row, Carrier):
                return row.declared.rhs
    return None


@witness("respond", "causality")
def respond(step: Step, _dps: int) -> list[Verdict]:
    """The change of what the others emit, through explicit response matrices and the longer declared sums."""
    site = inserted_by(step)
    site.world.causal = step.rule == "causality"
    ok, told = True, []
    for claim in step.claims:
        body = claim.lhs.args[0] if isinstance(claim.lhs, Perturbation) else None
        points = free_points(site.world, [claim])
        if body is None or not points:
            ok = False
            continue
        changes = [site.disturbance(body, env) for env in points]
        told.append(changes)
        ok = ok and all(same(c, site.world.value(claim.rhs, env)) for c, env in zip(changes, points, strict=True))
        if site.world.causal:
            ok = ok and all(_needs_no_future(site.world, claim.rhs, env) for env in points)
    for f in {f for f, _ in site.ways_back()}:
        changes = [site.disturbance(f.emission, env) for env in free_points(site.world, [f.emission])]
        ok = ok and any(len(changes) == len(c) and all(map(same, changes, c)) for c in told)
    return result(BRUTE_FORCE, ok, f"the responses to what the new site adds, {SMALL}")


def _needs_no_future(world: World, expr: Expr, env: Env) -> bool:
    """Whether an expression has one value, whatever the responses to what is later."""
    values = []
    for world.causal in (False, True):
        values.append(world.value(expr, env))
    return same(*values)


# -- substitute and identify -------------------------------------------------------------------------


@witness("substitute", "cavity_equation")
def new_site(step: Step, _dps: int) -> list[Verdict]:
    """The declared equations of the new site, in the system that has answered to it, against each claim."""
    site = inserted_by(step)
    theory = step.evidence["theory"]
    known = {c.lhs: c.rhs for c in claimed(theory, "self_coupling", site.kind)}
    cavity = {c.lhs: c.rhs for c in claimed(theory, "cavity_field", site.kind)}
    site.world.meanings |= known | cavity
    left = site.declared.carriers(site.kind)
    ok = bool(step.claims)
    found = set()
    for claim in step.claims:
        rows = [r for r in left if _is_law(site, claim, r)]
        ok = ok and bool(rows)
        found |= {r.declared for r in rows}
    ok = ok and all(r.declared in found for r in left)
    return result(BRUTE_FORCE, ok, f"the declared equation of the new site, {SMALL}")


def _is_law(site: InsertedSite, claim: Equation, row: Carrier) -> bool:
    for inner in site.components(row.field):
        if any(isinstance(t, Time) and t not in inner for t in claim.difference.free_symbols):
            return False
        env = site.at_zero(inner)
        sides = partial(_sides, site.world, row.declared, env)
        true = site.answered(sides)
        left, right = (site.world.value(side, inner) for side in (claim.lhs, claim.rhs))
        source = site.world.value(row.source, env)
        if row.named is None and not same(left, true[0]):
            return False
        if row.named is not None and claim.lhs != row.named.xreplace({site.kind.index: S.Zero}):
            return False
        if not same(right, true[1] + source):
            return False
    return True


def _sides(world: World, equation: Equation, env: Env) -> tuple[Any, Any]:
    return world.value(equation.lhs, env), world.value(equation.rhs, env)


@witness("cavity_field")
def cavity_field(step: Step, _dps: int) -> list[Verdict]:
    """Each cavity field is a declared field of the new site, by fresh couplings and unperturbed emissions."""
    site = inserted_by(step)
    ok = one_to_one(step.claims, site.system.laws[site.kind].fields, partial(_is_field, site))
    return result(BRUTE_FORCE, ok, f"the declared field at the new site, {SMALL}")


def _is_field(site: InsertedSite, claim: Equation, f: Any) -> bool:
    return all(same(site.world.value(claim.rhs, env), site.heard(f, env)) for env in site.components(f))


@witness("self_coupling")
def self_coupling(step: Step, _dps: int) -> list[Verdict]:
    """Each self-coupling is what multiplies an emission of the new site in its own declared field."""
    site = inserted_by(step)
    ok = one_to_one(step.claims, site.ways_back(), lambda claim, pair: _is_factor(site, claim, *pair))
    return result(BRUTE_FORCE, ok, f"what multiplies the site's own emission in its field, {SMALL}")


def _is_factor(site: InsertedSite, claim: Equation, f: Any, g: Any) -> bool:
    for env, sent in product(site.components(f), site.sent(g)):
        at = dict(env)
        if sent:  # the second index of the claim is that of the component that was sent
            second = next(k for k in claim.lhs.indices if k not in env)
            at[second] = next(iter(sent.values()))
        if not same(site.world.value(claim.rhs, at), site.self_coupling(f, g, env, sent)):
            return False
    return True
