"""Averages with code of a special kind: over polyhedra of several fields, and over convex sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sympy import Expr

from symcavity.algebra.joint import JointAverage
from symcavity.algebra.polyhedral import CellAverage
from symcavity.algebra.products import ProductAverage


def boxed(node: Expr, compiled: Callable[[Expr, str], Any], backend: str) -> Callable[[Mapping[Any, Any]], Any]:
    """Return the function of an average that has code of its own.

    Parameters
    ----------
    node : Expr
    compiled : callable
        Compiles the expressions in it for a backend.
    backend : str
    """
    if isinstance(node, CellAverage):  # the code is loaded where a law asks for it
        from symcavity.evaluate.averages.polyhedra import Cell

        return Cell(node, compiled, backend)
    if isinstance(node, JointAverage):
        from symcavity.evaluate.averages.joint_laws import CompiledAverage

        return CompiledAverage(node, compiled, backend)
    if isinstance(node, ProductAverage):
        from symcavity.evaluate.averages.hermite_series import CompiledProduct

        return CompiledProduct(node, compiled, backend)
    from symcavity.evaluate.averages.set_averages import Projected

    return Projected(node, compiled, backend)
