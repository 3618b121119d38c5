"""Laws that fall apart, as those of copies do: what belongs to one part is averaged over the fields of this part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product

from sympy import Add, Expr, Mul, S, expand_mul

from symcavity.algebra.joint import KINKS, JointLaw, LawSymbol, slope
from symcavity.algebra.products import MOST_HEARD, Half, Pairing, ProductAverage


def apart(body: Expr, law: JointLaw) -> tuple[Expr, JointLaw]:
    """Return an expression and the part of a law that it needs, with the fields of both.

    A state of one part does not respond to what another part hears: such responses in the expression are zero.

    Parameters
    ----------
    body : Expr
        In the symbols of the law.
    law : JointLaw
    """
    slopes = {slope(x, s): (x, s) for x in (*law.unknowns, *(x for x, _ in law.definitions)) for s in law.sources}
    asked = {mark: slopes[mark] for mark in sorted(body.atoms(LawSymbol) & set(slopes), key=str)}
    silent = {mark: S.Zero for mark, (x, source) in asked.items() if source not in _part(law, frozenset([x])).sources}
    body = body.xreplace(silent)
    needed = body.atoms(LawSymbol) | {x for mark, (x, _) in asked.items() if mark not in silent}
    return body, _part(law, frozenset(needed & set(law.unknowns + law.fields + tuple(x for x, _ in law.definitions))))


def halved(body: Expr, law: JointLaw, covariance: Mapping[tuple[Expr, Expr], Expr]) -> Expr | None:
    """The average of products of what two parts know that hear no field in common; None for anything else.

    Parameters
    ----------
    body : Expr
        In the symbols of the law.
    law : JointLaw
    covariance : dict
        Of the fields, by pairs of their symbols in the law.
    """
    total = S.Zero
    for term in Add.make_args(body):
        number, factors = term.as_independent(LawSymbol, as_Add=False)
        if pairings := _pairings(factors, law, covariance):
            total += number * ProductAverage(factors, pairings)
            continue
        wide = expand_mul(term)
        if not wide.is_Add or (found := halved(wide, law, covariance)) is None:
            return None
        total += found
    return total


def _pairings(body: Expr, law: JointLaw, covariance: Mapping[tuple[Expr, Expr], Expr]) -> list[Pairing]:
    """All ways to put the factors of a product into two halves that hear no field in common."""
    groups = list[tuple[Expr, set[Expr]]]()
    for factor in Mul.make_args(body):
        fields = set(apart(factor, law)[1].fields)
        touched = [g for g in groups if g[1] & fields]
        whole = Mul(factor, *(e for e, _ in touched)), fields.union(*(f for _, f in touched))
        groups = [*(g for g in groups if g not in touched), whole]
    out = []
    for sides in product((True, False), repeat=len(groups) - 1):  # the last group is in the second half
        chosen = list(zip(groups, (*sides, False), strict=True))
        one, other = (_half([g for g, side in chosen if side == way], law, covariance) for way in (True, False))
        if one and other:
            cross = [covariance[a, b] for a in one.law.fields for b in other.law.fields]
            out.append(Pairing(one, other, cross))
    return out


def _half(
    groups: Sequence[tuple[Expr, set[Expr]]], law: JointLaw, covariance: Mapping[tuple[Expr, Expr], Expr]
) -> Half | None:
    """Some factors as a function of one or two fields; None for more, or where it is not smooth along one of them."""
    if not 0 < sum(len(fields) for _, fields in groups) <= MOST_HEARD:
        return None
    body, own = apart(Mul(*(e for e, _ in groups)), law)
    exprs = [*own.expressions, body]
    bent = [f for f in own.fields if any(k.has(f) for e in exprs for k in e.atoms(*KINKS))]
    through = any(k.has(*own.unknowns) for e in exprs for k in e.atoms(*KINKS)) if own.unknowns else False
    if own.pairs or through or len(own.fields) > MOST_HEARD or (own.unknowns and len(bent) == len(own.fields)):
        return None
    fields = sorted(own.fields, key=lambda f: f not in bent)
    own = own.func(own.unknowns, fields, own.equations, own.pairs, own.definitions, own.sources, own.scramble)
    return Half(body, own, [covariance[a, b] for k, a in enumerate(fields) for b in fields[: k + 1]])


@lru_cache(maxsize=256)
def _part(law: JointLaw, needed: frozenset[Expr]) -> JointLaw:
    """The equations that fix some quantities, and those that these share states with."""
    given = dict(law.definitions)
    found, todo = set(needed), [given[x] for x in needed if x in given]
    rows = [(e, [e]) for e in law.equations] + [(pair, list(pair)) for pair in law.pairs]
    kept: list[object] = []
    while True:
        more = set().union(*(e.atoms(LawSymbol) for e in todo)) - found
        found |= more
        todo = [given[x] for x in more if x in given]
        states = found & set(law.unknowns)
        for row, exprs in rows:
            if row not in kept and any(e.has(*states) for e in exprs if states):
                kept.append(row)
                todo += exprs
        if not todo:
            break
    unknowns = [x for x in law.unknowns if x in found]
    fields = [f for f in law.fields if f in found]
    equations = [e for e in law.equations if e in kept]
    pairs = [pair for pair in law.pairs if pair in kept]
    if not fields or len(equations) + len(pairs) != len(unknowns) or len(kept) == len(rows) == len(law.unknowns):
        return law  # nothing falls apart
    definitions = [(x, e) for x, e in law.definitions if x in found]
    if not unknowns and definitions:  # fields give all of it: one state is found from its equation, which is linear
        first = next((x, e) for x, e in definitions if not e.has(*(y for y, _ in definitions)))
        unknowns, equations = [first[0]], [first[0] - first[1]]
        definitions.remove(first)
    sources = [s for s in law.sources if s in found]
    return JointLaw(unknowns, fields, equations, pairs, definitions, sources, law.scramble)
