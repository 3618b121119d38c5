"""Solve the closed equations of a theory for whatever was not given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import mpmath
import numpy as np
from sympy import Add, Expr, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.errors import Infeasible, NotConverged
from symcavity.evaluate.exact_root import exact_root
from symcavity.evaluate.roots import STARTS, Unknown, find_roots, newton, polish
from symcavity.evaluate.solution import GUARD, GUARDS, Solution, evaluate_twice, limited
from symcavity.evaluate.values import Given, Task, read_values
from symcavity.model.quantities import N, P, SiteQuantity, alpha

WEAKEST = 1e-3
COARSE = 500
FEW = 9  # starting points before a continuation is tried
VANISHED = 0.02
SPURIOUS, INFINITE = 1e-3, 1e10
Point = dict[Symbol, float]


@dataclass(frozen=True)
class Reach:
    """How far a continuation came: along what, to which load, and what had all but vanished there."""

    name: str
    load: float
    vanishing: tuple[Symbol, ...] = ()


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
        core, definitions = list(closed.core), dict(closed.definitions)
        core += [symbol - definitions.pop(symbol) for symbol in list(definitions) if symbol in given.exact]
        left = [s for s in (*task.unknowns, *given.solve_for) if s not in definitions]
        return cls(task, given, core, definitions, left)

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
        calls = [[self.task.compiled(term, "numpy") for term in Add.make_args(expr)] for expr in self.core]

        def evaluate(*x: Any) -> list[tuple[Any, Any]]:
            env = {**base, **dict(zip(self.left, x, strict=True))}
            out = []
            for terms in calls:
                values = [call(env) for call in terms]
                out.append((sum(values), sum(abs(v) for v in values) + (len(values) == 1)))
            return out

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
        with mpmath.workdps(self.given.dps + guard):
            env = self.given.environment("mpmath")
            calls = [self.task.compiled(expr, "mpmath") for expr in self.core]

            def residual(*x: Any) -> list[Any]:
                here = {**env, **dict(zip(self.left, x, strict=True))}
                return [call(here) for call in calls]

            signed = [u.sign != 0 for u in self.unknowns]
            found = polish(residual, list(root), self.given.dps + guard - GUARD, signed)
            # an unknown of either sign that is zero to the precision, and solves as zero too, is zero
            small = mpmath.mpf(10) ** (-self.given.dps)
            snapped = [v if s or abs(v) > small else mpmath.mp.zero for v, s in zip(found, signed, strict=True)]
            if snapped != found and max(map(abs, residual(*snapped))) < small * mpmath.mpf(10) ** (6 - guard):
                return snapped
            return found


def solve(
    task: Task,
    values: Mapping[Any, Any],
    dps: int,
    observable: Callable[[Any], Expr],
    guess: Mapping[Symbol, Any] | None = None,
    *,
    double: bool = False,
) -> Solution:
    """Solve the closed equations.

    Parameters
    ----------
    task : Task
    values : mapping
        Values of the parameters, of the load or the sizes, and of the quenched parameters.
    dps : int
        Digits.
    observable : callable
        Turns an observable into order parameters (the theory's own).
    guess : mapping, optional
        A solution nearby, for continuation.
    double : bool
        Whether to stay in double precision throughout.

    Raises
    ------
    ValuesError
        If the values do not fit the theory.
    Infeasible
        If the equations have no solution there.
    NotConverged
        If a root was found but could not be polished.
    """
    given = read_values(task, values, dps)
    return solve_given(task, replace(given, double=True) if double else given, observable, guess)


def solve_given(
    task: Task, given: Given, observable: Callable[[Any], Expr], guess: Mapping[Symbol, Any] | None = None
) -> Solution:
    """Solve the closed equations at values that have been read."""
    if (found := _evolved(task, given, observable, guess)) is not None:
        return found
    system = Reduced.of(task, given)
    admitted, rejected, reach = _search(system, guess)
    if not admitted:
        raise _infeasible(task, given, rejected, reach)
    if len(admitted) > 1:
        raise NotConverged(
            f"The equations have {len(admitted)} admissible solutions at these values.",
            [dict(zip(system.left, r, strict=True)) for r in admitted],
            hint="a convex problem has one: check the declaration; see the docs on when not to trust it",
        )
    return _finish(system, admitted[0], observable)


def _evolved(
    task: Task, given: Given, observable: Callable[[Any], Expr], guess: Mapping[Symbol, Any] | None
) -> Solution | None:
    """Follow the state evolution of a convex problem, which has one solution; None where it leads nowhere."""
    if not task.convex or given.solve_for or task.is_projected:
        return None
    env = given.environment("numpy")
    evolution, exact = task.evolution(given.laws)
    root = evolution.solve(env, guess)
    if root is None:
        return None
    whole = Reduced(task, given, evolution.exprs, {}, list(task.unknowns))
    if _inadmissible(whole, root.point, solved=True):
        return None
    if given.is_quick(task):
        return Solution(task, given, {s: mpmath.mpf(v) for s, v in root.point.items()}, observable)

    def refine(guard: int) -> dict[Symbol, Any]:
        with mpmath.workdps(given.dps + guard + GUARD):
            env = given.environment("mpmath")
            found = exact_root(evolution, exact, env, root, given.dps + guard)
            return {s: mpmath.mp.convert(v) for s, v in found.items()}

    try:
        values = refine(GUARD)
    except NotConverged:
        return None
    return Solution(task, given, values, observable, refine, GUARD)


# -- searching -----------------------------------------------------------------------------------


def _search(
    system: Reduced, guess: Mapping[Symbol, Any] | None
) -> tuple[list[np.ndarray], list[str], Reach | None]:
    """Find the admissible roots; else what is wrong with the others, and how far a continuation came."""
    admitted, rejected = _sift(system, _roots(system, guess, FEW))
    if admitted or len(system.left) < 2:
        return admitted, rejected, None
    for follow in (_by_load, _from_weak):
        root, reach = follow(system)
        if root is not None:
            admitted, rejected = _sift(system, [root])
            if admitted:
                return admitted, rejected, None
        if reach is not None:
            return [], rejected, reach
    return *_sift(system, _roots(system, None)), None


def _sift(system: Reduced, roots: Sequence[np.ndarray]) -> tuple[list[np.ndarray], list[str]]:
    admitted, rejected = [], []
    for root in roots:
        complaint = _inadmissible(system, system.complete(root))
        if complaint and not system.given.is_quick(system.task):
            complaint = _exact_complaint(system, root) or ""
        if complaint:
            rejected.append(complaint)
        else:
            admitted.append(root)
    return admitted, rejected


def _exact_complaint(system: Reduced, root: np.ndarray) -> str:
    """Repeat the complaint with digits enough that it is not a matter of rounding."""
    try:
        found, _, _ = _exactly(system, root)
    except NotConverged as problem:
        return problem.found
    return _inadmissible(system, {k: float(v) for k, v in found.items()})


def _roots(system: Reduced, guess: Mapping[Symbol, Any] | None, starts: int = STARTS) -> list[np.ndarray]:
    task, given, left = system.task, system.given, system.left
    evaluate = system.residual()
    if not left:
        for value, size in evaluate():
            if not abs(value) <= 1e-9 * size:
                return []
        return [np.array([])]
    if len(system.core) != len(left):
        raise NotConverged(
            f"{len(system.core)} equations are left for the unknowns {', '.join(map(str, left))}.",
            system.core,
            hint="the theory does not fix these; see theory.equations",
        )
    if guess is None and len(left) > 1 and not given.solve_for:
        guess = _iterate(task, given)
    start = [float(guess[s]) for s in left] if guess and all(s in guess for s in left) else None
    return find_roots(evaluate, system.unknowns, costly=system.costly, guess=start, starts=starts)


def _iterate(task: Task, given: Given, steps: int = 200) -> Point | None:
    """Iterate the closed equations, damped, from weak fields: the state evolution of the problem.

    It is only a starting point for the root finder: None if it does not settle.
    """
    maps = [(e.lhs, task.compiled(e.rhs, "numpy")) for e in task.equations if e.lhs in task.unknowns]
    if len(maps) != len(task.unknowns):
        return None
    env = given.environment("numpy")
    state = {s: -1.0 if s.is_nonpositive else 1.0 if s.is_nonnegative else 0.1 for s, _ in maps}
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
            state[symbol] += (0.9 if k < 20 else 0.5) * (new - state[symbol])
        if gap < 1e-4:
            return state
    return None


def _by_load(system: Reduced) -> tuple[np.ndarray | None, Reach | None]:
    """For a parameter sought at a given load: follow the load as a function of the parameter.

    Returns the root, or the largest load that was found.
    """
    task, given = system.task, system.given
    if len(given.solve_for) != 1 or alpha not in given.exact or alpha not in task.with_load.definitions:
        return None, None
    (parameter,) = given.solve_for
    if not parameter.is_nonnegative:
        return None, None
    exact = {k: v for k, v in given.exact.items() if k not in (alpha, N, P)}
    wanted = float(given.exact[alpha])
    states: dict[float, Point] = {}

    def excess(t: float) -> float:
        inner = Reduced.of(task, replace(given, exact={**exact, parameter: float(np.exp(t))}, solve_for=(alpha,)))
        near = min(states, key=lambda s: abs(s - t), default=None)
        guess = states[near] if near is not None else None
        try:
            admitted, _ = _sift(replace(inner, given=replace(inner.given, double=True)), _roots(inner, guess))
        except NotConverged:
            return float("nan")
        if len(admitted) != 1:
            return float("nan")
        states[t] = inner.complete(admitted[0])
        return float(np.log(states[t][alpha] / wanted))

    bracket = _bracket(excess)
    if bracket is None:
        top = max((point[alpha] for point in states.values()), default=None)
        return None, Reach(str(parameter), top) if top is not None and top < wanted else None
    from scipy.optimize import brentq

    t = brentq(excess, *bracket, xtol=1e-10)
    point = {**states.get(t, states[min(states, key=lambda s: abs(s - t))]), parameter: float(np.exp(t))}
    polished = newton(system.residual(), system.unknowns, [point[s] for s in system.left])
    return polished, None


def _bracket(f: Callable[[float], float], reach: float = 40.0) -> tuple[float, float] | None:
    """Search a change of sign on a line, outwards from 0; undefined points end a direction."""
    centre = f(0.0)
    if not np.isfinite(centre):
        return None
    ends = {1: (0.0, centre), -1: (0.0, centre)}
    step = 0.5
    while ends:
        for way in list(ends):
            t, value = ends[way]
            here = f(t + way * step)
            if not np.isfinite(here) or abs(t) > reach:
                del ends[way]
            elif here * value <= 0:
                return min(t, t + way * step), max(t, t + way * step)
            else:
                ends[way] = (t + way * step, here)
        step *= 1.15
    return None


def _from_weak(system: Reduced) -> tuple[np.ndarray | None, Reach | None]:
    """For a given load: follow the solution from a weak load upwards.

    Returns the root, or the largest load that was reached.
    """
    task, given = system.task, system.given
    if given.solve_for or alpha not in given.exact:
        return None, None

    def at(share: float) -> Reduced:
        exact = {k: float(v) * share if k in (alpha, P) else v for k, v in given.exact.items()}
        return Reduced.of(task, replace(given, exact=exact, double=True))

    def attempt(share: float, start: Point | None) -> Point | None:
        here = at(share)
        if start is None:
            admitted, _ = _sift(here, _roots(here, None))
            return here.complete(admitted[0]) if len(admitted) == 1 else None
        root = newton(here.residual(), here.unknowns, [start[s] for s in here.left])
        if root is None:
            return None
        found = here.complete(root)
        return None if _inadmissible(here, found) else found

    share, step = WEAKEST, 1.0
    state = attempt(share, None)
    if state is None:
        return None, None
    largest = {s: abs(float(v)) for s, v in state.items()}
    while share < 1 and step > 1e-3:
        following = min(1.0, share * float(np.exp(step)))
        found = attempt(following, state)
        if found is None:
            step /= 2
            continue
        state, share, step = found, following, step * 1.3
        largest = {s: max(largest[s], abs(float(v))) for s, v in state.items()}
    if share < 1:
        gone = [s for s in task.unknowns if s in state and abs(float(state[s])) < VANISHED * largest[s]]
        return None, Reach("alpha", share * float(given.exact[alpha]), tuple(gone))
    return np.array([state[s] for s in system.left]), None


def _inadmissible(system: Reduced, found: Mapping[Symbol, Any], *, solved: bool = False) -> str:
    """Say what is wrong with a root: an unknown of the wrong sign, or an order that was assumed."""
    for symbol, value in found.items():
        slack = 1e-9 * max(1.0, abs(value)) if np.isfinite(value) else 0.0
        if (symbol.is_nonnegative and value < -slack) or (symbol.is_nonpositive and value > slack):
            return f"{symbol} would be {value:.6g}"
        if symbol.is_integer and abs(value - round(value)) > 1e-9:
            return f"{symbol} would be {value:.6g}"
    env = {**system.given.environment("numpy"), **found}
    for condition in system.task.conditions:
        gap = condition.lhs - condition.rhs
        if gap.atoms(SiteQuantity) or gap.free_symbols - set(env):
            continue
        if float(system.task.compiled(gap, "numpy")(env)) < 0:
            return f"the derivation assumed {condition}"
    return "" if solved else _spurious(system, env)


def _spurious(system: Reduced, env: Mapping[Symbol, Any]) -> str:
    """Say which closed equation a root does not solve: numerators vanish where denominators do, too."""
    for equation in system.task.equations:
        exprs = [side.xreplace(system.task.units) for side in (equation.lhs, equation.rhs)]
        numbers = [env[s] for e in exprs for s in e.free_symbols if s in system.order]
        if not np.all(np.isfinite(np.array(numbers, dtype=float))):  # at an edge, such as kappa = 0
            continue
        with np.errstate(all="ignore"):
            try:
                sides = [float(system.task.compiled(e, "numpy")(env)) for e in exprs]
            except (ZeroDivisionError, TypeError):
                continue
        size = max(map(abs, sides))
        if size < INFINITE and abs(sides[0] - sides[1]) > SPURIOUS * (size if all(sides) else max(size, 1.0)):
            return f"a root of the reduced equations has {equation.lhs} = {sides[0]:.4g}, and not {sides[1]:.4g}"
    return ""


def _infeasible(task: Task, given: Given, rejected: Sequence[str], reach: Reach | None) -> Infeasible:
    shown = {k: v for k, v in given.exact.items() if k not in (N, P)}
    where = ", ".join(f"{k} = {v}" for k, v in shown.items()) or "these values"
    reasons = "; ".join(dict.fromkeys(rejected))
    if reach is None:
        extent = _range(task, given)
    elif reach.name == "alpha":
        extent = f" Followed from weak loads, the solution ends near alpha = {reach.load:.4g}"
        gone = " and ".join(map(str, reach.vanishing))
        extent += (
            f", where {gone} vanish: beyond, the minimum may be at zero, which is no point of this theory."
            if gone
            else "."
        )
    else:
        extent = f" Over all {reach.name} the load alpha ranges up to about {reach.load:.6g}, its capacity."
    zero = [s for s, v in given.exact.items() if v == 0 and s.is_positive]
    hint = "a smaller alpha" if alpha in given.exact else "other values of the parameters"
    if zero:
        hint = f"{zero[0]} = '1e-6': the equations are singular at 0, its edge"
    return Infeasible(
        f"There is no solution at {where}" + (f": {reasons}." if reasons else ".") + extent,
        "values at which the problem is feasible (a load below the capacity, where there is one)",
        hint,
    )


def _range(task: Task, given: Given) -> str:
    """Say what range a given load can have, where it is an explicit function of the unknown parameter."""
    if len(given.solve_for) != 1 or alpha not in task.with_load.definitions or alpha not in given.exact:
        return ""
    expr = task.with_load.explicit(alpha)
    (other,) = given.solve_for
    if expr.free_symbols - set(given.exact) - {other} - {alpha} or expr.has(SiteQuantity):
        return ""
    t = np.linspace(-20, 4, 400)
    x = np.exp(t) if other.is_nonnegative else np.sinh(np.linspace(-6, 6, 400))
    env = {**given.environment("numpy"), other: x}
    with np.errstate(all="ignore"):
        y = np.asarray(task.compiled(expr, "numpy")(env), dtype=float)
    y = y[np.isfinite(y)]
    return f" Over all {other} the load alpha ranges up to the capacity {y.max():.6g}." if y.size else ""


# -- finishing -----------------------------------------------------------------------------------


def _exactly(system: Reduced, root: Any) -> tuple[dict[Symbol, Any], list[Any], int]:
    """All unknowns to the digits asked for: more guard digits until rounding does not show.

    What keeps shrinking or growing with the precision is zero or infinite.

    Returns
    -------
    The unknowns, those left for the root finder, and the guard digits used.
    """
    dps = system.given.dps
    previous = None
    for guard in _guards(system):
        root = system.refined(root, guard)
        complete = partial(system.complete_exactly, list(root))
        twice = evaluate_twice(complete, dps, guard, system.task.is_numerical)
        if all(v.sound for v in twice):
            break
        if previous is not None:
            limits = [old.limit(new) for old, new in zip(previous, twice, strict=True)]
            if all(v.sound or limit is not None for v, limit in zip(twice, limits, strict=True)):
                values = [
                    v.value if v.sound or limit is None else limit for v, limit in zip(twice, limits, strict=True)
                ]
                return dict(zip(system.order, values, strict=True)), list(root), guard
        previous = twice
    return dict(zip(system.order, (v.value for v in twice), strict=True)), list(root), guard


def _guards(system: Reduced) -> Iterator[int]:
    yield from GUARDS[:1] if system.task.is_numerical else GUARDS


def _finish(system: Reduced, root: np.ndarray, observable: Callable[[Any], Expr]) -> Solution:
    task, given = system.task, system.given
    if given.is_quick(task):
        found = system.complete(root)
        return Solution(task, given, {s: mpmath.mpf(found[s]) for s in system.order}, observable)
    values, exact, guard = _exactly(system, root)

    def refine(more: int) -> dict[Symbol, Any]:
        finer = system.refined(exact, more)
        with mpmath.workdps(given.dps + more):
            return dict(zip(system.order, system.complete_exactly(finer), strict=True))

    return Solution(task, given, values, observable, refine, guard)


__all__ = ["Given", "Reduced", "Solution", "Task", "solve", "solve_given"]
