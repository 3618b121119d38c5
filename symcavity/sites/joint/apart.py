"""Laws that fall apart, as those of copies do: what belongs to one part is averaged over the fields of this part."""

from __future__ import annotations

from functools import lru_cache

from sympy import Expr, S

from symcavity.algebra.joint import JointLaw, LawSymbol, slope


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
    sources = [s for s in law.sources if s in found]
    return JointLaw(unknowns, fields, equations, pairs, definitions, sources, law.scramble)
