"""The strategy for linear laws: the states are ``A eta + b`` at once, and their moments follow from the covariance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

from sympy import Add, Dummy, Expr, Mul, Piecewise, Poly, S, Symbol, linear_eq_to_matrix
from sympy.polys.polyerrors import PolynomialError

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.model.site_sums import is_affine
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.averages import SiteEnsemble
from symcavity.sites.branching.branches import Branch, tidy_fraction
from symcavity.sites.branching.feedback import FeedbackDraws
from symcavity.sites.branching.solution import Region, SiteSolution
from symcavity.sites.branching.strategy import Branching
from symcavity.sites.protocol import LawSolution, SiteProblem
from symcavity.sites.site import Site

DEGREE = 4  # of moments by pairings


class Linear(Branching):
    """Laws without pairs whose equations are linear in the states and the fields: a single branch."""

    is_linear = True

    def applies(self, problem: SiteProblem) -> bool:
        """Whether all equations are linear, with coefficients free of states and fields."""
        if problem.law.pairs or problem.is_large:
            return False
        moving = [*problem.law.unknowns, *(h.declared.symbol for h in problem.heard)]
        every = [equation.difference for equation in problem.law.equations]
        tests = [test for e in every for cases in e.atoms(Piecewise) for _, test in cases.args]
        return not any(test.has(*moving) for test in tests) and all(is_affine(e, moving) for e in every)

    def solve(self, problem: SiteProblem) -> LawSolution:
        """Solve the linear equations.

        Raises
        ------
        IllPosed
            If the equations do not fix the states.
        """
        signs = dict(problem.proved)
        sources = problem.plain_sources()
        rule: dict[Any, Any] = {f: f.signed(s) for f, s in signs.items()}
        marks: dict[SiteQuantity, Symbol] = {q: Dummy(q.family.name, real=True) for q in problem.law.unknowns}
        moving = [*problem.law.unknowns, *(h.eta for h in problem.heard)]
        equations = [_spread(e.difference, moving) for e in problem.equations()]
        equations = [e.xreplace({**sources, **rule}).xreplace(marks) for e in equations]
        matrix, rest = linear_eq_to_matrix(equations, list(marks.values()))
        if matrix.rows != matrix.cols or (inverse := _inverse(matrix)) is None:
            raise IllPosed(
                f"{problem.text} leaves its variables undetermined.", "laws that fix every variable of a site"
            )
        found = inverse * rest
        values = {q: tidy_fraction(v) for q, v in zip(marks, found, strict=True)}
        branch = Branch(values, (), (), None)
        draws = FeedbackDraws(problem, tuple(rule.get(f, f) for f in problem.self_couplings))
        draws.read([branch])
        solution = SiteSolution(
            problem.inner().eta,
            problem.law.unknowns,
            (Region(None, None, values),),
            (branch,),
            assumed=draws.taken,
            sources=tuple(sources.values()),
        )
        return LawSolution(solution, signs)

    def ensemble(self, site: Site) -> LinearEnsemble:
        """The averages of the site over its Gaussian fields."""
        general = super().ensemble(site)
        return LinearEnsemble(**{name: getattr(general, name) for name in SiteEnsemble.__dataclass_fields__})

    def steps(self, site: Site, make: StepMaker, wanted: Sequence[Expr]) -> list[Step]:
        """The states as linear functions of the fields, and their responses."""
        first, *others = super().steps(site, make, wanted)
        return [replace(first, data={**first.data, "linear": True}), *others]


def _spread(expr: Expr, moving: Sequence[Any]) -> Expr:
    """Cases of a label, each linear in what moves, as a sum of what moves with factors by cases."""

    def summed(e: Piecewise) -> Expr:
        return Add(e.xreplace(dict.fromkeys(moving, S.Zero)), *(m * e.diff(m) for m in moving))

    return expr.replace(lambda e: isinstance(e, Piecewise) and e.has(*moving), summed)


def _inverse(matrix: Any) -> Any:
    """The inverse of a matrix, by minors: elimination does not see what cancels; None if there is none."""
    entries = matrix.to_DM()
    unit = entries.eye(entries.shape, entries.domain).to_dense()
    # by its characteristic polynomial: what SymPy's `adj_det` makes of it fails where a coefficient is zero, and its
    # factors by blocks are compared by size, which parameters of sites have not
    (first, *others), det = entries.adj_poly_det(cp=entries.charpoly_berk())
    adjugate = unit.scalarmul(first)
    for coefficient in others:
        adjugate = entries.to_dense() * adjugate + unit.scalarmul(coefficient)
    return None if not det else adjugate.to_Matrix() / entries.domain.to_sympy(det)


@dataclass(frozen=True)
class LinearEnsemble(SiteEnsemble):
    """A site whose states are linear in Gaussian fields: polynomial averages are sums over pairings."""

    def at_site(self, body: Expr) -> Expr:
        """Average over the fields only; beyond polynomials of the fourth degree as at any other site."""
        self._check(body)
        values = self.solution.regions[0].values
        responses = {r: self.response(values, None, r).xreplace(self._zero()) for r in body.atoms(SiteResponse)}
        found = self.by_pairings(body.xreplace(responses))
        return found if found is not None else super().at_site(body)

    def by_pairings(self, expr: Expr) -> Expr | None:
        """The average of a polynomial in the states (Isserlis); None if it is not one, or of high degree."""
        values = self.solution.regions[0].values
        marks = {q: Dummy(q.family.name, real=True) for q in values if expr.has(q)}
        if not marks:
            return expr
        try:
            polynomial = Poly(expr.xreplace(marks), *marks.values())
        except PolynomialError:
            return None
        if polynomial.total_degree() > DEGREE or polynomial.has(*values):
            return None
        out = S.Zero
        for powers, coefficient in polynomial.terms():
            states = [q for q, n in zip(marks, powers, strict=True) for _ in range(n)]
            out += coefficient * self._moment(states)
        return out

    def _moment(self, states: Sequence[SiteQuantity]) -> Expr:
        """The average of a product of states, each a constant plus a Gaussian."""
        out = S.Zero
        for count in range(0, len(states) + 1, 2):
            for chosen in combinations(range(len(states)), count):
                constants = [self._constant(states[k]) for k in range(len(states)) if k not in chosen]
                if S.Zero in constants:
                    continue
                pairings = _pairings([states[k] for k in chosen])
                out += Mul(*constants) * Add(*(Mul(*(self._covariance(p, q) for p, q in pairs)) for pairs in pairings))
        return out

    def _constant(self, state: SiteQuantity) -> Expr:
        return self.solution.regions[0].values[state].xreplace({**dict.fromkeys(self.fields, S.Zero), **self._zero()})

    @cached_property
    def _slopes(self) -> dict[SiteQuantity, dict[Symbol, Expr]]:
        """The derivatives of each state by the fields that it depends on."""
        values = self.solution.regions[0].values.items()
        return {q: {f: tidy_fraction(value.diff(f)) for f in self.fields if value.has(f)} for q, value in values}

    def _covariance(self, p: SiteQuantity, q: SiteQuantity) -> Expr:
        """The covariance of two states."""
        if p == q and len(slopes := self._slopes[p]) == 1:
            ((f, slope),) = slopes.items()
            return slope**2 * self.covariance[f, f]
        one, other = self._slopes[p].items(), self._slopes[q].items()
        return Add(*(a * b * self.covariance[f, g] for f, a in one for g, b in other))


def _pairings(letters: Sequence[SiteQuantity]) -> Iterator[list[tuple[SiteQuantity, SiteQuantity]]]:
    """All ways to pair up letters: none for an odd number, one (empty) for no letter."""
    if not letters:
        yield []
        return
    first, *others = letters
    for k, second in enumerate(others):
        for rest in _pairings(others[:k] + others[k + 1 :]):
            yield [(first, second), *rest]
