"""Points at which something has no value: averages that do not converge there, and divisions by zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from symcavity.errors import NotConverged

T = TypeVar("T")


def where_defined(call: Callable[..., T], *args: Any, also: tuple[type[Exception], ...] = ()) -> T | None:
    """What a call gives; None where that has no value.

    Parameters
    ----------
    call : callable
    *args : object
        Its arguments.
    also : tuple of exception classes
        What else says that there is no value, such as ``TypeError`` for the root of a negative number.

    Examples
    --------
    >>> where_defined(lambda x: 1 / x, 0)
    """
    no_value: tuple[type[Exception], ...] = (NotConverged, ArithmeticError, *also)
    try:
        return call(*args)
    except no_value:
        return None
