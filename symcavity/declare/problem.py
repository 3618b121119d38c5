"""A convex problem, declared as a paper writes it: an objective, constraints, fixed averages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sympy import Equality, Expr, GreaterThan, LessThan, S, Sum, sympify
from sympy.core.relational import Relational

from symcavity.declare.convexity import check_convex
from symcavity.declare.fields import FieldBook, check_words, extract_fields, free_side, site_sum
from symcavity.declare.quantities import (
    DATUM,
    FEATURE,
    SIZE,
    Datum,
    Feature,
    Field,
    Global,
    SiteQuantity,
    exact,
    site_quantities,
)
from symcavity.declare.system import BipartiteSystem, read_fixed
from symcavity.errors import DeclarationError

if TYPE_CHECKING:
    from symcavity.cavity.symmetry import Symmetry
    from symcavity.cavity.theory import Theory


@dataclass(frozen=True)
class Constraint:
    """One constraint of every site of a side: ``expr >= 0``, or ``expr = 0``."""

    side: str
    expr: Expr
    equality: bool
    declared: Any


class ConvexProblem:
    """A high-dimensional convex optimisation problem over the states of feature and datum sites.

    Parameters
    ----------
    minimize : Expr
        Sums over the sites of one side, ``Sum(w[i]**2, (i, 1, N))/2 + C*Sum(xi[mu], (mu, 1, P))``.  The
        summand of a datum may contain coupling sums ``Sum(x[mu, i]*w[i], (i, 1, N))``.  A penalty on a
        global variable is extensive: ``N*b**2/2``.
    subject_to : sequence of relations
        Inequalities (``>=``, ``<=``) and per-site equalities ``Eq``; each holds at every site of its side.
    fixed : sequence of Eq
        Values of averages at the solution, ``Eq(average(w[i]**2), 1/kappa**2)``.
    name : str, optional
        A title for the derivation.
    source : dict, optional
        Equation numbers of a source text, by the key of the derivation step.

    Raises
    ------
    DeclarationError
        Before any work, if the declaration is not a bipartite problem of this form.
    NotConvex
        If an objective or a constraint is provably not convex.
    """

    def __init__(
        self,
        minimize: Any,
        subject_to: Sequence[Any] = (),
        fixed: Sequence[Any] = (),
        *,
        name: str = "",
        source: dict[str, str] | None = None,
    ) -> None:
        self.name, self.source = name, dict(source or {})
        self.minimize = exact(minimize, "the objective")
        self.subject_to = tuple(subject_to) if isinstance(subject_to, list | tuple) else (subject_to,)
        self.fixed = tuple(read_fixed(tuple(fixed) if isinstance(fixed, list | tuple) else (fixed,)))
        self.book = FieldBook()
        self.objective: dict[str, Expr] = {FEATURE: S.Zero, DATUM: S.Zero}
        self.global_objective: Expr = S.Zero
        self._read_objective()
        self.constraints = tuple(self._read_constraint(c) for c in self.subject_to)
        self._check()
        self._system: BipartiteSystem | None = None

    # -- reading ---------------------------------------------------------------------------------

    def _read_objective(self) -> None:
        where = "the objective"
        check_words(self.minimize, where)
        for term in self.minimize.expand(deep=False).as_ordered_terms():
            factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
            if isinstance(rest, Sum):
                side, body = site_sum(rest, where)
                if free_side(body, where) not in (side, None):
                    raise DeclarationError(
                        f"{rest} in the objective leaves an index of the other side free.",
                        "a sum over every site of one side, with nested Sum(...) over the other",
                    )
                if factor.has(Global):
                    raise DeclarationError(
                        f"The term {term} multiplies a sum by a global variable outside of it.",
                        "global variables inside the sum: Sum(b*..., (mu, 1, P))",
                    )
                self.objective[side] += factor * extract_fields(body, side, self.book, where)
                continue
            if rest.has(SiteQuantity):
                raise DeclarationError(
                    f"The term {term} of the objective is not summed over the sites.",
                    "Sum(..., (i, 1, N)) or Sum(..., (mu, 1, P)), times constants",
                    f"Sum({term}, (mu, 1, P))" if term.has(Datum) else f"Sum({term}, (i, 1, N))",
                )
            if term.has(Global):
                if not term.has(*SIZE.values()):
                    raise DeclarationError(
                        f"The penalty {term} on a global variable is of order one, against sums over all sites.",
                        "extensive penalties",
                        f"N*({term})",
                    )
                self.global_objective += term
            elif term != 0:
                raise DeclarationError(
                    f"The term {term} of the objective depends on no variable.", "terms with states or globals"
                )

    def _read_constraint(self, relation: Any) -> Constraint:
        if relation in (True, False, S.true, S.false):
            raise DeclarationError(
                f"A constraint of the problem is the constant {relation}.",
                "relations between quantities of a site",
                "SymPy evaluates a relation without unknowns at once",
            )
        if not isinstance(relation, Relational) or not isinstance(relation, GreaterThan | LessThan | Equality):
            raise DeclarationError(
                f"The constraint {relation!r} is not supported.", ">=, <= and Eq between quantities of one site"
            )
        lhs, rhs = sympify(relation.lhs), sympify(relation.rhs)
        expr = rhs - lhs if isinstance(relation, LessThan) else lhs - rhs
        where = f"the constraint {relation}"
        check_words(expr, where)
        side = free_side(expr, where)
        if side is None:
            raise DeclarationError(
                f"The constraint {relation} has no free site index: it couples all sites.",
                "constraints that hold at every site (one free index, i or mu)",
                "a condition on an average belongs in fixed=[Eq(average(...), ...)]; a variable shared by all "
                "sites is a Global",
            )
        body = extract_fields(expr, side, self.book, where)
        if not site_quantities(body, Feature, Datum) and not body.has(*self._placeholders(side)):
            raise DeclarationError(f"The constraint {relation} contains no variable.", "constraints on states")
        return Constraint(side, body, isinstance(relation, Equality), relation)

    def _placeholders(self, side: str) -> list[Any]:
        return [f.symbol for f in self.book.all(side)] or [SiteQuantity]

    def _check(self) -> None:
        stray = [
            q
            for expr in (*self.objective.values(), *(c.expr for c in self.constraints))
            for q in site_quantities(expr, Field)
        ]
        if stray:
            raise DeclarationError(
                f"The field {stray[0]} stands in an optimisation problem.",
                "states (Feature, Datum), which are minimised over",
                "write the field out, or declare the system by its equations with BipartiteSystem",
            )
        if not any(self.objective.values()):
            raise DeclarationError("The objective is zero.", "sums over the sites of one side")
        for side in (FEATURE, DATUM):
            varying = [f.symbol for f in self.book.all(side) if f.states()]
            check_convex(self.objective[side], varying, "the objective")
            for constraint in self.constraints:
                if constraint.side == side and not constraint.equality:
                    check_convex(-constraint.expr, varying, f"the constraint {constraint.declared}")

    # -- verbs -----------------------------------------------------------------------------------

    def kkt(self) -> BipartiteSystem:
        """Return the optimality conditions: stationarity, feasibility, slackness, as a system."""
        from symcavity.cavity.kkt import optimality

        if self._system is None:
            self._system = optimality(self)
        return self._system

    def cavity(self) -> Theory:
        """Derive the cavity theory of the optimality conditions."""
        return self.kkt().cavity()

    def naive(self) -> Theory:
        """Derive the naive mean field of the optimality conditions."""
        return self.kkt().naive()

    def symmetry(self) -> Symmetry:
        """Return the rescaling that makes the naive analysis right, or the reason why there is none."""
        return self.kkt().symmetry()

    # -- display ---------------------------------------------------------------------------------

    def __str__(self) -> str:
        lines = [f"minimise    {self.minimize}"]
        lines += [f"subject to  {c}" for c in self.subject_to]
        lines += [f"fixed       {e}" for e in self.fixed]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_latex_(self) -> str:
        from symcavity.derivation.printing import tex

        rows = [f"\\text{{minimise }} & {tex(self.minimize)}"]
        rows += [f"\\text{{subject to }} & {tex(c)}" for c in self.subject_to]
        rows += [f"\\text{{fixed }} & {tex(e)}" for e in self.fixed]
        return "$$\\begin{aligned}" + " \\\\ ".join(rows) + "\\end{aligned}$$"


__all__ = ["Constraint", "ConvexProblem"]
