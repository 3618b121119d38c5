"""One number, and one law of a quenched parameter, as a user gives them: exact where they are, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from sympy import Basic, Expr, Float, Integer, Rational, Symbol, Tuple

from symcavity.algebra.door import LARGEST, SMALLEST, as_sympy, check_size, in_double, read_number, told, within_reach
from symcavity.algebra.precision import is_mpf, mp
from symcavity.errors import DeclarationError, ValuesError
from symcavity.evaluate.constants import IN_DOUBLE
from symcavity.model.exact import is_random
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import Quenched, finite_law

TEXTS = "exact decimals and fractions: '0.1', '1e-3', '1/2'"
NUMBERS = "a number: int, Fraction, Rational, decimal string, or float"
LAWS = "a number, a dictionary {value: weight}, an array with one entry a site, or a SymPy distribution"
FACTS: tuple[str, ...] = (
    *("integer", "noninteger", "even", "odd", "prime", "composite"),
    *("rational", "irrational", "algebraic", "transcendental"),
)
"""What a symbol may be declared to be, beside its sign, and a number is or is not."""


def exact_value(value: Any, name: str, dps: int) -> Any:
    """Read one number: exact types stay exact, floats are taken up to 15 digits and refused above.

    Returns
    -------
    sympy Rational or Expr for exact values, float for floats.
    """
    if isinstance(value, bool | np.bool_):
        raise ValuesError(f"The value of {name} is {value}.", "numbers")
    if isinstance(value, str):
        return read_number(value, name, TEXTS)
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value.item()
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = value.real
    if isinstance(value, Fraction):
        return within_reach(Rational(value.numerator, value.denominator), name)
    if isinstance(value, int | np.integer):
        return within_reach(Rational(int(value)), name)
    if isinstance(value, Decimal) and value.is_finite():
        return read_number(str(value), name, TEXTS)
    if isinstance(value, float | np.floating | Float):
        if dps > IN_DOUBLE:
            raise ValuesError(
                f"The value of {name} is the float {float(value)!r}, and {dps} digits are requested.",
                "exact values above 15 digits: integers, fractions, decimal strings",
                f"{name} = '{float(value)!r}'",
            )
        if not np.isfinite(float(value)):
            raise ValuesError(f"The value of {name} is {value}.", "finite numbers")
        in_double(float(value), name)
        return float(value)
    if is_mpf(value):
        if not mp.isfinite(value):
            raise ValuesError(f"The value of {name} is {value}.", "finite numbers")
        return within_reach(Rational(*_mpf_ratio(value)), name)
    if isinstance(value, list | tuple | np.ndarray):
        raise ValuesError(
            f"The value of {name} is {value!r:.80}, which are several.",
            NUMBERS,
            f"theory.sweep({{{name}: [...]}}), or theory.function(..., {name}), which takes arrays",
        )
    if not isinstance(value, Expr) or value.free_symbols or not value.is_real:
        raise ValuesError(f"The value of {name} is {value!r:.80}.", NUMBERS)
    if value.has(Float):
        return exact_value(float(value), name, dps)
    if value.is_Rational:
        return within_reach(value, name)
    check_size(abs(value.evalf(15)), value, name, SMALLEST, "1e-5000")
    return value


def whole_number(value: Any, name: str, least: int, supported: str = "") -> int:
    """Read a whole number that is not smaller than ``least``; texts, fractions and truth values are refused."""
    counted = isinstance(value, int | float | np.integer | np.floating | Fraction | Rational) or is_mpf(value)
    if not counted or isinstance(value, bool) or not abs(value) < LARGEST or value != int(value) or value < least:
        raise ValuesError(f"{name} = {value!r:.80}.", supported or f"a whole number of at least {least}")
    return int(value)


def whole_numbers(values: Any, name: str, least: int, supported: str) -> list[int]:
    """Read whole numbers, one or several, which differ."""
    several = isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray | Mapping)
    found = [whole_number(v, name, least, supported) for v in (values if several else (values,))]
    if not found or len(set(found)) != len(found):
        raise ValuesError(f"{name} = {values!r:.80}.", f"different numbers: {supported}")
    return found


def _mpf_ratio(value: Any) -> tuple[int, int]:
    sign, man, exponent, _ = value._mpf_
    number = -man if sign else man
    return (int(number) << exponent, 1) if exponent >= 0 else (int(number), 1 << -exponent)


def check_sign(symbol: Symbol, value: Any, *, edges: bool = True) -> None:
    """Refuse a value that contradicts what its symbol was declared to be.

    Parameters
    ----------
    symbol : Symbol
    value : number
    edges : bool
        Whether 0 counts as the edge of the positive numbers, and of the negative ones.
    """
    if wrong := _contradiction(symbol, value, edges=edges):
        raise ValuesError(f"{symbol} = {told(value)}, but it was declared {wrong}.", f"a value that is {wrong}")


def _contradiction(symbol: Symbol, value: Any, *, edges: bool) -> str:
    """What a symbol was declared to be, and a value is not; an empty text where there is nothing."""
    zero = bool(value == 0)
    if (symbol.is_positive and (value < 0 or (zero and not edges))) or (isinstance(symbol, SiteCount) and zero):
        return "positive"
    if symbol.is_nonnegative and value < 0:
        return "nonnegative"
    if symbol.is_nonpositive and (value > 0 or (zero and symbol.is_negative and not edges)):
        return "negative" if symbol.is_negative else "nonpositive"
    if zero and symbol.is_nonzero and not (symbol.is_positive or symbol.is_negative):
        return "nonzero"
    facts, number = FACTS, as_sympy(value)
    if isinstance(value, float):  # which stands for a real number nearby, unless it is a whole one
        facts, number = FACTS[:6], Integer(int(value)) if value == int(value) else Rational(value)
    for fact in facts:
        told_of, found = getattr(symbol, f"is_{fact}"), getattr(number, f"is_{fact}")
        if told_of and found is False:
            return f"a{'n' if fact[0] in 'aeio' else ''} {fact}" if fact == "integer" else fact
    return ""


def is_one_number(value: Any) -> bool:
    """Whether a quenched parameter is given by a number, or its text, which is its value at every site."""
    plain = isinstance(value, int | float | str | Fraction | Decimal | np.integer | np.floating) or is_mpf(value)
    point = isinstance(value, np.ndarray) and not value.ndim
    return (plain and not isinstance(value, bool)) or point or (isinstance(value, Expr) and bool(value.is_number))


def read_law(q: Quenched, value: Any, dps: int) -> Any:
    """Read what a user gives for a quenched parameter.

    Returns
    -------
    Tuple of (value, weight)
        A finite law; one number has the weight one.
    random variable
        Of ``sympy.stats``.
    ndarray of doubles, or list of exact numbers
        One entry a site.

    Raises
    ------
    ValuesError
        For anything else.
    """
    if value is None:
        hint = f"{{{q.name}: {{1: '1/2', -1: '1/2'}}}}"
        raise ValuesError(f"The quenched parameter {q.name} has no value.", LAWS, hint)
    if is_random(value):
        return value
    if is_one_number(value):
        value = {value.item() if isinstance(value, np.ndarray) else value: 1}
    if isinstance(value, Tuple) and value and all(isinstance(e, Tuple) and len(e) == 2 for e in value):
        value = dict(value)
    if isinstance(value, Mapping):
        return _finite(value, q, dps)
    return _array(q, value, dps)


def _finite(law: Mapping[Any, Any], q: Quenched, dps: int) -> Tuple:
    """Read a dictionary value -> weight."""
    exact = {exact_value(v, q.name, dps): exact_value(w, f"a weight of {q.name}", dps) for v, w in law.items()}
    if len(exact) != len(law):
        raise ValuesError(f"A value stands twice in the law of {q.name}.", "one weight for each value")
    try:
        return finite_law(exact, q.name, exact_values=False)
    except DeclarationError as problem:
        raise ValuesError(problem.found, problem.supported, problem.hint) from None


def _array(q: Quenched, value: Any, dps: int) -> Any:
    """Read one number a site."""
    words = f"one number for each of the {q.slots[0].size} sites"
    if isinstance(value, np.ma.MaskedArray):
        if np.ma.is_masked(value):
            raise ValuesError(f"{int(np.sum(np.ma.getmaskarray(value)))} values of {q.name} are masked.", words)
        value = np.ma.getdata(value)
    single = isinstance(value, bool | bytes | bytearray | set | frozenset) or not hasattr(value, "__len__")
    if single or (isinstance(value, Basic) and not isinstance(value, Tuple)):
        raise ValuesError(
            f"The values of {q.name} are {value!r:.80}, a {type(value).__name__}.",
            LAWS,
            f"{{{q.name}: 1}} for one value at every site",
        )
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise ValuesError(f"The values of {q.name} are an array of shape {value.shape}.", words)
        if value.dtype.kind == "f" and dps <= 15:
            if not np.all(np.isfinite(value)):
                raise ValuesError(f"The values of {q.name} are not finite numbers everywhere.", words)
            return np.asarray(value, dtype=float)
    if not len(value):
        raise ValuesError(f"The array of {q.name} is empty.", words)
    if nested := [v for v in value if hasattr(v, "__len__") and np.ndim(v) and not isinstance(v, str)]:
        raise ValuesError(f"The values of {q.name} do not have the shape of a list: {nested[0]!r:.60} is one.", words)
    return [exact_value(v, q.name, dps) for v in value]


def brief(value: Any) -> str:
    """Return a value in a few words: long arrays by their number of entries."""
    if is_random(value):
        return str(value.pspace.distribution).replace("Distribution", "", 1)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    if hasattr(value, "__len__") and not isinstance(value, str) and getattr(value, "shape", None) != ():
        entries = [f"{v:.6g}" if isinstance(v, float) else str(v) for v in value]
        return f"[{', '.join(entries)}]" if len(entries) <= 6 else f"{len(entries)} values"
    return str(value)
