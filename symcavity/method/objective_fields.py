"""The fields of a site, matched with the emissions of the declared objective, and the response of the site to each."""

from __future__ import annotations

from typing import Any

from sympy import Expr, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


def matching(site: Site, f: RandomField, sender: Kind, emission: Expr) -> tuple[Heard, Expr]:
    """The field of a site that sums an emission through the coupling of a declared field, and the factor between."""
    for h in site.heard:
        if h.declared.sender == sender and h.declared.coupling.family == f.coupling.family:
            ratio = cancel(emission / h.declared.emission)
            if not site_quantities(ratio):
                return h, ratio
    raise UnsupportedLaw(
        f"The variance of the minimum is not derived: {site.kind.site} does not hear {emission} as one field.",
        "convex problems whose sites answer through the fields that the objective declares",
    )


def answers(theory: Any, site: Site) -> dict[RandomField, Expr]:
    """What a site sends back through each trained field that it hears: minus the slope of its minimum by the field.

    Raises
    ------
    UnsupportedLaw
        As :func:`matching`.
    """
    record, own = theory.system.record, theory.system.own
    out: dict[RandomField, Expr] = {h.declared: S.Zero for h in site.heard if h.declared.states()}
    for f in record.fields:
        message = record.messages[f.symbol]
        for mine, other, emission, answer in (
            (f.hearer, f.sender, f.emission, message), (f.sender, f.hearer, message, f.emission),
        ):  # fmt: skip
            if mine == site.kind and message != 0:
                h, ratio = matching(site, f, other, own(emission))
                out[h.declared] += ratio * own(answer)
    return out
