"""The value of a parameter at which an observable of a theory is smallest or largest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from sympy import Symbol

from symcavity.algebra.precision import mp
from symcavity.errors import NotConverged, SeveralSolutions, ValuesError
from symcavity.evaluate.bracket import root_between
from symcavity.evaluate.given.arguments import NO_SOLUTION
from symcavity.evaluate.given.checked_values import symbol_of
from symcavity.evaluate.numbers import check_sign, exact_value
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solve import solve_theory
from symcavity.evaluate.tasks import task_of
from symcavity.evaluate.watch import tick
from symcavity.method.theory import Theory
from symcavity.study.sensitivity import sensitivity, slope

WIDE = (1e-3, 1e3)  # where a positive parameter is looked at without bounds
POINTS = 25  # at which the range is looked at
CLOSE = 1e-12
ROUNDS = 12
NUMBERS = "bounds=(low, high) between which the observable is a number"


@dataclass(frozen=True)
class Optimum:
    """Where an observable is smallest, or largest.

    Attributes
    ----------
    parameter : Symbol
    place : mpf
        The value of the parameter.
    value : mpf
        That of the observable.
    bound : str
        ``''`` where the derivative vanishes; ``'lower'`` or ``'upper'`` at an end of the requested range:
        beyond, the observable would be better still.
    solution : Solution
        The solved theory there.
    unsolved : tuple of float
        The places in the range at which the theory has no solution.
    """

    parameter: Symbol
    place: Any
    value: Any
    bound: str
    solution: Solution
    unsolved: tuple[float, ...]

    def __str__(self) -> str:
        digits = max(self.solution.dps, 6)
        where = f", at the {self.bound} bound" if self.bound else ""
        return f"{mp.nstr(self.value, digits)} at {self.parameter} = {mp.nstr(self.place, digits)}{where}"

    def _repr_html_(self) -> str:
        return f"<p>{escape(str(self))}</p>{self.solution._repr_html_()}"


def optimize(
    theory: Theory,
    observable: Any,
    over: Any,
    values: Mapping[Any, Any] | None = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    maximize: bool = False,
    dps: int = 15,
) -> Optimum:
    """Find the smallest (or largest) value of an observable over a parameter.

    Raises
    ------
    ValuesError
        For invalid bounds, a parameter that has a value, or several parameters.
    NotConverged
        If the optimum is at an end of the default range, or the observable is constant, or not finite somewhere.
    Infeasible
        If the theory has no solution anywhere in the range.

    Notes
    -----
    The range is looked at on a grid (of logarithms for a positive parameter); every change of sign of the exact
    derivative between its points is followed to the requested digits, and the best of them and of the ends is
    returned.  Two optima between neighbouring points of the grid would be missed.
    """
    over, low, high = checked_range(theory, over, values, bounds)
    values = dict(values or {})
    logs = low > 0
    ts = np.linspace(np.log(low), np.log(high), POINTS) if logs else np.linspace(low, high, POINTS)
    grid = [low, *(float(np.exp(t)) if logs else float(t) for t in ts[1:-1]), high]
    way = -1 if maximize else 1
    seen = _seen(theory, observable, over, values, grid, way)
    size = max(abs(v) for _, v, _ in seen.values())
    if all(abs(d) * (x if logs else high - low) <= CLOSE * size for x, (_, _, d) in seen.items()):
        raise NotConverged(f"{observable} does not depend on {over} here.", hint="another parameter")
    places = sorted(seen)
    inside = [
        _refined(theory, observable, over, values, (a, b), way)
        for a, b in pairwise(places)
        if seen[a][2] < 0 < seen[b][2]
    ]
    inside += [x for a, x, b in zip(places, places[1:], places[2:], strict=False) if _valley(seen, a, x, b)]
    candidates = [(seen[x][1], x) for x in (places[0], places[-1])]
    candidates += [(way * float(solve_theory(theory, {**values, over: x}, 15)[observable]), x) for x in inside]
    place = min(candidates, key=lambda pair: (pair[0], pair[1] not in inside))[1]
    unsolved = tuple(x for x in grid if x not in seen)
    bound = "" if place in inside else "lower" if place == places[0] else "upper"
    if bound and (bounds is None or place not in (low, high)):
        raise _at_an_end(observable, over, place, bound, (low, high), unsolved=bool(unsolved))
    exact: Any = place
    if bound:
        exact = bounds[bound == "upper"] if bounds else place
    elif dps > 15:
        exact = mp.nstr(_exactly(theory, observable, over, values, place, dps), dps + 10)
    solution = solve_theory(theory, {**values, over: exact}, dps)
    return Optimum(over, solution[over], solution[observable], bound, solution, unsolved)


def _at_an_end(
    observable: Any, over: Any, place: float, bound: str, ends: tuple[float, float], *, unsolved: bool
) -> NotConverged:
    side = "smallest" if bound == "lower" else "largest"
    last = "at which the theory has a solution" if unsolved else "that was looked at"
    return NotConverged(
        f"{observable} has no optimum inside: it is best at the {side} {over} {last}, {place:.6g}.",
        {over: place},
        hint=f"bounds=({ends[0]:g}, {ends[1]:g}), or others: then an optimum at a bound is reported as such",
    )


def _seen(
    theory: Theory, observable: Any, over: Any, values: Mapping[Any, Any], grid: Sequence[float], way: int
) -> dict[float, tuple[Solution, float, float]]:
    """The solutions on a grid, with the observable and its slope there, as what is to be smallest."""
    seen: dict[float, tuple[Solution, float, float]] = {}
    near, ends = None, []
    for x in grid:
        tick(f"the optimum, {over} = {x:.3g}")
        try:
            solution = solve_theory(theory, {**values, over: x}, 15, near)
        except SeveralSolutions:
            raise
        except NO_SOLUTION as end:
            ends.append(end)
            continue
        if not solution.is_limit:
            near = {s: float(v) for s, v in solution.values.items()}
            try:
                value, moved = float(solution[observable]), float(slope(solution, observable, over))
            except NotConverged as none:
                raise NotConverged(f"At {over} = {x:.6g}: {none.found}", {over: x}, hint=NUMBERS) from none
            if not np.isfinite(value):
                raise NotConverged(f"At {over} = {x:.6g} {observable} is {value}.", {over: x}, hint=NUMBERS)
            seen[x] = (solution, way * value, way * moved)
    if not seen:
        raise next((e for e in ends if isinstance(e, NotConverged)), ends[0]) if ends else NotConverged(
            "In all of the range the solutions are limits in which states vanish.", hint="other bounds"
        )
    return seen


def _valley(seen: Mapping[float, tuple[Solution, float, float]], a: float, x: float, b: float) -> bool:
    """Whether a place is best by its derivative and beside both neighbors: far out slopes vanish by rounding."""
    return seen[x][2] == 0 and seen[x][1] < min(seen[a][1], seen[b][1])


def checked_range(theory: Theory, over: Any, values: Any, bounds: Any) -> tuple[Any, float, float]:
    """The parameter and the ends of its range, checked."""
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        raise ValuesError(f"The values are {values!r:.80}.", "a mapping from parameters to numbers")
    task = task_of(theory)
    over = symbol_of(task, over)
    if isinstance(over, Iterable) and not isinstance(over, str):
        raise ValuesError(
            f"{over} were given as parameters to vary.",
            "one parameter at a time",
            "scipy.optimize.minimize of theory.solve(...)[observable], with slopes by theory.sensitivity(...)",
        )
    if over not in [*task.parameters, *task.ratios]:
        known = ", ".join(str(s) for s in (*task.parameters, *task.ratios))
        same = [str(s) for s in (*task.parameters, *task.ratios) if str(s) == str(over)]
        hint = f"the {over} of the declaration: a symbol is known by its assumptions too" if same else ""
        raise ValuesError(f"{over!r} is not a parameter of this theory.", known, hint)
    if over in {symbol_of(task, key) for key in values}:
        raise ValuesError(f"{over} is varied, and has a value too.", "one or the other")
    if bounds is None:
        if not over.is_positive:
            raise ValuesError(f"{over} has no bounds.", "bounds=(low, high)")
        return over, *WIDE
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise ValuesError(f"The bounds are {bounds!r}.", "two numbers", "bounds=('1/100', 100)")
    low, high = (float(exact_value(b, "a bound", 15)) for b in bounds)
    if not -np.inf < low < high < np.inf:
        raise ValuesError(f"The bounds are {bounds!r}.", "two finite numbers, the smaller one first")
    for end in (low, high):
        check_sign(over, end)
    return over, low, high


def _refined(
    theory: Theory, observable: Any, over: Any, values: Any, ends: tuple[float, float], way: int
) -> float:
    """The place between two others at which the derivative vanishes, in double."""

    def derivative(x: float) -> float:
        return way * float(sensitivity(theory, observable, over, {**values, over: x}))

    return root_between(derivative, *ends, xtol=1e-15 * abs(ends[0]), rtol=1e-14)


def _exactly(theory: Theory, observable: Any, over: Any, values: Any, place: float, dps: int) -> Any:
    """The same to any number of digits: by secants, with ever more digits."""
    with mp.workdps(dps + 10):

        def derivative(x: Any) -> Any:
            return mp.convert(sensitivity(theory, observable, over, {**values, over: mp.nstr(x, dps + 10)}, dps + 5))

        a, b = mp.mpf(place), mp.mpf(place) * (1 + mp.mpf("1e-7")) + (mp.mpf("1e-7") if not place else 0)
        fa, fb = derivative(a), derivative(b)
        for _ in range(ROUNDS):
            if fb == fa or fb == 0:
                break
            a, b, fa = b, b - fb * (b - a) / (fb - fa), fb
            if abs(b - a) <= abs(b) * mp.mpf(10) ** (-dps - 2):
                break
            fb = derivative(b)
        else:
            raise NotConverged(f"The optimum over {over} was not polished to {dps} digits.", {over: b})
        return +b
