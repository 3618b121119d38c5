"""Values of a user as SymPy objects: numbers and expressions are accepted, and no text is ever evaluated.

SymPy's own ``sympify`` executes texts, also those that stand inside of tuples, lists and mappings, and its
constructors call it on whatever they are given.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np
from sympy import Basic, Rational, SympifyError, sympify
from sympy.matrices import MatrixBase

from symcavity.algebra.precision import is_mpf
from symcavity.errors import DeclarationError, ValuesError

NUMBER = re.compile(
    r"[+-]?(\d{1,1000}(\.\d{0,1000})?|\.\d{1,1000})([eE][+-]?\d{1,4})?(/\d{1,1000})?", re.ASCII
)
NUMBERS = "exact decimals or fractions: 2, 0.1, 1e-3, 1/2"
LARGEST = Fraction(10) ** 300  # beyond it a double overflows, and so does what is made of it
SMALLEST = Fraction(1, 10**5000)  # in double it is zero, and a start of searches in many digits
_LONG = 60  # characters of a number in an error
SUPPORTED = "SymPy expressions and numbers; a text would have to be executed to be understood"


def is_number(value: Any) -> bool:
    """Whether a value is one number of Python, NumPy or mpmath, or a truth value."""
    return isinstance(value, Number | Decimal | np.bool_) or is_mpf(value)


def as_sympy(value: Any, what: str = "An expression") -> Any:
    """A value as SymPy's object.

    Parameters
    ----------
    value : object
        An expression, a number, or what says itself how SymPy writes it (``_sympy_``).
    what : str
        What the value is, for the message.

    Raises
    ------
    DeclarationError
        For texts, containers, and anything else.
    """
    if isinstance(value, Basic | MatrixBase):
        return value
    if isinstance(value, np.bool_):
        return sympify(bool(value))
    if is_number(value):
        try:
            return sympify(value, strict=True)
        except (SympifyError, TypeError, ValueError):
            pass
    elif isinstance(written := getattr(value, "_sympy_", lambda: None)(), Basic | MatrixBase):
        return written
    raise DeclarationError(f"{what} is {value!r:.80}, a {type(value).__name__}.", SUPPORTED)


def read_number(text: str, name: str, supported: str = NUMBERS) -> Rational:
    """Read an exact number.

    Parameters
    ----------
    text : str
        A decimal, a fraction, or a decimal with an exponent.
    name : str
        What it is a value of, for the message.
    supported : str
        What may stand there, for the message.

    Raises
    ------
    ValuesError
        If it is anything else, or of a size that double does not hold.
    """
    stripped = re.sub(r"\s*/\s*", "/", text.strip())
    if not NUMBER.fullmatch(stripped) or ("/" in stripped and not re.fullmatch(r"[+-]?\d+/\d+", stripped)):
        raise ValuesError(f"The value of {name} is {text[:60]!r}, which is not a number.", supported)
    try:
        value = Fraction(stripped)
    except ZeroDivisionError:
        raise ValuesError(f"The value of {name} is {text[:60]!r}, a division by zero.", supported) from None
    return within_reach(Rational(value), name)


def within_reach(value: Any, name: str) -> Any:
    """A rational number that is not too large for double, nor too small to be written down; zero is one."""
    check_size(abs(Fraction(int(value.p), int(value.q))), value, name, SMALLEST, "1e-5000")
    return value


def in_double(value: Any, name: str) -> float:
    """A number as a double, which has to hold it.

    Raises
    ------
    ValuesError
        If it is so small or so large that a double would be zero or infinite.
    """
    check_size(abs(value), value, name, 1 / LARGEST, "1e-300")
    return float(value)


def check_size(size: Any, value: Any, name: str, least: Any, said: str) -> None:
    """Refuse a number that is smaller or larger than what is supported."""
    if size and not least <= size <= LARGEST:
        raise ValuesError(f"The value of {name} is {told(value)}.", f"zero, and numbers from {said} to 1e300 in size")


def told(value: Any) -> str:
    """A number in a few characters."""
    try:
        written = str(value)
        if len(written) <= _LONG:
            return written
        return f"about {value.evalf(3)}".lower() if getattr(value, "is_Number", False) else f"{written[: _LONG - 3]}..."
    except ValueError:  # more digits than Python writes
        return f"a number of {int(value.p).bit_length()} over {int(value.q).bit_length()} binary digits"
