"""One door from expressions to functions of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
def _marks(count: int) -> tuple[Dummy, ...]:
    """The names of arguments in code: the same for all functions of as many, so that equal code is made once."""
    return tuple(Dummy(f"a{k}", real=True) for k in range(count))


@lru_cache(maxsize=1024)
def _function(marks: tuple[Dummy, ...], exprs: Any, modules: str, cse: bool) -> Callable[..., Any]:
    body = list(exprs) if isinstance(exprs, tuple) else exprs
    if modules != "numpy":
        return lambdify(marks, body, modules, cse=cse)
    # the names that are used and no others: "from numpy import *", which SymPy would do, takes longer than a derivation
    return lambdify(marks, body, [dict(NAMES)], _RealPrinter(_PRINTED), cse=cse)


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
    marks = _marks(len(arguments))
    rule = dict(zip(arguments, marks, strict=True))
    several = isinstance(exprs, list)
    written = ((rule.get(e, e) if not e.args else in_cases(e).xreplace(rule)) for e in (exprs if several else [exprs]))
    marked = tuple(with_scaled_tails(e) if e.args else e for e in written)
    marked = tuple(without_overflow(e) if e.args else e for e in marked) if modules == "numpy" else marked
    return _function(marks, marked if several else marked[0], modules, cse)
