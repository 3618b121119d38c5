"""Which states cannot answer to the source of a field: by the inverse of a matrix of random numbers.

The equations of a few sites of each kind, linearized, are a matrix with an entry wherever an equation holds a state.
Whatever these entries are, what vanishes in its inverse at random ones is no answer.
"""

from __future__ import annotations

import random
from typing import Any

from symcavity.algebra.precision import mp
from symcavity.model.kinds import Kind
from symcavity.model.quantities import Field, Quenched, Variable, site_quantities

DIGITS, FEWEST = 60, 2


def silent(system: Any) -> frozenset[tuple[str, Kind, int]]:
    """The names of states, with the kind and the number of a field to whose source they do not answer."""
    if system.time is not None or system.weights:
        return frozenset()
    sizes = {kind: FEWEST + k for k, kind in enumerate(system.laws)}
    states = [(kind, q.family, at) for kind, n in sizes.items() for q in system.laws[kind].unknowns for at in range(n)]
    place = {state: k for k, state in enumerate(states)}
    rows: list[set[int]] = []
    sources: list[tuple[int, Kind, int]] = []
    for kind, law in system.laws.items():
        for expr in [*(e.difference for e in law.equations), *law.pairs]:
            labels = [q.family.given for q in site_quantities(expr, Quenched) if q.family.given is not None]
            held = [expr, *labels]
            heard = [f for f in law.fields if any(e.has(f.symbol) for e in held)]
            for at in range(sizes[kind]):
                sources += [(len(rows), kind, law.fields.index(f)) for f in heard]
                here = {(kind, q.family, at) for e in held for q in site_quantities(e, Variable, Field)}
                here |= {(f.sender, q.family, k) for f in heard for q in f.states() for k in range(sizes[f.sender])}
                rows.append({place[e] for e in here if e in place})
    if len(rows) != len(states) or len(place) != len(states):
        return frozenset()
    draw = random.Random(5)  # noqa: S311 - seeded sampling, not cryptography
    with mp.workdps(DIGITS):
        drawn = [[draw.uniform(1, 10) if n in row else 0 for n in range(len(states))] for row in rows]
        try:
            answers = mp.inverse(mp.matrix(drawn))
        except ZeroDivisionError:
            return frozenset()
    largest = max(abs(e) for e in answers)
    if largest > mp.mpf(10) ** (DIGITS / 3):  # no inverse but for rounding
        return frozenset()
    found: dict[tuple[str, Kind, int], bool] = {}
    for k, (_, family, _) in enumerate(states):
        for row, kind, number in sources:
            key = (family.name, kind, number)
            found[key] = found.get(key, True) and bool(abs(answers[k, row]) < largest * mp.mpf(10) ** (-DIGITS / 2))
    return frozenset(key for key, quiet in found.items() if quiet)
