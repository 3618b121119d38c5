"""Linear systems with symbolic coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Add, Dummy, Expr, Matrix, Mul, Piecewise, Pow, S, Symbol, linsolve


def solve_linear(matrix: Any, right: Any, unknowns: Sequence[Symbol]) -> tuple[Expr, ...] | None:
    """Return the solution of a linear system, in which unknowns may be left; None if there is none.

    Functions and quantities of a site are symbols to the arithmetic: where two of them share an index, SymPy takes
    them for related, and works with expressions that it simplifies after each operation.
    """
    names: dict[Expr, Dummy] = {}
    cased = matrix.has(Piecewise) or right.has(Piecewise)  # cases are not put over a common denominator

    def hidden(expr: Any) -> Any:
        if isinstance(expr, Symbol) or expr.is_number or cased:
            return expr
        if isinstance(expr, Add | Mul):
            return expr.func(*map(hidden, expr.args))
        if isinstance(expr, Pow) and expr.exp.is_Rational:
            return hidden(expr.base) ** expr.exp
        return names.setdefault(expr, Dummy(f"n{len(names)}", real=expr.is_real, positive=expr.is_positive))

    rows: list[dict[int, Expr]] = [{} for _ in range(matrix.rows)]
    for (r, k), entry in matrix.todok().items():
        rows[r][k] = hidden(entry)
    alone, rest, values = _alone(rows, [hidden(entry) for entry in right])
    columns = [k for k in range(len(unknowns)) if k not in alone]
    left = [unknowns[k] for k in columns]
    coefficients = Matrix(len(rest), len(left), [row.get(k, S.Zero) for row in rest for k in columns])
    found = next(iter(linsolve((coefficients, Matrix(values)), *left)), None) if rest else tuple(left)
    if found is None:
        return None
    back, others = {name: expr for expr, name in names.items()}, iter(found)
    return tuple((alone[k] if k in alone else next(others)).xreplace(back) for k in range(len(unknowns)))


def _alone(
    rows: list[dict[int, Expr]], right: list[Expr]
) -> tuple[dict[int, Expr], list[dict[int, Expr]], list[Expr]]:
    """The unknowns that an equation has alone, as most multipliers of a law with many pieces, and the other equations.

    Returns
    -------
    alone, rows, right
        The values by column; the coefficients of the other equations, by column, and their right sides.
    """
    alone: dict[int, Expr] = {}
    single = [r for r, row in enumerate(rows) if len(row) == 1]
    while single:
        r = single.pop()
        if len(rows[r]) != 1:  # another equation has the same unknown
            continue
        ((k, factor),) = rows[r].items()
        alone[k], rows[r], right[r] = right[r] / factor, {}, S.Zero
        for n, row in enumerate(rows):
            if k in row:
                right[n] -= row.pop(k) * alone[k]
                single += [n] if len(row) == 1 else []
    kept = [r for r, row in enumerate(rows) if row or right[r] != 0]
    return alone, [rows[r] for r in kept], [right[r] for r in kept]
