"""Nodes and weights: panels of Gauss-Legendre rules, refined where two rules differ; the points of quenched laws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from symcavity.algebra.legendre import legendre
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.followed import followed_of
from symcavity.evaluate.averages.inversion import COUNT, beside, invert, refuse_many, within
from symcavity.evaluate.averages.wells import NO_GAPS, Gaps, Hull, hull_of
from symcavity.evaluate.tolerances import tolerances

REACH, FARTHEST = 9.0, 38.0  # the Gaussian weight beyond nine standard deviations is below double precision
PANELS = 9
WIDE, CLOSER = 0.5, 0.7  # the distance of points on a line, at first and each time that they are laid closer
FAINT = 1e-3  # of the largest sum on a line: smaller ones need not be as exact
MOST = 4096  # nodes on one line
SNAPPED = 1e-12  # of its size, how close to an end of a range no panel ends: nodes in between would round to the end
NEAR = 0.15  # of the narrowest panel, how closely the ends of panels are placed: it is enough that they are near

Tangents = Sequence[Sequence[Any]]


class SiteGrid:
    """The joint values of the quenched parameters of a site."""

    def __init__(self, families: Sequence[Any]) -> None:
        self.families = tuple(families)
        self.level = 0  # of the rules for continuous laws
        self.record: list[tuple[Any, Any, Any]] | None = None

    def points(self, laws: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the columns of values, and the weights."""
        return laws[self.families[0].slots[0]].table(self.families, self.level)

    def count(self, laws: Any) -> int:
        """The number of joint values."""
        return max(np.size(column) for column in self.points(laws)[0])

    def sum(self, values: Any, weights: Any) -> Any:
        """Average over the last axis."""
        out = self.slope(values, weights)
        if self.record is not None:
            size = np.abs(values)
            self.record.append((out, self.slope(size, weights), np.max(size, axis=-1)))
        return out

    def slope(self, values: Any, weights: Any) -> Any:
        """Average a term of a derivative over the last axis."""
        values = np.asarray(values)
        if values.ndim == 0:
            return values
        if values.shape[-1] == 1 or weights is None:  # all sites are alike, or all weights
            return values.mean(axis=-1)
        return values @ weights


class PanelGrid:
    """Panels of Gauss-Legendre rules in a standard Gaussian variable, or in an unknown that is fixed by it.

    Attributes
    ----------
    ends : array
        Where panels end, as values of the Gaussian variable.
    halved : bool
        Whether every panel is cut in two, to see what that changes.
    record : list or None
        Where the sums over each panel are written, and the largest modulus there, if they are wanted.
    worst : float
        By how much two rules differed when the panels were cut for the last time.
    each : bool
        Whether points at which an implicit law has no nodes get nan, and all others their nodes.
    """

    def __init__(self) -> None:
        self.ends = np.linspace(-REACH, REACH, PANELS + 1)
        self.halved = False
        self.worst = np.inf
        self.each = False
        self.record: list[tuple[np.ndarray, np.ndarray]] | None = None
        self.places: np.ndarray | None = None
        self._still: tuple[Any, Any] | None = None
        self._last: np.ndarray | None = None

    def count(self, _laws: Any) -> int:
        """The number of nodes."""
        return COUNT * (len(self.ends) - 1)

    # -- sums --------------------------------------------------------------------------------------

    def sum(self, values: Any, weights: Any) -> Any:
        """Sum over the last axis."""
        if self.record is not None:
            parts = np.asarray(values * weights, dtype=float)
            parts = parts.reshape(*parts.shape[:-1], -1, COUNT)
            sizes = np.broadcast_to(values, (*parts.shape[:-2], parts.shape[-2] * COUNT)).reshape(parts.shape)
            self.record.append((np.add.reduce(parts, axis=-1), np.max(np.abs(sizes), axis=-1)))
        return self.slope(values, weights)

    def slope(self, values: Any, weights: Any) -> Any:
        """Sum the terms of a derivative over the last axis."""
        if np.ndim(values) == 1 and weights.ndim == 1:
            return values @ weights
        return np.add.reduce(values * weights, axis=-1)

    # -- nodes -------------------------------------------------------------------------------------

    def gauss(self, breaks: Sequence[Any], slopes: Tangents = ()) -> tuple[Any, Any, Tangents]:
        """Nodes and weights for averages over a standard Gaussian, cut at the breaks; and their tangents."""
        if not breaks:
            if self._still is None:
                z, w, _ = self._nodes(self.ends, [])
                self.places = (self.ends[1:] + self.ends[:-1]) / 2
                self._still = z, w * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            return (*self._still, ())
        reach = self.ends[-1]
        cuts = [np.clip(np.nan_to_num(np.asarray(b, dtype=float)), -reach, reach) for b in breaks]
        edges, order = _merged(self.ends, cuts)
        turns = []
        for row in slopes:
            moved = [
                np.where(np.abs(cut) < reach, np.broadcast_to(np.asarray(t, dtype=float), cut.shape), 0.0)
                for cut, t in zip(cuts, row, strict=True)
            ]
            turns.append(_tangents(len(self.ends), moved, order))
        self.places = (edges[..., 1:] + edges[..., :-1]) / 2
        z, w, moves = self._nodes(edges, turns)
        density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        out = [(dz, (dw - z * dz * w) * density) for dz, dw in moves]
        return z, w * density, out

    def implicit(
        self, law: Callable[[Any], tuple[Any, Any]], low: Any, high: Any, slopes: Tangents = ()
    ) -> tuple[Any, Any, Any, Tangents]:
        """Nodes and weights in an unknown x that solves ``psi(x) = z``, without the density.

        Returns
        -------
        nodes, weights, sign of psi's slope, tangents of nodes and weights
        """
        near = NEAR * float(np.min(np.diff(self.ends)))
        edges = invert(within(law, low, high), self.ends, self._last, near, each=self.each)
        self._last = edges
        grows = edges[..., -1:] > edges[..., :1]
        side: Any = 1.0
        self.places = (self.ends[1:] + self.ends[:-1]) / 2
        if not grows.all():
            side = np.where(grows, 1.0, -1.0)
            edges = np.where(grows, edges, edges[..., ::-1])
            self.places = np.where(grows, self.places, self.places[::-1])
        edges, turns = _within(edges, (low, high), slopes)
        y, w, moves = self._nodes(edges, turns)
        if low is not None or high is not None:  # panels beyond an end have no width: what is infinite at it counts not
            y = np.where(w == 0, beside(low, high), y)
        return y, w, side, moves

    def lowest(self, law: Any, low: Any, high: Any, slopes: Tangents = ()) -> tuple[Any, Any, Any, Tangents]:
        """The same for the lowest minimum in a well: no nodes lie in gaps but at their ends, without a weight.

        Parameters
        ----------
        law : callable
            Gives the slope of the well, its curvature, and the well.

        Returns
        -------
        nodes, weights, gaps, tangents of nodes and weights
        """
        return self._beside_gaps(hull_of, law, (low, high), slopes)

    def followed(self, law: Any, low: Any, high: Any, slopes: Tangents = ()) -> tuple[Any, Any, Any, Tangents]:
        """The same for the minimum that is reached from a start; the law also gives slope and curvature of its well."""
        return self._beside_gaps(followed_of, law, (low, high), slopes)

    def _beside_gaps(
        self, laid: Callable[..., Hull], law: Any, ends: tuple[Any, Any], slopes: Tangents
    ) -> tuple[Any, Any, Gaps, Tangents]:
        """Nodes in panels, of which those in a gap are at its ends."""
        with np.errstate(all="ignore"):
            shape = np.broadcast_shapes(*(np.shape(v)[:-1] for v in law(np.array([0.1]))))
        hull = laid(law, float(self.ends[-1]), shape, each=self.each)
        if not hull.has_gaps:
            y, w, _, moves = self.implicit(lambda x: law(x)[:2], *ends, slopes)
            return y, w, NO_GAPS, moves
        edges, fields = hull.edges(self.ends)
        edges, left, right = (v.reshape(*shape, -1) for v in (edges, hull.left, hull.right))
        self.places = ((fields[:, 1:] + fields[:, :-1]) / 2).reshape(*shape, -1)
        clipped, turns = _within(edges, ends, slopes)
        whole, _, _ = self._nodes(edges, [])
        y, w, moves = self._nodes(clipped, turns)
        gaps = Gaps.of(whole, left, right, hull.turns.reshaped(shape), ends)
        y, w = np.where(gaps.inside, gaps.ends, y), np.where(gaps.inside, 0.0, w)
        if ends != (None, None):
            y = np.where((w == 0) & ~gaps.inside, beside(*ends), y)
        return y, w, gaps, [(np.where(gaps.inside, 0.0, dy), np.where(gaps.inside, 0.0, dw)) for dy, dw in moves]

    def _nodes(self, edges: np.ndarray, turns: Sequence[np.ndarray]) -> tuple[Any, Any, list[tuple[Any, Any]]]:
        if self.halved:
            edges = _with_middles(edges)
            turns = [_with_middles(t) for t in turns]
        refuse_many(edges.shape, COUNT)
        x, rule = legendre(COUNT)
        out = []
        for ends in (edges, *turns):
            middle, half = (ends[..., 1:] + ends[..., :-1]) / 2, (ends[..., 1:] - ends[..., :-1]) / 2
            z = (middle[..., None] + half[..., None] * x).reshape(*ends.shape[:-1], -1)
            out.append((z, (half[..., None] * rule).reshape(z.shape)))
        return *out[0], out[1:]

    # -- refinement --------------------------------------------------------------------------------

    def observe(self, *, halved: bool) -> None:
        """Write down the sums over each panel, or over both halves of each."""
        self.record, self.halved, self._still = [], halved, None

    def leave(self) -> None:
        """Write nothing down any more."""
        self.record, self.halved, self._still = None, False, None

    def forget(self) -> None:
        """Begin the next inversion afresh: it may be for other values outside."""
        self._last = None

    def split(self, values: Sequence[float]) -> None:
        """Let panels end at more values of the Gaussian variable."""
        self._place(np.unique(np.concatenate([self.ends, values])))

    def reach_further(self) -> None:
        """Go further out on both sides."""
        reach = min(self.ends[-1] + 3.0, FARTHEST)
        self._place(np.concatenate([[-reach], self.ends, [reach]]))

    def _place(self, ends: np.ndarray) -> None:
        self.ends, self._still, self._last = ends, None, None


class LineGrid:
    """Points at equal distances on the whole line: of what is smooth, the sum is as exact as it is with a rule.

    Attributes
    ----------
    step, reach : float
        The distance of two points, and how far out they go.
    record : list or None
        By how much the sum over every second point differs from that over all, and what is left at the ends.
    """

    def __init__(self) -> None:
        self.step, self.reach = WIDE, REACH
        self.record: list[tuple[float, float]] | None = None

    def count(self, _laws: Any) -> int:
        """The number of nodes."""
        return 2 * int(self.reach / self.step) + 1

    def gauss(self, _breaks: Sequence[Any], _slopes: Tangents = ()) -> tuple[Any, Any, Tangents]:
        """Nodes and weights for averages over a standard Gaussian."""
        z = self.step * np.arange(-(self.count(None) // 2), self.count(None) // 2 + 1)
        return z, self.step * np.exp(-z * z / 2) / np.sqrt(2 * np.pi), ()

    def sum(self, values: Any, weights: Any) -> Any:
        """Sum over the last axis."""
        parts = values * weights
        total = np.add.reduce(parts, axis=-1)
        if self.record is not None:
            size = np.add.reduce(np.abs(parts), axis=-1)
            size = np.maximum(size, FAINT * np.max(size, initial=0.0)) + np.finfo(float).tiny
            other = 2 * np.add.reduce(parts[..., ::2], axis=-1)
            ends = np.abs(parts[..., 0]) + np.abs(parts[..., -1])
            gap, ends = (np.max(np.nan_to_num(a / size), initial=0.0) for a in (np.abs(total - other), ends))
            self.record.append((float(gap), float(ends)))
        return total

    def slope(self, values: Any, weights: Any) -> Any:
        """Sum the terms of a derivative over the last axis."""
        return np.add.reduce(values * weights, axis=-1)

    def refine(self, goal: float) -> bool:
        """Lay the points closer, or further out, by the sums that were seen; return whether that was needed.

        The error falls off exponentially with the number of points: at half as many it is the root of what it is.
        """
        gap, ends = (max((one[k] for one in self.record or ()), default=0.0) for k in (0, 1))
        if ends > 10 * goal and self.reach < FARTHEST:
            self.reach = min(self.reach + 3.0, FARTHEST)
        elif gap**2 > goal / 4 and self.count(None) < MOST:
            self.step *= CLOSER
        elif max(gap**2, ends) > tolerances().settled_integral:
            raise NotConverged("A Gaussian average did not converge.", None, max(gap**2, ends), "a smoother law")
        else:
            return False
        return True


def _within(
    edges: np.ndarray, ends: tuple[Any, Any], slopes: Tangents
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Edges that lie in a range, and how they move with its ends: panels beyond an end have no width."""
    turns = [np.zeros_like(edges) for _ in slopes]
    for end, column, beyond in ((ends[0], 0, np.less), (ends[1], 1, np.greater)):
        if end is None:
            continue
        end = np.asarray(end, dtype=float)[..., None]
        inner = end + SNAPPED * np.abs(end) * (1 if beyond is np.less else -1)
        out = beyond(edges, inner)
        for k, row in enumerate(slopes):
            turns[k] = np.where(out, np.asarray(row[column], dtype=float)[..., None], turns[k])
        edges = np.where(out, end, edges)
    return edges, turns


def _with_middles(edges: np.ndarray) -> np.ndarray:
    out = np.empty((*edges.shape[:-1], 2 * edges.shape[-1] - 1))
    out[..., ::2] = edges
    out[..., 1::2] = (edges[..., 1:] + edges[..., :-1]) / 2
    return out


def _merged(ends: np.ndarray, cuts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    shape = np.broadcast_shapes(*(c.shape for c in cuts))
    edges = np.empty((*shape, len(ends) + len(cuts)))
    edges[..., : len(ends)] = ends
    for k, cut in enumerate(cuts):
        edges[..., len(ends) + k] = cut
    order = np.argsort(edges, axis=-1)
    return np.take_along_axis(edges, order, axis=-1), order


def _tangents(count: int, moved: Sequence[np.ndarray], order: np.ndarray) -> np.ndarray:
    turn = np.zeros(order.shape)
    for k, row in enumerate(moved):
        turn[..., count + k] = row
    return np.take_along_axis(turn, order, axis=-1)
