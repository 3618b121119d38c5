"""Single sites before their first message: states of zero, which respond by a number."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

from sympy import Expr, Float, S

from symcavity.model.averages import Expect, SiteResponse
from symcavity.model.quantities import Field, Variable, site_quantities
from symcavity.model.system import System
from symcavity.sites.protocol import Ensemble
from symcavity.sites.site import Site


def is_summed(system: System) -> bool:
    """Whether all sites fluctuate: their averages are written where nothing is heard, where others have a limit."""
    return all(law.weight is not None and not law.weight.is_cold for law in system.laws.values())


def answering(body: Expr, response: float) -> Expr:
    """An expression of states that do not fluctuate, and answer to their sources by a number."""
    body = body.replace(lambda e: isinstance(e, Expect), lambda e: e.body)
    return body.xreplace({r: Float(response) for r in body.atoms(SiteResponse)})


@dataclass(frozen=True)
class StillEnsemble:
    """The averages of sites that have not spoken: their states are zero, and answer to their sources by a number.

    Attributes
    ----------
    site : Site
    response : float
    """

    site: Site
    response: float

    def _still(self, body: Expr) -> Expr:
        given = {self.site.law.carrier(h.declared).lhs for h in self.site.heard if not h.declared.states()}
        body = answering(body, self.response)
        return body.xreplace({q: S.Zero for q in site_quantities(body, Variable, Field) if q not in given})

    def average(self, body: Expr) -> Expr:
        """Average an expression over what is given."""
        return self.site.ensemble.average(self._still(body))

    def at_site(self, body: Expr) -> Expr:
        """Average over given fields only."""
        return self.site.ensemble.at_site(self._still(body))


@dataclass(frozen=True)
class StillSite(Site):
    """A site that has not spoken yet.

    Attributes
    ----------
    response : float
        By what its states answer to their sources.
    """

    response: float = 0.0

    @classmethod
    def of(cls, site: Site, response: float) -> StillSite:
        """That of a site of a theory."""
        return cls(**{f.name: getattr(site, f.name) for f in fields(Site)}, response=response)

    @cached_property
    def ensemble(self) -> Ensemble:
        """The averages at rest."""
        return StillEnsemble(Site(**{f.name: getattr(self, f.name) for f in fields(Site)}), self.response)

