"""Laws that fall into parts, each with states and a field of its own, as those of copies that share their couplings.

Parts may know the same fields that no state sends, such as a teacher's.  The states of one part are averaged over the
fields that it hears alone.  A product of states of several parts is averaged over one field after the other, each given
those before it: those that no state sends first, then the field of each part.  Of parts that share no quenched
parameter but through their fields, such as the masks of several fits, each is averaged by itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from symcavity.errors import UnsupportedLaw
from symcavity.model.families import families
from symcavity.model.quantities import Quenched, SiteQuantity
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.feedback import solve_with_feedback
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.protocol import Heard, LawSolution, SiteProblem

MOST_TOLD = 1  # fields of one part that no state sends


def parted(problem: SiteProblem) -> list[SiteProblem]:
    """The parts of a law that hear one field of states each and share no state; else the law itself.

    A field that no state sends, and that a state of its own stands for, may be known to several parts.
    """
    law, heard = problem.law, problem.heard
    told = _told(problem)
    if len(heard) < 2 or law.weight is not None or any(q.given not in {None, *told} for q in law.quenched()):
        return [problem]  # a label knows the field that it is drawn on
    own_rows = [
        e for e in law.equations if e.difference not in {law.carrier(h.declared).difference for h in told.values()}
    ]
    sending = [h for h in heard if h not in told.values()]
    joined = [[e.difference] for e in own_rows] + [list(p.pair) for p in law.pairs]
    joined += [[law.carrier(h.declared).difference, *(k.emission for k in h.feedback)] for h in sending]
    groups: list[set[Any]] = []
    for exprs in joined:
        states = {q for q in law.unknowns if q not in told and any(e.has(q) for e in exprs)}
        touched = [g for g in groups if g & states]
        groups = [*(g for g in groups if g not in touched), set().union(states, *touched)]
    out, covered, known_by = [], set[Any](), list[set[Any]]()
    for group in (g for g in groups if g):
        own = [h for h in sending if law.carrier(h.declared).difference.has(*group)]
        if len(own) != 1:
            return [problem]
        pairs = tuple(p for p in law.pairs if any(q.has(*group) for q in p.pair))
        rows = [e for e in own_rows if e.difference.has(*group)]
        held = [*(e.difference for e in rows), *(q for p in pairs for q in p.pair)]
        labels = [q.given for q in families(held, Quenched) if q.given is not None]
        known = {q: h for q, h in told.items() if q in labels or any(e.has(q) for e in held)}
        listed = [*known.values(), *own]
        covered |= {*group, *known}
        known_by.append(set(known))
        fixed = [law.carrier(h.declared) for h in known.values()]
        out.append(
            replace(
                problem,
                law=replace(
                    law,
                    unknowns=tuple(q for q in law.unknowns if q in group or q in known),
                    equations=tuple(e for e in law.equations if e in rows or e in fixed),
                    pairs=pairs,
                    fields=tuple(f for f in law.fields if f in [h.declared for h in listed]),
                ),
                heard=tuple(h for h in heard if h in listed),
            )
        )
    complete = sum(len(p.law.pairs) for p in out) == len(law.pairs) and covered == set(law.unknowns)
    complete &= all(len(known) <= MOST_TOLD for known in known_by)
    complete &= len(out) == len(sending) and all(any(e in p.law.equations for p in out) for e in law.equations)
    return sorted(out, key=lambda p: heard.index(p.inner())) if complete else [problem]


def _told(problem: SiteProblem) -> dict[SiteQuantity, Heard]:
    """States that stand for a field which no state sends, each with that field."""
    found = {}
    for h in problem.heard:
        carrier = problem.law.carrier(h.declared)
        states = [q for q in problem.law.unknowns if carrier.difference.has(q)]
        if len(states) == 1 and not h.declared.states() and carrier.lhs == states[0]:
            found[states[0]] = h
    return found


def solved_by_parts(problem: SiteProblem) -> LawSolution | None:
    """The solution of a law whose parts all have formulas, each by itself; None for any other law."""
    parts = parted(problem)
    if len(parts) < 2:
        return None
    sources = problem.plain_sources()
    try:
        found = [solve_with_feedback(part, sources) for part in parts]
    except (IllPosed, UnsupportedLaw):
        return None
    if any(not one.solved.regions or one.solved.is_implicit for one in found):
        return None
    signs = {f: sign for one in found for f, sign in one.signs.items()}
    return LawSolution(_assembled(problem, [one.solved for one in found]), signs)


def _assembled(problem: SiteProblem, parts: list[SiteSolution]) -> SiteSolution:
    """The solution of a law that falls into parts: a branch for each choice of one of every part."""
    branches = []
    for some in product(*(part.branches for part in parts)):
        values = {q: v for branch in some for q, v in branch.values.items()}
        conditions, label = (sum((getattr(b, name) for b in some), ()) for name in ("conditions", "label"))
        branches.append(Branch({q: values[q] for q in problem.law.unknowns}, conditions, label))
    return SiteSolution(
        problem.inner().eta,
        problem.law.unknowns,
        (),
        tuple(branches),
        assumed=tuple(dict.fromkeys(a for part in parts for a in part.assumed)),
        sources=tuple(problem.plain_sources().values()),
        faces=tuple(face for part in parts for face in part.faces),
        parts=tuple(parts),
    )
