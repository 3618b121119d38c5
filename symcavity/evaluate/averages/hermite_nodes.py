"""A function of one or two Gaussian fields on nodes of standard variables, and its series of Hermite polynomials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sympy import Expr

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import LawSymbol
from symcavity.algebra.memory import Memory
from symcavity.algebra.products import Half
from symcavity.algebra.quadrature import break_points
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.beside import ALONG, cut, even
from symcavity.evaluate.averages.joint_bodies import leaves_of
from symcavity.evaluate.averages.law_fields import NEGATIVE, LawAtFields
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.tolerances import tolerances

RESOLVED = 1e-9  # of the size: what finer nodes may change, which have about twice the digits
FINEST = 5  # how often nodes are made finer
LEAST = 1e-12  # of the trace: a variance that stands for zero


class HalfAtFields:
    """A function of one or two fields on nodes of standard Gaussian variables, and its Hermite series."""

    def __init__(self, half: Half) -> None:
        law = half.law
        self.leaves = leaves_of(half.expressions)
        self.cells = function(self.leaves, list(half.covariance))
        self.holds = [any(e.has(leaf) for e in (half.body, *law.expressions)) for leaf in self.leaves]
        self.fields = list(law.fields)
        given: dict[Any, Expr] = {}
        for x, e in law.definitions:
            given[x] = e.xreplace(given)
        body = half.body if law.unknowns else half.body.xreplace(given)
        self.at = LawAtFields(law, half.covariance, self.leaves) if law.unknowns else None
        self.names = sorted(body.atoms(LawSymbol), key=str)
        self.body = function([*self.names, *self.leaves], body)
        *outer, last = self.fields
        exprs = [body, *law.members, *given.values()]
        self.outside = self._places(exprs, outer[0] if outer else None, ())
        self.inside = self._places([] if law.unknowns else [body], last, outer)
        self.known = Memory(32)

    def _places(self, exprs: Sequence[Expr], field: Any, given: Sequence[Any]) -> list[Any]:
        """Where the function may not be smooth along a field, as functions of the fields before it."""
        allowed = set(given)
        found = dict.fromkeys(p for e in exprs if field is not None for p in break_points(e, field))
        fine = [p for p in found if p.atoms(LawSymbol) <= allowed]
        return [function([*given, *self.leaves], p) for p in fine]

    def root(self, params: tuple[float, ...]) -> np.ndarray | None:
        """The lower triangular root of the covariance of the fields; None if it is not one."""
        cells = np.array(self.cells(*params), dtype=float)
        if not np.isfinite(cells).all():
            return None
        if len(self.fields) == 1:
            return np.sqrt(cells)[:, None] if cells[0] >= 0 else None
        first, both, second = cells
        scale = max(first + second, 0.0)
        if first < -NEGATIVE * scale or second < -NEGATIVE * scale:
            return None
        a = np.sqrt(max(first, 0.0))
        b = both / a if first > LEAST * scale else 0.0
        if second - b * b < -NEGATIVE * scale:
            return None
        return np.array([[a, 0.0], [b, np.sqrt(max(second - b * b, 0.0))]])

    def series(
        self, params: tuple[float, ...], degree: int, inside: tuple[float, ...] | None = None
    ) -> tuple[np.ndarray, float] | None:
        """The coefficients up to a degree, on nodes that are fine enough, and the mean square; None without a value.

        The function itself may have parameters of its own, beside those of the covariance.

        Raises
        ------
        NotConverged
            If the finest nodes still change something.
        """
        key = params, degree, inside
        if key in self.known:
            known: tuple[np.ndarray, float] | None = self.known[key]
            return known
        panels = 1 + int(np.sqrt(degree) / 4)
        before, gap = self._on_nodes(params, degree, panels, inside), np.inf
        for _ in range(FINEST):
            panels += max(1, panels // 2)
            after = self._on_nodes(params, degree, panels, inside)
            if before is None or after is None or not np.isfinite(after[1]):
                return None
            scale = np.sqrt(after[1]) + TINIEST
            gap = max(float(np.max(np.abs(after[0] - before[0]))), abs(after[1] - before[1]) / scale) / scale
            before = after
            if gap <= RESOLVED:
                break
        if gap > tolerances().settled_law:
            raise NotConverged("An average over two fields did not converge.", None, gap, "weaker fields")
        self.known[key] = before
        return before

    def _on_nodes(
        self, params: tuple[float, ...], degree: int, panels: int, inside: tuple[float, ...] | None
    ) -> tuple[np.ndarray, float] | None:
        root, params = self.root(params), params if inside is None else inside
        if root is None:
            return None
        alone = len(self.fields) == 1
        with np.errstate(all="ignore"):
            places = np.array([[place(*params)] for place in self.outside], dtype=float).reshape(-1, 1) / root[0, 0]
            outer, weights = (np.zeros(1), np.ones(1)) if alone else (row[0] for row in _line(places, panels))
            before = [] if alone else [root[0, 0] * outer]
            mean = np.zeros(1) if alone else root[1, 0] * outer
            ends = [np.broadcast_to(place(*before, *params), outer.shape) - mean for place in self.inside]
            z, w = _line(np.array(ends, dtype=float).reshape(-1, len(outer)) / root[-1, -1], panels)
            last = mean[:, None] + root[-1, -1] * z
            values = self._values([*(np.broadcast_to(b[:, None], last.shape) for b in before), last], params)
        if values is None:
            return None
        norm = float(np.sum(weights[:, None] * w * values**2))
        weighed = values * w * weights[:, None]
        alike = len(z) == 1  # the same nodes at all values of the outer field
        rows = np.stack(list(_hermite(z[0], degree))) @ weighed.T if alike else _projected(weighed, z, degree)
        return np.stack(list(_hermite(outer, 0 if alone else degree))) @ rows.T, norm

    def _values(self, fields: list[np.ndarray], params: tuple[float, ...]) -> np.ndarray | None:
        """The function at given fields; None where the law has no solution."""
        shape = fields[0].shape
        columns: dict[Any, np.ndarray] = dict(zip(self.fields, fields, strict=True))
        if self.at is not None:
            flat = np.stack([f.ravel() for f in fields])
            if (solved := self.at.solved(shape, flat, params)) is None:
                return None
            columns = {name: np.broadcast_to(c, flat.shape[1:]).reshape(shape) for name, c in solved.items()}
        return np.broadcast_to(self.body(*(columns[x] for x in self.names), *params), shape)


def _line(places: np.ndarray, panels: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of one variable and their weights, for each column of places where something switches; equidistant without.

    Parameters
    ----------
    places : array, shape (switches, columns)
    panels : int
        Between two places.

    Returns
    -------
    nodes, weights : arrays, shape (columns, nodes); of a single row where there are no places
    """
    if not len(places):
        nodes, weights = even(1, 2 * ALONG * panels)
        return nodes, weights[None]
    nodes, weights = cut(places, panels)
    return nodes[0], weights


def _hermite(z: np.ndarray, degree: int) -> Iterator[np.ndarray]:
    """Normalized Hermite polynomials, one degree after the other."""
    below, here = np.zeros_like(z), np.ones_like(z)
    yield here
    for n in range(degree):
        below, here = here, (z * here - np.sqrt(n) * below) / np.sqrt(n + 1)
        yield here


def _projected(weighed: np.ndarray, z: np.ndarray, degree: int) -> np.ndarray:
    """The sums of rows with all polynomials, in place: there are many nodes. Shape (degrees, rows)."""
    below, here, free = np.zeros_like(z), np.ones_like(z), np.empty_like(z)
    out = np.empty((degree + 1, len(z)))
    for n in range(degree + 1):
        np.einsum("ij,ij->i", weighed, here, out=out[n])
        np.multiply(z, here, out=free)
        below *= np.sqrt(n)
        free -= below
        free /= np.sqrt(n + 1)
        below, here, free = here, free, below
    return out
