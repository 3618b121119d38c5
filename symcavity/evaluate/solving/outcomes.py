"""The outcomes of an attempt at the closed equations: a solution, a proof, a starting point, or a reason of failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sympy import Symbol

from symcavity.errors import NotConverged
from symcavity.evaluate.solutions.solution import Solution
from symcavity.evaluate.solving.evidence import BranchEnd
from symcavity.evaluate.solving.recovery import Recovery


class Evidence(Protocol):
    """A proof that there is no solution; its text says in one sentence what proves it.

    Attributes
    ----------
    way : str
        Where the load has to go: ``'smaller'``, ``'larger'``, or empty where another load does not help.
    is_at_rest : bool
        Whether it leaves one way out, the limit in which states vanish.
    """

    @property
    def way(self) -> str: ...  # noqa: D102

    @property
    def is_at_rest(self) -> bool: ...  # noqa: D102


@dataclass(frozen=True)
class Found:
    """The solution."""

    solution: Solution


@dataclass(frozen=True)
class Ended:
    """A proof: of no solution, which becomes ``Infeasible``, or of many minima, which becomes ``FlatMinimum``.

    Attributes
    ----------
    evidence : Evidence
    complaints : tuple of str
        What is wrong with roots that were found, and are not solutions.
    """

    evidence: Evidence
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True)
class Handover:
    """A point that is close to the solution: where later attempts begin.

    Attributes
    ----------
    point : dict
        Every unknown.
    """

    point: Mapping[Symbol, Any]


@dataclass(frozen=True)
class Tightening:
    """A point at which all has settled but for multipliers, which go on growing: their conditions are tight.

    Attributes
    ----------
    point : dict
        Every unknown.
    ways : dict
        By how much the last step moved these multipliers, in units of their fields.
    powers : dict
        Where other unknowns go along with multipliers: the powers of the fastest of them with which all do.
    """

    point: Mapping[Symbol, float]
    ways: Mapping[Symbol, float]
    powers: Mapping[Symbol, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Lost:
    """No solution was found, which does not prove that there is none: ``NotConverged``, if it is the last word.

    Attributes
    ----------
    reason : str
        What was seen, in sentences.
    best : object
        The best point, so that nothing which was computed is lost.
    residual : float
        Its residual.
    hint : str
        What to try.
    has_root : bool
        Whether there is a root, and only its digits are missing.
    left : tuple of str, optional
        The names of the attempts that are still worth trying; if it is not said, those that follow and apply.
    proof : Ended, optional
        What is proved if these find nothing.
    seen : BranchEnd, optional
        What points to there being no solution, without proving it.
    is_at_boundary : bool
        Whether there is a minimum, at which some variance vanishes: its states may be at rest.
    recovery : Recovery, optional
        The field that seems to become a multiple of quenched ones.
    tightening : Tightening, optional
        Where steps towards the minimum go on with multipliers alone.
    """

    reason: str = ""
    best: Any = None
    residual: float = float("nan")
    hint: str = ""
    has_root: bool = False
    left: tuple[str, ...] | None = None
    proof: Ended | None = None
    seen: BranchEnd | None = None
    is_at_boundary: bool = False
    recovery: Recovery | None = None
    tightening: Tightening | None = None

    @classmethod
    def of(cls, problem: NotConverged, *, has_root: bool = False) -> Lost:
        """What an error says."""
        return cls(problem.found, problem.best, problem.residual, problem.hint, has_root=has_root)

    @property
    def error(self) -> NotConverged:
        """The error that says the same."""
        return NotConverged(self.reason, self.best, self.residual, self.hint)


Outcome = Found | Ended | Handover | Lost
