"""Fields that a law hears as one: states that depend on a single combination of them are averaged over that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sympy import Add, Expr, S, Symbol, cancel

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.kinks import KINKS


def joined(ensemble: Any, states: Iterable[SiteQuantity], answers: Iterable[SiteResponse] = ()) -> Any:
    """Return the ensemble of a site that hears one field in place of several; None where there is no such field.

    Parameters
    ----------
    ensemble : SiteEnsemble
        Of a site that hears several fields.
    states : iterable of SiteQuantity
        What is averaged: all of them, and the borders between their branches, have to depend on ``inner + sum_f c_f
        f`` alone, with numbers, parameters or labels ``c_f``: their slopes have these proportions everywhere.
    answers : iterable of SiteResponse
        Responses that are averaged.
    """
    solution = ensemble.solution
    inner, outer = solution.inner, ensemble.outer
    if not solution.regions:
        return None
    states, answers, unknowns = tuple(states), tuple(answers), solution.unknowns
    exprs = [r.values[q] for r in solution.regions for q in states]
    exprs += [ensemble.response(r.values, r.implicit, a) for r in solution.regions for a in answers]
    exprs = [e for e in exprs if e.has(inner, *outer)]
    # an implicit state depends on the fields as inner - psi does, a border t = b in the reflected inner field on
    # inner - b/reflection
    exprs += [inner - r.implicit[1] for r in solution.regions if r.implicit is not None]
    exprs += [inner - end / solution.reflection for r in solution.regions for end in (r.low, r.high) if end is not None]
    shares: dict[Symbol, Expr] = {}
    if any(kink.has(*outer) for e in exprs for kink in e.atoms(*KINKS)):  # cases are flat, and no share of a field
        return None
    for expr in exprs:
        slope = expr.diff(inner)
        for f in outer:
            turn = expr.diff(f)
            if slope == 0 and turn != 0:
                return None
            share = cancel(turn / slope) if slope != 0 else None
            if share is not None and (share.has(inner, *outer, *unknowns) or shares.setdefault(f, share) != share):
                return None
    weights = {inner: S.One, **shares}
    variance = Add(
        *(a * b * ensemble.covariance[f, g] for f, a in weights.items() for g, b in weights.items())
    )
    alone = solution.xreplace(dict.fromkeys(outer, S.Zero))
    return replace(ensemble, solution=alone, fields=(inner,), covariance={(inner, inner): variance})
