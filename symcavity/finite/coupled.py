"""How a site and the other side are coupled: declared fields and their components, self-couplings as observables."""

from __future__ import annotations

import numpy as np
from sympy import Expr, Sum, sympify

from symcavity.errors import UnsupportedLaw
from symcavity.model.fields import RandomField
from symcavity.model.quantities import (
    INDEX,
    OTHER,
    SIZE,
    Average,
    N,
    P,
    Quenched,
    SiteQuantity,
    SiteResponse,
    alpha,
    site_quantities,
)
from symcavity.model.system import System


class Parts:
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
        mine = [
            k
            for k, f in enumerate(written)
            if (f.coupling.family.name == family if vector else f.symbol == declared.symbol)
        ]
        self.groups = [mine] if summed else [[k] for k in mine]
        self.parts = len(self.groups)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sum values of the written fields (insertions, m) to those of the components (insertions, parts)."""
        return np.stack([values[:, group].sum(axis=1) for group in self.groups], axis=1)


def block(values: np.ndarray, f: Parts, g: Parts) -> np.ndarray:
    """Sum values between written fields (insertions, m, k) to those between components of declared fields."""
    rows = np.stack([values[:, group].sum(axis=1) for group in f.groups], axis=1)
    return np.stack([rows[:, :, group].sum(axis=2) for group in g.groups], axis=2)


def self_coupling_observables(system: System, side: str) -> tuple[list[list[Expr]], list[Expr]]:
    """Return the mean self-coupling and the variance of the cavity field as observables.

    Parameters
    ----------
    system : System
        The system.
    side : str
        The side of the inserted site; its own quenched parameters stay in the expressions.

    Returns
    -------
    tuple
        For each field of the side and each emission, ``sum over the other side of variance * response``;
        and for each field ``sum of variance * emission squared``.
    """
    other = OTHER[side]
    own, reply = system.laws[side], system.laws[other]
    size = SIZE[other]
    coupling, variance = [], []
    for f in own.fields:
        row = []
        for g in reply.fields:
            if g.coupling != f.coupling:
                row.append(sympify(0))
                continue
            carrier = reply.coefficient(g)
            source = reply.carrier(g).lhs
            quantity = source if isinstance(source, SiteQuantity) and len(reply.fields) > 1 else None
            terms = [f.emission.diff(s) * SiteResponse(s, quantity) for s in f.states()]
            body = f.coupling.family.variance * carrier * _contracted(sum(terms), f)
            row.append(_averaged(body, side, other, size))
        coupling.append(row)
        variance.append(_averaged(f.coupling.family.variance * _contracted(f.emission**2, f), side, other, size))
    return coupling, variance


def _contracted(body: Expr, f: RandomField) -> Expr:
    """Sum over the components of a vector that is heard as one field."""
    return Sum(body, f.inner) if f.inner else body


def _averaged(body: Expr, side: str, other: str, size: Expr) -> Expr:
    """Sum a product over the sites of the other side; what belongs to the inserted site stands outside."""
    if body == 0:
        return sympify(0)
    mine = [q for q in site_quantities(body, Quenched) if side in q.site]
    outside, inside = body.as_independent(*[q for q in body.atoms(SiteQuantity) if other in q.site], as_Add=False)
    if any(inside.has(q) for q in mine):
        raise UnsupportedLaw(f"The variance {body} does not factorise into the two sides.", "products of them")
    total = outside * size * (Average(inside) if inside.has(INDEX[other]) else inside)
    return total.xreplace({P: alpha * N})


__all__ = ["Parts", "block", "self_coupling_observables"]
