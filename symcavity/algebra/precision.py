"""Numbers of many digits are the engine's own: the user's ``mpmath.mp`` is read, and never changed.

The engine has one mpmath context, ``mp``, whose precision whoever changes it does so alone.  A number that leaves it
is made one of the user's (``given_out``); where numbers of two contexts meet, mpmath would silently compute at the
precision of the left one, so what comes in passes through ``mp.convert``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from typing import Any

import mpmath
from mpmath.ctx_mp import MPContext
from mpmath.ctx_mp_python import _mpf
from sympy import lambdify
from sympy.printing.pycode import MpmathPrinter
from sympy.utilities.lambdify import MPMATH_TRANSLATIONS


class _Alone(ContextDecorator):
    """A section, or a function, that one thread at a time is in; a thread may enter again what it is in."""

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):  # the thread that held it does not exist in the child
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


alone = _Alone()


class _Sound(MPContext):
    """A context whose logarithm is that of a number a little above 1/4, too: mpmath 1.3 takes it for one above 1."""

    def init_builtins(self) -> None:
        super().init_builtins()
        self.ln = self._wrap_libmp_function(_log, mpmath.libmp.mpc_log)


def _log(x: Any, prec: int, rounding: str = "n") -> Any:
    """The logarithm; of a number between 1/4 and 1/2 with no more digits than it is asked for, where none cancel."""
    _, _, exponent, bits = x
    rounded = mpmath.libmp.mpf_pos(x, prec + 5, "n") if exponent + bits == -1 else x
    return mpmath.libmp.mpf_log(rounded, prec, rounding)


class _Own(_Sound):
    """A context whose precision is changed by one thread at a time."""

    @contextmanager
    def workdps(self, n: int) -> Iterator[None]:
        with alone, super().workdps(n):
            yield

    @contextmanager
    def workprec(self, n: int) -> Iterator[None]:
        with alone, super().workprec(n):
            yield


mp = _Own()
_LOCAL = threading.local()
SHOWN_BY_MPMATH = 15

# what generated code calls; functions of our own that print themselves add theirs
GENERATED = {name: getattr(mp, name) for name in dir(mp) if not name.startswith("_")}
GENERATED |= {name: GENERATED[other] for name, other in MPMATH_TRANSLATIONS.items() if other in GENERATED}
_PRINTED = {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True}


def _again(raw: tuple[Any, ...]) -> Any:
    return mp.make_mpf(raw)


# a context's own type of numbers is none of its module's, so that pickle does not find it
mp.mpf.__reduce__ = lambda self: (_again, (self._mpf_,))


def context(prec: int) -> Any:
    """Return this thread's mpmath context of a precision in bits."""
    known = _LOCAL.__dict__.setdefault("contexts", {})
    if prec not in known:
        known[prec] = _Sound()
        known[prec].prec = prec
    return known[prec]


def given_out(value: Any) -> Any:
    """Return a number of any context as one of the user's, digit by digit; anything else as it is."""
    if hasattr(value, "_mpf_"):
        return mpmath.mp.make_mpf(value._mpf_)
    return mpmath.mp.make_mpc(value._mpc_) if hasattr(value, "_mpc_") else value


class Digits(mpmath.mpf):
    """A number of mpmath that is shown with the digits that it is known to; what is computed from it is not."""

    digits: int

    def __str__(self) -> str:
        return mpmath.libmp.to_str(self._mpf_, self.digits)

    def __repr__(self) -> str:
        return f"mpf('{self}')"

    def __reduce__(self) -> tuple[Any, ...]:
        return with_digits, (self._mpf_, self.digits)


def with_digits(value: Any, digits: int) -> Any:
    """Return a number as one of the user's, which shows its digits; up to 15 all numbers do."""
    raw = value if isinstance(value, tuple) else getattr(value, "_mpf_", None)
    if raw is None or digits <= SHOWN_BY_MPMATH:
        return given_out(value)
    found = object.__new__(Digits)
    found._mpf_, found.digits = raw, digits
    return found


def exact_function(arguments: Any, expr: Any) -> Any:
    """Return an expression as a function of numbers of the engine's context."""
    return lambdify(arguments, expr, [GENERATED], printer=MpmathPrinter(_PRINTED))


def digits_of_user() -> int:
    """How many digits the user's own mpmath works with now."""
    return int(mpmath.mp.dps)


def is_mpf(value: Any) -> bool:
    """Whether a value is a real number of some mpmath context."""
    return isinstance(value, _mpf)
