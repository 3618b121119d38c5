"""A problem that may have several minima, at zero temperature: its lowest one, as a system of sites.

The equations are those of the Gibbs measure with states in place of their thermal means: each state is the one of
lowest energy, and what data send is the force on their field.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sympy import Expr, oo

from symcavity.errors import UnsupportedLaw, ValuesError
from symcavity.method.measure import Measure
from symcavity.model.averages import Expect, Lowest
from symcavity.model.equations import Equation
from symcavity.model.problem import Problem
from symcavity.model.quantities import SiteQuantity
from symcavity.model.system import System

SELECT = ("lowest", "local")


def lowest(problem: Problem, select: str = "lowest") -> System:
    """Return the lowest minimum of a problem as a system of sites.

    Parameters
    ----------
    problem : Problem
    select : str
        ``'lowest'``; or ``'local'``, where each site follows the minimum that it has without feedback.

    Raises
    ------
    ValuesError
        For another word.
    UnsupportedLaw
        For what has no Gibbs measure here, and sites that send a product of several states.
    """
    if select not in SELECT:
        raise ValuesError(f"No choice of a minimum is called {select!r:.60}.", " or ".join(map(repr, SELECT)))
    found = Measure(problem, oo)
    sent: dict[Any, Expr] = {}
    for weight in found.weights.values():
        if weight.is_field:
            continue
        if not isinstance(weight.state, SiteQuantity):
            raise UnsupportedLaw(
                f"The {weight.mean.family.kind.sites} send {weight.state}, of which there may be several minima.",
                "sites that send one state",
                "problem.gibbs(beta) at large beta",
            )
        sent[weight.mean] = weight.state
    named = {mean.family: state for mean, state in sent.items()}

    def cold(expr: Expr) -> Expr:
        """What holds of states where it held of their means."""
        means = {q: named[q.family].family[q.indices] for q in expr.atoms(SiteQuantity) if q.family in named}
        return expr.xreplace(means).replace(lambda e: isinstance(e, Expect), lambda e: e.body)

    equations = [
        Equation(sent[e.lhs], Lowest(sent[e.lhs])) if e.lhs in sent else Equation(cold(e.lhs), cold(e.rhs))
        for e in found.equations
    ]
    beside = [q for weight in found.weights.values() for q in weight.beside]
    equations += [Equation(q, Lowest(q)) for q in beside]
    is_local = select == "local"
    cooled = {kind: w if w.is_field else replace(w, mean=w.state) for kind, w in found.weights.items()}
    weights = {kind: replace(w, is_local=is_local) for kind, w in cooled.items()}
    return System(
        equations,
        [*(cold(pair) for pair in found.pairs), *problem.ranges],
        weights=weights,
        collective=found.collective,
        **problem.taken_over(),
    )
