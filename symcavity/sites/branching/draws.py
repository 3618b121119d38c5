"""Seeded values of the parameters of a law, at which its branches are looked at."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from sympy import Expr, Symbol

from symcavity.model.convexity import sample_parameter, sample_quenched
from symcavity.model.quantities import SiteQuantity
from symcavity.sites.branching.branches import Branch

DRAWS = 24


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
