"""The alternatives of conditions that make a pair with a variable: each holds as an equality, or idles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from sympy import Expr, GreaterThan, S, nan, oo, zoo

from symcavity.model.equations import Equation
from symcavity.model.system import System
from symcavity.record.order_parameters import OrderParameter


def alternatives(
    system: System, closures: Mapping[OrderParameter, Expr], conditions: list[Equation]
) -> Iterator[dict[str, Any]]:
    """Yield the parts of a theory that differ, for each choice of which of its conditions on sums idle.

    Parameters
    ----------
    system : System
    closures : mapping
        The closed equations of the theory.
    conditions : list of Equation
        Its conditions on global variables.
    """
    pairs = [k for k, partner in enumerate(system.partners) if partner is not None]
    for tight in product((True, False), repeat=len(pairs)):
        equations, decided, idle = list(conditions), [], dict[Expr, Expr]()
        for k, holds in zip(pairs, tight, strict=True):
            partner = system.partners[k]
            assert partner is not None  # noqa: S101 - a pair
            (value,) = (e for e in equations[k].lhs.args if e != partner)
            equations[k] = Equation(value if holds else partner, S.Zero)
            decided.append(GreaterThan(partner if holds else value, 0, evaluate=False))
            if not holds:
                idle[partner] = S.Zero
        yield {
            "closures": {s: _where(value, idle) for s, value in closures.items()},
            "global_equations": [e if e.lhs in idle else Equation(_where(e.lhs, idle), e.rhs) for e in equations],
            "decided": tuple(decided),
        }


def _where(expr: Expr, values: dict[Expr, Expr]) -> Expr:
    """An expression at some values, or as it is where it has none there."""
    found = expr.xreplace(values)
    return expr if found.has(nan, zoo, oo) else found
