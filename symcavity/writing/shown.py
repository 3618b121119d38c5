"""A derivation in the form in which it is read: responses name their sources, and squares of signs are one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Abs, Basic, Pow, S, Tuple, sign

from symcavity.model.averages import SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.record.derivation import Derivation
from symcavity.record.symbols import ResponseElement


def is_sign(family: Any) -> bool:
    """Whether a quenched parameter takes the values one and minus one only."""
    law = family.law if isinstance(family, Quenched) else None
    return isinstance(law, Tuple) and all(value**2 == 1 for value, _ in law)


def as_shown(derivation: Derivation) -> Derivation:
    """Return a derivation whose claims and data are written for a reader: the same statements, in the record's order.

    Where a site has several sources, a response says which one is meant; ``y**2`` and ``Abs(y)`` are one where the law
    of ``y`` has the values one and minus one.
    """
    sources = {q.family: f for step in derivation.steps for q, f in step.data.get("carriers", ()) if q is not None}

    def known(node: Any) -> Any:
        if isinstance(node, SiteResponse):
            source = sources.get(node.field.family) if node.field is not None else None
            if source is None:
                return node
            indices = node.state.indices[: len(source.slots) + (1 if source.components else 0)]
            return ResponseElement(node.state, SiteQuantity(source, *indices))
        base = node.args[0]
        if not isinstance(base, SiteQuantity) or not is_sign(base.family):
            return node
        if isinstance(node, Pow):
            return (base if node.exp.is_odd else S.One) if node.exp.is_Integer else node
        return S.One if isinstance(node, Abs) else base

    def written(obj: Any) -> Any:
        if isinstance(obj, Equation):
            return Equation(written(obj.lhs), written(obj.rhs))
        if type(obj) in (list, tuple):
            return type(obj)(map(written, obj))
        if type(obj) is dict:
            return {written(key): written(value) for key, value in obj.items()}
        if not isinstance(obj, Basic):
            return obj
        nodes = obj.atoms(SiteResponse, Pow, Abs, sign)
        return obj.xreplace({node: new for node in nodes if (new := known(node)) != node})

    steps = tuple(
        replace(step, claims=tuple(map(written, step.claims)), data=_data(step.data, written))
        for step in derivation.steps
    )
    parameters = tuple((symbol, written(meaning)) for symbol, meaning in derivation.parameters)
    return replace(derivation, steps=steps, parameters=parameters, results=tuple(map(written, derivation.results)))


def _data(data: Mapping[str, Any], written: Any) -> dict[str, Any]:
    return {name: written(value) if name in ("branches", "reason", "pairs") else value for name, value in data.items()}


__all__ = ["as_shown", "is_sign"]
