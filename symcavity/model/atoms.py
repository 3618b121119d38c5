"""Declared things that are atomic SymPy objects with data of their own."""

from __future__ import annotations

from typing import Any, Self

from sympy import Atom


class DataAtom(Atom):
    """An atom that is identified by its data: no substitution reaches into it, and it can be pickled."""

    __slots__ = ("_data",)
    _data: tuple[Any, ...]

    @classmethod
    def _make(cls, *data: Any) -> Self:
        atom = Atom.__new__(cls)
        atom._data = data  # noqa: SLF001 - its own slot
        return atom

    def _hashable_content(self) -> tuple[Any, ...]:
        return self._data

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, self._data
