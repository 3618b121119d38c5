"""Instances whose couplings are kept while some quenched parameters are drawn again: covariances between sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sympy import Tuple

from symcavity.errors import ValuesError
from symcavity.finite.draw import stream
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance
from symcavity.model.quantities import Quenched
from symcavity.model.varied import varied_families

AGAIN = 4  # what the streams of random numbers that draw again are told by
FEWEST = 4


def varied(instance: Instance, over: Any) -> tuple[Quenched, ...]:
    """Return the quenched families that are drawn again, once they have been checked.

    Raises
    ------
    DeclarationError
        For families that the system does not hold.
    ValuesError
        For those that were given site by site, and where labels are given whose field varies.
    """
    known = instance.values.quenched
    families = varied_families(over, known, "over=[xi]")
    for q in families:
        if isinstance(known[q], np.ndarray):
            raise ValuesError(f"{q} is given site by site, and cannot be drawn again.", "a law, {value: weight}")
    law = {q: instance.system.laws[q.slots[0]].law for q in known if q.given is not None}
    for label in (q for q in law if q not in families):
        field = next(e.rhs for e in law[label].equations if e.lhs == label.given)
        below = field.xreplace({f.symbol: f.emission for f in law[label].fields})
        if lost := [q for q in families if Tuple(below, label.law).has(q.at_site())]:
            raise ValuesError(
                f"{label} is drawn on a field that varies with {lost[0]}.",
                "labels that vary as well, or whose field is given",
                f"over=[{', '.join(map(str, (*families, label)))}]",
            )
    return families


def drawn_again(instance: Instance, over: Sequence[Quenched], draws: int) -> Iterator[Instance]:
    """Draw some quenched parameters again, so many times; couplings and other parameters stay what they are."""
    order = sorted(instance.values.quenched, key=lambda q: q.name)
    for draw in range(draws):
        new = Instance(instance.system, instance.values, instance.features, instance.seed, instance.law)
        new.__dict__["couplings"] = instance.couplings
        for q in sorted(over, key=lambda q: q.given is not None):  # labels follow the parameters of their fields
            rng = stream(instance.seed, AGAIN, order.index(q), draw)
            if q.given is not None:
                new.quenched[q] = new.drawn(q, rng)
            else:
                new.quenched[q] = draw_quenched(q, instance.values.quenched[q], instance.size[q.slots[0]], rng)
        yield new


def participation(values: np.ndarray) -> float:
    """Return ``(sum C_ii)**2 / (n sum C_ij**2)`` of the covariances over the rows of a table with ``n`` columns.

    The draws are parted into two halves, each with its own unbiased covariances, so that the noise of one is
    independent of that of the other, and the products are unbiased.
    """
    half = len(values) // 2
    first, second = (rows - rows.mean(axis=0) for rows in (values[:half], values[half : 2 * half]))
    squares = float(np.sum((first @ second.T) ** 2)) / (half - 1) ** 2
    traces = float(np.sum(first**2)) * float(np.sum(second**2)) / (half - 1) ** 2
    if not squares > 0:
        raise ValuesError(
            "The quantity does not vary with the parameters that are drawn again.", "a quantity that depends on them"
        )
    return traces / (values.shape[1] * squares)
