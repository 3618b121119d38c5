"""Laws that fall into parts, each with states and a field of its own, as those of copies that share their couplings.

The states of one part are averaged over its own field alone.  A product of states of two parts is averaged over the
field of one, of the average over that of the other one at a given value of the first: of two parts that share no
quenched parameter but through their fields, such as the masks of several fits, each is averaged by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from sympy import Add, Expr, Mul, S, cancel

from symcavity.errors import UnsupportedLaw
from symcavity.model.averages import SiteResponse
from symcavity.model.quantities import Quenched, families
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.feedback import solve_with_feedback
from symcavity.sites.branching.layout import IllPosed
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.protocol import SiteProblem, Solution


def parted(problem: SiteProblem) -> list[SiteProblem]:
    """The parts of a law that hear one field each and share no state; the law itself where it does not fall apart."""
    law, heard = problem.law, problem.heard
    if len(heard) < 2 or law.weight is not None or any(q.given is not None for q in law.quenched()):
        return [problem]  # a label knows the field that it is drawn on
    joined = [[e.difference] for e in law.equations] + [list(p.pair) for p in law.pairs]
    joined += [[law.carrier(h.declared).difference, *(k.emission for k in h.feedback)] for h in heard]
    groups: list[set[Any]] = []
    for exprs in joined:
        states = {q for q in law.unknowns if any(e.has(q) for e in exprs)}
        touched = [g for g in groups if g & states]
        groups = [*(g for g in groups if g not in touched), set().union(states, *touched)]
    groups = [g for g in groups if g]
    out = []
    for group in groups:
        own = tuple(h for h in heard if law.carrier(h.declared).difference.has(*group))
        if len(own) != 1:
            return [problem]
        out.append(
            replace(
                problem,
                law=replace(
                    law,
                    unknowns=tuple(q for q in law.unknowns if q in group),
                    equations=tuple(e for e in law.equations if e.difference.has(*group)),
                    pairs=tuple(p for p in law.pairs if any(q.has(*group) for q in p.pair)),
                    fields=tuple(f for f in law.fields if f == own[0].declared),
                ),
                heard=own,
            )
        )
    complete = sum(len(p.law.equations) + len(p.law.pairs) for p in out) == len(law.equations) + len(law.pairs)
    return sorted(out, key=lambda p: heard.index(p.heard[0])) if complete and len(out) == len(heard) else [problem]


def solved_by_parts(problem: SiteProblem) -> Solution | None:
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
    return Solution(_assembled(problem, [one.solved for one in found]), signs)


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


def average_by_parts(ensemble: Any, body: Expr, within: Callable[[Expr, set[Quenched]], Expr]) -> Expr | None:
    """The average of sums of products of what belongs to single parts; None for anything else.

    Parameters
    ----------
    ensemble : SiteEnsemble
        Of a solution that has parts.
    body : Expr
    within : callable
        What is done to the average over one part at the field of another one, with the quenched families that no
        other part knows.
    """
    parts = [_alone(ensemble, part) for part in ensemble.solution.parts]
    body = body.xreplace({r: S.Zero for r in body.atoms(SiteResponse) if _is_crossed(ensemble, parts, r)})
    if len(owners := _owners(parts, body)) < 2:
        found: Expr = parts[owners[0]].over_fields(body) if owners else body
        return found
    total = S.Zero
    for term in Add.make_args(body.expand()):
        factors: dict[int | None, Expr] = {}
        for factor in Mul.make_args(term):
            owners = _owners(parts, factor)
            if len(owners) > 1:
                return None
            place = owners[0] if owners else None
            factors[place] = factors.get(place, S.One) * factor
        number = factors.pop(None, S.One)
        several = [(part, factors[k]) for k, part in enumerate(parts) if k in factors]
        if len(several) > 2 or (len(several) == 2 and any(e.has(SiteResponse) for _, e in several)):
            return None
        if len(several) == 2:
            total += number * _product(ensemble, several[0], several[1], within)
        else:
            total += number * (several[0][0].over_fields(several[0][1]) if several else S.One)
    return total


def _product(ensemble: Any, one: tuple[Any, Expr], other: tuple[Any, Expr], within: Any) -> Expr:
    """The average of a product of what two parts know: that of the second one at each field of the first."""
    (outer, first), (inner, second) = one, other
    x, y = outer.fields[0], inner.fields[0]
    both, size = ensemble.covariance[x, y], ensemble.covariance[x, x]
    left = cancel(ensemble.covariance[y, y] - both**2 / size)
    moved = replace(inner, solution=inner.solution.shifted(both / size * x), covariance={(y, y): left})
    known = [first, both, size, *(e for b in outer.solution.branches for e in (*b.values.values(), *b.conditions))]
    there = moved.over_fields(second)
    own = set(families([there], Quenched)) - set(families(known, Quenched))
    found: Expr = outer.over_fields(first * within(there, own))
    return found


def _alone(ensemble: Any, part: SiteSolution) -> Any:
    """The ensemble of one part, over its field."""
    x = part.inner
    own = {(x, x): ensemble.covariance[x, x]}
    sources = {name: row for name, row in ensemble.sources.items() if row[1] == x}
    return replace(ensemble, solution=part, fields=(x,), covariance=own, sources=sources)


def _owners(parts: list[Any], expr: Expr) -> list[int]:
    return [k for k, part in enumerate(parts) if expr.has(part.fields[0], *part.solution.unknowns)]


def _is_crossed(ensemble: Any, parts: list[Any], response: SiteResponse) -> bool:
    """Whether a state is asked for its response to a field that another part hears."""
    field = ensemble.sources[response.field][1] if response.field in ensemble.sources else None
    own = [k for k, part in enumerate(parts) if response.state in part.solution.unknowns]
    return field is not None and bool(own) and parts[own[0]].fields[0] != field
