"""Averages of states that a system of equations fixes together: Newton's method at all nodes at once.

The nodes are those of a product of Gauss-Hermite rules, for up to three fields of a smooth law, and quasi-random points
otherwise.  All averages over one law and one covariance are taken at once, for its states are found only once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np
from sympy import Expr, Max, Min, Piecewise, Sum
from sympy.core.relational import Relational

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import KINKS, RAYS, RULE, SAMPLES, SCRAMBLE, JointAverage, JointLaw, LawSymbol
from symcavity.algebra.memory import Memory
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.law_code import LawCode
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average
from symcavity.model.quantities import SiteQuantity
from symcavity.shapes.sampling import DEFAULT, SCRAMBLES, gaussian_scrambles

LEVELS: dict[str, dict[int, tuple[int, ...]]] = {
    RULE: {1: (24, 48, 96, 192), 2: (16, 24, 36, 54, 81), 3: (12, 18, 27, 40)},  # nodes along each field
    RAYS: {1: (2, 2), 2: (24, 48, 96, 192, 384)},
    SAMPLES: {},
}
GOAL = {RULE: 1e-11, RAYS: 1e-9}  # what finer nodes may change, relative to the average of the modulus
REACH, SCAN, BISECTIONS, ALONG = 9.0, 41, 34, 14  # of rays: in standard deviations, points, steps, nodes a panel
ENOUGH = 1e-7  # where the finest rules leave more than this, there is no value
LIGHT = 1e-20  # nodes of less weight are left out
STEP = 1e-30  # of a complex step, which cancels nothing
FLAT = 1e-12  # of the largest eigenvalue: what stands for zero where roots are differentiated
NEGATIVE = 0.1  # of the trace: what an iterate that is extrapolated may lack; at a root covariances are those of states

_shared = Memory(64)


class Joint:
    """A compiled average over a joint law: call it with the values of its symbols."""

    def __init__(self, node: JointAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        key = (node.law, node.args[2])
        if key not in _shared:
            _shared[key] = Family(node.law, node.covariance)
        self.family: Family = _shared[key]
        self.node, self.backend = node, backend
        self.family.join(node)

        def reader(leaf: Any) -> Callable[[Mapping[Any, Any]], Any]:
            key = leaf.family if isinstance(leaf, SiteQuantity) else leaf
            return itemgetter(key) if leaf.is_Symbol or key is not leaf else compiled(leaf, backend)

        self.leaves = [reader(leaf) for leaf in self.family.leaves]
        self.own = [reader(leaf) for leaf in leaves_of([node.body])]

    def __call__(self, env: Mapping[Any, Any]) -> Any:
        """Return the average at the values of the symbols; arrays broadcast."""
        if self.backend == "mpmath":
            import mpmath

            if mpmath.mp.dps > 60:
                raise ValuesError(f"{self.node} has no {mpmath.mp.dps} digits.", "dps <= 15: it is taken in double")
        values = [np.asarray(c(env), dtype=float) for c in (*self.leaves, *self.own)]
        count = len(self.leaves)
        if all(v.ndim == 0 for v in values):
            row = tuple(map(float, values))
            return self.family.average(self.node, row[:count], row[count:])
        spread = np.broadcast_arrays(*values)
        rows = zip(*(v.ravel().tolist() for v in spread), strict=True)
        found = [self.family.average(self.node, row[:count], row[count:]) for row in rows]
        return np.array(found).reshape(spread[0].shape)

    def along(self, env: Mapping[Any, Any], rows: Sequence[Mapping[Any, Any]]) -> list[Any] | None:
        """The derivatives along rows of tangents; None where they are not known."""
        if not rows:
            return []
        keys = [q.family if isinstance(q, SiteQuantity) else q for q in self.family.leaves]
        values = [np.asarray(c(env), dtype=float) for c in self.leaves]
        if any(v.ndim for v in values) or any(s not in keys for row in rows for s in row):
            return None
        slopes = self.family.gradient(self.node, tuple(map(float, values)))
        return None if slopes is None else [sum(slopes[keys.index(s)] * t for s, t in row.items()) for row in rows]


def leaves_of(exprs: Sequence[Expr]) -> list[Any]:
    """What parameters some expressions hold: symbols, quenched parameters, averages over other sites."""
    found: set[Any] = set()

    def collect(expr: Any) -> None:
        if isinstance(expr, Average | Sum | SiteQuantity) or (expr.is_Symbol and not isinstance(expr, LawSymbol)):
            found.add(expr)
            return
        for arg in expr.args:
            collect(arg)

    for expr in exprs:
        collect(expr)
    return sorted(found, key=str)


class Family:
    """All averages over one law and one covariance: the law is compiled and solved once for them."""

    def __init__(self, law: JointLaw, covariance: Sequence[Expr]) -> None:
        self.law, self.count = law, len(law.fields)
        self.leaves = leaves_of([*law.expressions, *covariance])
        self.cells = function(self.leaves, list(covariance))
        self.code = LawCode(law, self.leaves)
        self.bodies: dict[JointAverage, Body] = {}
        self.known = Memory(512)
        self.slopes = Memory(64)
        self.last: dict[Any, np.ndarray] = {}

    def join(self, node: JointAverage) -> None:
        """Add an average to those that are taken together."""
        if node not in self.bodies:
            self.bodies[node] = Body(node)

    def average(self, node: JointAverage, params: tuple[float, ...], own: tuple[float, ...]) -> float:
        """One of the averages."""
        body = self.bodies[node]
        found = self.known.setdefault(params, {}) if not np.isnan(params).any() else {node: np.nan}
        if node not in found:
            at = body.needs(own)
            alike = [n for n, b in self.bodies.items() if n.way == node.way and b.needs(own) == at]
            values = self._averaged(alike, node.way, params, own)
            found = {} if at else found  # it may depend on more than the law does
            found.update(zip(alike, values, strict=True))
        return float(found[node])

    def matrix(self, params: Any) -> np.ndarray:
        """The covariance of the fields."""
        cells = np.asarray(self.cells(*params))
        matrix = np.zeros((self.count, self.count), dtype=cells.dtype)
        matrix[np.tril_indices(self.count)] = cells
        return matrix + np.tril(matrix, -1).T

    def root(self, params: tuple[float, ...]) -> np.ndarray | None:
        """The symmetric root of the covariance; None where it is none."""
        matrix = self.matrix(params)
        if not np.isfinite(matrix).all():
            return None
        size, frame = np.linalg.eigh(matrix)
        if size[0] < -NEGATIVE * max(size.sum(), 0.0):
            return None
        return (frame * np.sqrt(np.maximum(size, 0.0))) @ frame.T

    def _averaged(
        self, nodes: Sequence[JointAverage], way: str, params: tuple[float, ...], own: tuple[float, ...]
    ) -> list[float]:
        """Averages on finer and finer nodes, until that changes nothing; over samples at once.

        Raises
        ------
        NotConverged
            If the finest nodes still change something.
        """
        with np.errstate(all="ignore"):
            return self._refined(nodes, way, params, own)

    def _refined(
        self, nodes: Sequence[JointAverage], way: str, params: tuple[float, ...], own: tuple[float, ...]
    ) -> list[float]:
        root = self.root(params)
        before, gap = None, np.inf
        for level in LEVELS[way].get(self.count, (1,)) if root is not None else ():
            tick("averages over a law of several states")
            found = self._nodes(way, level, root, params, nodes)
            columns = None if found is None else self._solved((way, level), root @ found[0], params)
            if found is None or columns is None:
                break
            weights = found[1]
            values = [self.bodies[n].values(columns, own) for n in nodes]
            means = np.array([v @ weights for v in values])
            if way == SAMPLES:
                return list(means)
            if before is not None:
                sizes = np.array([np.abs(v) @ weights for v in values]) + 1e-300
                gap = float(np.max(np.abs(means - before) / sizes))
                if gap < GOAL[way]:
                    self.known.get(params, {})["level"] = level
                    return list(means)
            before = means
        else:
            if gap < ENOUGH:
                self.known.get(params, {})["level"] = level
                return list(means)
            if root is not None and np.isfinite(means).all():
                said = f"An average over {self.count} fields did not converge."
                raise NotConverged(said, means, gap, "weaker fields")
        return [np.nan] * len(nodes)

    def _nodes(self, way: str, level: int, root: Any, params: Any, nodes: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Standard Gaussian variables and their weights."""
        if way == RULE:
            return _hermite(self.count, level)
        if way == RAYS:
            return self._rays(level, root, params, nodes)
        numbers = range(SCRAMBLES) if self.law.scramble == SCRAMBLE else [int(self.law.scramble)]
        points = np.concatenate([_scrambled(self.count)[n] for n in numbers]).T
        return points, np.full(points.shape[1], 1 / points.shape[1])

    def _rays(self, level: int, root: Any, params: Any, nodes: Any) -> tuple[np.ndarray, np.ndarray] | None:
        """Nodes along rays from the origin, in panels that end where a pair or a kink switches."""
        angles = (np.arange(level) + 0.3) * 2 * np.pi / level
        rays = np.array([[1.0, -1.0]]) if self.count == 1 else np.stack([np.cos(angles), np.sin(angles)])
        count = rays.shape[1]
        switching = [self.bodies[n] for n in nodes if self.bodies[n].sides]
        known = {*self.code.unknowns, *self.code.defined, *self.law.fields}
        answering = any(not known.issuperset(body.edges) for body in switching)  # responses jump where states bend

        def look(ray: np.ndarray, r: np.ndarray, start: Any) -> tuple[Any, Any]:
            fields = root @ (rays[:, ray] * r)
            x = self.code.solve(fields, params, start)
            if x is None:
                return None, None
            marks = [self.code.switches(x, fields, params)]
            if switching:
                columns = self.code.columns(x, fields, params, slopes=answering)
                marks += [body.switches(columns) for body in switching]
            return x, np.concatenate(marks)

        scan = np.linspace(0, REACH, SCAN)
        ray, r = np.repeat(np.arange(count), SCAN), np.tile(scan, count)
        x, marks = look(ray, r, self.last.get(("scan", level)))
        if x is None:
            return None
        self.last["scan", level] = x
        hits = np.flatnonzero((marks[:, 1:] != marks[:, :-1]).any(axis=0) & (ray[1:] == ray[:-1]))
        low, high, start = r[hits], r[hits + 1], x[:, hits]
        for _ in range(BISECTIONS if hits.size else 0):
            middle = (low + high) / 2
            start, here = look(ray[hits], middle, start)
            if start is None:
                return None
            same = (here == marks[:, hits]).all(axis=0)
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        place = [hits[:k][ray[hits[:k]] == ray[h]].size for k, h in enumerate(hits)]
        cuts = np.full((count, max(place, default=-1) + 1), REACH)
        cuts[ray[hits], place] = (low + high) / 2
        edges = np.sort(np.concatenate([np.broadcast_to(np.linspace(0, REACH, 7), (count, 7)), cuts], axis=1), axis=1)
        y, w = np.polynomial.legendre.leggauss(ALONG)
        half, middle = np.diff(edges)[..., None] / 2, (edges[:, 1:] + edges[:, :-1])[..., None] / 2
        radii = (middle + half * y).reshape(count, -1)
        density = np.exp(-radii * radii / 2) * (radii if self.count == 2 else np.sqrt(2 / np.pi))
        weights = (half * w).reshape(count, -1) * density / count
        return (rays[:, :, None] * radii).reshape(self.count, -1), weights.ravel()

    def gradient(self, node: JointAverage, params: tuple[float, ...]) -> np.ndarray | None:
        """The derivatives along the parameters of the law; None of averages that are sampled or hold parameters."""
        if node.way == RAYS or self.bodies[node].own:
            return None
        found = self.slopes.setdefault(params, {})
        if node not in found:
            self.average(node, params, ())
            level = 1 if node.way == SAMPLES else self.known[params].get("level")
            if level is None:
                return np.full(len(params), np.nan)
            alike = [n for n, b in self.bodies.items() if n.way == node.way and not b.own]
            rows = self._gradients(alike, node.way, params, level)
            found.update(zip(alike, rows, strict=True))
        return found[node]

    def _gradients(
        self, nodes: Sequence[JointAverage], way: str, params: tuple[float, ...], level: int
    ) -> np.ndarray:
        """Complex steps along each parameter: one step of Newton's method carries them from the law to its states."""
        found = self._nodes(way, level, None, params, nodes)
        assert found is not None  # noqa: S101 - these nodes do not depend on the law
        z, weights = found
        size, frame = np.linalg.eigh(self.matrix(params))
        size = np.sqrt(np.maximum(size, FLAT * max(size[-1], 1e-300)))
        fields = (frame * size) @ frame.T @ z
        x = self.code.solve(fields, params, self.last.get((way, level)))
        out = np.full((len(nodes), len(params)), np.nan)
        if x is None:
            return out
        for k in range(len(params)):
            moved = np.array(params, dtype=complex)
            moved[k] += 1j * STEP
            change = frame.T @ (self.matrix(moved).imag / STEP) @ frame / (size[:, None] + size)
            there = fields + 1j * STEP * (frame @ change @ frame.T @ z)
            columns = self.code.columns(self.code.stepped(x, there, moved), there, moved)
            for n, node in enumerate(nodes):
                out[n, k] = np.imag(self.bodies[node].values(columns, ())) @ weights / STEP
        return out

    def _solved(self, key: Any, fields: np.ndarray, params: tuple[float, ...]) -> dict[LawSymbol, np.ndarray] | None:
        """All quantities of the law at given fields; None where it has no solution."""
        x = self.code.solve(fields, params, self.last.get(key))
        if x is None:
            self.last.pop(key, None)
            return None
        self.last[key] = x
        try:
            return self.code.columns(x, fields, params)
        except np.linalg.LinAlgError:
            return None


class Body:
    """What is averaged, as a function of the quantities of a law."""

    def __init__(self, node: JointAverage) -> None:
        self.own = leaves_of([node.body])
        self.names = sorted(node.body.atoms(LawSymbol), key=str)
        self.call = function([*self.names, *self.own], node.body)
        sides = [e for k in sorted(node.body.atoms(*KINKS), key=str) for e in _sides(k) if not leaves_of([e])]
        self.edges = sorted({s for e in sides for s in e.atoms(LawSymbol)}, key=str)
        self.sides = function(self.edges, sides) if sides else None

    def switches(self, columns: Mapping[LawSymbol, np.ndarray]) -> np.ndarray:
        """On which side of its kinks and conditions each node is."""
        shape = next(iter(columns.values())).shape
        found = self.sides(*(columns[s] for s in self.edges)) if self.sides else []
        return np.array([np.broadcast_to(side > 0, shape) for side in found], dtype=bool).reshape(-1, *shape)

    def needs(self, own: tuple[float, ...]) -> tuple[Any, ...]:
        """What its value depends on beyond the parameters of the law."""
        return tuple(zip(self.own, own, strict=False))

    def values(self, columns: Mapping[LawSymbol, np.ndarray], own: tuple[float, ...] = ()) -> np.ndarray:
        """The values at all nodes."""
        found = self.call(*(columns[s] for s in self.names), *own[: len(self.own)])
        return np.broadcast_to(np.asarray(found), next(iter(columns.values())).shape)


def _sides(kink: Expr) -> list[Expr]:
    """What changes its sign where a kink or a condition switches."""
    if isinstance(kink, Max | Min | Relational):
        return [a - b for a, b in combinations(kink.args, 2)]
    return [] if isinstance(kink, Piecewise) else [kink.args[0]]


@lru_cache(maxsize=32)
def _hermite(count: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of a product rule, without those that weigh nothing."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    w = w / w.sum()
    z = np.stack([part.ravel() for part in np.meshgrid(*[x] * count, indexing="ij")])
    weights = np.prod([part.ravel() for part in np.meshgrid(*[w] * count, indexing="ij")], axis=0)
    kept = weights > LIGHT
    return z[:, kept], weights[kept]


@lru_cache(maxsize=8)
def _scrambled(count: int) -> list[np.ndarray]:
    return list(gaussian_scrambles(count, DEFAULT, 0))


__all__ = ["Joint"]
