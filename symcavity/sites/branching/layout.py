"""Solve the law of a single site for every value of its field, and average what it gives.

The branches of the law tile the line of the field.  Which branches occur, and in which order, is found
at seeded values of the parameters that respect their assumptions; the boundaries are then symbolic, and
an order that the assumptions do not prove becomes a condition that is tested at evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sympy import Dummy, Expr, Symbol, cancel

from symcavity.algebra.compiled import compiled
from symcavity.model.convexity import seeded
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.arranging import INSIDE, TRIALS, IllPosed, Layout
from symcavity.sites.branching.branches import SitePuzzle
from symcavity.sites.branching.draws import DRAWS, Draws, sample_value, symbols_in
from symcavity.sites.branching.solution import SiteSolution
from symcavity.sites.branching.unknowns import has_poles, signed, smooth


def solve_site(
    equations: Sequence[Expr],
    pairs: Sequence[tuple[Expr, Expr]],
    unknowns: Sequence[SiteQuantity],
    inner: Symbol,
    sources: Sequence[Symbol],
    text: str,
    draws: Draws | None = None,
    material: Sequence[Expr] = (),
) -> SiteSolution:
    """Solve a single-site law for every value of its field.

    Parameters
    ----------
    equations : sequence of Expr
        Expressions that vanish, in the unknowns, the fields, the sources and parameters.
    pairs : sequence of (Expr, Expr)
        Complementary pairs.
    unknowns : sequence of SiteQuantity
        What to solve for.
    inner : Symbol
        The field over which the branches are laid out.
    sources : sequence of Symbol
        The infinitesimal sources.
    text : str
        The law in words, for messages.
    draws : Draws, optional
        Where the values come from at which the branches are laid out.
    material : sequence of Expr
        The expressions that have to be unique: all unknowns if empty.

    Raises
    ------
    IllPosed
        If the branches leave a gap or overlap.
    UnsupportedLaw
        If a branch cannot be solved, not even implicitly.
    """
    marks = {q: Dummy(q.family.name, real=True) for q in unknowns}
    back = {v: k for k, v in marks.items()}
    puzzle = SitePuzzle(
        [e.xreplace(marks) for e in equations],
        [(p.xreplace(marks), q.xreplace(marks)) for p, q in pairs],
        list(marks.values()),
        inner,
        text,
        sources,
    )
    branches = signed(smooth(b) for b in puzzle.branches() if not has_poles(b))
    matter = [e.xreplace(marks) for e in material or unknowns]
    faces = _faces(puzzle, matter, back)
    if not branches:
        raise IllPosed(f"{text} has no solution on any branch.", "laws that fix every variable of a site")
    if faces:
        branches = signed(smooth(b) for b in puzzle.apart() if not has_poles(b))
    draws = draws or Draws()
    draws.read(branches)
    layout = Layout(branches, inner, sources, text, draws, matter)
    found = layout.arrange()
    solution = SiteSolution(
        inner,
        tuple(unknowns),
        *found,
        sources=tuple(sources),
        overlapping=layout.overlapping,
        faces=tuple((free, {back.get(q, q): v for q, v in values.items()}) for free, values in faces),
    )
    # implicit unknowns keep their plain symbol: it is a bound variable of the branch
    return _named(solution, back)


def _faces(
    puzzle: SitePuzzle, matter: Sequence[Expr], back: Mapping[Symbol, SiteQuantity]
) -> list[tuple[tuple[Symbol, ...], dict[Expr, Expr]]]:
    """The faces on which a law leaves variables free, with the values of all.

    Raises
    ------
    IllPosed
        If what has to be unique is not unique there.
    """
    loose = puzzle.loose
    faces = [(free, values) for free, rest, values in loose if _has_volume(puzzle, free, rest, puzzle.sources)]
    for free, values in faces:
        if any(cancel(e.xreplace(values).diff(u)) != 0 for e in matter for u in free):
            raise IllPosed(
                f"{puzzle.text} leaves {' and '.join(str(back.get(u, u)) for u in free)} undetermined for some values "
                "of the field.",
                "laws that fix every variable of a site",
                "a penalty on each variable that the constraints leave free, in the direction in which it is free",
            )
    return faces


def _has_volume(
    puzzle: SitePuzzle, free: Sequence[Symbol], conditions: Sequence[Expr], sources: Sequence[Symbol]
) -> bool:
    """Whether a face on which the law leaves a variable free holds for an interval of fields."""
    variables = [puzzle.inner, *free]
    symbols = symbols_in(conditions, set(variables))
    calls = [compiled([*variables, *symbols], c) for c in conditions]
    rng = seeded(3)
    generator = np.random.default_rng(3)
    for _ in range(DRAWS):
        point = [0.0 if s in sources else sample_value(s, rng) for s in symbols]
        where = 10 * generator.standard_t(2, size=(len(variables), TRIALS))
        holds = np.ones(TRIALS, dtype=bool)
        for call in calls:
            holds &= np.broadcast_to(call(*where, *point), TRIALS) > INSIDE
        if holds.any():
            return True
    return False


def _named(solution: SiteSolution, back: dict[Any, Any]) -> SiteSolution:
    def named(piece: Any) -> Any:
        values = {back[q]: v for q, v in piece.values.items()}
        return replace(piece, values=values, label=tuple(q.xreplace(back) for q in piece.label))

    return replace(
        solution, regions=tuple(map(named, solution.regions)), branches=tuple(map(named, solution.branches))
    )
