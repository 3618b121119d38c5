"""Masks in linear laws: numbers that are drawn anew at each step, and multiply states.

``m B``, with B known before the mask m is drawn, is ``<m> B + (m - <m>) B``.  The second part has the mean zero, and no
covariance with anything that stands without it: it is one more source of the state, with the variance
``<(m - <m>)**2> <B**2>``.  It is not Gaussian, so that only averages up to the second degree follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sympy import Expr

from symcavity.evaluate.moving.plan import MovingPlan, StateEquation, mean_of
from symcavity.evaluate.moving.shares import NotLinearLaw
from symcavity.model.noise import drawn_anew
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities


@dataclass(frozen=True)
class Masked:
    """The mask of a law, and what it multiplies."""

    mask: SiteQuantity
    inside: Expr


def without_masks(plan: MovingPlan) -> tuple[dict[SiteQuantity, StateEquation], dict[SiteQuantity, Masked]]:
    """The laws of all states with masks at their means, and what masks multiply, by state.

    Raises
    ------
    NotLinearLaw
        If a law has two masks, or a mask stands anywhere else as well: then what it adds has other covariances.
    """
    rows, masked = dict(plan.rows), dict[SiteQuantity, Masked]()
    for q, row in plan.rows.items():
        anew = [m for m in drawn_anew(row.rhs) if isinstance(m.family, Quenched)]
        found = [m for m in anew if site_quantities(row.rhs.diff(m), Variable, Field)]
        if not found:
            continue
        (mask, *more), inside = found, row.rhs.diff(found[0])
        if more or mask.time != plan.time or any(m.family == mask.family for m in drawn_anew(inside)):
            raise NotLinearLaw(f"{row.update.equation}")
        rows[q] = replace(row, rhs=row.rhs.xreplace({mask: mean_of(plan.values.laws, mask)}))
        masked[q] = Masked(mask, inside)
    for q, one in masked.items():
        others = [*_expressions(plan, rows), *(e for k, m in masked.items() if k != q for e in (m.mask, m.inside))]
        if any(x.family == one.mask.family for e in others for x in drawn_anew(e)):
            raise NotLinearLaw(f"{one.mask} in {plan.rows[q].update.equation} stands elsewhere too")
    return rows, masked


def _expressions(plan: MovingPlan, rows: Mapping[Any, StateEquation]) -> list[Expr]:
    """All that masks may stand in beside what they multiply."""
    out = [e for row in rows.values() for e in (row.rhs, *(factor for _, factor in row.fields))]
    out += [e for given in plan.initial.values() for e in given.values()]
    out += [body for _, body in plan.kernels.values()]
    out += [e.emission for echoes in plan.echoes.values() for e in echoes]
    return [*out, *plan.factors.values(), *(r.weight for r in plan.responses.values())]
