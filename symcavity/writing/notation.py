"""Notation that stands in formulas and is not a quantity: what it means, said where it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import Basic, Heaviside, Max, preorder_traversal

from symcavity.algebra.between import between
from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import JointAverage
from symcavity.algebra.lowest import FollowedAverage, LowestAverage
from symcavity.algebra.phi import phi
from symcavity.model.averages import condition_of
from symcavity.model.equations import Equation
from symcavity.writing.fragments import Fragments
from symcavity.writing.words import say

_NOTATION: dict[str, Callable[[Any], bool]] = {
    "positive_part": lambda node: isinstance(node, Max) and 0 in node.args,
    "indicator": lambda node: condition_of(node) is not None,
    "step": lambda node: isinstance(node, Heaviside),
    "moments": lambda node: isinstance(node, phi),
    "between": lambda node: isinstance(node, between),
    "gaussian": lambda node: type(node) is GaussianAverage,
    "joint": lambda node: isinstance(node, JointAverage),
    "implicit": lambda node: isinstance(node, ImplicitAverage),
    "lowest_solution": lambda node: type(node) is LowestAverage,
    "followed_solution": lambda node: isinstance(node, FollowedAverage),
}
"""How each notation is found, by its section of the sentences."""


def meanings(claims: Iterable[Any], said: set[str]) -> Fragments:
    """Return the meaning of the notation in some claims, as far as it was not said before; adds to what was said."""
    nodes: list[Any] = []
    for claim in claims:
        for part in claim if isinstance(claim, tuple) else (claim,):
            sides = (part.lhs, part.rhs) if isinstance(part, Equation) else (part,)
            nodes += [node for side in sides if isinstance(side, Basic) for node in preorder_traversal(side)]
    out: Fragments = []
    for name, found in _NOTATION.items():
        first = next(filter(found, nodes), None) if name not in said else None
        if first is not None:
            said.add(name)
            letter = getattr(first, "letter", None)
            out += [*say(f"notation.{name}", variable=first.args[1:2], letter=letter), " "]
    return out
