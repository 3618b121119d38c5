"""Which laws in time are linear, and the values of quenched parameters at which they have numbers for coefficients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sympy import Expr, S

from symcavity.evaluate.averages.quenched import SiteLaw
from symcavity.evaluate.moving.masks import Masked
from symcavity.evaluate.moving.plan import MovingPlan, StateEquation
from symcavity.evaluate.moving.shares import NotLinearLaw, Number, Share
from symcavity.model.kinds import Kind
from symcavity.model.noise import drawn_anew
from symcavity.model.quantities import Field, Quenched, SiteQuantity, Variable, site_quantities
from symcavity.model.site_sums import is_affine

MOST_VALUES = 64  # of the quenched parameters together that multiply states


def states_in(expr: Expr) -> list[SiteQuantity]:
    """The states and fields in an expression."""
    return site_quantities(expr, Variable, Field)


def linear_in(expr: Expr) -> list[SiteQuantity]:
    """The variables in which an expression has to be linear: states, and numbers that are drawn anew at each step."""
    return [*states_in(expr), *drawn_anew(expr)]


Rows = Mapping[SiteQuantity, StateEquation]


def refuse_nonlinear(plan: MovingPlan, rows: Rows, masked: Iterable[Masked]) -> None:
    """Refuse laws, statistics and responses that are not linear, once what masks add is a source of its own.

    Raises
    ------
    NotLinearLaw
    """
    for m in masked:
        if not is_affine(m.inside, linear_in(m.inside)):
            raise NotLinearLaw(f"{m.mask * m.inside}")
    for row in rows.values():
        moving = linear_in(row.rhs)
        if not is_affine(row.rhs, moving) or any(f.has(*moving) for _, f in row.fields if moving):
            raise NotLinearLaw(f"{row.update.equation}")
    for kind, body in plan.kernels.values():
        parts = plan.split(body)
        if parts is None or not all(is_affine(part, linear_in(part)) for part in parts):
            raise NotLinearLaw(f"{body} of the {kind.sites}")
    for e in (e for echoes in plan.echoes.values() for e in echoes):
        if not is_affine(e.emission, linear_in(e.emission)):
            raise NotLinearLaw(f"{e.emission}")
    for r in plan.responses.values():
        if drawn_anew(r.weight):
            raise NotLinearLaw(f"the response of {r.weight * r.state}")


def multiplying(plan: MovingPlan, rows: Rows, masked: Mapping[SiteQuantity, Masked], kind: Kind) -> list[Quenched]:
    """The quenched parameters of a kind that multiply states, fields, or stand in statistics."""
    exprs: list[Expr] = []
    exprs += [m.inside.diff(x) for q, m in masked.items() if kind in q.site for x in linear_in(m.inside)]
    for q, row in rows.items():
        if kind in q.site:
            exprs += [row.rhs.diff(x) for x in linear_in(row.rhs)]
            exprs += [factor for _, factor in row.fields]
    for f, g in plan.covariances:
        if f.hearer == kind:
            exprs += [t.factor for t in plan.covariances[f, g]]
    for f, echoes in plan.echoes.items():
        if f.hearer == kind:
            exprs += [t.factor for e in echoes for t in e.terms]
            exprs += [e.emission.diff(q) for e in echoes for q in states_in(e.emission)]
    exprs += [
        part.diff(q)
        for k, body in plan.kernels.values()
        if k == kind
        for part in plan.split(body) or ()
        for q in states_in(part)
    ]
    exprs += [r.weight for r in plan.responses.values() if r.kind == kind]
    return list(dict.fromkeys(q.family for e in exprs for q in site_quantities(e, Quenched)))


def shares_at(found: Sequence[Quenched], law: SiteLaw | None, number: Number) -> list[Share]:
    """The shares of sites that have the same values of some quenched parameters.

    Raises
    ------
    NotLinearLaw
        If one of them has no finite law, or they have too many values together.
    """
    if not found:
        return [Share(number(S.One), {})]
    if law is None or any(q not in law.names for q in found):
        raise NotLinearLaw(f"{found[0]} multiplies states, and has no finite law")
    table = law.marginal(found)
    if len(table) > MOST_VALUES:
        raise NotLinearLaw(f"{found[0]} multiplies states, and has {len(table)} values")
    return [
        Share(number(S(w)), {q.at_site(): S(v) for q, v in zip(found, point, strict=True)})
        for point, w in table.items()
    ]
