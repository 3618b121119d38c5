"""One door from expressions to functions of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sympy import Dummy, lambdify


def compiled(arguments: Sequence[Any], exprs: Any, modules: Any = "numpy", *, cse: bool = False) -> Callable[..., Any]:
    """Generate code for expressions, in which no name is the user's: a symbol may be called ``sqrt`` or ``x0``.

    Parameters
    ----------
    arguments : sequence
        What the function takes, in order: symbols, or any other nodes of the expressions.
    exprs : Expr or list of Expr
        What it returns.
    modules : str or list
        As for :func:`sympy.lambdify`: ``'numpy'``, ``'math'``, ``'mpmath'``.
    cse : bool
        Whether common parts are computed once.
    """
    marks = {a: Dummy(f"a{k}", real=True) for k, a in enumerate(arguments)}
    marked = [e.xreplace(marks) for e in exprs] if isinstance(exprs, list) else exprs.xreplace(marks)
    return lambdify(list(marks.values()), marked, modules, cse=cse)


__all__ = ["compiled"]
