"""In which order the equations of all kinds tell the states, and so which states can answer to which fields.

As many equations as states fall into blocks that are solved one after the other: the finest ones are the same for
every way to match equations with states (Dulmage and Mendelsohn, Canad. J. Math. 10, 517, 1958).  What is added to an
equation moves the states of its block, and those of later blocks that hear of them; all others keep still.  Kinds
differ in their numbers of sites, so that the equations of a kind are matched with states of that kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symcavity.model.fields import RandomField
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities


def answering(laws: Sequence[Any]) -> Mapping[RandomField, frozenset[Any]] | None:
    """The families of states that can answer to a source in the equation of each field.

    Parameters
    ----------
    laws : sequence of Law
        Of all kinds of sites, whose states keep still.

    Returns
    -------
    dict or None
        None where the equations are in no such order: then every state may answer.
    """
    names = [q.family for law in laws for q in law.unknowns]
    rows: list[set[Any]] = []
    own: list[set[Any]] = []
    carriers: dict[RandomField, int] = {}
    for law in laws:
        heard = {f.symbol: f for f in law.fields}
        for expr in [*(e.difference for e in law.equations), *law.pairs]:
            labels = [q.family.given for q in site_quantities(expr, Quenched) if q.family.given is not None]
            here = [f for symbol, f in heard.items() if any(e.has(symbol) for e in (expr, *labels))]
            carriers |= dict.fromkeys((f for f in here if expr.has(f.symbol)), len(rows))
            told = [expr, *labels, *(f.emission for f in here)]
            rows.append({q.family for e in told for q in site_quantities(e, Variable, Field)} & set(names))
            own.append({q.family for q in site_quantities(expr, Variable, Field)} & {q.family for q in law.unknowns})
    if len(set(names)) != len(names) or len(rows) != len(names) or any(law.weight for law in laws):
        return None
    owner = _matched(own)
    if owner is None:
        return None
    moves = {family: {n for n, row in enumerate(rows) if family in row} for family in names}
    tells = {row: family for family, row in owner.items()}
    return {f: frozenset(_reached(row, tells, moves)) for f, row in carriers.items()}


def _matched(rows: Sequence[set[Any]]) -> dict[Any, int] | None:
    """One row for each name in them, by augmenting paths; None where there is no such choice."""
    owner: dict[Any, int] = {}

    def place(row: int, seen: set[Any]) -> bool:
        for name in sorted(rows[row] - seen, key=str):
            seen.add(name)
            if name not in owner or place(owner[name], seen):
                owner[name] = row
                return True
        return False

    return owner if all(place(row, set()) for row in range(len(rows))) else None


def _reached(start: int, tells: Mapping[int, Any], moves: Mapping[Any, set[int]]) -> set[Any]:
    """The quantity that an equation gives, and those that follow from it."""
    found: set[Any] = set()
    waiting = {start}
    while waiting:
        name = tells[waiting.pop()]
        if name not in found:
            found.add(name)
            waiting |= moves[name]
    return found
