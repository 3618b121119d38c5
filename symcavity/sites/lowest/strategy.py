"""The strategy for sites of problems that may have several minima: the lowest one, which switches where two are equal.

Between the switches the states are those of a branch. At a switch they jump, so that their slope holds a delta
function; the mean response is the slope of an average: ``<dx/dI> = <x*eta>/<eta**2>``, by parts on the Gaussian field.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sympy import DiracDelta, Expr, Poly, S, Symbol, oo

from symcavity.algebra.signs import sign_of
from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.layout import IllPosed
from symcavity.sites.branching.strategy import sign_relations
from symcavity.sites.lowest.site import LowestSolution, solve_lowest
from symcavity.sites.protocol import SiteProblem, Solution
from symcavity.sites.site import Site, response_steps
from symcavity.sites.thermal.summed import moving_field, weight_of


class Lowest:
    """Laws of states of lowest energy, at zero temperature."""

    is_linear = False

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site has a weight of infinite beta."""
        return problem.law.weight is not None and problem.law.weight.beta == oo

    def solve(self, problem: SiteProblem) -> Solution:
        """Lay out the lowest minimum, with as few signs of self-couplings as it needs.

        Raises
        ------
        IllPosed
            If the energy has no minimum, or the order of minima is open.
        UnsupportedLaw
            If the energy is not made of squares.
        """
        weight, heard = weight_of(problem), moving_field(problem)
        moving = [k.symbol for k in heard.feedback if k.emission.has(weight.mean)]
        pair = heard.declared.sender == heard.declared.hearer
        if weight.is_field or pair:
            signs = dict.fromkeys(moving, 1)
            return Solution(solve_lowest(problem.signed(signs)), signs)
        try:
            return Solution(solve_lowest(problem), {})
        except IllPosed:
            signs = dict.fromkeys(moving, -1)
            return Solution(solve_lowest(problem.signed(signs)), signs)

    def ensemble(self, site: Site) -> LowestEnsemble:
        """The averages of the site over its Gaussian fields."""
        etas = tuple(h.eta for h in site.problem.ordered())
        return LowestEnsemble(site.kind, site.solution, etas, dict(site.covariance), site.sources())

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The energy of the new site, its lowest minimum, and the responses of its states."""
        key, kind = site.kind.key, site.kind
        return response_steps(site, make, wanted, f"{key}.effective_law")


@dataclass(frozen=True)
class LowestEnsemble(SiteEnsemble):
    """A site at its lowest minimum whose fields are Gaussian."""

    def over_fields(self, body: Expr) -> Expr:
        """Average an expression over the fields; one with the square of a slope that jumps is infinite."""
        steep = [r for r in sorted(body.atoms(SiteResponse), key=str) if self._jumps(r)]
        if steep and Poly(body, *steep).total_degree() > 1:
            return S.Infinity
        return super().over_fields(body)

    def _jumps(self, response: SiteResponse) -> bool:
        """Whether the state jumps with any field: the switches move with all of them."""
        return response.state in self.solution.jumping
