"""Evidence that there is no solution: the range of the load, a sign, the end of a branch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sympy import Symbol

from symcavity.evaluate.tolerances import tolerances


@dataclass(frozen=True)
class LoadRange:
    """The loads that exist over all values of an unknown parameter: the requested one is not among them.

    Attributes
    ----------
    parameter : Symbol
    wanted, lowest, highest : float
        The requested load, and the ends of the range.
    sampled : int
        At how many values of the parameter the load was computed.
    """

    parameter: Symbol
    wanted: float
    lowest: float
    highest: float
    sampled: int
    is_at_rest: bool = False

    @property
    def excludes(self) -> bool:
        """Whether the requested load is outside, or at an end that is reached in a limit only."""
        edge = tolerances().edge
        return not self.lowest * (1 + edge) < self.wanted < self.highest * (1 - edge)

    @property
    def way(self) -> str:
        """Where the load has to go."""
        return "smaller" if self.wanted >= self.highest * (1 - tolerances().edge) else "larger"

    def __str__(self) -> str:
        if self.way == "smaller":
            return f"Over all {self.parameter} the load alpha ranges up to the capacity {self.highest:.6g}."
        return f"Over all {self.parameter} the load alpha is at least {self.lowest:.6g}."


@dataclass(frozen=True)
class BranchEnd:
    """Where a solution ends that was followed continuously along the load: what was seen, and no proof.

    Attributes
    ----------
    load : float
        The last load with a solution, on the way to the requested one.
    wanted : float
    vanishing, diverging : tuple of Symbol
        The unknowns that go to zero, and to infinity, there.
    still : bool
        Whether a second moment of states is among what vanishes.
    values : dict
        All unknowns at the last load.
    """

    load: float
    wanted: float
    vanishing: tuple[Symbol, ...]
    diverging: tuple[Symbol, ...]
    still: bool
    values: dict[Symbol, float]

    @property
    def way(self) -> str:
        """Where the load has to go."""
        return "smaller" if self.wanted > self.load else "larger"

    @property
    def is_at_rest(self) -> bool:
        """Whether the states may vanish beyond, in place of a solution that does not exist."""
        return self.still and not (self.way == "larger" and self.diverging)

    def __str__(self) -> str:
        side = "weak" if self.way == "smaller" else "large"
        text = f"Followed from {side} loads, the solution ends near alpha = {self.load:.4g}"
        if self.vanishing:
            text += f", where {_listed(self.vanishing)} vanish{'es' if len(self.vanishing) == 1 else ''}"
        if self.diverging:
            text += f"{' and' if self.vanishing else ', where'} {_listed(self.diverging)} "
            text += "diverges" if len(self.diverging) == 1 else "diverge"
        if self.way == "larger" and self.diverging:
            return text + ": below, the minimum may be flat, and nothing may fix the states."
        if self.is_at_rest:
            return text + ": beyond, the minimum may be at zero."
        return text + "."


@dataclass(frozen=True)
class OnlyRoot:
    """The only solution of the equations, which elimination gives explicitly, and the sign that it violates.

    Attributes
    ----------
    values : dict
    complaint : str
    """

    values: dict[Symbol, float]
    complaint: str
    way: str = ""
    is_at_rest: bool = False

    def __str__(self) -> str:
        return f"The equations have one solution only, and there {self.complaint}."


@dataclass(frozen=True)
class NothingButZero:
    """An equation that reads: a product of what does not vanish is zero.

    Attributes
    ----------
    equation : Expr
        What would have to vanish.
    """

    equation: Any
    way: str = ""
    is_at_rest: bool = True

    def __str__(self) -> str:
        return (
            f"The equations leave {self.equation} = 0, and each factor is positive or negative in this theory: "
            "the minimum may be at zero."
        )


def _listed(symbols: tuple[Symbol, ...]) -> str:
    return " and ".join(map(str, symbols))
