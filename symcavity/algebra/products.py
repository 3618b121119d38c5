"""Averages of a product of two functions, each of Gaussian fields of its own, that are correlated with the other's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sympy import Basic, Expr, Symbol, Tuple

from symcavity.algebra.joint import JointLaw, LawSymbol, NumberedAverage
from symcavity.algebra.node import raised

MOST_HEARD = 2  # fields of one half: one along which it may have kinks at given values of the other


class Half(Basic):
    """One factor of a product: a function of its own fields.

    Parameters
    ----------
    body : Expr
        In the symbols of the law, and parameters.
    law : JointLaw
        One or two fields. Along the last one a law without unknowns may have kinks and jumps that depend on the field
        before it; a law with unknowns is smooth along it.
    covariance : sequence of Expr
        Of the fields: the lower triangle, row by row.
    """

    def __new__(cls, body: Expr, law: JointLaw, covariance: Sequence[Any]) -> Half:
        """Return the half."""
        return Basic.__new__(cls, body, law, Tuple(*covariance))

    body = property(lambda self: self.args[0])
    law = property(lambda self: self.args[1])
    covariance = property(lambda self: tuple(self.args[2]))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Everything that holds parameters."""
        return (self.body, *self.law.expressions, *self.covariance)


class Pairing(Basic):
    """Two halves of a product.

    Parameters
    ----------
    one, other : Half
    cross : sequence of Expr
        The covariances of each field of the first half with each of the second, row by row.
    """

    def __new__(cls, one: Half, other: Half, cross: Sequence[Any]) -> Pairing:
        """Return the two halves."""
        return Basic.__new__(cls, one, other, Tuple(*cross))

    one = property(lambda self: self.args[0])
    other = property(lambda self: self.args[1])
    cross = property(lambda self: tuple(self.args[2]))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        """Everything that holds parameters."""
        return (*self.one.expressions, *self.other.expressions, *self.cross)


class ProductAverage(NumberedAverage):
    """The average of a product over correlated Gaussian fields of zero mean, of which no factor hears many.

    Parameters
    ----------
    body : Expr
        What is averaged, for the eye.
    pairings : sequence of Pairing
        The ways in which its factors can be put into two halves: the same average in each.
    """

    def __new__(cls, body: Expr, pairings: Sequence[Pairing]) -> Expr:
        """Return the average."""
        return Expr.__new__(cls, body, Tuple(*pairings))

    pairings = property(lambda self: tuple(self.args[1]))
    title = "Averages of products over several fields"
    parts = property(lambda self: tuple(e for pairing in self.pairings for e in pairing.expressions))

    def binds(self, leaf: Any) -> bool:
        """Whether it is a symbol of a law."""
        return isinstance(leaf, LawSymbol)

    @property
    def free_symbols(self) -> set[Any]:
        """The symbols that the value depends on."""
        return {s for e in self.parts for s in e.free_symbols if not isinstance(s, LawSymbol)}

    @property
    def bound_symbols(self) -> list[Symbol]:
        """The symbols of all laws."""
        return sorted(self.atoms(LawSymbol), key=str)

    def _sympystr(self, printer: Any) -> str:
        first = self.pairings[0]
        fields = (*first.one.law.fields, *first.other.law.fields)
        return f"<{printer.doprint(self.body)}>({', '.join(f.name for f in fields)})"

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        return raised(f"\\left\\langle {printer.doprint(self.body)} \\right\\rangle_{{\\eta}}", exp)
