"""The entries of a system, as they are read: equations and conditions of each kind of site, and of shared variables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sympy import Eq, Expr, S, Sum

from symcavity.errors import DeclarationError
from symcavity.model.complementary import Complementary
from symcavity.model.equations import Equation, as_equation
from symcavity.model.fields import FieldBook, extract_fields
from symcavity.model.kinds import (
    FEATURE,
    Kind,
    N,
    SiteCount,
    in_ratios,
    in_units_of_n,
    sorted_kinds,
    to_leading_order,
)
from symcavity.model.laws import componentwise, pair_components
from symcavity.model.quantities import Global, SiteQuantity
from symcavity.model.ranges import RELATIONS
from symcavity.model.refusals import check_words
from symcavity.model.shared import read_shared
from symcavity.model.site_sums import free_kind, site_sum


def read_entry(condition: Any) -> Complementary | Any:
    """Read an entry of ``conditions``: a pair, the bound of a state, or an equation that stands there."""
    if isinstance(condition, (Complementary, *RELATIONS)):
        return condition
    if isinstance(condition, Eq | Equation):
        return as_equation(condition, "an entry of conditions")
    raise DeclarationError(
        f"The condition {condition!r} is not supported.",
        "Complementary(p, q), meaning 0 <= p ⊥ q >= 0; equations; ranges of parameters",
    )


def read_equations(
    equations: Iterable[Equation], book: FieldBook, *, moving: bool
) -> tuple[dict[Kind, list[Equation]], tuple[Any, ...], list[dict[Kind, Expr]]]:
    """The equations of each kind of site, what all sites share, and conditions on global variables."""
    site: dict[Kind, list[Equation]] = {}
    globals_: list[dict[Kind, Expr]] = []
    shared: list[Equation] = []
    for equation in componentwise(equations):
        where = f"the equation {equation}"
        check_words(equation.difference, where)
        kind = free_kind(equation.difference, where)
        if kind is None and moving:
            shared.append(read_shared(equation))
            continue
        if kind is None:
            globals_.append(_global_condition(equation, where))
            continue
        lhs = in_ratios(extract_fields(equation.lhs, kind, book, where))
        rhs = in_ratios(extract_fields(equation.rhs, kind, book, where))
        site.setdefault(kind, []).append(Equation(lhs, rhs))
    return site, tuple(shared), globals_


def read_conditions(
    conditions: Iterable[Complementary], book: FieldBook
) -> tuple[dict[Kind, list[Complementary]], tuple[Complementary, ...], list[dict[Kind, Expr]]]:
    """The pairs of each kind of site, those of global variables, and what these are about."""
    pairs: dict[Kind, list[Complementary]] = {}
    shared_pairs: list[Complementary] = []
    globals_: list[dict[Kind, Expr]] = []
    for condition in conditions:
        if isinstance(condition.args[0], Global):
            check_words(condition.args[1], f"the condition {condition}")
            globals_.append(_global_condition(Equation(condition.args[1], S.Zero), f"the condition {condition}"))
            shared_pairs.append(condition)
            continue
        for pair in pair_components(condition):
            kind = _kind_of_pair(pair)
            members = (extract_fields(q, kind, book, f"the condition {pair}") for q in pair.pair)
            pairs.setdefault(kind, []).append(Complementary(*members))
    return pairs, tuple(shared_pairs), globals_


def _kind_of_pair(pair: Complementary) -> Kind:
    """The kind of site whose quantities a pair holds."""
    where = f"the condition {pair}"
    for q in pair.pair:
        check_words(q, where)
    kinds = {free_kind(q, where) for q in pair.pair} - {None}
    if len(kinds) != 1:
        raise DeclarationError(
            f"The condition {pair} has {'quantities of several kinds of site' if kinds else 'no site index'}.",
            "conditions between quantities of one site",
        )
    (kind,) = kinds
    return kind  # type: ignore[return-value]


def _global_condition(equation: Equation, where: str) -> dict[Kind, Expr]:
    """Read ``sums over sites = 0``: what is summed over each kind.

    Terms in proportion to N or P are shared out among the sites of one of the kinds.  An equation of means, of sums
    over N or P sites divided by their number, is one of sums.
    """
    total: dict[Kind, Expr] = {}
    shared: Expr = S.Zero  # in units of N
    terms = equation.difference.expand(multinomial=False).as_ordered_terms()
    factors = [in_units_of_n(t.as_independent(Sum, SiteQuantity, as_Add=False)[0]) for t in terms if t.has(Sum)]
    if factors and all((N * factor).cancel().has(N) is False for factor in factors):
        terms = [N * term for term in terms]
    for term in terms:
        factor, rest = term.as_independent(Sum, SiteQuantity, as_Add=False)
        if isinstance(rest, Sum):
            summed, body = site_sum(rest, where)
            if body.has(Sum):
                raise DeclarationError(f"A double sum stands in {where}.", "conditions of single sums over sites")
            total[summed] = total.get(summed, S.Zero) + factor * body
            continue
        density = (in_units_of_n(term) / N).cancel()
        if density.has(N) and not equation.difference.has(Sum):
            density = term  # a relation between globals, of order one
        if to_leading_order(density).has(N):
            raise DeclarationError(
                f"The term {term} of {where} is not in proportion to the number of sites, as the sum over them is.",
                "global terms in proportion to N or P",
                f"N*({term})" if not term.has(SiteCount) else "",
            )
        shared += density
    if not total and not shared.has(Global):
        raise DeclarationError(f"{where} has no sum over sites.", "Eq(Sum(..., (mu, 1, P)), 0)")
    first, *others = sorted_kinds(total) or [FEATURE]
    return {first: total.get(first, S.Zero) + shared / first.ratio} | {kind: total[kind] for kind in others}
