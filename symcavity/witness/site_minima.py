"""The problem of one site, minimized by brute force: at many cavity fields at once, by searches within searches.

The cost of a site is what the declared objective sums over sites of its kind.  It is minimized over the site's own
variables and the fields that it hears, which are bound to the cavity fields by the inverse of the self-couplings.  No
law of the engine is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, Heaviside, LessThan, Matrix, S, Symbol, lambdify, sign
from sympy.core.relational import Relational

from symcavity.algebra.choice import in_cases
from symcavity.algebra.precision import mp
from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, Variable, site_quantities
from symcavity.witness.declared import declared_of, kind_of
from symcavity.witness.drawn import cases, given_averages
from symcavity.witness.world import same

NODES = {1: 800, 2: 80, 3: 24}  # an axis of a grid over the fields of a site, by their number
FEWER = {1: 1, 2: 2, 3: 20}  # by how much it is coarser where more variables are searched for
SEARCH = {1: 46, 2: 38, 3: 30}  # steps of each search, by their number
LEAST = 12  # nodes
REACH, WIDTH = 7.5, 7.0  # of the grid, in standard deviations; of a search, asinh of the variable
STIFF = 10**8  # what a constraint that is missed costs
BEYOND = 1e100  # what a place costs where the cost is no number, and more the farther constraints are missed there
MODULES, MATRICES = ["numpy", "scipy"], ("curvature", "covariance")


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
        replace(_site_cost(theory, kind, system.own(cost)), outside=system.own(outside[kind]))
        for kind, cost in costs.items()
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


def _site_cost(theory: Any, kind: Kind, cost: Expr) -> SiteCost:
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
    cost = (cost - gain).xreplace(given)
    variables = [q for q in site_quantities(cost, Variable) if kind in q.site]
    apart = [f.symbol - found[f][1] * found[f][0].eta for f in trained]
    etas = [h.eta for h in sorted(site.heard, key=lambda h: bool(h.declared.states()))]  # jumps are cut by the grid
    covariance = Matrix(len(etas), len(etas), lambda a, b: site.covariance[etas[a], etas[b]])
    symbols = tuple(f.symbol for f in trained)
    gaps = (*(curvature - curvature.T), *(answers[a, b] - answers.get((b, a), S.Zero) for a, b in answers))
    count = sum(not h.declared.states() for h in site.heard)
    return SiteCost(
        kind, cost, tuple(variables), symbols, tuple(apart), curvature, tuple(etas), covariance, gaps, count
    )  # fmt: skip


class BruteForce:
    """The averages of the single-site minima at values of all order parameters, by search.

    Parameters
    ----------
    theory : Theory
    laws : dict
        Finite laws of the quenched parameters.
    """

    def __init__(self, theory: Any, laws: dict[Any, Any]) -> None:
        self.theory, self.laws = theory, laws
        self.sites = [site.known(laws) for site in site_costs(theory)]

    @cached_property
    def tied(self) -> dict[Symbol, Expr]:
        """Self-couplings that are equal since a minimum answers alike in both directions: one in terms of another."""
        out: dict[Symbol, Expr] = {}
        for site in self.sites:
            for gap in (gap.xreplace(out).expand() for gap in site.gaps):
                free = sorted((s for s in gap.free_symbols if s in self.theory.order_parameters), key=str)
                if gap != 0 and free:
                    out[free[-1]] = (-gap.coeff(free[-1], 0) / gap.coeff(free[-1])).cancel()
        return out

    def is_convex(self, point: dict[Any, Any]) -> bool:
        """Whether the fields of all sites have covariances, and all self-couplings the right signs, at a point."""
        return all(
            np.all(np.linalg.eigvalsh(matrix) > 0)
            for site in self.sites
            for rule, _ in self._cases(site, point)
            for matrix in (_number(site.covariance, rule), _number((site.curvature + site.curvature.T) / 2, rule))
            if matrix.size
        )

    def averages(self, points: list[dict[Any, Any]]) -> dict[Kind, tuple[np.ndarray, float]]:
        """The average minimum of a site of each kind at some points, and the size of these minima."""
        out = dict[Kind, tuple[np.ndarray, float]]()
        for site in self.sites:
            mean, size = self._average(site, points)
            before = out.get(site.kind, (0, 0))
            out[site.kind] = (before[0] + mean, before[1] + size)
        return out

    def _cases(self, site: SiteCost, point: dict[Any, Any]) -> Iterator[tuple[dict[Any, Any], Expr]]:
        """Joint values of the site's quenched parameters, and the symbols; and weights, which may hold fields."""
        for known, weight in cases(self._quenched(site), self.laws):
            yield {**point, **known}, S(weight).xreplace(known)

    def _quenched(self, site: SiteCost) -> list[SiteQuantity]:
        """The quenched parameters of a site, with those that the law of a label holds."""
        found = {q for e in site.exprs for q in site_quantities(e, Quenched)}
        for label in [q for q in found if q.family.given is not None]:
            if label.family.low is not None:
                raise NotSearched(f"{label} has countably many values")
            found |= {q for weight in self.laws[label.family].values() for q in site_quantities(weight, Quenched)}
        return sorted(found, key=str)

    def _average(self, site: SiteCost, points: list[dict[Any, Any]]) -> tuple[np.ndarray, float]:
        """The average minimum at some points, and the size of the minima."""
        count, searched = len(site.etas), len(site.variables) + len(site.fields)
        nodes = max(LEAST, NODES[max(count, 1)] // FEWER[max(searched, 1)])
        free = {s for e in site.exprs for s in e.free_symbols if s in points[0]}
        numbers = [*self._quenched(site), *sorted(free, key=str)]
        heard = {h.declared.symbol: h.eta for h in self.theory.inserted[site.kind].heard}
        laws = self.theory.system.laws[site.kind].equations
        named = {e.lhs: e.rhs.xreplace(heard) for e in laws if isinstance(e.lhs, SiteQuantity)}
        rows, weights, owner = [], [], []
        for place, point in enumerate(points):
            for rule, weight in self._cases(site, point):
                likely = weight.xreplace(named).xreplace(rule)
                root = np.linalg.cholesky(_number(site.covariance, rule)) if count else np.zeros((0, 0))
                fields, share = _grid(root, nodes, _jumps(site, likely, rule), site.etas)
                values = [*(float(rule[s]) for s in numbers), *_inverse(_number(site.curvature, rule)).ravel()]
                rows.append(np.concatenate([fields, np.repeat(np.array(values)[:, None], share.size, axis=1)]))
                on_fields = lambdify(site.etas, likely, MODULES)
                with np.errstate(all="ignore"):
                    weights.append(share * np.broadcast_to(on_fields(*fields), share.shape))
                owner.append(np.full(share.size, place))
        stacked = np.concatenate(rows, axis=1)
        size = range(len(site.fields))
        springs = [[Symbol(f"spring_{a}_{b}") for b in size] for a in size]
        bound = Add(*(springs[a][b] * site.apart[a] * site.apart[b] / 2 for a in size for b in size))
        arguments = [*site.variables, *site.fields, *site.etas, *numbers, *(s for row in springs for s in row)]
        marks = {argument: Dummy(real=True) for argument in arguments}  # a field and a state may have one letter
        cost, outside = (
            lambdify([*marks.values()], in_cases(e).xreplace(marks), MODULES) for e in (site.cost + bound, site.outside)
        )

        def call(*searched: np.ndarray) -> np.ndarray:
            value, far = cost(*searched, *stacked), outside(*searched, *stacked)
            return np.where(np.isfinite(value), value, BEYOND * (1 + far))

        with np.errstate(all="ignore"):
            found = _searched(call, searched, stacked.shape[1])
        parts = np.concatenate(weights) * found
        sums = np.bincount(np.concatenate(owner), parts, minlength=len(points))
        return sums, float(np.abs(parts).sum() / len(points))


def _number(matrix: Any, rule: dict[Any, Any]) -> np.ndarray:
    return np.array(matrix.xreplace(rule).evalf(17).tolist(), dtype=float).reshape(matrix.shape)


def _inverse(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.inv((matrix + matrix.T) / 2) if matrix.size else matrix


def _jumps(site: SiteCost, likely: Expr, rule: dict[Any, Any]) -> list[Expr]:
    """The expressions in given fields at whose zeros the cost of a site, or the weight of a case, may jump."""
    cost = in_cases(site.cost)
    nodes = {node for expr in (cost, in_cases(likely)) for node in expr.atoms(Relational, sign, Heaviside)}
    found = {(n.lhs - n.rhs if isinstance(n, Relational) else n.args[0]).xreplace(rule) for n in nodes}
    return sorted((e for e in found if e.free_symbols and e.free_symbols <= {*site.etas}), key=str)


def _grid(root: np.ndarray, nodes: int, jumps: list[Expr], etas: tuple[Symbol, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Values of Gaussian fields, and weights of an average over them; each axis is cut where something jumps.

    ``root`` is a triangular root of their covariance: the first fields bound what is given of the next one.
    """
    z, weights = np.zeros((0, 1)), np.ones(1)
    for axis in range(len(root)):
        before = root[axis, :axis] @ z
        known = dict(zip(etas, root[:axis, :axis] @ z, strict=False))
        cuts = [_zero(e, etas[axis], known, before, root[axis, axis]) for e in jumps if _last(e, etas) == axis]
        ends = [np.full(z.shape[1], side * REACH) for side in (-1, 1)]
        edges = np.sort(np.clip([*ends, *cuts], -REACH, REACH), axis=0)
        rule, parts = _rule(-(-nodes // (len(edges) - 1)), is_cut=bool(cuts))
        lengths = np.diff(edges, axis=0)[:, None, :]
        new = edges[:-1, None, :] + lengths * (1 + rule[None, :, None]) / 2
        share = np.exp(-new * new / 2) * lengths * parts[None, :, None]
        share = (share / share.sum(axis=(0, 1))).reshape(-1, z.shape[1])
        count = len(share)
        z = np.concatenate([np.tile(z, (1, count)), new.reshape(1, -1)])
        weights = (share * weights).ravel()
    return root @ z, weights


def _rule(nodes: int, *, is_cut: bool) -> tuple[np.ndarray, np.ndarray]:
    """A rule on -1 to 1: Gauss-Legendre at the edge of a jump, equal steps where all ends in Gaussian tails."""
    if is_cut:
        return np.polynomial.legendre.leggauss(nodes)
    return (2 * np.arange(nodes) + 1) / nodes - 1, np.ones(nodes)


def _last(expr: Expr, etas: tuple[Symbol, ...]) -> int:
    """The place of the last field that an expression holds."""
    return max(k for k, eta in enumerate(etas) if expr.has(eta))


def _zero(expr: Expr, eta: Symbol, known: dict[Symbol, np.ndarray], before: np.ndarray, width: float) -> np.ndarray:
    """Where an expression that is linear in a field is zero, in the field's own standard deviations.

    Raises
    ------
    NotSearched
        If it is not linear.
    """
    slope = expr.diff(eta)
    if slope.has(eta):
        raise NotSearched(f"the cost jumps where {expr} vanishes, which is not linear in a field")
    ends = lambdify([*known], [-expr.xreplace({eta: S.Zero}) / slope], MODULES)(*known.values())
    return (np.broadcast_to(ends[0], before.shape) - before) / width


def _searched(call: Callable[..., Any], count: int, size: int) -> np.ndarray:
    """The least value of a convex function of some variables, at all fields at once: searches within searches."""
    golden = (np.sqrt(5) - 1) / 2

    def least(known: tuple[Any, ...]) -> np.ndarray:
        if len(known) == count:
            return np.broadcast_to(np.asarray(call(*known), dtype=float), (size,))
        low, high = np.full(size, -WIDTH), np.full(size, WIDTH)
        one, two = high - golden * (high - low), low + golden * (high - low)
        at_one, at_two = least((*known, np.sinh(one))), least((*known, np.sinh(two)))
        for _ in range(SEARCH[count]):
            left = at_one < at_two
            low, high = np.where(left, low, one), np.where(left, two, high)
            new = np.where(left, high - golden * (high - low), low + golden * (high - low))
            value = least((*known, np.sinh(new)))
            one, two, at_one, at_two = (
                np.where(left, new, two), np.where(left, one, new),
                np.where(left, value, at_two), np.where(left, at_one, value),
            )  # fmt: skip
        return np.minimum(at_one, at_two)

    return least(())
