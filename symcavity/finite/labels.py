"""How observables are written in tables and plots."""

from __future__ import annotations

import re
from typing import Any

from sympy import Expr, Symbol
from sympy.logic.boolalg import Boolean

from symcavity.algebra.door import as_sympy
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.algebra.text import plain
from symcavity.model.averages import Average, condition_of
from symcavity.writing.printing import tex


def _indicators(expr: Expr) -> dict[Average, Boolean]:
    """Return the averages of indicators in an expression, with their conditions."""
    return {a: test for a in expr.atoms(Average) if (test := condition_of(a.body)) is not None}


def label(observable: Any) -> str:
    """Return an observable as a user writes it: the average of a condition, not of its indicator."""
    expr = as_sympy(observable)
    rule = {a: Symbol(f"average({plain(c)})") for a, c in _indicators(expr).items()}
    return plain(expr.xreplace(rule))


def label_tex(observable: Any) -> str:
    """Return the LaTeX of an observable, with probabilities for averages of conditions."""
    expr = as_sympy(observable)
    rule = {a: TexSymbol(f"P({plain(c)})", f"P\\left({tex(c)}\\right)") for a, c in _indicators(expr).items()}
    return re.sub(r"\\([gl])e\b", r"\\\1eq", tex(expr.xreplace(rule)))  # plots know the longer names only
