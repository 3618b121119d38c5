"""A closed system at given values, with the observations of the attempts so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from sympy import Expr, Symbol

from symcavity.evaluate.closed_map import ClosedMap
from symcavity.evaluate.given.values import Given, Task
from symcavity.evaluate.solving.admissible import sift
from symcavity.evaluate.solving.choice import chosen
from symcavity.evaluate.solving.eliminated import Eliminated
from symcavity.evaluate.solving.evidence import BranchEnd
from symcavity.evaluate.solving.outcomes import Ended, Found, Lost, Tightening
from symcavity.evaluate.solving.recovery import Recovery

Effort = Literal["full", "brief", "near"]
MOST_ELIMINATED = 20  # unknowns of a linear system, which elimination writes as one formula


@dataclass
class Search:
    """A closed system at given values, and what attempts have seen so far.

    Attributes
    ----------
    task : Task
    given : Given
    observable : callable
        Turns an observable into order parameters.
    guess : dict or None
        A solution nearby.
    lost : list of Lost
        Attempts that found nothing.
    complaints : list of str
        What is wrong with roots that are not solutions.
    effort : str
        ``"full"``; ``"brief"`` does not look for the point that misses least, where nothing is found; ``"near"``
        looks for the root of a system next to the guess, and nowhere else.
    """

    task: Task
    given: Given
    observable: Callable[[Any], Expr]
    guess: Mapping[Symbol, Any] | None = None
    lost: list[Lost] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    effort: Effort = "full"

    @cached_property
    def whole(self) -> ClosedMap:
        """The closed equations as a map, with nothing eliminated."""
        return self.task.closed_map(self.given)[0]

    @cached_property
    def units(self) -> dict[Symbol, float]:
        """What order parameters are where each statistic of a field is one, of laws that are solved together.

        Fields that are heard together are heard by one convex problem of a site there.
        """
        every = self.task.scales() if self.whole.patient else {}
        scales = {s: e for s, e in every.items() if not e.free_symbols.intersection(self.given.solve_for)}
        values = self.task.together(tuple(scales.values()))(self.given.environment("numpy")) if scales else ()
        return {s: float(v) for s, v in zip(scales, values, strict=True) if np.isfinite(v) and v > 0}

    @cached_property
    def eliminated(self) -> Eliminated:
        """What elimination leaves of them."""
        return Eliminated.of(self.task, self.given)

    @property
    def is_mapped(self) -> bool:
        """Whether the map leads to the solution, as that of a convex problem does."""
        return self.task.convex and self.whole.is_square

    @property
    def is_large(self) -> bool:
        """Whether a linear system has so many unknowns that what elimination leaves of them takes long to write."""
        return self.task.linear and not self.given.solve_for and len(self.whole.unknowns) > MOST_ELIMINATED

    @property
    def every(self) -> bool:
        """Whether all roots are looked for."""
        return not (self.task.convex or self.task.linear)

    @property
    def proof(self) -> Ended | None:
        """What is proved if these find nothing."""
        return next((one.proof for one in self.lost if one.proof is not None), None)

    @property
    def seen(self) -> BranchEnd | None:
        """What points to there being no solution, without proving it."""
        return next((one.seen for one in self.lost if one.seen is not None), None)

    @property
    def is_at_boundary(self) -> bool:
        """Whether the saddle has its root where some variance vanishes, or comes close to a recovery."""
        return any(one.is_at_boundary or one.recovery is not None for one in self.lost)

    @property
    def tightening(self) -> Tightening | None:
        """Where all has settled but for multipliers."""
        return next((one.tightening for one in self.lost if one.tightening is not None), None)

    @property
    def recovery(self) -> Recovery | None:
        """The field that seems to become a multiple of quenched ones."""
        return next((one.recovery for one in self.lost if one.recovery is not None), None)

    def chosen(self, admitted: Sequence[np.ndarray]) -> Found:
        """The solution among admissible roots of what elimination leaves; several of them are an error."""
        return chosen(self.eliminated, admitted, self.observable)

    def admitted(self, roots: Iterable[np.ndarray], *, first: bool) -> list[np.ndarray]:
        """Those among roots that are solutions; what is wrong with the others is noted."""
        good, rejected = sift(self.eliminated, roots, first=first)
        self.complaints += rejected
        return good
