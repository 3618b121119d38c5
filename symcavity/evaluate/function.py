"""Vectorised functions of parameters: an explicit expression compiled once, else solved point by point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Add, Expr, Symbol

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.precision import alone, digits_of_user, is_mpf, mp
from symcavity.errors import Infeasible, NotConverged, ValuesError
from symcavity.evaluate.averages.compiler import Compiled, to_mpf
from symcavity.evaluate.averages.integrals import LAWS
from symcavity.evaluate.averages.twice import evaluate_twice
from symcavity.evaluate.binding import bind
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.arguments import check_count, double_arrays, each
from symcavity.evaluate.given.checked_values import names, read_values, symbol_of
from symcavity.evaluate.given.sizes import completed
from symcavity.evaluate.given.values import GUARD, GUARDS, Given, Task
from symcavity.evaluate.many_points import PointByPoint
from symcavity.evaluate.solving.evidence import OnlyRoot
from symcavity.evaluate.tasks import task_of
from symcavity.method.eliminate import Closed
from symcavity.method.theory import Theory
from symcavity.method.tidy import tidy_arguments
from symcavity.model.kinds import alpha
from symcavity.model.quantities import SiteQuantity

BLOCK = 1 << 21
SAMPLES = 257


@alone
def make_function(
    theory: Theory,
    target: Any,
    arguments: Sequence[Symbol],
    values: Mapping[Any, Any],
    backend: str = "numpy",
    errors: str = "raise",
) -> Callable[..., Any]:
    """Return a function of parameters that broadcasts over its arguments.

    Parameters
    ----------
    theory : Theory
    target : Symbol or observable
        What to compute.
    arguments : sequence of Symbol
        The parameters that the function takes, in order.
    values : mapping
        Values of everything else: parameters, sizes, quenched parameters.
    backend : str
        ``'numpy'``: double precision, arrays of floats.  ``'mpmath'``: mpmath's precision at the time of the
        call, arrays of objects.
    errors : str
        ``'raise'`` lets a point at which no solution was found raise; ``'nan'`` returns nan there.

    Returns
    -------
    callable
        A scalar for scalar arguments, otherwise an array of the broadcast shape.  Where the target has a
        closed form that is compiled once; elsewhere each point is solved, starting from the one before it.

    Raises
    ------
    ValuesError
        If a parameter is neither an argument nor given, if an argument is unknown or given as well, or if
        the backend is unknown.
    """
    if backend not in ("numpy", "mpmath"):
        raise ValuesError(f"The backend is {backend!r}.", "'numpy' and 'mpmath'")
    if errors not in ("raise", "nan"):
        raise ValuesError(f"errors is {errors!r}.", "'raise' and 'nan'")
    theory, values = bind(theory, values)
    task = task_of(theory)
    arguments = [symbol_of(task, argument) for argument in arguments]
    values = {symbol_of(task, key): value for key, value in values.items()} if isinstance(values, Mapping) else values
    _check_arguments(task, arguments, values)
    dps = 15 if backend == "numpy" else max(digits_of_user(), 16)
    probe = {**values, **dict.fromkeys(arguments, 1)}
    given = read_values(task, probe, dps if backend == "mpmath" else 15, arguments)
    held = {s: v for s, v in given.exact.items() if s not in arguments}
    ranges = [r for r in (r.xreplace(held) for r in task.ranges) if r.free_symbols]
    _check_target(theory, task, target)
    expr = _explicit(theory, task, target, given) if len(theory.branches) == 1 else None
    if expr is None:
        return PointByPoint(theory, target, arguments, values, backend, errors, ranges)
    return _Explicit(task, expr, arguments, values, given, backend, errors, ranges)


def _check_arguments(task: Task, arguments: Sequence[Any], values: Mapping[Any, Any]) -> None:
    known = {*task.parameters, *task.ratios, *task.sizes}
    for argument in arguments:
        if not isinstance(argument, Symbol) or argument not in known:
            raise ValuesError(
                f"The argument {argument} is not a parameter of this theory.", f"the parameters {names(task)}"
            )
        if isinstance(values, Mapping) and argument in values:
            raise ValuesError(
                f"{argument} is an argument of the function and was given a value too.", "one or the other"
            )
    if len(set(arguments)) != len(arguments):
        raise ValuesError(
            f"An argument stands twice: {', '.join(map(str, arguments))}.", "different parameters"
        )
    if not arguments:
        raise ValuesError(
            "The function has no arguments.",
            f"at least one of {names(task)}",
            "solve(...) for a single point",
        )


def _check_target(theory: Theory, task: Task, target: Any) -> None:
    expr = theory.observable(target)
    known = {*task.unknowns, *task.units, *task.parameters, *task.ratios, *task.sizes}
    masked = expr.xreplace({q: Symbol("_") for q in expr.atoms(SiteQuantity)})
    strange = sorted((s for s in masked.free_symbols - known if s.name != "_"), key=str)
    if strange:
        raise ValuesError(
            f"{strange[0]} in {target} is neither an unknown nor a parameter of this theory.",
            ", ".join(str(s) for s in (*task.unknowns, *task.units, *task.parameters, *task.ratios)),
        )


# -- closed forms --------------------------------------------------------------------------------


def _closed(task: Task, given: Given) -> Closed:
    return task.with_load if alpha in given.solve_for else task.eliminated


def _explicit(theory: Theory, task: Task, target: Any, given: Given) -> Expr | None:
    """Return the target in terms of what is given, or None if equations are left to be solved."""
    closed = _closed(task, given)
    if closed.core or any(s in given.exact for s in closed.definitions):
        return None
    expr = _put_in(closed, theory.observable(target).xreplace(task.units))
    masked = expr.xreplace({q: Symbol("_") for q in expr.atoms(SiteQuantity)})
    if {s for s in masked.free_symbols if s.name != "_"} - set(given.exact):
        return None
    return expr


def _put_in(closed: Closed, expr: Expr) -> Expr:
    for symbol in closed.definitions:
        if expr.has(symbol):
            expr = tidy_arguments(expr.xreplace({symbol: closed.explicit(symbol)}))
    return expr


class _Explicit:
    """A closed form, compiled once."""

    def __init__(
        self,
        task: Task,
        expr: Expr,
        arguments: Sequence[Symbol],
        values: Mapping[Any, Any],
        given: Given,
        backend: str,
        errors: str,
        ranges: Sequence[Any],
    ) -> None:
        self.ranges = ranges
        self.task, self.expr, self.arguments, self.errors, self.backend = (
            task,
            expr,
            tuple(arguments),
            errors,
            backend,
        )
        self.given, self.values = given, values
        self.call = task.compiled(expr, backend)
        self.fixed = {s: v for s, v in given.exact.items() if s not in self.arguments}
        sized = {*task.ratios, *task.sizes}
        if sized & set(arguments):  # sizes that were completed with the probe's value
            self.fixed = {s: v for s, v in self.fixed.items() if s not in sized or s in values}
        numerical = expr.has(GaussianAverage, ImplicitAverage)
        self.block = (
            max(64, BLOCK // (given.sites * (2048 if numerical else 1)))
            if given.sites > 1 or numerical
            else 0
        )
        # without a sum nothing can cancel
        self.once = numerical or not any(
            node.has(*arguments) for node in expr.atoms(Add) if not _inside_phi(expr, node)
        )
        self.bounds = self._bounds()

    def __call__(self, *points: Any) -> Any:
        check_count(self.arguments, points)
        return self._numpy(points) if self.backend == "numpy" else self._mpmath(points)

    # double precision

    def _numpy(self, points: Sequence[Any]) -> Any:
        arrays, valid = double_arrays(self.arguments, points, self.errors, self.ranges)
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        if not self.block or not shape:
            value, lost = self._evaluate(arrays)
        else:
            flat = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
            count = flat[0].size
            value, lost = np.empty(count), np.zeros(count, dtype=bool)
            for start in range(0, count, self.block):
                part = slice(start, start + self.block)
                value[part], lost[part] = self._evaluate([a[part] for a in flat])
            value, lost = value.reshape(shape), lost.reshape(shape)
        if np.any(lost) and self.errors == "raise":
            index = np.unravel_index(int(np.argmax(lost)), shape) if shape else ()
            raise self._no_solution([np.broadcast_to(a, shape)[index] for a in arrays])
        unknown = np.isnan(value) & ~np.broadcast_to(lost if valid is None else lost | ~valid, np.shape(value))
        if np.any(unknown) and self.errors == "raise":
            index = np.unravel_index(int(np.argmax(unknown)), shape) if shape else ()
            raise _no_number(self.arguments, [np.broadcast_to(a, shape)[index] for a in arrays])
        if valid is not None or np.any(lost):
            bad = lost if valid is None else lost | ~valid
            value = np.where(bad, np.nan, value)
        value = np.broadcast_to(np.asarray(value, dtype=float), shape) if np.shape(value) != shape else value
        return value if shape else float(value)

    def _environment(self, arrays: Sequence[Any]) -> dict[Any, Any]:
        env: dict[Any, Any] = {LAWS: self.given.laws, **{k: float(v) for k, v in self.fixed.items()}}
        env.update(zip(self.arguments, arrays, strict=True))
        return completed(self.task.kinds, env)

    def _evaluate(self, arrays: Sequence[Any]) -> tuple[Any, Any]:
        env = self._environment(arrays)
        lost: Any = False
        with np.errstate(all="ignore"):
            value = self.call(env)
            for _, sign, bound in self.bounds:
                lost |= np.asarray(bound(env)) * sign < -1e-9
        return value, lost

    def _bounds(self) -> list[tuple[Symbol, int, Compiled]]:
        """Unknowns whose sign decides whether there is a solution: those that go wrong somewhere."""
        closed = _closed(self.task, self.given)
        rng = np.random.default_rng(5)
        arrays = [_sample(s, rng) for s in self.arguments]
        env = self._environment(arrays)
        out = []
        for symbol in closed.definitions:
            sign = 1 if symbol.is_nonnegative else -1 if symbol.is_nonpositive else 0
            if not sign:
                continue
            call = self.task.compiled(closed.explicit(symbol), "numpy")
            with np.errstate(all="ignore"):
                value = np.asarray(call(env)) * sign
            if np.any(value < -1e-9 * np.maximum(1.0, np.abs(value))):
                out.append((symbol, sign, call))
        return out

    # any precision

    @alone
    def _mpmath(self, points: Sequence[Any]) -> Any:
        dps = digits_of_user()
        if dps > IN_DOUBLE:
            read_values(self.task, {**self.values, **dict.fromkeys(self.arguments, 1)}, dps, self.arguments)
        env: dict[Any, Any] = {LAWS: self.given.laws}
        with mp.workdps(dps + GUARD):
            env.update({k: to_mpf(v) for k, v in self.fixed.items()})
        return each(self.arguments, points, self.errors, lambda point: self._one(point, env, dps), self.ranges)

    def _one(self, point: Sequence[Any], fixed: dict[Any, Any], dps: int) -> Any:
        if self.once and not self.bounds:
            with mp.workdps(dps + GUARD):
                here = {s: _mpf(v) for s, v in zip(self.arguments, point, strict=True)}
                return self.call(completed(self.task.kinds, {**fixed, **here}))

        def evaluate() -> list[Any]:
            env: dict[Any, Any] = {LAWS: self.given.laws, **{k: to_mpf(v) for k, v in self.fixed.items()}}
            env.update({s: _mpf(v) for s, v in zip(self.arguments, point, strict=True)})
            return [self.call(completed(self.task.kinds, env))]

        if self.bounds and self._violated([float(v) for v in point]):
            raise self._no_solution(point)
        for guard in GUARDS:
            (value,) = evaluate_twice(evaluate, dps, guard, self.once)
            if value.sound:
                break
        if mp.isnan(value.value):
            raise _no_number(self.arguments, point)
        return value.value

    def _violated(self, point: Sequence[float]) -> dict[Symbol, float]:
        """The unknowns that have the wrong sign at a point."""
        env = self._environment([np.asarray(v) for v in point])
        with np.errstate(all="ignore"):
            values = {symbol: float(bound(env)) for symbol, _, bound in self.bounds}
        return {symbol: values[symbol] for symbol, sign, _ in self.bounds if values[symbol] * sign < -1e-9}

    def _no_solution(self, point: Sequence[Any]) -> Infeasible:
        where = ", ".join(f"{s} = {v}" for s, v in zip(self.arguments, point, strict=True))
        wrong = self._violated([float(v) for v in point])
        evidence = OnlyRoot(wrong, "; ".join(f"{s} would be {v:.6g}" for s, v in wrong.items()))
        return Infeasible(
            f"There is no solution at {where}. {evidence}",
            "values at which the problem has a unique solution",
            "errors='nan', for nan at such points",
            evidence,
        )


def _inside_phi(expr: Expr, node: Expr) -> bool:
    """Whether a sum stands only in the arguments of functions, where it is no cancellation of results."""
    return not expr.xreplace({f: Symbol("_") for f in expr.atoms(_function())}).has(node)


def _function() -> Any:
    from sympy import Function

    return Function


def _sample(symbol: Symbol, rng: np.random.Generator) -> np.ndarray:
    t = rng.uniform(-9, 9, SAMPLES)
    if symbol.is_nonnegative:
        return np.exp(t)
    return -np.exp(t) if symbol.is_nonpositive else np.sinh(t)


def _mpf(value: Any) -> Any:
    return mp.convert(value) if is_mpf(value) else to_mpf(value)


def _no_number(arguments: Sequence[Symbol], point: Sequence[Any]) -> NotConverged:
    where = ", ".join(f"{s} = {v}" for s, v in zip(arguments, point, strict=True))
    return NotConverged(
        f"The closed form is not a number at {where}.",
        dict(zip(arguments, point, strict=True)),
        hint="errors='nan', for nan at such points; solve(...) takes limits at the edges of parameters",
    )
