"""How observables are written in tables and plots."""

from __future__ import annotations

import re
from typing import Any

from sympy import Expr, Symbol
from sympy.logic.boolalg import Boolean

from symcavity.algebra.door import as_sympy
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


class _Probability(Symbol):
    """The probability of a condition, as it is written for the average of its indicator."""

    __slots__ = ("condition", "fresh")
    condition: Boolean
    fresh: bool

    def __new__(cls, condition: Boolean, fresh: bool) -> _Probability:
        """Return the probability of a condition, at sites that the system has not seen if ``fresh``."""
        out = Symbol.__xnew__(cls, f"P{'_fresh' if fresh else ''}({plain(condition)})", real=True)
        out.condition, out.fresh = condition, fresh
        return out

    def _latex(self, printer: Any) -> str:
        below = "_{\\mathrm{fresh}}" if self.fresh else ""
        return f"P{below}\\left({printer.doprint(self.condition)}\\right)"


def labelled(observable: Any) -> Expr:
    """Return an observable with probabilities for averages of conditions."""
    expr = as_sympy(observable)
    return expr.xreplace({a: _Probability(*found) for a, found in _indicators(expr).items()})


def label_tex(observable: Any) -> str:
    """Return the LaTeX of an observable, with probabilities for averages of conditions."""
    return re.sub(r"\\([gl])e\b", r"\\\1eq", tex(labelled(observable)))  # plots know the longer names only
