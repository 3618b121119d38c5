"""Declarations are equal by their content, and offer users no internal attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

T = TypeVar("T")


class ByContent:
    """A class whose objects are equal where all is equal that was read; what was derived since does not count."""

    name: str
    fixed: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and _read(self) == _read(other))

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name, self.fixed))


def _read(declared: Any) -> dict[str, Any]:
    found = vars(declared).items()
    return {k: v for k, v in found if not isinstance(getattr(type(declared), k, None), cached_property)}


def without(*names: str) -> Callable[[type[T]], type[T]]:
    """Leave the machinery of a class out of completion and of the reference: ``@without("name", ...)``."""

    def offered(self: Any) -> list[str]:
        return [name for name in object.__dir__(self) if name not in names and name != "MACHINERY"]

    def mark(cls: type[T]) -> type[T]:
        setattr(cls, "MACHINERY", frozenset(names))  # noqa: B010 - classes do not declare it
        setattr(cls, "__dir__", offered)  # noqa: B010
        return cls

    return mark
