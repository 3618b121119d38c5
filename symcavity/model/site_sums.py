"""Sums over sites as they are typed: which kind they run over, what stands in them, and which index is free."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sympy import Add, Dummy, Expr, Piecewise, S, Sum, Symbol, Tuple

from symcavity.algebra.indexed import fresh_index
from symcavity.errors import DeclarationError
from symcavity.model.averages import Average
from symcavity.model.couplings import Coupling
from symcavity.model.kinds import DATUM, FEATURE, Kind, SiteCount, i, is_index, kind_of_range, mu
from symcavity.model.quantities import Field, SiteQuantity, Variable, site_quantities
from symcavity.model.refusals import check_slots
from symcavity.model.support import stays_whole


def summation_index(sender: Kind, hearer: Kind) -> Symbol:
    """The index of a sender's sites in a sum that a hearer's site carries."""
    return sender.index if sender != hearer else fresh_index(sender.index, {sender.index})

NO_ORDER = (
    "sites have no order, and no neighbors: short chains may be components of one site, as in "
    'Feature("w", components=(k, 1, 3)); parts of a sum are factors that are zero or one, Quenched("c", i)'
)


def kind_of_sum(limits: Tuple) -> Kind | None:
    """Return the kind of site that a summation range such as (index, 1, N) runs over; None for components.

    Raises
    ------
    DeclarationError
        If it is not the whole range, or if the index is the canonical one of another kind.
    """
    kind = kind_of_range(limits) if len(limits) == 3 else None
    if kind is None:
        return None
    index, low, size = limits
    if low != 1:
        raise DeclarationError(
            f"A sum over the sites runs over {tuple(limits)}.", f"the whole range ({index}, 1, {size})", NO_ORDER
        )
    if is_index(index) and index != kind.index:
        raise DeclarationError(
            f"A sum runs over {tuple(limits)}: {index} counts the {index.kind.sites}, "
            f"and there are {index.kind.size} of them.",
            f"({i}, 1, N) for features, ({mu}, 1, P) for data",
            f"({index}, 1, {index.kind.size})",
        )
    return kind


def _rename(body: Expr, kind: Kind, dummy: Symbol, where: str, hearer: Kind | None) -> Expr:
    """Rename the summation index to the canonical one (or to the second), refusing a doubled index."""
    canonical = kind.index
    for quantity in site_quantities(body):
        slot = next((slot for slot, index in quantity.site.items() if index == dummy and slot != kind), None)
        if slot:
            raise DeclarationError(
                f"In {where} the index {dummy} runs over the {kind.sites}, 1 to {kind.size}, "
                f"but stands in the place of a {slot} in {quantity}.",
                f"sums over features run to {FEATURE.size}, over data to {DATUM.size}",
                f"({dummy}, 1, {slot.size})",
            )
    if kind == hearer and dummy != canonical and couples_itself(body, kind):
        return body.xreplace({dummy: summation_index(kind, kind)})
    if dummy == canonical:
        return body
    if body.has(canonical):
        raise DeclarationError(
            f"In {where} the index {canonical} stands inside a sum over {dummy}, which runs over the same sites.",
            "one index of each kind in a coupling sum",
            f"write {dummy} for {canonical} inside the sum",
        )
    return body.xreplace({dummy: canonical})


def couples_itself(body: Expr, kind: Kind) -> bool:
    """Whether a coupling between the sites of one kind stands in a sum."""
    return any(q.family.slots == (kind, kind) for q in site_quantities(body, Coupling))


def site_sum(expr: Sum, where: str, hearer: Kind | None = None) -> tuple[Kind, Expr]:
    """Return the kind that a sum runs over, and the body at its canonical index.

    In the sum of a site over its own kind, ``hearer``, the body is at the second index of that kind.
    """
    site_limits = [(lim, kind_of_sum(lim)) for lim in expr.limits]
    sites = [(lim, kind) for lim, kind in site_limits if kind]
    index, low, high = expr.limits[0]
    if not sites and any(index in q.indices[len(q.family.slots) :] for q in site_quantities(expr.function)):
        raise DeclarationError(
            f"The component index {index} in {where} runs over {low}..{high}.",
            "explicit ranges of components, such as (a, 1, 2); open ranges in the argument of a support function",
        )
    linear = hearer is None and len(sites) == len(expr.limits) > 1 and expr.function.has(Coupling)
    if linear and len({kind for _, kind in sites}) == len(sites):  # SymPy writes a sum of sums as one
        limits, kind = sites[-1]
        body = _rename(Sum(expr.function, *expr.limits[:-1]), kind, limits[0], where, None)
        check_slots(body, where)
        return kind, body
    outer = next((lim for lim, kind in sites if lim[0] == kind.index), None)
    if linear and len(sites) == 2 and outer is not None and couples_itself(expr.function, sites[0][1]):
        inner = next(lim for lim in expr.limits if lim != outer)  # a quadratic form of couplings within one kind
        return sites[0][1], Sum(expr.function, inner)
    if len(sites) != 1:
        paired = len(sites) > 1 and len({kind for _, kind in sites}) == 1
        level = 'a loss of pairs compares each site with a level that all share: b = Global("b") in place of the other'
        partly = any(not kind and lim[-1].atoms(SiteCount) for lim, kind in site_limits)
        short = [lim for lim, kind in site_limits if not kind]
        moved = next((lim for lim in short if isinstance(lim[-1] - lim[1] + 1, SiteCount)), None)
        whole = f"({moved[0]}, 1, {moved[-1] - moved[1] + 1}): sites are counted from 1" if moved else ""
        own = next((str(lim[2]) for lim in expr.limits if str(lim[-1]) in ("N", "P") and lim not in dict(sites)), "")
        raise DeclarationError(
            f"{expr} in {where} runs over {' and '.join(str(tuple(lim)) for lim in expr.limits)}"
            + (f", where {own} is a symbol of your own." if own else "."),
            "sums over (i, 1, N) or (mu, 1, P), one kind of site at a time; nested Sum(...) for another",
            f"from symcavity import {own}" if own else whole or (level if paired else NO_ORDER if partly else ""),
        )
    (limits, kind) = sites[0]
    inner = [lim for lim, s in site_limits if not s]
    body = Sum(expr.function, *inner) if inner else expr.function
    body = expand_components(_rename(body, kind, limits[0], where, hearer), where)
    check_slots(body, where, *([summation_index(kind, kind)] if kind == hearer else []))
    return kind, body


def expand_components(expr: Expr, where: str) -> Expr:
    """Write out sums over component indices whose range is explicit."""
    for inner in sorted(expr.atoms(Sum), key=lambda s: (s.count_ops(), str(s))):
        ranges = [lim for lim in inner.limits if kind_of_sum(lim) is None]
        if not ranges:
            continue
        body = inner.function
        whole = [lim for lim in ranges if is_whole(body, lim[0])]
        ranges = [lim for lim in ranges if lim not in whole]
        for index, low, high in ranges:
            if not (low.is_Integer and high.is_Integer):
                raise DeclarationError(
                    f"The component index {index} in {where} runs over {low}..{high}.",
                    "explicit ranges of components, such as (a, 1, 2)",
                )
            body = Add(*(body.xreplace({index: low + k}) for k in range(int(high - low) + 1)))
        kept = [lim for lim in inner.limits if lim not in ranges]
        expr = expr.xreplace({inner: Sum(body, *kept) if kept else body})
    return expr


def is_whole(body: Expr, index: Symbol) -> bool:
    """Whether the components that an index counts are kept together."""
    return any(index in q.indices and stays_whole(q) for q in site_quantities(body))


def free_kind(expr: Expr, where: str) -> Kind | None:
    """Return the kind of site whose index is free in ``expr``; None if there is none.

    Raises
    ------
    DeclarationError
        If indices of several kinds are free, or a quantity carries a foreign index.
    """
    check_slots(expr, where)
    masked = expr.xreplace({s: Dummy() for s in outer_sums(expr)})
    outside = {kind for q in site_quantities(masked) for kind in q.site}
    for total in outer_sums(expr):
        bound = {kind_of_sum(lim): lim[0] for lim in total.limits}
        own = {lim[0] for s in total.atoms(Sum) for lim in s.limits}
        for q in site_quantities(total.function):
            for kind, index in zip(q.family.slots, q.indices, strict=False):
                if index not in own and index == kind.index and bound.get(kind) != index:
                    outside.add(kind)
    if len(outside) > 1:
        names = " and ".join(f"a free {kind} index" for kind in sorted(outside, key=str, reverse=True))
        raise DeclarationError(
            f"{expr} in {where} has both {names}.",
            "expressions of one site; other kinds enter through sums such as Sum(x[mu, i]*..., (i, 1, N))",
            "SymPy takes cases out of a sum that stands in another sum: write them by Max, Heaviside or sign, or as a "
            "quenched parameter or a state of their own"
            if expr.has(Piecewise)
            else "",
        )
    return outside.pop() if outside else None


def outer_sums(expr: Expr) -> list[Sum]:
    """The sums of an expression that stand in no other sum or average."""
    found: list[Sum] = []

    def walk(node: Any) -> None:
        if isinstance(node, Sum):
            found.append(node)
        elif isinstance(node, Average):
            return
        else:
            for arg in node.args:
                walk(arg)

    walk(expr)
    return found


def own_states(expr: Expr) -> list[SiteQuantity]:
    """The states of the site itself: those that stand outside of sums over other sites."""
    return site_quantities(expr.xreplace(dict.fromkeys(outer_sums(expr), S.Zero)), Variable, Field)


def is_total(expr: Expr) -> bool:
    """Whether an expression is made of sums over all sites, and what does not depend on sites."""
    sums = {s: Dummy(real=True) for s in outer_sums(expr)}
    if not sums or not all(len(s.limits) == 1 and kind_of_sum(s.limits[0]) for s in sums):
        return False
    rest = expr.xreplace(sums)
    of_a_site = free_kind(expr, f"the root of {expr}") is not None or site_quantities(rest)
    return not of_a_site and is_affine(rest, sums.values())


def is_affine(expr: Expr, variables: Iterable[Any]) -> bool:
    """Whether an expression is linear in some variables, constants aside."""
    return _is_affine(expr, tuple(variables))


@lru_cache(maxsize=1024)
def _is_affine(expr: Expr, variables: tuple[Any, ...]) -> bool:
    """Looked up once: each run of a theory asks the same of its laws."""
    marks = {v: Dummy(real=True) for v in variables}
    marked = expr.xreplace(marks)
    return all(not marked.diff(mark).has(*marks.values()) for mark in marks.values())
