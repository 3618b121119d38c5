"""The same data as an object of a class that has verbs."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def with_verbs(face: type[T], data: Any) -> T:
    """Return the same data as an object of the class that has the verbs."""
    out = object.__new__(face)
    vars(out).update(vars(data))
    return out
