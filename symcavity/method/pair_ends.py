"""The ends of a correlation between two sites: a message, or a field, of each site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Expr

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
        return "".join(dict.fromkeys(names))


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
