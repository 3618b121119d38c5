"""The closed equations as a map of the unknowns, with exact derivatives, in double.

It has two frames: the whole equations, where each order parameter is the average that the map makes of it, and what
elimination leaves of them, where expressions vanish.  Unknowns of known sign are followed in their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sympy import Add, Expr, Mul, Pow, Symbol, exp, sqrt

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import JointAverage
from symcavity.algebra.overflow import largest, without_overflow
from symcavity.algebra.polyhedral import CellAverage
from symcavity.errors import NotConverged
from symcavity.evaluate.averages.cancelling import NOTHING, Cancelling, followed
from symcavity.evaluate.averages.integrals import LAWS, Grids, Pass, lighter
from symcavity.evaluate.constants import TINIEST
from symcavity.evaluate.tolerances import tolerances
from symcavity.model.averages import Average
from symcavity.model.equations import Equation

ROUNDED = 1e-14  # what rounding leaves of a sum
ROUGHLY = 1e-2  # how well the size of averages is known, which have kinks where their terms change their sign
FADED = 1e-3  # and of what was not zero, but for steps that had not come to their end: a share of it

INTEGRALS = (GaussianAverage, ImplicitAverage)

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


class ClosedMap:
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
        closures: dict[Symbol, Equation] = {}
        for e in equations:  # a condition that fixes an unknown comes after its closure, and does not replace it
            if e.lhs in unknowns:
                closures.setdefault(e.lhs, e)
        found = {s: e.rhs for s, e in closures.items()}
        self.rest = [e for e in equations if closures.get(e.lhs) is not e]
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
        self._sizes: Pass | None = None
        # where derivatives cost as much as many values, iterating to the end is quicker than Newton's method
        self.why = ""  # of the last averages that had no value
        self.patient = any(e.has(JointAverage) for e in self.exprs) and bool(self.mapped)
        self._known: dict[int, tuple[Any, list[Any], list[tuple[int, int]]]] = {}

    @property
    def is_square(self) -> bool:
        """Whether there are as many equations as unknowns."""
        return len(self.rest) == len(self.free)

    @cached_property
    def can_be_met(self) -> bool:
        """Whether the equations that are no closures tell of all unknowns that are no average.

        The load at which a length of the weights is reached stands in the averages alone.
        """
        told: set[Any] = set().union(*(e.difference.free_symbols for e in self.rest))
        return told.issuperset(self.free)

    @cached_property
    def is_unsigned(self) -> np.ndarray:
        """Which unknowns are averages of unknown sign."""
        return np.array([s in self.mapped and not sign for s, sign in zip(self.unknowns, self.signs, strict=True)])

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
        size = np.log(np.abs(x) + TINIEST)
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

    def call(self, averages: Pass, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> tuple[Any, Any] | None:
        """Evaluate a pass at one point or at many; None where averages have no value, and ``why`` says which.

        What does not change from point to point is looked up once.
        """
        known = self._known.get(id(averages))
        if known is None or known[0] is not env:
            inputs = averages.inputs_of(env, self.unknowns)
            places = [(n, self.unknowns.index(key)) for n, key in enumerate(averages.keys) if inputs[n] is None]
            known = self._known[id(averages)] = (env, inputs, places)
        inputs = list(known[1])
        for n, k in known[2]:
            inputs[n] = x[k]
        return self._valued(averages.run, inputs, env.get(LAWS), grids)

    def refined(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> bool | None:
        """Refine grids for one point or many; whether they changed, and None if they can be refined no further."""
        return self._valued(self.plain.refine, {**env, **dict(zip(self.unknowns, x, strict=True))}, grids)

    def _valued(self, call: Callable[..., Any], *args: Any) -> Any:
        try:
            return call(*args)
        except NotConverged as problem:
            self.why = problem.found
            return None

    # -- one evaluation ----------------------------------------------------------------------------

    def image(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray | None:
        """The map at a point: what it sends each unknown to. None where it is undefined or of the wrong sign."""
        if (found := self.call(self.values, x, env, grids)) is None:
            return None
        out = found[0]
        image = np.array(x, dtype=float)
        image[self.places] = out[: len(self.places)]
        for k, value in self.cancelling.values(x, env).items():
            if k < len(self.places):
                image[self.places[k]] = value
        for k in self.fading:
            if abs(image[place := self.places[k]]) < NOTHING:
                image[place] = self.signs[place] * NOTHING
        return image if self.admissible(image) else None

    def without_rounding(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids) -> np.ndarray:
        """The point with zeros for responses that have faded, and for averages of either sign that are rounding."""
        at = {**env, **dict(zip(self.unknowns, x.tolist(), strict=True))}
        out = np.where((np.abs(x) <= NOTHING) & (self.signs != 0), 0.0, x)
        for p in (p for p, s in enumerate(self.signs) if not s and p not in self.places and 0 < abs(x[p]) < ROUNDED):
            there = np.where(np.arange(len(x)) == p, 0.0, out)
            if (found := self.gap(there, env, grids)) is not None and np.max(np.abs(found[0])) < ROUNDED:
                out = there
        return self._without_cancelled(out, at, env, grids)

    def _without_cancelled(
        self, x: np.ndarray, at: Mapping[Any, Any], env: Mapping[Any, Any], grids: Grids
    ) -> np.ndarray:
        """The point with zeros for averages of either sign that vanish together, as those of odd laws do.

        They are measured by averages of moduli: what is left of a sum that vanishes is rounding of its terms.
        """
        kept, most = tolerances().kept, float(np.max(np.abs(x), initial=0.0))
        unseen = np.sqrt(kept) * most  # rounding of no average of such solutions is larger
        either = [k for k, p in enumerate(self.places) if not self.signs[p] and 0 < abs(x[p]) < unseen]
        if not either:
            return x
        if self._sizes is None:
            self._sizes = Pass([_moduli(without_overflow(self.exprs[k])) for k in self.places_of_either_sign])
        sizes = dict.fromkeys(self.places_of_either_sign, 0.0)
        with suppress(NotConverged), np.errstate(all="ignore"):
            for _ in range(2):  # of averages of what vanishes as well, too
                found = zip(sizes, map(float, self._sizes(at, ROUGHLY)), strict=True)
                sizes |= {k: v for k, v in found if np.isfinite(v)}
                at = {**at, **{self.unknowns[self.places[k]]: v for k, v in sizes.items()}}
        small = {k for k in either if abs(x[self.places[k]]) < kept * max(sizes[k], most)}
        while small:
            there = np.where(np.isin(np.arange(len(x)), [self.places[k] for k in small]), 0.0, x)
            called = self.call(self.values, there, env, grids)
            least = {k: max(ROUNDED * sizes[k], FADED * abs(x[self.places[k]])) for k in small}
            left = {k for k in small if called is None or not abs(called[0][k]) < least[k]}
            if not left:
                return there
            small -= left
        return x

    @cached_property
    def places_of_either_sign(self) -> list[int]:
        """The numbers of the averages that may have either sign."""
        return [k for k, p in enumerate(self.places) if not self.signs[p]]

    def admissible(self, x: np.ndarray) -> bool:
        """Whether a point has numbers of the right signs, and no zeros where a logarithm is followed."""
        return bool(np.all(np.isfinite(x)) and np.all(x * self.signs >= 0) and np.all(x[self.signs != 0] != 0))

    def gap(self, x: np.ndarray, env: Mapping[Any, Any], grids: Grids, *, watched: bool = True) -> Gap:
        """How far a point is from solving the equations, and the derivatives of that; None where undefined."""
        if (called := self.call(self.slopes, x, env, grids)) is None:
            return None
        values, rows = called
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

    def held(self, env: Mapping[Any, Any], point: Mapping[Symbol, float]) -> Root:
        """A root that is known, with the derivatives there and the grids on which its averages have their digits.

        Raises
        ------
        NotConverged
            If the equations are not defined there.
        """
        x, grids = np.array([point[s] for s in self.unknowns]), self.slopes.grids()
        self.refined(x, env, grids)
        found = self.gap(x, env, grids)
        if found is None:
            raise NotConverged("The closed equations are not defined near the solution.", dict(point))
        return Root(dict(point), found[1], self.slopes, grids)


def _moduli(expr: Expr) -> Expr:
    """An expression with moduli in the place of its terms, and of what is averaged: no less than any of them."""
    if isinstance(expr, Add | Mul):
        return expr.func(*map(_moduli, expr.args))
    if isinstance(expr, JointAverage | CellAverage):  # a modulus is a kink, and neither is made for another one
        return sqrt(expr.func(expr.body**2, *expr.args[1:]))
    if isinstance(expr, (*INTEGRALS, Average)):
        return expr.func(_moduli(expr.args[0]), *expr.args[1:])
    if isinstance(expr, Pow) and expr.exp.is_Integer and expr.exp.is_positive:
        return _moduli(expr.base) ** expr.exp
    if isinstance(expr, exp):
        return expr
    return largest(expr, -expr)  # no modulus of SymPy, which looks for a sign and asks for conjugates


def _says_zero(difference: Any, s: Symbol) -> bool:
    """Whether an equation says that an unknown vanishes, as the multiplier of a condition that idles does."""
    factor = difference / s
    return bool(difference.has(s) and not factor.has(s) and factor.is_nonzero)
