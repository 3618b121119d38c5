"""Message passing: the closed equations with a step for each kind of site, and the record of it."""

from __future__ import annotations

from itertools import product

from sympy import Symbol

from symcavity.errors import UnsupportedLaw
from symcavity.model.kinds import Kind
from symcavity.model.system import System

_FORBIDDEN = 1e6
FIRST = (-1.0, 1.0)


def first_responses(kinds: list[Kind]) -> list[dict[Kind, float]]:
    """Return the ways to begin, in the order in which they are tried: the kinds that keep still, few ones first.

    All others solve their laws in the first step, each by what those before it have sent.  A kind that keeps still
    sends nothing, and its states respond to their sources by the given number.
    """
    every = product((0.0, *FIRST), repeat=len(kinds))
    ordered = sorted(every, key=lambda row: (sum(map(bool, row)), [(*FIRST, 0.0).index(v) for v in row]))
    return [{kind: v for kind, v in zip(kinds, row, strict=True) if v} for row in ordered if not all(row)]


def conditions_met(system: System) -> dict[Kind, list[tuple[int, Symbol]]]:
    """Return which conditions on all sites are met at the step of each kind, each by which global variable.

    A condition is a sum over the sites of a kind, and is met when these sites are solved: by a variable that stands
    in the sum itself, or one that they feel.

    Raises
    ------
    UnsupportedLaw
        If a condition is left to a variable that its sites do not feel.
    """
    from scipy.optimize import linear_sum_assignment

    def price(row: int, g: Symbol) -> float:
        kind, body = system.global_conditions[row]
        law = system.laws[kind]
        felt = any(e.difference.has(g) for e in law.equations) or any(q.has(g) for p in law.pairs for q in p.pair)
        partner = system.partners[row]
        if partner is not None:
            return 0.0 if g == partner else _FORBIDDEN
        return 0.0 if body.has(g) else 1.0 if felt else _FORBIDDEN

    out: dict[Kind, list[tuple[int, Symbol]]] = {kind: [] for kind in system.laws}
    prices = [[price(row, g) for g in system.globals] for row in range(len(system.global_conditions))]
    if not prices:
        return out
    rows, columns = linear_sum_assignment(prices)
    for row, column in zip(rows, columns, strict=True):
        kind, body = system.global_conditions[row]
        if prices[row][column] >= _FORBIDDEN or len(rows) < len(prices):
            raise UnsupportedLaw(
                f"No global variable meets the condition {body} = 0, summed over the {kind} sites, while these are "
                "solved: message passing has no step for it.",
                "conditions on sums over sites that feel a global variable, or that define one",
            )
        out[kind].append((int(row), system.globals[column]))
    return out


__all__ = ["conditions_met", "first_responses"]
