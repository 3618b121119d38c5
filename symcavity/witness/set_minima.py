"""Witnesses of the minima that support functions and projections are, and of the multiplier by the anchor point."""

from __future__ import annotations

import numpy as np
from sympy import Indexed, S, Sum, lambdify, symbols
from sympy.core.relational import Relational

from symcavity.algebra.matrices import BoldMatrix, evaluate
from symcavity.algebra.precision import mp
from symcavity.model.extrema import Extremum
from symcavity.model.support import Support
from symcavity.record.derivation import Step, Verdict
from symcavity.witness.explicit_sets import projected, shapes
from symcavity.witness.registry import largest, witness
from symcavity.witness.set_points import of_size, shares, site_values
from symcavity.witness.sets import EXPLICIT, site_of


@witness("support_function")
def support_function(step: Step, _dps: int) -> list[Verdict]:
    """The claimed minimum over many points of explicit sets, at seeded vectors; the anchor point attains it."""
    node, worst, count = step.data["node"], 0.0, 0
    value, point = step.claims
    if not all(isinstance(claim.rhs, Extremum) for claim in step.claims):
        return [Verdict(EXPLICIT, False, "no minimum is claimed")]
    s = next(iter(value.rhs.atoms(Indexed)))
    for seed, shape in enumerate(shapes(node.components.size)):
        rng = np.random.default_rng(seed)
        members = shape.anchor(rng.normal(size=(3000, shape.dimension)))
        for v in rng.normal(size=(6, shape.dimension)):
            marks = symbols(f"v:{shape.dimension} s:{shape.dimension}")
            own, other = marks[: shape.dimension], marks[shape.dimension :]
            rows = [{node.body: first, s: second} for first, second in zip(own, other, strict=True)]
            written = {total: sum(total.function.xreplace(row) for row in rows) for total in value.rhs.body.atoms(Sum)}
            total = value.rhs.body.xreplace(written)
            products = lambdify(marks, total, "numpy")(*v, *members.T)
            least, anchor = float(shape.support(v[None])[0]), shape.anchor(v[None])[0]
            attained = float(lambdify(marks, total, "numpy")(*v, *anchor))
            worst = largest(worst, least - float(products.min()), abs(attained - least))
            worst = largest(worst, float(products.min()) - least - 0.02 * (1 + abs(least)))
            count += 1
    same_minimum = point.rhs.args[:3] == value.rhs.args[:3] and point.rhs.at == point.lhs.at
    ok = worst < 1e-9 and same_minimum and value.lhs == node
    return [Verdict(EXPLICIT, ok, f"the least of 3000 products at {count} vectors" if ok else f"off by {worst:.2g}")]


@witness("set_minimum")
def minimum(step: Step, _dps: int) -> list[Verdict]:
    """What is minimized at the projection of a field is no larger than at those of other fields."""
    (claim,) = step.claims
    if not isinstance(claim.rhs, Extremum):
        return [Verdict(EXPLICIT, False, "no minimum is claimed")]
    side = site_of(step)
    solution = side.solution
    convex, zero = solution.convex, {side.kind.index: S.Zero}
    V, etas = convex.V.xreplace(zero), list(solution.etas)
    level = Support(convex.g, V, convex.components)
    worst, gain, slack = 0.0, 0.0, 0.0
    for seed, shape in enumerate(shapes(convex.components.size)):
        fixed = site_values(side, seed)
        given = fixed | {q.xreplace(zero): v for q, v in fixed.items()}
        bound, cap, strength, softness = (
            float(e.xreplace(fixed)) for e in (solution.bound, solution.cap, solution.strength, solution.softness)
        )
        T = np.random.default_rng(seed).normal(size=(30, shape.dimension)) * (0.5 + 1.5 * abs(bound))
        found, lam, _ = projected(shape, T, bound, cap, strength, softness)
        size, count = shape.dimension, len(etas)
        slots = symbols(f"v:{size} t:{size * count} height")
        vectors, fields, height = slots[:size], np.reshape(slots[size:-1], (count, size)), slots[-1]
        factors = [float(c.xreplace(given)) for c in solution.etas.values()]
        body = claim.rhs.body.xreplace({level: height})
        (distance,) = body.atoms(Sum)
        rules = (dict(zip([V, *etas], [v, *row], strict=True)) for v, row in zip(vectors, fields.T, strict=True))
        parts = [distance.function.xreplace(rule) for rule in rules]
        call = lambdify(slots, body.xreplace({distance: sum(parts)}).xreplace(given), "numpy")
        heights = np.asarray(shape.support(found))
        for t, v, h in zip(T, found, heights, strict=True):
            heard = np.concatenate(shares(t, factors, seed))
            mine, others = call(*v, *heard, h), call(*found.T, *heard, heights)
            worst = largest(worst, float(mine - np.min(others)))
            gain = max(gain, float(np.max(others) - mine))
        if isinstance(claim.rhs.domain, Relational):
            lowest = float(claim.rhs.domain.rhs.xreplace(given))
            above = np.where(lam > 0, heights - lowest, 0)
            slack = largest(slack, float(np.max(lowest - heights)), float(np.max(above)))
    ok = worst < 1e-8 and slack < 1e-8 and gain > 0 and claim.lhs == V
    good = "less than at projections of other fields"
    return [Verdict(EXPLICIT, ok, good if ok else f"off by {worst:.2g}, {slack:.2g}")]


@witness("set_multiplier")
def multiplier(step: Step, _dps: int) -> list[Verdict]:
    """The claimed multiplier at projections of seeded fields on explicit sets, with their anchor points."""
    side, s = site_of(step), step.data["s"]
    solution = side.solution
    convex = solution.convex
    worst, supporting = mp.mpf(0), 0
    for seed, shape in enumerate(shapes(convex.components.size)):
        fixed = site_values(side, seed)
        given = fixed | {q.xreplace({side.kind.index: S.Zero}): v for q, v in fixed.items()}
        parts = (solution.bound, solution.cap, solution.strength, solution.softness)
        bound, cap, strength, softness = (float(e.xreplace(fixed)) for e in parts)
        T = np.random.default_rng(seed).normal(size=(40, shape.dimension)) * (0.5 + 1.5 * abs(bound))
        V, lam, anchor = projected(shape, T, bound, cap, strength, softness)
        for t, v, found, point in zip(T, V, lam, anchor, strict=True):
            nodes = {node for c in step.claims for node in c.rhs.atoms(Support)}
            levels = dict.fromkeys(nodes, mp.mpf(float(shape.support(v[None])[0])))
            values = {**given, **levels, s: mp.matrix(list(map(float, point)))}
            heard = shares(t, [float(c.xreplace(given)) for c in solution.etas.values()], seed)
            columns = (mp.matrix(list(map(float, part))) for part in heard)
            named = dict(zip((eta.whole() for eta in solution.etas), columns, strict=True))
            values |= {m: named[str(m.name)] for c in step.claims for m in c.rhs.atoms(BoldMatrix) - {s}}
            values |= of_size(convex.components.size, shape.dimension)
            worst = largest(worst, *(abs(evaluate(c.rhs, values) - float(found)) for c in step.claims))
            supporting += int(found > 0)
    ok = bool(worst < 1e-8) and supporting > 20
    good = "projections of seeded fields on explicit sets, with their anchor points"
    return [Verdict(EXPLICIT, ok, good if ok else f"differs by {mp.nstr(worst, 3)}")]
