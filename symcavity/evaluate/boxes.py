"""Averages that are computed by code of their own: over polyhedra of several fields, over convex sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr

from symcavity.algebra.joint import JointAverage
from symcavity.algebra.polyhedral import CellAverage
from symcavity.evaluate.joint_laws import Joint
from symcavity.evaluate.polyhedra import Cell
from symcavity.evaluate.set_averages import Projected


def boxed(node: Expr, compiled: Callable[[Expr, str], Any], backend: str) -> Callable[[Mapping[Any, Any]], Any]:
    """Return the function of an average that has code of its own.

    Parameters
    ----------
    node : Expr
    compiled : callable
        Compiles the expressions in it for a backend.
    backend : str
    """
    kinds: dict[type, Any] = {CellAverage: Cell, JointAverage: Joint}
    code: Any = kinds.get(type(node), Projected)(node, compiled, backend)
    return code


__all__ = ["boxed"]
