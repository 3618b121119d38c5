"""Notation that stands in formulas and is no quantity: what it means, said where it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sympy import Heaviside, Max, preorder_traversal

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.algebra.joint import JointAverage
from symcavity.model.averages import condition_of
from symcavity.model.equations import Equation
from symcavity.writing.fragments import Formula, Fragments, formula

_MEANINGS: tuple[tuple[Callable[[Any], bool], Callable[[Any], Fragments]], ...] = (
    (
        lambda node: isinstance(node, Max) and 0 in node.args,
        lambda _: ["A bracket ", Formula("\\left[x\\right]_+ = \\max(x, 0)"), " is a positive part. "],
    ),
    (
        lambda node: condition_of(node) is not None,
        lambda _: [Formula("\\mathbf{1}[\\cdot]"), " is one where the condition in it holds, and zero elsewhere. "],
    ),
    (
        lambda node: isinstance(node, Heaviside),
        lambda _: [Formula("\\Theta(x)"), " is one for positive ", Formula("x"), ", and zero for negative. "],
    ),
    (
        lambda node: type(node) is GaussianAverage,
        lambda node: ["A bracket with an index, ", formula("\\langle\\cdot\\rangle_{", node.args[1], "}"),
                      ", is an average over this standard Gaussian variable. "],
    ),
    (
        lambda node: isinstance(node, JointAverage),
        lambda _: ["A bracket with the index ", Formula("\\eta"), (" is an average over the cavity fields of the site, "
                   "of states that its law fixes together; a quenched parameter beside it is averaged over, too. ")],
    ),
    (
        lambda node: isinstance(node, ImplicitAverage),
        lambda node: ["In ", Formula("\\langle A \\,|\\, B = \\zeta \\rangle_\\zeta"),
                      " the average is over a standard Gaussian ", Formula("\\zeta"), ", and ", node.args[1],
                      " solves the equation on the right of the bar. "],
    ),
)  # fmt: skip


def meanings(claims: Iterable[Any], said: set[int]) -> Fragments:
    """Return what the notation in some claims means, as far as nobody has said it; adds to what was said."""
    nodes: list[Any] = []
    for claim in claims:
        for side in (claim.lhs, claim.rhs) if isinstance(claim, Equation) else ():
            nodes += preorder_traversal(side)
    out: Fragments = []
    for number, (found, words) in enumerate(_MEANINGS):
        first = next(filter(found, nodes), None) if number not in said else None
        if first is not None:
            said.add(number)
            out += words(first)
    return out
