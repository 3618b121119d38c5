"""The ends of a correlation between two sites: a message, or a field, of each site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Dummy, Expr, Mul, cancel, sqrt

from symcavity.model.averages import Average
from symcavity.model.fields import RandomField
from symcavity.model.kinds import Kind
from symcavity.model.quantities import site_quantities
from symcavity.sites.protocol import Heard


@dataclass(frozen=True)
class Leg:
    """An end of what joins two sites: what one of them sends, or a field that it hears.

    Attributes
    ----------
    kind : Kind
    sent : Expr or None
        In the states of a site, at the canonical index.
    field : Heard or None
    """

    kind: Kind
    sent: Expr | None = None
    field: Heard | None = None

    @property
    def name(self) -> str:
        """The letters of what is sent or heard."""
        if self.field is not None:
            return str(self.field.declared.symbol).replace("_", "")
        names = [q.family.name for q in site_quantities(self.sent)]
        return "_".join(dict.fromkeys(names))


@dataclass(frozen=True)
class Ends:
    """The ends of what joins two sites.

    Attributes
    ----------
    over : tuple
        What varies.
    observed : Expr
    legs : tuple of Leg
    """

    over: tuple[Any, ...]
    observed: Expr
    legs: tuple[Leg, ...]


Two = tuple[Leg, Leg]


def scales(f: RandomField) -> tuple[Expr, Expr]:
    """The two factors of the standard deviation of a field's couplings: of the hearing site, and of the sending one.

    A coupling whose variance is a product over its two ends is one of equal variance for all sites, times these
    factors.  The first multiplies the field, and the second the message.  Variances that are sums of such products
    are refused before.
    """
    family = f.coupling.family
    ends = zip((slot.index for slot in family.slots), f.coupling.indices, strict=False)
    variance = family.variance.xreplace(dict(reversed(list(ends))))  # of a kind coupled to itself: the first end
    if not (own := site_quantities(variance)):
        return Mul(), Mul()
    here, there = Mul(), Mul()
    for factor in Mul.make_args(variance.as_independent(*own, as_Add=False)[1]):
        heard = any(f.hearer.index in q.indices for q in site_quantities(factor))
        here, there = (here * factor, there) if heard else (here, there * factor)
    return sqrt(here), sqrt(there.xreplace({f.sender_index: f.sender.index}))


def weighed(f: RandomField) -> Expr:
    """The message that a field sums, times the factor of the sending site in the strength of its couplings."""
    return scales(f)[1] * f.emission


def in_scales(expr: Expr, *factors: Expr) -> Expr:
    """An expression that is a multiple of several scales, without them; they are positive, and stand in no average."""
    held = {a: Dummy(real=True) for a in expr.atoms(Average)}
    outside = expr.xreplace(held)
    marks = {q: Dummy(positive=True) for q in site_quantities(Mul(outside, *factors))}
    found = cancel(outside.xreplace(marks) / Mul(*(e.xreplace(marks) for e in factors)))
    return found.xreplace({mark: q for q, mark in marks.items()}).xreplace({mark: a for a, mark in held.items()})
