"""The errors for no solution, no unique solution, or none that was found."""

from __future__ import annotations

from sympy import Symbol

from symcavity.errors import FlatMinimum, Infeasible, NotConverged
from symcavity.evaluate.given.values import Given
from symcavity.evaluate.solving.finish import where
from symcavity.evaluate.solving.outcomes import Ended
from symcavity.evaluate.solving.roots import nearest_miss
from symcavity.evaluate.solving.saddle_proofs import Flat, NoSolution
from symcavity.evaluate.solving.search import Search


def _edge(given: Given) -> str:
    """What to try where a parameter that is positive in the theory is zero."""
    zero = [s for s, v in given.exact.items() if v == 0 and s.is_positive]
    return f"{zero[0]} = '1e-6': the equations are singular at 0, its edge" if zero else ""


def _said(given: Given, ended: Ended, what: str) -> str:
    reasons = "; ".join(dict.fromkeys(ended.complaints))
    return f"There is no {what} at {where(given)}" + (f": {reasons}." if reasons else ".") + f" {ended.evidence}"


def unsolved(given: Given, ended: Ended) -> Infeasible | FlatMinimum:
    """The error that says that there is no solution, or no unique one, with what proves it."""
    evidence = ended.evidence
    way = f"a {evidence.way} alpha" if evidence.way else "other values of the parameters"
    is_flat = isinstance(evidence, Flat) and evidence.is_attained
    if evidence.way and isinstance(evidence, NoSolution):
        end = "beyond which the minimum is unique" if is_flat else "at which solutions end"
        way += f" (error.evidence.load is that {end})"
    if isinstance(evidence, Flat) and evidence.is_attained:
        found = _said(given, ended, "unique solution")
        return FlatMinimum(found, len(evidence.diverging), f"a penalty that fixes the states; {way}", evidence)
    supported = "values at which the problem has a unique solution"
    return Infeasible(_said(given, ended, "solution"), supported, _edge(given) or way, evidence)


def not_found(search: Search) -> NotConverged:
    """What the attempts that were lost say together."""
    told = [one for one in search.lost if one.has_root] or [one for one in search.lost if one.reason]
    if told:
        return told[0].error if told[0].has_root else told[-1].error
    system, given = search.eliminated, search.given
    best: dict[Symbol, float] = {}
    gap = float("nan")
    if search.effort == "full" and system.left and len(system.core) == len(system.left):
        point, gap = nearest_miss(system.residual(), system.unknowns)
        best = system.complete(point)
    elif not system.left:
        best = system.complete([])
    reasons = "; ".join(dict.fromkeys(search.complaints))
    return NotConverged(
        f"No {'admissible ' if reasons else ''}solution was found at {where(given)}"
        + (f": {reasons}." if reasons else ".")
        + (f" {search.seen}" if search.seen is not None else "")
        + " This does not prove that there is none."
        + (f" The closest point, in .best, violates the equations by {gap:.2g} of their size." if gap > 0 else ""),
        best,
        gap,
        _edge(given) or "guess=, the values of a solution nearby; other values of the parameters",
    )
