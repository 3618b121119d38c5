"""Direct numerical averages over a site's fields: the independent judge of every closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import norm, qmc
from sympy import (
    Abs,
    Dummy,
    Expr,
    Heaviside,
    Matrix,
    Max,
    Min,
    Piecewise,
    Rational,
    S,
    Sum,
    Symbol,
    Tuple,
    lambdify,
    oo,
    sign,
    sympify,
)

from symcavity.algebra.precision import exact_function, mp
from symcavity.algebra.quadrature import break_points, gaussian_in
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.compiler import Compiled, to_mpf
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.quenched import read_quenched
from symcavity.method.close import kind_of_body, positive_parts
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.kinds import N, P, alpha
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.ranges import in_range
from symcavity.record.symbols import OrderParameter
from symcavity.witness.bisection import bisected, within
from symcavity.witness.gaussian import coefficients, integral
from symcavity.witness.joint import is_joint, joint_average
from symcavity.witness.points import TRIES, Point, compared, seeded_values
from symcavity.witness.registry import largest
from symcavity.witness.states import weighed
from symcavity.witness.thermal import BENT, KINKS, SMOOTH

SEEDS = 2
SLOPE = 24  # digits of a squared difference quotient between fields that are 1e-16 apart
CLOSE = Rational(1, 10**16)
TELLING = Rational(7, 5)  # times the seeded values of quenched parameters
STEP = 1e-6  # between two fields whose states are compared
QUICK = 18  # digits at all points but the first
MANY = 4  # fields, or more: points of a low-discrepancy sequence in the place of a grid
# nodes a panel and an axis, by fields; of many the binary logarithm of the number of points
GRIDS = {1: ((97, 160),), 2: ((9, 14), (49, 80)), 3: ((5, 7), (9, 14)), MANY: ((13, 15), (16, 18))}
FINE = ((240, 400),)  # of two fields, where it jumps and most of it cancels
AGAIN = {1: 128, 2: 63, 3: 11, MANY: 17}  # where the finest two differ by chance less than they lose
DIGITS = {1: 6, 2: 6, 3: 5, MANY: 3}  # the most that is asked of such a grid
JUMPING = 2  # where it jumps, as squared responses do
MODULES = ["numpy", "scipy"]  # the second for error functions
THERMAL, CHUNK = {1: 60, 2: 9, 3: 4}, 64  # nodes a panel, and fields that are taken at once, at a temperature
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
    if key not in known and side.law.weight is not None and not side.law.weight.is_cold:
        known[key] = _thermal(theory, side, body, claimed, size)
    if key not in known:
        known[key] = _hold(theory, side, body, claimed, dps, size)
    return known[key]


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
        values, laws = _point(theory, claimed, side, seed)
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
    heard = next(h.eta for h in side.heard if h.declared.states())  # the field that the state answers to
    carried = {h.carrier: h.eta for h in side.heard if h.carrier is not None and h.eta != heard}
    exprs = [body, *side.covariance.values(), *side.means.values(), side.law.weight.energy]
    exprs += side.law.weight.bounds
    exprs += [k.emission for h in side.heard for k in h.feedback]
    quenched = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
    total, bent = 0.0, squared
    for case, share in cases(quenched, laws):
        rule = {**values, **case}
        inside = given_averages(share * body, laws)
        seen = inside.xreplace(carried).xreplace(rule)
        jumps = {h.eta: _jumps(seen, h.eta) for h in side.heard}
        order = sorted(jumps, key=lambda eta: (not jumps[eta], eta != heard))  # the first is cut where a label changes
        matrix = [[float(given_averages(side.covariance[a, b], laws).xreplace(rule)) for b in order] for a in order]
        lower = np.linalg.cholesky(np.array(matrix))
        cuts = sorted({b / float(lower[0, 0]) for b in jumps[order[0]]})
        points, weights = _grid(len(order), THERMAL[len(order)], tuple(cuts))
        fields = lower @ points
        near = np.argsort(fields[order.index(heard)], kind="stable")  # states are summed at close fields together
        fields, weights = fields[:, near], weights[near]
        site = weighed(theory, side, rule)
        bent = bent or site.bent or body.has(*KINKS)
        arrays: dict[Any, np.ndarray] = dict(zip(order, fields, strict=True))
        arrays |= {carrier: arrays[eta] for carrier, eta in carried.items()}
        for k in range(0, fields.shape[1], CHUNK):
            some = {q: v[k : k + CHUNK] for q, v in arrays.items()}
            total += float(np.sum(weights[k : k + CHUNK] * site.values(inside, some, some[heard])))
    gap = _gap(mp.mpf(total) * _times(values, size), expected)
    return gap, BENT if bent else SMOOTH, "sums over states and fields, with the weight of the declared objective"


def _on_grids(
    theory: Any, side: Any, body: Expr, claimed: Expr, size: Symbol | None, *, squared: bool
) -> tuple[Any, int, str]:
    """The same in double, on the first grid that shows the digits asked for, or the finest."""
    count = min(len(side.heard), MANY)
    few = JUMPING if squared and count > 1 else DIGITS[count]
    values, laws, expected = _valued(theory, claimed, side, few)
    for grids in (*GRIDS[count], *(FINE if squared and count == 2 else ())):
        coarse, direct = (_double(side, body, values, laws, nodes) for nodes in grids)
        lost = abs(direct - coarse) / max(abs(direct), mp.mpf("1e-12"))
        gap = _gap(direct * _times(values, size), expected)
        if max(4 * lost, gap) < mp.mpf(10) ** -few:
            break
    if gap > mp.mpf(10) ** -DIGITS[count]:
        other = _double(side, body, values, laws, AGAIN[count])
        lost = max(lost, abs(direct - other) / max(abs(direct), mp.mpf("1e-12")))
    # what a coarser grid loses is more than what the finer one does
    digits = max(min(LEAST, few), min(few, int(mp.floor(-mp.log10(4 * lost))))) if lost > 0 else few
    return gap, digits, "direct quadrature in double of the solution found by bisection"


def _valued(theory: Any, claimed: Expr, side: Any, few: int) -> tuple[dict[Any, Any], dict[Any, Any], Any]:
    """A seeded point at which a claim has a value: an implicit law need not hold at all of them."""
    for first in range(TRIES):
        values, laws = _point(theory, claimed, side, 0, first)
        try:
            return values, laws, closed_value(claimed, values, laws, few, double=True)
        except NotConverged:
            if first == TRIES - 1:
                raise
    raise AssertionError


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
    order = [h.eta for h in side.heard]
    inverse = Matrix([[side.covariance[a, b] for b in order] for a in order]).inv()
    rule = {}
    for node in body.atoms(SiteResponse):
        h = _through(side, node)
        row = order.index(h.eta)
        moments = sum((inverse[row, k] * eta for k, eta in enumerate(order)), S.Zero)
        rule[node] = moments * node.state / h.factor
    return body.xreplace(rule)


def _point(
    theory: Any, claimed: Expr, side: Any, seed: int, first: int = 0
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Seeded values of all symbols, and laws: the denominators are positive there that the solution takes as such."""
    positive = positive_parts({side.kind: side})
    for k in range(first, first + TRIES):
        values, laws = _drawn(theory, claimed, side, seed, k)
        steep = claimed.has(oo) and claimed.xreplace(values).has(oo)  # where states jump, which others judge
        if steep:
            continue
        if not any(e.xreplace(values).is_nonpositive for e in positive) and in_range(theory.system.ranges, values):
            break
    return values, laws


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
    laws |= {q: {TELLING * v: p for v, p in law.items()} for q, law in laws.items() if not compared(theory, q)}
    for q in theory.system.quenched:
        if q not in laws:
            if q.low is not None:  # what sums over its values is linear in them: the first few will do, or one
                depends = any(known.family == q for known in site_quantities(claimed))
                laws[q] = {v: q.weight(v) for v in q.values} if depends else {q.values[-1]: S.One}
                continue
            laws[q] = dict(q.law) if isinstance(q.law, Tuple) else {S.One / 2: S.One / 2, S(3) / 2: S.One / 2}
    values = {k: v for k, v in point.values.items() if isinstance(k, Symbol) and k not in bound}
    values |= {N: S(30), P: S(30) * values.get(alpha, S.One)}
    for h in side.heard:  # what adds up to a variance is not negative
        for s in side.covariance[h.eta, h.eta].atoms(OrderParameter) & set(values):
            values[s] = abs(values[s])
    for a in side.heard:  # a covariance matrix must be positive: let the mixed moments be small
        for b in side.heard:
            if a is not b:
                for s in side.covariance[a.eta, b.eta].atoms(OrderParameter):
                    if s in values and not s.is_positive:
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


def _exact(side: Any, body: Expr, values: dict[Any, Any], laws: dict[Any, Any], dps: int) -> Any:
    """Integrate the solution over the one field of the site, split where the branches meet."""
    h = side.heard[0]
    solution = case_at(side, values)
    plain = side.problem.plain_sources()
    source = plain[h.source]
    quiet = solution.without_sources()
    quenched = sorted(
        {
            q
            for e in (body, side.covariance[h.eta, h.eta], *(v for r in solution.regions for v in r.values.values()))
            for q in site_quantities(e, Quenched)
        },
        key=str,
    )
    total = mp.mpf(0)
    with mp.workdps(dps + 12):
        for case, weight in cases(quenched, laws):
            rule = {**values, **case}

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


def _double(side: Any, body: Expr, values: dict[Any, Any], laws: dict[Any, Any], nodes: int) -> Any:
    """Average in double over a grid of all fields; the states are found by testing the branches."""
    solution = side.solution
    sources = list(side.problem.plain_sources().values())
    order = [h.eta for h in side.problem.ordered()]
    exprs = [body, *side.covariance.values()]
    for b in solution.branches:
        exprs += [*b.values.values(), *b.conditions, *([b.implicit[1]] if b.implicit else [])]
    quenched = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
    total = 0.0
    for case, weight in cases(quenched, laws):
        rule = {**values, **case}

        def plain(expr: Expr, rule: dict[Any, Any] = rule) -> Expr:
            return given_averages(expr, laws).xreplace(rule)

        matrix = np.array([[float(plain(side.covariance[a, b])) for b in order] for a in order])
        lower = np.linalg.cholesky(matrix)
        quiet = dict.fromkeys(sources, S.Zero)
        jumps = {b for e in exprs if e.has(sign, Heaviside) for b in _jumps(plain(e.xreplace(quiet)), order[0])}
        cuts = {b / float(lower[0, 0]) for b in jumps}
        laid = _laid(solution, plain, order, quiet)
        if len(order) == 1:
            cuts |= _kinks(laid, float(lower[0, 0]))
        points, weights = _grid(len(order), nodes, tuple(sorted(cuts)))
        fields = lower @ points

        def read(expr: Expr, plain: Any = plain, quiet: Any = quiet) -> Expr:
            return plain(expr.xreplace(quiet))

        def states(expr: Expr, at: np.ndarray, laid: Any = laid, read: Any = read) -> np.ndarray:
            return _on_branches(laid, read, expr, at)

        slopes = {r: Dummy("R", real=True) for r in sorted(body.atoms(SiteResponse), key=str)}
        if slopes:
            quotients = [_quotient(side, states, r, order, fields) / float(plain(_factor(side, r))) for r in slopes]
            found = lambdify(list(slopes.values()), plain(body.xreplace(slopes)), "numpy")(*quotients)
            found = found * states(S(weight), fields)
        else:
            found = states(weight * body, fields)
        total += float(np.sum(weights * found))
    return mp.mpf(total)


def _factor(side: Any, node: SiteResponse) -> Expr:
    """The factor of the field in the equation whose source a response is to."""
    return _through(side, node).factor


def _through(side: Any, node: SiteResponse) -> Any:
    return next((h for h in side.heard if h.carrier == node.field), side.heard[0])


def _quotient(side: Any, states: Any, node: SiteResponse, order: list[Symbol], fields: np.ndarray) -> np.ndarray:
    """The change of a state with a field, between two close ones."""
    row = order.index(_through(side, node).eta)
    up, down = fields.copy(), fields.copy()
    up[row] += STEP
    down[row] -= STEP
    return (states(node.state, up) - states(node.state, down)) / (2 * STEP)


def _jumps(expr: Expr, field: Symbol) -> list[float]:
    """Where the signs in an expression jump that depend on one field alone."""
    arguments = [node.args[0] for node in expr.atoms(sign, Heaviside) if node.free_symbols == {field}]
    return [float(b) for a in arguments for b in break_points(sign(a), field) if b.is_real]


@lru_cache(maxsize=8)
def _grid(count: int, nodes: int, jumps: tuple[float, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a Gaussian average over some fields, the first of which is cut at its jumps."""
    if count >= MANY:
        points = norm.ppf(qmc.Sobol(count, rng=np.random.default_rng(count)).random_base2(nodes).T)
        return points, np.full(points.shape[1], 1.0 / points.shape[1])
    x, w = np.polynomial.legendre.leggauss(nodes)

    def axis(edges: Any) -> tuple[np.ndarray, np.ndarray]:
        z = np.concatenate([(a + b) / 2 + (b - a) / 2 * x for a, b in pairwise(edges)])
        g = np.concatenate([(b - a) / 2 * w for a, b in pairwise(edges)])
        return z, g * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)

    edges = np.linspace(-8, 8, 9)
    axes = [axis(np.union1d(edges, [b for b in jumps if abs(b) < 8])), *[axis(edges)] * (count - 1)]
    fields = np.stack([part.ravel() for part in np.meshgrid(*(z for z, _ in axes), indexing="ij")])
    return fields, np.prod([part.ravel() for part in np.meshgrid(*(g for _, g in axes), indexing="ij")], axis=0)


def _laid(solution: Any, plain: Any, order: list[Symbol], quiet: dict[Any, Expr]) -> list[tuple[Any, ...]]:
    """Each branch, what its states are functions of, and code for its implicit law, if any, and its conditions."""
    out = []
    for branch in solution.branches:
        arguments, law = list(order), None
        if branch.implicit:
            x, psi = branch.implicit
            mark = Dummy("x")
            call = lambdify([mark, *order], plain(psi.xreplace(quiet)).xreplace({x: mark}), MODULES)
            lines = [lambdify([x, *order], plain(c.xreplace(quiet)), MODULES) for c in branch.conditions if c.has(x)]
            arguments, law = [x, *order], (lines, call)
        conditions = [plain(c.xreplace(quiet)) for c in branch.conditions]
        out.append((branch, arguments, law, lambdify(arguments, conditions, MODULES)))
    return out


def _on_branches(
    laid: list[tuple[Any, ...]], read: Callable[[Expr], Expr], body: Expr, fields: np.ndarray
) -> np.ndarray:
    out = np.full(fields.shape[1], np.nan)
    for branch, arguments, grid, holds in _holding(laid, fields):
        inside = read(body.xreplace(dict(branch.values)))
        here = np.broadcast_to(lambdify(arguments, inside, MODULES)(*grid), holds.shape)
        out = np.where(holds & np.isnan(out), here, out)
    return out


def _holding(
    laid: list[tuple[Any, ...]], fields: np.ndarray
) -> Iterator[tuple[Any, list[Any], list[Any], np.ndarray]]:
    """Each branch, what its states are functions of, the values of these at some fields, and where it holds."""
    for branch, arguments, law, conditions in laid:
        found = [bisected(within(law[0], law[1], fields), fields[-1])] if law else []
        grid = [*found, *fields]
        holds = np.ones(fields.shape[1], dtype=bool)
        for value in conditions(*grid):
            holds &= np.broadcast_to(value, holds.shape) >= -1e-12
        yield branch, arguments, grid, holds


def _kinks(laid: list[tuple[Any, ...]], scale: float) -> set[float]:
    """Where a law of one field goes from one branch to another, in units of the scale: by bisection."""

    def first(z: np.ndarray) -> np.ndarray:
        rows = [holds for *_, holds in _holding(laid, (z * scale)[None])]
        return np.argmax([*rows, np.ones(len(z), dtype=bool)], axis=0)

    edges = np.linspace(-8, 8, 2561)
    at = first(edges)
    (where,) = np.nonzero(np.diff(at))
    low, high = edges[where], edges[where + 1]
    for _ in range(16):
        middle = (low + high) / 2
        before = first(middle) == at[where]
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return set(high)


def closed_value(claimed: Expr, values: dict[Any, Any], laws: dict[Any, Any], dps: int, *, double: bool) -> Any:
    """The closed form at the same values."""
    quenched = sorted({q.family for q in claimed.atoms(SiteQuantity)}, key=lambda f: f.name)
    site_laws = read_quenched(quenched, laws, 15 if double else dps, {})
    for law in site_laws.values():
        law.continuous = [(q, replace(v, doublings=0, single=len(q.values))) for q, v in law.continuous]
    if double:
        env: dict[Any, Any] = {k: float(v) for k, v in values.items()}
        with np.errstate(all="ignore"):
            return mp.mpf(float(Compiled(claimed, "numpy")({**env, LAWS: site_laws})))
    with mp.workdps(dps + 12):
        env = {k: to_mpf(v) for k, v in values.items()}
        return mp.mpf(Compiled(claimed, "mpmath")({**env, LAWS: site_laws}))
