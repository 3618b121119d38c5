"""Nodes in the plane of two fields, cut where a law switches, and carried on to other parameters.

Self-couplings change from step to step, and with them where the law switches.  But it is the same law at other fields:
``penalty(w) - (eta + F w) w`` is smallest at w for all eta and F with the same ``eta + F w``.  So what was solved at
some nodes once is solved at others now, which one multiplies out, with the determinant of the map in the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from symcavity.algebra.joint import RAYS, LawSymbol
from symcavity.algebra.legendre import legendre
from symcavity.evaluate.averages.grids import REACH
from symcavity.evaluate.averages.law_code import LawCode
from symcavity.evaluate.averages.law_plan import GOAL
from symcavity.evaluate.averages.ray_centres import LOOKS, SCAN
from symcavity.evaluate.averages.rays import TURNS, along, sign_changes
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.watch import tick

BEYOND, PANELS = 1.5, 5  # how much further than normal variables reach nodes go, for others, and panels of a ray
AT = (0.5, 2.0)  # the inverse of radii at which lines end panels, for beside a line rays change fast
THIN = 0.02  # panels that are as narrow are one, but where the order changes
SWAPS, CLOSE = 8, 1e-6  # steps of a search for a turn, and how exact: what is missed of a kink is the square of that
FLAT = 1e-9  # of what varies: what is no difference
ALIKE = 1e-7  # as far apart as two places of switching that are one
GRID, ZOOMED, INSIDE, FEW = 21, 4, 5.0, 16  # with which it is looked for a place where rays switch alike
SAME = 1e-9  # how exactly a law has to be the same law at other fields
SECTOR = GOAL[RAYS] / 10  # of the whole moment: by how much finer nodes may change that of a sector
AXES = (-1, -1, -1, -1, 0, -1, 0)  # along which the parts of nodes are numbered
MASS = 1e-11  # by how much the weights may miss one, and second moments the covariance


Sides = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Nodes(NamedTuple):
    """Nodes with what a law is there: weights of area, fields, states, their slopes along the fields, its rows."""

    area: np.ndarray
    fields: np.ndarray
    states: np.ndarray
    held: np.ndarray
    answers: np.ndarray
    rows: np.ndarray
    table: np.ndarray


@dataclass
class Sector:
    """What lies between two turns: its nodes, moments over them, and whether finer nodes have given the same ones."""

    low: float
    high: float
    nodes: Nodes | None = None
    moments: np.ndarray | None = None
    done: bool = False


class CarriedNodes:
    """Nodes with the states there.

    Parameters
    ----------
    code : LawCode
    root : array, shape (2, 2)
        Of the covariance of the fields.
    params : sequence of float
    sides : callable
        Takes the unknowns and the fields; returns what switches where it changes its sign.

    Attributes
    ----------
    settled : int or None
        So many rays between two turns have been found to do.
    """

    def __init__(self, code: LawCode, root: np.ndarray, params: Any, sides: Sides) -> None:
        self.code, self.root, self.params, self.sides = code, root, params, sides
        self.settled: int | None = None
        self._levels: dict[int, Nodes | None] = {}
        self._sectors: list[Sector] = []
        self._first: np.ndarray | None = None
        self.centre, self.turns = np.zeros(2), None
        if (centre := self._middle()) is not None:
            self.centre = centre
        self.reach = BEYOND * REACH + float(np.linalg.norm(self.centre))
        self.radii = np.linspace(0, self.reach, SCAN)
        self._angles = (np.arange(LOOKS) + 0.3) * 2 * np.pi / LOOKS
        self.turns = None if centre is None else self._turns()

    def _middle(self) -> np.ndarray | None:
        """Where the rays meet: deep inside of where something switches that switches back all around, if anywhere.

        None where the law has no solution.
        """
        best, size, way = np.zeros((1, 2)), INSIDE, np.zeros(0)
        for _ in range(ZOOMED):
            line = np.linspace(-size, size, GRID)
            patch = np.stack([part.ravel() for part in np.meshgrid(line, line)], axis=1)
            sides = self._sides((best[:, None] + patch).reshape(-1, 2).T)
            if sides is None:
                return None
            if not len(way):  # each row, where it is largest and where it is least
                way = np.repeat([1.0, -1.0], len(sides))
                rows, best = np.tile(np.arange(len(sides)), 2), np.repeat(best, len(way), axis=0)
                own = way[:, None] * sides[rows]
            else:
                own = way[:, None] * sides.reshape(len(sides), len(best), -1)[rows, np.arange(len(best))]
            top = own >= own.max(axis=1, keepdims=True) - FLAT * np.ptp(own, axis=1, keepdims=True)
            best = best + (top @ patch) / top.sum(axis=1, keepdims=True)  # the middle of where it is flat
            size *= 2.0 / (GRID - 1)
        own = np.abs(best).max(axis=1) < INSIDE
        candidates = [np.zeros(2), *best[own]]
        found = [t for centre in candidates if (t := self._times(centre)) is not None]
        if len(found) < len(candidates):
            return None
        # what is left in every direction has to be left: seen from beside it, rays miss it, or touch it
        left = np.array([(times % 2 == 1).all(axis=1) for times in found])
        beside = (left.any(axis=0) & ~left).sum(axis=1)
        uneven = [float((times != np.roll(times, 1, axis=1)).sum()) for times in found]
        return min(zip(beside, uneven, range(len(found)), candidates, strict=True))[3]

    def _sides(self, z: np.ndarray) -> np.ndarray | None:
        fields = self.root @ z
        x = self.code.solve(fields, self.params, None)
        return None if x is None else self.sides(x, fields)

    def _times(self, centre: np.ndarray) -> np.ndarray | None:
        """How often rays from a place switch, row by row; None where the law has no solution."""
        angles, radii = (np.arange(FEW) + 0.3) * 2 * np.pi / FEW, np.linspace(0, REACH, SCAN)
        units = np.stack([np.cos(angles), np.sin(angles)])
        sides = self._sides((centre[:, None, None] + units[:, :, None] * radii).reshape(2, -1))
        if sides is None:
            return None
        marks = sides.reshape(len(sides), FEW, SCAN) > 0
        return (marks[..., 1:] != marks[..., :-1]).sum(axis=2)

    def _at(self, angles: np.ndarray, radii: np.ndarray) -> np.ndarray:
        units = np.stack([np.cos(angles), np.sin(angles)])
        return self.root @ (self.centre[:, None] + units * radii)

    def _scanned(self, angles: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """The unknowns along some rays, and what switches: shapes (unknowns, rays, points), (rows, rays, points)."""
        tick("nodes in the plane of two fields")
        count, start = len(angles), None
        fields = self._at(np.repeat(angles, SCAN), np.tile(self.radii, count))
        if self._first is not None:  # rays nearby
            near = np.round((angles - self._angles[0]) * LOOKS / (2 * np.pi)).astype(int) % LOOKS
            start = self._first[:, near].reshape(len(self._first), -1)
        x = self.code.solve(fields, self.params, start)
        if x is None:
            return None
        sides = self.sides(x, fields)
        return x.reshape(-1, count, SCAN), sides.reshape(-1, count, SCAN)

    def _crossings(
        self, angles: np.ndarray, wanted: np.ndarray | None = None
    ) -> tuple[np.ndarray, list[np.ndarray]] | None:
        """The unknowns along some rays, and where they cross what switches: by row and number, infinite if nowhere.

        If only some crossings are ``wanted``, it is said of which rows along which rays.
        """
        found = self._scanned(angles)
        if found is None:
            return None
        x, sides = found
        marks = sides > 0
        changes = marks[..., 1:] != marks[..., :-1]
        rows, ray, point = np.nonzero(changes if wanted is None else changes & wanted[..., None])
        places = np.full(len(rows), np.inf)
        if len(rows):
            start = x[:, ray, point].copy()

            def side(r: np.ndarray, some: np.ndarray) -> np.ndarray | None:
                fields = self._at(angles[ray[some]], r)
                there = self.code.solve(fields, self.params, start[:, some])
                if there is None:
                    return None
                start[:, some] = there
                return self.sides(there, fields)[rows[some], np.arange(len(some))]

            ends = self.radii[point], self.radii[point + 1]
            beyond, outer = [], []
            for at, way in ((point, -1), (point + 1, 1)):
                there = np.clip(at + way, 0, SCAN - 1)
                known = (there != at) & (marks[rows, ray, there] == marks[rows, ray, at])
                beyond.append(np.where(known, self.radii[there], np.nan))
                outer.append(sides[rows, ray, there])
            values = sides[rows, ray, point], sides[rows, ray, point + 1]
            found_places = sign_changes(side, ends, values, (beyond[0], beyond[1]), (outer[0], outer[1]))
            if found_places is None:
                return None
            places = found_places
        table = []
        for row in range(len(sides)):
            mine = rows == row
            of_ray, here = ray[mine], places[mine]
            number = np.arange(len(of_ray)) - np.searchsorted(of_ray, of_ray)
            cells = np.full((len(angles), int(number.max(initial=-1)) + 1), np.inf)
            cells[of_ray, number] = here
            table.append(cells)
        return x, table

    def _turns(self) -> np.ndarray | None:
        """The angles at which rays meet what switches in another order, and others beside which that is far away.

        Places are compared by their inverse, which of a line is a sine: where it is zero the line is far away.
        """
        found = self._crossings(self._angles)
        if found is None:
            return None
        self._first, cells = found[0], [1 / c for c in found[1]]
        step, cuts = 2 * np.pi / LOOKS, list[float]()
        items: list[tuple[int, tuple[int, int, int, int]]] = []
        for j, first in enumerate(self._angles):
            k = (j + 1) % LOOKS
            both = [(r, n) for r, c in enumerate(cells) for n in range(c.shape[1]) if c[j, n] or c[k, n]]
            for r, n in both:
                here, there = cells[r][j, n], cells[r][k, n]
                for level in (1 / self.reach, *AT):
                    if (here - level) * (there - level) < 0:
                        cuts.append(first + step * (here - level) / (here - there))
            for a, (r, m) in enumerate(both):
                for s, n in both[:a]:
                    before, after = cells[r][j, m] - cells[s][j, n], cells[r][k, m] - cells[s][k, n]
                    if before * after < 0 and min(abs(before), abs(after)) > ALIKE:
                        items.append((j, (r, m, s, n)))
        return np.array([*self._swapped(items, cells), *_thinned(cuts)])

    def _swapped(self, items: Sequence[tuple[int, tuple[int, int, int, int]]], cells: Any) -> np.ndarray:
        """Where two places of switching change their order, between a ray and the next one: by false position."""
        ray = np.array([j for j, _ in items], dtype=int)
        rows = np.array([what for _, what in items], dtype=int).reshape(-1, 4)
        low = self._angles[ray]
        ends = np.array([low, low + 2 * np.pi / LOOKS])
        values = np.array(
            [
                [cells[r][j, m] - cells[s][j, n] for j, (r, m, s, n) in zip(at, rows, strict=True)]
                for at in (ray, (ray + 1) % LOOKS)
            ]
        ).reshape(2, -1)
        middle, last = ends.mean(axis=0), np.zeros(len(ray), dtype=int)
        for _ in range(SWAPS if len(ray) else 0):
            middle = (ends[0] * values[1] - ends[1] * values[0]) / (values[1] - values[0])
            wanted = np.zeros((len(cells), len(ray)), dtype=bool)
            wanted[rows[:, 0], np.arange(len(ray))] = wanted[rows[:, 2], np.arange(len(ray))] = True
            met = self._crossings(middle, wanted)
            if met is None:
                break
            place = [
                [1 / met[1][r][n, m] if m < met[1][r].shape[1] else 0.0 for n, (r, m) in enumerate(own)]
                for own in (rows[:, :2], rows[:, 2:])
            ]
            here = np.array(place[0]) - np.array(place[1])
            side = (np.sign(here) == np.sign(values[1])).astype(int)
            every = np.arange(len(ray))
            values[1 - side, every] /= np.where(side == last, 2.0, 1.0)
            ends[side, every], values[side, every], last = middle, here, side
            if np.abs(here).max() < CLOSE:
                break
        return middle

    def level(self, order: int) -> Nodes | None:
        """Nodes between turns, finer than those before where these were not enough; levels are taken in their order.

        Between two turns finer nodes are tried until they change no moment of states or of their slopes.
        """
        if order not in self._levels:
            self._levels[order] = self._level(order)
        return self._levels[order]

    def _level(self, order: int) -> Nodes | None:
        if self.turns is None:
            return None
        if not self._sectors:
            cuts = np.sort(np.concatenate([np.linspace(0, 2 * np.pi, TURNS + 1), self.turns % (2 * np.pi)]))
            cuts = cuts[np.concatenate([[True], np.diff(cuts) > 1e-9])]
            cuts[-1] = 2 * np.pi
            self._sectors = [Sector(low, high) for low, high in pairwise(cuts)]
        todo = [sector for sector in self._sectors if not sector.done]
        if todo and not self._refine(todo, order):
            return None
        return Nodes(*(np.concatenate(part, axis=k) for part, k in zip(self._parts(), AXES, strict=True)))

    def _parts(self) -> Iterator[tuple[np.ndarray, ...]]:
        return zip(*(sector.nodes for sector in self._sectors if sector.nodes is not None), strict=True)

    def _refine(self, todo: Sequence[Sector], order: int) -> bool:
        """Nodes of some sectors, with so many rays in each; whether the law has solutions there."""
        cuts = np.array([[sector.low, sector.high] for sector in todo])
        y, w = legendre(order)
        half, middle = np.diff(cuts) / 2, cuts.mean(axis=1, keepdims=True)
        angles, shares = (middle + half * y).ravel(), (half * w).ravel() / (2 * np.pi)
        found = self._crossings(angles)
        if found is None:
            return False
        x, table = found
        places = np.minimum(np.concatenate([np.zeros((len(angles), 0)), *table], axis=1), self.reach)
        units = np.stack([np.cos(angles), np.sin(angles)])
        points, weights, _ = along(places, units, shares, reach=self.reach, parts=PANELS)
        radius = np.hypot(*points)
        area = weights * np.exp(radius**2 / 2) * 2 * np.pi * abs(np.linalg.det(self.root))
        z = self.centre[:, None] + points
        fields = self.root @ z
        turn = np.arctan2(points[1], points[0]) % (2 * np.pi)
        ray = np.searchsorted((angles[1:] + angles[:-1]) / 2, turn)
        near = np.clip(np.round(radius / self.radii[1]).astype(int), 0, SCAN - 1)
        states = self.code.solve(fields, self.params, x[:, ray, near])
        if states is None:
            return False
        states, held, answers = self.code.answering(states, fields, self.params)
        rows, slopes = self.code.rows_at(states, fields, self.params)
        every = Nodes(area, fields, states, held, answers, rows, slopes)
        density = weights * np.exp((radius**2 - (z**2).sum(axis=0)) / 2)
        flat = answers.reshape(len(answers), -1).T
        tested = np.concatenate([np.ones((1, len(area))), states, states**2, flat]) * density
        scale = np.abs(tested).sum(axis=1) + TINIEST
        own = ray // order
        sorted_by = np.argsort(own, kind="stable")
        ends = np.searchsorted(own[sorted_by], np.arange(len(todo) + 1))
        tested = tested[:, sorted_by]
        every = Nodes(*(np.take(part, sorted_by, axis=k) for part, k in zip(every, AXES, strict=True)))
        for n, sector in enumerate(todo):
            mine = slice(ends[n], ends[n + 1])
            moments = tested[:, mine].sum(axis=1)
            if sector.moments is not None:
                sector.done = bool((np.abs(moments - sector.moments) < SECTOR * scale).all())
            sector.moments = moments
            sector.nodes = Nodes(
                *(part[mine] if k == 0 else part[..., mine] for part, k in zip(every, AXES, strict=True))
            )
        return True

    def carried(
        self, order: int, covariance: np.ndarray, params: Any
    ) -> tuple[dict[LawSymbol, np.ndarray], np.ndarray] | None:
        """All quantities of the law at other parameters, and the weights of the nodes; None where they do not do.

        They have to have weights that sum to one, and give the covariance of the fields.
        """
        here, code = self.level(order), self.code
        hears = code.fields_rows(params)
        if here is None or not np.array_equal(hears, code.fields_rows(self.params)):
            return None
        rows, table = code.rows_at(here.states, here.fields, params)
        inverse, change = np.linalg.pinv(hears), rows - here.rows
        moved = -inverse @ change
        size = np.abs(rows).max() + np.abs(hears).max() * np.abs(here.fields).max()
        if not np.abs(change + hears @ moved).max() <= SAME * size:
            return None
        eta = here.fields + moved
        turn = np.eye(2) - inverse @ ((table - here.table) @ here.answers)
        det = turn[:, 0, 0] * turn[:, 1, 1] - turn[:, 0, 1] * turn[:, 1, 0]
        if not (det > 0).all():
            return None
        density = np.exp(-(eta * np.linalg.solve(covariance, eta)).sum(axis=0) / 2)
        weights = here.area * det * density / (2 * np.pi * np.sqrt(np.linalg.det(covariance)))
        own = np.sqrt(np.diag(covariance))
        missed = ((eta * weights) @ eta.T - covariance) / np.outer(own, own)
        if not (abs(weights.sum() - 1) < MASS and np.abs(missed).max() < MASS):
            return None
        sent = inverse @ code.sources_rows(params)
        answers = here.answers @ np.linalg.solve(turn, np.broadcast_to(sent, (len(det), *sent.shape)))
        return code.all_of(here.states, eta, params, here.held, answers), weights


def _thinned(cuts: Sequence[float]) -> list[float]:
    """Angles without those that have another one just before."""
    out: list[float] = []
    for cut in sorted(cuts):
        if not out or cut - out[-1] > THIN:
            out.append(cut)
    return out
