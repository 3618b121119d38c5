"""Witnesses of the identities of projections: explicit sets for those at every field, quadrature for averages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sympy import Float, Symbol, lambdify

from symcavity.record.derivation import Step, Verdict
from symcavity.shapes import Ball, Ellipsoid, PointCloud
from symcavity.sites.sets.averages import (
    DENSITY,
    DIVERGENCE,
    GAP2,
    GV,
    LAM,
    PSI,
    SLOPE,
    T2,
    TD,
    ProjectionAverage,
    ProjectionSymbol,
    SpaceIntegral,
)
from symcavity.witness.explicit_sets import TRIANGLE, segments, shapes
from symcavity.witness.registry import largest, witness
from symcavity.witness.set_averages import grid
from symcavity.witness.sets import EXPLICIT, site_of

NEAR, FAR = 1e-5, 6.0  # of difference quotients; standard errors
FIELDS = 40_000


@witness("euler")
def pointwise(step: Step, _dps: int) -> list[Verdict]:
    """Identities that hold for every field, at explicit projections, with bounds of either sign."""
    side, k = site_of(step), Symbol("k")
    worst, count = 0.0, 0
    for shape in shapes(side.solution.convex.components.size):
        for bound in (0.7, -0.4):
            t = np.random.default_rng(3).normal(size=(500, shape.dimension))
            rows = identity_rows(shape, t, shape.project(t, bound))
            for claim in step.claims:
                gap = claim.difference.xreplace({step.evidence["bound"]: k})
                call = lambdify([*rows, k], gap, "numpy")
                worst = largest(worst, float(np.abs(call(*rows.values(), bound)).max()))
            count += len(t)
    ok = worst < 1e-9
    return [Verdict(EXPLICIT, ok, f"at every one of {count} projections" if ok else f"differs by {worst:.2g}")]


def identity_rows(shape: Any, t: Any, p: Any) -> dict[ProjectionSymbol, Any]:
    """The quantities of explicit projections that stand in the identities."""
    return {
        GAP2: np.square(p.lam_s).sum(axis=1), LAM: p.lam, GV: np.asarray(shape.support(p.v)),
        TD: (t * p.lam_s).sum(axis=1), PSI: p.psi,
    }  # fmt: skip


@witness("stein_parts")
def by_parts(step: Step, _dps: int) -> list[Verdict]:
    """Each line with derivatives by difference quotients: on a grid for a segment, at seeded fields for other sets."""
    size, k = step.data["size"], Symbol("k")
    worst, scores = 0.0, []
    for shape, bound in product((segments()[0], Ball(2, "0.5"), Ellipsoid(["1", "0.4"])), (0.7, -0.4)):
        if size.is_Integer and shape.dimension != int(size):
            continue
        if shape.dimension == 2:
            t, w = grid(shape, bound)
        else:
            t = np.random.default_rng(7).normal(size=(4000, shape.dimension))
            w = np.full(len(t), 1 / len(t))
        p = shape.project(t, bound)
        rows = identity_rows(shape, t, p) | by_differences(shape, t, p, bound)
        number = {symbol: shape.dimension - int(size.subs(symbol, 0)) for symbol in size.free_symbols}

        def at(expr: Any, rows: Any = rows, number: Any = number) -> Any:
            return lambdify(list(rows), expr.xreplace(number), "numpy")(*rows.values())

        for claim in step.claims:
            gap = claim.difference.xreplace({step.evidence["bound"]: k})
            nodes = gap.atoms(ProjectionAverage, SpaceIntegral)
            if not nodes:
                worst = largest(worst, float(np.abs(at(gap)).max()))
                continue
            # an average is an integral with the density: per field, what the integrals add up to
            per = {n: n.body if isinstance(n, ProjectionAverage) else n.args[0] / DENSITY for n in nodes}
            values = at(gap.xreplace(per))
            if shape.dimension == 2:
                worst = largest(worst, abs(float(w @ values)))
            else:
                error = float(values.std()) / np.sqrt(len(t))
                scores.append(abs(float(values.mean())) / max(error, 1e-6))
    ok = bool(worst < NEAR and largest(0.0, *scores) < FAR)
    bad = f"differs by {worst:.2g}, and by {largest(0.0, *scores):.2g} standard errors"
    how = "difference quotients: quadrature to 5 digits for a segment, seeded fields for other sets"
    return [Verdict(EXPLICIT, ok, how if ok else bad)]


def by_differences(shape: Any, t: Any, p: Any, bound: float) -> dict[ProjectionSymbol, Any]:
    """The density, its slope along the displacement, and the divergence of the displacement, by differences."""

    def density(at: Any) -> Any:
        return np.exp(-np.square(at).sum(axis=1) / 2) / (2 * np.pi) ** (shape.dimension / 2)

    slope, divergence, h = np.zeros(len(t)), np.zeros(len(t)), 1e-5
    for k in range(shape.dimension):
        up, down = t + h * np.eye(shape.dimension)[k], t - h * np.eye(shape.dimension)[k]
        slope += (density(up) - density(down)) / (2 * h) * p.lam_s[:, k]
        divergence += (shape.project(up, bound).lam_s - shape.project(down, bound).lam_s)[:, k] / (2 * h)
    crossed = np.abs(divergence - p.psi) > NEAR  # a boundary between regimes within h
    if crossed.mean() < 1e-2:
        divergence[crossed] = p.psi[crossed]
    return {T2: np.square(t).sum(axis=1), DENSITY: density(t), SLOPE: slope, DIVERGENCE: divergence}


@witness("stein", "stein_conclusion")
def stein(step: Step, _dps: int) -> list[Verdict]:
    """Both sides of an identity of averages: direct quadrature for a segment, random fields for other sets."""
    convex, k = site_of(step).solution.convex, Symbol("k")
    worst, scores = 0.0, [0.0]
    sets = [segments()[0], Ball(3, "0.8"), Ellipsoid(["1", "0.4"]), PointCloud(TRIANGLE)]
    size = convex.components.size
    for shape in sets:
        if size.is_Integer and shape.dimension != int(size):
            continue
        for claim, bound in product(step.claims, (0.7, -0.4)):
            gap = claim.difference.xreplace({step.evidence["bound"]: k})
            if shape.dimension == 2:
                t, w = grid(shape, bound)
                rows = identity_rows(shape, t, shape.project(t, bound))
                rule: dict[Any, Any] = {
                    n: Float(w @ lambdify(list(rows), n.body, "numpy")(*rows.values()))
                    for n in gap.atoms(ProjectionAverage)
                }
                worst = largest(worst, abs(float(gap.xreplace(rule).xreplace({k: Float(bound)}))))
                continue
            t = np.random.default_rng(11).normal(size=(FIELDS, shape.dimension))
            rows = identity_rows(shape, t, shape.project(t, bound))
            nodes = gap.atoms(ProjectionAverage)
            per = gap.xreplace({n: n.body for n in nodes}).xreplace({k: Float(bound)})  # linear in the averages
            values = lambdify(list(rows), per, "numpy")(*rows.values())
            scores.append(abs(float(values.mean())) / max(float(values.std()) / np.sqrt(FIELDS), 1e-6))
    ok = bool(worst < 1e-9 and largest(0.0, *scores) < FAR)
    how = "direct quadrature for a segment to 9 digits, random fields for other sets"
    bad = f"differs by {worst:.2g}, and by {largest(0.0, *scores):.2g} standard errors"
    return [Verdict("quadrature to 9 digits", ok, how if ok else bad)]
