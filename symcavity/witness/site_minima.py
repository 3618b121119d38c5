"""The problem of one site, minimized by brute force: at many cavity fields at once, by searches within searches.

The cost of a site is what the declared objective sums over sites of its kind.  It is minimized over the site's own
variables and the fields that it hears, which are bound to the cavity fields by the inverse of the self-couplings.  No
law of the engine is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sympy import Add, Expr, LessThan, Matrix, S, Symbol

from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Variable, site_quantities
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.drawn import given_averages
from symcavity.witness.world import same

NODES = {1: 800, 2: 80, 3: 24}  # an axis of a grid over the fields of a site, by their number
SEARCH = {1: 46, 2: 38, 3: 30}  # steps of each search, by their number
STIFF = 10**8  # what a constraint that is missed costs
MATRICES = "curvature", "covariance"


class NotSearched(Exception):
    """The site problem is too large for a search, or no point was found at which it is convex."""


@dataclass(frozen=True)
class SiteCost:
    """The problem of one site: its cost in its variables, its fields and numbers.

    Attributes
    ----------
    kind : Kind
    cost : Expr
        With what constraints cost that are missed, and what emissions gain; without the cost of fields.
    variables, fields : tuple of Expr
        What is searched for: own variables, and the trained fields that are heard.
    apart : tuple of Expr
        By how much each of these fields differs from its cavity field.
    curvature : Matrix
        The self-couplings of these fields.
    etas : tuple of Symbol
    covariance : Matrix
        Of the cavity fields.
    gaps : tuple of Expr
        What vanishes since a minimum answers alike in both directions: differences of self-couplings.
    given : int
        How many of the cavity fields, the first ones, are sums of given emissions.
    outside : Expr
        How far constraints are missed: what is least where the cost is no number, as beyond a logarithm's end.
    """

    kind: Kind
    cost: Expr
    variables: tuple[Expr, ...]
    fields: tuple[Expr, ...]
    apart: tuple[Expr, ...]
    curvature: Any
    etas: tuple[Symbol, ...]
    covariance: Any
    gaps: tuple[Expr, ...] = ()
    given: int = 0
    outside: Expr = S.Zero

    def apart_from_each_other(self) -> list[SiteCost]:
        """The problems of groups of variables and fields that share no term, such as those of copies."""
        terms = Add.make_args(self.cost.expand(deep=False, power_base=False, power_exp=False, multinomial=False))
        searched = [*self.variables, *self.fields]
        joined = [[q for q in searched if term.has(q)] for term in terms]
        joined += [[self.fields[a], self.fields[b]] for a, b in self.curvature.todok()]
        groups = [{q} for q in searched]
        for together in map(set, joined):
            met = [group for group in groups if group & together]
            groups = [group for group in groups if group not in met] + ([set().union(*met)] if met else [])
        groups.sort(key=lambda group: min(searched.index(q) for q in group))
        out = [self._of(group, [t for t in terms if t.has(*group)]) for group in groups]
        alone = [t for t in terms if not t.has(*searched)] if searched else terms
        return [*out, self._of(set(), alone)] if any(alone) else out

    def _of(self, group: set[Expr], terms: Sequence[Expr]) -> SiteCost:
        """The problem of some of the variables and fields, with the cavity fields that it needs."""
        rows = [k for k, f in enumerate(self.fields) if f in group]
        cost, apart = Add(*terms), tuple(self.apart[k] for k in rows)
        used = [k for k, eta in enumerate(self.etas) if k < self.given or any(e.has(eta) for e in (cost, *apart))]
        return replace(
            self, cost=cost, variables=tuple(q for q in self.variables if q in group),
            fields=tuple(self.fields[k] for k in rows), apart=apart, curvature=self.curvature.extract(rows, rows),
            etas=tuple(self.etas[k] for k in used), covariance=self.covariance.extract(used, used),
            outside=Add(*(t for t in Add.make_args(self.outside) if t.has(*group))) if group else S.Zero,
        )  # fmt: skip

    def known(self, laws: dict[Any, Any]) -> SiteCost:
        """The same with the averages of quenched parameters in numbers."""
        matrices = {name: getattr(self, name).applyfunc(lambda e: given_averages(e, laws)) for name in MATRICES}
        apart, gaps = (tuple(given_averages(e, laws) for e in exprs) for exprs in (self.apart, self.gaps))
        cost, outside = given_averages(self.cost, laws), given_averages(self.outside, laws)
        return replace(self, cost=cost, outside=outside, apart=apart, gaps=gaps, **matrices)

    @property
    def exprs(self) -> list[Expr]:
        """All that numbers are put into."""
        return [self.cost, *self.apart, *self.curvature, *self.covariance]


def site_costs(theory: Any) -> list[SiteCost]:
    """The problems of one site of each kind, from what was declared and the claimed statistics of its fields.

    Raises
    ------
    NotSearched
        If the objective is not a sum over sites, or a site has too many variables.
    """
    record, system = theory.system.record, theory.system
    problem = record.problem
    costs = {kind: problem.objective.get(kind, S.Zero) for kind in theory.inserted}
    _check(theory)
    for nu, condition in record.conditions:
        for kind, body in condition.parts.items():
            costs[kind] -= nu * body
    outside = dict.fromkeys(costs, S.Zero)
    for c in problem.constraints:
        missed = c.expr if c.equality else (c.expr - abs(c.expr)) / 2
        costs[c.kind] += S(STIFF) * missed**2 / 2
        outside[c.kind] += missed**2
    whole = [
        _site_cost(theory, kind, system.own(cost), system.own(outside[kind])) for kind, cost in costs.items()
    ]
    parts = [part for site in whole for part in site.apart_from_each_other()]
    for part in parts:
        searched, heard = len(part.variables) + len(part.fields), len(part.etas)
        if searched > max(SEARCH) or heard > max(NODES):
            raise NotSearched(f"a {part.kind} has {searched} variables and hears {heard} fields")
    return parts


def _check(theory: Any) -> None:
    """Hold the costs and constraints that were read against the sums that were declared, written out.

    Raises
    ------
    ValueError
        If they differ.
    """
    problem = theory.system.record.problem
    sums = {f.symbol: f.as_sum for f in theory.system.record.fields}
    declared = [
        (kind_of(Equation(r.lhs - r.rhs, S.Zero)), r.rhs - r.lhs if isinstance(r, LessThan) else r.lhs - r.rhs)
        for r in problem.subject_to
    ]
    here = [(kind, expr) for kind, expr in declared if kind is not None]
    ratios: list[list[Any]] = []
    for seed in (2, 3):
        world = declared_of(theory).world(seed)

        def at(kind: Kind, body: Expr, world: Any = world) -> list[Any]:
            return [world.value(body.xreplace(sums), {kind.index: k}) for k in world.sites(kind)]

        total = mp.fsum(v for kind, body in problem.objective.items() for v in at(kind, body))
        whole = same(total + world.value(problem.global_objective), world.value(problem.minimize))
        rows = [(at(kind, expr), at(c.kind, c.expr)) for (kind, expr), c in zip(here, problem.constraints, strict=True)]
        ratios.append([a / b for one, other in rows for a, b in zip(one, other, strict=True)])
        if not whole or any(ratio <= 0 for ratio in ratios[-1]):
            raise ValueError("the costs of the sites differ from the declared ones")
    if not all(map(same, *ratios)):
        raise ValueError("the constraints of the sites differ from the declared ones")


def _site_cost(theory: Any, kind: Kind, cost: Expr, outside: Expr) -> SiteCost:
    system, record, site = theory.system, theory.system.record, theory.inserted[kind]
    heard = [f for f in record.fields if f.hearer == kind and cost.has(f.symbol)]
    messages = {f: system.own(record.messages[f.symbol]) for f in record.fields}

    def named(f: Any, sender: Kind, emission: Expr) -> tuple[Any, Expr]:
        """The field of the site that sums an emission, in units of what the site hears."""
        for h in site.heard:
            same = h.declared.sender == sender and h.declared.coupling.family == f.coupling.family
            ratio = (system.own(emission) / h.declared.emission).cancel() if same else S.NaN
            if same and not site_quantities(ratio):
                return h, ratio
        raise NotSearched(f"{emission} is heard in other terms")

    found = {f: named(f, f.sender, f.emission) for f in heard}
    trained = [f for f in heard if f.states()]
    given = {f.symbol: ratio * h.eta for f, (h, ratio) in found.items() if not f.states()}
    curvature = Matrix(len(trained), len(trained), lambda *_: S.Zero)
    for row, f in enumerate(trained):
        h, ratio = found[f]
        for k in h.feedback:
            column, share = next(
                (n, share) for n, g in enumerate(trained)
                if g.coupling.family == k.through.coupling.family
                and not site_quantities(share := (k.emission / messages[g]).cancel())
            )  # fmt: skip
            curvature[row, column] += ratio * site.means[k.symbol] * share
    gain, answers = S.Zero, dict[tuple[Expr, Expr], Expr]()
    for f in (f for f in record.fields if f.sender == kind and messages[f] != 0):
        v, ratio = named(f, f.hearer, messages[f])
        own = [site.means[k.symbol] * k.emission / (2 if k.through.states() else 1) for k in v.feedback]
        emission = system.own(f.emission)
        gain += emission * ratio * (v.eta + Add(*own))
        for k in (k for k in v.feedback if k.through.states()):
            answers[emission, k.emission] = answers.get((emission, k.emission), S.Zero) + ratio * site.means[k.symbol]
    cost, outside = (cost - gain).xreplace(given), outside.xreplace(given)
    variables = [q for q in site_quantities(cost, Variable) if kind in q.site]
    apart = [f.symbol - found[f][1] * found[f][0].eta for f in trained]
    etas = [h.eta for h in sorted(site.heard, key=lambda h: bool(h.declared.states()))]  # jumps are cut by the grid
    covariance = Matrix(len(etas), len(etas), lambda a, b: site.covariance[etas[a], etas[b]])
    symbols = tuple(f.symbol for f in trained)
    gaps = (*(curvature - curvature.T), *(answers[a, b] - answers.get((b, a), S.Zero) for a, b in answers))
    count = sum(not h.declared.states() for h in site.heard)
    return SiteCost(
        kind, cost, tuple(variables), symbols, tuple(apart), curvature, tuple(etas), covariance, gaps, count, outside
    )  # fmt: skip
