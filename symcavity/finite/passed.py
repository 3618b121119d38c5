"""The messages of one instance, passed step by step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from symcavity.errors import NotConverged
from symcavity.finite.instance import Residuals
from symcavity.finite.messages import Snapshot, started
from symcavity.finite.setup import Setup
from symcavity.model.kinds import Kind

_SETTLED, _SLOW = 1e-14, 1e-9


@dataclass
class Passed:
    """The messages of one instance.

    Attributes
    ----------
    seed : int
        The instance is a function of it.
    counts : dict
        The number of sites of each kind.
    steps : list of Snapshot
        What there was after each step.
    cavity, self_coupling : dict
        By kind, the last cavity fields (sites, fields) and self-couplings (sites, fields, emissions).
    residuals : Residuals or None
        How well the last state solves the equations of the instance.
    failure : str
        Why there are fewer steps than were asked for.
    idle : tuple of bool
        Which of the conditions on all sites hold without their multiplier.
    """

    seed: int
    counts: dict[Kind, int]
    steps: list[Snapshot] = field(default_factory=list)
    cavity: dict[Kind, np.ndarray] = field(default_factory=dict)
    self_coupling: dict[Kind, np.ndarray] = field(default_factory=dict)
    residuals: Residuals | None = None
    failure: str = ""
    idle: tuple[bool, ...] = ()

    @property
    def changes(self) -> list[float]:
        """How much each step has moved what is sent, relative to its size."""
        return [step.change for step in self.steps]

    @property
    def diverged(self) -> bool:
        """Whether messages ran away, or move no less than half as many steps ago."""
        moves = self.changes
        return bool(self.failure) or (len(moves) > 3 and moves[-1] > _SLOW and moves[len(moves) // 2] <= moves[-1])

    @property
    def rate(self) -> float:
        """By how much a step shrinks the moves, over the second half of those above rounding; nan for too few."""
        moves = np.array(self.changes)
        moves = moves[: int(np.argmax(moves < _SLOW)) or None] if np.any(moves < _SLOW) else moves
        half = len(moves) // 2
        return float((moves[-1] / moves[half]) ** (1 / (len(moves) - 1 - half))) if len(moves) > 3 else float("nan")


class SiteResponses:
    """The responses of single sites, as messages know them."""

    by_parts = None

    def __init__(self, found: Mapping[Kind, np.ndarray]) -> None:
        self._found = found

    def local(self, kind: Kind, variable: int, which: int = 0) -> np.ndarray:
        """The response of each site's variable to one of its sources."""
        return self._found[kind][:, variable, which]


@dataclass(frozen=True)
class Work:
    """What all instances share.

    Attributes
    ----------
    setup : Setup
    steps : int
    damping : float
    """

    setup: Setup
    steps: int
    damping: float = 0.0


def pass_one(work: Work, task: tuple[int, int]) -> Passed:
    """Pass the messages of one instance: the piece of work of every executor."""
    instance, share = work.setup.instance(*task), 1.0 - work.damping
    out = Passed(task[1], instance.size)
    try:
        messages, first = started(work.setup.system, instance, lambda messages: messages.snapshot(share))
        out.steps += first
        while len(out.steps) <= work.steps and out.steps[-1].change >= _SETTLED:
            out.steps.append(messages.snapshot(share))
    except NotConverged as error:
        out.failure = error.found
        return out
    out.cavity, out.self_coupling = messages.cavity, messages.self_coupling
    out.residuals, out.idle = messages.residuals(), tuple(map(bool, instance.idle))
    return out
