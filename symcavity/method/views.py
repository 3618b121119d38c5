"""The inserted site of one kind, as users read it: its equation, fields, self-coupling, solution and responses."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol

from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.protocol import Ensemble
from symcavity.sites.site import Site


class SiteView:
    """What the theory says of the sites of one kind.

    Attributes
    ----------
    equation : Equation or tuple of Equation
        The law of the inserted site, with its cavity field, self-coupling and source.
    field : dict
        The covariances of the cavity fields.
    self_coupling : dict
        The mean of each self-coupling.
    solution : dict
        Each state as a function of the cavity field.
    response : dict
        The average response of each state.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    @property
    def equation(self) -> Any:
        """The equations of the inserted site, in which the fields are explicit."""
        return self.equations[0] if len(self.equations) == 1 else self.equations

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The same, however many they are."""
        return tuple(self._site.equations())

    @property
    def field(self) -> dict[tuple[Symbol, Symbol], Expr]:
        """Covariances of the cavity fields (their means vanish)."""
        return dict(self._site.covariance)

    @property
    def variance(self) -> Expr:
        """The variance of the cavity field (of the inner one, where there are several)."""
        eta = self._site.problem.inner().eta
        return self._site.covariance[eta, eta]

    @property
    def self_coupling(self) -> Any:
        """The mean self-coupling; a dictionary where there are several."""
        means = self.self_couplings
        return next(iter(means.values())) if len(means) == 1 else means

    @property
    def self_couplings(self) -> dict[Any, Expr]:
        """The means of all self-couplings, however many they are."""
        return dict(self._site.means)

    @property
    def solution(self) -> dict[SiteQuantity, Expr]:
        """The states as functions of the cavity field, at zero sources."""
        found = self._site.solution.without_sources()
        return {q: found.expression(q) for q in found.unknowns}

    @property
    def response(self) -> dict[SiteQuantity, Expr]:
        """The responses of the states, averaged over the field, for one site."""
        ensemble, inner = self._site.ensemble, self._site.problem.inner().carrier
        return {q: ensemble.at_site(SiteResponse(q, inner)) for q in self._site.law.unknowns}

    @property
    def regime(self) -> SiteQuantity:
        """For a law given by a convex set: 0 inside, 1 touching at one point, 2 on a face, 3 the whole set."""
        found = getattr(self._site.solution, "regime", None)
        if found is None:
            raise DeclarationError(f"The {self._site.kind.sites} have no convex set.", "laws with a support function")
        return found

    @property
    def ensemble(self) -> Ensemble:
        """The Gaussian ensemble of a site, for averages of one's own."""
        return self._site.ensemble

    def __str__(self) -> str:
        lines = [self._site.kind.site.partition(" ")[2], *(f"  {e}" for e in self.equations)]
        once = {frozenset(pair): (pair, value) for pair, value in reversed(self.field.items())}  # both orders are there
        lines += [f"  <{f'{a}**2' if a == b else f'{a} {b}'}> = {plain(c)}" for (a, b), c in reversed(once.values())]
        lines += [f"  <{f}> = {plain(m)}" for f, m in self.self_couplings.items()]
        lines += [f"  {q} = {plain(v)}" for q, v in self.solution.items() if q != v]
        return "\n".join(lines)

    __repr__ = __str__
