"""Which strategy solves a law: the first that applies."""

from __future__ import annotations

from symcavity.sites.branching.strategy import Branching
from symcavity.sites.joint.strategy import Joint
from symcavity.sites.linear import Linear
from symcavity.sites.protocol import SiteProblem, Strategy
from symcavity.sites.sets.strategy import Projecting

STRATEGIES: tuple[Strategy, ...] = (Projecting(), Linear(), Joint(), Branching())


def strategy_for(problem: SiteProblem) -> Strategy:
    """The first strategy that applies to a law; the last one applies to all."""
    return next(s for s in STRATEGIES if s.applies(problem))


__all__ = ["STRATEGIES", "strategy_for"]
