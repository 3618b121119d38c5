"""Of which order in the size the quantities of one site are, where an order parameter is a sum over all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sympy import Add, Expr, Mul, Pow, S, Sum, Symbol, linsolve

from symcavity.model.averages import SiteResponse
from symcavity.model.kinds import SiteCount
from symcavity.model.quantities import Family, Quenched, SiteQuantity, Variable
from symcavity.record.symbols import CavitySymbol, Source


def orders(meanings: Mapping[Symbol, Expr], solutions: Mapping[SiteQuantity, Expr]) -> list[tuple[Expr, Expr]]:
    """Return the quantities of a site with the powers of N with which they go, in order of their names.

    Parameters
    ----------
    meanings : mapping
        The order parameters.  Where one is a sum over sites, its terms are of order ``1/N``; responses are of order
        one.
    solutions : mapping
        The states of a site of each kind by its fields: each part of the denominator is of order one, and each part of
        the numerator of the order of the state.

    Returns
    -------
    list of (quantity, power)
        Empty where no order parameter is a sum; without what these conditions leave open, and what is of order one.
    """
    totals = [meaning.function for meaning in meanings.values() if isinstance(meaning, Sum)]
    if not totals:
        return []
    found = sorted(set().union(*(_quantities(body) for body in totals)), key=str)
    powers = {q.family: Symbol(f"p{n}") for n, q in enumerate(found)}
    conditions = [order + 1 for body in totals for order in _orders(body, powers)]
    for state, solution in solutions.items():
        above, below = solution.as_numer_denom()
        own = {q.family: q for q in _quantities(above) | _quantities(below) | {state}}
        powers |= {family: Symbol(f"p{len(powers) + n}") for n, family in enumerate(f for f in own if f not in powers)}
        if state not in found:
            continue
        conditions += [order - powers[state.family] for order in _orders(above, powers)]
        conditions += list(_orders(below, powers))
    unknowns = sorted(powers.values(), key=str)
    solved = next(iter(linsolve(conditions, unknowns)), None)
    if solved is None:
        return []
    values = dict(zip(unknowns, solved, strict=True))
    named = sorted(powers, key=lambda family: family.name)
    return [(f.at_site(), values[powers[f]]) for f in named if values[powers[f]].is_number and values[powers[f]] != 0]


def _quantities(expr: Expr) -> set[SiteQuantity]:
    return {q for q in expr.atoms(SiteQuantity) if isinstance(q.family, Variable | Quenched)}


def _orders(expr: Expr, powers: Mapping[Family, Symbol]) -> Iterable[Expr]:
    """The power of N of each term of an expression, but for those that hold a field or a source."""
    for term in Add.make_args(expr.expand()):
        if any(isinstance(q.family, Source) for q in term.atoms(SiteQuantity)) or term.atoms(CavitySymbol):
            continue
        yield Add(*(_order(factor, powers) for factor in Mul.make_args(term)))


def _order(factor: Expr, powers: Mapping[Family, Symbol]) -> Expr:
    if isinstance(factor, Pow):
        return factor.exp * _order(factor.base, powers)
    if isinstance(factor, SiteCount):
        return S.One
    if isinstance(factor, SiteQuantity) and not isinstance(factor, SiteResponse):
        return powers.get(factor.family, S.Zero)
    return S.Zero
