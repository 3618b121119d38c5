"""Derivatives of observables of a solved theory by parameters: the closed equations, differentiated implicitly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sympy import Derivative, Expr, Symbol

from symcavity.algebra.precision import alone, given_out, mp
from symcavity.errors import NotConverged, UnsupportedLaw, ValuesError
from symcavity.evaluate.averages.digits import ExactPass
from symcavity.evaluate.given.checked_values import symbol_of
from symcavity.evaluate.solutions.sampled import SampledSolution
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solve import solve_theory
from symcavity.method.theory import Theory
from symcavity.model.kinds import in_units_of_n

SPARE = 12  # digits beyond the requested ones
ROUNDS = 3  # of more digits, where the linear equations cost them
MOST = 200.0
SINGULAR = 13.0  # those at which equations in double are degenerate


def sensitivity(
    theory: Theory, observable: Any, parameter: Any, values: Any = None, dps: int = 15, guess: Any = None
) -> Any:
    """Return the derivative of an observable with respect to a parameter, all other given values held fixed.

    Raises
    ------
    ValuesError
        If the parameter is not among the values.
    UnsupportedLaw
        At a limit (states at rest); for sampled averages; beyond 15 digits for averages over sets.
    NotConverged
        Where the equations are degenerate: the solution moves without bound, as at a capacity.
    """
    solution = solve_theory(theory, values, dps, guess)
    with mp.workdps(dps):
        return given_out(+slope(solution, observable, parameter))


@alone
def slope(solution: Solution, observable: Any, parameter: Any) -> Any:
    """The derivative of an observable with respect to a parameter, at a solution.

    Notes
    -----
    With closed equations ``E(u, p) = 0`` and an observable ``O(u, p)``: ``dO/dp = O_p - O_u E_u^{-1} E_p``.
    In double the derivatives are those of the quadrature; beyond, averages are differentiated under the integral,
    with the boundary terms of jumps, and are taken to the digits of the solution.  Averages over convex sets and
    polyhedra have difference quotients, in double.
    """
    task, given = solution.task, solution.solved_at
    if isinstance(solution, SampledSolution) or solution.is_limit:
        what = (
            "A solution by sampled averages has"
            if isinstance(solution, SampledSolution)
            else "A limit in which states vanish has"
        )
        raise UnsupportedLaw(f"{what} no exact derivative.", "solutions of closed equations")
    parameter = symbol_of(task, parameter)
    if parameter not in given.exact or parameter not in {*task.parameters, *task.ratios}:
        known = [str(s) for s in (*task.parameters, *task.ratios) if s in given.told]
        raise ValuesError(f"{parameter} is not a parameter with a value here.", ", ".join(known) or "none")
    unknowns = [*task.unknowns, *given.solve_for]
    sides = task.absorbed(given.laws)
    gaps = [a - b for a, b in zip(sides[::2], sides[1::2], strict=True)]
    target, power = solution.in_own_units(solution.expression(observable))
    exprs, names = [in_units_of_n(e) for e in (*gaps, target)], (*unknowns, parameter)
    guard, lost = solution.sharpen(0), 0.0
    for _ in range(ROUNDS):
        guard = solution.sharpen(int(min(lost, MOST)) + SPARE)
        with mp.workdps(solution.dps + guard):
            rows, rough = _rows(solution, exprs, names)
            value, lost = _through(rows)
        if rough or lost < guard - 4:
            break
    if lost > (SINGULAR if rough else guard):
        raise NotConverged(
            f"The closed equations are degenerate here: their solution moves without bound with {parameter}.",
            solution.values,
            hint="values away from the end of the solution",
        )
    if not mp.isfinite(value):
        raise NotConverged(f"{observable} has no derivative with respect to {parameter} here.", solution.values)
    return value if given.units is None else mp.ldexp(value, power - given.units.power(parameter))


def _through(rows: Sequence[Sequence[Any]]) -> tuple[Any, float]:
    """The total derivative from partial ones, and the digits that the linear equations cost."""
    *equations, last = rows
    count = len(equations)
    if not count:
        return last[0], 0.0
    try:
        moves = mp.lu_solve(mp.matrix([row[:-1] for row in equations]), mp.matrix([-row[-1] for row in equations]))
    except (ZeroDivisionError, TypeError):  # of no pivot mpmath makes a TypeError
        return mp.nan, float("inf")
    return last[-1] + mp.fsum(last[k] * moves[k] for k in range(count)), _lost(equations)


def _rows(solution: Solution, exprs: Sequence[Expr], names: tuple[Symbol, ...]) -> tuple[list[list[Any]], bool]:
    """The derivatives of expressions, one row for each; and whether they are known in double only."""
    task = solution.task
    if not solution.quick:
        table = [[e.diff(s) for s in names] for e in exprs]
        if not any(d.has(Derivative) for row in table for d in row):
            found = iter(ExactPass([d for row in table for d in row])(solution.own_environment("mpmath")))
            return [[mp.convert(next(found)) for _ in names] for _ in exprs], False
        if solution.dps > 15:
            raise UnsupportedLaw(
                "Averages over sets and polyhedra are differentiated in double precision.", "dps <= 15"
            )
    whole = task.together(tuple(exprs), names)
    env, grids = solution.own_environment("numpy"), whole.grids()
    whole.refine(env, grids)
    return [[mp.mpf(float(d)) for d in row] for row in whole.at(env, grids)[1]], True


def _lost(rows: Sequence[Sequence[Any]]) -> float:
    """The digits that solving costs: the condition of the matrix, its rows and columns scaled."""
    sizes = [max(map(abs, row[:-1])) for row in rows]
    if not all(mp.isfinite(s) and s for s in sizes):
        return float("inf")
    a = np.array([[float(v / s) for v in row[:-1]] for row, s in zip(rows, sizes, strict=True)])
    columns = np.max(np.abs(a), axis=0)
    return float(np.log10(np.linalg.cond(a / columns))) if np.all(columns) else float("inf")
