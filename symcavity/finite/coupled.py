"""How a site and those around it are coupled: declared fields and their components, self-couplings as observables."""

from __future__ import annotations

import numpy as np
from sympy import Expr, Sum, sqrt, sympify

from symcavity.errors import UnsupportedLaw
from symcavity.method.sources import carrier_state
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.couplings import correlation_of
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind, in_units_of_n
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.system import System


class FieldComponents:
    """A declared field, by the fields of components that it was written out in.

    Attributes
    ----------
    groups : list of list of int
        One group for each component; the fields of a group are summed.
    parts : int
        The number of components.
    """

    def __init__(self, declared: RandomField, written: tuple[RandomField, ...], *, summed: bool) -> None:
        family = declared.coupling.family.name
        vector = bool(declared.inner or declared.components)
        own = [k for k, f in enumerate(written) if (f.hearer, f.coupling.family.name) == (declared.hearer, family)]
        mine = [k for k in own if vector or len(own) == 1 or written[k].emission == declared.emission]
        self.groups = [mine] if summed else [[k] for k in mine]
        self.parts = len(self.groups)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum values of the written fields (insertions, m) to those of the components (insertions, parts)."""
        return np.stack([values[:, group].sum(axis=1) for group in self.groups], axis=1)


def block(values: np.ndarray, f: FieldComponents, g: FieldComponents) -> np.ndarray:
    """Sum values between written fields (insertions, m, k) to those between components of declared fields."""
    rows = np.stack([values[:, group].sum(axis=1) for group in f.groups], axis=1)
    return np.stack([rows[:, :, group].sum(axis=2) for group in g.groups], axis=2)


def tie(f: RandomField, g: RandomField) -> Expr:
    """The correlation of the couplings through which a site hears f with those by which it shifts g.

    One where they are the very same; where it is not zero, the echo has a mean.
    """
    one, other = f.coupling.family, g.coupling.family
    if f.turned != g.turned:  # the site stands at one end of both
        return sympify(1) if one == other else correlation_of(one, other)
    return one.reciprocity if one == other else sympify(0)


def self_coupling_observables(system: System, kind: Kind) -> tuple[list[list[Expr]], list[Expr]]:
    """Return the mean self-coupling and the variance of the cavity field as observables.

    Parameters
    ----------
    system : System
        The system.
    kind : Kind
        The kind of the inserted site; its own quenched parameters stay in the expressions.

    Returns
    -------
    tuple
        For each field that the site hears and each that it speaks into, ``sum over the sender's sites of variance
        * response``; and for each field ``sum of variance * emission squared``.
    """
    coupling, variance = [], []
    for f in system.laws[kind].fields:
        reply = system.laws[f.sender]
        row = []
        for g in system.sent_by(kind):
            tied = tie(f, g)
            if tied == 0:
                row.append(sympify(0))
                continue
            carrier, named = reply.coefficient(g), carrier_state(system, g)
            terms = [f.emission.diff(s) * SiteResponse(s, named) for s in f.states()]
            one, other = f.coupling.family.variance, g.coupling.family.variance
            scale = tied * (one if one == other else sqrt(one * other))
            body = scale * carrier * _contracted(sum(terms), f)
            row.append(_averaged(body, f))
        coupling.append(row)
        variance.append(_averaged(f.coupling.family.variance * _contracted(f.emission**2, f), f))
    return coupling, variance


def _contracted(body: Expr, f: RandomField) -> Expr:
    """Sum over the components of a vector that is heard as one field."""
    return Sum(body, f.inner) if f.inner else body


def _averaged(body: Expr, f: RandomField) -> Expr:
    """Sum a product over the senders of a field; what belongs to the inserted site stands outside."""
    if body == 0:
        return sympify(0)
    if f.hearer == f.sender and site_quantities(f.coupling.family.variance):
        raise UnsupportedLaw(
            f"The variance {f.coupling.family.variance} of {f.coupling} does not say which of the two sites it "
            "belongs to.",
            "the same variance for all couplings of a kind with itself",
        )
    mine = [q for q in site_quantities(body, Quenched) if f.hearer in q.site and f.hearer != f.sender]
    theirs = [q for q in body.atoms(SiteQuantity) if f.sender in q.site]
    outside, inside = body.as_independent(*theirs, as_Add=False)
    if any(inside.has(q) for q in mine):
        raise UnsupportedLaw(f"The variance {body} does not factorize into its two ends.", "products of them")
    total = outside * f.sender.size * (Average(inside) if inside.has(f.sender.index) else inside)
    return in_units_of_n(total)
