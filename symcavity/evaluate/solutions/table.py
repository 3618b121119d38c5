"""A read-only mapping from names to numbers, in the order of a printed table; symbols and observables are read too."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any

from sympy import Symbol

from symcavity.algebra.precision import with_digits
from symcavity.errors import SymcavityError, ValuesError


class Unknowns(dict[Symbol, Any]):
    """The unknowns of a solution by symbol; called, the values of its table, as those of any mapping."""

    def __init__(self, found: Mapping[Symbol, Any], table: Callable[[], dict[str, Any]]) -> None:
        super().__init__(found)
        self._table = table

    def __call__(self) -> Any:
        """The values of the table, in its order."""
        return self._table().values()

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class SolutionTable(Mapping[str, Any]):
    """The unknowns of a solution, and what follows from them."""

    dps: int
    _values: Unknowns

    @abstractmethod
    def rows(self) -> list[tuple[Any, Any]]:
        """The rows of the table: symbols with their numbers."""

    @abstractmethod
    def number(self, key: Any) -> Any:
        """The number of an observable."""

    def numbers(self, keys: Sequence[Any]) -> list[Any]:
        """The numbers of several observables."""
        return [self.number(key) for key in keys]

    @abstractmethod
    def named(self) -> dict[str, Any]:
        """Everything that has a name and a value, by name."""

    @property
    def values(self) -> Unknowns:
        """Every unknown, by symbol; called, the numbers of the table."""
        return self._values

    @values.setter
    def values(self, found: Mapping[Symbol, Any]) -> None:
        self._values = Unknowns({s: with_digits(v, self.dps) for s, v in found.items()}, self.to_dict)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, int | float) and not isinstance(key, bool):
            raise ValuesError(f"A solution has no entry {key!r}.", f"names such as {next(iter(self))!r}, observables")
        return with_digits(self.number(key), self.dps)

    def __iter__(self) -> Iterator[str]:
        return iter([str(symbol) for symbol, _ in self.rows()])

    def __len__(self) -> int:
        return len(self.rows())

    def __contains__(self, key: Any) -> bool:
        if isinstance(key, str) or type(key) is Symbol:
            return str(key) in list(self)
        return key in self._values or key in dict(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return the table as a dictionary of numbers by name."""
        return {str(symbol): self[symbol] for symbol, _ in self.rows()}

    def keys(self) -> KeysView[str]:
        """The names of the table."""
        return self.to_dict().keys()

    def items(self) -> ItemsView[str, Any]:
        """The names of the table with their numbers."""
        return self.to_dict().items()

    def get(self, key: Any, default: Any = None) -> Any:
        """The number of a name or an observable, or a default where there is none."""
        try:
            return self[key]
        except SymcavityError:
            return default

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.named())

    __hash__ = object.__hash__
    __eq__ = object.__eq__
