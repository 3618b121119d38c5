"""Labels that are drawn on a field of their site, once the couplings are there: the field of a teacher."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Tuple

from symcavity.algebra.compiled import compiled
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.model.exact import Count
from symcavity.model.quantities import Global, Quenched, site_quantities

_TOLERANCE = 1e-9
MOST, TOGETHER = 1 << 20, 64  # values of a label, and those that are looked at together


def draw_label(label: Quenched, told: Expr, known: Mapping[Any, Any], rng: np.random.Generator) -> np.ndarray:
    """Return the labels of all sites, each drawn by the weights that its field gives.

    Parameters
    ----------
    label : Quenched
        The family, whose weights hold the quantity that it is drawn on.
    told : Expr
        What that quantity is.
    known : mapping
        Values of everything else: of random fields and quenched parameters one a site, of parameters numbers.
    rng : Generator
        The random numbers.

    Raises
    ------
    ValuesError
        If the weights are negative, or do not sum to one.
    UnsupportedLaw
        If the field has a mean.
    """
    if told.has(Global):
        raise UnsupportedLaw(
            f"{label} is drawn on {told}, whose couplings have a mean.", "teachers that hear couplings without a mean"
        )
    field = _values(told, known)
    assert isinstance(label.law, Tuple)  # noqa: S101 - a label that is given on a field has discrete values
    if label.low is not None:
        return _counted(label, {**known, label.given: field}, rng.random(len(field)))
    rows = [np.broadcast_to(_values(w, {**known, label.given: field}), field.shape) for _, w in label.law]
    weights = np.array(rows)
    if np.any(weights < -_TOLERANCE) or np.any(np.abs(weights.sum(axis=0) - 1) > _TOLERANCE):
        raise ValuesError(
            f"The weights of the law of {label} range from {weights.min():g} to {weights.max():g}, and sum to "
            f"{weights.sum(axis=0).min():g} to {weights.sum(axis=0).max():g}.",
            "non-negative weights that sum to one for every value of the field",
        )
    values = np.array([float(_values(v, known)) for v, _ in label.law])
    chance = rng.random(len(field))
    return values[np.minimum((chance > np.cumsum(weights, axis=0)).sum(axis=0), len(values) - 1)]


def _counted(label: Quenched, known: Mapping[Any, Any], chance: np.ndarray) -> np.ndarray:
    """The values of a label with countably many, from the smallest one upwards."""
    count, low = Count("n"), label.low or 0
    weight = label.weight(low + count)
    labels, reached = np.zeros(len(chance)), np.zeros(len(chance))
    for n in range(0, MOST, TOGETHER):
        here = _values(weight, {**known, count: np.arange(n, n + TOGETHER, dtype=float)[:, None]})
        here = np.broadcast_to(here, (TOGETHER, len(chance)))
        if not np.all(here >= 0):
            raise ValuesError(
                f"A weight in the law of {label} is {np.min(here):g} at some field.",
                "parameters of a law that are in its range for every value of the field",
            )
        upto = reached + np.cumsum(here, axis=0)
        labels, reached = labels + (chance >= upto).sum(axis=0), upto[-1]
        if (chance < reached).all():
            return float(low) + labels
    raise ValuesError(f"{label} exceeds {MOST:.0e} in an instance.", "laws and fields of smaller counts")


def _values(expr: Any, known: Mapping[Any, Any]) -> Any:
    marks = {q: Dummy(f"q{k}", real=True) for k, q in enumerate(site_quantities(expr))}
    arguments = [*marks, *(s for s in known if s.is_Symbol)]
    call = compiled([marks.get(a, a) for a in arguments], expr.xreplace(marks))
    with np.errstate(all="ignore"):
        return np.asarray(call(*(known[a] for a in arguments)), dtype=float)
