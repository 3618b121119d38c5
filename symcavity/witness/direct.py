"""Direct numerical averages over a site's fields: the independent judge of every closed form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Dummy,
    Expr,
    Float,
    Heaviside,
    Matrix,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Sum,
    Symbol,
    sign,
    sympify,
)

from symcavity.algebra.precision import exact_function, mp
from symcavity.algebra.quadrature import break_points, gaussian_in
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.compiler import Compiled, to_mpf
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.method.close import kind_of_body
from symcavity.model.averages import Expect, LogWeight, SiteResponse
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.witness.drawn import cases, given_averages, seeded_point
from symcavity.witness.gaussian import coefficients, integral
from symcavity.witness.joint import is_joint, joint_average
from symcavity.witness.on_grids import (
    MANY,
    average_on_grid,
    gaussian_grid,
    halves_of,
    heard_by,
    heard_through,
    jumps_of,
)
from symcavity.witness.points import TRIES
from symcavity.witness.registry import largest
from symcavity.witness.states import GIVEN, fields_given, weighed
from symcavity.witness.thermal import BENT, KINKS, SMOOTH

SEEDS = 2
SLOPE = 24  # digits of a squared difference quotient between fields that are 1e-16 apart
CLOSE = Rational(1, 10**16)
QUICK = 18  # digits at all points but the first
# nodes a panel and an axis, by fields; of many the binary logarithm of the number of points
PAIRED = 0  # fields of two parts, each of which has a grid of its own
GRIDS = {1: ((97, 160),), 2: ((9, 14), (49, 80)), 3: ((5, 7), (9, 14)), MANY: ((13, 15), (16, 18))}
GRIDS[PAIRED] = ((6, 9), (8, 11))
FINE = ((240, 400),)  # of two fields, where it jumps and most of it cancels
AGAIN = {1: 128, 2: 63, 3: 11, MANY: 17, PAIRED: 10}  # where the finest two differ by chance less than they lose
DIGITS = {1: 6, 2: 6, 3: 5, MANY: 3, PAIRED: 5}  # the most that is asked of such a grid
JUMPING = 2  # where it jumps, as squared responses do
THERMAL, CHUNK = {1: 60, 2: 9, 3: 4}, 64  # nodes a panel, and fields that are taken at once, at a temperature
ACROSS = 3  # places across the sum of several fields: of what grows no faster than its fifth power there
TAIL, FEW = 1e-6, 5  # an average as small as that at seeded values of order one; so many points are tried
LEAST = 3  # the least: a solution has kinks, where a grid loses digits


def direct_average(theory: Any, meaning: Expr, claimed: Expr, dps: int) -> tuple[Any, int, str]:
    """Hold a closed form against a numerical average, at seeded values of all order parameters.

    Returns
    -------
    (gap, digits, how)
        The largest relative gap, the digits to be expected, and how the average was taken.
    """
    body = meaning.args[0]
    side = theory.inserted[kind_of_body(body)]
    size = side.kind.size if isinstance(meaning, Sum) else None
    return hold(theory, side, body, claimed, dps, size)


def hold(
    theory: Any, side: Any, body: Expr, claimed: Expr, dps: int, size: Symbol | None = None
) -> tuple[Any, int, str]:
    """Hold a closed form against the numerical average of a single-site expression of one side; once for each."""
    known = theory.memory.setdefault("direct averages", {})
    key = (side.kind, body, claimed, dps, size)
    if key not in known and is_joint(side):
        known[key] = joint_average(side, body, claimed / size if size is not None else claimed)
    if key not in known and _fluctuates(side, body):
        known[key] = _thermal(theory, side, body, claimed, size)
    if key not in known:
        known[key] = _hold(theory, side, body, claimed, dps, size)
    return known[key]


def _fluctuates(side: Any, body: Expr) -> bool:
    """Whether an expression is averaged over a weight: forces on several fields are functions of the cavity fields."""
    weight = side.law.weight
    if weight is None or weight.is_cold:
        return False
    plain = body.xreplace({r: Dummy("R") for r in body.atoms(SiteResponse)})  # which names a field by its mean
    return not weight.others or plain.has(Expect, LogWeight, *weight.states)


def _hold(
    theory: Any, side: Any, body: Expr, claimed: Expr, dps: int, size: Symbol | None
) -> tuple[Any, int, str]:
    solution = side.solution
    marks = {r: Dummy("R") for r in body.atoms(SiteResponse)}
    marked = body.xreplace(marks)
    squared = any(marked.diff(r, s) != 0 for r in marks.values() for s in marks.values())
    body = body if squared else by_parts(side, body)
    simple = len(side.heard) == 1 and not solution.is_implicit and bool(solution.regions)
    if not simple:
        return _on_grids(theory, side, body, claimed, size, squared=squared)
    worst, few = mp.mpf(0), min(dps, 50)
    for seed in range(SEEDS):
        few = min(dps, 50 if seed == 0 else QUICK)  # all digits at one point, that nothing cancels at another one
        values, laws = seeded_point(theory, claimed, side, seed)
        with mp.workdps(few + 12):
            direct = _exact(side, body, values, laws, few) * _times(values, size)
            gap = _gap(direct, closed_value(claimed, values, laws, few, double=False))
            worst = largest(worst, gap if seed == 0 or gap > mp.mpf(10) ** (8 - few) else mp.mpf(0))
    digits = min(dps, 50) - 8
    return worst, min(digits, SLOPE) if squared else digits, "direct quadrature of the solution"


def _thermal(theory: Any, side: Any, body: Expr, claimed: Expr, size: Symbol | None) -> tuple[Any, int, str]:
    """The same at a temperature: the declared weight summed over a grid of states, at each field of a grid."""
    marks = {r: Dummy("R") for r in body.atoms(SiteResponse)}
    marked = body.xreplace(marks)
    squared = any(marked.diff(r, s) != 0 for r in marks.values() for s in marks.values())
    body = body if squared else by_parts(side, body)
    values, laws, expected = _valued(theory, claimed, side, SMOOTH)
    moving = [h.eta for h in side.heard if h.declared.states()]  # the fields that the state answers to
    carried = {h.carrier: h.eta for h in side.heard if h.carrier is not None and h.eta not in moving}
    exprs = [body, *side.covariance.values(), *side.means.values(), side.law.weight.energy]
    exprs += side.law.weight.bounds
    exprs += [k.emission for h in side.heard for k in h.feedback]
    quenched = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
    total, bent = 0.0, squared
    for case, share in cases(quenched, laws):
        rule = {**values, **case}
        inside = given_averages(share * body, laws)
        site = weighed(theory, side, rule | fields_given(side, GIVEN))
        seen = inside.xreplace(carried).xreplace(rule) + sum(site.priced, S.Zero).xreplace(rule)
        jumps = {h.eta: jumps_of(seen, h.eta) for h in side.heard}
        # the first is one that the energy holds, or is cut where a label changes
        order = sorted(jumps, key=lambda eta: (eta not in site.given, not jumps[eta], eta not in moving))
        matrix = [[float(given_averages(side.covariance[a, b], laws).xreplace(rule)) for b in order] for a in order]
        if len(moving) > 1 and len(order) == len(moving):
            fields, weights = _along(np.array(matrix), np.array([site.factors[eta] for eta in order]))
        else:
            lower = np.linalg.cholesky(np.array(matrix))
            cuts = sorted({b / float(lower[0, 0]) for b in jumps[order[0]]})
            points, weights = gaussian_grid(len(order), THERMAL[len(order)], tuple(cuts))
            fields = lower @ points
        pulls = site.pull(dict(zip(order, fields, strict=True)))
        bent = bent or site.bent or body.has(*KINKS)
        for places, part in _by_given(site, order, fields):
            near = places[np.argsort(pulls[places], kind="stable")]  # states are summed at close fields together
            arrays: dict[Any, np.ndarray] = dict(zip(order, fields[:, near], strict=True))
            arrays |= {carrier: arrays[eta] for carrier, eta in carried.items()}
            at = weighed(theory, side, {**rule, **part, **_carriers(carried, part)}) if part else site
            for k in range(0, len(near), CHUNK):
                some = {q: v[k : k + CHUNK] for q, v in arrays.items()}
                found = at.values(inside, some, pulls[near[k : k + CHUNK]])
                total += float(np.sum(weights[near[k : k + CHUNK]] * found))
    gap = _gap(mp.mpf(total) * _times(values, size), expected)
    return gap, BENT if bent else SMOOTH, "sums over states and fields, with the weight of the declared objective"


def _by_given(site: Any, order: list[Any], fields: np.ndarray) -> Iterator[tuple[np.ndarray, dict[Any, Any]]]:
    """Which of the fields have the same values of those that the energy of a site holds, and these values."""
    rows = [k for k, eta in enumerate(order) if eta in site.given]
    if not rows:
        yield np.arange(fields.shape[1]), {}
        return
    values, which = np.unique(fields[rows], axis=1, return_inverse=True)
    for k, value in enumerate(values.T):
        yield np.flatnonzero(which.ravel() == k), dict(zip((order[r] for r in rows), map(Float, value), strict=True))


def _carriers(carried: dict[Any, Any], known: dict[Any, Any]) -> dict[Any, Any]:
    """The values of what carries those fields."""
    return {carrier: known[eta] for carrier, eta in carried.items() if eta in known}


def _along(matrix: np.ndarray, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fields of which a site sees one sum, and their weights: finely along the sum, and a few across it."""
    share = matrix @ factors / (factors @ matrix @ factors)
    values, ways = np.linalg.eigh(matrix - np.outer(share, factors @ matrix))
    across = ways[:, 1:] * np.sqrt(np.maximum(values[1:], 0))  # the least vanishes
    points, weights = gaussian_grid(1, THERMAL[1])
    fields = np.outer(share, points[0] * np.sqrt(factors @ matrix @ factors))
    z, w = np.polynomial.hermite_e.hermegauss(ACROSS)
    for way in across.T:
        fields = np.concatenate([fields + v * way[:, None] for v in z], axis=1)
        weights = np.concatenate([weights * u / np.sqrt(2 * np.pi) for u in w])
    return fields, weights


def _on_grids(
    theory: Any, side: Any, body: Expr, claimed: Expr, size: Symbol | None, *, squared: bool
) -> tuple[Any, int, str]:
    """The same in double, on the first grid that shows the requested digits, or the finest."""
    count = min(len(heard_by(side, body)[1]), MANY)
    halves = halves_of(side, body)
    count = count if halves is None else PAIRED
    few = JUMPING if squared and count > 1 and halves is None else DIGITS[count]
    values, laws, expected = _valued(theory, claimed, side, few)
    for grids in (*GRIDS[count], *(FINE if squared and count == 2 else ())):
        coarse, direct = (average_on_grid(side, body, values, laws, nodes) for nodes in grids)
        lost = abs(direct - coarse) / max(abs(direct), mp.mpf("1e-12"))
        gap = _gap(direct * _times(values, size), expected)
        if max(4 * lost, gap) < mp.mpf(10) ** -few:
            break
    if gap > mp.mpf(10) ** -DIGITS[count]:
        other = average_on_grid(side, body, values, laws, AGAIN[count])
        lost = max(lost, abs(direct - other) / max(abs(direct), mp.mpf("1e-12")))
    # what a coarser grid loses is more than what the finer one does
    digits = max(min(LEAST, few), min(few, int(mp.floor(-mp.log10(4 * lost))))) if lost > 0 else few
    return gap, digits, "direct quadrature in double of the solution found by bisection"


def _valued(theory: Any, claimed: Expr, side: Any, few: int) -> tuple[dict[Any, Any], dict[Any, Any], Any]:
    """A seeded point at which a claim has a value: an implicit law need not hold at all of them.

    Where states are all but at rest, an average is the far tail of a Gaussian, of which a grid has no digits: of a
    few points the first is taken at which it is not, if there is one.
    """
    tails: list[tuple[dict[Any, Any], dict[Any, Any], Any]] = []
    for first in range(TRIES):
        values, laws = seeded_point(theory, claimed, side, 0, first)
        try:
            value = closed_value(claimed, values, laws, few, double=True)
        except NotConverged:
            if first == TRIES - 1 and not tails:
                raise
            continue
        if mp.isinf(value):  # of a square that jumps there
            continue
        if abs(value) > TAIL:
            return values, laws, value
        tails.append((values, laws, value))
        if len(tails) == FEW:
            break
    if not tails:
        raise NotConverged("An average is infinite at all seeded points.", None, float("inf"))
    return tails[0]


def _times(values: dict[Any, Any], size: Symbol | None) -> Any:
    return mp.one if size is None else mp.mpf(int(values[size].p)) / int(values[size].q)


def _gap(direct: Any, expected: Any) -> Any:
    scale = max(abs(direct), abs(expected))
    return abs(direct - expected) / (scale if scale > mp.mpf("1e-12") else 1)


def case_at(side: Any, values: Mapping[Any, Any]) -> Any:
    """The solution of a site, in the case that holds at values where it has several."""
    return side.solution.where(values) if getattr(side.solution, "cases", ()) else side.solution


def by_parts(side: Any, body: Expr) -> Expr:
    """Write responses by Gaussian integration by parts, as moments of a state with the fields.

    ``<d m/d eta_a> = sum_b (C^-1)_ab <eta_b m>``: the derivative of the solution is not used at all.
    """
    order = heard_by(side, body)[1]
    inverse = Matrix([[side.covariance[a, b] for b in order] for a in order]).inv()
    rule = {}
    for node in body.atoms(SiteResponse):
        h = heard_through(side, node)
        row = order.index(h.eta)
        moments = sum((inverse[row, k] * eta for k, eta in enumerate(order)), S.Zero)
        rule[node] = moments * node.state / h.factor
    return body.xreplace(rule)


def _exact(side: Any, body: Expr, values: dict[Any, Any], laws: dict[Any, Any], dps: int) -> Any:
    """Integrate the solution over the one field of the site, split where the branches meet."""
    h = side.heard[0]
    plain = side.problem.plain_sources()
    source = plain[h.source]
    every = [side.solution, *(one for _, one in getattr(side.solution, "cases", ()))]
    held: list[Any] = [v for one in every for r in one.regions for v in r.values.values()]
    held += [end for one in every for r in one.regions for end in (r.low, r.high) if end is not None]
    held += [test for test, _ in getattr(side.solution, "cases", ())]
    quenched = sorted(
        {q for e in (body, side.covariance[h.eta, h.eta], *held) for q in site_quantities(e, Quenched)}, key=str
    )
    total = mp.mpf(0)
    with mp.workdps(dps + 12):
        for case, weight in cases(quenched, laws):
            rule = {**values, **case}
            solution = case_at(side, rule)  # which may hang upon a label
            quiet = solution.without_sources()

            def number(expr: Expr, rule: dict[Any, Any] = rule) -> Any:
                value = given_averages(expr, laws).xreplace(rule)
                return mp.mpf(value.evalf(dps + 12)._to_mpmath(mp.prec))  # noqa: SLF001

            sigma = mp.sqrt(number(side.covariance[h.eta, h.eta]))
            s = number(solution.reflection)
            edges = [number(r.high) for r in quiet.regions if r.high is not None]
            insides = []
            for region in solution.regions:
                here: dict[Any, Expr] = {q: v.xreplace({source: S.Zero}) for q, v in region.values.items()}
                for r in body.atoms(SiteResponse):
                    up, down = (here[r.state].xreplace({h.eta: h.eta + way * CLOSE}) for way in (1, -1))
                    here[r] = (up - down) / (2 * CLOSE * h.factor)
                insides.append(given_averages(body.xreplace(here), laws).xreplace(rule))
            share = number(weight)
            polynomials = [coefficients(e.xreplace({h.eta: h.eta * sympify(sigma)}), h.eta) for e in insides]
            known = [p for p in polynomials if p is not None]
            if len(known) == len(polynomials):
                ends = sorted(e / (s * sigma) for e in edges)
                order = known if s > 0 else known[::-1]
                total += share * integral(order, [-mp.inf, *ends, mp.inf])
                continue
            calls = [exact_function(h.eta, e) for e in insides]

            def integrand(z: Any, calls: Any = calls, edges: Any = edges, s: Any = s, sigma: Any = sigma) -> Any:
                eta = sigma * z
                t = s * eta
                k = sum(1 for e in edges if t > e)
                return calls[k](eta)

            extra = _body_breaks(body, solution, rule, laws, h.eta, source, dps)
            points = [e / (s * sigma) for e in edges] + [p / sigma for p in extra]
            total += share * gaussian_in(mp, integrand, points)
    return total


def _body_breaks(
    body: Expr, solution: Any, rule: Any, laws: Any, eta: Symbol, source: Symbol, dps: int
) -> list[Any]:
    """Fields at which the integrand itself has a kink or a jump."""
    if not body.has(Max, Min, Abs, sign, Heaviside, Piecewise):
        return []
    out = []
    for region in solution.regions:
        here = {q: v.xreplace({source: S.Zero}) for q, v in region.values.items()}
        inside = given_averages(body.xreplace(here), laws).xreplace(rule)
        for b in break_points(inside, eta):
            value = b.evalf(dps + 12)
            if value.is_real:
                out.append(mp.mpf(value._to_mpmath(mp.prec)))  # noqa: SLF001
    return out


def closed_value(claimed: Expr, values: dict[Any, Any], laws: dict[Any, Any], dps: int, *, double: bool) -> Any:
    """The closed form at the same values."""
    quenched = sorted({q.family for q in claimed.atoms(SiteQuantity)}, key=lambda f: f.name)
    site_laws = read_quenched(quenched, laws, 15 if double else dps)
    for law in site_laws.values():
        law.continuous = [(q, replace(v, doublings=0, single=len(q.values))) for q, v in law.continuous]
    if double:
        env: dict[Any, Any] = {k: float(v) for k, v in values.items()}
        with np.errstate(all="ignore"):
            return mp.mpf(float(Compiled(claimed, "numpy")({**env, LAWS: site_laws})))
    with mp.workdps(dps + 12):
        env = {k: to_mpf(v) for k, v in values.items()}
        return mp.mpf(Compiled(claimed, "mpmath")({**env, LAWS: site_laws}))
