"""Equations that never collapse, and conditions on averages, as a user writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from sympy import And, Basic, Dummy, Equality, Expr, Piecewise, S, Symbol, latex

from symcavity.algebra.door import as_sympy
from symcavity.algebra.text import plain
from symcavity.errors import DeclarationError
from symcavity.model.averages import Average
from symcavity.model.exact import exact
from symcavity.model.names import RESERVED
from symcavity.model.quantities import SiteQuantity
from symcavity.model.refusals import check_words
from symcavity.model.site_sums import free_kind

DECIDED = (
    "Eq(a, b), not a == b, which asks whether two expressions are the same; leave out what always holds. SymPy decides "
    "at once what has no unknowns, two equal sides or an infinite bound, and what contradicts itself, as a square that "
    "equals a negative number"
)
"""What to do about a relation that is a mere True or False."""

EXAMPLE = 'named={Symbol("E"): average(eps[mu]**2)}'


class Equation(Equality):
    """An equation of SymPy's that never collapses to True or False, whatever its sides are.

    Examples
    --------
    >>> from symcavity.derivations import interpolation
    >>> theory = interpolation.problem.cavity()
    >>> equation = theory.equations[0]
    >>> equation.lhs in theory.unknowns, bool(equation.free_symbols)
    (True, True)
    """

    def __new__(cls, lhs: Any, rhs: Any, **_options: Any) -> Equation:
        """Return the equation of two sides, as they are."""
        return Basic.__new__(cls, as_sympy(lhs, "A side of an equation"), as_sympy(rhs, "A side of an equation"))

    @cached_property
    def difference(self) -> Expr:
        """The left-hand side minus the right-hand side."""
        return self.lhs - self.rhs

    def subs(self, *rule: Any, **options: Any) -> Equation:
        """Substitute in both sides, as ``Expr.subs`` does; a string raises an error."""
        for entry in rule if len(rule) == 2 else [e for pair in _pairs(*rule) for e in pair]:
            as_sympy(entry, "What is substituted")
        return super().subs(*rule, **options)

    def __bool__(self) -> bool:
        return True

    def _sympystr(self, _printer: Any) -> str:
        return f"{plain(self.lhs)} = {plain(self.rhs)}"

    def __str__(self) -> str:
        return self._sympystr(None)

    __repr__ = __str__

    def _latex(self, printer: Any) -> str:
        return f"{printer.doprint(self.lhs)} = {printer.doprint(self.rhs)}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {latex(self.lhs)} = {latex(self.rhs)}$"


def _pairs(rule: Any) -> list[tuple[Any, Any]]:
    """The pairs of a substitution that is given at once."""
    return list(rule.items()) if isinstance(rule, Mapping) else [tuple(pair) for pair in rule]


def as_equation(value: Any, where: str) -> Equation:
    """Read a SymPy ``Eq`` (or our own Equation)."""
    if isinstance(value, Equation):
        return value
    if isinstance(value, Equality):
        return Equation(exact(value.lhs, where), exact(value.rhs, where))
    raise DeclarationError(
        f"{where[:1].upper()}{where[1:]} is {value!r}.",
        "an equation Eq(lhs, rhs)",
        DECIDED
        if value in (True, False, S.true, S.false)
        else "Eq(..., ...)",
    )


def as_list(entries: Any, word: str) -> tuple[Any, ...]:
    """Read the entries of a declaration: one relation, or a sequence of them; conjunctions are several."""
    if isinstance(entries, Basic | Equation):
        return tuple(entries.args) if isinstance(entries, And) else (entries,)
    if isinstance(entries, str | set | frozenset | dict) or not isinstance(entries, Iterable):
        raise DeclarationError(f"{word} is {entries!r}.", "a list of relations, in a definite order", f"{word}=[...]")
    return tuple(part for entry in entries for part in (entry.args if isinstance(entry, And) else (entry,)))


def read_fixed(fixed: Sequence[Any]) -> list[Equation]:
    """Read and check the conditions on averages; a factor in front of the average is divided out."""
    seen: dict[Basic, Expr] = {}
    out = []
    for entry in fixed:
        equation = as_equation(entry, "an entry of fixed")
        where = f"the fixed condition {equation}"
        check_words(equation.difference, where, averages=True)
        average, value = _solved_for_average(equation, where)
        free_kind(average.body, where)
        _check_range(average, value, where)
        if average in seen:
            if (seen[average] - value).simplify() == 0:
                found = f"The fixed condition {average} = {value} stands twice."
            else:
                both = f"{average} = {seen[average]} and {average} = {value}"
                found = f"Two fixed conditions contradict each other: {both}."
            raise DeclarationError(found, "one value for each average")
        seen[average] = value
        out.append(Equation(average, value))
    return out


def read_named(named: Any) -> dict[Symbol, Expr]:
    """Read the names that a declaration gives to observables; a later one may use those before it."""
    if not isinstance(named, Mapping):
        raise DeclarationError(f"named is {named!r}.", "a dictionary of symbols and observables", EXAMPLE)
    out: dict[Symbol, Expr] = {}
    for name, value in named.items():
        if type(name) is not Symbol or name in RESERVED.values():
            raise DeclarationError(f"The name {name!r} of an observable is taken, or no symbol.", "a Symbol", EXAMPLE)
        out[name] = exact(value, f"the observable {name}")
        if out[name].has(name):
            raise DeclarationError(f"{name} stands for an observable that contains it.", "observables, names before it")
    return out


def _solved_for_average(equation: Equation, where: str) -> tuple[Average, Expr]:
    averages = sorted(equation.difference.atoms(Average), key=str)
    outside = equation.difference.xreplace(dict.fromkeys(averages, S.Zero))
    if len(averages) == 1 and not outside.has(SiteQuantity):
        mark = Dummy("average", real=True)  # what is averaged stays as it was written
        marked = equation.difference.xreplace({averages[0]: mark})
        slope = marked.expand().coeff(mark, 1)
        if slope and (marked - slope * mark - outside).expand() == 0:
            if isinstance(equation.lhs, Average):
                return averages[0], equation.rhs
            return averages[0], (-outside / slope).cancel()
    raise DeclarationError(
        f"{where[0].upper()}{where[1:]} is not a condition on one average.",
        "the average of a quantity of one site, and its value",
        "Eq(average(w[i]**2), 1/kappa**2)",
    )


def _check_range(average: Average, value: Expr, where: str) -> None:
    """Refuse a value that the average cannot take."""
    body = average.body
    probability = isinstance(body, Piecewise) and {v for v, _ in body.args} <= {S.Zero, S.One}
    nonnegative = probability or average.is_nonnegative
    if (nonnegative and value.is_negative) or (probability and (value - 1).is_positive):
        what = "lies between 0 and 1" if probability else "is never negative"
        raise DeclarationError(f"{where[0].upper()}{where[1:]} contradicts itself: the left-hand side {what}.")
    if nonnegative and value.is_zero and not probability:
        raise DeclarationError(
            f"{where[0].upper()}{where[1:]} makes every site's {body} vanish.", "averages of positive size"
        )
