"""All averages of a set of expressions in one pass over shared nodes, with derivatives, in double."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from sympy import Expr, Symbol

from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.precision import is_mpf
from symcavity.errors import NotConverged, ValuesError
from symcavity.evaluate.averages.boxes import boxed
from symcavity.evaluate.averages.densities import FINEST, LEAST
from symcavity.evaluate.averages.difference import STEP, difference_quotient
from symcavity.evaluate.averages.grids import FARTHEST, MOST, REACH, LineGrid, PanelGrid, SiteGrid
from symcavity.evaluate.averages.inversion import COUNT
from symcavity.evaluate.averages.names import array_names
from symcavity.evaluate.averages.program import Program
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.watch import tick
from symcavity.model.quantities import SiteQuantity

LAWS = "laws"
Environment = Mapping[Any, Any]
Grids = list[Any]

GOAL = 2e-14  # what halving a panel may change, relative to the whole integral
NOISE = 2e-12  # what may be taken for rounding
GROWING = 1.7  # times as large at twice as many nodes: the modulus of what has a pole
ROUNDS = 40
NARROWEST = 1e-4


class Box:
    """An average that is computed by code of its own, with difference quotients for its derivatives."""

    def __init__(self, node: Expr) -> None:
        self.call = boxed(node, _single, "numpy")

    def __call__(self, values: Mapping[Any, Any], laws: Any, rows: Sequence[Mapping[Any, Any]]) -> tuple[Any, Any]:
        """Return the value, and its derivative along each row of tangents."""
        env = {LAWS: laws, **values}
        known = getattr(self.call, "with_slopes", None)
        if rows and known is not None and (found := known(env, rows)) is not None:
            return found[0], tuple(found[1])
        value = self.call(env)
        slopes = []
        for row in rows:
            length = max(float(np.max(np.abs(t) / (np.abs(values[s]) + 1e-3))) for s, t in row.items())
            h = STEP / length if length else 1.0
            slopes.append(difference_quotient(partial(self._gap, env, row), h))
        return value, tuple(slopes)

    def _gap(self, env: Mapping[Any, Any], row: Mapping[Any, Any], step: float) -> Any:
        up, down = ({**env, **{s: env[s] + way * step * t for s, t in row.items()}} for way in (1, -1))
        return self.call(up) - self.call(down)


class Pass:
    """Several expressions, evaluated together.

    Parameters
    ----------
    exprs : sequence of Expr
    wrt : sequence of Symbol
        The directions in which derivatives are wanted.

    Notes
    -----
    Called with a mapping from symbols to values (arrays broadcast), it returns the values, and for each the
    derivatives.  Under the key ``LAWS`` the mapping holds the law of the quenched parameters of each side.
    The derivative is that of the quadrature itself, so that it is exact for what is computed: nodes between moving
    breaks move along.
    """

    def __init__(self, exprs: Sequence[Expr], wrt: Sequence[Symbol] = ()) -> None:
        self.exprs, self.wrt = list(exprs), list(wrt)
        program = Program(self.exprs, self.wrt)
        self.inputs, self.groups = program.inputs, program.groups
        self.keys = [q.family if isinstance(q, SiteQuantity) else q for q in self.inputs]
        space = dict(program.space)
        for key, value in program.space.items():
            tick("code for averages")
            space[key] = Box(value) if isinstance(value, NumberedAverage) else value
        names = array_names(space)
        self.source = program.source
        name = f"<pass {id(self)}>"
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(keepends=True), name)
        exec(compile(self.source, name, "exec"), names)  # noqa: S102 - code that was written here
        self._run = names["run"]

    def grids(self) -> Grids:
        """Return fresh grids, as coarse as they begin."""
        kinds = {"line": LineGrid}
        return [SiteGrid(g.families) if g.kind == "sites" else kinds.get(g.kind, PanelGrid)() for g in self.groups]

    def width(self, laws: Any) -> int:
        """The number of nodes of one point, on grids as they begin: those of an inner average for each of the outer."""
        most: dict[int, int] = {}
        for group, grid in zip(self.groups, self.grids(), strict=True):
            most[group.depth] = max(most.get(group.depth, 1), grid.count(laws))
        return prod(most.values())

    def at(self, env: Environment, grids: Grids) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the values and their derivatives on given grids."""
        return self.run(self.inputs_of(env), env.get(LAWS), grids)

    def inputs_of(self, env: Environment, unknowns: Sequence[Symbol] = ()) -> list[Any]:
        """Return the values of the inputs, in order; those of unknowns are left open."""
        try:
            inputs = [None if key in unknowns else env[key] for key in self.keys]
        except KeyError as missing:
            raise ValuesError(f"{missing.args[0]} has no value.", "a value for every parameter") from None
        # this pass is in double, whatever the numbers come from
        return [np.float64(v) if isinstance(v, float | int) or is_mpf(v) else v for v in inputs]

    def run(self, inputs: Sequence[Any], laws: Any, grids: Grids) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the values and their derivatives for inputs in order; a budget of time is looked at."""
        tick()
        with np.errstate(all="ignore"):
            out: tuple[tuple[Any, ...], tuple[Any, ...]] = self._run(inputs, laws, grids)
        return out

    def __call__(self, env: Environment, goal: float = GOAL) -> list[Any]:
        """Return the values, the grids refined until two rules agree."""
        grids = self.grids()
        self.refine(env, grids, goal)
        return list(self.at(env, grids)[0])

    # -- refinement --------------------------------------------------------------------------------

    def refine(self, env: Environment, grids: Grids, goal: float = GOAL) -> bool:
        """Refine the grids until halving their panels changes nothing; return whether they changed.

        Raises
        ------
        NotConverged
            If the finest grids still disagree by more than 1e-9 of an integral.
        """
        changed = False
        depths = sorted({g.depth for g, grid in zip(self.groups, grids, strict=True) if isinstance(grid, PanelGrid)})
        for _ in range(ROUNDS):
            sites = [self._finer_sites(env, grids, grid, goal) for grid in grids if isinstance(grid, SiteGrid)]
            moved = [finer for finer, _ in sites]
            moved += [self._finer_line(env, grids, grid, goal) for grid in grids if isinstance(grid, LineGrid)]
            for depth in depths:  # panels side by side are refined together
                some = [grid for g, grid in zip(self.groups, grids, strict=True) if g.depth == depth]
                moved.append(self._finer_panels(env, grids, [g for g in some if isinstance(g, PanelGrid)], goal))
            if not any(moved):  # with coarser panels inside, what stands at sites need not be smooth
                missed = max((gap for _, gap in sites), default=0.0)
                if missed > tolerances().settled_integral:
                    said = "An average over a continuous law did not converge."
                    raise NotConverged(said, None, missed, "a smoother law")
                return changed
            changed = True
        raise NotConverged("A Gaussian average did not converge.", None, float("nan"), "a smoother law")

    def _finer_panels(self, env: Environment, grids: Grids, some: Sequence[PanelGrid], goal: float) -> bool:
        """Compare the sums over all panels of some grids with those over their halves; cut where they differ."""
        for grid in some:
            grid.observe(halved=False)
        self.at(env, grids)
        coarse = [(grid.places, grid.record or []) for grid in some]
        for grid in some:
            grid.observe(halved=True)
        self.at(env, grids)
        fine = [grid.record or [] for grid in some]
        for grid in some:
            grid.leave()
        moved = [_cut(g, *a, b, goal) for g, a, b in zip(some, coarse, fine, strict=True)]
        return any(moved)

    def _finer_line(self, env: Environment, grids: Grids, grid: LineGrid, goal: float) -> bool:
        """Compare sums over the points of a line with those over every second one, until they agree."""
        start = grid.count(None)
        while True:
            grid.record = []
            self.at(env, grids)
            finer, grid.record = grid.refine(goal), None
            if not finer:
                return grid.count(None) != start

    def _finer_sites(self, env: Environment, grids: Grids, grid: SiteGrid, goal: float) -> tuple[bool, float]:
        """Compare rules for continuous laws; whether a finer one is taken, and by how much the finest ones differ."""
        law = env[LAWS][grid.families[0].slots[0]]
        if not law.is_ruled(grid.families):
            return False, 0.0
        start, finest = grid.level, law.finest(grid.families)
        before, last, missed = self._sums(env, grids, grid), np.inf, 0.0
        while grid.level < finest:
            far = grid.level < FINEST < finest and any(_is_faint(size, peak, goal) for _, size, peak in before)
            grid.level = FINEST + 1 if far else grid.level + 1
            after = self._sums(env, grids, grid)
            gap = np.inf if far else 0.0
            for (a, *_), (b, size, _) in zip(before, after, strict=True):
                floor = np.maximum(size, 1e-3 * np.max(size, initial=0.0)) + TINIEST
                gap = max(gap, float(np.max(np.nan_to_num(np.abs(a - b) / floor), initial=0.0)))
            if not gap > 5 * goal or (gap < NOISE and gap > last / 4):
                grid.level -= 1
                break
            before, last = after, gap
        else:
            if last > tolerances().settled_integral and np.isfinite(last):
                grid.level, missed = start, last
        for other in grids:
            if isinstance(other, PanelGrid):
                other.forget()
        return grid.level != start, missed

    def _sums(self, env: Environment, grids: Grids, grid: SiteGrid) -> list[tuple[Any, Any, Any]]:
        """The averages over a site's parameters, those of their moduli, and the largest of these."""
        for other in grids:
            if isinstance(other, PanelGrid):
                other.forget()
        found: list[tuple[Any, Any, Any]] = []
        grid.record = found
        self.at(env, grids)
        grid.record = None
        return found


def lighter(values: Pass, slopes: Pass) -> Pass:
    """The pass that grids are refined with: that without derivatives, where it has the same ones."""
    return values if [g.key for g in values.groups] == [g.key for g in slopes.groups] else slopes


def _is_faint(size: Any, peak: Any, goal: float) -> bool:
    """Whether an average is so small that what the rules leave out of the tails may show in it."""
    return bool(np.any(np.asarray(peak) * LEAST >= goal * np.asarray(size)))


def _cut(grid: PanelGrid, places: Any, coarse: Sequence[Any], fine: Sequence[Any], goal: float) -> bool:
    """Let the panels of a grid end where two rules differ; return whether they did."""
    found: list[float] = []
    worst, ends = 0.0, 0.0
    for (a, peak), (b, peaks) in zip(coarse, fine, strict=True):
        pairs = b.reshape(*b.shape[:-1], -1, 2)
        total = np.abs(pairs).sum(axis=(-1, -2))[..., None]
        scale = np.max(total, initial=0.0)
        if np.isinf(scale) and grid.ends[-1] > REACH:  # it was finite before the grid went further out
            raise _diverging(np.inf)
        if not (np.isfinite(scale) and scale):
            continue
        total = np.maximum(total, 1e-3 * scale)
        gap = np.nan_to_num(np.abs(a - pairs.sum(axis=-1)) / total)
        share = np.abs(pairs).max(axis=-1) / total
        grows = peaks.reshape(pairs.shape).max(axis=-1) > GROWING * peak  # a pole ...
        grows &= _changes_sign(b).reshape(pairs.shape).any(axis=-1)  # ... whose two sides may cancel
        gap = np.where(grows, np.maximum(gap, np.nan_to_num(share)), gap)
        worst = max(worst, float(np.max(gap)))
        if worst > goal:
            found += list(np.broadcast_to(places, gap.shape)[gap > goal])
        ends = max(ends, float(np.max(np.abs(b[..., [0, -1]]) / total)))
    if ends > 10 * goal and grid.ends[-1] < FARTHEST:  # a growing integrand moves the weight outwards
        grid.reach_further()
        return True
    if ends > tolerances().settled_integral:
        raise _diverging(ends)
    if not found or (worst < NOISE and worst > grid.worst / 4):  # what does not shrink is rounding
        return False
    grid.worst = worst
    if len(grid.ends) * COUNT > MOST or np.min(np.diff(grid.ends)) < NARROWEST:
        if worst > tolerances().settled_integral:
            raise NotConverged("A Gaussian average did not converge.", None, worst, "a smoother law, or dps above 15")
        return False
    spans = np.unique(np.clip(np.searchsorted(grid.ends, found), 1, len(grid.ends) - 1))
    grid.split([_best_cut(grid.ends[k - 1], grid.ends[k], found) for k in spans])
    return True


def _changes_sign(sums: np.ndarray) -> np.ndarray:
    """Whether an integral over a panel has another sign than that over a neighbor; where nothing is, there is none."""
    other = np.sign(sums[..., 1:]) * np.sign(sums[..., :-1]) < 0
    ends = np.zeros((*sums.shape[:-1], 1), dtype=bool)
    return np.concatenate([other, ends], axis=-1) | np.concatenate([ends, other], axis=-1)


def _diverging(ends: float) -> NotConverged:
    said = "A Gaussian average has its weight far out in the tails: it diverges, or nearly does."
    return NotConverged(said, None, ends, "averages of quantities that grow more slowly with the field")


def _single(expr: Expr, _backend: str) -> Callable[[Environment], Any]:
    """One expression as a function of its environment."""
    one = Pass([expr])
    return lambda env: one(env)[0]


def _best_cut(low: float, high: float, places: Sequence[float]) -> float:
    """The middle of a span, or of its part where a panel failed."""
    inside = [p for p in places if low < p < high]
    middle = (low + high) / 2
    if not inside:
        return middle
    mean = float(np.mean(inside))
    return mean if abs(mean - middle) < 0.45 * (high - low) else middle
