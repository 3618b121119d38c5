"""Sums over couplings of variance one, in units in which the couplings have the variance 1/N."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Add, Eq, Expr, GreaterThan, LessThan, Mul, S, Sum, expand_mul, sqrt

from symcavity.model.couplings import Coupling
from symcavity.model.equations import Equation
from symcavity.model.families import families
from symcavity.model.kinds import N, SiteCount, in_units_of_n
from symcavity.model.quantities import SiteQuantity, site_quantities
from symcavity.model.rewriting import Declaration, Rewriting, sides, with_sides
from symcavity.model.site_sums import outer_sums


class Units(Rewriting):
    """Relations whose sums are all over couplings of variance one, divided by sqrt(N)."""

    key = "units"

    def apply(self, declaration: Declaration) -> Declaration:
        """Return the declaration with such relations divided."""
        return declaration.mapped(_in_one_unit)


def _in_one_unit(entry: Any) -> Any:
    """A relation of sums over couplings of variance one, alone or with terms of order sqrt(N), divided by it."""
    if not isinstance(entry, Equation | Eq | GreaterThan | LessThan):
        return entry
    terms = [t for side in sides(entry) for t in Add.make_args(expand_mul(side)) if t != 0]
    heard = [t for t in terms if site_quantities(t, Coupling)]
    large = [(in_units_of_n(t) / sqrt(N)).cancel() for t in terms if t not in heard]
    moments = [e for x in families(heard, Coupling) for e in (x.mean, x.variance)]
    if any(not x.mean.has(N) and x.mean != 0 for x in families(heard, Coupling)):  # which add up to order sqrt(N)
        large = [t / sqrt(N) if t.has(N) else t for t in large]
    small = [*moments, *large, *(t.xreplace({s: s.function for s in outer_sums(t)}) for t in heard)]
    if not heard or any(e.atoms(SiteCount) for e in small):
        return entry
    return with_sides(entry, [(side / sqrt(N)).expand(deep=False) for side in sides(entry)])


def as_ratios(expr: Expr) -> Expr:
    """Cancel numbers of sites, as ratios, in each product, and in each term of a sum that is multiplied by them."""

    def cancelled(product: Expr) -> Expr:
        factors = Mul.make_args(product)
        sizes = [f for f in factors if f.atoms(SiteCount) and not f.atoms(SiteQuantity, Sum)]
        others = [f for f in factors if f not in sizes]
        terms = next((f.args for f in others if f.is_Add and any(_has_size(term) for term in f.args)), None)
        if sizes and terms:
            others.remove(Add(*terms))
            return Add(*(cancelled(Mul(*sizes, *others, term)) for term in terms))
        return Mul(*others, in_units_of_n(Mul(*sizes)))

    return expr.replace(lambda e: isinstance(e, Mul) and bool(e.atoms(SiteCount)), cancelled)


def _has_size(term: Expr) -> bool:
    """Whether a number of sites stands in a term as a factor."""
    return any(isinstance(f.as_base_exp()[0], SiteCount) for f in Mul.make_args(term))


def units_of(exprs: Iterable[Expr]) -> dict[Any, Expr]:
    """What couplings are measured in that stand in sums divided by ``sqrt(N)``, if not in one."""
    exprs = list(exprs)
    return {x: sqrt(N) for x in families(exprs, Coupling) if not x.variance.has(N) and _is_divided(x, exprs)}


def _is_divided(family: Coupling, exprs: Iterable[Expr]) -> bool:
    """Whether a sum over a coupling is divided by sqrt(N) somewhere, outside of it or in its terms."""
    for product in (node for e in exprs for node in e.atoms(Mul)):
        own = [f for f in product.args if family in families([f], Coupling)]
        power = own[0].as_base_exp()[1] if len(own) == 1 else S.One
        sizes = Mul(*(f for f in product.args if f not in own))
        if own and power.is_Integer and (in_units_of_n(sizes).cancel() ** (1 / power)).has(1 / sqrt(N)):
            return True
    return False


def divided_inside(entry: Any, units: dict[Any, Expr]) -> Any:
    """What divides a sum over couplings by sqrt(N), inside of the sum."""

    def measured(expr: Expr) -> bool:
        return isinstance(expr, Mul) and any(q.family in units for q in site_quantities(expr, Coupling))

    def inside(product: Mul) -> Expr:
        factor, rest = product.as_independent(Sum, as_Add=False)
        outside, sizes = factor.as_independent(SiteCount, as_Add=False)
        base, power = rest.as_base_exp()
        share = in_units_of_n(sizes).cancel() ** (1 / power)
        terms = [t.as_independent(Sum, as_Add=False) for t in Add.make_args(expand_mul(base))]
        if not share.has(1 / sqrt(N)) or not all(isinstance(total, Sum) for _, total in terms):
            return product
        return outside * Add(*(c * Sum(total.function * share, *total.limits) for c, total in terms)) ** power

    if not units:
        return entry
    declared = sides(entry)
    read = [side.replace(measured, inside) for side in declared]
    return entry if read == declared else with_sides(entry, read)
