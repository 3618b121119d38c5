"""What is left of the closed equations: its roots, and which of them are admissible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Add, Dummy, Expr, StrictGreaterThan, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.precision import is_mpf, mp
from symcavity.errors import InternalError, NotConverged
from symcavity.evaluate.integrals import lighter
from symcavity.evaluate.roots import STARTS, Unknown, find_roots, polish
from symcavity.evaluate.solution import CHECK, GUARDS, Twice, limited
from symcavity.evaluate.values import Given, Task
from symcavity.model.kinds import alpha
from symcavity.model.quantities import SiteQuantity
from symcavity.record.symbols import CavitySymbol

COARSE = 500
SPURIOUS, INFINITE, VANISHING = 1e-3, 1e10, 1e-11
SCALES = (1.0, 1e-3, 30.0)  # of the fields, where the closed equations are iterated from
_LINE = np.concatenate([-np.geomspace(1e3, 1e-3, 60), [0.0], np.geomspace(1e-3, 1e3, 60)])
Point = dict[Symbol, float]


@dataclass
class Reduced:
    """What is left to be solved: expressions that vanish, and the unknowns in them.

    Attributes
    ----------
    task : Task
    given : Given
    core : list of Expr
    definitions : dict
        Eliminated unknowns, each by those after it and the unknowns left.
    left : list of Symbol
    """

    task: Task
    given: Given
    core: list[Expr]
    definitions: dict[Symbol, Expr]
    left: list[Symbol]
    known: dict[tuple[float, ...], Point] = field(default_factory=dict)

    @classmethod
    def of(cls, task: Task, given: Given) -> Reduced:
        """Sort the unknowns into eliminated ones and those left for the root finder."""
        closed = task.with_load if alpha in given.solve_for else task.eliminated
        if any(e.is_number for e in closed.core):
            raise InternalError(
                f"Elimination has led to {next(e for e in closed.core if e.is_number)} = 0. This is a defect of the "
                "package: the closed equations are as printed, and what was divided out of them vanishes.",
                hint="theory.equations holds the closed equations, for a root finder of your own",
            )
        core, definitions = list(closed.core), dict(closed.definitions)
        core += [symbol - definitions.pop(symbol) for symbol in list(definitions) if symbol in given.exact]
        left = [s for s in (*task.unknowns, *given.solve_for) if s not in definitions]
        if task.is_numerical:  # of closed forms the elimination has made what does not cancel
            averaged = iter(task.absorbed(given.laws, (*core, *definitions.values())))
            core, definitions = [next(averaged) for _ in core], dict(zip(definitions, averaged, strict=True))
        return cls(task, given, core, definitions, left)

    @classmethod
    def whole(cls, task: Task, given: Given) -> Reduced:
        """The closed equations as they are, with nothing eliminated."""
        equations = task.evolution(given.laws)[0].equations
        return cls(task, given, [e.difference for e in equations], {}, list(task.unknowns))

    @property
    def unknowns(self) -> list[Unknown]:
        """The unknowns left, with the charts in which they are searched."""
        return [Unknown(str(s), 1 if s.is_nonnegative else -1 if s.is_nonpositive else 0) for s in self.left]

    @property
    def costly(self) -> bool:
        """Whether one evaluation is expensive."""
        return self.given.sites > COARSE or any(e.has(GaussianAverage, ImplicitAverage) for e in self.core)

    def residual(self) -> Callable[..., list[tuple[Any, Any]]]:
        """Return the core in double: each value together with the sum of the absolute values of its terms."""
        base = self.given.environment("numpy")
        terms = [list(Add.make_args(expr)) for expr in self.core]
        whole = self.task.together(tuple(term for row in terms for term in row))

        def evaluate(*x: Any) -> list[tuple[Any, Any]]:
            values = iter(whole({**base, **dict(zip(self.left, x, strict=True))}))
            rows = [[next(values) for _ in row] for row in terms]
            return [(sum(row), sum(abs(v) for v in row) + (len(row) == 1)) for row in rows]

        return evaluate

    def complete(self, root: Any) -> Point:
        """All unknowns in double, from those left."""
        key = tuple(map(float, root))
        if key in self.known:
            return dict(self.known[key])
        found = dict(zip(self.left, key, strict=True))
        env = {**self.given.environment("numpy"), **found}
        for symbol in reversed(list(self.definitions)):
            with np.errstate(all="ignore"):
                try:
                    value = float(self.task.compiled(self.definitions[symbol], "numpy")(env))
                except (ZeroDivisionError, TypeError):
                    value = float("nan")
            found[symbol] = env[symbol] = value
        self.known[key] = dict(found)
        return found

    def complete_exactly(self, root: Sequence[Any]) -> list[Any]:
        """All unknowns at mpmath's current precision, in the order of :meth:`order`."""
        found = {s: +v for s, v in zip(self.left, root, strict=True)}
        env = {**self.given.environment("mpmath"), **found}
        for symbol in reversed(list(self.definitions)):
            value = limited(self.task.compiled(self.definitions[symbol], "mpmath"), env)
            found[symbol] = env[symbol] = value
        return [found[s] for s in self.order]

    @property
    def order(self) -> list[Symbol]:
        """All unknowns."""
        return [*self.task.unknowns, *self.given.solve_for]

    def refined(self, root: Sequence[Any], guard: int) -> list[Any]:
        """Return the unknowns left, polished with a number of guard digits."""
        if not self.left:
            return []
        with mp.workdps(self.given.dps + guard):
            env = self.given.environment("mpmath")
            calls = [self.task.compiled(expr, "mpmath") for expr in self.core]

            def residual(*x: Any) -> list[Any]:
                here = {**env, **dict(zip(self.left, x, strict=True))}
                return [call(here) for call in calls]

            signed = [u.sign != 0 for u in self.unknowns]
            found = polish(residual, list(root), self.given.dps + guard - self.given.guards[0], signed)
            # an unknown of either sign that is zero to the precision, and solves as zero too, is zero
            small = mp.mpf(10) ** (-self.given.dps)
            snapped = [v if s or abs(v) > small else mp.zero for v, s in zip(found, signed, strict=True)]
            if snapped != found and max(map(abs, residual(*snapped))) < small * mp.mpf(10) ** (6 - guard):
                return snapped
            return found


class HeldCore:
    """The core, relative to the sizes of its terms, and its derivatives, on grids that are held.

    Parameters
    ----------
    system : Reduced
    """

    def __init__(self, system: Reduced) -> None:
        self.system = system
        terms = [Add.make_args(expr) for expr in system.core]
        flat = tuple(term for row in terms for term in row)
        self.ends = np.cumsum([len(row) for row in terms])[:-1]
        self.whole = system.task.together(flat, tuple(system.left))
        self.plain = lighter(system.task.together(flat), self.whole)
        self.base = system.given.environment("numpy")
        self.grids = self.whole.grids()

    def coarse(self) -> HeldCore:
        """The same on grids as they begin."""
        other = copy(self)
        other.grids = self.whole.grids()
        return other

    def refine(self, x: np.ndarray) -> bool:
        """Refine the grids for a point; return whether they changed."""
        return self.plain.refine(self._at(x), self.grids)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The relative residuals at a point, and their derivatives; not numbers where they are not defined."""
        try:
            values, slopes = self.whole.at(self._at(x), self.grids)
        except (NotConverged, ZeroDivisionError):
            return np.full(len(x), np.nan), np.full((len(x), len(x)), np.nan)
        parts = np.split(np.array(values, dtype=float), self.ends)
        rows = np.split(np.array(slopes, dtype=float), self.ends)
        sizes = np.array([np.abs(v).sum() + (len(v) == 1) for v in parts])
        gaps = np.array([v.sum() for v in parts]) / sizes
        grow = np.array([np.sign(v) @ d for v, d in zip(parts, rows, strict=True)])
        return gaps, (np.array([d.sum(axis=0) for d in rows]) - gaps[:, None] * grow) / sizes[:, None]

    def _at(self, x: np.ndarray) -> dict[Any, Any]:
        return {**self.base, **dict(zip(self.system.left, x.tolist(), strict=True))}


def sift(
    system: Reduced, roots: Iterable[np.ndarray], *, first: bool = False
) -> tuple[list[np.ndarray], list[str]]:
    """Return the admissible ones among roots, or the first of them, and what is wrong with the others."""
    admitted, rejected = [], []
    for root in roots:
        complaint = inadmissible(system, system.complete(root))
        if complaint and not system.given.is_quick(system.task):
            complaint = _exact_complaint(system, root) or ""
        if complaint:
            rejected.append(complaint)
        else:
            admitted.append(root)
            if first:
                break
    return admitted, rejected


def _exact_complaint(system: Reduced, root: np.ndarray) -> str:
    """Repeat the complaint with digits enough that it is not a matter of rounding."""
    try:
        found, _, guard = exactly(system, root)
    except NotConverged as problem:
        return problem.found
    plain = {k: float(v) if is_mpf(v) else float("nan") for k, v in found.items()}
    if complaint := inadmissible(system, plain, solved=True):
        return complaint
    with mp.workdps(system.given.dps + guard):
        env = {**system.given.environment("mpmath"), **found}
        compiled = system.task.compiled
        return _spurious(system, plain, lambda es: [float(limited(compiled(e, "mpmath"), env)) for e in es])


def roots_of(
    system: Reduced, guess: Mapping[Symbol, Any] | None, starts: int = STARTS, *, every: bool = False
) -> Iterator[np.ndarray]:
    """Yield the roots that are found, near a guess or from many starting points.

    Parameters
    ----------
    system : Reduced
    guess : mapping, optional
        A solution nearby: the root next to it is the only one that is returned.
    starts : int
        The number of starting points.
    every : bool
        Whether all roots are looked for; else the search ends when some are found.
    """
    task, given, left = system.task, system.given, system.left
    evaluate = system.residual()
    if not left:
        if all(abs(value) <= 1e-9 * size for value, size in evaluate()):
            yield np.array([])
        return
    if len(system.core) != len(left):
        raise NotConverged(
            f"The number of equations that are left, {len(system.core)}, is not that of the unknowns: "
            f"{', '.join(map(str, left))}.",
            system.core,
            hint="the theory does not fix these; see theory.equations",
        )
    near: list[Mapping[Symbol, Any]] = []
    if guess is not None:
        near = [guess]
    elif len(left) > 1 and not given.solve_for:
        found = (_iterate(task, given, scale) for scale in SCALES[: None if every else 1])
        near = [state for state in found if state is not None]
    points = [[float(point[s]) for s in left] for point in near if all(s in point for s in left)]
    every = every and guess is None
    held = HeldCore(system) if given.is_ruled(task) and not task.is_projected else None
    yield from find_roots(
        evaluate, system.unknowns, costly=system.costly, guesses=points, starts=starts, every=every, held=held
    )


def _maps(task: Task) -> list[tuple[Symbol, Expr]]:
    """What the closed equations make of each unknown: order parameters as they stand, means by what is missing."""
    maps = [(e.lhs, e.rhs.xreplace(task.units)) for e in task.equations if e.lhs in task.unknowns]
    hats = {g: next(s for s in unit.free_symbols if s.name == f"{g.name}_hat") for g, unit in task.units.items()}
    for e in (e for e in task.equations if e.lhs not in task.unknowns):
        open_ = [g for g, hat in hats.items() if hat not in dict(maps) and e.difference.coeff(g) == -1]
        if open_:
            hat, unit = hats[open_[0]], task.units[open_[0]]
            maps.append((hat, hat + e.difference.xreplace(task.units) * (hat / unit)))
    return maps


def _iterate(task: Task, given: Given, scale: float = 1.0, steps: int = 400) -> Point | None:
    """Iterate the closed equations, damped, the more the longer they do not settle: the state evolution.

    It is only a starting point for the root finder: None if it does not settle.
    """
    maps = [(symbol, task.compiled(expr, "numpy")) for symbol, expr in _maps(task)]
    if len(maps) != len(task.unknowns):
        return None
    env = given.environment("numpy")
    state = {s: -1.0 if s.is_nonpositive else scale if s.is_nonnegative else 0.1 * scale for s, _ in maps}
    rate, nearest = 0.9, np.inf
    for k in range(steps):
        gap = 0.0
        for symbol, call in maps:
            with np.errstate(all="ignore"):
                try:
                    new = float(call({**env, **state}))
                except (NotConverged, ZeroDivisionError, TypeError):
                    return None
            if not np.isfinite(new):
                return None
            gap = max(gap, abs(new - state[symbol]) / (abs(new) + abs(state[symbol]) + 1e-300))
            state[symbol] += rate * (new - state[symbol])
        if gap < 1e-4:
            return state
        if k % 20 == 19:
            rate, nearest = (rate if gap < nearest / 4 else max(rate / 2, 0.02)), gap
    return None


# -- which roots are admissible -------------------------------------------------------------------


def inadmissible(system: Reduced, found: Mapping[Symbol, Any], *, solved: bool = False) -> str:
    """Say what is wrong with a root: an unknown that is no number or of the wrong sign, or what was assumed."""
    for symbol, value in found.items():
        if np.isnan(value) and not system.given.at_edge:
            return f"{symbol} is not a number"
        slack = 1e-9 * max(1.0, abs(value)) if np.isfinite(value) else 0.0
        if (symbol.is_nonnegative and value < -slack) or (symbol.is_nonpositive and value > slack):
            return f"{symbol} would be {value:.6g}"
        if symbol.is_integer and abs(value - round(value)) > 1e-9:
            return f"{symbol} would be {value:.6g}"
    env = {**system.given.environment("numpy"), **found}
    for condition in system.task.conditions:
        if not _holds(system, condition, env):
            return f"the derivation assumed {condition}"
    return "" if solved else _spurious(system, found, lambda es: [float(v) for v in system.task.together(es)(env)])


def _holds(system: Reduced, condition: Any, env: Mapping[Any, Any]) -> bool:
    """Whether an assumed inequality holds: at all sites, and for all values of what is not fixed by the root."""
    gap = (condition.lhs - condition.rhs).xreplace(system.task.units)
    here = dict(env)
    families = sorted({q.family for q in gap.atoms(SiteQuantity)}, key=str)
    for kind in dict.fromkeys(q.slots[0] for q in families):
        own = [q for q in families if q.slots[0] == kind]
        columns, _ = system.given.laws[kind].table(own)
        here.update({q: np.asarray(v)[:, None] for q, v in zip(own, columns, strict=True)})
    free = [s for s in gap.free_symbols if isinstance(s, Dummy | CavitySymbol)]
    here.update(dict.fromkeys(free, _LINE))
    with np.errstate(all="ignore"):
        try:
            values = np.asarray(system.task.compiled(gap, "numpy")(here), dtype=float)
        except ZeroDivisionError:
            return system.given.at_edge
    least = values.min()
    if np.isnan(least) and not free:  # where functions overflow there is no value to be judged
        return system.given.at_edge
    if np.any(values < 0):
        return False
    # a denominator whose terms cancel to rounding has been multiplied out: such a root solves the numerator only
    if not (gap.is_Add and isinstance(condition, StrictGreaterThan)) or system.given.at_edge or np.isnan(least):
        return True
    with np.errstate(all="ignore"):
        terms = [np.asarray(system.task.compiled(t, "numpy")(here), dtype=float) for t in gap.args]
    if least > VANISHING * sum(max(t.max(), -t.min()) for t in terms):
        return True
    return not np.any(values <= VANISHING * sum(map(np.abs, terms)))


def _spurious(
    system: Reduced, found: Mapping[Symbol, Any], values: Callable[[tuple[Expr, ...]], Sequence[float]]
) -> str:
    """Say which closed equation a root does not solve: numerators vanish where denominators do, too."""
    unbounded = {s for s in system.order if not np.isfinite(found[s])}
    pairs = zip(system.task.sides[::2], system.task.sides[1::2], strict=True)
    kept = [  # at an edge, such as kappa = 0, some equations hold as limits
        (equation, pair)
        for equation, pair in zip(system.task.equations, pairs, strict=True)
        if not unbounded or not unbounded & set().union(*(e.free_symbols for e in pair))
    ]
    numbers = values(tuple(side for _, pair in kept for side in pair))
    for k, (equation, _) in enumerate(kept):
        sides = numbers[2 * k : 2 * k + 2]
        if np.isnan(sides).any() and not system.given.at_edge:
            return f"{equation.lhs} or its equation is not a number"
        size = max(map(abs, sides))
        if size < INFINITE and abs(sides[0] - sides[1]) > SPURIOUS * (size if all(sides) else max(size, 1.0)):
            return f"a root of the reduced equations has {equation.lhs} = {sides[0]:.4g}, and not {sides[1]:.4g}"
    return ""


def exactly(system: Reduced, root: Any) -> tuple[dict[Symbol, Any], list[Any], int]:
    """All unknowns to the digits asked for: more guard digits until rounding does not show.

    What keeps shrinking or growing with the precision is zero or infinite: at the finest that there is, or where a
    parameter is zero, at the edge of its range.

    Returns
    -------
    The unknowns, those left for the root finder, and the guard digits used.
    """
    dps = system.given.dps
    previous = None
    guards = GUARDS[:1] if system.task.is_numerical else system.given.guards
    for guard in guards:
        finest = guard == guards[-1]
        try:
            root = rough = system.refined(root, guard)
        except NotConverged:  # where terms cancel, more digits may do
            if finest:
                raise
            continue
        if not system.task.is_numerical:
            # the same root of equations that are rounded to some digits less shows what cancellation costs
            try:
                rough = system.refined(root, guard - CHECK)
            except NotConverged:
                if not finest:
                    continue
        with mp.workdps(dps + guard):
            fine = system.complete_exactly(root)
        with mp.workdps(dps + guard - CHECK):
            other = fine if system.task.is_numerical else system.complete_exactly(rough)
        twice = [Twice(a, b, dps, guard) for a, b in zip(fine, other, strict=True)]
        last = finest or system.given.at_edge
        if all(v.sound and (last or mp.isfinite(v.value)) for v in twice):
            break
        if previous is not None and last:
            limits = [old.limit(new) for old, new in zip(previous, twice, strict=True)]
            if all(v.sound or limit is not None for v, limit in zip(twice, limits, strict=True)):
                values = [
                    v.value if v.sound or limit is None else limit for v, limit in zip(twice, limits, strict=True)
                ]
                return dict(zip(system.order, values, strict=True)), list(root), guard
        previous = twice
    return dict(zip(system.order, (v.value for v in twice), strict=True)), list(root), guard
