"""How conditions are printed, and what holds under them."""

from __future__ import annotations

from typing import Any

from sympy import Abs, Add, And, Equality, S
from sympy.logic.boolalg import to_dnf

from symcavity.model.averages import condition_of
from symcavity.sites.sets.averages import REGIME
from symcavity.writing.nodes import Atom, FormulaNode, Row, Table, beside, in_brackets, joined, words
from symcavity.writing.ordering import is_negative
from symcavity.writing.tree_printer import TreePrinter

_REGIMES = ("inside", "touching", "on a face", "at the tip", "at the bound")  # of a projection, by their numbers
_SIGNS = {"==": "=", ">": ">", "<": "<", ">=": "\\ge", "<=": "\\le", "!=": "\\ne"}
ONE = Atom("id", "1", "\\mathbf{1}", "bf")  # of a condition, and among matrices


class ConditionPrinter(TreePrinter):
    """Prints cases, relations and what is joined by words."""

    def _print_Piecewise(self, expr: Any) -> Row:
        if (test := condition_of(expr)) is not None:
            return beside(ONE, in_brackets(self.row(test), "[", "]"))
        rows: list[tuple[FormulaNode, ...]] = []
        for value, condition in expr.args:
            if value is S.NaN and condition == True and rows:  # noqa: E712 - the cases before are all there are
                continue
            if condition == True:  # noqa: E712
                said = beside(words("otherwise"))
            else:
                earlier = [case for _, case in expr.args[: len(rows)]]
                word = "if " if all(_exclude_each_other(case, condition) for case in earlier) else "else if "
                said = beside(words(word), " ", self.row(condition))
            rows.append((beside(" ", self.row(value), ","), beside(" ", said)))
        return beside(Table("cases", tuple(rows)))

    def _print_Relational(self, expr: Any) -> Row:
        if expr.lhs == REGIME:
            return beside(words(f"{'' if expr.rel_op == '==' else 'not '}{_REGIMES[int(expr.rhs)]}"))
        if expr.rhs == 0 and not isinstance(expr.lhs, Add) and is_negative(expr.lhs):
            expr = expr.reversedsign
        if isinstance(expr.rhs, Abs) and not isinstance(expr.lhs, Abs):
            expr = expr.reversed
        return beside(self.row(expr.lhs), " ", _SIGNS[expr.rel_op], " ", self.row(expr.rhs))

    def _print_And(self, expr: Any) -> Row:
        between = _interval(expr)
        if between is not None:
            (low, first), middle, (last, high) = between
            return beside(self.row(low), " ", first, " ", self.row(middle), " ", last, " ", self.row(high))
        return joined(map(self.row, sorted(expr.args, key=str)), " ", words(" and "), " ")

    def _print_Or(self, expr: Any) -> Row:
        return joined(map(self.row, sorted(expr.args, key=str)), " ", words(" or "), " ")

    def _print_ITE(self, expr: Any) -> Row:
        return self.row(to_dnf(expr))

    def _print_BooleanTrue(self, _expr: Any) -> Row:
        return beside(words("always"))

    def _print_BooleanFalse(self, _expr: Any) -> Row:
        return beside(words("never"))


def _exclude_each_other(one: Any, other: Any) -> bool:
    """Whether two conditions are seen not to hold together: then their order does not matter."""
    if isinstance(one, Equality) and isinstance(other, Equality) and one.lhs == other.lhs:
        return one.rhs != other.rhs
    for low, high in ((one, other), (other, one)):
        if getattr(low, "lts", None) is not None and getattr(high, "gts", None) == low.lts:
            return bool((high.lts - low.gts).is_positive)
    return And(one, other) == False  # noqa: E712


def _interval(expr: Any) -> tuple[tuple[Any, str], Any, tuple[str, Any]] | None:
    """Read two bounds of one quantity as an interval."""
    if len(expr.args) != 2 or not all(
        getattr(part, "rel_op", "") in ("<", "<=", ">", ">=") for part in expr.args
    ):
        return None
    pairs = [(part.lts, part.gts, "<" if "=" not in part.rel_op else "\\le") for part in expr.args]
    for (low, one, first), (two, high, last) in (pairs, pairs[::-1]):
        if one == two and not one.is_number:
            return (low, first), one, (last, high)
    return None
