"""A function that selects one of a few values by a label."""

from __future__ import annotations

from typing import Any

from sympy import Basic, Eq, Expr, KroneckerDelta, Piecewise, S, Tuple

from symcavity.algebra.door import as_sympy
from symcavity.algebra.node import holds


class Choice(Expr):
    """One of a few values, by the label of a site, which is 1 for the first.

    Parameters
    ----------
    label : Expr
        The label: a quenched parameter with the values 1, 2, ...
    values : Tuple
        What it chooses from.
    shown : Basic
        Knows what is printed: ``shown.at(label)``.
    """

    is_commutative = True

    def __new__(cls, label: Expr, values: Tuple, shown: Basic) -> Any:
        """Return the chosen value where the label is a number."""
        label = as_sympy(label)
        return values[round(label) - 1] if label.is_number else Expr.__new__(cls, label, values, shown)

    @property
    def free_symbols(self) -> set[Any]:
        """Those of the label and of the values."""
        return set(self.args[0].free_symbols | self.args[1].free_symbols)

    def as_cases(self) -> Piecewise:
        """The values by cases of the label."""
        label, values, _ = self.args
        last = len(values)
        return Piecewise(*((v, S.true if k == last else Eq(label, k)) for k, v in enumerate(values, start=1)))

    def _all(self, name: str) -> bool | None:
        return True if all(getattr(v, name) for v in self.args[1]) else None

    def _eval_derivative(self, _symbol: Any) -> Expr:
        return S.Zero

    def _eval_is_extended_real(self) -> bool | None:
        return self._all("is_extended_real")

    def _eval_is_finite(self) -> bool | None:
        return self._all("is_finite")

    def _eval_is_extended_positive(self) -> bool | None:
        return self._all("is_extended_positive")

    def _eval_is_extended_nonnegative(self) -> bool | None:
        return self._all("is_extended_nonnegative")

    def _sympystr(self, printer: Any) -> str:
        label, _, shown = self.args
        return str(printer.doprint(shown.at(label)))

    _latex = _sympystr


_CASES = (Choice, KroneckerDelta)


def in_cases(expr: Any) -> Any:
    """An expression with each choice and each Kronecker delta written out by cases, which have code for arrays."""
    if not holds(expr, _CASES):
        return expr
    expr = expr.replace(lambda e: isinstance(e, Choice), lambda e: e.as_cases()) if expr.has(Choice) else expr
    deltas = {d: Piecewise((1, Eq(*d.args[:2])), (0, True)) for d in expr.atoms(KroneckerDelta)}
    # a power of cases divides by a zero that numbers of arrays would not: it is infinite there
    return expr.xreplace(deltas).xreplace({S.ComplexInfinity: S.Infinity}) if deltas else expr
