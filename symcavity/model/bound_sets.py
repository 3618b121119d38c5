"""The convex sets among the values of a call: values that are not numbers, and that fix a number of components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Integer, Symbol, cancel

from symcavity.errors import ValuesError
from symcavity.model.support import Anchor, Support, SupportFunction
from symcavity.model.system import System


def vector_sizes(system: System) -> dict[SupportFunction, Any]:
    """Return the support functions in the laws of a system, each with the number of components of its vectors."""
    exprs = [e.difference for law in system.laws.values() for e in law.equations]
    exprs += [q for law in system.laws.values() for p in law.pairs for q in p.pair]
    return {n.g: n.components.size for n in sorted({n for e in exprs for n in e.atoms(Support, Anchor)}, key=str)}


def take_sets(
    needed: Mapping[SupportFunction, Any], values: Mapping[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Separate the sets among the values from the numbers.

    Parameters
    ----------
    needed : mapping
        The support functions of a declaration, each with the number of components of its vectors.
    values : mapping
        What the user gave; a set stands under its support function, or under the name of it.

    Returns
    -------
    rule : dict
        Each support function with its set in it, and the symbols that the dimensions of the sets fix.
    rest : dict
        The other values.

    Raises
    ------
    ValuesError
        If a set is missing, is not a shape, or lives in another number of dimensions.
    """
    by_name = {g.name: g for g in needed}

    def is_set(key: Any) -> bool:
        return isinstance(key, SupportFunction) or (isinstance(key, str) and key in by_name)

    rest = {k: v for k, v in values.items() if not is_set(k)}
    rule: dict[Any, Any] = {}
    for key, value in values.items():
        if not is_set(key):
            continue
        name = key.name if isinstance(key, SupportFunction) else key
        if name not in by_name:
            raise ValuesError(f"{key} is not a support function of this declaration.", ", ".join(by_name) or "none")
        rule[by_name[name]] = _with_set(by_name[name], value)
    for g, size in needed.items():
        known = rule.get(g, g)
        if known.shape is None:
            raise ValuesError(
                f"The set of {g} is not given.",
                "a shape, in the declaration or among the values",
                f"{{{g}: Ball(5, 1)}}",
            )
        rule |= _size(known, size)
    follows = {str(symbol): value for symbol, value in rule.items() if isinstance(symbol, Symbol)}
    for key in [k for k in rest if str(k) in follows]:
        if rest.pop(key) != follows[str(key)]:
            raise ValuesError(
                f"{key} is given, but follows from the set: {key} = {follows[str(key)]}.", "values that agree"
            )
    return rule, rest


def _with_set(g: SupportFunction, value: Any) -> SupportFunction:
    from symcavity.shapes.base import Shape

    if isinstance(value, SupportFunction) and value.shape is not None:
        return value
    if not isinstance(value, Shape):
        raise ValuesError(f"The value of {g} is {value!r}.", "a shape, for instance Ball(5, 1)")
    return g.given(value)


def _size(g: SupportFunction, size: Any) -> dict[Symbol, Any]:
    """The symbol in the number of components, from the dimension of the set."""
    assert g.shape is not None  # noqa: S101 - checked before
    dimension = g.shape.dimension
    free = sorted(size.free_symbols, key=str)
    if not free:
        if size != dimension:
            raise ValuesError(
                f"{g.shape!r} lives in {dimension} dimensions, but the vectors have {size} components.",
                "a set with as many coordinates",
            )
        return {}
    (symbol, *others) = free
    slope = size.diff(symbol)
    if others or not slope.is_Integer:
        raise ValuesError(f"The number of components is {size}.", "a number of components such as D + 1")
    value = cancel((dimension - size.subs(symbol, 0)) / slope)
    if not value.is_Integer or (symbol.is_positive and value < 1):
        raise ValuesError(
            f"{g.shape!r} lives in {dimension} dimensions, so that {symbol} = {value}.",
            f"a set with {size} coordinates",
        )
    return {symbol: Integer(value)}
