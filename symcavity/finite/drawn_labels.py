"""Labels that are drawn on a field of their site, once the couplings are there: the field of a teacher."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sympy import Dummy, Tuple

from symcavity.algebra.compiled import compiled
from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.finite.draw import stream
from symcavity.model.quantities import Global, Quenched, site_quantities

if TYPE_CHECKING:
    from symcavity.finite.instance import Instance

_LABELS, _TOLERANCE = 3, 1e-9


def draw_label(instance: Instance, label: Quenched) -> np.ndarray:
    """Return the labels of all sites, each drawn by the weights that its field gives.

    Raises
    ------
    ValuesError
        If the weights are negative, or do not sum to one.
    UnsupportedLaw
        If the field has a mean.
    """
    (kind,) = label.slots
    law = instance.system.laws[kind]
    told = next(e.rhs for e in law.law.equations if e.lhs == label.given)
    if told.has(Global):
        raise UnsupportedLaw(
            f"{label} is drawn on {told}, whose couplings have a mean.", "teachers that hear couplings without a mean"
        )
    heard = instance.fields(kind, instance.start())
    known: dict[Any, Any] = {f.symbol: heard[:, m] for m, f in enumerate(law.fields)}
    known |= {q.at_site(): instance.quenched[q] for q in law.quenched if q != label}
    known |= dict(zip(instance.system.constants, instance.constants, strict=True))
    field = _values(told, known)
    assert isinstance(label.law, Tuple)  # noqa: S101 - a label that is given on a field has a finite law
    rows = [np.broadcast_to(_values(w, {**known, label.given: field}), field.shape) for _, w in label.law]
    weights = np.array(rows)
    if np.any(weights < -_TOLERANCE) or np.any(np.abs(weights.sum(axis=0) - 1) > _TOLERANCE):
        raise ValuesError(
            f"The weights of the law of {label} range from {weights.min():g} to {weights.max():g}, and sum to "
            f"{weights.sum(axis=0).min():g} to {weights.sum(axis=0).max():g}.",
            "non-negative weights that sum to one for every value of the field",
        )
    values = np.array([float(_values(v, known)) for v, _ in label.law])
    names = sorted(q.name for q in law.quenched)
    chance = stream(instance.seed, _LABELS, names.index(label.name)).random(len(field))
    return values[np.minimum((chance > np.cumsum(weights, axis=0)).sum(axis=0), len(values) - 1)]


def _values(expr: Any, known: dict[Any, Any]) -> Any:
    marks = {q: Dummy(f"q{k}", real=True) for k, q in enumerate(site_quantities(expr))}
    arguments = [*marks, *(s for s in known if s.is_Symbol)]
    call = compiled([marks.get(a, a) for a in arguments], expr.xreplace(marks), ["numpy", "scipy"])
    with np.errstate(all="ignore"):
        return np.asarray(call(*(known[a] for a in arguments)), dtype=float)


__all__ = ["draw_label"]
