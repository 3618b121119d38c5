"""The least cost of single sites at random fields, found by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sympy import Abs, Add, Dummy, Expr, Heaviside, Max, Min, S, Symbol, lambdify, sign
from sympy.core.relational import Relational

from symcavity.algebra.choice import in_cases
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.witness.drawn import cases
from symcavity.witness.site_minima import NODES, SEARCH, NotSearched, SiteCost, site_costs

FEWER = {1: 1, 2: 2, 3: 20}  # by how much it is coarser where more variables are searched for
LEAST = 12  # nodes
REACH, WIDTH = 7.5, 7.0  # of the grid, in standard deviations; of a search, asinh of the variable
BEYOND = 1e100  # the cost of a place where the objective is undefined, plus the violation of constraints
MODULES = ["numpy", "scipy"]


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
    """The expressions in given fields at whose zeros the cost of a site, or the weight of a case, may jump or bend."""
    cost = in_cases(site.cost)
    nodes = {node for expr in (cost, in_cases(likely)) for node in expr.atoms(Relational, sign, Heaviside)}
    found = {(n.lhs - n.rhs if isinstance(n, Relational) else n.args[0]).xreplace(rule) for n in nodes}
    bends = [node.args[0] for node in cost.atoms(Abs)]
    bends += [a - b for node in cost.atoms(Max, Min) for a, b in combinations(node.args, 2)]
    found |= {e for e in (bend.xreplace(rule) for bend in bends) if not any(e.diff(eta).has(eta) for eta in site.etas)}
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
