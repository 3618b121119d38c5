"""Witnesses of the minimum as a function of order parameters, by the minima of single sites that a search finds."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Expr, Float, S, Symbol, Tuple

from symcavity.errors import NotConverged
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import Kind, N
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities
from symcavity.model.ranges import in_range
from symcavity.record.derivation import Step, Verdict
from symcavity.witness.brute_force import BruteForce
from symcavity.witness.direct import closed_value
from symcavity.witness.points import Point, seeded_values
from symcavity.witness.registry import largest, result, witness
from symcavity.witness.site_minima import NotSearched
from symcavity.witness.solved import held

SHIFT, NEAR = 2e-3, 2e-3  # by which share the order parameters are moved; how well values and slopes have to agree
RESOLVED = 1e-5  # the least size of minima in which a search, which misses by the inverse of STIFF, has three digits
DIRECTIONS, TRIES, DIGITS = 1, 60, 3
BRUTE = "single sites minimized by search"


@dataclass(frozen=True)
class SearchedMinima:
    """A point off the solution, others beside it, and the averages of the minima there.

    Attributes
    ----------
    points : list of dict
        The point, and pairs of points to both sides of it.
    ways : list of dict
        For each pair, by how much each unknown differs.
    laws : dict
    averages : dict
        By kind: the average minimum at each point, and the size of the minima.
    """

    points: list[dict[Any, Any]]
    ways: list[dict[Symbol, float]]
    laws: dict[Any, Any]
    averages: dict[Kind, tuple[np.ndarray, float]]

    def value(self, expr: Expr, place: int = 0, more: dict[Any, Any] | None = None) -> Any:
        """The value of an expression in order parameters at one of the points."""
        return closed_value(expr, {**self.points[place], **(more or {})}, self.laws, 15, double=True)


def searched(theory: Any) -> SearchedMinima:
    """Minimise the sites at a seeded point and beside it, once for all checks.

    Raises
    ------
    NotSearched
        If a site problem is too large, or convex at none of the points that were tried.
    """
    if "minimum by search" not in theory.memory:
        theory.memory["minimum by search"] = _search(theory)
    return theory.memory["minimum by search"]


def _search(theory: Any) -> SearchedMinima:
    unknowns = _varied(theory)
    exprs = [*unknowns, *theory.closures.values(), *(e.difference for e in theory.global_equations)]
    mixed = {
        s
        for site in theory.inserted.values()
        for (a, b), value in site.covariance.items()
        for s in value.free_symbols
        if a != b and s in theory.order_parameters and not s.is_positive
    }
    for seed in range(TRIES):
        given = seeded_values(theory, seed)
        laws = {q: v for q, v in given.items() if isinstance(q, Quenched)}
        for q in theory.system.quenched:
            laws.setdefault(q, dict(q.law) if isinstance(q.law, Tuple) else {S.Half: S.Half, S(3) / 2: S.Half})
        numbers = {k: v for k, v in given.items() if isinstance(k, Symbol)}
        numbers |= {k.ratio: given[k.size] / given[N] for k in theory.inserted if k.ratio.is_Symbol and k.size in given}
        laws = {q: {v.xreplace(numbers): w.xreplace(numbers) for v, w in law.items()} for q, law in laws.items()}
        values = {s: v for s, v in Point(seed, exprs).values.items() if isinstance(s, Symbol)}
        point = values | {s: values[s] / (10 * (1 + abs(values[s]))) for s in mixed} | numbers
        brute = BruteForce(theory, laws)
        point |= {s: expr.xreplace(point) for s, expr in brute.tied.items()}
        fits = in_range(theory.system.ranges, point) and brute.is_convex(point) and _has_laws(theory, point, laws)
        if fits and all(size > RESOLVED for _, size in brute.averages([point]).values()):
            break
    else:
        said = "no point was found at which the problems of all sites are convex, and their minima large enough"
        raise NotSearched(said)
    rng = random.Random(seed)  # noqa: S311 - seeded sampling, not cryptography
    points, ways = [point], []
    for _ in range(DIRECTIONS):
        way = {s: rng.choice((-1, 1)) * rng.uniform(0.5, 1) * SHIFT * abs(float(point[s])) for s in unknowns}
        for s, expr in brute.tied.items():
            way[s] = float(expr.xreplace(point | {k: point[k] + Float(d) for k, d in way.items()}) - point[s])
        ways.append(way)
        points += [{**point, **{s: Float(float(point[s]) + side * d) for s, d in way.items()}} for side in (1, -1)]
    return SearchedMinima(points, ways, laws, brute.averages(points))


def _has_laws(theory: Any, point: dict[Any, Any], laws: dict[Any, Any]) -> bool:
    """Whether the sites have states at a point: a law may have none where a parameter has the other sign."""
    try:
        for closure in theory.closures.values():
            closed_value(closure, point, laws, 15, double=True)
    except NotConverged:
        return False
    return True


def _varied(theory: Any) -> list[Symbol]:
    """The unknowns but for means of parameters that are given, which no solution moves."""
    system, given = theory.system, set[Symbol]()
    for parts in system.global_conditions:
        bodies = list(parts.values())
        held = any(site_quantities(body, Variable, Field) or body.has(FieldSymbol) for body in bodies)
        if not held and any(map(site_quantities, bodies)):
            given |= {g for body in parts.values() for g in body.free_symbols}
    return [*theory.order_parameters, *(g for g in system.globals if g not in given)]


# -- the witnesses ---------------------------------------------------------------------------------

def _claims(step: Step, rule: str) -> tuple[Equation, ...]:
    return next(other.claims for other in step.evidence["record"] if other.rule == rule)


@witness("minimum")
def function(step: Step, _dps: int) -> list[Verdict]:
    """The claimed minima of single sites, and the slopes of the claimed function, off the solution."""
    theory = step.evidence["theory"]
    try:
        found = searched(theory)
    except NotSearched as problem:
        return [Verdict(BRUTE, None, str(problem))]
    *minima, whole = step.claims
    worst = 0.0
    for kind, claim in zip(step.data["kinds"], minima, strict=True):
        average, size = found.averages[kind]
        worst = largest(worst, abs(float(found.value(_averaged(theory, kind, claim.rhs))) - average[0]) / size)
    ok = bool(worst < NEAR)
    out = result(BRUTE, ok, "the average minimum of each kind of site", f"a minimum differs by {worst:.2g}", DIGITS)
    return out + _slopes(theory, found, [*minima, whole], _claims(step, "minimum_slopes"))


@witness("minimum_slopes")
def slopes(step: Step, _dps: int) -> list[Verdict]:
    """The difference quotients of the function off the solution against what the closed equations say."""
    theory = step.evidence["theory"]
    try:
        found = searched(theory)
    except NotSearched as problem:
        return [Verdict(BRUTE, None, str(problem))]
    return _slopes(theory, found, _claims(step, "minimum"), step.claims)


@witness("minimum_value")
def value(step: Step, dps: int) -> list[Verdict]:
    """The function and the average of the declared objective at a solved point."""
    theory = step.evidence["theory"]
    *minima, whole = _claims(step, "minimum")
    kinds = _kinds(minima)
    rule = {Average(q): _averaged(theory, kind, expr) for kind, (q, expr) in kinds.items()}
    return held(theory, [Equation(whole.rhs.xreplace(rule), claim.rhs) for claim in step.claims], dps)


def _kinds(minima: Any) -> dict[Kind, tuple[Expr, Expr]]:
    """The name of the minimum of a site at the canonical index, and what it is at the inserted site, by kind."""
    out = {}
    for claim in minima:
        ((kind, _),) = claim.lhs.site.items()
        out[kind] = (claim.lhs.family.at_site(), claim.rhs)
    return out


def _averaged(theory: Any, kind: Kind, expr: Expr) -> Expr:
    """The average of an expression of the inserted site over its fields and parameters, by the law of the site."""
    at = {q: q.xreplace({S.Zero: kind.index}) for q in site_quantities(expr) if S.Zero in q.indices}
    site = theory.inserted[kind]
    heard = {h.eta: h.declared.as_sum - (h.effective() - h.eta).xreplace(dict(site.means)) for h in site.heard}
    return theory.observable(Average(expr.xreplace(at).xreplace(heard)))


def _slopes(theory: Any, found: SearchedMinima, claims: Any, sloping: Any) -> list[Verdict]:
    *minima, whole = claims
    marks = {Average(q): (kind, Symbol(f"mean_{n}")) for n, (kind, (q, _)) in enumerate(_kinds(minima).items())}
    expr = whole.rhs.xreplace({node: mark for node, (_, mark) in marks.items()})
    values = [
        float(found.value(expr, place, {mark: Float(found.averages[kind][0][place]) for kind, mark in marks.values()}))
        for place in range(len(found.points))
    ]
    closed = {meaning: theory.closures[s] for s, meaning in theory.order_parameters.items()}
    unknowns = _varied(theory)
    ok = [claim.lhs.args[1] for claim in sloping] == unknowns and all(c.lhs.args[0] == whole.lhs for c in sloping)
    expected, sizes = [], []
    for claim in sloping:
        terms = [theory.observable(term.xreplace(closed)) for term in Add.make_args(claim.rhs)]
        numbers = [float(found.value(term)) for term in terms]
        expected.append(sum(numbers))
        sizes.append(sum(map(abs, numbers)))
    worst = 0.0
    for n, way in enumerate(found.ways):
        moved = [way[claim.lhs.args[1]] for claim in sloping] if ok else []
        gap = (values[2 * n + 1] - values[2 * n + 2]) / 2 - sum(d * e for d, e in zip(moved, expected, strict=ok))
        worst = largest(worst, abs(gap) / sum(abs(d) * s for d, s in zip(moved, sizes, strict=ok)) if ok else np.inf)
    ok = ok and bool(worst < NEAR)
    return result(BRUTE, ok, "difference quotients off the solution", f"the slopes differ by {worst:.2g}", DIGITS)
