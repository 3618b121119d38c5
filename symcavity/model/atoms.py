"""Declared things that are atomic SymPy objects with data of their own."""

from __future__ import annotations

from typing import Any, Self

from sympy import Atom


def entry(k: int, says: str) -> Any:
    """What an atom holds at one place of its data, by a name of its own."""
    return property(lambda atom: atom._data[k], doc=says)  # noqa: SLF001 - the slot of the class below


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


class NamedAtom(DataAtom):
    """One that is shown by its name, the first entry of its data."""

    name: str = entry(0, "The declared name.")

    def __repr__(self) -> str:
        return self.name

    def _sympystr(self, _printer: Any) -> str:
        return self.name
