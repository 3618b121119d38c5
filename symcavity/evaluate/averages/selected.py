"""Multipliers that a joint law leaves open where a norm vanishes: one of them is chosen, the states are the same.

In ``a|w1| + a|w2| + b|w|`` all three terms have a corner at zero, and only the sum of their slopes is fixed there.
With ``b*w = s*p``, where p is the slope of the norm and ``s >= 0``, a condition such as ``t - w1 >= 0`` that has no
other scale than w's may be divided by s: it says of p what it said of w.  Where s is positive nothing changes, and
where it vanishes p is the one of least length.
"""

from __future__ import annotations

from sympy import Expr

from symcavity.algebra.joint import JointLaw, LawSymbol


def selected(law: JointLaw) -> tuple[JointLaw, list[LawSymbol]]:
    """Return a law with the same states and with unique multipliers, and the quantities that it has chosen.

    Parameters
    ----------
    law : JointLaw
    """
    chosen: list[LawSymbol] = []
    for s in [m for pair in law.pairs for m in pair if m in law.unknowns]:
        slopes = _slopes(law, s)
        members, scales = _homogeneous(law, slopes)
        if not members:
            continue
        names = {t: LawSymbol(f"{t.name}_over_{s.name}", rf"{t.tex}/{s.tex}") for t in scales}
        rule = {**slopes, **names}
        pairs = [[m.xreplace(rule) if m in members else m for m in pair] for pair in law.pairs]
        definitions = [*((t, s * names[t]) for t in scales), *law.definitions]
        unknowns = [names.get(x, x) for x in law.unknowns]
        own = {x for e in slopes.values() for x in e.atoms(LawSymbol)}
        open_ = [x for x, e in law.definitions if x not in slopes and e.has(*own)]
        others = [m for pair in law.pairs if members.intersection(pair) for m in pair if m in law.unknowns]
        chosen += sorted({*own, *open_, *others} - {*scales, *slopes}, key=str)
        law = JointLaw(unknowns, law.fields, law.equations, pairs, definitions, law.sources, law.scramble)
    return law, chosen


def _slopes(law: JointLaw, s: LawSymbol) -> dict[LawSymbol, Expr]:
    """What the unknowns are over s that equations and definitions give as s times another unknown."""
    out: dict[LawSymbol, Expr] = {}
    for x, e in law.definitions:
        if (rate := e.diff(s)) != 0 and not rate.has(s) and not (e - s * rate).expand():
            out[x] = rate
    for e in law.equations:
        for x in law.unknowns:
            factor = e.diff(x)
            if x == s or factor == 0 or factor.has(*law.unknowns):
                continue
            rest = (-(e - factor * x) / factor).expand()
            rate = rest.diff(s)
            if rate in (0, 1) or rate.has(s, x) or (rest - s * rate).expand() or not rate.has(*law.unknowns):
                continue
            out[x] = rate
    return out


def _homogeneous(law: JointLaw, slopes: dict[LawSymbol, Expr]) -> tuple[set[Expr], list[LawSymbol]]:
    """The members of pairs that are linear in these unknowns and in others that stand nowhere else, which are given."""
    members = {m for pair in law.pairs for m in pair if m not in law.unknowns or m in slopes}
    while True:
        found = {m for m in members if m.has(*slopes) and _is_linear(m, law)} if slopes else set[Expr]()
        scales = sorted({x for m in found for x in m.atoms(LawSymbol)} - {*slopes}, key=str)
        elsewhere = [e for e in law.expressions if e not in found]
        fixed = [t for t in scales if t not in law.unknowns or any(e.has(t) for e in elsewhere)]
        if not fixed:
            return found, scales
        members = {m for m in found if not m.has(*fixed)}


def _is_linear(member: Expr, law: JointLaw) -> bool:
    own = list(member.atoms(LawSymbol))
    if any(x not in law.unknowns for x in own):
        return False
    rates = [member.diff(x) for x in own]
    whole = member - sum(r * x for r, x in zip(rates, own, strict=True))
    return not any(r.has(LawSymbol) for r in rates) and not whole.expand()
