"""Seeded values of the parameters of a law, at which its branches are looked at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from sympy import Eq, Expr, Float, KroneckerDelta, Ne, Symbol
from sympy.core.relational import Relational

from symcavity.algebra.choice import Choice
from symcavity.model.convexity import sample_parameter, sample_quenched
from symcavity.model.quantities import Quenched, SiteQuantity, site_quantities
from symcavity.sites.branching.branches import Branch

DRAWS, MOST_CASES = 24, 96


def symbols_in(exprs: Sequence[Expr], bound: set[Symbol]) -> list[Any]:
    """The parameters in expressions, in a fixed order."""
    found = set().union(*(e.atoms(Symbol, SiteQuantity) for e in exprs)) - bound if exprs else set()
    bare = set().union(*map(_bare, exprs))
    found = {s for s in found if isinstance(s, SiteQuantity) or s in bare}
    return sorted(found, key=lambda s: (str(type(s)), str(s)))


def sample_value(symbol: Any, rng: random.Random) -> float:
    """Draw a value of a symbol or of a quenched parameter."""
    if isinstance(symbol, SiteQuantity):
        return sample_quenched(symbol.family, rng)
    if symbol.is_positive is None and symbol.is_negative is None:
        return rng.gauss(0, 1.5)
    return sample_parameter(symbol, rng)


class Cases:
    """The tests on labels in a law, and values of labels at which they come out in every way.

    A label that is drawn from the reals is never the number that a test asks for, and seldom beyond a far bound.
    A label that chooses values of several parameters takes those among them of which the fewest are zero: like a
    parameter that is zero, such as the mask of a datum that is left out, they say least.

    Parameters
    ----------
    exprs : sequence of Expr
        The law.
    moving : sequence of Symbol
        The field and the unknowns: what they decide is no test on labels.
    """

    def __init__(self, exprs: Sequence[Expr], moving: Sequence[Symbol]) -> None:
        found = {t for e in exprs for t in e.atoms(Relational, KroneckerDelta)}
        self._choices: dict[SiteQuantity, list[tuple[Expr, int] | None]] = {}  # of each label: a place, and its side
        for test in sorted(found, key=str):
            if test.has(*moving) or (by_label := _by_label(test)) is None:
                continue
            label, place = by_label
            sides = (0,) if isinstance(test, Eq | Ne | KroneckerDelta) else (-1, 1)
            self._choices.setdefault(label, [None]).extend((place, side) for side in sides)
        chosen: dict[SiteQuantity, list[Choice]] = {}
        for choice in sorted({c for e in exprs for c in e.atoms(Choice)}, key=str):
            chosen.setdefault(choice.args[0], []).append(choice)
        self._telling: dict[SiteQuantity, list[int]] = {}
        for label, columns in chosen.items():
            zeros = [sum(v == 0 for v in row) for row in zip(*(c.args[1] for c in columns), strict=True)]
            self._telling[label] = [k for k, n in enumerate(zeros, start=1) if n == min(zeros)]
        self._number = prod(map(len, self._choices.values()))
        self._every = list(product(*self._choices.values())) if self._number <= MOST_CASES else []

    @property
    def number(self) -> int:
        """How many draws show all of them, each several times where they are few; a sample of very many."""
        return max(DRAWS, min(self._number, MOST_CASES))

    def decide(self, draw: int, symbols: Sequence[Any], point: Sequence[float], rng: random.Random) -> list[float]:
        """Move labels at a point so that each test comes out in the way whose turn it is.

        Parameters
        ----------
        draw : int
            The number of the draw.
        symbols, point
            The parameters, and their values.
        rng : Random
            How far beyond a bound a label lies.
        """
        here = dict(zip(symbols, point, strict=True))
        here |= {q: float(rng.choice(rows)) for q, rows in self._telling.items() if here.get(q, rows[0]) not in rows}
        if not self._choices:
            return [here[s] for s in symbols]
        every = self._choices.values()
        chosen = self._every[draw % self._number] if self._every else [rng.choice(each) for each in every]
        for label, choice in zip(self._choices, chosen, strict=True):
            if choice is None or label not in here:
                continue
            place, side = choice
            at = float(place.xreplace({s: Float(v) for s, v in here.items() if s != label}))
            at += side * abs(rng.gauss(0, 1.0))
            if label.family.values:
                here[label] = min(map(float, label.family.values), key=lambda v: abs(v - at))
            elif at > 0 or not label.family.positive:
                here[label] = at
        return [here[s] for s in symbols]


def _by_label(test: Any) -> tuple[SiteQuantity, Expr] | None:
    """A label on which a test depends linearly, and where its two sides are equal; None if there is none."""
    gap = test.args[0] - test.args[1]
    for label in sorted(site_quantities(gap, Quenched), key=str):
        slope = gap.diff(label)
        if slope.is_number and slope != 0:
            return label, (label - gap / slope).expand()
    return None


class Draws:
    """Where the values of the parameters come from at which branches are laid out.

    Attributes
    ----------
    positive : tuple of Expr
        Expressions that are positive at all of them.
    """

    @property
    def positive(self) -> tuple[Expr, ...]:
        """Expressions that are positive at all values."""
        return ()

    def read(self, branches: Sequence[Branch]) -> None:
        """See the branches before anything is drawn."""

    def sample(self, symbols: Sequence[Any], rng: random.Random) -> list[float]:
        """Draw a value for each symbol that respects its assumptions."""
        return [sample_value(s, rng) for s in symbols]


def _bare(expr: Any) -> set[Symbol]:
    """The symbols outside of site quantities, in which others are indices."""
    if isinstance(expr, SiteQuantity):
        return set()
    return {expr} if isinstance(expr, Symbol) else set().union(*map(_bare, expr.args))
