"""A solved theory: its unknowns, any observable in digits that hold, and how well the equations are met."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sympy import Basic, Expr, Float, S, Symbol, nan, zoo

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import NumberedAverage, one_set
from symcavity.algebra.precision import alone, given_out, mp
from symcavity.errors import DeclarationError, NotConverged, ValuesError
from symcavity.evaluate.averages.cancelling import NOTHING, followed
from symcavity.evaluate.averages.tails import check_tails
from symcavity.evaluate.averages.twice import evaluate_twice, limited
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.evaluate.given.sizes import completed, ratio_named, sized
from symcavity.evaluate.given.values import GUARD, GUARDS, Given, Task
from symcavity.evaluate.solutions.residuals import extended, gaps
from symcavity.evaluate.solutions.scattering import Scattering
from symcavity.evaluate.solutions.told import told, told_in_html
from symcavity.method.tidy import tidy_arguments
from symcavity.model.content import without
from symcavity.model.kinds import SiteCount, alpha
from symcavity.model.quantities import SiteQuantity
from symcavity.shapes.sampling import SCRAMBLES

Values = dict[Symbol, Any]


@without(
    "beside", "dimension", "environment", "expression", "gain_in_words", "in_own_units", "loose", "number", "numbers",
    "origin",
    "own_environment", "own_values", "quick", "reader", "rows", "sharpen", "solved_at", "task",
)  # fmt: skip
class Solution(Scattering):
    """The solved theory at given values.

    ``solution[alpha]`` and ``solution[average(w[i]**2)]`` evaluate any unknown, parameter or observable; a text is read
    as the same, ``solution["q_w"]``.  It is a read-only mapping from the names in its table to numbers, in the order of
    the table.

    Attributes
    ----------
    values : dict
        Every unknown, by symbol.
    dps : int
        The requested digits.
    residual : mpf
        The largest relative residual of the closed equations, measured at higher precision than they were
        solved in.
    beside : dict
        The given values that are not numbers: laws and arrays of quenched parameters, convex sets.
    certified : dict or None
        With ``solve(..., certify=True)``: every unknown as a python-flint ball; in the box of these balls there is
        exactly one solution, proved.
    remarks : tuple of str
        Remarks on a Gibbs measure: which of two mirror images the numbers describe, other solutions of higher
        free energy, a negative entropy of discrete states.
    """

    def __init__(
        self,
        task: Task,
        given: Given,
        values: Values,
        observable: Callable[[Any], Expr],
        refine: Callable[[int], Values] | None = None,
        guard: int = GUARD,
    ) -> None:
        self._task, self._given, self._observable = task, given, observable
        self.dps = given.dps
        self._own = values  # in the units in which it was solved
        self.values = given.outward(values)
        if wrong := [s for s, v in values.items() if mp.isnan(v)]:
            names = ", ".join(map(str, wrong))
            raise NotConverged(
                f"{names} would not be a number at this solution.", hint="other values of the parameters"
            )
        self._refine, self._guard = refine, guard
        self._residual: Any = None
        self.beside: dict[Any, Any] = {}
        self.certified: dict[Symbol, Any] | None = None
        self.loose: tuple[Symbol, ...] = ()
        self.origin: tuple[Any, ...] | None = None
        self.remarks: tuple[str, ...] = ()

    @property
    def own_values(self) -> Values:
        """Every unknown in the units in which it was solved."""
        return self._own

    @property
    def reader(self) -> Callable[[Any], Expr]:
        """What reads observables."""
        return self._observable

    @property
    def task(self) -> Task:
        """What was solved."""
        return self._task

    @property
    def given(self) -> Given:
        """The values at which it was solved."""
        return self._given.as_declared

    @property
    def solved_at(self) -> Given:
        """The same in the units in which it was solved."""
        return self._given

    @property
    def is_limit(self) -> bool:
        """Whether some unknowns are limits that the equations do not reach."""
        return any(map(mp.isinf, self.values.values()))

    @property
    def quick(self) -> bool:
        """Whether the numbers were computed in double."""
        return self._refine is None

    def environment(self, backend: str) -> dict[Any, Any]:
        """Everything known, for compiled expressions (of mpmath: rounded to the current precision)."""
        return self._at(self.given, self.values, backend)

    def own_environment(self, backend: str) -> dict[Any, Any]:
        """The same in the units in which it was solved."""
        return self._at(self._given, self._own, backend)

    def _at(self, given: Given, values: Mapping[Any, Any], backend: str) -> dict[Any, Any]:
        env = given.environment(backend)
        env.update({k: (float(v) if backend == "numpy" else +mp.convert(v)) for k, v in values.items()})
        return completed(self._task.kinds, env)  # the sizes that a load found implies

    def __reduce__(self) -> tuple[Any, ...]:
        """What another process needs: the theory, the values, and the unknowns that were found."""
        if self.origin is None:
            raise TypeError("Only solutions of theory.solve(...) are pickled.")
        again, theory, values = self.origin
        found = None if self.is_limit else {s: mp.convert(v) for s, v in self.values.items()}
        rest = {"beside": self.beside, "certified": self.certified is not None, "remarks": self.remarks}
        return again, (theory, values, self.dps, found, self.quick, self._guard, rest)

    @alone
    def number(self, key: Any) -> Any:
        """The value of an observable as a number of the engine's own context."""
        expr = self.expression(key)
        if expr in self.values:
            with mp.workdps(self.dps):
                return self._number(+mp.convert(self.values[expr]), key)
        value = self._value(expr)
        if not mp.isfinite(value) and (reduced := self._in_core_unknowns(expr)) != expr and not reduced.has(zoo, nan):
            value = self._value(reduced)  # infinities may cancel, as in kappa*b at kappa = 0
        return self._number(value, key)

    def numbers(self, keys: Sequence[Any]) -> list[Any]:
        """The values of several observables: averages over one joint law are taken together, once all are known."""
        exprs = [self.in_own_units(self.expression(key))[0] for key in keys]
        for expr in exprs:
            (absorbed,) = self._task.absorbed(self._given.laws, (expr,))
            self._task.compiled(absorbed, "numpy" if self._in_double(expr) else "mpmath")
        return [self.number(key) for key in keys]

    def stderr(self, key: Any) -> float:
        """Return the standard error of an observable whose average is sampled; zero where none is.

        The average is taken over independent sets of quasi-random fields; the error is the scatter of these sets.
        """
        expr = self.expression(key)
        if not any(node.is_sampled for node in expr.atoms(NumberedAverage)):
            return 0.0
        values = [float(self._value(expr.xreplace(one_set([expr], k)))) for k in range(SCRAMBLES)]
        return float(np.std(values, ddof=1) / np.sqrt(SCRAMBLES))

    def expression(self, key: Any) -> Expr:
        """An observable in unknowns, parameters and laws that have values here."""
        expr = self._expression(ratio_named(key)).xreplace(self._task.units)
        self._check_known(expr, key)
        return expr

    def _number(self, value: Any, key: Any) -> Any:
        """Refuse what is not a number."""
        if mp.isnan(value):
            raise NotConverged(
                f"{key} has no value at this solution: its expression is not a number there.",
                self.values,
                hint="parameters that are not at the edge of their range; more digits, dps=30",
            )
        return value

    def _expression(self, key: Any) -> Expr:
        plain = isinstance(key, str) or (type(key) is Symbol and key not in self.values)
        if plain and str(key) in (symbols := self.named()):  # which a name tells, whatever its assumptions
            return symbols[str(key)]
        if isinstance(key, Basic) and key.has(Float) and self.dps > IN_DOUBLE:
            raise ValuesError(
                f"The observable {key!s:.80} holds a float, and {self.dps} digits were requested.",
                "exact numbers: integers, Rational",
            )
        known = self._task.observables
        try:
            if isinstance(key, Basic):
                if key not in known:
                    known[key] = self._observable(key)
                return known[key]
            return self._observable(key)
        except AttributeError:
            raise DeclarationError(
                f"{key!r:.80} is not an observable.",
                "alpha, average(w[i]**2), response(w), and expressions of these",
            ) from None

    def named(self) -> dict[str, Any]:
        """The names that have a value here."""
        ratios = {f"{kind.size}/N": kind.ratio for kind in sized(self._task.kinds)}
        return ratios | {str(s): s for s in (*self._task.units, *self.values, *self._given.exact)}

    def _check_known(self, expr: Expr, key: Any) -> None:
        if expr.has(S.NaN, S.ComplexInfinity):
            what = f"The observable {key} is divided by zero at some sites."
            raise ValuesError(what, "averages of quantities that are finite at every site")
        known = set(self.environment("numpy"))
        masked = expr.xreplace({q: Symbol("_") for q in expr.atoms(SiteQuantity)})
        missing = sorted(_free(masked) - known, key=str)
        if not missing:
            return
        if isinstance(missing[0], SiteCount):
            raise ValuesError(
                f"{key} grows with the size of the system, and {missing[0]} is not given.",
                "averages, or a size among the values",
                f"{{{missing[0]}: 400, ...}} in solve(...)",
            )
        raise ValuesError(
            f"{missing[0]} in {key} is neither an unknown nor a parameter of this theory.",
            ", ".join(str(s) for s in (*self._task.units, *self.values, *self._given.told)),
        )

    def sharpen(self, guard: int) -> int:
        """Refine the unknowns by at least so many digits beyond ``dps``; return the number of digits."""
        if self._refine is not None and guard > self._guard:
            self._own, self._guard = self._refine(guard), guard
            self.values = self._given.outward(self._own)
        return self._guard

    def _in_core_unknowns(self, expr: Expr) -> Expr:
        """Return the expression with the eliminated unknowns written out."""
        closed = self._task.with_load if alpha in self._given.solve_for else self._task.eliminated
        for symbol in closed.definitions:
            if expr.has(symbol) and symbol not in self._given.exact:
                expr = tidy_arguments(expr.xreplace({symbol: closed.explicit(symbol)}))
        return expr

    def _value(self, expr: Expr) -> Any:
        own, power = self.in_own_units(expr)
        value = self._evaluate(own)
        return mp.ldexp(value, power) if power else value

    def in_own_units(self, expr: Expr) -> tuple[Expr, int]:
        """An expression in the units in which it was solved, and its own unit as a power of two, if it has one."""
        if (units := self._given.units) is None:
            return expr, 0
        power = units.observable(expr)
        return (expr.xreplace(units.rule), 0) if power is None else (expr, power)

    def _evaluate(self, expr: Expr) -> Any:
        """The value of an expression, in the units in which it was solved."""
        check_tails({"the observable": expr}, self._given.laws, self.own_environment("numpy"))
        once, given = expr.has(GaussianAverage, ImplicitAverage), self._given
        if self._in_double(expr):
            exprs = self._task.absorbed(given.laws, (expr,))
            with np.errstate(all="ignore"):
                value = self._task.compiled(exprs[0], "numpy")(self.own_environment("numpy"))
            return mp.mpf(float(self._mended(exprs).get(0, value)))
        (expr,) = self._task.absorbed(given.laws, (expr,))
        call = self._task.compiled(expr, "mpmath")
        previous = None
        guards = [self._guard, *(g for g in self._given.guards if g > self._guard)]
        for guard in guards:
            self.sharpen(guard)
            (value,) = evaluate_twice(lambda: [limited(call, self.own_environment("mpmath"))], self.dps, guard, once)
            last = guard == guards[-1] or self._given.at_edge
            if value.sound and (last or mp.isfinite(value.value)):
                break
            if last and previous is not None and (limit := previous.limit(value)) is not None:
                return limit
            previous = value
        with mp.workdps(self.dps):
            return +value.value

    def _in_double(self, expr: Expr) -> bool:
        """Whether an expression is evaluated in double."""
        given = self._given
        plain = given.dps <= IN_DOUBLE and given.guards[0] == GUARDS[0] and not given.at_edge
        return self.quick or (plain and expr.has(GaussianAverage, ImplicitAverage))

    def _mended(self, exprs: tuple[Expr, ...]) -> dict[int, float]:
        """The closed forms of which double leaves too little, with digits; what has faded is very small there."""
        point = followed(self._own.values(), self._own)
        found = self._task.cancelling(exprs, tuple(self._own)).values(point, self.own_environment("numpy"))
        faded = not all(self._own.values())
        return {k: 0.0 if faded and abs(v) < np.sqrt(NOTHING) else v for k, v in found.items()}

    @property
    def objective(self) -> Any:
        """The minimum of a declared convex problem divided by N, which is the value of its saddle.

        Finite instances have the same number, ``sim.objective``.

        Raises
        ------
        UnsupportedLaw
            For a system of equations, which minimizes nothing.
        """
        return self[self._task.objective()]

    @property
    def residual(self) -> Any:
        """The largest relative residual of the closed equations, at higher precision than the solution."""
        if self._residual is None:
            self._residual = given_out(self._measure())
        return self._residual

    @alone
    def _measure(self) -> Any:
        sides = self._task.absorbed(self._given.laws)
        if self.quick:
            env, whole = self.own_environment("numpy"), self._task.together(sides)
            with np.errstate(all="ignore"):
                whole.refine(env, grids := whole.grids())
                found = dict(enumerate(whole.at(extended(env), grids)[0])) | self._mended(sides)
                values = [mp.mpf(float(v)) for v in gaps(list(found.values()))]
        else:
            with mp.workdps(self.dps + self._guard + GUARD):
                env = self.own_environment("mpmath")
                values = gaps([limited(self._task.compiled(e, "mpmath"), env) for e in sides])
        if any(map(mp.isinf, self.values.values())):  # at an edge equations are met as limits
            values = [v for v in values if mp.isfinite(v)]
        return max((mp.inf if mp.isnan(v) else v for v in values), default=mp.zero)

    def rows(self) -> list[tuple[Any, Any]]:
        """Every unknown with its value."""
        own = {e.lhs for e in self._task.equations}  # a scale is an order parameter like others
        hats = {h for e in self._task.units.values() for h in e.atoms(Symbol)} - set(self._task.units) - own
        known = ((s, v) for s, v in self.values.items() if s not in self.loose)
        out = [(s, v) for s, v in known if s not in hats or s in self._given.solve_for]
        return out + [(g, self[g]) for g in self._task.units if g not in self.values and g not in self.loose]

    @property
    def digits(self) -> int:
        """The number of known digits, at most ``dps``: the equations are met to so many."""
        if not mp.isfinite(self.residual):
            return 0
        known = -float(mp.log10(self.residual)) if self.residual > 0 else self.dps
        return min(max(int(known), 0), self.dps)

    def __str__(self) -> str:
        return told(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return told_in_html(self)


def _free(expr: Expr) -> set[Any]:
    """Free symbols, those of the placeholder left out."""
    return {s for s in expr.free_symbols if s.name != "_"}
