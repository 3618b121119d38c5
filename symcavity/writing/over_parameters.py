"""Averages over the fields of a site and over its quenched parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sympy import Add, Expr, S, Tuple, default_sort_key

from symcavity.algebra.joint import JointAverage
from symcavity.algebra.node import raised
from symcavity.model.quantities import Quenched
from symcavity.record.derivation import Derivation

Rule = Callable[[Any], Any]


class OverParameters(Expr):
    """An average over the fields of a site and over its quenched parameters."""

    def _latex(self, printer: Any, exp: str | None = None) -> str:
        average, *parameters = self.args
        below = ", ".join(map(printer.doprint, (average.letter, *parameters)))
        return raised(f"\\left\\langle {printer.doprint(average.body)} \\right\\rangle_{{{below}}}", exp)


def over_parameters(derivation: Derivation) -> Rule:
    """Averages that differ by the values of quenched parameters only are one, over these parameters, too."""
    every = [q for step in derivation.steps for q in step.data.get("quenched") or ()]
    quenched = [q for q in dict.fromkeys(every) if isinstance(q, Quenched) and isinstance(q.law, Tuple)]

    def one(total: Add) -> Expr:
        same: dict[Expr, list[JointAverage]] = {}
        for average in sorted(total.atoms(JointAverage), key=default_sort_key):
            same.setdefault(average.body, []).append(average)
        rule: dict[Expr, Expr] = {}
        for some in same.values():
            mine = [q[S.Zero] for q in quenched if q.slots[0].upper == ("^" in some[0].law.fields[0].tex)]
            rule |= dict.fromkeys(some, OverParameters(some[0], *mine)) if len(some) > 1 else {}
        return total.xreplace(rule)

    def rule(expr: Any) -> Any:
        if not expr.has(JointAverage):
            return expr
        totals = [node for node in expr.atoms(Add) if any(term.has(JointAverage) for term in node.args)]
        return expr.xreplace({node: one(node) for node in totals})

    return rule
