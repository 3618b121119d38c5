"""Sites that weigh several fields by a square of them: forces that are linear in the fields, at any temperature.

With the others' answers the fields are a Gaussian: about their means they have the covariance ``T*(1 + F*A)**-1*F``,
where A is the matrix of the square, F that of the self-couplings and T the temperature.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from sympy import Add, Dummy, Expr, Matrix, Rational, S, Symbol, factorial, log

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Expect, LogWeight, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.laws import Weight
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.branches import tidy_fraction
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.linear import Linear, LinearEnsemble
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site
from symcavity.sites.thermal.summed import weight_of


class Squares(Linear):
    """Laws of the forces on several fields."""

    def applies(self, problem: SiteProblem) -> bool:
        """Whether the site weighs several fields."""
        weight = problem.law.weight
        return weight is not None and bool(weight.others)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve the linear equations of the means of fields."""
        found = super().solve(of_means(problem))
        own = {f.name: getattr(found.solved, f.name) for f in fields(SiteSolution)}
        return replace(found, solved=SquaresSolution(**own, spread=Spread.of(problem)))

    def ensemble(self, site: Site) -> SquaresEnsemble:
        """The averages of the site over its fields and what fluctuates about their means."""
        general = super().ensemble(site)
        own = {f.name: getattr(general, f.name) for f in fields(SiteEnsemble)}
        return SquaresEnsemble(**own, spread=site.solution.spread)

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The means as linear functions of the cavity fields, and their responses."""
        weight, zero = weight_of(site.problem), {site.kind.index: S.Zero}
        first, *others = super().steps(site, make, wanted)
        if weight.is_cold:
            return [first, *others]
        named = {q.xreplace(zero): Expect(q.xreplace(zero)) for q in weight.states}
        claims = tuple(Equation(c.lhs.xreplace(named), c.rhs) for c in first.claims)
        return [replace(first, claims=claims), *others]


def of_means(problem: SiteProblem) -> SiteProblem:
    """The same law, in which each field stands for its thermal mean."""
    rule = {Expect(q): q for q in weight_of(problem).states}
    equations = tuple(Equation(_linear(e.lhs, rule), _linear(e.rhs, rule)) for e in problem.law.equations)
    return replace(problem, law=replace(problem.law, equations=equations))


def _linear(expr: Expr, rule: dict[Any, Any]) -> Expr:
    """An expression in which the thermal mean of what is linear stands in the means of fields."""
    return expr.xreplace(rule).replace(lambda e: isinstance(e, Expect), lambda e: e.body)


@dataclass(frozen=True)
class Spread:
    """What fluctuates about the means of several fields.

    Attributes
    ----------
    weight : Weight
    couplings : Matrix
        Row by row the self-couplings by which a field answers to the forces on all of them.
    """

    weight: Weight
    couplings: Any

    @classmethod
    def of(cls, problem: SiteProblem) -> Spread:
        """That of a site, with the self-couplings as symbols."""
        weight = weight_of(problem)
        heard = {h.carrier: h for h in problem.heard if h.declared.states()}

        def row(q: SiteQuantity) -> list[Expr]:
            feedback = heard[Expect(q) if Expect(q) in heard else q].feedback
            return [Add(*(k.symbol for k in feedback if k.emission == force)) for _, force in weight.forces]

        return cls(weight, Matrix([row(q) for q, _ in weight.forces]))

    def xreplace(self, rule: Any) -> Spread:
        """The same at other self-couplings."""
        return replace(self, couplings=self.couplings.xreplace(dict(rule)))

    @property
    def square(self) -> Any:
        """The matrix of the energy."""
        names = [q for q, _ in self.weight.forces]
        return Matrix([[self.weight.energy.diff(p, q) for q in names] for p in names])

    @property
    def gain(self) -> Any:
        """By what the others' answers are multiplied: ``1 + F*A``."""
        return Matrix.eye(len(self.weight.forces)) + self.couplings * self.square

    @property
    def covariance(self) -> Any:
        """Of the fields, times beta."""
        return (self.gain.inv() * self.couplings).applyfunc(tidy_fraction)

    def freedom(self) -> Expr:
        """The logarithm of how far the fields fluctuate, in units of that without their energy."""
        return -log(tidy_fraction(self.gain.det())) / 2

    @property
    def logarithm(self) -> Expr:
        """That of the total weight, against the Gaussian of the fields without their energy, in means and forces."""
        w = self.weight
        forces = Matrix([force for _, force in w.forces])
        held = (forces.T * self.couplings * forces)[0]
        return self.freedom() - w.beta * (w.energy + held / 2)

    def mean(self, body: Expr) -> Expr:
        """The thermal average of a polynomial in the fields, in their means.

        Raises
        ------
        UnsupportedLaw
            Of what is no polynomial.
        """
        if self.weight.is_cold or not body.has(*self.weight.states):
            return body
        marks = {q: Dummy("h", real=True) for q in self.weight.states}
        plain = body.xreplace(marks)
        if not plain.is_polynomial(*marks.values()):
            raise UnsupportedLaw(
                f"{body} is averaged thermally, at a site that weighs several fields.", "polynomials of them there"
            )
        names, share, total = list(marks.values()), self.covariance / self.weight.beta, S.Zero
        term, n = plain, 0
        while term != 0:  # exp of half the Laplacian with the covariance
            total += term / factorial(n)
            term = Add(*(
                Rational(1, 2) * share[j, k] * term.diff(p, q) for j, p in enumerate(names) for k, q in enumerate(names)
            )).expand()  # fmt: skip
            n += 1
        return total.xreplace({mark: q for q, mark in marks.items()})

    def in_means(self, body: Expr) -> Expr:
        """What an expression is in the means of fields: what holds a field outside of Expect is averaged as a whole."""
        values: dict[Symbol, Expr] = {Dummy("r", real=True): r for r in sorted(body.atoms(SiteResponse), key=str)}
        body = body.xreplace({r: mark for mark, r in values.items()})
        for node in sorted(body.atoms(Expect, LogWeight), key=str):
            if any(node != other and other.has(node) for other in body.atoms(Expect)):
                continue
            mark = Dummy("e", real=True)
            body = body.xreplace({node: mark})
            values[mark] = self.logarithm if isinstance(node, LogWeight) else self.mean(node.body)
        return self.mean(body).xreplace(values)


@dataclass(frozen=True)
class SquaresSolution(SiteSolution):
    """The means of fields and the forces on them, as linear functions of the cavity fields."""

    spread: Spread = None  # type: ignore[assignment]

    def xreplace(self, rule: dict[Any, Any]) -> SquaresSolution:
        """Replace symbols throughout."""
        found: Any = super().xreplace(rule)
        return replace(found, spread=self.spread.xreplace(rule))

    def freedom(self) -> Expr:
        """The logarithm of how far the fields fluctuate about their minimum, in units of that without the energy."""
        return self.spread.freedom()


@dataclass(frozen=True)
class SquaresEnsemble(LinearEnsemble):
    """A site that weighs several fields, the cavity parts of which are Gaussian."""

    spread: Spread = None  # type: ignore[assignment]

    def at_site(self, body: Expr) -> Expr:
        """Average an expression thermally and over the fields."""
        return super().at_site(self.spread.in_means(body))
