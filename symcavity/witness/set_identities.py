"""Witnesses of the identities of projections: explicit sets for those at every field, quadrature for averages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from sympy import Float, Symbol, lambdify

from symcavity.record.derivation import Step, Verdict
from symcavity.shapes import Ball, Ellipsoid, PointCloud
from symcavity.sites.sets.averages import GAP2, GV, LAM, PSI, TD, ProjectionAverage, ProjectionSymbol
from symcavity.witness.explicit_sets import TRIANGLE, shapes
from symcavity.witness.registry import witness
from symcavity.witness.set_averages import at_shape, grid
from symcavity.witness.sets import EXPLICIT, site_of


@witness("euler")
def pointwise(step: Step, _dps: int) -> list[Verdict]:
    """Identities that hold for every field, at explicit projections, with bounds of either sign."""
    side, k = site_of(step), Symbol("k")
    worst, count = 0.0, 0
    for shape in shapes(side.solution.convex.components.size):
        for bound in (0.7, -0.4):
            t = np.random.default_rng(3).normal(size=(500, shape.dimension))
            rows = identity_rows(shape, t, bound)
            for claim in step.claims:
                gap = claim.difference.xreplace({step.evidence["bound"]: k})
                call = lambdify([*rows, k], gap, "numpy")
                worst = max(worst, float(np.abs(call(*rows.values(), bound)).max()))
            count += len(t)
    ok = worst < 1e-9
    return [Verdict(EXPLICIT, ok, f"at every one of {count} projections" if ok else f"differs by {worst:.2g}")]


def identity_rows(shape: Any, t: Any, bound: float) -> dict[ProjectionSymbol, Any]:
    """The quantities of explicit projections that stand in the identities."""
    p = shape.project(t, bound)
    return {
        GAP2: np.square(p.lam_s).sum(axis=1), LAM: p.lam, GV: np.asarray(shape.support(p.v)),
        TD: (t * p.lam_s).sum(axis=1), PSI: p.psi,
    }  # fmt: skip


@witness("stein", "stein_conclusion")
def stein(step: Step, _dps: int) -> list[Verdict]:
    """Both sides of an identity of averages: direct quadrature for a segment; the numerics for other sets."""
    convex, k = site_of(step).solution.convex, Symbol("k")
    worst = 0.0
    sets = [Ball(1, "0.7"), Ball(3, "0.8"), Ellipsoid(["1", "0.4"]), PointCloud(TRIANGLE)]
    size = convex.components.size
    for shape in sets:
        if size.is_Integer and shape.dimension != int(size):
            continue
        for claim, bound in product(step.claims, (0.7, -0.4)):
            gap = claim.difference.xreplace({step.evidence["bound"]: k})
            if shape.dimension == 2:
                t, w = grid(shape, bound)
                rows = identity_rows(shape, t, bound)
                rule: dict[Any, Any] = {
                    n: Float(w @ lambdify(list(rows), n.body, "numpy")(*rows.values()))
                    for n in gap.atoms(ProjectionAverage)
                }
                worst = max(worst, abs(float(gap.xreplace(rule).xreplace({k: Float(bound)}))))
                continue
            off = at_shape(gap, convex, shape, {k: Float(bound)})
            worst = max(worst, abs(off) * (1e-9 / 0.03))  # sampled: to a few parts in a hundred
    ok = worst < 1e-9
    how = "direct quadrature for a segment to 9 digits, quasi-random fields for other sets"
    return [Verdict("quadrature to 9 digits", ok, how if ok else f"differs by {worst:.2g}")]


__all__ = ["identity_rows", "pointwise", "stein"]
