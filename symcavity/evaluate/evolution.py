"""The closed equations as a map of the order parameters: iterated, accelerated, and finished by Newton's method.

For a declared convex problem the map is the state evolution of message passing, which leads to the solution from
afar.  Unknowns of known sign are followed in their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import Add, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import JointAverage
from symcavity.errors import NotConverged
from symcavity.evaluate.anderson import LONGEST, accelerated
from symcavity.evaluate.cancelling import NOTHING, Cancelling, followed
from symcavity.evaluate.grids import PanelGrid
from symcavity.evaluate.integrals import LAWS, Grids, Pass, lighter
from symcavity.evaluate.meeting import meet
from symcavity.evaluate.nodes import BOXES
from symcavity.evaluate.watch import tick
from symcavity.model.equations import Equation

MEMORY = 4  # iterates that the acceleration looks back upon
MOST, UNDEFINED = 200, 12  # evaluations of the map, and how many of them may find no value
CLOSE = 0.3  # from here on Newton's method is tried
SETTLED, NOISY = 1e-8, 1e-4  # a Newton step as short as this leaves rounding only; what rounding may leave of one
ARRIVED, PATIENCE = 1e-11, 60  # a step of the map itself as short as that ends it; so many are made before Newton's
STRAYED = 2.0  # by how much a step of the map may grow
MILD = 0.1  # so short a step may be accelerated where the map takes matrices
ROUGH, MET = 1e-4, 1e-6  # when grids are refined; how closely conditions are met on the way
OFTEN = 3  # how many times in a row conditions may be missed before a step leaves them alone
FAR = 60.0  # logarithms beyond which, and those of the parameters, nothing is followed
ROUNDED = 1e-14  # what rounding leaves of a sum

INTEGRALS = (GaussianAverage, ImplicitAverage, *BOXES)

Point = dict[Symbol, float]
Gap = tuple[np.ndarray, np.ndarray] | None


@dataclass
class Root:
    """A root in double, and what finding it has left behind.

    Attributes
    ----------
    point : dict
        Every unknown.
    slope : array
        The Jacobian of ``unknowns - map`` at the root.
    averages : Pass
        The right-hand sides and their derivatives.
    grids : list
        The grids on which they have all of their digits.
    error : float
        The last step: as long as rounding leaves it, where terms cancel.
    """

    point: Point
    slope: np.ndarray
    averages: Pass
    grids: Grids
    error: float = 0.0


class Evolution:
    """The closed equations of a task, compiled once.

    Parameters
    ----------
    equations : sequence of Equation
        Each with an unknown on its left-hand side, or an equation between expressions.
    unknowns : sequence of Symbol
    responses : sequence of Symbol
        Those that may be zero to rounding, as where almost no site can move.
    """

    def __init__(
        self, equations: Sequence[Equation], unknowns: Sequence[Symbol], responses: Sequence[Symbol] = ()
    ) -> None:
        self.unknowns, self.equations = list(unknowns), list(equations)
        found = {e.lhs: e.rhs for e in equations if e.lhs in unknowns}
        self.rest = [e for e in equations if e.lhs not in unknowns]
        self.free = [s for s in self.unknowns if s not in found]  # unknowns that are no average
        self.mapped = [s for s in self.unknowns if s in found]
        self.exprs = [found[s] for s in self.mapped] + [e.difference for e in self.rest]
        self.signs = np.array([1.0 if s.is_nonnegative else -1.0 if s.is_nonpositive else 0.0 for s in self.unknowns])
        idle = [s for s in self.free if any(_says_zero(e.difference, s) for e in self.rest)]
        self.signs[[self.unknowns.index(s) for s in idle]] = 0.0  # no logarithm leads to zero
        self.places = [self.unknowns.index(s) for s in self.mapped]
        # a rule of integration may miss what is narrow: only of closed forms a zero is one
        fading = [k for k, s in enumerate(self.mapped) if s in responses and not self.exprs[k].has(*INTEGRALS)]
        self.fading = [k for k in fading if self.signs[self.places[k]]]
        closed = {k: e for k, e in enumerate(self.exprs) if not e.has(*INTEGRALS)}
        self.cancelling = Cancelling(closed, self.unknowns, range(len(self.mapped), len(self.exprs)))
        self._values: Pass | None = None
        self._slopes: Pass | None = None
        # where derivatives cost as much as many values, iterating to the end is quicker than Newton's method
        self.why = ""  # of the last averages that had no value
        self.patient = any(e.has(JointAverage) for e in self.exprs) and bool(self.mapped)
        self._known: dict[int, tuple[Any, list[Any], list[tuple[int, int]]]] = {}

    @property
    def is_square(self) -> bool:
        """Whether there are as many equations as unknowns."""
        return len(self.rest) == len(self.free)

    @property
    def values(self) -> Pass:
        """The right-hand sides."""
        if self._values is None:
            self._values = Pass(self.exprs)
        return self._values

    @property
    def slopes(self) -> Pass:
        """The right-hand sides with their derivatives."""
        if self._slopes is None:
            self._slopes = Pass(self.exprs, self.unknowns)
        return self._slopes

    @property
    def plain(self) -> Pass:
        """The pass that the grids are refined with."""
        return lighter(self.values, self.slopes)

    # -- charts ------------------------------------------------------------------------------------

    def chart(self, x: np.ndarray) -> np.ndarray:
        """The coordinates in which the unknowns are followed."""
        signs = self.signs.reshape(-1, *[1] * (np.ndim(x) - 1))
        size = np.log(np.abs(x) + 1e-300)
        return size if self.signs.all() else np.where(signs != 0, size, np.arcsinh(x))

    def place(self, t: np.ndarray) -> np.ndarray:
        """The unknowns at given coordinates."""
        signs = self.signs.reshape(-1, *[1] * (np.ndim(t) - 1))
        t = np.clip(t, -600, 600)
        signed = signs * np.exp(t)
        return signed if self.signs.all() else np.where(signs != 0, signed, np.sinh(t))

    def scale(self, x: np.ndarray) -> np.ndarray:
        """The derivatives of the unknowns by their coordinates."""
        signs = self.signs.reshape(-1, *[1] * (np.ndim(x) - 1))
        return x if self.signs.all() else np.where(signs != 0, x, np.hypot(1, x))

    def lost(self, point: Mapping[Symbol, Any], env: Mapping[Any, Any]) -> int:
        """How many digits closed forms lose at a point, as their terms cancel."""
        return self.cancelling.digits(followed([point[s] for s in self.unknowns], self.unknowns), env)

    def start(self) -> np.ndarray:
        """Where to begin: weak fields; global variables apart, for where they meet kinks may be one."""
        apart = 0.01 * np.arange(len(self.signs)) if self.patient and self.rest else 0.0
        return np.where(self.signs != 0, self.signs, 0.1 + apart)

    def call(self, averages: Pass, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> tuple[Any, Any]:
        """Evaluate a pass at a point; what does not change from point to point is looked up once."""
        known = self._known.get(id(averages))
        if known is None or known[0] is not env:
            inputs = averages.inputs_of(env, self.unknowns)
            places = [(n, self.unknowns.index(key)) for n, key in enumerate(averages.keys) if inputs[n] is None]
            known = self._known[id(averages)] = (env, inputs, places)
        inputs = list(known[1])
        for n, k in known[2]:
            inputs[n] = x[k]
        return averages.run(inputs, env.get(LAWS), grids)

    # -- one evaluation ----------------------------------------------------------------------------

    def image(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray | None:
        """The map at a point: what it sends each unknown to. None where it is undefined or of the wrong sign."""
        try:
            out = self.call(self.values, x, env, grids)[0]
        except NotConverged as problem:
            self.why = problem.found
            return None
        image = np.array(x, dtype=float)
        image[self.places] = out[: len(self.places)]
        for k, value in self.cancelling.values(x, env).items():
            if k < len(self.places):
                image[self.places[k]] = value
        for k in self.fading:
            if abs(image[place := self.places[k]]) < NOTHING:
                image[place] = self.signs[place] * NOTHING
        return image if self._admissible(image) else None

    def _without_rounding(self, x: np.ndarray, env: Mapping[Any, Any]) -> np.ndarray:
        """The point with zeros for responses that have faded, and for averages of either sign that are rounding."""
        at = {**env, **dict(zip(self.unknowns, x.tolist(), strict=True))}
        out = np.where((np.abs(x) <= NOTHING) & (self.signs != 0), 0.0, x)
        for k, p in enumerate(self.places):
            if not self.signs[p] and abs(x[p]) < ROUNDED:
                out[p] *= abs(x[p]) >= ROUNDED * sum(map(abs, Pass(Add.make_args(self.exprs[k]))(at)))
        return out

    def _admissible(self, x: np.ndarray) -> bool:
        return bool(np.all(np.isfinite(x)) and np.all(x * self.signs >= 0) and np.all(x[self.signs != 0] != 0))

    def gap(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids, *, watched: bool = True) -> Gap:
        """How far a point is from solving the equations, and the derivatives of that; None where undefined."""
        try:
            values, rows = self.call(self.slopes, x, env, grids)
        except NotConverged:
            return None
        slope = -np.array(rows, dtype=float)
        value = -np.array(values, dtype=float)
        for k, (known, row) in self.cancelling.slopes(x, env).items() if watched else ():
            value[k], slope[k] = -known, -row
        for k, place in enumerate(self.places):
            value[k] += x[place]
            slope[k, place] += 1.0
        if not (np.all(np.isfinite(value)) and np.all(np.isfinite(slope))):
            return None
        for k in self.fading:
            here = x[self.places[k]]
            if abs(here) <= NOTHING and abs(here - value[k]) <= NOTHING:
                value[k], slope[k] = 0.0, np.eye(len(x))[self.places[k]] / NOTHING
        return value, slope

    # -- the search --------------------------------------------------------------------------------

    def solve(self, env: Mapping[Any, Any], guess: Mapping[Symbol, Any] | None = None) -> Root | None:
        """Return the root that the map leads to, or None where it leads nowhere.

        Parameters
        ----------
        env : mapping
            Values of the parameters, and the laws of the quenched ones.
        guess : mapping, optional
            Where to begin.
        """
        if not self.is_square:
            return None
        self.why = ""
        grids = self.slopes.grids()
        x = self.start()
        if guess is not None and (root := self.near(env, guess)) is not None:
            return root
        return self._evolve(x, env, grids)

    def near(self, env: Mapping[Any, Any], guess: Mapping[Symbol, Any]) -> Root | None:
        """Return the root that Newton's method leads to from a point nearby, or None where it leads nowhere."""
        if not (self.is_square and all(s in guess for s in self.unknowns)):
            return None
        near = np.array([float(guess[s]) for s in self.unknowns])
        faded = [p for k in self.fading if not near[p := self.places[k]]]
        near[faded] = self.signs[faded] * NOTHING
        follow = self._evolve if self.patient else self._newton
        return follow(near, env, self.slopes.grids()) if self._admissible(near) else None

    def _evolve(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> Root | None:
        trail: list[tuple[np.ndarray, np.ndarray]] = []
        # what holds for the states at every field is linear in their moments, and exact where these are followed
        plain = self.patient
        place = (lambda t: t) if plain else self.place
        t = x if plain else self.chart(x)
        before, tried, close, undefined = np.inf, np.inf, 0.0 if self.patient else CLOSE, 0
        missed = again = 0
        reach = FAR + 4 * max((abs(np.log(abs(v))) for v in env.values() if isinstance(v, float) and v), default=0)
        far = np.where(self.signs != 0, reach, np.inf)
        far[[self.places[k] for k in self.fading]] = np.inf
        for n in range(2 * PATIENCE if self.patient else MOST):
            tick(f"state evolution, step {n}")
            close = CLOSE if self.patient and n == PATIENCE else close
            image = self.image(place(t), env, grids)
            if image is None:
                undefined += 1
                if not trail or undefined > UNDEFINED:
                    return None
                # without acceleration, and then back towards where the map was defined
                t = trail[-1][0] + trail[-1][1] if len(trail) > 2 else (t + trail[-1][0]) / 2
                trail = trail[-1:]
                continue
            if n >= again:
                met = self._met(image, env, grids)
                missed = 0 if met is not None else missed + 1
                again = n + max(1, missed - OFTEN)  # what is met nowhere is tried less and less often
                image = image if met is None else met
            step = (image if plain else self.chart(image)) - t
            faded = (self.signs != 0) & (np.abs(image) <= NOTHING)
            if not plain and np.max(np.abs(step[~faded]), initial=0.0) < CLOSE:  # all else has nearly settled
                t, step = np.where(faded, t + step, t), np.where(faded, 0.0, step)
            elif not plain:  # what is so far away is not to shorten the steps of all others
                step = np.where(faded, np.clip(step, -LONGEST, LONGEST), step)
            scale = np.where(self.signs != 0, np.abs(image), 1.0) if plain else np.ones(len(t))
            size = float(np.max(np.abs(step) / scale, initial=0.0))
            if len(trail) > 2 and size > max(STRAYED * before, CLOSE):  # it was accelerated too much: back, and without
                t, trail, before = trail[-1][0] + trail[-1][1], [], np.inf
                continue
            before = size
            if self.patient and size < ARRIVED and not self.rest:
                point = dict(zip(self.unknowns, place(t).tolist(), strict=True))
                if not self.plain.refine({**env, **point}, grids):
                    return Root(point, np.array([]), self.slopes, grids)
            if (size < close or not self.mapped) and size < tried:
                if (root := self._newton(place(t), env, grids)) is not None:
                    return root
                tried, close = size / 4, close / 4
            if not self.mapped or np.any(np.abs(self.chart(place(t))) > far):
                return None
            trail = [*trail[-MEMORY:], (t, step)]
            # states have matrices of covariances; a combination with weights of both signs may be none
            t = image if plain and size > MILD else accelerated(trail, scale)
        return None

    def _met(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray | None:
        """The point with the equations of unknowns that are no average solved for them, all else as it is.

        None where they are not solved.
        """
        if not (self.free and self.mapped):
            return x
        own, count = [self.unknowns.index(s) for s in self.free], len(self.mapped)
        start = self.chart(x)

        def conditions(t: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]]:
            here = start.copy()
            here[own] = t
            found = self.gap(self.place(here), env, grids) if np.max(np.abs(t - start[own])) < FAR else None
            if found is None:
                return np.full(len(own), np.nan), lambda: np.eye(len(own))
            with np.errstate(over="ignore"):
                slopes = (found[1] * self.scale(self.place(here)))[count:, own]
            return found[0][count:], lambda: slopes

        try:
            start[own] = meet(conditions, start[own], MET)
        except NotConverged:
            return None
        return self.place(start)

    def solve_many(
        self, env: Mapping[Any, Any], count: int, begin: Callable[[int], Mapping[Symbol, Any] | None] | None = None
    ) -> np.ndarray:
        """Return the roots at many points: one row for each unknown; not a number where none was reached.

        Parameters
        ----------
        env : mapping
            Values of the parameters, some of them arrays of ``count`` points; and the laws.
        count : int
        begin : callable, optional
            The solution at the point of a number, where the map does not lead to it.

        Notes
        -----
        One point is solved by itself.  From there Newton's method goes to all others at once, and again from what
        it has reached to the nearest of what is left.
        """
        found = np.full((len(self.unknowns), count), np.nan)
        arrays = [k for k, v in env.items() if isinstance(v, np.ndarray)]
        if not self.is_square or not arrays:
            return found
        places = np.array([env[k] for k in arrays])
        scale = np.std(places, axis=1, keepdims=True) + 1e-300
        middle = int(np.argmin(np.sum(((places - np.median(places, axis=1, keepdims=True)) / scale) ** 2, axis=0)))
        if begin is None:
            root = self.solve({k: float(v[middle]) if k in arrays else v for k, v in env.items()})
            first: Mapping[Symbol, Any] | None = None if root is None else root.point
        else:
            first = begin(middle)
        if first is None:
            return found
        found[:, middle] = [float(first[s]) for s in self.unknowns]
        grids = self.slopes.grids()
        while True:
            open_ = np.flatnonzero(np.isnan(found[0]))
            known = np.flatnonzero(~np.isnan(found[0]))
            if not open_.size:
                break
            nearest = known[_nearest(places[:, known] / scale, places[:, open_] / scale)]
            here = {k: v[open_] if k in arrays else v for k, v in env.items()}
            moved = self._newton_many(found[:, nearest], here, grids)
            if np.isnan(moved[0]).all():
                break
            found[:, open_] = moved
        good = np.flatnonzero(~np.isnan(found[0]))
        here = {k: v[good] if k in arrays else v for k, v in env.items()}
        _forget(grids)
        try:
            if self.plain.refine({**here, **dict(zip(self.unknowns, found[:, good], strict=True))}, grids):
                found[:, good] = self._newton_many(found[:, good], here, grids)
        except NotConverged:  # some point needs more than all can have: each is solved by itself
            found[:, good] = np.nan
        return found

    def _newton_many(self, start: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray:
        """Newton's method at all points; not a number where it does not settle."""
        _forget(grids)
        t = self.chart(start)
        size, count = t.shape
        gap, slope, last = np.empty((size, count)), np.empty((size, size, count)), np.full(count, np.inf)
        moving, settled = np.ones(count, dtype=bool), np.zeros(count, dtype=bool)
        for _ in range(12):
            x = self.place(t)
            try:
                values, rows = self.call(self.slopes, x, env, grids)
            except NotConverged:
                return np.full_like(t, np.nan)
            for k, (value, row) in enumerate(zip(values, rows, strict=True)):
                np.negative(value, out=gap[k])
                for n, d in enumerate(row):
                    np.negative(d, out=slope[k, n])
            for k, place in enumerate(self.places):
                gap[k] += x[place]
                slope[k, place] += 1.0
            scaled = slope * self.scale(x)
            with np.errstate(all="ignore"):
                if size == 1:  # quicker than as many matrices of one entry
                    step = gap / scaled[0]
                    sound = np.isfinite(step[0]) & np.isfinite(scaled[0, 0])
                else:
                    matrix = np.moveaxis(scaled, -1, 0)
                    sound = np.isfinite(matrix).all(axis=(1, 2)) & np.isfinite(gap).all(axis=0)
                    matrix[~sound] = np.eye(size)
                    try:
                        step = np.linalg.solve(matrix, np.where(sound, gap, 0.0).T[..., None])[..., 0].T
                    except np.linalg.LinAlgError:
                        return np.full_like(t, np.nan)
                length = np.abs(step).max(axis=0, initial=0.0)
            capped = np.minimum(length, LONGEST)
            moving &= sound & np.isfinite(length) & (capped < 4 * last)
            t -= np.where(moving, step * (LONGEST / np.maximum(length, LONGEST)), 0.0)
            last = capped
            settled |= (arrived := moving & (length < SETTLED))  # and stays there: another step would be rounding
            moving &= ~arrived
            if not moving.any():
                break
        return np.where(settled, self.place(t), np.nan)

    def _newton(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> Root | None:
        """Newton's method in the charts; the grids are refined on the way."""
        t, last = self.chart(x), np.inf
        fresh = True
        watched = self.cancelling.loses(x, env)  # what cancels nearby cancels all the way
        for _ in range(30):
            tick()
            here = self.place(t)
            found = self.gap(here, env, grids, watched=watched)
            if found is None:
                return None
            value, slope = found
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    step = -np.linalg.solve(slope * self.scale(here), value)
            except np.linalg.LinAlgError:
                return None
            size = float(np.max(np.abs(step), initial=0.0))
            if not np.isfinite(size) or size > LONGEST or size > 4 * last:
                return None
            if size < ROUGH and fresh:
                try:
                    fresh = self.plain.refine({**env, **dict(zip(self.unknowns, here.tolist(), strict=True))}, grids)
                except NotConverged:
                    return None
                if fresh:
                    last = np.inf
                    continue
            stuck = last / 4 < size < NOISY
            t, last = t + step, size
            if (size < SETTLED or stuck) and not fresh:
                point = self._without_rounding(self.place(t), env)
                return Root(dict(zip(self.unknowns, point.tolist(), strict=True)), slope, self.slopes, grids, size)
        return None


def _forget(grids: Grids) -> None:
    """Begin inversions afresh: the points are others."""
    for grid in grids:
        if isinstance(grid, PanelGrid):
            grid.forget()


def _nearest(known: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """For each wanted point the number of the nearest known one."""
    if known.shape[1] == 1:
        return np.zeros(wanted.shape[1], dtype=int)
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(known.T).query(wanted.T)[1])


def _says_zero(difference: Any, s: Symbol) -> bool:
    """Whether an equation says that an unknown vanishes, as the multiplier of a condition that idles does."""
    factor = difference / s
    return bool(difference.has(s) and not factor.has(s) and factor.is_nonzero)
