"""The equations that elimination leaves: their roots, and which of these are admissible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sympy import Add, Expr, S, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.precision import mp
from symcavity.errors import InternalError, NotConverged
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import GOAL
from symcavity.evaluate.averages.twice import CHECK, Twice, limited
from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.constants import LOGARITHMS
from symcavity.evaluate.given.values import GUARDS, Given, Task
from symcavity.evaluate.solving.exact_root import GUARD, exact_root
from symcavity.evaluate.solving.iterate import root_from_afar, root_near
from symcavity.evaluate.solving.newton import wander
from symcavity.evaluate.solving.roots import ROUGH, STARTS, Unknown, find_roots, starting_points
from symcavity.evaluate.tolerances import tolerances
from symcavity.evaluate.undefined import where_defined
from symcavity.model.equations import Equation
from symcavity.model.kinds import alpha

COARSE = 500
SCALES = (1.0, 1e-3, 30.0)  # of the fields, where the closed equations are iterated from
Point = dict[Symbol, float]


@dataclass
class Eliminated:
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
    def of(cls, task: Task, given: Given) -> Eliminated:
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
    def whole(cls, task: Task, given: Given) -> Eliminated:
        """The closed equations as they are, with nothing eliminated."""
        whole = task.closed_map(given)[0]
        return cls(task, given, [e.difference for e in whole.equations], {}, list(whole.unknowns))

    @property
    def unknowns(self) -> list[Unknown]:
        """The unknowns left, with the charts in which they are searched."""
        return [Unknown(str(s), 1 if s.is_nonnegative else -1 if s.is_nonpositive else 0) for s in self.left]

    @property
    def costly(self) -> bool:
        """Whether one evaluation is expensive, or one at many points would refine its rules for all of them at once."""
        ruled = any(law.continuous for law in self.given.laws.values())
        return ruled or self.given.sites > COARSE or any(e.has(GaussianAverage, ImplicitAverage) for e in self.core)

    def residual(self, goal: float = GOAL) -> Callable[..., list[tuple[Any, Any]]]:
        """Return the core in double: each value together with the sum of the absolute values of its terms.

        Parameters
        ----------
        goal : float
            Relative error of its averages.
        """
        base = self.given.environment("numpy")
        terms = [list(Add.make_args(expr)) for expr in self.core]
        whole = self.task.together(tuple(term for row in terms for term in row))

        def evaluate(*x: Any) -> list[tuple[Any, Any]]:
            values = iter(whole({**base, **dict(zip(self.left, x, strict=True))}, goal))
            rows = [[next(values) for _ in row] for row in terms]
            return [(sum(row), sum(abs(v) for v in row) + (len(row) == 1)) for row in rows]

        return evaluate

    @property
    def frame(self) -> tuple[ClosedMap, ExactPass]:
        """What is left as equations of a closed map, compiled once, in double and exactly."""
        key = tuple(self.core), tuple(self.left)
        if key not in self.task.cores:
            made = ClosedMap([Equation(e, S.Zero) for e in self.core], self.left)
            self.task.cores[key] = made, ExactPass(made.exprs)
        return self.task.cores[key]

    def of_left(self, point: Mapping[Symbol, Any]) -> np.ndarray:
        """What of a point belongs to the unknowns that are left."""
        return np.array([float(point[s]) for s in self.left])

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
        frame, exact = self.frame
        double = frame.held(self.given.environment("numpy"), dict(zip(self.left, map(float, root), strict=True)))
        dps = self.given.dps + guard
        with mp.workdps(dps + GUARD):
            found = exact_root(frame, exact, self.given.environment("mpmath"), double, dps)
            return [mp.convert(found[s]) for s in self.left]


def roots_of(
    system: Eliminated, guess: Mapping[Symbol, Any] | None, starts: int = STARTS, *, every: bool = False
) -> Iterator[np.ndarray]:
    """Yield the roots that are found, near a guess or from many starting points.

    Parameters
    ----------
    system : Eliminated
    guess : mapping, optional
        A solution nearby: the root next to it is the only one that is returned.
    starts : int
        The number of starting points.
    every : bool
        Whether all roots are looked for; else the search ends when some are found.
    """
    evaluate, left = system.residual(), system.left
    if not left:
        if all(abs(value) <= 1e-9 * size for value, size in evaluate()):
            yield np.array([])
        return
    if len(system.core) != len(left):
        raise NotConverged(
            f"Elimination leaves {len(system.core)} equations for {len(left)} unknowns: {', '.join(map(str, left))}.",
            system.core,
            hint="the theory does not fix these; see theory.equations",
        )
    if len(left) == 1:
        near = None if guess is None or every else [float(guess[s]) for s in left if s in guess] or None
        rough = system.residual(ROUGH)
        yield from find_roots(evaluate, system.unknowns[0], costly=system.costly, rough=rough, guess=near, every=every)
    elif guess is not None:
        if (found := root_near(system.frame[0], system.given.environment("numpy"), guess)) is not None:
            yield system.of_left(found.point)
    else:
        yield from _from_afar(system, starts, every=every)


def _from_afar(system: Eliminated, starts: int, *, every: bool) -> Iterator[np.ndarray]:
    """The roots in several unknowns: where the whole map leads, and from many starting points."""
    task, given, left = system.task, system.given, system.left
    frame, env = system.frame[0], given.environment("numpy")
    known: list[np.ndarray] = []

    def is_new(x: np.ndarray, apart: float, most: float = LOGARITHMS / 2) -> bool:
        t = frame.chart(x)
        return np.max(np.abs(t)) < most and not any(np.allclose(t, o, rtol=0, atol=apart) for o in known)

    def polished(points: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        for x in points:
            if is_new(x, tolerances().alike):
                root = root_near(frame, env, dict(zip(left, x.tolist(), strict=True)))
                if root is not None and is_new(x := system.of_left(root.point), tolerances().same):
                    known.append(frame.chart(x))
                    yield x

    whole = task.closed_map(given)[0]
    begins: list[tuple[float, float | None]] = [(scale, None) for scale in (SCALES if every else SCALES[:1])]
    if every and any(sign == 0 for sign in whole.signs):  # fields that are small beside what is shared by all sites
        begins += [(SCALES[1], way) for way in (1.0, -1.0)]
    for scale, shared in begins:  # the whole map may lead to where nothing is eliminated
        root = root_from_afar(whole, env, scale=scale, shared=shared)
        # of a fixed point of the whole map each number is an average, however small
        most = LOGARITHMS / 2 if shared is None else np.inf
        if root is not None and is_new(x := system.of_left(root.point), tolerances().same, most):
            known.append(frame.chart(x))
            yield x
            if not every:
                return
    yield from polished(wander(frame, starting_points(len(left), starts), env))
    if every:  # the mirror image of a root may be one
        yield from polished([frame.place(np.where(frame.signs, t, -t)) for t in known])


def exactly(system: Eliminated, root: Any) -> tuple[dict[Symbol, Any], list[Any], int]:
    """All unknowns to the requested digits: more guard digits until rounding does not show.

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
        # where terms cancel, more digits may do
        found = system.refined(root, guard) if finest else where_defined(system.refined, root, guard)
        if found is None:
            continue
        root = rough = found
        if not system.task.is_numerical:
            # the same root of equations that are rounded to some digits less shows what cancellation costs
            found = where_defined(system.refined, root, guard - CHECK)
            if found is None and not finest:
                continue
            rough = root if found is None else found
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
