"""Where averages have kinks in a quenched parameter: there the rules for its density break."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from sympy import Dummy, Expr

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.quadrature import break_points
from symcavity.evaluate.averages.nodes import own_quantities
from symcavity.model.quantities import Quenched, SiteQuantity


def kinks(bodies: Iterable[Expr], family: Quenched) -> list[Expr]:
    """Return the values of a parameter at which integrands are not smooth.

    Parameters
    ----------
    bodies : iterable of Expr
        What is averaged over sites.
    family : Quenched

    Returns
    -------
    Values in whatever symbols stand in the integrands: where a branch of the parameter itself switches, and where two
    breaks of an inner average meet, as a bound does that passes a kink.
    """
    found: dict[Expr, None] = {}
    for body in bodies:
        for q in sorted((q for q in own_quantities(body) if q.family == family), key=str):
            x = Dummy("x", real=True)
            seen = body.xreplace({q: x})
            found |= dict.fromkeys(e for e in break_points(seen, x) if e.free_symbols <= seen.free_symbols)
            for node in sorted(seen.atoms(GaussianAverage), key=str):
                for a, b in combinations((b for b in node.breaks if not b.has(SiteQuantity)), 2):
                    gap = (a - b).expand()
                    rise = gap.coeff(x)
                    if rise != 0 and not (gap - rise * x).has(x):
                        found[(-(gap - rise * x) / rise).cancel()] = None
    return [e for e in found if not e.has(SiteQuantity)]
