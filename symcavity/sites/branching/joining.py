"""Fields that a law hears as one: states that depend on a single combination of them are averaged over that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sympy import Add, Expr, S, Symbol, cancel

from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.kinks import KINKS


def in_combination(expr: Expr, fields: Sequence[Symbol]) -> tuple[dict[Symbol, Expr], Expr] | None:
    """An expression that depends on several fields through one combination only, written by that; None of others.

    Returns
    -------
    weights, expr
        The combination, by the factors of the fields in it, and the expression, in which the last field stands for it.
    """
    inner = fields[-1]
    found: dict[Symbol, Expr] = {}

    def slope(term: Expr) -> tuple[Symbol, Expr] | None:
        """The field in a multiple of it, and its factor."""
        constant, rest = term.as_independent(*fields, as_Add=False)
        return (rest, constant) if rest in fields else None

    def walk(node: Any) -> Any:
        """The node in terms of the combination."""
        if not node.has(*fields):
            return node
        if not isinstance(node, Expr):
            return node.func(*map(walk, node.args))
        terms = [(t, slope(t)) for t in Add.make_args(node)]
        rates: dict[Symbol, Expr] = {}
        for f, rate in (own for _, own in terms if own is not None):
            rates[f] = rates.get(f, S.Zero) + rate
        rest = [t for t, own in terms if own is None]
        if not rates:
            return node.func(*map(walk, node.args))
        if not found:
            found.update(rates)
        shares = {cancel(rates[f] / found[f]) if f in rates and f in found else S.NaN for f in {*rates, *found}}
        if len(shares) > 1 or S.NaN in shares:
            raise _Apart
        return shares.pop() * inner + Add(*map(walk, rest))

    try:
        written = walk(expr)
    except _Apart:
        return None
    told = set().union(*(rate.free_symbols for rate in found.values()))  # none of what is bound inside
    return (found, written) if set(found) == set(fields) and told <= expr.free_symbols else None


class _Apart(Exception):
    """What depends on several combinations."""


def joined(ensemble: Any, states: Iterable[SiteQuantity], answers: Iterable[SiteResponse] = ()) -> Any:
    """Return the ensemble of a site that hears one field in place of several; None where there is no such field.

    Parameters
    ----------
    ensemble : SiteEnsemble
        Of a site that hears several fields.
    states : iterable of SiteQuantity
        What is averaged: all of them, and the borders between their branches, have to depend on ``inner + sum_f c_f
        f`` alone, with numbers, parameters or labels ``c_f``: their slopes have these proportions everywhere.
    answers : iterable of SiteResponse
        Responses that are averaged.
    """
    solution = ensemble.solution
    inner, outer = solution.inner, ensemble.outer
    if not solution.regions:
        return None
    states, answers, unknowns = tuple(states), tuple(answers), solution.unknowns
    exprs = [r.values[q] for r in solution.regions for q in states]
    exprs += [ensemble.response(r.values, r.implicit, a) for r in solution.regions for a in answers]
    exprs = [e for e in exprs if e.has(inner, *outer)]
    # an implicit state depends on the fields as inner - psi does, a border t = b in the reflected inner field on
    # inner - b/reflection
    exprs += [inner - r.implicit[1] for r in solution.regions if r.implicit is not None]
    exprs += [inner - end / solution.reflection for r in solution.regions for end in (r.low, r.high) if end is not None]
    shares: dict[Symbol, Expr] = {}
    if any(kink.has(*outer) for e in exprs for kink in e.atoms(*KINKS)):  # cases are flat, and no share of a field
        return None
    for expr in exprs:
        slope = expr.diff(inner)
        for f in outer:
            turn = expr.diff(f)
            if slope == 0 and turn != 0:
                return None
            share = cancel(turn / slope) if slope != 0 else None
            if share is not None and (share.has(inner, *outer, *unknowns) or shares.setdefault(f, share) != share):
                return None
    return of_one_field(ensemble, {inner: S.One, **shares})


def of_one_field(ensemble: Any, weights: Mapping[Symbol, Expr]) -> Any:
    """The ensemble of a site whose inner field stands for a combination of all."""
    inner, outer = ensemble.solution.inner, ensemble.outer
    variance = Add(
        *(a * b * ensemble.covariance[f, g] for f, a in weights.items() for g, b in weights.items())
    )
    alone = ensemble.solution.xreplace(dict.fromkeys(outer, S.Zero))
    return replace(ensemble, solution=alone, fields=(inner,), covariance={(inner, inner): variance})
