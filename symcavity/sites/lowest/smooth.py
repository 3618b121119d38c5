"""Sites whose energy is smooth and no square, where the answer of the others leaves it one minimum: that is stationary.

That there is one at every value of the field is an assumption of the record, which a solution is tested for: the
energy with what the others answer is convex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sympy import (
    Abs,
    Add,
    Expr,
    Heaviside,
    Max,
    Min,
    Piecewise,
    Poly,
    PolynomialError,
    S,
    StrictGreaterThan,
    log,
    sign,
    simplify,
)
from sympy.core.relational import Relational

from symcavity.algebra.signs import sign_given, sign_of
from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.feedback import solve_with_feedback
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.branching.strategy import Branching
from symcavity.sites.lowest.site import StateForce, force_on
from symcavity.sites.lowest.strategy import energy_step
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site
from symcavity.sites.thermal.summed import moving_fields, weight_of

SUPPORTED = "smooth energies that are convex with what the others answer, such as log(1 + h**2); squares between points"
BENT = (Abs, Heaviside, Max, Min, Piecewise, Relational, sign)


@dataclass(frozen=True)
class SmoothSolution(SiteSolution):
    """A state where its energy is stationary.

    Attributes
    ----------
    bend : Expr
        The curvature of a field's energy with the answer of the others, in units of that of the answer.
    reach : str
        What it does not reach, for errors.
    """

    bend: Expr = S.One
    reach: str = ""

    def xreplace(self, rule: dict[Any, Any]) -> SiteSolution:
        """Replace symbols throughout, for instance the self-coupling by its mean."""
        found: Any = super().xreplace(rule)
        return replace(found, bend=self.bend.xreplace(rule))

    def freedom(self) -> Expr:
        """The logarithm of how far a field fluctuates about its minimum, in units of that without its energy."""
        return Average(-log(self.bend) / 2)


class SmoothMinimum(Branching):
    """Laws of a state of lowest energy whose energy is smooth and no square."""

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site has a weight of infinite beta, and an energy that has no kinks."""
        weight = problem.law.weight
        if weight is None or not weight.is_cold or weight.others or weight.beside or weight.bounds:
            return False
        if not weight.is_field and any(q.family.values for q in weight.states):
            return False
        return not weight.energy.has(*BENT) and not is_square(weight.energy, weight.state)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve for where the energy is stationary; raises IllPosed or UnsupportedLaw as that does."""
        weight = weight_of(problem)
        moving = moving_fields(problem)
        carriers = [problem.law.carrier(h.declared) for h in moving]
        slope = weight.energy.diff(weight.state)
        pull = Add(*(e.lhs for e in carriers))
        own = Equation(weight.mean, -slope) if weight.is_field else Equation(slope, pull)
        known: dict[Any, int] = {}
        for heard in moving:
            back = [k.symbol for k in heard.feedback if k.emission.has(weight.mean)]
            way = 1 if weight.is_field else sign_of(heard.factor)
            if weight.is_field or heard.declared.sender == heard.declared.hearer:
                known |= {k: way for k in back if way}
        equations = tuple(e for e in problem.law.equations if e.lhs not in (weight.state, weight.mean) or e in carriers)
        law = replace(problem.law, equations=(*equations, own), weight=None)
        try:
            found = solve_with_feedback(replace(problem, law=law, proved=known))
        except IllPosed:
            raise UnsupportedLaw(
                f"{problem.text}: the energy {weight.energy} may have several minima whatever the others answer, and "
                "is not made of squares.",
                SUPPORTED,
                "problem.gibbs(beta), of which large beta is the limit",
            ) from None
        strength = Add(*(k.symbol for h in moving for k in h.feedback if k.emission == weight.mean))
        signed = {k: k.signed(s) for k, s in found.signs.items()}
        bend = (1 + strength * slope.diff(weight.state)).xreplace(signed)
        own_fields = {f.name: getattr(found.solved, f.name) for f in fields(found.solved)}
        curvature = (slope.diff(weight.state) + force_on(problem).curvature).xreplace(signed)
        own_fields["assumed"] += tuple(
            StrictGreaterThan(simplify(c), 0, evaluate=False)
            for branch in found.solved.branches
            if sign_given(c := curvature.xreplace(dict(branch.values)), ()) != 1
        )
        energy = f"the energy {weight.energy} has several minima with what the others answer"
        reach = f"No solution is supported at which {energy}."
        return LawSolution(SmoothSolution(**own_fields, bend=bend, reach=reach), found.signs)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The energy of the new site, where that is stationary, and the responses of its states."""
        force, means = force_on(site.problem), dict(site.means)
        force = StateForce(*(e.xreplace(means) for e in (force.slope, force.shift, force.curvature)))
        energy, _ = energy_step(site, make, force)
        solved, *others = super().steps(site, make, wanted)
        return [energy, replace(solved, rests_on=(energy.key,)), *others]


def is_square(energy: Expr, state: Any) -> bool:
    """Whether an energy is a polynomial of degree two."""
    try:
        return bool(Poly(energy, state).degree() <= 2)
    except PolynomialError:
        return False
