"""Small conventions that several verbs share: the inserted site, and the titles of a derivation's parts."""

from __future__ import annotations

from typing import Any

from sympy import S, Sum

from symcavity.model.equations import Equation
from symcavity.model.kinds import Kind


def cavity_of(kind: Kind) -> str:
    """The title of the part of a derivation in which a site of a kind is inserted."""
    return f"{kind.name[0].upper()}{kind.name[1:]} cavity"


def at_zero(expr: Any, kind: Kind) -> Any:
    """The inserted site: the canonical index of its kind set to zero; sums over all sites of the kind stay."""
    sides = [expr.lhs, expr.rhs] if isinstance(expr, Equation) else [expr]
    sums = {s for side in sides for s in side.atoms(Sum) if kind.index in {lim[0] for lim in s.limits}}
    return expr.xreplace({kind.index: S.Zero, **{s: s for s in sums}})
