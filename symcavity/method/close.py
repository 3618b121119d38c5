"""Close: order parameters as averages over single sites (verb six)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sympy import Add, Dummy, Expr, Min, S, Sum

from symcavity.algebra.gaussian import GaussianAverage
from symcavity.algebra.implicit import ImplicitAverage
from symcavity.errors import DeclarationError
from symcavity.method.tidy import tidy_arguments
from symcavity.model.averages import Average, SiteResponse
from symcavity.model.equations import Equation
from symcavity.model.fields import FieldSymbol
from symcavity.model.kinds import Kind, kind_of_range, to_leading_order
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.model.system import System
from symcavity.record.symbols import CavitySymbol
from symcavity.sites.site import Site


def over_sites(expr: Expr) -> set[Expr]:
    """The averages and the sums over sites; sums over components are none."""
    sums = {node for node in expr.atoms(Sum) if any(kind_of_range(lim) for lim in node.limits)}
    return expr.atoms(Average) | sums


def is_given(q: SiteQuantity) -> bool:
    """Whether a quantity is a parameter that is fixed before all else: a label that is drawn on a field is none."""
    return isinstance(q.family, Quenched) and q.family.given is None


def kind_of_body(body: Expr) -> Kind:
    """The kind of a single-site expression; averages inside it are numbers.

    Raises
    ------
    DeclarationError
        If it holds quantities of several kinds, or of none.
    """
    body = body.xreplace(dict.fromkeys(over_sites(body), S.One))
    found = {kind for q in site_quantities(body) for kind in q.site}
    found |= {kind for r in body.atoms(SiteResponse) for kind in r.state.site}
    if len(found) != 1:
        raise DeclarationError(f"{body} is not a quantity of one site.", "quantities of one kind of site, at one index")
    return found.pop()


def averaged_over(sites: Mapping[Kind, Site], expr: Expr) -> Expr:
    """Replace each average over sites, and each sum over them, by the single-site average that it is.

    Parameters
    ----------
    sites : mapping
        The solved site of each kind.
    expr : Expr
        In averages and sums; those of quenched quantities alone are given numbers and stay.
    """
    rule: dict[Expr, Expr] = {}
    for node in over_sites(expr):
        body = node.args[0]
        quenched = all(isinstance(q.family, Quenched) for q in site_quantities(body))
        if quenched and body.has(GaussianAverage, ImplicitAverage):
            continue  # over the fields it is averaged already, and labels of many values are summed over
        if not body.has(SiteResponse) and all(is_given(q) for q in site_quantities(body)):
            continue
        numbers = _numbers(body)
        body = body.xreplace(numbers)
        back = {mark: averaged_over(sites, inner) for inner, mark in numbers.items()}
        rule[node] = _averaged(sites, node, body).xreplace(back)
    return tidy_arguments(expr.xreplace(rule))


def _numbers(body: Expr) -> dict[Expr, Dummy]:
    """Names for the averages and sums inside of an average: they are the same number at every site."""
    found = sorted(over_sites(body), key=str)
    return {a: Dummy(f"m{k}", real=True, nonnegative=a.is_nonnegative) for k, a in enumerate(found)}


def _averaged(sites: Mapping[Kind, Site], node: Expr, body: Expr) -> Expr:
    """What is averaged or summed over sites, with numbers for the averages in it."""
    moves = bool(site_quantities(body)) or body.has(SiteResponse)
    ensemble = sites[kind_of_body(body)].ensemble if moves else None
    if isinstance(node, Average):
        return body if ensemble is None else ensemble.average(body)
    ((index, _, size),) = node.limits
    inner = body if ensemble is None else ensemble.at_site(body)
    return Sum(inner, (index, 1, size)) if inner.has(SiteQuantity) else size * inner


def averaged_parts(parts: Mapping[Kind, Expr], sites: Mapping[Kind, Site]) -> dict[Kind, Expr]:
    """What a condition sums over each kind of site, averaged over one of them, to leading order."""
    split = {k: to_leading_order(e).as_independent(SiteQuantity, FieldSymbol, as_Add=True) for k, e in parts.items()}
    return {kind: fixed + sites[kind].ensemble.average(moving) for kind, (fixed, moving) in split.items()}


def per_site(averages: Mapping[Kind, Expr]) -> Expr:
    """A sum over all sites of some kinds: over the only kind's number of sites, or else over N."""
    alone = len(averages) == 1
    return Add(*(value if alone else kind.ratio * value for kind, value in averages.items()))


def conditions(system: System, sites: Mapping[Kind, Site]) -> list[Equation]:
    """The condition for each global variable, averaged over the sites that it sums over.

    What is of order 1/sqrt(N) beside a sum is dropped.  Where it makes a pair with a variable,
    ``0 <= variable ⊥ sum >= 0``, the smaller of both is zero.
    """
    out = []
    for parts, partner in zip(system.global_conditions, system.partners, strict=True):
        value = tidy_arguments(per_site(averaged_parts(parts, sites)))
        out.append(Equation(value if partner is None else Min(partner, value, evaluate=False), S.Zero))
    return out


def assumed(sites: Mapping[Kind, Site]) -> tuple[Any, ...]:
    """The inequalities that the single-site solutions assume, at the mean self-couplings."""
    found = [c for site in sites.values() for c in site.solution.assumed]
    return tuple(c for c in found if c != S.true)


def positive_parts(sites: Mapping[Kind, Site]) -> tuple[Expr, ...]:
    """The denominators that were taken as positive: of laws whose sites are all alike, in order parameters."""
    found = [c.lhs for c in assumed(sites) if c != S.false and c.rhs == 0]
    return tuple(e for e in found if not e.atoms(SiteQuantity, Dummy, CavitySymbol))
