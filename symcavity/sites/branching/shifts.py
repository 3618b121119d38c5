"""A field that only shifts a smooth law is averaged first, in closed form, given what is left of the other fields.

A loss of the difference between a teacher's field and the student's depends on that difference alone: in the unknown
of the law, counted from the teacher's field, the law is one of a single Gaussian field.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sympy import Dummy, Expr, Function, Piecewise, S, Symbol, cancel

from symcavity.algebra.factors import factor
from symcavity.algebra.gaussian import gaussian_average
from symcavity.sites.branching.conditioning import given_others, powers
from symcavity.sites.branching.solution import SiteSolution


@dataclass(frozen=True)
class Shift:
    """A field f such that ``psi(x + along*f)`` is ``psi_0(x) + beside*f``.

    Attributes
    ----------
    field : Symbol
    solution : SiteSolution
        The law in the shifted unknown, in which the symbol of the inner field stands for ``inner - beside*f``.
    beside : Expr
    """

    field: Symbol
    solution: SiteSolution
    beside: Expr

    def average(self, ensemble: Any, body: Expr) -> Expr | None:
        """Average over the field given the others, then over these; None where the body is not a polynomial in it."""
        inner = ensemble.solution.inner
        moved = body.xreplace({inner: inner + self.beside * self.field})
        parts = powers(self.solution, moved, self.field)
        if parts is None:
            return None
        covariance = {}
        for (a, b), value in ensemble.covariance.items():
            for one, other in ((a, b), (b, a)):
                if one == inner:
                    value -= self.beside * ensemble.covariance[self.field, other]
            if a == b == inner:
                value += self.beside**2 * ensemble.covariance[self.field, self.field]
            covariance[a, b] = value
        for other in ensemble.fields:
            if other not in (inner, self.field):
                covariance[other, inner] = covariance[inner, other] = (
                    ensemble.covariance[other, inner] - self.beside * ensemble.covariance[other, self.field]
                )
        own = ensemble.covariance[self.field, inner] - self.beside * ensemble.covariance[self.field, self.field]
        covariance[self.field, inner] = covariance[inner, self.field] = own
        covariance[inner, inner] = factor(cancel(covariance[inner, inner]))
        shifted = replace(ensemble, solution=self.solution, covariance=covariance)
        mean, variance = given_others(shifted, self.field)
        rest, z = shifted.without(self.field), Dummy("z", real=True)
        total: Expr = S.Zero
        for power, part in parts:
            total += rest.over_fields(part * gaussian_average(z**power, z, mean, variance))
        return total


def find_shift(ensemble: Any) -> Shift | None:
    """Return a field that only shifts a law that is smooth throughout, if there is one."""
    solution = ensemble.solution
    if not ensemble.outer or len(solution.regions) != 1 or solution.regions[0].implicit is None:
        return None
    region = solution.regions[0]
    x, psi = region.implicit
    for field in reversed(ensemble.outer):
        along = _ratio(psi, x, field)
        if along is None:
            continue
        rule = {x: x + along * field}
        moved = psi.xreplace(rule).expand()
        beside = moved.coeff(field, 1)
        rest = (moved - beside * field).expand()
        if rest.has(field) or beside.has(x, *ensemble.fields):
            continue
        values = {q: v.xreplace(rule).expand() for q, v in region.values.items()}
        branches = tuple(
            replace(b, values={q: v.xreplace(rule).expand() for q, v in b.values.items()}, implicit=(x, rest))
            for b in solution.branches
        )
        regions = (replace(region, values=values, implicit=(x, rest)),)
        return Shift(field, replace(solution, regions=regions, branches=branches), beside)
    return None


def _ratio(psi: Expr, x: Symbol, field: Symbol) -> Expr | None:
    """How far the unknown has to move with the field so that no function of both changes."""
    found: set[Expr] = set()
    for node in psi.atoms(Function):
        if not node.has(field):
            continue
        if len(node.args) > 1 or isinstance(node, Piecewise):
            return None
        (argument,) = node.args
        slope, turn = argument.diff(x), argument.diff(field)
        if slope == 0 or slope.has(x, field) or turn.has(x, field):
            return None
        found.add(cancel(-turn / slope))
    return found.pop() if len(found) == 1 else None
