"""A linear theory that was solved off the real line: its unknowns and observables are complex numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr, Symbol

from symcavity.algebra.precision import alone, given_out, mp
from symcavity.errors import ValuesError
from symcavity.evaluate.given.sizes import ratio_named, sized
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solutions.table import SolutionTable


class AnalyticSolution(SolutionTable):
    """The solution of a linear theory at complex values of parameters: the analytic continuation from real ones.

    ``solution[average(response(w[i]))]`` is the trace of a resolvent, a number of mpmath; minus its imaginary part
    over pi, at a small distance above the real line, is the density of eigenvalues there. States are complex, and
    ``average(w[i]**2)`` is of their squares, not of squared moduli.

    Attributes
    ----------
    values : dict
        Every unknown, by symbol.
    dps : int
        The requested digits.
    residual : mpf
        The largest relative residual of the closed equations, at higher precision than they were solved in.
    stability : mpf
        The gain of a small random change of all fields, of squared moduli of responses. It is below one: outside of
        the spectrum, and nowhere else.
    """

    certified = None
    is_limit = False

    def __init__(
        self,
        task: Task,
        given: Given,
        values: Mapping[Symbol, Any],
        number: Callable[[Expr], Any],
        observable: Callable[[Any], Expr],
        residual: Any,
        stability: Any,
    ) -> None:
        self.dps, self.given, self.task = given.dps, given, task
        self.values = dict(values)
        self._evaluated, self._observable = number, observable
        self.residual, self.stability = given_out(residual), given_out(stability)
        self.beside: dict[Any, Any] = {}
        self.remarks: tuple[str, ...] = ()

    def named(self) -> dict[str, Any]:
        """The names that have a value here."""
        ratios = {f"{kind.size}/N": kind.ratio for kind in sized(self.task.kinds)}
        return ratios | {str(s): s for s in (*self._values, *self.given.exact)}

    @alone
    def number(self, key: Any) -> Any:
        """The value of an observable.

        Raises
        ------
        ValuesError
            If it holds what has no value here.
        UnsupportedLaw
            If it is not analytic in the parameters, as a modulus is.
        """
        expr = self._observable(self.named().get(str(key), key) if isinstance(key, str) else ratio_named(key))
        known = {*self._values, *self.given.exact}
        if missing := sorted((s for s in expr.free_symbols if type(s) is Symbol and s not in known), key=str):
            raise ValuesError(
                f"{missing[0]} in {key} is neither an unknown nor a parameter of this theory.",
                ", ".join(map(str, known)),
            )
        return self._evaluated(expr)

    def rows(self) -> list[tuple[Any, Any]]:
        """The rows of the table: unknowns with their numbers."""
        return list(self._values.items())

    def __str__(self) -> str:
        point = ", ".join(f"{k} = {v}" for k, v in self.given.exact.items())
        digits = max(self.dps, 6)
        lines = [f"Solution at {point}"]
        lines += [f"  {s!s:<18} = {mp.nstr(mp.convert(v), digits)}" for s, v in self.rows()]
        lines.append(f"  stability          = {mp.nstr(mp.convert(self.stability), 6)}  (stable below 1)")
        lines.append(f"  residual           = {mp.nstr(mp.convert(self.residual), 3)}")
        return "\n".join(lines)

    __repr__ = __str__

