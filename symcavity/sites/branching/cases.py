"""Averages over a site whose law has cases that other fields or labels decide: the sum over the cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sympy import Expr, Mul, Piecewise, S, zoo
from sympy.core.relational import Relational

from symcavity.sites.branching.solution import SiteSolution


def over_cases(ensemble: Any, body: Expr) -> Expr | None:
    """Average an expression case by case, each over the law of that case; None where the law has no cases.

    A formula for all cases holds the weight of each, zero or one, wherever its law enters.
    """
    total, count, zero = S.Zero, 0, dict.fromkeys(ensemble.solution.sources, S.Zero)
    for solution, weights in _cases(ensemble.solution):
        if not weights or _is_singular(solution):
            return None
        total += replace(ensemble, solution=solution).over_fields(Mul(body, *weights).xreplace(zero))
        count += 1
    return total if count else None


def _cases(solution: SiteSolution, weights: tuple[Expr, ...] = ()) -> Iterator[tuple[SiteSolution, tuple[Expr, ...]]]:
    """The law in each case, and the weights that are one there and zero elsewhere."""
    test = _open_test(solution)
    if test is None:
        yield solution, weights
        return
    for holds in (S.true, S.false):
        weight = Piecewise((S.One, test), (S.Zero, True)) if holds else Piecewise((S.Zero, test), (S.One, True))
        yield from _cases(solution.xreplace({test: holds}), (*weights, weight))


def _open_test(solution: SiteSolution) -> Relational | None:
    """The first condition of a weight by cases that neither the inner field nor a state decides."""
    moving = {solution.inner, *solution.unknowns, *(b.implicit[0] for b in solution.branches if b.implicit)}
    found = {p for e in solution.made_of for p in e.atoms(Piecewise)}
    for cases in sorted(found, key=lambda p: (len(p.args), str(p))):
        if all(value.is_number for value, _ in cases.args) and not cases.has(*moving):
            return min(cases.args[0][1].atoms(Relational), key=str)
    return None


def _is_singular(solution: SiteSolution) -> bool:
    """Whether a field at which a region ends is infinite in a case."""
    return any(end.has(zoo) for r in solution.regions for end in (r.low, r.high) if end is not None)
