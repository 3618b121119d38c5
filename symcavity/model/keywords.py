"""Arguments by name that a declaration or a verb does not have: refused in the words of the package."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from symcavity.errors import DeclarationError, SymcavityError, ValuesError

Args = ParamSpec("Args")
Result = TypeVar("Result")

# what users of other packages type first
_MEANT = {
    "maximize": "minimize=-(...), the negative of what is to be large",
    "maximise": "minimize=-(...), the negative of what is to be large",
    "constraints": "subject_to=[...]",
    "digits": "dps=50, the number of decimal digits",
    "precision": "dps=50, the number of decimal digits",
    "distribution": "law={1: Rational(1, 2), -1: Rational(1, 2)}, or a random variable of sympy.stats",
    "n_instances": "seeds=20, the number of instances",
    "instances": "seeds=20, the number of instances",
    "distinct": "values=(-1, 1)",
}


def known_words(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Refuse arguments by name that a declaration does not have, and say which was meant."""
    return _checked(function, DeclarationError, "")


def known_options(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Refuse arguments by name that a verb does not have: a parameter takes its value in the dictionary."""
    return _checked(function, ValuesError, "values of parameters stand in a dictionary: {}({{{}: ...}})")


def _checked(
    function: Callable[Args, Result], error: type[SymcavityError], otherwise: str
) -> Callable[Args, Result]:
    names = [name for name in signature(function).parameters if name not in ("self", "cls", "system", "declared")]
    lower = {name.lower(): name for name in names}

    @wraps(function)
    def checked(*args: Args.args, **kwargs: Args.kwargs) -> Result:
        for name in kwargs:
            if name not in names:
                called = _called(function, args)
                near = [f"{lower[word]}=..." for word in get_close_matches(name.lower(), lower, n=1)]
                hint = _MEANT.get(name) or (near[0] if near else otherwise.format(called, name))
                raise error(f"{called} has no argument {name}.", ", ".join(names), hint)
        return function(*args, **kwargs)

    return checked


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What the user called: a function, or the class that is made, which may be derived from the one that reads it.

    ``simulate_moving`` serves ``simulate``.
    """
    if function.__name__ == "__init__":
        return type(args[0]).__name__
    return str(args[0].__name__ if function.__name__ == "__new__" else function.__name__.split("_")[0])
