"""The signs of self-couplings: only what convexity proves, or what the law itself needs.

A self-coupling F is real.  What is positive is the denominator of the law, the site's own curvature minus
the feedback: it is so for weak feedback, and must stay so.  Denominators whose sign is not proved become
conditions, which the parameters meet where the branches are laid out, and which are tested at the root.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from sympy import And, Dummy, Expr, Mul, Piecewise, S, Symbol, factor_terms, fraction
from sympy.core.relational import Relational, StrictGreaterThan

from symcavity.algebra.compiled import compiled
from symcavity.algebra.factors import together
from symcavity.algebra.signs import sign_given, sign_of
from symcavity.model.convexity import seeded
from symcavity.model.quantities import SiteQuantity
from symcavity.model.ranges import values_in_range
from symcavity.sites.branching.arranging import IllPosed
from symcavity.sites.branching.branches import Branch
from symcavity.sites.branching.draws import DRAWS, Draws, symbols_in
from symcavity.sites.branching.layout import solve_site
from symcavity.sites.branching.unknowns import GRID
from symcavity.sites.protocol import LawSolution, SiteProblem

WEAK, STRONG = 1e-9, 9.0
ORIENTED = "if a sign is turned: Complementary(p, q) says p >= 0 and q >= 0, so that q is minus a rate of growth of p"
HALVINGS, ATTEMPTS = 60, 200
_AT_END = 1e-9  # of an unknown: where a branch ends belongs to it


def solve_with_feedback(problem: SiteProblem, sources: Mapping[SiteQuantity, Symbol] | None = None) -> LawSolution:
    """Solve a law for every value of its inner field, and learn the signs of self-couplings that it needs.

    The solution holds the denominators that were taken as positive in its ``assumed``, and the signs are those
    that convexity proves, or that the law needs to fix its states.

    Raises
    ------
    IllPosed
        If the law does not fix its states whatever the signs: its branches leave a gap or overlap.
    UnsupportedLaw
        If a branch cannot be solved, not even implicitly.
    """
    last, sources = None, dict(sources or problem.plain_sources())
    equations = [e.difference.xreplace(sources) for e in problem.equations()]
    for choice in _choices([f for f in problem.self_couplings if f not in problem.proved]):
        signs = {**problem.proved, **choice}
        rule: dict[Any, Any] = {f: f.signed(s) for f, s in signs.items()}
        draws = FeedbackDraws(problem, tuple(rule.get(f, f) for f in problem.self_couplings))
        try:
            solution = solve_site(
                [e.xreplace(rule) for e in equations],
                [(p.xreplace(rule), q.xreplace(rule)) for p, q in (pair.pair for pair in problem.law.pairs)],
                problem.law.unknowns,
                problem.inner().eta,
                [sources[h.source] for h in problem.heard],
                problem.text,
                draws,
                problem.material,
            )
        except IllPosed as error:
            last = last or error
            continue
        known = [a for a in solution.assumed if not _implied(a, draws.positive)]
        return LawSolution(replace(solution, assumed=(*known, *draws.taken)), signs)
    if last is not None and problem.law.pairs and not problem.convex:
        raise IllPosed(last.found, last.supported, f"{ORIENTED}; {last.hint}") from last
    raise last or IllPosed(f"{problem.text} has no solution.")


def _choices(free: Sequence[Symbol]) -> Iterator[dict[Symbol, int]]:
    """Signs to try: none at all first, then as few as the law needs."""
    tried = sorted(product((0, -1, 1), repeat=len(free)), key=lambda signs: sum(map(abs, signs)))
    for signs in tried:
        yield {f: s for f, s in zip(free, signs, strict=True) if s}


def _implied(condition: Relational, positive: Sequence[Expr]) -> bool:
    """Whether an inequality repeats that a denominator is positive."""
    return sign_given(condition.lhs - condition.rhs, positive) == 1


@dataclass(frozen=True)
class Denominator:
    """Something that is positive.

    Attributes
    ----------
    expr : Expr
    variable : Symbol or None
        The unknown of an implicit branch: it is positive for all its values.
    inside : tuple of Expr
        Those values of it at which none of these is negative.
    recorded : bool
        Whether it is an assumption, not a consequence of convexity.
    """

    expr: Expr
    variable: Symbol | None = None
    inside: tuple[Expr, ...] = ()
    recorded: bool = True

    def as_stated(self) -> Expr:
        """The expression, set to one outside of the branch that it belongs to."""
        if self.variable is None or not self.inside:
            return self.expr
        return Piecewise((self.expr, And(*(c >= 0 for c in self.inside))), (S.One, True))


@dataclass
class FeedbackDraws(Draws):
    """Draws parameters at which all denominators are positive.

    Attributes
    ----------
    problem : SiteProblem
        The law. In a convex one denominators are positive by convexity; in a strict one those that the signs of
        self-couplings and of parameters leave open are refused, and become conditions otherwise.
    couplings : tuple of Symbol
        The self-couplings; those without an assumption have either sign.
    """

    problem: SiteProblem
    couplings: tuple[Symbol, ...]
    conditions: list[Denominator] = field(default_factory=list)
    _calls: dict[tuple[Any, ...], list[Any]] = field(default_factory=dict)

    @cached_property
    def open(self) -> tuple[Symbol, ...]:
        """The self-couplings of either sign."""
        return tuple(f for f in self.couplings if f.is_positive is None and f.is_negative is None)

    @property
    def positive(self) -> tuple[Expr, ...]:
        """What is known to be positive, on all branches."""
        return tuple(c.expr for c in self.conditions if c.variable is None)

    @property
    def taken(self) -> tuple[Relational, ...]:
        """The expressions that were assumed positive, and have to be tested."""
        return tuple(StrictGreaterThan(c.as_stated(), 0, evaluate=False) for c in self.conditions if c.recorded)

    def read(self, branches: Sequence[Branch]) -> None:
        """Collect the denominators of a solution."""
        found: dict[tuple[Expr, tuple[Expr, ...]], Denominator] = {}
        zero = dict.fromkeys(self.problem.plain_sources().values(), S.Zero)
        for branch in branches:
            if branch.implicit:
                x, psi = branch.implicit
                inside = tuple(c for c in branch.conditions if c.has(x))
                slope = psi.xreplace(zero).diff(x)
                items = [(f, x, inside) for f in [slope] if f.has(*self.couplings or (Dummy(),))]
            else:
                bottoms = {b for v in branch.values.values() for b in _factors(v)}
                items = [(b, None, ()) for b in bottoms if b.has(*self.couplings or (Dummy(),))]
            for expr, x, inside in items:
                one = self._oriented(expr.xreplace(zero), x, inside)
                if one is not None:
                    found.setdefault((one.expr, one.inside), one)
        self.conditions = sorted(found.values(), key=lambda c: (c.expr.count_ops(), str(c.expr)))

    def _oriented(self, expr: Expr, x: Symbol | None, inside: tuple[Expr, ...]) -> Denominator | None:
        """A denominator with the sign that it has for weak feedback; None if its sign is proved or free."""
        if sign_of(expr):
            return None
        weak = _at_zero(expr, self.open)
        feeds = [f for f in self.couplings if f not in self.open]
        if weak != expr and weak == 0:  # no curvature of its own: the closed equations decide
            return None
        if sign_of(weak) is None and x is not None:
            start = weak.xreplace({x: S.One}) if x.is_positive else _at_zero(weak, (x,))
            weak = start if start.is_finite is not False and not start.has(S.NaN) else weak
        if sign_of(weak) is None and weak.has(*feeds or (Dummy(),)):
            weaker = _at_zero(weak, feeds)
            weak = weaker if weaker != 0 else weak
        known = sign_of(weak)
        if known is None:
            weak = weak if weak != expr else S.One
        oriented = factor_terms(expr * (weak if known is None else known)) if known != 1 else expr
        if x is not None and x.is_positive:  # at its end its own powers vanish
            oriented = Mul(*(f for f in Mul.make_args(factor_terms(oriented)) if sign_of(f) != 1))
        settled = self.problem.convex or not expr.has(*self.open or (Dummy(),))
        if settled and x is None and self.problem.strict:
            self._refuse_open(oriented)
        return Denominator(oriented, x, inside, recorded=not (settled and self.problem.strict))

    def _refuse_open(self, expr: Expr) -> None:
        """Raise IllPosed if the declared signs let a denominator vanish."""
        symbols = symbols_in([expr], set())
        call = _compiled(expr, symbols)
        rng = seeded(11)
        feeds = [f for f in self.couplings if f not in self.open]
        for _ in range(DRAWS):
            drawn = dict(zip(symbols, self.drawn(symbols, rng), strict=True))
            point = drawn | dict.fromkeys(self.open, 0.0)
            for share in (WEAK, 1.0, STRONG):
                scaled = [v * share if s in feeds else v for s, v in ((s, point[s]) for s in symbols)]
                with np.errstate(all="ignore"):
                    vanishes = call(*scaled, 0.0) <= 0  # no number where a parameter is out of its range
                if vanishes:
                    wrong = IllPosed(
                        f"{self.problem.text}: its response passes through infinity.",
                        "laws with a response of one sign",
                    )
                    wrong.shared = not any(isinstance(s, SiteQuantity) for s in symbols)
                    raise wrong

    def drawn(self, symbols: Sequence[Any], rng: random.Random) -> list[float]:
        """Draw values of parameters that meet what is asked of them, unless that is hardly ever met."""
        return values_in_range(partial(super().sample, symbols, rng), symbols, self.problem.ranges)

    def sample(self, symbols: Sequence[Any], rng: random.Random) -> list[float]:
        """Draw values at which all denominators are positive: weaker feedback until they are."""
        for _ in range(ATTEMPTS):
            point = self.drawn(symbols, rng)
            for _ in range(HALVINGS):
                if self._holds(symbols, point):
                    return point
                point = [v / 2 if s in self.open else v for s, v in zip(symbols, point, strict=True)]
        raise IllPosed(
            f"{self.problem.text}: no feedback was found for which it fixes the states for every value of the field.",
            "laws that fix the states for every value of the field, at least without feedback",
            "check the signs in the equations",
        )

    def _holds(self, symbols: Sequence[Any], point: Sequence[float]) -> bool:
        key = tuple(symbols)
        if key not in self._calls:
            self._calls[key] = [
                (_compiled(c.expr, symbols, c.variable), [_compiled(e, symbols, c.variable) for e in c.inside])
                for c in self.conditions
            ]
        with np.errstate(all="ignore"):
            for call, inside in self._calls[key]:
                grid = np.concatenate([GRID, *(_ends(np.broadcast_to(e(*point, GRID), GRID.shape)) for e in inside)])
                values = np.broadcast_to(call(*point, grid), grid.shape)
                outside = ~np.isfinite(values)
                for limit in inside:
                    outside = outside | (limit(*point, grid) < -_AT_END * (1 + np.abs(grid)))
                if not np.all((values > 0) | outside):
                    return False
        return True


def _ends(limit: np.ndarray) -> np.ndarray:
    """Where what bounds a branch vanishes between two points of the grid: denominators are often smallest there."""
    here = np.flatnonzero(np.isfinite(limit[1:]) & np.isfinite(limit[:-1]) & ((limit[1:] < 0) != (limit[:-1] < 0)))
    share = limit[here] / (limit[here] - limit[here + 1])
    ends: np.ndarray = GRID[here] + share * (GRID[here + 1] - GRID[here])
    return ends


def _at_zero(expr: Expr, symbols: Sequence[Symbol]) -> Expr:
    """An expression where symbols are zero; nan where SymPy cannot say what it is, as of cosh(1/0)."""
    try:
        return expr.xreplace(dict.fromkeys(symbols, S.Zero))
    except TypeError:
        return S.NaN


def _factors(value: Expr) -> list[Expr]:
    """The factors of the denominator of an expression."""
    return [f.as_base_exp()[0] for f in Mul.make_args(factor_terms(fraction(together(value))[1]))]


def _compiled(expr: Expr, symbols: Sequence[Any], variable: Symbol | None = None) -> Any:
    return compiled([*symbols, variable or Dummy("x")], expr)
