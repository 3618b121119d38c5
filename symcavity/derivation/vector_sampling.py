"""Averages over fields by independent random numbers, in standard errors."""

from __future__ import annotations

import numpy as np
from sympy import S

from symcavity.declare.quantities import SiteQuantity
from symcavity.derivation.record import Step, Verdict

COUNT = 200_000
WORST = 4.5


def sampled_average(step: Step) -> list[Verdict]:
    """Hold claimed averages against projections of independent random fields; responses by parts."""
    from symcavity.derivation.vector_witness import along, at_shape, projected, seeded, shapes

    side = next(s for s in step.evidence["theory"].sides.values() if hasattr(s, "convex"))
    convex, solution = side.convex, side.solution()
    worst, count = 0.0, 0
    for claim in step.claims:
        meaning = step.evidence.get("meaning", claim.lhs)
        body = meaning.args[0].xreplace({q: q.xreplace({S.Zero: side.law.index}) for q in meaning.atoms(SiteQuantity)})
        for seed, shape in enumerate(shapes(convex.components.size)[:4]):
            values = seeded(claim.rhs, seed)
            values = {**seeded(solution.bound + solution.variance + solution.strength, seed), **values}
            q, F, bound = (float(e.subs(values)) for e in (solution.variance, solution.strength, solution.bound))
            cap = float(solution.cap.subs(values)) if solution.cap.is_finite is not False else np.inf
            T = np.sqrt(q) * np.random.default_rng(seed).normal(size=(COUNT, shape.dimension))
            V, _, _ = projected(shape, T, bound, cap, F)
            if V is None:
                continue
            direct = along(body, convex, V, (V - T) / F, T, q)
            claimed = float(at_shape(claim.rhs, convex, shape, values))
            error = direct.std() / np.sqrt(COUNT)
            worst, count = max(worst, abs(direct.mean() - claimed) / error), count + 1
    ok = worst < WORST and count > 0
    detail = f"independent random fields on {count} sets: largest deviation {worst:.2g} standard errors"
    return [Verdict("random fields", bool(ok), detail)]


__all__ = ["sampled_average"]
