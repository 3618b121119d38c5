"""One door from expressions to functions of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sympy import (
    Abs,
    Dummy,
    Function,
    Heaviside,
    Max,
    Min,
    Piecewise,
    cos,
    cosh,
    exp,
    lambdify,
    log,
    sign,
    sin,
    sinh,
    tan,
    tanh,
)

from symcavity.algebra.choice import in_cases
from symcavity.algebra.tails import with_scaled_tails

IN_NUMPY = (Abs, Heaviside, Max, Min, Piecewise, cos, cosh, exp, log, sign, sin, sinh, tan, tanh)  # others: of SciPy


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
    several = isinstance(exprs, list)
    marked = [with_scaled_tails(in_cases(e).xreplace(marks)) for e in (exprs if several else [exprs])]
    if modules == "numpy" and any(f for e in marked for f in e.atoms(Function) if not isinstance(f, IN_NUMPY)):
        modules = ["scipy", "numpy"]
    return lambdify(list(marks.values()), marked if several else marked[0], modules, cse=cse)


__all__ = ["compiled"]
