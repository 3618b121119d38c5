"""Averages in double over a grid of all fields: states are found by testing branches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import norm, qmc
from sympy import (
    Dummy,
    Expr,
    Heaviside,
    S,
    Symbol,
    lambdify,
    sign,
)

from symcavity.algebra.precision import mp
from symcavity.algebra.quadrature import break_points
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.witness.bisection import bisected, jumps, lowest, reached, within
from symcavity.witness.drawn import cases, given_averages
from symcavity.witness.halves import Terms, average_of_halves, in_halves

STEP = 1e-6  # between two fields whose states are compared
MANY = 4  # fields, or more: points of a low-discrepancy sequence in the place of a grid
PLANE, SPACE, BISECTIONS = 2, 3, 40  # fields; steps towards where a line is cut
SCAN = {1: 321, 2: 81}  # places at which a line is looked at, by the number of fields across it
MODULES = ["numpy", "scipy"]  # the second for error functions


def average_on_grid(side: Any, body: Expr, values: dict[Any, Any], laws: dict[Any, Any], nodes: int) -> Any:
    """Average in double over a grid of all fields; the states are found by testing the branches."""
    whole, order = heard_by(side, body)
    exprs = [body, *side.covariance.values()]
    several = getattr(side.solution, "cases", ())
    for b in (b for one in (whole, *(one for _, one in several)) for b in one.branches):
        exprs += [*b.values.values(), *b.conditions, *([b.implicit[1]] if b.implicit else [])]
    exprs += [test for test, _ in several]
    quenched = sorted({q for e in exprs for q in site_quantities(e, Quenched)}, key=str)
    halves = halves_of(side, body)
    total = 0.0
    for case, weight in cases(quenched, laws):
        rule = {**values, **case}
        solution = side.solution.where(rule) if several else whole  # which may hang upon a label

        def plain(expr: Expr, rule: dict[Any, Any] = rule) -> Expr:
            return given_averages(expr, laws).xreplace(rule)

        seen = partial(_seen, side, plain, exprs, (nodes, halves is not None))
        if halves is None:
            total += float(np.sum(seen(solution, order, weight * body)[1]))
        else:
            total += float(weight) * average_of_halves(halves, plain, partial(_matrix, side, plain), seen)
    return mp.mpf(total)


def _matrix(side: Any, plain: Any, order: Sequence[Symbol]) -> np.ndarray:
    return np.array([[float(plain(side.covariance[a, b])) for b in order] for a in order])


def _seen(
    side: Any, plain: Any, exprs: Any, grid: tuple[int, bool], solution: Any, order: list[Symbol], body: Expr
) -> tuple[np.ndarray, np.ndarray]:
    """Fields on a grid, and what an expression is at each of them, times the weight of the point."""
    nodes, paired = grid  # a panel, and whether the points are paired with those of another part, so that they are few
    lower = np.linalg.cholesky(_matrix(side, plain, order))
    quiet = dict.fromkeys(side.problem.plain_sources().values(), S.Zero)
    jumps = {b for e in exprs if e.has(sign, Heaviside) for b in jumps_of(plain(e.xreplace(quiet)), order[0])}
    cuts = {b / float(lower[0, 0]) for b in jumps}
    laid = _laid(solution, plain, order, quiet)
    jumping = len(order) == PLANE and side.law.weight is not None  # lowest states jump where branches meet
    few = len(order) == SPACE or (len(order) == PLANE and paired)
    coarse = few and not any(law for *_, law, _ in laid)  # few nodes do not see kinks
    if len(order) == 1:
        cuts |= _kinks(laid, float(lower[0, 0]))
    cut = jumping or coarse
    points, weights = gaussian_grid(len(order) - cut, nodes, tuple(sorted(cuts)))
    if cut:
        points, weights = _cut_along(laid, lower, points, weights, nodes)
    fields = lower @ points

    def states(expr: Expr, at: np.ndarray) -> np.ndarray:
        return _on_branches(laid, lambda e: plain(e.xreplace(quiet)), expr, at)

    slopes = {r: Dummy("R", real=True) for r in sorted(body.atoms(SiteResponse), key=str)}
    rest, answer = body.xreplace(slopes).as_independent(*slopes.values(), as_Add=False)
    found = states(rest, fields)
    if slopes:
        quotients = [_quotient(side, states, r, order, fields) / float(plain(_factor(side, r))) for r in slopes]
        found = found * lambdify(list(slopes.values()), plain(answer), "numpy")(*quotients)
    return fields, weights * found


def halves_of(side: Any, body: Expr) -> Terms | None:
    """The halves of products of several fields, none of which hears those of the other; None for anything else."""
    if getattr(side.solution, "cases", ()) or len(heard_by(side, body)[1]) < PLANE:
        return None
    return in_halves(side, body, heard_by)


def heard_by(side: Any, body: Expr) -> tuple[Any, list[Symbol]]:
    """The solution and the fields of the part of a law that all states of an expression belong to; else all of them."""
    fields = [h.eta for h in side.problem.ordered()]
    states = {q for q in site_quantities(body) if not isinstance(q.family, Quenched)}
    asked = {f for f in fields if body.has(f)}
    for r in body.atoms(SiteResponse):
        states |= {r.state}
        asked |= {heard_through(side, r).eta}
    for part in getattr(side.solution, "parts", ()):
        exprs = [e for b in part.branches for e in (*b.values.values(), *b.conditions)]
        own = [f for f in fields if any(e.has(f) for e in exprs)]
        if states and states <= set(part.unknowns) and asked <= set(own):
            return part, [*(f for f in own if f != part.inner), *(f for f in own if f == part.inner)]
    return side.solution, fields


def _factor(side: Any, node: SiteResponse) -> Expr:
    """The factor of the field in the equation whose source a response is to."""
    return heard_through(side, node).factor


def heard_through(side: Any, node: SiteResponse) -> Any:
    """The field that a response is to: of the equation that is named, or the first."""
    return next((h for h in side.heard if h.carrier == node.field), side.heard[0])


def _quotient(side: Any, states: Any, node: SiteResponse, order: list[Symbol], fields: np.ndarray) -> np.ndarray:
    """The change of a state with a field, between two close ones."""
    row = order.index(heard_through(side, node).eta)
    up, down = fields.copy(), fields.copy()
    up[row] += STEP
    down[row] -= STEP
    return (states(node.state, up) - states(node.state, down)) / (2 * STEP)


def jumps_of(expr: Expr, field: Symbol) -> list[float]:
    """Where the signs in an expression jump that depend on one field alone."""
    arguments = [node.args[0] for node in expr.atoms(sign, Heaviside) if node.free_symbols == {field}]
    return [float(b) for a in arguments for b in break_points(sign(a), field) if b.is_real]


@lru_cache(maxsize=8)
def gaussian_grid(count: int, nodes: int, jumps: tuple[float, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
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
            inverse = _inverse(solution, plain, order, quiet)
            arguments, law = [x, *order], (lines, call, inverse, solution.well is not None)
        conditions = [plain(c.xreplace(quiet)) for c in branch.conditions]
        out.append((branch, arguments, law, lambdify(arguments, conditions, MODULES)))
    return out


def _inverse(solution: Any, plain: Any, order: list[Symbol], quiet: dict[Any, Expr]) -> Callable[..., np.ndarray]:
    """What solves an implicit law of one field, at some fields."""
    if solution.well is None:
        return lambda psi, fields: bisected(psi, fields[-1])
    if not solution.followed:
        return lambda psi, fields: lowest(psi, fields[-1])
    (x, _), mark = next(b.implicit for b in solution.branches), Dummy("x")
    slope = plain(solution.well.diff(x).xreplace(quiet)).xreplace({x: mark})
    start = lambdify([mark, *order], slope, MODULES)
    return lambda psi, fields: reached(within([], start, fields), psi, fields[-1])


def states_at(
    solution: Any, plain: Any, order: list[Symbol], quiet: dict[Any, Expr], body: Expr, fields: np.ndarray
) -> np.ndarray:
    """An expression in the states of a site at some fields, without sources: on the branches that hold there."""
    return _on_branches(_laid(solution, plain, order, quiet), lambda e: plain(e.xreplace(quiet)), body, fields)


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
        found = [law[2](within(law[0], law[1], fields), fields)] if law else []
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
    return set(high).union(*(_switches(law, scale) for *_, law, _ in laid if law and law[3]))


def _switches(law: Any, scale: float) -> set[float]:
    """Where the lowest state of one field jumps, in units of the scale."""
    places = np.linspace(-8, 8, 321)

    def at(z: np.ndarray) -> tuple[Any, np.ndarray]:
        psi = within(law[0], law[1], (z * scale)[None])
        return psi, law[2](psi, (z * scale)[None])

    psi, found = at(places)
    (where,) = np.nonzero(jumps(psi, found, places * scale))
    low, high, states = places[where], places[where + 1], (found[where], found[where + 1])
    for _ in range(BISECTIONS if where.size else 0):
        middle = (low + high) / 2
        _, here = at(middle)
        before = np.abs(here - states[0]) < np.abs(here - states[1])
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    return set(high)


def _cut_along(
    laid: list[tuple[Any, ...]], lower: np.ndarray, first: np.ndarray, shares: np.ndarray, nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of several fields: at all values of the others, the last is cut where branches meet."""
    count = first.shape[1]

    def holding(row: np.ndarray, place: np.ndarray) -> np.ndarray:
        fields = lower @ np.concatenate([first[:, row], place[None]])
        rows = [holds for *_, holds in _holding(laid, fields)]
        return np.argmax([*rows, np.ones(len(row), dtype=bool)], axis=0)

    scan = np.linspace(-8, 8, SCAN[len(first)])
    at = holding(np.repeat(np.arange(count), len(scan)), np.tile(scan, count)).reshape(count, -1)
    row, column = np.nonzero(np.diff(at, axis=1))
    low, high, here = scan[column], scan[column + 1], at[row, column]
    for _ in range(BISECTIONS if row.size else 0):
        middle = (low + high) / 2
        before = holding(row, middle) == here
        low, high = np.where(before, middle, low), np.where(before, high, middle)
    number = np.arange(len(row)) - np.searchsorted(row, row)  # which one of its line's
    cuts = np.full((count, int(number.max(initial=-1)) + 1), 8.0)
    cuts[row, number] = high
    edges = np.sort(np.concatenate([np.tile(np.linspace(-8, 8, 9), (count, 1)), cuts], axis=1), axis=1)
    x, w = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(edges, axis=1)[..., None] / 2
    places = (edges[:, :-1, None] + half * (1 + x)).reshape(count, -1)
    weights = (half * w).reshape(count, -1) * np.exp(-(places**2) / 2) / np.sqrt(2 * np.pi)
    points = np.concatenate([np.repeat(first, places.shape[1], axis=1), places.reshape(1, -1)])
    return points, (shares[:, None] * weights).ravel()
