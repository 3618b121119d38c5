"""Linear matrix equations with symbols: rows are not written out, factors do not commute.

Only what implicit differentiation of a vector law needs: a coefficient that multiplies an unknown matrix
from the left is taken to the other side as an inverse; a scalar such as ``s^T P s`` may be divided by; the
trace of a product with a vector in it is a scalar product.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Expr, Identity, MatAdd, MatMul, Max, Mul, S, Trace, Transpose, ZeroMatrix, sympify
from sympy.matrices.expressions.inverse import Inverse
from sympy.matrices.expressions.matexpr import MatrixExpr, MatrixSymbol
from sympy.matrices.expressions.matpow import MatPow

from symcavity.algebra.node import Node, raised
from symcavity.algebra.precision import mp


class BoldMatrix(MatrixSymbol):
    """A matrix or a column, printed in bold; a name that is TeX is printed as it is."""

    def _latex(self, _printer: Any) -> str:
        name = str(self.name)
        return name if name.startswith("\\") else f"\\bm{{{name}}}"


class SymmetricMatrix(BoldMatrix):
    """A symmetric matrix."""

    def _eval_transpose(self) -> SymmetricMatrix:
        return self


class Form(Node):
    """The scalar ``x^T M y`` (of columns x, y and a matrix M)."""

    def __new__(cls, x: MatrixExpr, matrix: MatrixExpr, y: MatrixExpr) -> Form:
        """Return the scalar."""
        return Expr.__new__(cls, x, matrix, y)

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        x, m, y = (printer.doprint(arg) for arg in self.args)
        x = f"\\left({x}\\right)" if "^" in x else x
        tex = f"{x}^{{T}} {m} {y}" if not isinstance(self.args[1], Identity) else f"{x}^{{T}} {y}"
        return raised(tex, exp)

    def _sympystr(self, printer: Any) -> str:
        return f"({'*'.join(printer.doprint(arg) for arg in self.args)})"


class NamedTrace(Node):
    """The trace of a matrix that has a name."""

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(f"\\operatorname{{tr}} {printer.doprint(self.args[0])}", exp)

    def _sympystr(self, printer: Any) -> str:
        return f"tr {printer.doprint(self.args[0])}"


def terms(expr: MatrixExpr) -> list[tuple[Expr, list[MatrixExpr]]]:
    """Multiply out: pairs of a scalar and a list of matrix factors."""
    if isinstance(expr, MatAdd):
        return [t for arg in expr.args for t in terms(arg)]
    if isinstance(expr, MatPow) and expr.exp.is_Integer and expr.exp > 0:
        return terms(MatMul(*[expr.base] * int(expr.exp), evaluate=False))
    if isinstance(expr, MatMul):
        out: list[tuple[Expr, list[MatrixExpr]]] = [(S.One, [])]
        for arg in expr.args:
            if not isinstance(arg, MatrixExpr):
                out = [(c * arg, f) for c, f in out]
                continue
            out = [(c * d, [*f, *h]) for c, f in out for d, h in terms(arg)]
        return [(c, _plain(f, expr)) for c, f in out]
    if isinstance(expr, ZeroMatrix):
        return []
    return [(S.One, [expr])]


def _plain(factors: list[MatrixExpr], whole: MatrixExpr) -> list[MatrixExpr]:
    kept = [f for f in factors if not isinstance(f, Identity)]
    return kept or [Identity(whole.shape[0])]


def assemble(parts: list[tuple[Expr, list[MatrixExpr]]], shape: tuple[Any, Any]) -> MatrixExpr:
    """A sum of products."""
    products = [f[0] if c == 1 and len(f) == 1 else MatMul(c, *f) if c != 1 else MatMul(*f) for c, f in parts]
    return MatAdd(*products) if len(products) > 1 else products[0] if products else ZeroMatrix(*shape)


def left_coefficient(
    expr: MatrixExpr, unknown: MatrixExpr
) -> tuple[list[tuple[Expr, list[MatrixExpr]]], list[tuple[Expr, list[MatrixExpr]]]]:
    """Split a sum in the factors to the left of an unknown, and the rest.

    Raises
    ------
    ValueError
        If the unknown stands anywhere but at the right end of a product.
    """
    found, rest = [], []
    for c, factors in terms(expr):
        if factors[-1] == unknown and not any(f.has(unknown) for f in factors[:-1]):
            found.append((c, factors[:-1]))
        elif any(f.has(unknown) for f in factors):
            raise ValueError(f"{unknown} does not stand at the end of {factors}.")
        else:
            rest.append((c, factors))
    return found, rest


def solve_left(equation: MatrixExpr, unknown: MatrixExpr) -> tuple[MatrixExpr, MatrixExpr]:
    """Return (A, B) of ``unknown = equation`` in the form ``A*unknown = B``."""
    found, rest = left_coefficient(equation, unknown)
    size = unknown.shape[0]
    A = assemble([(S.One, [Identity(size)]), *((-c, f) for c, f in found)], (size, size))
    return A, assemble(rest, unknown.shape)


def solve_row(equation: MatrixExpr, row: MatrixExpr) -> MatrixExpr:
    """Solve ``equation = 0`` for a row that is multiplied by scalars ``x^T M y`` only."""
    found, rest = left_coefficient(equation, row)
    scalar = Add(*(c * form(f) for c, f in found))
    return assemble([(-c / scalar, f) for c, f in rest], row.shape)


def form(factors: list[MatrixExpr]) -> Expr:
    """The scalar that a product of a row, matrices and a column is."""
    if not factors:
        return S.One
    first, *middle, last = factors
    inner = MatMul(*middle).doit() if middle else Identity(last.shape[0])
    return Form(first.T, inner, last)


def trace(expr: MatrixExpr) -> Expr:
    """The trace, with cyclic products of a column and a row as scalar products."""
    out = S.Zero
    for c, factors in terms(expr):
        k = next((n for n, f in enumerate(factors) if f.shape[1] == 1), None)
        if len(factors) == 1 and isinstance(factors[0], Identity):
            out += c * factors[0].shape[0]
        elif k is None:
            out += c * Trace(MatMul(*factors).doit() if len(factors) > 1 else factors[0])
        else:
            out += c * form([*factors[k + 1 :], *factors[: k + 1]])
    return out


def transpose(expr: MatrixExpr) -> MatrixExpr:
    """The transpose, of products in reverse order."""
    parts = [
        (c, [f.T.doit() if hasattr(f.T, "doit") else f.T for f in reversed(factors)]) for c, factors in terms(expr)
    ]
    return assemble(parts, (expr.shape[1], expr.shape[0]))


def evaluate(expr: Any, values: Mapping[Any, Any]) -> Any:
    """Evaluate with explicit mpmath matrices for the symbols.

    Parameters
    ----------
    expr : MatrixExpr or Expr
    values : mapping
        Matrices, numbers, and the number of rows of identity matrices by their symbol.
    """
    expr = sympify(expr)
    if expr in values:
        return values[expr]
    if isinstance(expr, Identity | ZeroMatrix):
        rows, columns = (
            int(size.subs({k: v for k, v in values.items() if k.is_Symbol and k.is_integer})) for size in expr.shape
        )
        return mp.eye(rows) if isinstance(expr, Identity) else mp.zeros(rows, columns)
    if isinstance(expr, Form):
        x, m, y = (evaluate(arg, values) for arg in expr.args)
        return (x.T * m * y)[0, 0]
    if isinstance(expr, Trace):
        matrix = evaluate(expr.args[0], values)
        return mp.fsum(matrix[k, k] for k in range(matrix.rows))
    if isinstance(expr, Transpose):
        return evaluate(expr.args[0], values).T
    if isinstance(expr, Inverse):
        return mp.inverse(evaluate(expr.args[0], values))
    if isinstance(expr, MatPow):
        return evaluate(expr.base, values) ** int(expr.exp)
    if isinstance(expr, MatAdd | MatMul | Add | Mul):
        parts = [evaluate(arg, values) for arg in expr.args]
        total = parts[0]
        for part in parts[1:]:
            total = total + part if isinstance(expr, MatAdd | Add) else total * part
        return total
    if isinstance(expr, Max):
        return max(evaluate(arg, values) for arg in expr.args)
    if expr.is_Pow:
        return evaluate(expr.base, values) ** evaluate(expr.exp, values)
    if expr.is_Rational:
        return mp.mpf(int(expr.p)) / int(expr.q)
    return mp.mpf(expr.subs({k: v for k, v in values.items() if not isinstance(v, mp.matrix)}))
