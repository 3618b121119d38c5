"""The minimum of a convex problem per feature, as an observable: the declared objective at the states."""

from __future__ import annotations

from typing import Any

from sympy import Dummy, Expr, Sum

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import Average
from symcavity.model.kinds import N, in_units_of_n, kind_of_range
from symcavity.model.system import System


def objective_of(system: System) -> Expr:
    """The objective of a declared problem over N: averages over sites, weighted by the numbers of sites.

    An objective that is declared as a mean is that mean.

    Parameters
    ----------
    system : System
        That of a :class:`ConvexProblem`.

    Returns
    -------
    Expr
        In the words of the declaration: ``alpha*average(l(h)) + average(g(w))``.

    Raises
    ------
    UnsupportedLaw
        For a system of equations, which minimizes nothing.
    """
    if system.record is None:
        raise UnsupportedLaw("A system of equations has no objective.", "a ConvexProblem")
    minimize, _ = system.record.problem.typed
    averaged = _averaged(minimize)
    marks = {node: Dummy(real=True) for node in sorted(averaged.atoms(Average), key=str)}
    whole = in_units_of_n(averaged.xreplace(marks) / N).expand()
    return whole.xreplace({mark: node for node, mark in marks.items()})


def _averaged(expr: Any) -> Any:
    """Sums over all sites as their numbers times averages; the sums that a site hears stay within them."""
    if isinstance(expr, Sum):
        sites = [limits for limits in expr.limits if kind_of_range(limits)]
        own = [limits for limits in sites if limits[0] == limits[2].kind.index]
        outer = sites if len(sites) == 1 else own  # of a quadratic form the site, and what it hears
        if len(outer) == 1 and len({limits[2] for limits in sites}) == 1:
            ((index, *_, size),) = outer
            inner = [limits for limits in expr.limits if limits not in outer]
            body = Sum(expr.function, *inner) if inner else expr.function
            return size * Average(body.xreplace({index: size.kind.index}))
    if isinstance(expr, Average) or not getattr(expr, "args", ()) or not expr.has(Sum):
        return expr
    return expr.func(*map(_averaged, expr.args))

