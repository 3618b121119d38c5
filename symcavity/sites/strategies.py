"""Which strategy solves a law: the first that applies; numbers, where a convex law has no formula."""

from __future__ import annotations

from symcavity.errors import UnsupportedLaw
from symcavity.sites.branching.parts import solved_by_parts
from symcavity.sites.branching.strategy import Branching
from symcavity.sites.causal import Causal
from symcavity.sites.joint.strategy import Joint
from symcavity.sites.linear import Linear
from symcavity.sites.lowest.smooth import SmoothMinimum
from symcavity.sites.lowest.strategy import LowestEnergy
from symcavity.sites.protocol import LawSolution, SiteProblem, Strategy
from symcavity.sites.sets.strategy import Projecting
from symcavity.sites.thermal.squares import Squares
from symcavity.sites.thermal.strategy import Thermal

NUMBERS, FORMULAS = Joint(), Branching()
STRATEGIES: tuple[Strategy, ...] = (
    Causal(), Squares(), SmoothMinimum(), LowestEnergy(), Thermal(), Projecting(), Linear(), NUMBERS, FORMULAS
)  # fmt: skip


def solved_by(problem: SiteProblem) -> tuple[Strategy, LawSolution]:
    """The first strategy that applies to a law, and its solution.

    A law that falls into parts with formulas has those, however many branches they are together.  The law of a convex
    problem that hears several fields, and has no layout over one of them, is solved in numbers.

    Raises
    ------
    IllPosed
        If the law leaves a state undetermined, or has no solution.
    UnsupportedLaw
        If no strategy solves it.
    """
    strategy = next(s for s in STRATEGIES if s.applies(problem))
    if strategy in (NUMBERS, FORMULAS) and (found := solved_by_parts(problem)) is not None:
        return FORMULAS, found
    try:
        return strategy, strategy.solve(problem)
    except UnsupportedLaw:
        if not (problem.convex and len(problem.heard) > 1 and strategy is FORMULAS):
            raise
    return NUMBERS, NUMBERS.solve(problem)
