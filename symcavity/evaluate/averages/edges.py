"""What is constant at an edge of a joint law: expressions that vanish while given members of its pairs do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from sympy import Add, Expr, S

from symcavity.algebra.compiled import compiled as function
from symcavity.algebra.joint import JointLaw, LawSymbol
from symcavity.evaluate.constants import TINIEST

HELD = LawSymbol("held", "\\text{held}")
"""Which member of each pair vanishes, as one number: the digits of base two, 0 for the first member."""
ROUNDED = 1e-12  # of the numbers that a sum is made of


def held_number(second: np.ndarray) -> np.ndarray:
    """The number of the members that vanish, where ``second`` says whether it is the second, pair by pair."""
    powers = 1 << np.arange(len(second))[::-1]
    return np.asarray(powers @ second.astype(int)) if len(second) else np.zeros(second.shape[1:], dtype=int)


class VanishingPairs:
    """Which of some expressions vanish for every field, as long as the same members of pairs vanish.

    An expression does where it is a combination of the equations and the members that vanish.  This is decided
    from their coefficients; what the expression comes to at single fields has rounding in it.  What is not linear
    counts as one more unknown.

    Parameters
    ----------
    law : JointLaw
    exprs : sequence of Expr
        In the quantities of the law.
    parameters : sequence
        What else they hold, beside the parameters of the law.
    """

    def __init__(self, law: JointLaw, exprs: Sequence[Expr], parameters: Sequence[Any]) -> None:
        self.parameters = list(parameters)
        self.pairs, self.plain = len(law.pairs), len(law.equations)
        quiet: dict[Any, Any] = dict.fromkeys(law.sources, S.Zero)
        put: dict[Any, Any] = {}
        for name, meaning in law.definitions:
            put[name] = meaning.xreplace(quiet).xreplace(put)
        pairs = [*(p for p, _ in law.pairs), *(q for _, q in law.pairs)]
        every = [_terms(e.xreplace(quiet)) for e in (*law.equations, *pairs)]
        every += [_terms(e.xreplace(put)) for e in exprs]
        self.count, names = len(every) - len(exprs), sorted({m for row in every for m in row}, key=str)
        self.shape = len(every), len(names)
        self.table = function(self.parameters, [row.get(m, S.Zero) for row in every for m in names])

    def vanishing(self, numbers: np.ndarray, given: Mapping[Any, float]) -> np.ndarray:
        """Which expressions vanish while the members of a number do, shape (expressions, numbers)."""
        cells = np.array(self.table(*(given[s] for s in self.parameters)), dtype=float).reshape(self.shape)
        rows, exprs = cells[: self.count], cells[self.count :]
        out = np.zeros((len(exprs), len(numbers)), dtype=bool)
        for n, number in enumerate(numbers if len(exprs) else ()):
            second = (int(number) >> np.arange(self.pairs)[::-1]) & 1
            held = self.plain + second * self.pairs + np.arange(self.pairs)
            own = np.concatenate([rows[: self.plain], rows[held]])
            own = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), TINIEST)
            shares = np.linalg.lstsq(own.T, exprs.T, rcond=None)[0].T if len(own) else np.zeros((len(exprs), 0))
            size = np.abs(exprs) + np.abs(shares).max(axis=1, initial=0.0)[:, None] * np.abs(own).sum(axis=0)
            out[:, n] = (np.abs(exprs - shares @ own) <= ROUNDED * size).all(axis=1)
        return out


@lru_cache(maxsize=1024)
def _terms(expr: Expr) -> dict[Expr, Expr]:
    """The coefficients of an expression by what moves with the fields: products, or whatever else."""
    out: dict[Expr, Expr] = {}
    for term in Add.make_args(expr.expand()):
        factor, moving = term.as_independent(LawSymbol, as_Add=False)
        out[moving] = out.get(moving, S.Zero) + factor
    return out
