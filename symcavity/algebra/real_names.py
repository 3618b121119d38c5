"""Stand-ins for symbols in an average: real, and positive where the average has no value otherwise."""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Expr, Mul, Pow, Symbol, sympify
from sympy.core.function import AppliedUndef
from sympy.tensor.indexed import Indexed


class RealNames:
    """Stand-ins that are known to be real for the symbols that are not: everything here is real.

    A symbol that is not negative and divides is positive, wherever the expressions have a value.
    """

    def __init__(self, *expressions: Any) -> None:
        self.there: dict[Expr, Expr] = {}
        given = [*map(sympify, expressions)]
        bottoms = {b for e in given for p in e.atoms(Pow) if p.exp.is_negative for b in Mul.make_args(p.base)}
        divisors = {b for b in bottoms if b.is_Symbol and b.is_nonnegative and b.is_positive is None}
        self.there.update({b: Dummy(str(b), positive=True) for b in sorted(divisors, key=lambda a: a.sort_key())})
        for expr in given:
            for kind in (Indexed, AppliedUndef):
                for atom in sorted(expr.atoms(kind), key=lambda a: a.sort_key()):
                    self._stand_in(atom)
            for symbol in sorted(expr.atoms(Symbol), key=lambda a: a.sort_key()):
                self._stand_in(symbol)
        self.here = {stand_in: name for name, stand_in in self.there.items()}

    def _stand_in(self, name: Expr) -> None:
        if name not in self.there and name.is_extended_real is None:
            self.there[name] = Dummy(str(name), real=True)

    def forward(self, expr: Any) -> Expr:
        """Put the stand-ins in."""
        return sympify(expr).xreplace(self.there) if self.there else sympify(expr)

    def back(self, expr: Expr) -> Expr:
        """Put the original names back."""
        return expr.xreplace(self.here) if self.here else expr
