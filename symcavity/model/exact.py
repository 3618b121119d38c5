"""Exact numbers and scalar real expressions: what may stand in a declaration, and what is refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from sympy import (
    Basic,
    Dummy,
    Expr,
    FiniteSet,
    Float,
    I,
    Pow,
    Rational,
    S,
    Set,
    Symbol,
    Tuple,
    binomial,
    cancel,
    exp,
    expand_log,
    factorial,
    gamma,
    log,
    nan,
    oo,
    zoo,
)

from symcavity.algebra.door import as_sympy, told
from symcavity.algebra.signs import FewValued
from symcavity.algebra.tails import log_gamma
from symcavity.errors import DeclarationError

_DECIMAL = re.compile(r"[+-]?(\d+/\d+|\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?)")
_LONGEST_DENOMINATOR = 1000
HIGHEST = 1000  # exponent of what varies


def random_symbols() -> tuple[type, ...]:
    """The class of SymPy's random variables: there are none before its statistics are loaded."""
    stats = sys.modules.get("sympy.stats.rv")
    return (stats.RandomSymbol,) if stats else ()


def is_random(value: Any) -> bool:
    """Whether a value is a random variable of SymPy."""
    return isinstance(value, random_symbols())


def is_normal(law: Any) -> bool:
    """Whether a law is a Gaussian of SymPy."""
    if not is_random(law):
        return False
    from sympy.stats.crv_types import NormalDistribution

    return isinstance(law.pspace.distribution, NormalDistribution)


@lru_cache(maxsize=256)
def sign_of_law(law: Any) -> int | None:
    """Return 1 where all values of a random variable of SymPy are positive, 0 where none is negative, else None.

    A continuous law is at the end of its range with no probability.
    """
    if not is_random(law):
        return None
    space = law.pspace
    values = getattr(space.distribution, "set", None)
    if values is not None and not isinstance(values, Set):
        values = FiniteSet(*values)
    least = getattr(values, "inf", None)
    if least is None or not least.is_nonnegative:
        return None
    return int(bool(least.is_positive or space.is_Continuous))


def exact(value: Any, where: str) -> Expr:
    """Sympify an expression of a declaration: one real number, without floats anywhere inside it.

    Parameters
    ----------
    value : object
        A SymPy expression or a number.
    where : str
        What the value belongs to, for the message.
    """
    if isinstance(value, str):
        raise DeclarationError(
            f"A string stands in {where}: {value!r}.",
            "SymPy expressions and exact numbers; a string would have to be executed to be understood",
            f"Rational({value!r})" if _DECIMAL.fullmatch(value) else "the expression itself, without quotes",
        )
    try:
        expr = as_sympy(value)
    except DeclarationError:
        expr = None
    if not isinstance(expr, Expr) or getattr(expr, "is_Matrix", False):
        if hasattr(value, "at_site"):
            raise DeclarationError(
                f"{value} stands in {where} without an index.", "the quantity of one site", f"{value.at_site()}"
            )
        raise DeclarationError(
            f"{where[0].upper()}{where[1:]} contains {value!r}, which is a {type(value).__name__}.",
            "SymPy expressions with one real value",
        )
    _refuse_floats(expr, where)
    _refuse_unreal(expr, where)
    refuse_high_powers(expr, where)
    return expr


def _refuse_floats(expr: Basic, where: str) -> None:
    floats = expr.atoms(Float)
    if floats:
        number = min(floats)
        raise DeclarationError(
            f"The float {float(number)!r} stands in {where}.",
            "exact numbers: integers, Rational(1, 2), Rational('0.5')",
            f"{rational_for(float(number))}; a float would spoil every digit beyond the fifteenth.",
        )


def rational_for(number: float) -> str:
    """The Rational that was probably meant by a float, as code."""
    guess = Fraction(number).limit_denominator(_LONGEST_DENOMINATOR)
    if guess and abs(float(guess) - number) <= 4e-16 * abs(number) and abs(number) < _LONGEST_DENOMINATOR:
        return f"{guess.numerator}" if guess.denominator == 1 else f"Rational({guess.numerator}, {guess.denominator})"
    return f"Rational('{number!r}')"


def refuse_high_powers(expr: Basic, where: str) -> None:
    """Refuse exponents that would run for minutes: powers are taken apart into as many terms, with as many digits.

    Raises
    ------
    DeclarationError
        If something that varies is raised to a power beyond ``HIGHEST``.
    """
    for power in expr.atoms(Pow):
        if power.exp.is_Number and abs(power.exp) > HIGHEST and not power.base.is_number:
            raise DeclarationError(
                f"The power {power.exp} stands in {where}.",
                f"exponents up to {HIGHEST}",
                "a smaller exponent; the logarithm of a large number",
            )


def _refuse_unreal(expr: Basic, where: str) -> None:
    for bad in (nan, zoo, oo, -oo, I):
        if expr.has(bad):
            raise DeclarationError(
                f"{bad} stands in {where}.",
                "finite real numbers",
                "leave a constraint out instead of putting an infinite bound" if bad in (oo, -oo) else "",
            )
    for symbol in sorted(expr.atoms(Symbol), key=lambda s: s.name):
        plain = symbol.is_commutative
        unreal = plain and (symbol.is_real is False or (symbol.is_complex and symbol.is_real is None))
        if unreal or not plain:
            raise DeclarationError(
                f"The symbol {symbol} in {where} is declared {'complex' if unreal else 'non-commutative'}.",
                "real parameters",
                f'Symbol("{symbol}", positive=True) or Symbol("{symbol}", real=True)',
            )


class Count(Symbol):
    """What runs over 0, 1, 2, ... in the values of a law with countably many of them, and in their weights."""

    def __new__(cls, name: str, **_assumptions: Any) -> Count:
        """Return the symbol, whose assumptions are its own."""
        return super().__new__(cls, name, integer=True, nonnegative=True)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.name,)


def drawn_law(law: Any, name: str) -> Tuple | None:
    """The (value, weight) pairs of a discrete law of ``sympy.stats``; one with a `Count` where they are countable.

    None for anything else.  Weights of countably many values are exponentials of their logarithms, which neither
    overflow nor cancel where a value is large.
    """
    from sympy.stats import density
    from sympy.stats.rv import RandomSymbol

    if not isinstance(law, RandomSymbol):
        return None
    if law.pspace.is_Finite:
        return finite_law(dict(density(law).dict), name, exact_values=True)
    low = law.pspace.domain.set.inf
    if not law.pspace.is_Discrete or not low.is_Integer:
        return None
    value = Count("n") + low

    def logarithm(e: Expr) -> Expr:
        if isinstance(e, factorial | gamma):
            return log_gamma(e.args[0] + (1 if isinstance(e, factorial) else 0))
        return log(cancel(e))

    weight = density(law)(value).replace(binomial, lambda n, k: factorial(n) / factorial(k) / factorial(n - k))
    return Tuple(Tuple(value, exp(expand_log(log(weight), force=True).replace(log, logarithm))))


def _law_entry(value: Any, where: str, *, exact_values: bool) -> Expr:
    if isinstance(value, str):
        if _DECIMAL.fullmatch(value.strip()):
            return Rational(value.strip())
        raise DeclarationError(
            f"A string stands in {where}: {value!r}.", "numbers, and decimals such as '0.5' or '1/2'"
        )
    return exact(value, where) if exact_values else as_sympy(value, where)


def _vanishes(gap: Expr) -> bool:
    """Whether an expression is zero: by its form, or else at points where the symbols in it have any values."""
    if gap.simplify() == 0:
        return True
    named = gap.xreplace({q: Dummy(str(q), real=True) for q in gap.atoms(FewValued)})
    names = sorted(named.free_symbols, key=str)
    points = [{s: Rational(k + n, 7 + 3 * n) for n, s in enumerate(names)} for k in (1, 3)]
    return bool(names) and all(abs(named.xreplace(point).evalf(30)) < 1e-25 for point in points)


def finite_law(law: Mapping[Any, Any], name: str, *, exact_values: bool) -> Tuple:
    """Return a checked finite law as a Tuple of (value, weight) pairs.

    Parameters
    ----------
    law : mapping
        Weights by value.
    name : str
        The parameter's name, for messages.
    exact_values : bool
        Whether floats are refused (in a declaration) or not (at evaluation).
    """
    where = f"the law of {name}"
    pairs = [
        (_law_entry(v, where, exact_values=exact_values), _law_entry(q, where, exact_values=exact_values))
        for v, q in law.items()
    ]
    if not pairs:
        raise DeclarationError(f"The law of {name} is empty.", "non-negative weights that sum to one")
    negative = next(((v, q) for v, q in pairs if q.is_negative), None)
    if negative:
        raise DeclarationError(
            f"The law of {name} gives the value {negative[0]} the weight {negative[1]}.",
            "non-negative weights that sum to one",
        )
    total = sum((q for _, q in pairs), S.Zero)
    gap = total - 1
    wrong = abs(gap) > 1e-12 if gap.has(Float) else (gap.is_zero is False or not _vanishes(gap))
    if wrong:
        raise DeclarationError(
            f"The weights of the law of {name} sum to {told(total)}.",
            "non-negative weights that sum to one",
            f"divide each weight by {told(total)}" if total.is_positive else "",
        )
    return Tuple(*(Tuple(v, q) for v, q in pairs))
