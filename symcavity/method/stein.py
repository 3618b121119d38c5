"""The identity of the two capacity formulas of convex sets: Euler's theorem, and Gaussian integration by parts."""

from __future__ import annotations

from typing import Any

from sympy import Expr, Symbol, exp, oo, pi

from symcavity.method.theory import Theory
from symcavity.model.equations import Equation
from symcavity.model.quantities import SiteQuantity
from symcavity.record.derivation import Step
from symcavity.record.maker import StepMaker
from symcavity.sites.sets.averages import (
    DENSITY,
    DIVERGENCE,
    GAP2,
    GV,
    LAM,
    PSI,
    SLOPE,
    T2,
    TD,
    ProjectionAverage,
    SpaceIntegral,
)
from symcavity.sites.sets.solution import ProjectionSolution


def stein_steps(theory: Theory, claim: Equation, make: StepMaker) -> list[Step]:
    """The identity of the two capacity formulas: Euler's theorem, and Gaussian integration by parts."""
    site = next(s for s in theory.inserted.values() if isinstance(s.solution, ProjectionSolution))
    convex, solution = site.solution.convex, site.solution
    if solution.cap != oo or solution.softness != 0:
        return []
    bounds = {node.k for node in claim.difference.atoms(ProjectionAverage)}
    k: Expr = Symbol(f"k_{convex.g.name.partition('_')[0]}", real=True)
    several = len(bounds) > 1 or any(b.is_Add or b.is_Mul or b.has(SiteQuantity) for b in bounds)
    if not several:
        (k,) = bounds
    size = convex.components.size

    def mean(body: Expr) -> Expr:
        return ProjectionAverage(body, convex.g, size, k)

    common: dict[str, Any] = {"evidence": {"bound": k}}
    return [
        make(
            "euler",
            "euler",
            (Equation(GAP2, LAM * GV - TD), Equation(LAM * GV, k * LAM)),
            data={"g": convex.g, "bound": k if several else None},
            rests_on=("consistency",),
            **common,
        ),
        make(
            "stein.parts",
            "stein_parts",
            (
                Equation(DENSITY, (2 * pi) ** (-size / 2) * exp(-T2 / 2)),
                Equation(SLOPE, -DENSITY * TD),
                Equation(-mean(TD), SpaceIntegral(SLOPE)),
                Equation(SpaceIntegral(SLOPE), -SpaceIntegral(DENSITY * DIVERGENCE)),
                Equation(DIVERGENCE, PSI),
            ),
            data={"size": size},
            rests_on=("consistency",),
            **common,
        ),
        make(
            "stein",
            "stein",
            (Equation(mean(TD), mean(PSI)),),
            data={"size": size},
            rests_on=("stein.parts",),
            **common,
        ),
        make(
            "stein.conclusion",
            "stein_conclusion",
            (Equation(mean(GAP2), k * mean(LAM) - mean(PSI)),),
            data={"several": several},
            rests_on=("euler", "stein"),
            **common,
        ),
    ]
