"""Instances whose couplings are kept while some quenched parameters are drawn again: covariances between sites."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from symcavity.errors import DeclarationError, ValuesError
from symcavity.finite.draw import stream
from symcavity.finite.given_values import draw_quenched
from symcavity.finite.instance import Instance
from symcavity.model.quantities import Quenched, SiteQuantity

AGAIN = 4  # what the streams of random numbers that draw again are told by
FEWEST = 4


def varied(instance: Instance, over: Any) -> tuple[Quenched, ...]:
    """Return the quenched families that are drawn again, once they have been checked.

    Raises
    ------
    DeclarationError
        For families that the system does not hold.
    ValuesError
        For those that were given site by site, and labels that are drawn on a field.
    """
    given = [over] if isinstance(over, Quenched | SiteQuantity) else over
    known = instance.values.quenched
    words = ", ".join(sorted(map(str, known))) or "no family"
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise DeclarationError(f"over={over!r:.80}.", f"a list of quenched families: {words}", "over=[xi]")
    families = tuple(dict.fromkeys(q.family if isinstance(q, SiteQuantity) else q for q in given))
    for q in families:
        if q not in known:
            raise DeclarationError(f"over= names {q!r:.80}, which does not vary here.", words, "over=[xi]")
        if isinstance(known[q], np.ndarray):
            raise ValuesError(f"{q} is given site by site, and cannot be drawn again.", "a law, {value: weight}")
    if labels := [q for q in known if q.given is not None]:
        raise ValuesError(f"{labels[0]} is drawn on a field.", "quenched parameters with laws of their own")
    return families


def drawn_again(instance: Instance, over: Sequence[Quenched], draws: int) -> Iterator[Instance]:
    """Draw some quenched parameters again, so many times; couplings and other parameters stay what they are."""
    order = sorted(instance.values.quenched, key=lambda q: q.name)
    for draw in range(draws):
        new = Instance(instance.system, instance.values, instance.features, instance.seed, instance.law)
        new.__dict__["couplings"] = instance.couplings
        for q in over:
            rng = stream(instance.seed, AGAIN, order.index(q), draw)
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
