"""Variables that all sites share and that move: each follows from averages over sites."""

from __future__ import annotations

from sympy import Add, Dummy, Expr

from symcavity.algebra.flow import Rate
from symcavity.errors import DeclarationError
from symcavity.model.averages import Average
from symcavity.model.equations import Equation
from symcavity.model.kinds import N, in_units_of_n
from symcavity.model.quantities import SharedState, site_quantities
from symcavity.model.site_sums import outer_sums, site_sum


def read_shared(equation: Equation) -> Equation:
    """An equation of a shared variable, with averages in the place of sums over all sites.

    Raises
    ------
    DeclarationError
        If it is not solved for a shared variable, or sums in it grow with the number of sites.
    """
    where = f"the equation {equation}"
    lhs, rhs = _solved(equation)
    if lhs is None:
        raise DeclarationError(
            f"{where[0].upper()}{where[1:]} has no site index, and gives no variable that all sites share.",
            "equations of sites, and of Global variables over the time, with that variable alone on the left",
            "Eq(b[t + 1], b[t] - eta*Sum(lam[mu, t], (mu, 1, P))/N)",
        )
    rule = {}
    for total in outer_sums(rhs):
        kind, body = site_sum(total, where)
        rule[total] = kind.size * Average(body)
    found = Add(*(in_units_of_n(term).cancel() for term in Add.make_args(rhs.xreplace(rule).expand(deep=False))))
    if found.xreplace({a: Dummy() for a in found.atoms(Average)}).has(N):
        raise DeclarationError(
            f"The sums over sites in {where} are not of order one.",
            "sums over sites divided by their number",
            "Sum(lam[mu, t], (mu, 1, P))/N",
        )
    return Equation(lhs, found)


def _solved(equation: Equation) -> tuple[Expr | None, Expr]:
    """The shared variable that an equation gives, and by what: a condition ``Sum(..., (i, 1, N)) = N*g`` is solved."""
    if isinstance(equation.lhs, Rate):
        return equation.lhs, equation.rhs
    for lhs, rhs in ((equation.lhs, equation.rhs), (equation.rhs, equation.lhs)):
        named = [q for q in site_quantities(lhs, SharedState) if not lhs.xreplace({q: 0 * q}).has(q)]
        if len(named) == 1 and lhs.diff(named[0]) * named[0] == lhs:
            return named[0], rhs if lhs == named[0] else (rhs / lhs.diff(named[0])).expand(deep=False)
    return None, equation.rhs
