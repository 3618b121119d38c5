"""Witnesses of averages over the sites of a convex law: direct quadrature, or independent random fields."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from typing import Any

import numpy as np
from sympy import Expr, Float, Rational, S, Sum, Symbol, Tuple, lambdify

from symcavity.model.averages import Average, SiteResponse
from symcavity.model.convexity import sample_parameter, sample_quenched
from symcavity.model.kinds import is_index
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.support import Support
from symcavity.record.derivation import Step, Verdict
from symcavity.sites.sets.averages import ProjectionAverage
from symcavity.sites.sets.solution import ProjectionSolution
from symcavity.witness.explicit_sets import projected, segments, shapes
from symcavity.witness.registry import largest, witness

COUNT = 60_000
WORST = 4.5
NEAR = 1e-6  # for difference quotients
Values = Mapping[Any, Any]


# -- values of everything in the law of a site -----------------------------------------------------


def seeded(exprs: Sequence[Expr], seed: int) -> dict[Any, Expr]:
    """Values of all symbols but indices and numbers of components, and of averages over the other side.

    Each has its own, in whatever company: formulas that share their symbols share the fields that are drawn.
    """

    def draws(of: Any) -> random.Random:
        return random.Random(f"{seed} {of}")  # noqa: S311 - seeded sampling, not cryptography

    symbols = {s for e in exprs for s in e.free_symbols if not is_index(s)}
    values: dict[Any, Expr] = {}
    for s in sorted(symbols, key=str):
        if not s.is_integer:
            signed = s.is_positive is None and s.is_negative is None
            values[s] = Float(sample_parameter(s, draws(s)) if signed or s.is_negative else draws(s).uniform(0.5, 2.0))
    given = {a for e in exprs for a in e.atoms(Average) if not a.has(ProjectionAverage)}
    values |= {a: Float(draws(a).uniform(0.5, 2.0)) for a in sorted(given, key=str)}
    return values


def quenched_laws(exprs: Sequence[Expr], seed: int, scales: Sequence[Expr] = ()) -> dict[Quenched, Tuple]:
    """A finite law for each quenched parameter: the declared one, or two seeded values; those of scales positive."""
    positive = {q.family for e in scales for q in site_quantities(e, Quenched)}
    laws = {}
    for family in sorted({q.family for e in exprs for q in site_quantities(e, Quenched)}, key=lambda f: f.name):
        if isinstance(family.law, Tuple) and family.low is None:
            laws[family] = family.law
            continue
        rng = random.Random(f"{seed + 70} {family.name}")  # noqa: S311 - seeded sampling, not cryptography
        drawn = [Rational(str(round(sample_quenched(family, rng), 3))) for _ in range(2)]
        drawn = [abs(v) for v in drawn] if family in positive else drawn
        laws[family] = Tuple(*(Tuple(v, w) for v, w in zip(drawn, (Rational(2, 5), Rational(3, 5)), strict=True)))
    return laws


def quenched_points(laws: Mapping[Quenched, Tuple], side: str) -> Iterator[tuple[float, dict[Any, Expr]]]:
    """The joint values of quenched parameters at a site, and at the inserted one, with their weights."""
    for chosen in product(*laws.values()):
        rule: dict[Any, Expr] = {}
        for family, (value, _) in zip(laws, chosen, strict=True):
            rule |= {family[side.index]: value, family[S.Zero]: value}
        yield float(np.prod([float(w) for _, w in chosen])), rule


def at_shape(expr: Expr, convex: Any, shape: Any, values: Values, laws: Mapping[Quenched, Tuple] = {}) -> float:
    """A closed form at explicit values, its averages by the numerics."""
    from symcavity.evaluate.averages.compiler import Compiled
    from symcavity.evaluate.averages.integrals import LAWS
    from symcavity.evaluate.averages.quenched import read_quenched

    rule: dict[Any, Any] = {convex.g: convex.g.given(shape), **values}
    rule |= sized(convex, shape)
    bound = expr.xreplace(rule)
    given = {family: dict(law.args) for family, law in laws.items()}
    return float(Compiled(bound, "numpy")({LAWS: read_quenched(list(laws), given, 15)}))


def sized(convex: Any, shape: Any) -> dict[Symbol, Expr]:
    """The symbols in the number of components, for a set of so many dimensions."""
    size = convex.components.size
    return {s: S(shape.dimension) - size.subs(s, 0) for s in size.free_symbols}


# -- the site at explicit fields -------------------------------------------------------------------


class SeededSite:
    """The inserted site at one set of values: fields, their projections, and any quantity of theirs.

    Parameters
    ----------
    side : VectorSide
    shape : Shape
    values : mapping
        Of everything in bound, strength, variance and cap.
    seed : int, optional
        Of random fields; without it, they are nodes of a quadrature over the plane (with weights).
    """

    def __init__(self, side: Any, shape: Any, values: Values, seed: int | None = None) -> None:
        solution = side.solution
        self.solution, self.convex, self.values = solution, side.solution.convex, values
        q, F, bound = (float(e.xreplace(dict(values))) for e in (solution.variance, solution.strength, solution.bound))
        cap = np.inf if solution.cap.is_finite is False else float(solution.cap.xreplace(dict(values)))
        softness = float(solution.softness.xreplace(dict(values)))
        self.q, self.law, self.shape = q, (bound, cap, F, softness), shape
        self.T, self.weights, self.V, self.lam = _fields(shape, q, self.law, seed)
        self.L = (self.V - self.T) / F
        self.level = np.asarray(shape.support(self.V))

    def __call__(self, body: Expr) -> Any:
        """A quantity of the site at every field; a response by parts, ``T*state/q``."""
        convex = self.convex
        states = {
            q: self.solution.value(q) for q in self.solution.states if q != convex.lam
        }
        rule = {s: Symbol(f"sum{k}") for k, s in enumerate(sorted(body.atoms(Sum), key=str))}
        columns = {mark: self._sum(s) for s, mark in rule.items()}
        marks = {convex.lam: Symbol("lam"), convex.level: Symbol("level")}
        columns |= {marks[convex.lam]: self.lam, marks[convex.level]: self.level}
        expr = body.xreplace(rule).xreplace(states)
        expr = expr.xreplace(dict.fromkeys(expr.atoms(Support), convex.level))
        expr = expr.xreplace(marks).xreplace(dict(self.values))
        value = lambdify(list(columns), expr, "numpy")(*columns.values())
        return np.broadcast_to(np.asarray(value, dtype=float), self.lam.shape)

    def _sum(self, total: Sum) -> Any:
        """A sum over the components; over both those of the state and of the source by difference quotients."""
        convex, out = self.convex, 0.0
        if len(total.limits) > 1:
            for way in np.eye(self.V.shape[1]) * NEAR:
                ends = (self.T + way, self.T - way)
                V, W = (projected(self.shape, end, *self.law)[0] - end for end in ends)
                out = out + np.square((V - W) / (2 * NEAR * self.law[2])).sum(axis=1)
            return out
        for k in range(self.V.shape[1]):
            marks = {
                SiteResponse(convex.Lam): (Symbol("R"), self.T[:, k] * self.L[:, k] / self.q),
                SiteResponse(convex.V): (Symbol("J"), self.T[:, k] * self.V[:, k] / self.q),
                convex.Lam: (Symbol("L"), self.L[:, k]),
                convex.V: (Symbol("V"), self.V[:, k]),
            }
            expr = total.function
            for node, (mark, _) in marks.items():
                expr = expr.xreplace({node: mark})
            expr = expr.xreplace(dict(self.values))
            out = out + lambdify([m for m, _ in marks.values()], expr, "numpy")(*(x for _, x in marks.values()))
        return out


@lru_cache(maxsize=4)  # of a few megabytes each
def _fields(shape: Any, q: float, law: tuple[float, ...], seed: int | None) -> tuple[Any, ...]:
    """Fields of variance q, their weights, states and multipliers, under the law (bound, cap, strength, softness)."""
    if seed is None:
        bound, _, strength, softness = law
        t, weights = grid(shape, bound / np.sqrt(q), softness / strength)
    else:
        t = np.random.default_rng(seed).normal(size=(COUNT, shape.dimension))
        weights = np.full(COUNT, 1 / COUNT)
    T = np.sqrt(q) * t
    return (T, weights, *projected(shape, T, *law)[:2])


@lru_cache(maxsize=8)  # of a few megabytes each
def grid(shape: Any, k: float, rho: float = 0.0) -> tuple[Any, Any]:
    """Nodes and weights of a two-dimensional Gaussian average, in sectors around the tip of the cone."""
    from symcavity.shapes.slack import with_slack

    nodes, weights = np.polynomial.legendre.leggauss(16)
    c = float(shape.center)
    tip = np.array([0.0, k / c])
    angles = np.linspace(-np.pi, np.pi, 2001)
    ring = tip + 3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    codes = with_slack(shape, ring, k, np.inf, rho).regime
    edges = [-np.pi]
    for n in np.flatnonzero(np.diff(codes)):
        low, high = angles[n], angles[n + 1]
        for _ in range(60):
            middle = (low + high) / 2
            spot = tip + 3.0 * np.array([[np.cos(middle), np.sin(middle)]])
            at = with_slack(shape, spot, k, np.inf, rho).regime[0]
            low, high = (middle, high) if at == codes[n] else (low, middle)
        edges.append((low + high) / 2)
    edges.append(np.pi)
    radii = np.linspace(0, 10.5 + abs(float(tip[1])), 9)
    r, wr = _panels(radii, nodes, weights)
    a, wa = _panels(np.array(edges), nodes, weights)
    R, A = np.meshgrid(r, a, indexing="ij")
    t = tip + np.stack([R * np.cos(A), R * np.sin(A)], axis=-1).reshape(-1, 2)
    w = (wr[:, None] * r[:, None] * wa[None, :]).ravel() * np.exp(-np.square(t).sum(axis=1) / 2) / (2 * np.pi)
    return t, w


def _panels(edges: Any, nodes: Any, weights: Any) -> tuple[Any, Any]:
    fine = np.concatenate([np.linspace(a, b, 5)[:-1] for a, b in pairwise(edges)] + [edges[-1:]])
    half = (fine[1:] - fine[:-1])[:, None] / 2
    return (fine[:-1, None] + half * (1 + nodes)).ravel(), (half * weights).ravel()


# -- the checks ------------------------------------------------------------------------------------


def projecting(theory: Any) -> Any:
    """The site whose law is given by a convex set."""
    return next(s for s in theory.inserted.values() if isinstance(s.solution, ProjectionSolution))


@witness("vector_response")
def vector_response(step: Step, _dps: int) -> list[Verdict]:
    """The averaged response by direct quadrature, or by random fields."""
    return vector_average(step.evidence["theory"], [(c.lhs, c.rhs) for c in step.claims])


def vector_average(theory: Any, claims: Sequence[tuple[Expr, Expr]]) -> list[Verdict]:
    """Averages by direct quadrature over the plane (D = 1), responses by parts from the states alone.

    Where there is no plane to integrate over, independent random fields decide, in standard errors.

    Parameters
    ----------
    theory : Theory
    claims : sequence of (Expr, Expr)
        What is averaged (an average of it), and the formula.
    """
    side = projecting(theory)
    size = side.solution.convex.components.size
    known = theory.binding.get(side.solution.convex.g)  # averages over a set that was put in are about this set
    plane = known is None and not (size.is_Integer and size != 2) and side.solution.cap.is_finite is False
    sets = segments() if plane else [known.shape] if known else shapes(size)[:4]
    worst, count = 0.0, 0
    for meaning, formula in claims:
        for seed, shape in enumerate(sets):
            worst = largest(worst, _deviation(meaning, formula, side, shape, seed, plane=plane))
            count += 1
    if plane:
        how = "direct quadrature over the field of a segment, responses by integration by parts"
        ok = bool(worst < 1e-9 and count)
        return [Verdict("quadrature to 9 digits", ok, how if ok else f"differs by {worst:.2g} from {how}")]
    on = "the set" if known else f"{count} sets"
    detail = f"independent random fields on {on}: largest deviation {worst:.2g} standard errors"
    return [Verdict("random fields", bool(worst < WORST and count), detail)]


def _deviation(meaning: Expr, formula: Expr, side: Any, shape: Any, seed: int, *, plane: bool) -> float:
    """The claim against the site itself: relative on a quadrature, in standard errors on random fields."""
    convex, solution = side.solution.convex, side.solution
    body = _at_index(meaning.args[0], side)
    parts = [solution.bound, solution.variance, solution.strength, solution.softness]
    parts += [] if solution.cap.is_finite is False else [solution.cap]
    values = seeded([formula, body, *parts], seed + 1)
    laws = quenched_laws([formula, body, *parts], seed, parts[1:])
    means, errors, claims = [], [], []
    single = bool(_own(formula))
    for weight, rule in quenched_points(laws, side.kind):
        site = SeededSite(side, shape, {**values, **rule}, None if plane else seed)
        rows = site(body.xreplace(sized(convex, shape)))
        means.append(weight * (site.weights @ rows))
        errors.append(weight * (rows.std() / np.sqrt(len(rows)) + 1 / len(rows)))  # of what no field has met, too
        if single:
            claims.append(weight * at_shape(formula, convex, shape, {**values, **rule}))
    if not single:
        means, claims = [sum(means)], [at_shape(formula, convex, shape, values, laws)]
        errors = [float(np.sqrt(np.square(errors).sum()))]
    gaps = zip(means, claims, errors, strict=True)
    return max(abs(m - c) / (max(abs(m), 1e-12 if m else 1.0) if plane else e) for m, c, e in gaps)


def _at_index(body: Expr, side: Any) -> Expr:
    """A quantity of the inserted site, written at the canonical index."""
    return body.xreplace({q: q.xreplace({S.Zero: side.law.index}) for q in body.atoms(SiteQuantity)})


def _own(expr: Expr) -> list[SiteQuantity]:
    """The quenched parameters of a formula for one site."""
    return site_quantities(expr.xreplace(dict.fromkeys(expr.atoms(Average), S.One)), Quenched)
