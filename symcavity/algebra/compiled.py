"""One door from expressions to functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Any

from sympy import And, Dummy, LambertW, Or, lambdify
from sympy.printing.numpy import SciPyPrinter

from symcavity.algebra.choice import in_cases
from symcavity.algebra.overflow import CODE, without_overflow
from symcavity.algebra.tails import with_scaled_tails

NAMES = {"pi": math.pi, **CODE}  # SciPy's printer takes pi from a module that is slow to load
_PRINTED = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}


class _RealPrinter(SciPyPrinter):
    """SciPy's Lambert function is complex everywhere; here it is a real number, or none."""

    def _print_LambertW(self, expr: LambertW) -> str:
        number, real, isreal, where, nan = (
            super()._print_LambertW(expr),
            *(self._module_format(f"numpy.{name}") for name in ("real", "isreal", "where", "nan")),
        )
        return f"{where}({isreal}({number}), {real}({number}), {nan})"

    def _print_And(self, expr: And) -> str:
        """Two by two: ``reduce`` over a tuple takes no number beside an array."""
        return self._two_by_two("logical_and", expr)

    def _print_Or(self, expr: Or) -> str:
        return self._two_by_two("logical_or", expr)

    def _two_by_two(self, name: str, expr: Any) -> str:
        call = self._module_format(f"numpy.{name}")
        return reduce(lambda a, b: f"{call}({a}, {b})", [self._print(a) for a in sorted(expr.args, key=str)])


@lru_cache(maxsize=64)
def marks_of(count: int) -> tuple[Dummy, ...]:
    """The names of arguments in code: the same for all functions of as many, so that equal code is made once."""
    return tuple(Dummy(f"a{k}", real=True) for k in range(count))


def written(expr: Any, rule: Mapping[Any, Dummy], modules: str = "numpy") -> Any:
    """An expression in names of arguments, in the form in which it is evaluated."""
    if not expr.args:
        return rule.get(expr, expr)
    expr = with_scaled_tails(in_cases(expr).xreplace(rule))
    return without_overflow(expr) if expr.args and modules == "numpy" else expr


@lru_cache(maxsize=1024)
def function_of(
    marks: tuple[Dummy, ...],
    exprs: Any,
    modules: str = "numpy",
    *,
    cse: bool = False,
    steps: tuple[tuple[Dummy, Any], ...] | None = None,
) -> Callable[..., Any]:
    """The function of arguments by expressions as they are written, after steps that these name."""
    body = list(exprs) if isinstance(exprs, tuple) else exprs
    if modules != "numpy":
        return lambdify(marks, body, modules, cse=cse)
    parts: Any = cse if steps is None else lambda found: (list(steps), found)
    # the names that are used and no others: "from numpy import *", which SymPy would do, takes longer than a derivation
    return lambdify(marks, body, [dict(NAMES)], _RealPrinter(_PRINTED), cse=parts)


def compiled(arguments: Sequence[Any], exprs: Any, modules: str = "numpy", *, cse: bool = False) -> Callable[..., Any]:
    """Generate code for expressions, in which no name is the user's: a symbol may be called ``sqrt`` or ``x0``.

    Parameters
    ----------
    arguments : sequence
        What the function takes, in order: symbols, or any other nodes of the expressions.
    exprs : Expr or list of Expr
        What it returns.
    modules : str
        ``'numpy'`` (with what SciPy knows), ``'math'`` or ``'mpmath'``.
    cse : bool
        Whether common parts are computed once.
    """
    marks = marks_of(len(arguments))
    rule = dict(zip(arguments, marks, strict=True))
    if isinstance(exprs, list):
        return function_of(marks, tuple(written(e, rule, modules) for e in exprs), modules, cse=cse)
    return function_of(marks, written(exprs, rule, modules), modules, cse=cse)
