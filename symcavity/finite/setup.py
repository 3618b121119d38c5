"""The common data of all instances of a declaration: the system, checked values and sizes, the law of the couplings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from symcavity.errors import ValuesError
from symcavity.evaluate.numbers import whole_number, whole_numbers
from symcavity.finite.compiled import compile_system
from symcavity.finite.components import WrittenOut, write_out
from symcavity.finite.draw import Law, coupling_law
from symcavity.finite.given_values import Values, read_values
from symcavity.finite.instance import FRESH, Instance
from symcavity.method.kkt import optimality
from symcavity.model.problem import Problem
from symcavity.model.system import System

SMALLEST = 2  # features


def as_system(declared: Problem | System) -> System:
    """Return the system of a problem, or the system itself."""
    if isinstance(declared, Problem):
        return _optimality(declared)
    if isinstance(declared, System):
        return declared
    raise ValuesError(f"{declared!r} cannot be simulated.", "a ConvexProblem or a BipartiteSystem")
_optimality = lru_cache(maxsize=32)(optimality)  # one system a problem, so that it is compiled once


@dataclass(frozen=True)
class Setup:
    """What all instances of a simulation share; it travels to workers.

    Attributes
    ----------
    written : WrittenOut
        The declared system, and the one of numbers that is solved.
    values : Values
        Checked values.
    couplings, method, fresh : str or callable, str, int
        As in :func:`simulate`.
    """

    written: WrittenOut
    values: Values
    couplings: str | Law = "gaussian"
    method: str = ""
    fresh: int = FRESH

    @property
    def declared(self) -> System:
        """The system as it was declared."""
        return self.written.declared

    @property
    def system(self) -> System:
        """The system that is solved."""
        return self.written.system

    @property
    def law(self) -> Law:
        """What draws couplings of unit variance; it has been checked."""
        return coupling_law(self.couplings) if isinstance(self.couplings, str) else self.couplings

    def instance(self, features: int, seed: int) -> Instance:
        """Draw the instance of a seed."""
        return Instance(compile_system(self.system), self.values, features, seed, self.law, self.fresh)


def prepare(
    system: System, values: Mapping[Any, Any], couplings: str | Law = "gaussian", method: str = "", fresh: int = FRESH
) -> Setup:
    """Check the values of a simulation, its convex sets among them.

    Raises
    ------
    ValuesError
        If a value or a set is missing, superfluous, of a wrong kind or out of range.
    """
    written, rest = write_out(system, values)
    count = whole_number(fresh, "fresh", 1, "how many fresh sites are drawn")
    return Setup(written, read_values(written.system, rest), couplings, method, count)


def check_sizes(size: Any, values: Values) -> list[int]:
    """Return the numbers of features, in the order given."""
    if size is None:
        size = values.features
    if size is None:
        raise ValuesError("The number of features, N, is missing.", "N=400, or a list N=[100, 200, 400]")
    sizes = whole_numbers(size, "N", SMALLEST, f"whole numbers of at least {SMALLEST} features")
    for n in sizes:
        values.sizes(n)
    return sizes
