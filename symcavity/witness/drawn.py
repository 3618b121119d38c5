"""Seeded points at which averages are compared: values of all symbols, and laws of quenched parameters."""

from __future__ import annotations

from typing import Any

from sympy import (
    Expr,
    Rational,
    S,
    Symbol,
    Tuple,
    oo,
)

from symcavity.method.close import assumed, positive_parts
from symcavity.model.averages import Average
from symcavity.model.kinds import N, P, alpha
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.ranges import in_range
from symcavity.record.order_parameters import OrderParameter
from symcavity.witness.points import TRIES, Point, compared, seeded_values

SMALLER = 2  # powers of ten below one: so many that covariances are, and seen all the same
ALONG = tuple(Rational(k, 2) for k in range(-10, 11))  # of an implicit law, at which its slope has its sign
TELLING = Rational(7, 5)  # times the seeded values of quenched parameters


def seeded_point(
    theory: Any, claimed: Expr, side: Any, seed: int, first: int = 0
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Seeded values of all symbols, and laws: what the solution assumes of them holds there, at all sites."""
    positive = positive_parts({side.kind: side})
    for k in range(first, first + TRIES):
        values, laws = _drawn(theory, claimed, side, seed, k)
        steep = claimed.has(oo) and claimed.xreplace(values).has(oo)  # where states jump, which others judge
        if steep:
            continue
        if any(e.xreplace(values).is_nonpositive for e in positive) or not in_range(theory.system.ranges, values):
            continue
        if _holds_at_all_sites(side, values, laws):
            break
    return values, laws


def _holds_at_all_sites(side: Any, values: dict[Any, Any], laws: dict[Any, Any]) -> bool:
    """Whether what a solution assumes of quenched parameters, such as an order of two bounds, holds for their laws."""
    free = stationary_states(side)
    for relation in assumed({side.kind: side}):
        told = given_averages(relation, laws).xreplace(values)
        every = [{x: v} for x in told.free_symbols & free for v in ALONG] or [{}]
        for known, _ in cases(site_quantities(told, Quenched), laws):
            if any(told.xreplace({**known, **at}) == S.false for at in every):
                return False
    return True


def stationary_states(side: Any) -> set[Any]:
    """The symbol of the state at which the energy of a site is stationary: it has one minimum by assumption."""
    weight = side.law.weight
    cold = weight is not None and weight.is_cold
    return {b.implicit[0] for b in side.solution.branches if b.implicit} if cold else set()


def _drawn(
    theory: Any, claimed: Expr, side: Any, seed: int, again: int
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    solution = side.solution
    exprs = [claimed, *side.covariance.values(), *(h.factor for h in side.heard)]
    exprs += [e for q in theory.system.quenched if isinstance(q.law, Tuple) for pair in q.law for e in pair]
    for part in (*solution.branches, *solution.regions):
        exprs += list(part.values.values())
        if part.implicit:
            exprs.append(part.implicit[1])
    if side.law.weight is not None:
        exprs += [side.law.weight.beta, side.law.weight.energy, *side.means.values()]
    bound = {b.implicit[0] for b in solution.branches if b.implicit}
    bound |= {h.eta for h in side.heard} | set(side.problem.plain_sources().values())
    point = Point(seed + 11 + 100 * again, [*exprs, *positive_parts({side.kind: side})])
    twin = seed ^ (again % 2)  # some laws have a solution for positive quenched parameters only
    laws = {q: v for q, v in seeded_values(theory, twin).items() if isinstance(q, Quenched)}
    # moments of one would hide the factors that they are
    scale = TELLING / 2 ** (again // 4)  # some laws have a solution for small ones only
    laws |= {q: {scale * v: p for v, p in law.items()} for q, law in laws.items() if not compared(theory, q)}
    for q in theory.system.quenched:
        if q not in laws:
            if q.low is not None:  # what sums over its values is linear in them: the first few will do, or one
                depends = any(known.family == q for known in site_quantities(claimed))
                laws[q] = {v: q.weight(v) for v in q.values} if depends else {q.values[-1]: S.One}
                continue
            laws[q] = dict(q.law) if isinstance(q.law, Tuple) else {S.One / 2: S.One / 2, S(3) / 2: S.One / 2}
    values = {k: v for k, v in point.values.items() if isinstance(k, Symbol) and k not in bound}
    values |= {N: S(30), P: S(30) * values.get(alpha, S.One)}
    if again // 2 % 2 and stationary_states(side):  # one minimum is left by answers of one sign only
        values |= {s: -v for s, v in values.items() if isinstance(s, OrderParameter) and s.is_positive is s.is_negative}
    for h in side.heard:  # what adds up to a variance is not negative
        for s in side.covariance[h.eta, h.eta].atoms(OrderParameter) & set(values):
            values[s] = abs(values[s])
    pairs = [side.covariance[a.eta, b.eta] for a in side.heard for b in side.heard if a is not b]
    mixed = {s for e in pairs for s in e.atoms(OrderParameter) & set(values) if not s.is_positive}
    for s in mixed:  # a covariance matrix must be positive: let the mixed moments be small, in however many pairs
        for _ in range(SMALLER):
            values[s] = values[s] / (10 * (1 + abs(values[s])))
    return values, {q: {v.xreplace(values): w.xreplace(values) for v, w in law.items()} for q, law in laws.items()}


def cases(quantities: list[SiteQuantity], laws: dict[Any, Any]) -> list[tuple[dict[Any, Any], Any]]:
    """Joint values of quenched parameters with their weights."""
    out: list[tuple[dict[Any, Any], Any]] = [({}, S.One)]
    for q in quantities:
        out = [({**known, q: v}, w * u) for known, w in out for v, u in laws[q.family].items()]
    return out


def given_averages(expr: Expr, laws: dict[Any, Any]) -> Expr:
    """Replace averages of purely quenched quantities by their values."""
    rule = {}
    for node in expr.atoms(Average):
        quenched = site_quantities(node.body, Quenched)
        rule[node] = sum((w * node.body.xreplace(v) for v, w in cases(quenched, laws)), S.Zero)
    return expr.xreplace(rule)
