"""Time: the one index that a declaration keeps, and that has an order."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sympy import Expr, S, Symbol

from symcavity.algebra.door import as_sympy
from symcavity.errors import DeclarationError


class Time(Symbol):
    """A time that states are declared over: ``t = Time("t"); x = Variable("x", i, over=t)``, and then ``x[i, t]``.

    Parameters
    ----------
    name : str
        Its name.  A second one, ``s = Time("s")``, stands for the other time of two in observables.

    Notes
    -----
    In steps it is the number of the step, and equations such as ``Eq(x[i, t + 1], ...)`` hold for t = 0, 1, 2, ...

    Examples
    --------
    >>> from symcavity import Time, Variable, i
    >>> t = Time('t')
    >>> Variable('x', i, over=t)[i, t + 1]
    x[i, t + 1]
    """

    __slots__ = ()

    def __new__(cls, name: Any) -> Time:
        """Return the symbol, read and checked."""
        if not isinstance(name, str) or not name.isidentifier() or name in ("i", "N", "mu", "P", "alpha"):
            raise DeclarationError(f"A time is declared with the name {name!r}.", 'an identifier: t = Time("t")')
        return Symbol.__xnew__(cls, name, real=True)

    def __getnewargs_ex__(self) -> Any:
        return (self.name,), {}


def times_in(expr: Any) -> list[Time]:
    """The times in an expression, by name."""
    return sorted(expr.atoms(Time), key=lambda t: t.name)


def other_times(t: Time) -> tuple[Time, Time]:
    """Two more times beside one, by letters that no message has: ``u`` is what a nonlinear one is called."""
    first, second = [Time(name) for name in ("s", "r", "t") if name != t.name][:2]
    return first, second


def read_time(entry: Any, name: str, over: Time) -> Expr:
    """Read the time of a quantity: a time, a whole number of steps before or after it, or a number.

    Raises
    ------
    DeclarationError
        If it is anything else.
    """
    found = as_sympy(entry, f"The time of {name}")
    if isinstance(found, Expr):
        moving = found.atoms(Time)
        rest = found.xreplace(dict.fromkeys(moving, S.Zero))
        if len(moving) < 2 and rest.is_Integer and (not moving or found - rest in moving):
            return found
    raise DeclarationError(
        f"{name} is taken at the time {entry!r}.",
        "the time itself, whole steps before or after it, whole numbers",
        f"{over}, {over + 1}, {over - 1}, 0",
    )


@lru_cache(maxsize=4096)  # asked of every state at every step of a run
def _lag_and_clock(when: Expr) -> tuple[int, bool]:
    """By how many steps a time is later than the time symbol in it, and whether there is one."""
    return int(when.xreplace(dict.fromkeys(when.atoms(Time), S.Zero))), bool(when.free_symbols)


def lag_of(when: Expr) -> int:
    """By how many steps a time is later than the time symbol in it."""
    return _lag_and_clock(when)[0]


def step_of(when: Any, step: int) -> int:
    """The step that a time stands for, where the time symbol in it, if there is one, is at a step."""
    lag, moves = _lag_and_clock(when)
    return lag + step if moves else lag
