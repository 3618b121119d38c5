"""How observables are written in tables and plots."""

from __future__ import annotations

import re
from typing import Any

from sympy import Expr, Symbol
from sympy.logic.boolalg import Boolean

from symcavity.algebra.door import as_sympy
from symcavity.algebra.texsymbol import TexSymbol
from symcavity.algebra.text import plain
from symcavity.model.averages import Average, Fresh, condition_of
from symcavity.writing.printing import tex


def _indicators(expr: Expr) -> dict[Average, tuple[Boolean, bool]]:
    """Return the averages of indicators in an expression, with their conditions, and whether sites are fresh."""
    bodies = ((a, a.body, isinstance(a.body, Fresh)) for a in expr.atoms(Average))
    tests = ((a, condition_of(body.body if fresh else body), fresh) for a, body, fresh in bodies)
    return {a: (test, fresh) for a, test, fresh in tests if test is not None}


def label(observable: Any) -> str:
    """Return an observable as a user writes it: the average of a condition, not of its indicator."""
    expr = as_sympy(observable)
    words = {a: f"fresh({plain(c)})" if fresh else plain(c) for a, (c, fresh) in _indicators(expr).items()}
    rule = {a: Symbol(f"average({text})") for a, text in words.items()}
    return plain(expr.xreplace(rule))


def label_tex(observable: Any) -> str:
    """Return the LaTeX of an observable, with probabilities for averages of conditions."""
    expr = as_sympy(observable)
    below = {True: "_{\\mathrm{fresh}}", False: ""}
    rule = {
        a: TexSymbol(f"P{'_fresh' if fresh else ''}({plain(c)})", f"P{below[fresh]}\\left({tex(c)}\\right)")
        for a, (c, fresh) in _indicators(expr).items()
    }
    return re.sub(r"\\([gl])e\b", r"\\\1eq", tex(expr.xreplace(rule)))  # plots know the longer names only
