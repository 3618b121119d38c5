"""Linear theories at complex parameters: resolvents off the real line.

Where all laws are linear, order parameters are averages of rational functions, and the closed equations hold at complex
parameters as they stand: by analytic continuation.  They have several roots.  The one that is the limit of finite
systems is that at which responses are small enough that a change of the fields dies out: with squared moduli in the
place of squares, the stability is below one.  For a symmetric matrix this is the same as ``Im G < 0`` where
``Im z > 0``: the imaginary part of ``1/G = z - G`` says that ``-Im G (1 - |G|^2) = |G|^2 Im z``, and alike for other
couplings.  Inside of the spectrum of a matrix that is not symmetric there is no such root, and no analytic limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sympy import (
    Abs,
    Add,
    Dummy,
    Expr,
    Heaviside,
    Max,
    Min,
    Mul,
    Piecewise,
    Pow,
    Sum,
    Symbol,
    arg,
    conjugate,
    im,
    re,
    sign,
)

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage
from symcavity.algebra.precision import alone, mp
from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.averages.integrals import Pass
from symcavity.evaluate.constants import NEWTON
from symcavity.evaluate.given.complex_values import environment, read_complex
from symcavity.evaluate.given.values import GUARD, Given, Task
from symcavity.evaluate.solutions.analytic import AnalyticSolution
from symcavity.evaluate.solutions.contraction import root_of
from symcavity.evaluate.solving.finish import where
from symcavity.evaluate.watch import tick
from symcavity.model.averages import Average

NOT_ANALYTIC = (Abs, sign, Max, Min, Piecewise, Heaviside, re, im, conjugate, arg)
INTEGRATED = (GaussianAverage, ImplicitAverage, NumberedAverage)
SUPPORTED = "systems whose laws are all linear, with responses, squares and products of states"


class AnalyticMap:
    """The closed equations of a linear theory, with symbols that need not be real, compiled once.

    Parameters
    ----------
    task : Task
    complexes : tuple of Symbol
        The parameters that are complex.
    observable : callable
        Turns an observable into order parameters.
    """

    def __init__(self, task: Task, complexes: tuple[Symbol, ...], observable: Callable[[Any], Expr]) -> None:
        present = set().union(*(e.difference.free_symbols for e in task.equations))
        self.unknowns = [*(s for s in task.unknowns if s in present), *task.units]
        self.marks = {s: Dummy(s.name) for s in (*self.unknowns, *complexes)}
        closures: dict[Symbol, Expr] = {}
        rest = []
        for e in task.equations:
            if e.lhs in self.unknowns and e.lhs not in closures:
                closures[e.lhs] = e.rhs
            else:
                rest.append(e.difference)
        self.mapped = [s for s in self.unknowns if s in closures]
        self.free = [k for k, s in enumerate(self.unknowns) if s not in closures]
        if len(rest) != len(self.free):
            raise UnsupportedLaw("A parameter is sought where others are complex.", "values for every parameter")
        self.places = [self.unknowns.index(s) for s in self.mapped]
        exprs = [self.marked(e) for e in (*closures.values(), *rest)]
        self.double = Pass(exprs, [self.marks[s] for s in self.unknowns])
        self.exact = ExactPass(exprs)
        marks, rows = set(self.marks.values()), task.gains().matrix
        self.gains = [[_moduli(self.marked(observable(e)), marks) for e in row] for row in rows]
        self.squared = task.gains().there_and_back

    def marked(self, expr: Expr) -> Expr:
        """An expression in symbols that need not be real.

        Raises
        ------
        UnsupportedLaw
            If it is not analytic in them.
        """
        found = expr.xreplace(self.marks)
        inside = set(self.marks.values())
        rough = [a for a in found.atoms(*NOT_ANALYTIC, *INTEGRATED) if a.free_symbols & inside]
        rough += [a for a in found.atoms(Pow) if not a.exp.is_Integer and a.base.free_symbols & inside]
        if rough:
            raise UnsupportedLaw(f"{expr} is not analytic in the parameters.", SUPPORTED)
        return found

    def env(self, given: Given, x: Sequence[Any], backend: str) -> dict[Any, Any]:
        """Everything known, by the symbols that expressions have here."""
        known = {**environment(given, backend), **dict(zip(self.unknowns, x, strict=True))}
        return {self.marks.get(k, k): v for k, v in known.items()}

    def gap(self, given: Given, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far a point is from solving the equations, and the derivatives of that."""
        env = self.env(given, x.tolist(), "numpy")
        grids = self.double.grids()
        self.double.refine(env, grids)
        values, rows = self.double.at(env, grids)
        value, slope = -np.array(values, dtype=complex), -np.array(rows, dtype=complex)
        slope = slope.reshape(len(value), len(x))
        for k, place in enumerate(self.places):
            value[k] += x[place]
            slope[k, place] += 1.0
        return value, slope

    def image(self, given: Given, x: np.ndarray) -> np.ndarray:
        """What the equations make of a point; unknowns that are no average meet their equations, which are linear."""
        value, slope = self.gap(given, x)
        out = x.copy()
        out[self.places] -= value[: len(self.places)]
        if self.free:
            rows = slope[len(self.places) :][:, self.free]
            out[self.free] -= np.linalg.solve(rows, value[len(self.places) :])
        return out

    def gap_exactly(self, given: Given, x: Sequence[Any]) -> list[Any]:
        """How far a point is from solving the equations, at mpmath's present precision."""
        values = self.exact(self.env(given, x, "mpmath"))
        gaps = [x[p] - v for p, v in zip(self.places, values, strict=False)]
        return gaps + [-v for v in values[len(self.places) :]]

    def gain(self, task: Task, given: Given, x: Sequence[Any], *, is_quick: bool) -> Any:
        """The largest gain of squared moduli."""
        backend = "numpy" if is_quick else "mpmath"
        env = self.env(given, x, backend)
        rows = [[mp.convert(task.compiled(e, backend)(env)) if e != 0 else 0 for e in row] for row in self.gains]
        if len(rows) < 2:  # of which mpmath returns no eigenvalues
            return abs(rows[0][0]) if rows else mp.zero
        largest = max(map(abs, mp.eig(mp.matrix(rows), left=False, right=False)))
        return largest**2 if self.squared else largest


def _moduli(expr: Expr, marks: set[Any]) -> Expr:
    """An average of squared responses with moduli in their place; what is real keeps its sign."""
    if not expr.free_symbols & marks:
        return expr
    if isinstance(expr, Add | Mul):
        return expr.func(*(_moduli(a, marks) for a in expr.args))
    if isinstance(expr, Average | Sum):
        return expr.func(_moduli(expr.args[0], marks), *expr.args[1:])
    if isinstance(expr, Pow):
        return Abs(expr.base) ** expr.exp
    return Abs(expr)


def solve_analytic(
    task: Task, values: Mapping[Any, Any], dps: int, observable: Callable[[Any], Expr]
) -> AnalyticSolution:
    """Solve the closed equations of a linear theory where parameters are complex.

    Raises
    ------
    ValuesError
        If the values do not fit the theory, or not all of its laws are linear.
    UnsupportedLaw
        If a parameter is sought, or the equations are not analytic.
    NotConverged
        If no root with a stability below one was found.
    """
    given, complexes = read_complex(task, values, dps)
    if not task.linear:
        shown = " and ".join(f"{s} = {given.exact[s]}" for s in complexes)
        said = f"The value {shown} is complex, and not all laws are linear."
        raise ValuesError(said, "real numbers; complex ones of " + SUPPORTED)
    if complexes not in task.analytic:
        task.analytic[complexes] = AnalyticMap(task, complexes, observable)
    found: AnalyticMap = task.analytic[complexes]
    return _solved(task, found, given, observable)


@alone
def _solved(task: Task, closed: AnalyticMap, given: Given, observable: Callable[[Any], Expr]) -> AnalyticSolution:
    equations = _AtValues(task, closed, given)
    with np.errstate(all="ignore"):
        root, step = root_of(equations, equations.starts(), lambda _: equations)
    is_quick, x, gain, error = given.is_quick(task), [], mp.inf, mp.inf
    if root is not None:
        x, error = (root.tolist(), step) if is_quick else _polished(closed, given, root)
        with mp.workdps(15 if is_quick else given.dps + GUARD):
            gain = closed.gain(task, given, x, is_quick=is_quick)
    if not gain < 1:
        raise NotConverged(
            f"No solution with a stability below one was found at {where(given)}: the point may lie on the spectrum, "
            "or inside of that of a matrix that is not symmetric, where the trace of its resolvent has no analytic "
            "limit.",
            hint="a point off the spectrum",
        )
    values = dict(zip(closed.unknowns, map(mp.mpc, x), strict=True))

    def number(expr: Expr) -> Any:
        marked = closed.marked(expr)
        if is_quick:
            return mp.mpc(complex(task.compiled(marked, "numpy")(closed.env(given, x, "numpy"))))
        with mp.workdps(given.dps + GUARD):
            found = mp.mpc(task.compiled(marked, "mpmath")(closed.env(given, x, "mpmath")))
        with mp.workdps(given.dps):
            return +found

    return AnalyticSolution(task, given, values, number, observable, error, gain)


@dataclass(frozen=True)
class _AtValues:
    """The closed equations at values, in double."""

    task: Task
    closed: AnalyticMap
    given: Given

    def starts(self) -> list[np.ndarray]:
        """Where to begin: a law without a curvature of its own has no value at responses that vanish."""
        points = [np.full(len(self.closed.unknowns), start, dtype=complex) for start in (0.0, 1.0)]
        for x in points:
            x[self.closed.free] = 0.0
        return points

    def image(self, x: np.ndarray) -> np.ndarray:
        """What the equations make of a point."""
        return self.closed.image(self.given, x)

    def gap(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far a point is from solving the equations, and the derivatives of that."""
        return self.closed.gap(self.given, x)

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """A share of each number, and of what vanishes a share of the others."""
        size = np.abs(x)
        return np.asarray(np.maximum(size, np.finfo(float).eps * np.max(size)) + np.finfo(float).tiny)

    def counts(self, x: np.ndarray) -> bool:
        """Whether small changes of the fields die out."""
        return bool(self.closed.gain(self.task, self.given, x.tolist(), is_quick=True) < 1)


def _polished(closed: AnalyticMap, given: Given, root: np.ndarray) -> tuple[list[Any], Any]:
    """The root to the digits of mpmath, and the last step, relative.

    Raises
    ------
    NotConverged
        If the steps do not shrink to the precision.
    """
    with mp.workdps(given.dps + GUARD):
        inverse = mp.matrix(np.linalg.inv(closed.gap(given, root)[1]).tolist())
        x, last = [mp.mpc(v) for v in root.tolist()], mp.inf
        for _ in range(NEWTON):
            tick("the digits of a resolvent")
            move = list(inverse * mp.matrix(closed.gap_exactly(given, x)))
            x = [v - d for v, d in zip(x, move, strict=True)]
            largest = max(map(abs, x))
            step = max(abs(d) / max(abs(v), mp.eps * largest) for v, d in zip(x, move, strict=True))
            if (step < mp.mpf(10) ** -given.dps and step >= last / 2) or not step:
                return x, step
            last = step
    raise NotConverged(f"The solution at {where(given)} was not found to {given.dps} digits.", x, float(last))
