"""Many instances of one declaration: which are drawn, how they run, and what all ways of solving them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from symcavity.errors import ValuesError
from symcavity.evaluate.progress import Report
from symcavity.finite.draw import coupling_law, seed_list
from symcavity.finite.estimates import Extrapolation
from symcavity.finite.executors import run_all
from symcavity.finite.setup import Setup, check_sizes
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteIndex
from symcavity.model.system import System

T = TypeVar("T", bound="Instances")


@dataclass(frozen=True)
class Batch:
    """Which instances are drawn, checked before any of them is.

    Attributes
    ----------
    setup : Setup
    sizes : list of int
        The numbers of features.
    seeds : list of int
    """

    setup: Setup
    sizes: list[int]
    seeds: list[int]

    @property
    def size(self) -> int:
        """The one number of features; raises ValuesError where there are several."""
        if len(self.sizes) != 1:
            raise ValuesError(f"N = {self.sizes}.", "one number of features")
        return self.sizes[0]

    @classmethod
    def of(cls, setup: Setup, N: Any, seeds: int | Iterable[int]) -> Batch:
        """Read sizes and seeds, and check the law of the couplings.

        Raises
        ------
        ValuesError
            For sizes, seeds or couplings that cannot be drawn.
        """
        found = cls(setup, check_sizes(N, setup.values), list(seed_list(seeds)))
        coupling_law(setup.couplings)
        return found

    def run(
        self,
        one: Callable[..., Any],
        shared: Any,
        executor: Any,
        progress: bool | Report | None = None,
        lost: Callable[[Any, str], Any] | None = None,
    ) -> dict[int, list[Any]]:
        """Solve every instance by ``one(shared, (features, seed))``: by size the results, in the order of the seeds."""
        found: dict[tuple[int, int], Any] = {}
        tasks = [(n, seed) for n in self.sizes for seed in self.seeds]
        run_all(executor, one, shared, tasks, found.__setitem__, progress=progress, lost=lost)
        return {n: [found[n, seed] for seed in self.seeds] for n in self.sizes}


class Instances:
    """Instances of one declaration at one size.

    Parameters
    ----------
    setup : Setup
        What they share.
    counts : dict
        The number of sites of each kind.
    """

    def __init__(self, setup: Setup, counts: dict[Kind, int]) -> None:
        self.setup, self.system, self.counts = setup, setup.declared, counts

    @property
    def N(self) -> int:
        """The number of features, in which the other sizes are counted."""
        return self.counts[FEATURE]

    @property
    def P(self) -> int:
        """The number of data."""
        return self.counts[DATUM]

    def count(self, index: SiteIndex) -> int:
        """Return the number of sites of the kind with an index."""
        return self.counts[index.kind]

    @property
    def load(self) -> float:
        """The load P/N, after rounding P."""
        return self.P / self.N

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of features."""
        return (self.N,)

    @property
    def _fewest(self) -> int:
        """The number of sites of the smallest kind."""
        return min(self.counts.values())

    @property
    def _sizes_in_words(self) -> str:
        """The sizes: N = 200, P = 400."""
        return ", ".join(f"{kind.size} = {n}" for kind, n in self.counts.items())


class AtSizes(Generic[T]):
    """Instances of one declaration at several sizes; an observable is extrapolated in 1/N.

    Where couplings have a mean of order ``1/sqrt(N)``, it is extrapolated in this.

    Attributes
    ----------
    by_size : dict
        The instances at each number of features.
    """

    def __init__(self, by_size: dict[int, T]) -> None:
        self.by_size = dict(sorted(by_size.items()))
        self.largest = self.by_size[max(self.by_size)]
        self.system: System = self.largest.system
        self.setup = self.largest.setup

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of features."""
        return tuple(self.by_size)

    def _extrapolated(self, read: Callable[[T], Any]) -> Extrapolation:
        """What is read at each size, in the limit of large sizes."""
        root = bool(self.system.rewritten["centre"].balances)
        return Extrapolation({n: read(sim) for n, sim in self.by_size.items()}, root)

    def __getitem__(self, observable: Any) -> Extrapolation:
        return self._extrapolated(lambda sim: sim[observable])  # type: ignore[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.by_size.values())

    def __str__(self) -> str:
        return "\n".join(map(str, self.by_size.values()))

    __repr__ = __str__


def listed(seeds: Iterable[int], shown: int = 8) -> str:
    """Name seeds, the first of them."""
    named = [str(s) for s in seeds]
    return f"seed{'s' if len(named) > 1 else ''} {', '.join(named[:shown])}{', ...' if len(named) > shown else ''}"
