"""Witnesses of the optimality conditions: the Lagrangian is rebuilt from what is minimized, and subject to what.

Written out in a small world, it is a function of finitely many numbers; its slopes are difference quotients.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, S

from symcavity.algebra.precision import mp
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, Global, SiteQuantity
from symcavity.model.support import Support
from symcavity.record.derivation import BRUTE_FORCE, Step, Verdict
from symcavity.witness.declared import kind_of
from symcavity.witness.minimised import POINTS, Optimality, points
from symcavity.witness.moments import free_points
from symcavity.witness.registry import result, witness
from symcavity.witness.world import same

MANY = 60
EXPLICIT = "the declared problem, at two or three sites of each kind"


# -- the constraints ---------------------------------------------------------------------------------


def are_declared(theory: Any) -> bool:
    """Whether the multipliers belong to the declared constraints: pieces whose least is a declared expression.

    A piece may carry a positive factor of the parameters; of an equality any factor.  A piece that is seldom the
    least one, such as the flat part of a narrow tube, may need many points to show.
    """
    return any(_declared_at(points(theory, number)) for number in (POINTS, MANY))


def _declared_at(every: list[Optimality]) -> bool:
    declared = [_joined(rows) for rows in zip(*(list(p.constraints()) for p in every), strict=True)]
    pieces = [_joined(rows) for rows in zip(*(list(p.pieces()) for p in every), strict=True)]
    left = list(range(len(pieces)))
    for kind, equality, values in declared:
        own = [k for k in left if pieces[k][:2] == (kind, equality)]
        used = _explains(values, {k: pieces[k][2] for k in own}, equality=equality)
        if used is None:
            return False
        left = [k for k in left if k not in used]
    return not left


def _joined(rows: Any) -> tuple[Kind, bool, list[Any]]:
    return rows[0][0], rows[0][1], [v for row in rows for v in row[2]]


def _explains(values: list[Any], pieces: dict[int, list[Any]], *, equality: bool) -> set[int] | None:
    """The pieces whose least is a multiple of the declared values; none where a bound says nothing."""
    ratios = {mp.nstr(row[k] / values[k], 25): row[k] / values[k] for row in pieces.values() for k in (0, 1)}
    for ratio in ratios.values():
        if equality:
            exact = {k for k, row in pieces.items() if _equal(row, [ratio * v for v in values])}
            if exact:
                return {min(exact)}
            continue
        if ratio <= 0:
            continue
        wanted = [ratio * v for v in values]
        above = {k: row for k, row in pieces.items() if _not_below(row, wanted)}
        if not above:
            continue
        least = [min(column) for column in zip(*above.values(), strict=True)]
        touched = [same(p, w) for p, w in zip(least, wanted, strict=True)]
        # a piece that always holds has been left out; where it is the least one, the others are positive
        fits = all(t or (w > 0 and p > 0) for t, p, w in zip(touched, least, wanted, strict=True))
        if fits and 3 * sum(touched) >= len(values):
            return {k for k, row in above.items() if any(same(p, w) for p, w in zip(row, wanted, strict=True))}
    return set() if not pieces and all(v > 0 for v in values) else None


def _not_below(row: list[Any], wanted: list[Any]) -> bool:
    return all(p >= w or same(p, w) for p, w in zip(row, wanted, strict=True))


def _equal(one: list[Any], two: list[Any]) -> bool:
    return all(same(a, b) for a, b in zip(one, two, strict=True))


# -- the witnesses -----------------------------------------------------------------------------------


@witness("lagrangian")
def lagrangian(step: Step, _dps: int) -> list[Verdict]:
    """The claimed sum against the declared objective and constraints."""
    theory = step.evidence["theory"]
    ok = len(step.claims) == 1 and are_declared(theory)
    for point in points(theory)[:2]:
        ok = ok and point.norms_hold()
        for claim in step.claims:
            ok = ok and same(point.world.value(claim.rhs), point.total())
        for multiplier, expr, _ in step.data["multipliers"]:
            every = [*point.record.multipliers, *((nu, c.total, c.equality) for nu, c in point.record.conditions)]
            known = next((e for m, e, _ in every if m == multiplier), None)
            ok = ok and known is not None
            for env in point.sites(multiplier) if known is not None else ():
                ok = ok and same(point.world.value(expr, env), point.constraint(known, env))
    return result(BRUTE_FORCE, ok, EXPLICIT, "not the Lagrangian of the declared problem")


@witness("dual")
def dual(step: Step, _dps: int) -> list[Verdict]:
    """The message against the slope of the Lagrangian, as a difference quotient in the couplings of its field."""
    ok = bool(step.claims)
    for point in points(step.evidence["theory"])[:2]:
        ok = ok and all(_is_message(point, claim) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"minus the slope of {EXPLICIT}", "not minus the slope of the Lagrangian")


def _is_message(point: Optimality, claim: Equation) -> bool:
    told = {f: point.record.messages.get(f.symbol, S.Zero).as_independent(SiteQuantity) for f in point.record.fields}
    mine = [(f, factor) for f, (factor, state) in told.items() if state == claim.lhs]
    return bool(mine) and all(
        same(point.world.value(factor) * point.world.value(claim.rhs, env), point.message(f, env))
        for f, factor in mine
        for env in free_points(point.world, [claim])
    )


@witness("stationarity")
def stationarity(step: Step, _dps: int) -> list[Verdict]:
    """The claim against the slope of the Lagrangian in its state, up to a factor."""
    state = step.data["state"]
    every = points(step.evidence["theory"])[:3]
    ok = len(step.claims) == 1 and all(_is_slope(every, claim, state) for claim in step.claims)
    return result(BRUTE_FORCE, ok, f"the slope of {EXPLICIT}", "not the slope of the Lagrangian")


def _is_slope(every: list[Optimality], claim: Equation, state: Expr) -> bool:
    """Whether an equation is the slope in a state, times one factor, at every point and site."""
    rows: dict[int, list[tuple[Any, Any]]] = {}
    for point in every:
        point.take_messages()
        places = [{}] if isinstance(state, Global) else free_points(point.world, [state])
        for number, env in enumerate(places):
            value = point.world.value(claim.difference, env)
            rows.setdefault(number, []).append((point.slope_in(state, env), value))
    for pairs in rows.values():  # a factor may hold parameters of the site, which are the same at each point
        ratios = [a / b for a, b in pairs if b != 0]
        if not ratios or abs(ratios[0]) < mp.mpf("1e-15"):
            return False
        if not all(same(a, ratios[0] * b) for a, b in pairs):
            return False
    return True


@witness("complementarity")
def complementarity(step: Step, _dps: int) -> list[Verdict]:
    """Each inequality's multiplier is paired with what the constraint says, and with nothing else."""
    theory = step.evidence["theory"]
    ok = are_declared(theory)
    for point in points(theory)[:2]:
        left = {m: expr for m, expr, equality in point.record.multipliers if not equality}
        left |= {norm.s: norm.slack for norm in point.record.norms}
        slacks = {c.lhs: c.rhs for c in step.claims}
        ok = ok and _shared_pairs(point, step.data["pairs"])
        for pair in step.data["pairs"]:
            if isinstance(pair.args[0], Global):
                continue
            multiplier, other = _split(pair, left)
            if multiplier is None:
                ok = False
                continue
            expr = left.pop(multiplier)
            shown = slacks.get(other, other)
            ok = ok and all(
                same(point.world.value(shown, env), point.constraint(expr, env)) for env in point.sites(multiplier)
            )
        ok = ok and not left and set(step.data["pairs"]) == set(_law_pairs(theory))
        ok = ok and all(_explained(theory, Equation(q, e)) for q, e in slacks.items())
    return result(BRUTE_FORCE, ok, EXPLICIT, "not the pairs of the declared constraints")


def _shared_pairs(point: Optimality, pairs: list[Complementary]) -> bool:
    """Whether each bounded variable makes a pair: a multiplier with its condition, another with its slope."""
    claimed = {p.args[0]: p.args[1] for p in pairs if isinstance(p.args[0], Global)}
    wanted = {nu: value for nu, equality, value in point.shared() if not equality and nu.is_bounded}
    point.take_messages()
    for b in point.unknowns():
        if isinstance(b, Global) and b.is_bounded and b not in wanted:
            wanted[b] = point.slope_in(b, {})
    return claimed.keys() == wanted.keys() and all(same(point.world.value(claimed[b]), v) for b, v in wanted.items())


def _law_pairs(theory: Any) -> list[Complementary]:
    own = [p for law in theory.system.laws.values() for p in law.pairs]
    return [*own, *theory.system.shared_pairs]


def _split(pair: Complementary, multipliers: Any) -> tuple[Any, Any]:
    p, q = pair.pair
    return (p, q) if p in multipliers else (q, p) if q in multipliers else (None, None)


def _explained(theory: Any, equation: Equation) -> bool:
    """Whether an equation of the system that a problem became follows from the problem."""
    every = points(theory)[:2]
    record = every[0].record
    lhs = equation.lhs
    if any((c.lhs, c.rhs) == (lhs, equation.rhs) for c in record.problem.known):
        return True  # the witness of the means has looked at it
    if any(lhs == slack for slack, _ in record.slacks):
        expressions = [expr for m, expr, equality in record.multipliers if not equality and m.site == lhs.site]
        return any(
            all(
                same(p.world.value(equation.rhs, env), p.constraint(expr, env)) for p in every for env in p.sites(lhs)
            )
            for expr in expressions
        )
    if any(lhs == dual for dual, _ in record.duals):
        return all(_is_message(p, equation) for p in every)
    if isinstance(lhs, SiteQuantity) and isinstance(lhs.family, Field):
        heard = [f for f in record.fields if f.hearer in lhs.site]
        sums = {f.symbol: f.as_sum for f in heard}
        vectors = {node.body for _, expr, _ in record.multipliers for node in expr.atoms(Support)}
        return any(
            all(
                same(p.world.value(equation.rhs, env), p.world.value(told, env))
                for p in every
                for env in free_points(p.world, [equation])
            )
            for told in (*sums.values(), *(body.xreplace(sums) for body in vectors if body.has(*sums)))
            if free_points(every[0].world, [equation]) == free_points(every[0].world, [Equation(told, S.Zero)])
        )
    for multiplier, expr, equality in record.multipliers:
        (kind,) = multiplier.site
        if equality and kind_of(equation) == kind:
            gaps = [
                (p.world.value(equation.difference, env), p.constraint(expr, env))
                for p in every
                for env in p.sites(multiplier)
            ]
            if all(same(a, b) for a, b in gaps) or all(same(a, -b) for a, b in gaps):
                return True
    return any(_is_slope(every, equation, state) for state in every[0].unknowns() if _fits(state, equation))


def _fits(state: Expr, equation: Equation) -> bool:
    kind = kind_of(equation)
    return kind is None if isinstance(state, Global) else kind in getattr(state, "site", {})


@witness("sources")
def conditions_of_the_problem(step: Step, _dps: int) -> list[Verdict]:
    """Every equation of the system is a condition of the declared problem, and there are as many as unknowns."""
    theory = step.evidence["theory"]
    if theory.system.record is None:
        return []
    found = points(theory)[0]
    ok = are_declared(theory) and all(_explained(theory, e) for e in theory.system.declared)
    states = len(found.unknowns())
    names = {e.lhs for e in theory.system.declared if isinstance(e.lhs, SiteQuantity)}
    extra = [e for e in theory.system.declared if e.lhs in names and _is_definition(found, e)]
    equalities = sum(equality for *_, equality in found.record.multipliers)
    states += len(found.problem.known) - len(theory.system.shared_pairs)
    ok = ok and len(theory.system.declared) - len(extra) == states + equalities
    return result(BRUTE_FORCE, ok, f"the conditions of {EXPLICIT}", "not the conditions of the declared problem")


def _is_definition(point: Optimality, equation: Equation) -> bool:
    known = {slack for slack, _ in point.record.slacks} | {d for d, _ in point.record.duals}
    return equation.lhs in known or isinstance(equation.lhs.family, Field)
