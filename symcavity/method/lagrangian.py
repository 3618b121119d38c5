"""The Lagrangian of a declared problem, and what is derived from it, kept for the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sympy import Expr, S, Sum, Symbol

from symcavity.model.equations import Equation
from symcavity.model.fields import FieldSymbol, RandomField
from symcavity.model.kinds import Kind
from symcavity.model.problem import Problem, SumCondition
from symcavity.model.quantities import Field, Global, SiteQuantity, Variable, site_quantities
from symcavity.model.system import System


@dataclass(frozen=True)
class Norm:
    """A norm in the objective: the largest ``p.vector`` with ``|p| <= 1``.

    Attributes
    ----------
    node : Expr
        As it was declared, with random fields as placeholders.
    vector : tuple of Expr
        What it is the norm of.
    p : tuple of SiteQuantity
    s : SiteQuantity
        The multiplier of the bound on p.
    """

    node: Expr
    vector: tuple[Expr, ...]
    p: tuple[SiteQuantity, ...]
    s: SiteQuantity

    @property
    def slack(self) -> Expr:
        """What the bound leaves: ``1 - |p|**2``."""
        return 1 - sum((q**2 for q in self.p), S.Zero)

    @property
    def product(self) -> Expr:
        """What stands for the norm: ``p.vector``."""
        return sum((a * b for a, b in zip(self.p, self.vector, strict=True)), S.Zero)


@dataclass
class Lagrangian:
    """The Lagrangian and what was derived from it, kept for the record.

    Attributes
    ----------
    site : dict
        The Lagrangian of one site of each side, with random fields as placeholders.
    multipliers : list of (SiteQuantity, Expr, bool)
        Each multiplier, its constraint's expression, and whether that is an equality.
    auxiliary : list of (SiteQuantity, Expr)
        Epigraph variables and the convex function that each of them bounds from above.
    messages : dict
        What a site sends back through each field, by the field's placeholder.
    conditions : list of (Global, SumCondition)
        The multiplier of each condition on sums over all sites.
    shared : Expr
        The terms that belong to no site.
    labels : dict
        Labels that are drawn on a field, by what they are once the field has a name.
    turned : set of Global
        The global variables whose condition is written with the other sign than the slope of the Lagrangian.
    """

    problem: Problem
    site: dict[Kind, Expr] = field(default_factory=dict)
    multipliers: list[tuple[SiteQuantity, Expr, bool]] = field(default_factory=list)
    auxiliary: list[tuple[SiteQuantity, Expr]] = field(default_factory=list)
    norms: list[Norm] = field(default_factory=list)
    slacks: list[tuple[SiteQuantity, Expr]] = field(default_factory=list)
    stationarity: list[tuple[Expr, Equation]] = field(default_factory=list)
    duals: list[tuple[SiteQuantity, Expr]] = field(default_factory=list)
    messages: dict[Symbol, Expr] = field(default_factory=dict)
    conditions: list[tuple[Global, SumCondition]] = field(default_factory=list)
    shared: Expr = S.Zero
    labels: dict[Any, Any] = field(default_factory=dict)
    turned: set[Global] = field(default_factory=set)

    @property
    def fields(self) -> list[RandomField]:
        """All random fields."""
        return [f for kind in self.problem.kinds for f in self.problem.book.all(kind)]

    @property
    def auxiliary_states(self) -> set[SiteQuantity]:
        """The variables that were made to write kinks and norms."""
        return {bound for bound, _ in self.auxiliary}.union(*((*norm.p, norm.s) for norm in self.norms))

    @property
    def states(self) -> set[Any]:
        """The families of variables over which the problem is minimized."""
        exprs = [*self.problem.objective.values(), *(c.expr for c in self.problem.constraints)]
        exprs += [f.emission for f in self.fields]
        return {q.family for expr in exprs for q in site_quantities(expr, Variable)}

    @property
    def total(self) -> Expr:
        """The Lagrangian written out with its sums."""
        rule = {f.symbol: f.as_sum for f in self.fields}
        out = self.shared
        for kind, body in self.site.items():
            if body != 0:
                out += Sum(body.xreplace(rule), kind.range)
        return out


def slopes_in_shared(system: System) -> dict[Global, dict[Kind, Expr]]:
    """The slope of the Lagrangian in each variable that all sites share, as what a site of each kind has of it."""
    record = system.record
    free = iter(g for g in system.globals if not g.is_bounded)
    multipliers = {nu for nu, _ in record.conditions}
    out: dict[Global, dict[Kind, Expr]] = {}
    for parts, partner in zip(system.global_conditions, system.partners, strict=True):
        variable = next(free) if partner is None else partner
        moving = any(site_quantities(body, Variable, Field) or body.has(FieldSymbol) for body in parts.values())
        if not moving and any(site_quantities(body) for body in parts.values()):
            continue  # the mean of a parameter that is given is a number
        turned = variable in (record.turned if partner is None else multipliers)
        out[variable] = {kind: -body if turned else body for kind, body in parts.items()}
    return out
