"""What joins two sites ends at each of them: in what it sends, or in a field that it hears."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sympy import Expr

from symcavity.model.families import families
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, site_quantities
from symcavity.sites.protocol import Heard
from symcavity.sites.site import Site


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


def parameters_of(site: Site, legs: Iterable[Leg]) -> list[Quenched]:
    """The quenched parameters of a site: those of its law, and of what it sends, such as ``t`` in ``t - w``.

    What others answer to an emission that is given comes back to the site, and so its parameters are among these.
    """
    sent = [leg.sent for leg in legs if leg.kind == site.kind and leg.sent is not None]
    sent += [f.emission for h in site.heard for f in h.feedback]
    return list(dict.fromkeys([*site.law.quenched(), *families(sent, Quenched)]))


Two = tuple[Leg, Leg]
