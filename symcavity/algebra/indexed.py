"""A small algebra of indexed sums: products of sums, pair averages, Kronecker contractions.

Sums are SymPy ``Sum`` nodes, but SymPy's own ``doit`` and ``simplify`` are never called on them.  Every
rule raises if it matches nothing, and every rule can be compared with :func:`explicit`, which writes
the sums out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import count, product
from typing import Any

from sympy import Add, Dummy, Expr, KroneckerDelta, Mul, Pow, S, Sum, Symbol, expand_mul, factor_terms

from symcavity.algebra.node import Node


class NothingMatched(ValueError):
    """A rule of the algebra found nothing to act on."""


def fresh_index(index: Symbol, taken: Iterable[Expr]) -> Symbol:
    """Return an index symbol of the same kind that is not taken: mu -> nu -> rho, i -> j -> k, else numbered."""
    greek = ["mu", "nu", "rho", "sigma", "tau"]
    alphabets = (["i", "j", "k", "l", "m", "n"], greek, ["a", "b", "c", "d"], ["z", "zeta"])
    names = {s.name for s in taken if s.is_Symbol}
    for letters in alphabets:
        if index.name in letters:
            place = letters.index(index.name) + 1
            for letter in letters[place:] + letters[:place]:
                if letter not in names:
                    return Symbol(letter, **index.assumptions0)
    for k in count(1):
        if f"{index.name}{k}" not in names:
            return Symbol(f"{index.name}{k}", **index.assumptions0)
    raise AssertionError


class Unequal(Node):
    """One where two indices differ, zero where they are equal: a sum over all sites but one carries it."""

    is_nonnegative = True

    def __new__(cls, index: Any, other: Any) -> Expr:
        """Return the factor, or its value where that is known; the summation index stands first."""
        index, other = S(index), S(other)
        if index == other:
            return S.Zero
        return S.One if index.is_Integer and other.is_Integer else Expr.__new__(cls, index, other)

    def _eval_power(self, power: Expr) -> Expr | None:
        return self if power.is_positive and power.is_integer else None

    def _sympystr(self, printer: Any) -> str:
        return f"[{printer.doprint(self.args[0])} != {printer.doprint(self.args[1])}]"


def expanded(expr: Expr) -> Expr:
    """Multiply out, except in denominators, where SymPy would multiply sums by numbers of sites."""
    rule = {p: Dummy() for p in expr.atoms(Pow) if p.base.is_Add and p.exp.could_extract_minus_sign()}
    return expand_mul(expr.xreplace(rule)).xreplace({mark: p for p, mark in rule.items()})


def flatten(expr: Expr) -> Expr:
    """Distribute products over sums and merge products of sums into multiple sums with distinct indices."""
    return Add(*(_flat_term(term) for term in Add.make_args(expanded(expr))))


def _flat_term(term: Expr) -> Expr:
    factors: list[Expr] = []
    for factor in Mul.make_args(term):
        base, power = factor.as_base_exp()
        repeat = int(power) if base.has(Sum) and power.is_Integer and power > 0 else 1
        factors += [base] * repeat if repeat > 1 else [factor]
    taken = {s for f in factors for s in f.atoms(Symbol)}
    limits: list[Any] = []
    body: list[Expr] = []
    used: set[Symbol] = {s for f in factors if not isinstance(f, Sum) for s in f.atoms(Symbol)}
    for factor in factors:
        if not isinstance(factor, Sum):
            body.append(factor)
            continue
        inner, ranges = factor.function, list(factor.limits)
        for k, (index, low, high) in enumerate(ranges):
            if index in used:
                new = fresh_index(index, taken | used)
                inner, ranges[k] = inner.xreplace({index: new}), (new, low, high)
                index = new
            used.add(index)
            taken.add(index)
        body.append(inner)
        limits += [tuple(r) for r in ranges]
    inside = expanded(Mul(*body))
    if not limits:
        return inside
    pieces = []
    for piece in Add.make_args(inside):
        if piece.has(Sum):
            nested = _flat_term(piece)
            pieces += [_sum(p, limits) for p in Add.make_args(nested)]
        else:
            pieces.append(_sum(piece, limits))
    return Add(*pieces)


def _sum(body: Expr, limits: list[Any]) -> Expr:
    """Sum with constants moved out and nested sums merged."""
    outer, factors = S.One, []
    more = list(limits)
    for factor in Mul.make_args(body):
        if isinstance(factor, Sum):
            more += [tuple(lim) for lim in factor.limits]
            factors.append(factor.function)
        else:
            factors.append(factor)
    indices = {lim[0] for lim in more}
    kept = []
    for factor in factors:
        if factor.free_symbols & indices:
            kept.append(factor)
        else:
            outer *= factor
    return outer * Sum(Mul(*kept), *more) if kept else outer * Mul(*(lim[2] - lim[1] + 1 for lim in more))


def average_pairs(
    expr: Expr, is_random: Callable[[Expr], bool], covariance: Callable[[Expr, Expr], Expr]
) -> Expr:
    """Average a flat expression over independent zero-mean random factors, to second order.

    Parameters
    ----------
    expr : Expr
        Sums of products; each term contains zero, one or two random factors.
    is_random : callable
        Says whether a factor is random.
    covariance : callable
        The mean of the product of two random factors, usually with Kronecker deltas.

    Raises
    ------
    NothingMatched
        If there is no random factor at all.
    ValueError
        If a term has more than two random factors: its mean needs moments beyond the second.
    """
    matched = False

    def one(term: Expr) -> Expr:
        nonlocal matched
        outside, total = _apart(term)
        body = total.function if total is not None else outside
        prefactor = outside if total is not None else S.One
        random, rest = [], S.One
        for factor in Mul.make_args(body):
            base, power = factor.as_base_exp()
            if is_random(base):
                random += [base] * int(power)
            else:
                rest *= factor
        if not random:
            return term
        matched = True
        if len(random) == 1:
            return S.Zero
        if len(random) > 2:
            raise ValueError(f"The mean of {term} needs moments beyond the second.")
        mean = covariance(*random)
        if mean == 0:
            return S.Zero
        if total is None:
            return prefactor * mean * rest
        pieces = Add.make_args(expanded(mean * rest))
        return prefactor * Add(*(_sum(piece, list(total.limits)) for piece in pieces))

    out = Add(*(one(term) for term in Add.make_args(flatten(expr))))
    if not matched:
        raise NothingMatched(f"No random factor in {expr}.")
    return out


def _apart(term: Expr) -> tuple[Expr, Sum | None]:
    """The factor before the sum of a flat term, and the sum, if there is one."""
    outside, total = S.One, None
    for factor in Mul.make_args(term):
        if isinstance(factor, Sum):
            total = factor
        else:
            outside *= factor
    return outside, total


def contract(expr: Expr) -> Expr:
    """Contract Kronecker deltas: each removes one of the sums over its two indices.

    Raises
    ------
    NothingMatched
        If there is no delta to contract.
    """
    if not expr.has(KroneckerDelta):
        raise NothingMatched(f"No Kronecker delta in {expr}.")

    def one(term: Expr) -> Expr:
        outside, total = _apart(term)
        if total is None:
            return term
        body, limits = total.function, [tuple(lim) for lim in total.limits]
        body = Mul(*(factor_terms(f) if f.is_Add and f.has(KroneckerDelta) else f for f in Mul.make_args(body)))
        while True:
            deltas = [f for f in Mul.make_args(body) if isinstance(f, KroneckerDelta)]
            hit = next(
                ((d, lim, d.args[1 - k]) for d in deltas for lim in limits for k in (0, 1) if d.args[k] == lim[0]),
                None,
            )
            if hit is None:
                break
            delta, limit, keep = hit
            # keep the earlier of two bound indices, so that mu survives and nu goes
            other = next((lim for lim in limits if lim[0] == keep), None)
            if other is not None and limits.index(other) > limits.index(limit):
                limit, other, keep = other, limit, limit[0]
            body = (body / delta).xreplace({limit[0]: keep})
            limits.remove(limit)
        return outside * (_sum(body, limits) if limits else body)

    return Add(*(one(term) for term in Add.make_args(expr)))


def split(expr: Expr, size: Expr, at: Expr) -> tuple[Expr, Expr]:
    """Split the sums over sites: the terms at one site, and the sums over all others.

    Parameters
    ----------
    expr : Expr
        A flat expression.
    size : Expr
        The upper bound of the sums that are split.
    at : Expr
        The site whose term is taken out.

    Raises
    ------
    NothingMatched
        If no sum has that bound.
    """
    own, others, matched = [], [], False
    for term in Add.make_args(expr):
        total = next((f for f in Mul.make_args(term) if isinstance(f, Sum)), None)
        limits = [] if total is None else [tuple(lim) for lim in total.limits]
        mine = [lim for lim in limits if lim[2] == size]
        if total is None or not mine:
            others.append(term)
            continue
        if len(mine) > 1:
            raise ValueError(f"{term} has several sums up to {size}.")
        matched = True
        ((index, *_),) = mine
        outside = term / total
        rest = [lim for lim in limits if lim[0] != index]
        body = total.function.xreplace({index: at})
        own.append(outside * (_sum(body, rest) if rest else body))
        others.append(outside * Sum(total.function * Unequal(index, at), *limits))
    if not matched:
        raise NothingMatched(f"No sum up to {size} in {expr}.")
    return Add(*own), Add(*others)


def joined(expr: Expr) -> Expr:
    """Sums over all sites but one as sums over all sites: one of many terms is added."""
    return expr.xreplace(dict.fromkeys(expr.atoms(Unequal), S.One))


def separated(expr: Expr) -> Expr:
    """Write a multiple sum as a product of sums, where no factor holds indices of both."""

    def one(total: Sum) -> Expr:
        limits = {lim[0]: tuple(lim) for lim in total.limits}
        groups: list[tuple[set[Any], list[Expr]]] = []
        for factor in Mul.make_args(total.function):
            here, factors = {index for index in limits if factor.has(index)}, [factor]
            for group in [g for g in groups if g[0] & here]:
                groups.remove(group)
                here, factors = here | group[0], [*group[1], *factors]
            groups.append((here, factors))
        free = [tuple(lim) for index, lim in limits.items() if not any(index in g[0] for g in groups)]
        sums = [
            Sum(Mul(*factors), *(lim for index, lim in limits.items() if index in here)) if here else Mul(*factors)
            for here, factors in groups
        ]
        return Mul(*(lim[2] - lim[1] + 1 for lim in free), *sums)

    return expr.xreplace({total: one(total) for total in expr.atoms(Sum)})


def explicit(expr: Expr, sizes: Mapping[Any, int], value: Callable[[Expr], Any], leaf: type | tuple[type, ...]) -> Any:
    """Write all sums out and evaluate: brute force, for checks.

    Parameters
    ----------
    expr : Expr
        Expression with sums whose upper bounds are keys of ``sizes`` or integers.
    sizes : mapping
        Values of the sizes, e.g. ``{N: 3, P: 2}``.
    value : callable
        The value of a leaf (an indexed quantity with integer indices).
    leaf : type or tuple of types
        The node types that ``value`` understands.
    """
    if isinstance(expr, Sum):
        total: Any = 0
        ranges = [range(int(lim[1]), int(sympify_size(lim[2], sizes)) + 1) for lim in expr.limits]
        for point in product(*ranges):
            rule = {lim[0]: S(k) for lim, k in zip(expr.limits, point, strict=True)}
            total = total + explicit(substituted(expr.function, rule), sizes, value, leaf)
        return total
    if isinstance(expr, leaf):
        return value(expr)
    if isinstance(expr, KroneckerDelta):
        return S.One if expr.args[0] == expr.args[1] else S.Zero
    if not expr.args:
        return sizes.get(expr, expr)
    return expr.func(*(explicit(arg, sizes, value, leaf) for arg in expr.args))


def diagonal(expr: Expr) -> Expr:
    """The value of a multiple of the identity matrix where its indices are equal."""
    return expr.xreplace(dict.fromkeys(expr.atoms(KroneckerDelta), S.One))


def substituted(expr: Expr, rule: Mapping[Any, Any]) -> Expr:
    """Replace index symbols where they are free; an inner sum over the same symbol keeps its own."""
    if isinstance(expr, Sum):
        inner = {index: value for index, value in rule.items() if index not in {lim[0] for lim in expr.limits}}
        return Sum(substituted(expr.function, inner), *expr.limits)
    if not expr.args or not expr.has(Sum):
        return expr.xreplace(dict(rule))
    return expr.func(*(substituted(arg, rule) for arg in expr.args))


def sympify_size(bound: Expr, sizes: Mapping[Any, int]) -> Expr:
    """The numeric value of a summation bound."""
    return bound.xreplace({k: S(v) for k, v in sizes.items()})
