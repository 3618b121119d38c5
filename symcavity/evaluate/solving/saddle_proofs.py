"""Proofs by the steps towards a saddle: that there is no solution, or no unique one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sympy import Symbol

from symcavity.evaluate.tolerances import tolerances
from symcavity.model.quantities import Global

DOUBLED = 40  # how many times a load is doubled, or halved, to find one with a solution


@dataclass(frozen=True)
class NoSolution:
    """What proves that there is no solution.

    Attributes
    ----------
    way : str
        Where the load has to go: ``'smaller'``, ``'larger'``, or empty where another load does not help.
    wanted : float
        The load.
    values : dict
        The order parameters and global variables where the steps ended.
    """

    way: str
    wanted: float
    values: dict[Symbol, float]
    solvable: Callable[[float], bool] = field(compare=False, repr=False)
    is_at_rest = False
    still = False
    vanishing: tuple[Symbol, ...] = ()

    @cached_property
    def load(self) -> float:
        """The load at which solutions end, found by halving; not a number where none was found."""
        if not self.way or not np.isfinite(self.wanted):
            return float("nan")
        factor = 0.5 if self.way == "smaller" else 2.0
        there, here = self.wanted * factor, self.wanted
        for _ in range(DOUBLED):
            if self.solvable(there):
                break
            there, here = there * factor, there
        else:
            return float("nan")
        while abs(there - here) > tolerances().beside * there:
            middle = (there + here) / 2
            there, here = (middle, here) if self.solvable(middle) else (there, middle)
        return there


@dataclass(frozen=True)
class Contradiction(NoSolution):
    """Constraints that contradict each other: multipliers with which they add up to what is false.

    Attributes
    ----------
    missed : tuple of (str, float)
        Each condition with a multiplier, and by how much it is missed at best, per feature: these numbers are the
        multipliers, too.
    """

    missed: tuple[tuple[str, float], ...] = ()
    diverging: tuple[Symbol, ...] = ()

    def __str__(self) -> str:
        names = [name for name, _ in self.missed]
        sizes = ", ".join(f"{abs(size):.3g}" for _, size in self.missed)
        if len(names) == 1:
            return (
                f"{names[0][0].upper()}{names[0][1:]} cannot be met together with what holds at each site: at best "
                f"{sizes} are missing, per feature."
            )
        return (
            f"{names[0][0].upper()}{names[0][1:]} and {' and '.join(names[1:])} contradict each other: at best {sizes} "
            "are missing, per feature, and with these numbers as multipliers they add up to what is false."
        )


@dataclass(frozen=True)
class Descent(NoSolution):
    """A direction along which the objective falls for ever.

    Attributes
    ----------
    diverging : tuple of Symbol
        The order parameters and global variables that grow along it.
    rate : float
        By how much it falls, per feature, along a direction of length one.
    """

    diverging: tuple[Symbol, ...] = ()
    rate: float = 0.0

    def __str__(self) -> str:
        names = " and ".join(map(str, self.diverging))
        return f"The objective falls for ever, by {self.rate:.3g} per feature and unit of length, as {names} grow."


@dataclass(frozen=True)
class Flat(NoSolution):
    """A minimum that is flat: no force is left at it, and nothing fixes the states.

    Attributes
    ----------
    fields : tuple of str
        The sums whose hearers send nothing back.
    diverging : tuple of Symbol
        The order parameters that the minimum leaves open.
    """

    fields: tuple[str, ...] = ()
    diverging: tuple[Symbol, ...] = ()
    is_attained = True

    def __str__(self) -> str:
        return (
            f"The minimum is flat: the slopes of all terms of {' and '.join(self.fields)} vanish there, and nothing "
            f"fixes the states, nor {' and '.join(map(str, self.diverging))}."
        )


@dataclass(frozen=True)
class Unattained(Flat):
    """An infimum that is not attained: the slopes of terms vanish at infinity only, and all forces with them."""

    is_attained = False

    def __str__(self) -> str:
        return (
            f"There is no minimum: the slopes of all terms of {' and '.join(self.fields)} go to zero, and some of them "
            f"are zero nowhere. The objective falls towards its infimum as {' and '.join(map(str, self.diverging))} "
            + ("grows." if all(isinstance(s, Global) for s in self.diverging) else "grow: nothing fixes the states.")
        )
