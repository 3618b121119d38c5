"""Averages of products of two functions of correlated Gaussian fields, by their series of Hermite polynomials.

A function of standard Gaussian variables is a series of normalized Hermite polynomials. Polynomials of different
degree are not correlated, whatever the correlations of the variables, and those of degree k have the covariances

    M_k = (1/k) sum over i, j of R_ij (raise n_i) M_(k-1) (lower m_j)

where R holds the correlations between the variables of one function and of the other (Mehler 1866). With the largest
singular value s of R, what is left out beyond degree K is at most s^(K+1) times what is left of both functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sympy import Dummy, Expr

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.memory import Memory
from symcavity.algebra.products import Pairing, ProductAverage
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.at_leaves import AtLeaves
from symcavity.evaluate.averages.difference import STEP, difference_quotient
from symcavity.evaluate.averages.hermite_nodes import LEAST, HalfAtFields
from symcavity.evaluate.averages.joint_bodies import leaves_of
from symcavity.evaluate.averages.law_fields import NEGATIVE
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick

DEGREES = (12, 18, 27, 40, 60, 90, 135, 200, 300, 450)
FADED = 1e-9  # of the correlations: series begin with so many degrees
LEFT_OUT = 1e-13  # of the product of both sizes: what the rest of the series may be

_halves = Memory(64)


class CompiledProduct(AtLeaves):
    """A compiled average of a product: call it with the values of its symbols."""

    def __init__(self, node: ProductAverage, compiled: Callable[[Expr, str], Any], backend: str) -> None:
        leaves = leaves_of(node.parts)
        super().__init__(node, leaves, compiled, backend, len(leaves))
        self.pairs = [PairedSeries(pairing, leaves) for pairing in node.pairings]

    def average(self, *params: float) -> float:
        """The average at numbers for the leaves."""
        return self.best(params).average(params)

    def best(self, params: tuple[float, ...]) -> PairedSeries:
        """The halves that are correlated least: their series is the shortest one."""
        return min(self.pairs, key=lambda pair: pair.correlation(params)) if len(self.pairs) > 1 else self.pairs[0]

    def slopes(self, params: tuple[float, ...], places: set[int]) -> dict[int, float]:
        """The derivatives by some of the leaves, by their places."""
        return self.best(params).slopes(params, places)


class PairedSeries:
    """The average of a product by the series of its halves, as a function of the parameters.

    Parameters
    ----------
    pairing : Pairing
    leaves : list
        The parameters, in order.
    """

    def __init__(self, pairing: Pairing, leaves: Sequence[Any]) -> None:
        self.leaves = list(leaves)
        self.halves = []
        for half in (pairing.one, pairing.other):
            if half not in _halves:
                _halves[half] = HalfAtFields(half)
            self.halves.append(_halves[half])
        self.cross = function(self.leaves, list(pairing.cross))
        self.own = [[self.leaves.index(leaf) for leaf in half.leaves] for half in self.halves]
        cells = (pairing.one.covariance, pairing.cross, pairing.other.covariance)
        self.moves = [self._moves(row) for row in cells]
        self.known = Memory(64)

    def _moves(self, cells: Sequence[Expr]) -> tuple[list[int], Any]:
        """Which parameters some covariances hold, and their derivatives by these."""
        leaves = leaves_of(cells)
        marks = {leaf: Dummy(real=True) for leaf in leaves}
        back = {mark: leaf for leaf, mark in marks.items()}
        table = [cell.xreplace(marks).diff(mark).xreplace(back) for cell in cells for mark in back]
        return [self.leaves.index(leaf) for leaf in leaves], function(leaves, table)

    def correlation(self, params: tuple[float, ...]) -> float:
        """The largest one between the two halves; infinite where there is none."""
        found = self._turned(params)
        return float("inf") if found is None else float(found[1][0])

    def average(self, params: tuple[float, ...]) -> float:
        """The average at some parameters; nan if the matrix is not a covariance.

        Raises
        ------
        NotConverged
            If the fields of both are so strongly correlated that the series is too long.
        """
        found = self.at(params)
        return float("nan") if found is None else _product(found.one, found.other, found.correlations)

    def at(self, params: tuple[float, ...]) -> Expanded | None:
        """Both series at some parameters, as long as they have to be; None if the matrix is not a covariance."""
        if params not in self.known:
            self.known[params] = self._expanded(params)
        found: Expanded | None = self.known[params]
        return found

    def _own(self, params: tuple[float, ...]) -> list[tuple[float, ...]]:
        return [tuple(params[k] for k in rows) for rows in self.own]

    def _turned(self, params: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]] | None:
        """The singular values of the correlations with their frames, and the variables of each half by its fields."""
        roots = [half.root(p) for half, p in zip(self.halves, self._own(params), strict=True)]
        cross = np.array(self.cross(*params), dtype=float)
        if roots[0] is None or roots[1] is None or not np.isfinite(cross).all():
            return None
        inner = [np.linalg.pinv(root, rcond=LEAST) for root in roots]
        table = inner[0] @ cross.reshape(len(inner[0]), -1) @ inner[1].T
        left, size, right = np.linalg.svd(table, full_matrices=False)
        # an iterate that is extrapolated may be beyond one
        return None if size[0] > 1 + NEGATIVE else (left, np.minimum(size, 1.0), right, inner)

    def _expanded(self, params: tuple[float, ...]) -> Expanded | None:
        if (turned := self._turned(params)) is None:
            return None
        left, size, right, inner = turned
        needed = next((d for d in DEGREES if size[0] ** d <= FADED), DEGREES[-1])
        bound = scale = np.inf
        for degree in (d for d in DEGREES if d >= needed):
            tick("averages of products of several fields")
            one, other = (half.series(p, degree) for half, p in zip(self.halves, self._own(params), strict=True))
            if one is None or other is None:
                return None
            rests = [np.sqrt(max(norm - np.sum(series**2), 0.0)) for series, norm in (one, other)]
            bound, scale = size[0] ** (degree + 1) * rests[0] * rests[1], np.sqrt(one[1] * other[1])
            if bound <= LEFT_OUT * scale:
                break
        if bound > tolerances().settled_law * scale:
            raise NotConverged(
                "Two parts of a site have almost the same field, and the series for the average of their product "
                "is too long.",
                None,
                float(bound / scale),
                "a weaker correlation of the copies, copies(2, share={x: u}) with a smaller u",
            )
        return Expanded(one[0], other[0], _two_by_two((left * size) @ right), inner[0], inner[1])

    def slopes(self, params: tuple[float, ...], moving: set[int]) -> dict[int, float]:
        """The derivatives by some parameters.

        That by a covariance is the average of second derivatives (Price 1958), which are series too.
        """
        if (found := self.at(params)) is None:
            return dict.fromkeys(moving, float("nan"))
        rates = dict.fromkeys(moving, 0.0)
        for cells, (leaves, call) in zip(found.slopes(), self.moves, strict=True):
            table = np.array(call(*(params[k] for k in leaves)), dtype=float).reshape(len(cells), len(leaves))
            for column, k in enumerate(leaves):
                if k in moving:
                    rates[k] += float(cells @ table[:, column])
        for which, own in enumerate(self.own):
            for k in (k for n, k in enumerate(own) if k in moving and self.halves[which].holds[n]):
                rates[k] += self._by_the_function(params, k, which, found)
        return rates

    def _by_the_function(self, params: tuple[float, ...], k: int, which: int, found: Expanded) -> float:
        """The derivative by a parameter that stands in the function of a half, at the same fields."""
        own = self.own[which]

        def moved(length: float) -> float:
            there = tuple(params[n] + (length if n == k else 0.0) for n in own)
            series = self.halves[which].series(tuple(params[n] for n in own), found.degree, there)
            if series is None:
                return float("nan")
            both = [found.one, found.other]
            both[which] = series[0]
            return float(_product(both[0], both[1], found.correlations))

        return float(difference_quotient(lambda h: moved(h) - moved(-h), STEP * (abs(params[k]) + STEP)))


@dataclass(frozen=True)
class Expanded:
    """Two series, and how the variables of one are correlated with those of the other.

    Attributes
    ----------
    one, other : array
        Coefficients by the degrees in the outer and in the last variable.
    correlations : array, shape (2, 2)
    inner, inners : array
        The variables of each half by its fields.
    """

    one: np.ndarray
    other: np.ndarray
    correlations: np.ndarray
    inner: np.ndarray
    inners: np.ndarray

    @property
    def degree(self) -> int:
        """Of the longest polynomials."""
        return self.one.shape[1] - 1

    def slopes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The derivatives by the covariances: within the first half, across, and within the second one."""
        within = []
        for series, still, turned, inner in (
            (self.one, self.other, self.correlations, self.inner),
            (self.other, self.one, self.correlations.T, self.inners),
        ):
            count = len(inner)
            table = np.zeros((count, count))
            for a, b in product(range(count), repeat=2):
                twice = _differentiated(_differentiated(series, a + 2 - count), b + 2 - count)
                table[a, b] = _product(twice, still[:, : twice.shape[1]], turned)
            table = inner.T @ table @ inner / 2
            within.append(np.array([table[a, b] * (1 if a == b else 2) for a in range(count) for b in range(a + 1)]))
        table = np.zeros((len(self.inner), len(self.inners)))
        for a, b in product(range(len(self.inner)), range(len(self.inners))):
            one = _differentiated(self.one, a + 2 - len(self.inner))
            other = _differentiated(self.other, b + 2 - len(self.inners))
            table[a, b] = _product(one, other, self.correlations)
        return within[0], (self.inner.T @ table @ self.inners).ravel(), within[1]


def _differentiated(series: np.ndarray, variable: int) -> np.ndarray:
    """The series of a derivative along the outer variable (0) or the last one (1), one degree shorter."""
    if variable == 1:
        return series[:, 1:] * np.sqrt(np.arange(1, series.shape[1]))
    if series.shape[0] == 1:
        return np.zeros((1, series.shape[1] - 1))
    return series[1:, :-1] * np.sqrt(np.arange(1, series.shape[0]))[:, None]


def _two_by_two(correlations: np.ndarray) -> np.ndarray:
    """Correlations with a row and a column of zeros in place of a field that a half does not hear."""
    out = np.zeros((2, 2))
    rows, columns = correlations.shape
    out[2 - rows :, 2 - columns :] = correlations
    return out


def _product(one: np.ndarray, other: np.ndarray, correlations: np.ndarray) -> float:
    """The sum over degrees of both coefficients, with the covariances of the polynomials between them.

    Parameters
    ----------
    one, other : array
        Coefficients by the degrees in the outer and in the last variable; degrees in the sum up to that of the last.
    """
    degree = other.shape[1] - 1
    total, between = float(one[0, 0] * other[0, 0]), np.ones((1, 1))
    for k in range(1, degree + 1):
        n = np.sqrt(np.arange(k + 1.0))
        up = np.zeros((k + 1, k + 1))
        # the first variable of a polynomial has degree row (or column), the other one the rest of k
        none = np.zeros((1, k))
        raised = np.vstack([none, n[1:, None] * between]), np.vstack([n[:0:-1, None] * between, none])
        for i, part in enumerate(raised):
            up[:, 1:] += correlations[i, 0] * part * n[1:]
            up[:, :-1] += correlations[i, 1] * part * n[:0:-1]
        between = up / k
        total += float(_of_degree(one, k) @ between @ _of_degree(other, k))
    return total


def _of_degree(series: np.ndarray, k: int) -> np.ndarray:
    """The coefficients of one degree in all, by the degree in the outer variable."""
    out = np.zeros(k + 1)
    rows = np.arange(min(k + 1, series.shape[0]))
    out[rows] = series[rows, k - rows]
    return out
